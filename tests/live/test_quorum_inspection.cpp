// SPDX-License-Identifier: MIT
//
// Who holds a lock by a majority, and taking it away on all nodes, whatever becomes of some of them.
#include <string>
#include <thread>

#include "holdfast/inspection.hpp"
#include "live_nodes.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 12s};

// A node that does not answer is not waited for to the end of anybody's patience.
std::vector<ClientConfig> brisk(std::vector<ClientConfig> configs) {
  for (ClientConfig& config : configs) config.connect_timeout = config.request_timeout = 500ms;
  return configs;
}

}  // namespace

TEST_ON_NODES(test_inspect_should_name_the_holder_that_a_majority_names, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  await_voters(quorum, 0b111);
  QuorumInfo info;
  TEST_ASSERT_EQUAL(Status::ok, inspect(quorum, Key("k"), info));
  TEST_ASSERT_TRUE(info.state == Possession::free);
  TEST_ASSERT_EQUAL(0b111, info.agreeing);
  SoleRedlock<RedlockFencedLock, 3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);
  nodes[0].command("PEXPIRE k 20000");
  TEST_ASSERT_EQUAL(Status::ok, inspect(quorum, Key("k"), info));
  TEST_ASSERT_TRUE(info.state == Possession::held);
  TEST_ASSERT_EQUAL(lock.token().bytes(), info.holder.owner.view());
  TEST_ASSERT_TRUE(info.holder.remaining <= 20s && info.holder.remaining > 5s);
  TEST_ASSERT_TRUE(info.holder.fence >= lock.fence() && lock.fence() != 0);
  TEST_ASSERT_EQUAL(0b111, info.agreeing);
  // A minority says something else.
  nodes[2].command("DEL k");
  nodes[2].command("SET k theirs PX 60000");
  TEST_ASSERT_EQUAL(Status::ok, inspect(quorum, Key("k"), info));
  TEST_ASSERT_TRUE(info.state == Possession::held);
  TEST_ASSERT_EQUAL(0b011, info.agreeing);
  TEST_ASSERT_EQUAL(0b100, info.differing);
  TEST_ASSERT_EQUAL(ByteView("theirs"), info.nodes[2].info.owner.view());
  // A number may be a semaphore: that node is asked once more.
  nodes[2].command("SET k 3");
  TEST_ASSERT_EQUAL(Status::ok, inspect(quorum, Key("k"), info));
  TEST_ASSERT_TRUE(info.nodes[2].info.form == LockForm::mutex && info.differing == 0b100);
  TEST_ASSERT_EQUAL(Status::invalid_argument, inspect(quorum, Key(ByteView("")), info));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_NODES(test_inspect_should_say_unknown_where_the_silent_nodes_may_decide, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  await_voters(quorum, 0b111);
  nodes[0].command("SET k ours PX 60000");
  QuorumInfo info;
  nodes[1].stop();
  TEST_ASSERT_EQUAL(Status::no_quorum, inspect(quorum, Key("k"), info));
  TEST_ASSERT_TRUE(info.state == Possession::unknown);
  TEST_ASSERT_EQUAL(0b010, info.silent);
  TEST_ASSERT_EQUAL(0b101, info.differing);
  TEST_ASSERT_TRUE(info.nodes[1].status != Status::ok);
  nodes[2].command("SET k ours PX 60000");
  TEST_ASSERT_EQUAL(Status::ok, inspect(quorum, Key("k"), info));
  TEST_ASSERT_TRUE(info.state == Possession::held && info.agreeing == 0b101);
  nodes[2].pause();
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::no_quorum, inspect(quorum, Key("k"), info));
  TEST_ASSERT_TRUE(Client::now() - begin < patience);
  nodes[2].resume();
  TEST_ASSERT_EQUAL(0b110, info.silent);
  TEST_ASSERT_EQUAL(Status::timed_out, info.nodes[2].status);
}

TEST_ON_NODES(test_forced_release_should_be_told_by_node_and_by_majority, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  await_voters(quorum, 0b111);
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);
  nodes[2].command("DEL k");
  QuorumRelease release;
  TEST_ASSERT_EQUAL(Status::ok, force_release(quorum, Key("k"), release));
  TEST_ASSERT_EQUAL(0b011, release.released);
  TEST_ASSERT_EQUAL(0b100, release.free);
  TEST_ASSERT_TRUE(nodes.all("EXISTS k", "0"));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  // What is no lock is left alone.
  for (std::size_t node = 0; node < 2; ++node) nodes[node].command("RPUSH k list");
  TEST_ASSERT_EQUAL(Status::no_quorum, force_release(quorum, Key("k"), release));
  TEST_ASSERT_EQUAL(0b011, release.refused);
  TEST_ASSERT_EQUAL(Status::wrong_type, release.nodes[0]);
  TEST_ASSERT_EQUAL(0b100, release.free);
  TEST_ASSERT_EQUAL("1", nodes[0].command("EXISTS k"));
  for (std::size_t node = 0; node < 2; ++node) nodes[node].command("DEL k");
  // Without an answer it may have been done.
  for (std::size_t node = 0; node < 2; ++node) nodes[node].pause();
  TEST_ASSERT_EQUAL(Status::outcome_unknown, force_release(quorum, Key("k"), release));
  for (std::size_t node = 0; node < 2; ++node) nodes[node].resume();
  TEST_ASSERT_EQUAL(0b011, release.unknown);
  TEST_ASSERT_EQUAL(Status::timed_out, release.nodes[0]);
}

// What was known by then, and done, stands.
TEST_ON_NODES(test_cancelled_inspection_should_tell_what_is_known_and_a_cancelled_release_what_was_done, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  await_voters(quorum, 0b111);
  nodes[2].command("SET k ours PX 60000");
  for (std::size_t node = 0; node < 2; ++node) nodes[node].pause();
  const auto cancelled_once = [&](auto&& asked) {
    return std::thread([&quorum, asked] {
      if (comes(asked)) quorum.cancel();
    });
  };
  QuorumInfo info;
  Status inspected = Status::ok;
  // On a busy machine the cancel may come when the node has answered and nobody has read that: nothing is known then.
  for (int round = 0; round < 20; ++round) {
    const long before = nodes[2].calls("eval");
    std::thread first = cancelled_once([&] { return nodes[2].calls("eval") > before; });
    inspected = inspect(quorum, Key("k"), info);
    first.join();
    if (info.silent != 0b111) break;
  }
  QuorumRelease release;
  std::thread second = cancelled_once([&] { return nodes[2].command("EXISTS k") == "0"; });
  const Status released = force_release(quorum, Key("k"), release);
  second.join();
  for (std::size_t node = 0; node < 2; ++node) nodes[node].resume();
  TEST_ASSERT_EQUAL(Status::cancelled, inspected);
  TEST_ASSERT_EQUAL(0b011, info.silent);
  TEST_ASSERT_EQUAL(0b100, info.differing);
  TEST_ASSERT_EQUAL(Status::cancelled, info.nodes[0].status);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, released);
  TEST_ASSERT_EQUAL(0b011, release.unknown);
  TEST_ASSERT_EQUAL(0b100, release.released);
  TEST_ASSERT_EQUAL(Status::cancelled, release.nodes[0]);
  TEST_ASSERT_EQUAL(Status::ok, inspect(quorum, Key("k"), info));  // The cancel was taken.
}
