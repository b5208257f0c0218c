// SPDX-License-Identifier: MIT
//
// Council is one quorum, and for each node the last request to it. It does what a driver does, but for the driver's own
// decisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "heard.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

namespace holdfast::testing {

inline NodeSet all_of(std::size_t nodes) { return static_cast<NodeSet>(node_bit(nodes) - 1U); }

// The one answer of a reentrant renewal: an array of it.
inline std::string batch_of(bool yes) { return yes ? "*1\r\n:1\r\n" : "*1\r\n:0\r\n"; }

struct Council {
  static constexpr Duration lease = 10s;

  const LockKind& kind;
  std::size_t count;
  std::deque<QuorumVote> votes;
  std::vector<QuorumVote*> places;
  std::optional<QuorumMachine> machine;
  struct Asked {
    bool open = false;
    Request request;
    std::string bytes;
  };
  std::vector<Asked> asked;
  std::vector<int> compensations;  // How often, a node.
  NodeSet given_up = 0;
  NodeSet doubted = 0;

  explicit Council(std::size_t nodes, const LockKind& of = mutex_kind, const QuorumTiming& timing = {.lease = lease})
      : kind(of), count(nodes), asked(nodes), compensations(nodes) {
    for (std::size_t node = 0; node < nodes; ++node) places.push_back(&votes.emplace_back(of));
    machine.emplace(of, places.data(), nodes);
    TEST_ASSERT_EQUAL(Status::ok, machine->configure(Key("name"), timing));
  }
  ~Council() { DOCTEST_CHECK(machine->invariants()); }  // A destructor cannot end the test.
  void check() const { TEST_ASSERT_TRUE(machine->invariants()); }
  QuorumMachine* operator->() { return &*machine; }
  LockMachine& node(std::size_t index) { return places[index]->machine; }
  static Token token(char digit = 'a') { return Token(ByteView(std::string(token_text_size, digit))); }

  // Takes every wanted request and compensation. The nodes that were asked.
  NodeSet take() {
    check();
    NodeSet nodes = 0;
    const NodeSet named = machine->poll_nodes();
    for (std::size_t index = 0; index < count; ++index) {
      ReplyTag tag;
      Compensation compensation;
      // A driver looks at no other node.
      const bool pays = machine->poll_compensation(index, true, tag, compensation);
      if (pays) ++compensations[index];
      if (pays || node(index).wants_request()) TEST_ASSERT_TRUE((named & node_bit(index)) != 0);
      if (!node(index).wants_request()) continue;
      static char space[8192];
      std::size_t size = 0;
      asked[index] = {};
      TEST_ASSERT_EQUAL(Status::ok, node(index).poll_request({space, sizeof space}, asked[index].request, size));
      asked[index].bytes.assign(space, size);
      asked[index].open = true;
      nodes = static_cast<NodeSet>(nodes | node_bit(index));
    }
    given_up = static_cast<NodeSet>(given_up | machine->poll_give_up());
    doubted = static_cast<NodeSet>(doubted | machine->poll_protocol_doubt());
    check();
    return nodes;
  }
  void tell(std::size_t index, const Request& request, Status outcome, bool nothing_ran, const RespValue& value,
            Instant now) {
    machine->handle_reply(index, {.tag = request.tag, .outcome = outcome, .nothing_ran = nothing_ran, .value = value},
                          now);
    check();
  }
  void answer(std::size_t index, const RespValue& value, Instant now) {
    TEST_ASSERT_TRUE(asked[index].open);
    asked[index].open = false;
    tell(index, asked[index].request, Status::ok, false, value, now);
  }
  void fail(std::size_t index, Status outcome, Instant now, bool nothing_ran = false) {
    TEST_ASSERT_TRUE(asked[index].open);
    asked[index].open = false;
    tell(index, asked[index].request, outcome, nothing_ran, {}, now);
  }
  // A grant; of the fenced kinds with this fence.
  void grant(std::size_t index, Instant now, std::uint64_t fence = 7) {
    const std::string text = std::to_string(fence);
    answer(index,
           kind.fenced ? RespValue::make_text(RespKind::bulk, ByteView(text))
                       : RespValue::make_text(RespKind::simple, "OK"),
           now);
  }
  void busy(std::size_t index, Instant now, std::int64_t remaining = 500) {
    answer(index, &kind == &mutex_kind ? RespValue() : RespValue::make_integer(remaining), now);
  }
  // To a renewal or a release.
  void say(std::size_t index, bool yes, Instant now) {
    const bool renewal = asked[index].request.tag.operation == Operation::renew;
    if (renewal && kind.reentrant && !kind.fenced)
      answer(index, Heard(batch_of(yes)).value, now);
    else
      answer(index, RespValue::make_integer(yes ? 1 : 0), now);
  }
  std::string events() {
    static const char* const names[] = {"granted", "denied", "renewed", "doubted", "at_risk", "lost", "released"};
    std::string text;
    check();
    for (QuorumEvent event{}; machine->poll_event(event);)
      text += (text.empty() ? "" : " ") + std::string(names[static_cast<int>(event)]);
    return text;
  }

  void acquire(Instant now, char digit = 'a') { acquire(now, digit, all_of(count)); }
  void acquire(Instant now, char digit, NodeSet voters) {
    TEST_ASSERT_EQUAL(Status::ok, machine->acquire(token(digit), now, voters));
    TEST_ASSERT_EQUAL(voters, take());
  }
  // All nodes grant; of a fenced kind all write back.
  void hold(Instant now) {
    acquire(now);
    for (std::size_t index = 0; index < count; ++index) grant(index, now + 1ms);
    (void)take();
    for (std::size_t index = 0; index < count; ++index)
      if (asked[index].open) say(index, true, now + 2ms);
    TEST_ASSERT_EQUAL("granted", events());
    (void)take();
  }
  NodeSet renew(Instant now, NodeSet repairers = 0) {
    TEST_ASSERT_EQUAL(Status::ok, machine->renew(now, now + 1s, repairers));
    return take();
  }
  void release(Instant now) {
    TEST_ASSERT_EQUAL(Status::ok, machine->release(now));
    (void)take();
  }
};

}  // namespace holdfast::testing
