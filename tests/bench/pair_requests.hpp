// SPDX-License-Identifier: MIT
//
// The two requests of a pair, for who does not use holdfast; and hiredis' way of sending them.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raw_client.hpp"
#include "scripts.hpp"

namespace bench {

inline std::vector<std::string> set_arguments(const std::string& key) {
  return {"SET", key, PreparedRequest::token_placeholder(), "NX", "PX", "30000"};
}
inline std::string release_text() { return std::string(holdfast::scripts::mutex_release.text.string_view()); }
inline std::string release_sha() { return std::string(holdfast::scripts::mutex_release.sha.bytes().string_view()); }
inline std::vector<std::string> release_arguments(const std::string& release, const std::string& key) {
  const std::string token = PreparedRequest::token_placeholder();
  if (release == "DELEX") return {"DELEX", key, "IFEQ", token};
  if (release == "DELIFEQ") return {"DELIFEQ", key, token};
  return {"EVALSHA", release_sha(), "1", key, token};
}

// ---- hiredis -----------------------------------------------------------------------------------------------------

struct ContextDeleter {
  void operator()(redisContext* context) const { redisFree(context); }
};

// Arguments as redisCommandArgv() wants them.
class ArgumentVectors {
 public:
  explicit ArgumentVectors(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (const std::string& text : texts_) {
      if (text == PreparedRequest::token_placeholder()) token_index_ = pointers_.size();
      pointers_.push_back(text.data());
      sizes_.push_back(text.size());
    }
  }
  ArgumentVectors(const ArgumentVectors&) = delete;
  ArgumentVectors& operator=(const ArgumentVectors&) = delete;

  void set_token(const char* token) { pointers_[token_index_] = token; }
  [[nodiscard]] int count() const { return static_cast<int>(pointers_.size()); }
  [[nodiscard]] const char** pointers() { return pointers_.data(); }
  [[nodiscard]] const std::size_t* sizes() const { return sizes_.data(); }

  // The reply's type must be `type`.
  void call(redisContext* context, const char* token, int type) {
    if (token != nullptr) set_token(token);
    void* const answer = redisCommandArgv(context, count(), pointers(), sizes());
    auto* const reply = static_cast<redisReply*>(answer);
    expect(reply != nullptr && reply->type == type, "hiredis: an unexpected reply");
    freeReplyObject(answer);
  }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
  std::vector<std::size_t> sizes_;
  std::size_t token_index_ = 0;
};

struct HiredisPair {
  explicit HiredisPair(const Address& address, const std::string& key = next_key())
      : context(address.socket_path.empty() ? redisConnect("127.0.0.1", address.port)
                                            : redisConnectUnix(address.socket_path.c_str())),
        acquire(set_arguments(key)),
        release(release_arguments("script", key)) {
    expect(context != nullptr && context->err == 0, "hiredis cannot connect to the server");
    (void)redisSetTimeout(context.get(), {.tv_sec = 1, .tv_usec = 0});
    ArgumentVectors({"SCRIPT", "LOAD", release_text()}).call(context.get(), nullptr, REDIS_REPLY_STRING);
  }

  std::unique_ptr<redisContext, ContextDeleter> context;
  ArgumentVectors acquire;
  ArgumentVectors release;
  TokenTable tokens;
};

}  // namespace bench
