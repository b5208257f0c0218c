// SPDX-License-Identifier: MIT
#include "quorum_contenders.hpp"

#include <poll.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/holdfast.hpp"
#include "pair_requests.hpp"
#include "raw_client.hpp"

namespace bench {

// ---- Raw ---------------------------------------------------------------------------------------------------------

namespace {

// One node's connection. Its replies come in the order of the requests; those of a node that was not waited for come late.
class RawNode {
 public:
  RawNode(const Address& address, const std::string& key)
      : socket_(address), acquire_(set_arguments(key)), release_(release_arguments("script", key)) {
    load_script(socket_, holdfast::scripts::mutex_release);
  }

  [[nodiscard]] int descriptor() const { return socket_.descriptor(); }
  // True when the last request is answered.
  [[nodiscard]] bool answered() const { return replies_ == requests_; }

  void send_acquire(const char* token) { send(acquire_.with_token(token)); }
  void send_release(const char* token) { send(release_.with_token(token)); }

  // Takes what has arrived.
  void receive() {
    const ssize_t count = ::recv(socket_.descriptor(), received_ + size_, sizeof received_ - size_, MSG_DONTWAIT);
    expect(count > 0, "no reply");
    size_ += static_cast<std::size_t>(count);
    std::size_t at = 0;
    for (;; ++replies_) {
      const std::string_view wanted = replies_ % 2 == 0 ? acquired : released;
      if (size_ - at < wanted.size()) break;
      expect(std::memcmp(received_ + at, wanted.data(), wanted.size()) == 0, "a node refused");
      at += wanted.size();
    }
    if (at != size_) std::memmove(received_, received_ + at, size_ - at);
    size_ -= at;
  }

 private:
  void send(std::string_view bytes) {
    socket_.send(bytes);
    ++requests_;
  }

  RawSocket socket_;
  PreparedRequest acquire_;
  PreparedRequest release_;
  std::size_t requests_ = 0;
  std::size_t replies_ = 0;
  char received_[256];
  std::size_t size_ = 0;
};

struct RawQuorum {
  explicit RawQuorum(const Nodes& addresses) {
    const std::string key = next_key();
    for (std::size_t index = 0; index < quorum_nodes; ++index) {
      nodes[index] = std::make_unique<RawNode>(addresses[index], key);
      entries[index] = {.fd = nodes[index]->descriptor(), .events = POLLIN, .revents = 0};
    }
  }

  void pair() {
    const char* const token = tokens.next();
    for (const auto& node : nodes) node->send_acquire(token);
    await_majority();
    for (const auto& node : nodes) node->send_release(token);
    await_majority();
  }

  void await_majority() {
    for (std::size_t answers = 0; answers < quorum_majority;) {
      expect(::poll(entries.data(), entries.size(), 1000) > 0, "no majority answered");
      for (std::size_t index = 0; index < quorum_nodes; ++index) {
        if (entries[index].revents == 0) continue;
        nodes[index]->receive();
        if (nodes[index]->answered()) ++answers;
      }
    }
  }

  std::array<std::unique_ptr<RawNode>, quorum_nodes> nodes;
  std::array<pollfd, quorum_nodes> entries{};
  TokenTable tokens;
};

}  // namespace

PairedRounds::Run raw_quorum_pairs(const Nodes& nodes) {
  return [quorum = std::make_shared<RawQuorum>(nodes)](std::size_t count) {
    for (; count != 0; --count) quorum->pair();
  };
}

// ---- hiredis -----------------------------------------------------------------------------------------------------

PairedRounds::Run hiredis_quorum_pairs(const Nodes& nodes) {
  std::vector<std::shared_ptr<HiredisPair>> pairs;
  const std::string key = next_key();
  for (const Address& node : nodes) pairs.push_back(std::make_shared<HiredisPair>(node, key));
  return [pairs, tokens = TokenTable()](std::size_t count) mutable {
    for (; count != 0; --count) {
      const char* const token = tokens.next();
      for (const auto& pair : pairs) pair->acquire.call(pair->context.get(), token, REDIS_REPLY_STATUS);
      for (const auto& pair : pairs) pair->release.call(pair->context.get(), token, REDIS_REPLY_INTEGER);
    }
  };
}

// ---- holdfast ----------------------------------------------------------------------------------------------------

namespace {

struct HoldfastQuorum {
  explicit HoldfastQuorum(const Nodes& addresses) {
    std::array<holdfast::ClientConfig, quorum_nodes> configs;
    for (std::size_t index = 0; index < quorum_nodes; ++index) {
      configs[index].port = static_cast<std::uint16_t>(addresses[index].port);
      configs[index].socket_path.assign(addresses[index].socket_path);
      configs[index].native_delete = false;
    }
    const holdfast::Status status = quorum.connect(configs.data(), configs.size(), {.restart_guard = false});
    expect(status == holdfast::Status::ok, "holdfast: no quorum");
    lock.emplace(quorum, next_key());
  }

  holdfast::Quorum<quorum_nodes> quorum;
  std::optional<holdfast::RedlockMutex<quorum_nodes>> lock;
};

}  // namespace

PairedRounds::Run holdfast_quorum_pairs(const Nodes& nodes, std::atomic<std::size_t>& refused) {
  return [pair = std::make_shared<HoldfastQuorum>(nodes), &refused](std::size_t count) {
    for (; count != 0; --count) {
      if (pair->lock->try_acquire() != holdfast::Status::ok) {
        ++refused;
        continue;
      }
      if (pair->lock->release() != holdfast::Status::ok) ++refused;
    }
  };
}

}  // namespace bench
