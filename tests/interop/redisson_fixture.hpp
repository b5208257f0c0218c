// SPDX-License-Identifier: MIT
//
// What the tests beside Redisson have in common.
#pragma once

#include <string>
#include <vector>

#include "live_fixture.hpp"
#include "peer.hpp"

using namespace holdfast;

inline constexpr Duration woken_within = 8s;  // Far below every lease here, after which they would ask anyway.
inline constexpr Duration bound = 20s;        // Of waiting for what must come. No test waits for it unless it fails.

inline void connect(Client& client, const RedisServer& server) {
  const Status status = client.connect(ByteView(server.tcp_url()));
  TEST_MESSAGE("error text: " << std::string(client.error_text().string_view()));
  TEST_ASSERT_EQUAL(Status::ok, status);
}

// The server has no event for what others do: asked again after a breath.
template <typename Condition>
bool comes_true(Condition&& condition) {
  const Instant limit = Client::now() + bound;
  while (!condition()) {
    if (Client::now() >= limit) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

// As Redisson derives it, spelt out once more: a test must not take the name from what it tests.
inline std::string derived(const std::string& prefix, const std::string& name) {
  return name.find('{') == std::string::npos ? prefix + ":{" + name + "}" : prefix + ":" + name;
}

// The beginnings of channels: of plain and fenced locks, of read/write locks, and of semaphores.
inline constexpr char plain_channel[] = "redisson_lock__channel";
inline constexpr char read_write_channel[] = "redisson_rwlock";
inline constexpr char semaphore_channel[] = "redisson_sc";

// Channels of every node, and those of a slot in a cluster, are asked for apart.
inline constexpr char of_every_node[] = "NUMSUB";
inline constexpr char of_the_slot[] = "SHARDNUMSUB";

inline long subscribers_of(const RedisServer& server, const std::string& name, const char* prefix = plain_channel,
                           const char* scope = of_every_node) {
  const std::vector<std::string> question = {"PUBSUB", scope, derived(prefix, name)};
  const std::string answer = server.command(question);
  return std::stol(answer.substr(answer.rfind(' ') + 1));
}

inline void await_subscribers(const RedisServer& server, const std::string& name, long count,
                              const char* prefix = plain_channel, const char* scope = of_every_node) {
  TEST_ASSERT_TRUE(comes_true([&] { return subscribers_of(server, name, prefix, scope) == count; }));
}

// Who waits has been refused, has subscribed, and has been refused once more: from then on only a message wakes it.
// Both sides' scripts ask for the remaining time when they refuse, by a command that they need for nothing else.
class Refusals {
 public:
  explicit Refusals(const RedisServer& server, const char* prefix = plain_channel, const char* question = "pttl",
                    const char* scope = of_every_node)
      : server_(server), prefix_(prefix), question_(question), scope_(scope), before_(count()) {}
  // For so many waiters since it was made, on so many connections.
  void await_waiting(const std::string& name, long waiters = 1, long connections = 1) const {
    TEST_ASSERT_TRUE(comes_true([&] { return count() >= before_ + 2 * waiters; }));
    await_subscribers(server_, name, connections, prefix_, scope_);
  }

 private:
  long count() const { return server_.calls(question_); }

  const RedisServer& server_;
  const char* prefix_;
  const char* question_;
  const char* scope_;
  long before_;
};

// Redisson deletes its latches behind the caller's back, and unsubscribes there, too.
inline void expect_nothing_left(const RedisServer& server, const std::string& keys_wanted = "") {
  std::string keys;
  const bool swept = comes_true([&] { return (keys = server.command("KEYS *")) == keys_wanted; });
  TEST_MESSAGE("keys: " << keys);
  TEST_ASSERT_TRUE(swept);
  TEST_ASSERT_TRUE(comes_true([&] { return server.command("PUBSUB CHANNELS redisson_*").empty(); }));
}

// Expects that somebody of theirs was granted the lock that soon after `event`. Returns the token of a fenced one.
inline std::string expect_granted_after(Peer& peer, const std::string& name, Instant event) {
  const std::vector<std::string> granted = peer.event();
  const Duration taken = Client::now() - event;
  TEST_ASSERT_EQUAL("granted", granted.at(0));
  TEST_ASSERT_EQUAL(Peer::word_of(name), granted.at(1));
  TEST_ASSERT_TRUE(taken < woken_within);
  return granted.size() > 3 ? granted[3] : "";
}

inline bool is_granted(const std::string& answer) { return answer.rfind("granted", 0) == 0; }

// Names whose channel is derived in each of its ways, and whose bytes are not all plain.
inline const std::string names[] = {"orders/42",
                                    "two words",
                                    "Gr\xc3\xbc\xc3\x9f"
                                    "e \xf0\x9f\x94\x92",
                                    "{tag}rest",
                                    "a{b}c",
                                    "100%+"};
