// SPDX-License-Identifier: MIT
//
// The limit that clients stand beside: a blocking socket with SO_RCVTIMEO set, and requests whose bytes were computed
// before. What is not as expected throws std::runtime_error.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "address.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/proto/script.hpp"
#include "paired_rounds.hpp"

namespace bench {

// What the server says to SET NX PX, and to the scripts that release.
inline constexpr auto acquired = std::string_view("+OK\r\n");
inline constexpr auto released = std::string_view(":1\r\n");

// What a core burns at most before it sleeps, for those who spin.
inline constexpr std::chrono::microseconds spin_budget{50};

inline void expect(bool condition, const char* what) {
  if (!condition) [[unlikely]]
    throw std::runtime_error(what);
}

// Keys of one size, so that all send as many bytes.
inline std::string next_key() {
  static std::atomic<int> number{100000};
  return std::string("bench:").append(std::to_string(number++));
}

// Tokens for those who draw no random bytes: any will do, as long as they change and have a token's size.
inline constexpr std::size_t token_size = holdfast::token_text_size;
class TokenTable {
 public:
  TokenTable() {
    for (std::size_t index = 0; index < tokens_.size(); ++index) tokens_[index].fill("0123456789abcdef"[index]);
  }
  const char* next() { return tokens_[++last_ % tokens_.size()].data(); }
  // The one that next() gave last.
  [[nodiscard]] const char* current() const { return tokens_[last_ % tokens_.size()].data(); }

 private:
  std::array<std::array<char, token_size>, 16> tokens_{};
  std::size_t last_ = 0;
};

// ---- A raw socket ------------------------------------------------------------------------------------------------

class RawSocket {
 public:
  explicit RawSocket(const Address& address) {
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    std::strncpy(local.sun_path, address.socket_path.c_str(), sizeof local.sun_path - 1);
    sockaddr_in loopback{};
    loopback.sin_family = AF_INET;
    loopback.sin_port = htons(static_cast<std::uint16_t>(address.port));
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool tcp = address.socket_path.empty();
    descriptor_ = ::socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int connected = tcp ? ::connect(descriptor_, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback)
                              : ::connect(descriptor_, reinterpret_cast<sockaddr*>(&local), sizeof local);
    expect(connected == 0, "cannot connect to the server");
    const timeval limit = {.tv_sec = 1, .tv_usec = 0};
    const int on = 1;
    (void)::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (tcp) (void)::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~RawSocket() { ::close(descriptor_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }

  void send(std::string_view bytes) {
    const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    expect(count == static_cast<ssize_t>(bytes.size()), "a send was cut short");
  }

  // Waits for these very bytes.
  void expect_reply(std::string_view bytes, bool spinning = false) {
    char received[256];
    std::size_t size = 0;
    while (size < bytes.size()) {
      const ssize_t count = spinning ? receive_spinning(received + size, sizeof received - size)
                                     : ::recv(descriptor_, received + size, sizeof received - size, 0);
      expect(count > 0, "no reply");
      size += static_cast<std::size_t>(count);
    }
    if (size == bytes.size() && std::memcmp(received, bytes.data(), size) == 0) return;
    throw std::runtime_error("the server answered " + std::string(received, size));
  }

  // Waits for one line, whatever it says.
  void expect_line() {
    char received[64];
    std::size_t size = 0;
    do {
      const ssize_t count = ::recv(descriptor_, received + size, sizeof received - size, 0);
      expect(count > 0, "no reply");
      size += static_cast<std::size_t>(count);
    } while (received[size - 1] != '\n' && size < sizeof received);
  }

  // Waits for `left` bytes, whatever they are.
  void drain(std::size_t left) {
    char received[4096];
    while (left != 0) {
      const ssize_t count = ::recv(descriptor_, received, sizeof received, 0);
      expect(count > 0 && static_cast<std::size_t>(count) <= left, "the replies are not as many as they should be");
      left -= static_cast<std::size_t>(count);
    }
  }

 private:
  ssize_t receive_spinning(char* out, std::size_t size) {
    const Clock::time_point until = Clock::now() + spin_budget;
    do {
      const ssize_t count = ::recv(descriptor_, out, size, MSG_DONTWAIT);
      if (count >= 0 || errno != EAGAIN) return count;
    } while (Clock::now() < until);
    return ::recv(descriptor_, out, size, 0);
  }

  int descriptor_ = -1;
};

// ---- Precomputed requests ----------------------------------------------------------------------------------------

inline std::string encoded(const std::vector<std::string>& texts) {
  std::vector<holdfast::Argument> arguments;
  for (const std::string& text : texts) arguments.emplace_back(holdfast::ByteView(text));
  const holdfast::Arguments view(arguments.data(), arguments.size());
  std::string bytes(holdfast::encoded_size(view), '\0');
  std::size_t size = 0;
  expect(holdfast::encode_command({bytes.data(), bytes.size()}, view, size) == holdfast::Status::ok, "encode_command");
  return bytes;
}

class PreparedRequest {
 public:
  // One of the arguments is token_placeholder().
  explicit PreparedRequest(const std::vector<std::string>& arguments)
      : bytes_(encoded(arguments)), token_offset_(bytes_.find(token_placeholder())) {}

  static std::string token_placeholder() { return std::string(token_size, '?'); }

  std::string_view with_token(const char* token) {
    std::memcpy(bytes_.data() + token_offset_, token, token_size);
    return bytes_;
  }

 private:
  std::string bytes_;
  std::size_t token_offset_;
};

// The server knows the script from here on.
inline void load_script(RawSocket& socket, const holdfast::Script& script) {
  socket.send(encoded({"SCRIPT", "LOAD", std::string(script.text.string_view())}));
  socket.expect_reply(std::string("$40\r\n").append(script.sha.bytes().string_view()).append("\r\n"));
}

}  // namespace bench
