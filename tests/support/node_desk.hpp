// SPDX-License-Identifier: MIT
//
// A node without a socket: what it sends is collected, and what it receives is fed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/node.hpp"
#include "resp_text.hpp"
#include "unity_style.hpp"
#include "wire_pieces.hpp"

namespace holdfast::testing {

using namespace std::chrono_literals;

inline constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
inline constexpr std::uint16_t least = 0;

inline ClientConfig config_of(const char* host) {
  ClientConfig config;
  config.host = host;
  config.connect_timeout = 2s;
  config.request_timeout = 500ms;
  return config;
}

inline SocketAddress address_of(char last) {
  SocketAddress address{};
  address.bytes[0] = static_cast<unsigned char>(last);
  address.size = 16;
  address.family = 2;
  return address;
}

// A driver whose sockets are two strings.
struct NodeDesk {
  explicit NodeDesk(const char* host = "127.0.0.1", bool literal = true) {
    const SocketAddress address = address_of('1');
    node->configure(config_of(host), literal ? &address : nullptr);
  }
  DialAction poll() { return node->dialer().poll_action(now, least); }
  void transmit() {
    std::size_t limit = SIZE_MAX;
    do {
      if (node->session().wants_look()) node->session().handle_drained();
    } while (transmit_piece(node->session(), now, sent, limit));
  }
  void receive(std::string_view bytes) {
    transmit();
    while (receive_piece(node->session(), now, bytes)) {
      node->handle_used(now);
      poll_replies();
    }
  }
  void poll_replies() {
    Reply reply;
    while (node->session().poll_reply(reply, now)) heard.push_back(reply);
  }
  void connect(char run_id = 'f', const char* version = "7.0.15") {
    TEST_ASSERT_EQUAL(DialAction::dial, poll());
    node->handle_connected(now);
    introduce(run_id, version);
    TEST_ASSERT_TRUE(node->handle_ready(now));
  }
  // A server's run id is one letter.
  void introduce(char run_id = 'f', const char* version = "7.0.15") {
    receive("+OK\r\n:7\r\n*6\r\n" + bulk(std::string(40, run_id)) + bulk("100") + bulk(version) + bulk("") +
            bulk(std::string(40, '0')) + bulk("-1master"));
  }
  void close() {
    node->handle_closed(now, least);
    poll_replies();
  }

  std::unique_ptr<NodeBuffers> buffers = std::make_unique<NodeBuffers>();
  std::unique_ptr<Node> node = std::make_unique<Node>(buffers->storage());
  Instant now = start;
  std::string sent;
  std::vector<Reply> heard;
};

struct Locked {
  Locked() { TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key(ByteView("k")), {.lease = 10s})); }
  void acquire(Instant now) {
    TEST_ASSERT_EQUAL(Status::ok, machine.acquire(Token(ByteView(std::string(32, 't'))), now, now + 500ms));
  }
  LockMachine machine{mutex_kind};
};

}  // namespace holdfast::testing
