// SPDX-License-Identifier: MIT
//
// Redlocks on an Asio loop and quorums of real servers: what is granted, kept, told and left behind, and what a node in
// trouble costs.
#include <sys/wait.h>
#include <unistd.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/use_future.hpp>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "counted_sends.hpp"
#include "heap_trap.hpp"
#include "holdfast/asio.hpp"
#include "live_fixture.hpp"
#include "live_nodes.hpp"
#include "name_buffer.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

// Nothing ends by itself while a test looks.
constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 12s};
// Far above what any wake takes, far below what a waiter sleeps if nobody wakes it.
constexpr Duration soon = 8s;

template <template <std::size_t> class Lock, std::size_t node_count>
using SoleAsync = SoleOf<AsyncQuorumOwnerOf<node_count, 1>, Lock<node_count>>;

// One handler, and what it was called with.
class Outcome {
 public:
  [[nodiscard]] auto handler() {
    TEST_ASSERT_FALSE(waiting_);
    waiting_ = true;
    done_ = false;
    return [this](const std::error_code& error) {
      TEST_ASSERT_TRUE(waiting_);  // Once.
      waiting_ = false;
      done_ = true;
      status_ = to_status(error);
    };
  }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Status status() const { return status_; }

 private:
  bool waiting_ = false;
  bool done_ = false;
  Status status_ = Status::ok;
};

// One loop and a quorum on it.
class Side {
 public:
  explicit Side(std::vector<ClientConfig> configs, const QuorumConfig& config = unguarded)
      : configs_(std::move(configs)), config_(config) {
    quorum.emplace(loop.get_executor(), configs_.size());
  }

  // Runs the loop until then. False when it has not come true.
  template <class Condition>
  [[nodiscard]] bool comes(Condition&& condition, Duration limit = patience) {
    for (const Instant until = Client::now() + limit; !condition();) {
      if (Client::now() >= until) return false;
      if (loop.stopped()) loop.restart();
      (void)loop.run_one_for(5ms);
    }
    return true;
  }
  Status wait(const Outcome& outcome) {
    TEST_ASSERT_TRUE(comes([&] { return outcome.done(); }, 4 * patience));
    return outcome.status();
  }
  Status connect() {
    Outcome outcome;
    quorum->async_connect(configs_.data(), configs_.size(), config_, outcome.handler());
    return wait(outcome);
  }
  Status acquire(AsyncQuorumLock& lock, Duration limit = Duration::zero()) {
    Outcome outcome;
    lock.async_acquire(limit, outcome.handler());
    return wait(outcome);
  }
  Status renew(AsyncQuorumLock& lock) {
    Outcome outcome;
    lock.async_renew(outcome.handler());
    return wait(outcome);
  }
  Status release(AsyncQuorumLock& lock) {
    Outcome outcome;
    lock.async_release(outcome.handler());
    return wait(outcome);
  }

  asio::io_context loop;
  std::optional<AsyncQuorum> quorum;

 private:
  std::vector<ClientConfig> configs_;
  QuorumConfig config_;
};

// Connected.
class ReadySide : public Side {
 public:
  explicit ReadySide(std::vector<ClientConfig> configs, const QuorumConfig& config = unguarded)
      : Side(std::move(configs), config) {
    TEST_ASSERT_EQUAL(Status::ok, connect());
  }
};

void await_everywhere(Side& side, const LiveNodes& nodes) {
  TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("EXISTS k", "1"); }));
}

void await_nothing_left(Side& side, const LiveNodes& nodes) {
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->compensations_pending() == 0 && nodes.all("EXISTS k", "0"); }));
}

// Every address with this connect timeout.
std::vector<ClientConfig> brisk(std::vector<ClientConfig> configs, Duration connect_timeout = 500ms) {
  for (ClientConfig& config : configs) config.connect_timeout = connect_timeout;
  return configs;
}

struct Telling {
  int lost = 0;
  int at_risk = 0;
  [[nodiscard]] KeepOptions options(Keep keep) {
    return {.keep = keep,
            .on_at_risk = [](void* context) noexcept { ++static_cast<Telling*>(context)->at_risk; },
            .on_lost = [](void* context) noexcept { ++static_cast<Telling*>(context)->lost; },
            .context = this};
  }
};

const std::string channel = "redisson_lock__channel:{k}";

bool subscribed(const RedisServer& server) { return server.command("PUBSUB NUMSUB " + channel) == channel + " 1"; }

}  // namespace

// ---- Who holds it ------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_inquiry_should_name_the_holder_by_a_majority_and_take_its_lock_away, 3) {
  ReadySide side(brisk(nodes.configs()));
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  AsyncQuorumInquiry inquiry(*side.quorum, "k");
  QuorumInfo info;
  QuorumRelease release;
  Outcome outcome;
  inquiry.async_inspect(info, outcome.handler());
  TEST_ASSERT_EQUAL(Status::ok, side.wait(outcome));
  TEST_ASSERT_TRUE(info.state == Possession::free && info.agreeing == 0b111);
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  await_everywhere(side, nodes);
  nodes[2].command("SET k 17 PX 60000");  // It may be a semaphore: that node is asked once more.
  Outcome refused;
  inquiry.async_inspect(info, outcome.handler());
  inquiry.async_inspect(info, refused.handler());  // One at a time.
  TEST_ASSERT_EQUAL(Status::too_many_requests, side.wait(refused));
  TEST_ASSERT_EQUAL(Status::ok, side.wait(outcome));
  TEST_ASSERT_TRUE(info.state == Possession::held);
  TEST_ASSERT_EQUAL(lock.token().bytes(), info.holder.owner.view());
  TEST_ASSERT_EQUAL(0b011, info.agreeing);
  TEST_ASSERT_EQUAL(0b100, info.differing);
  inquiry.async_force_release(release, outcome.handler());
  TEST_ASSERT_EQUAL(Status::ok, side.wait(outcome));
  TEST_ASSERT_EQUAL(0b111, release.released);
  TEST_ASSERT_TRUE(nodes.all("EXISTS k", "0"));
  TEST_ASSERT_EQUAL(Status::lock_lost, side.renew(lock));
}

TEST_ON_NODES(test_inquiry_should_say_what_silent_nodes_leave_unknown, 3) {
  std::vector<ClientConfig> configs = brisk(nodes.configs());
  for (ClientConfig& config : configs) config.request_timeout = 500ms;
  ReadySide side(configs);
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  AsyncQuorumInquiry inquiry(*side.quorum, "k");
  AsyncQuorumInquiry wrong(*side.quorum, ByteView(""));
  QuorumInfo info;
  QuorumRelease release;
  Outcome outcome;
  wrong.async_inspect(info, outcome.handler());
  TEST_ASSERT_EQUAL(Status::invalid_argument, side.wait(outcome));
  for (std::size_t node = 0; node < 2; ++node) nodes[node].pause();
  inquiry.async_inspect(info, outcome.handler());
  TEST_ASSERT_EQUAL(Status::no_quorum, side.wait(outcome));
  TEST_ASSERT_TRUE(info.state == Possession::unknown && info.silent == 0b011);
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  inquiry.async_force_release(release, outcome.handler());
  TEST_ASSERT_EQUAL(Status::outcome_unknown, side.wait(outcome));
  TEST_ASSERT_EQUAL(0b011, release.unknown);
  TEST_ASSERT_EQUAL(0b100, release.free);
  // What was known by then, and done, stands.
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  inquiry.async_inspect(info, outcome.handler());
  TEST_ASSERT_TRUE(side.comes([&] { return info.nodes[2].status == Status::ok; }));
  inquiry.cancel();
  TEST_ASSERT_EQUAL(Status::cancelled, side.wait(outcome));
  TEST_ASSERT_EQUAL(0b011, info.silent);
  TEST_ASSERT_EQUAL(0b100, info.differing);
  inquiry.async_force_release(release, outcome.handler());
  TEST_ASSERT_TRUE(side.comes([&] { return release.free == 0b100; }));
  inquiry.cancel();
  TEST_ASSERT_EQUAL(Status::outcome_unknown, side.wait(outcome));
  TEST_ASSERT_EQUAL(0b011, release.unknown);
  inquiry.async_inspect(info, outcome.handler());
  inquiry.cancel();
  TEST_ASSERT_EQUAL(Status::cancelled, side.wait(outcome));
  TEST_ASSERT_EQUAL(0b111, info.silent);
  {
    AsyncQuorumInquiry gone(*side.quorum, "k");
    gone.async_inspect(info, outcome.handler());
    for (int turn = 0; turn < 3; ++turn) (void)side.loop.run_one_for(5ms);
  }
  TEST_ASSERT_EQUAL(Status::cancelled, side.wait(outcome));
  for (std::size_t node = 0; node < 2; ++node) nodes[node].resume();
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  inquiry.async_inspect(info, outcome.handler());
  TEST_ASSERT_EQUAL(Status::ok, side.wait(outcome));
  TEST_ASSERT_TRUE(info.state == Possession::free);
}

// ---- One holder --------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_a_name_in_an_array_should_be_the_same_redlock_whatever_follows_its_nul, 3) {
  ReadySide first(nodes.configs());
  ReadySide second(nodes.configs());
  NameBuffer ours("k", 'x');
  NameBuffer theirs("k", '\0');
  const char* const missing = nullptr;
  AsyncRedlockMutex<3> mine(*first.quorum, ours.name, calm);
  AsyncRedlockMutex<3> same(*second.quorum, theirs.name, calm);
  SoleAsync<AsyncRedlockReentrantLock, 3> my_reentrant(*first.quorum, ours.name, calm);
  SoleAsync<AsyncRedlockReentrantLock, 3> their_reentrant(*second.quorum, std::string(theirs.name), calm);
  AsyncRedlockMutex<3> nameless(*second.quorum, missing, calm);
  TEST_ASSERT_EQUAL(Status::ok, first.acquire(mine));
  await_everywhere(first, nodes);
  TEST_ASSERT_EQUAL(Status::lock_busy, second.acquire(same));
  TEST_ASSERT_EQUAL(Status::invalid_argument, second.acquire(nameless));
  TEST_ASSERT_EQUAL(Status::ok, first.release(mine));
  await_nothing_left(first, nodes);
  TEST_ASSERT_EQUAL(Status::ok, first.acquire(my_reentrant));
  TEST_ASSERT_EQUAL(Status::lock_busy, second.acquire(their_reentrant));
  TEST_ASSERT_EQUAL(Status::ok, first.release(my_reentrant));
}

TEST_ON_NODES(test_hold_should_be_on_every_node_and_its_release_should_leave_none, 3) {
  Side side(nodes.configs());
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.configuration());
  TEST_ASSERT_EQUAL(Status::not_connected, side.acquire(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.connect());
  TEST_ASSERT_TRUE(side.quorum->connected());
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  TEST_ASSERT_EQUAL(Status::not_held, side.release(lock));
  TEST_ASSERT_EQUAL(Status::not_held, side.renew(lock));
  const Instant before = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  const Instant after = Client::now();
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_FALSE(lock.at_risk());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_TRUE(lock.valid_until() >= before + 60s - drift_of(60s));
  TEST_ASSERT_TRUE(lock.valid_until() <= after + 60s - drift_of(60s));
  const std::string token = text_of(lock.token().bytes());
  await_everywhere(side, nodes);
  TEST_ASSERT_TRUE(nodes.all("GET k", token));
  TEST_ASSERT_TRUE(side.comes([&] { return lock.held_on(0) && lock.held_on(1) && lock.held_on(2); }));
  TEST_ASSERT_EQUAL(Status::already_held, side.acquire(lock));
  TEST_ASSERT_TRUE(lock.held());
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("PEXPIRE k 20000");
  const Instant until = lock.valid_until();
  TEST_ASSERT_EQUAL(Status::ok, side.renew(lock));
  TEST_ASSERT_TRUE(lock.valid_until() > until);
  TEST_ASSERT_TRUE(side.comes([&] {
    for (std::size_t node = 0; node < 3; ++node)
      if (std::stol(nodes[node].command("PTTL k")) <= 20000) return false;
    return true;
  }));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Instant(), lock.valid_until());
  TEST_ASSERT_EQUAL(Status::not_held, side.release(lock));
  await_nothing_left(side, nodes);
  TEST_ASSERT_TRUE(nodes.all("DBSIZE", "0"));
}

// [rule 17] The first answer that is read after the deadline does not end the call: the others lie in their sockets.
TEST_ON_NODES(test_answers_that_came_in_time_should_count_where_the_loop_was_late, 3) {
  constexpr Duration timeout = 300ms;
  std::vector<ClientConfig> configs = nodes.configs();
  for (ClientConfig& config : configs) config.request_timeout = timeout;
  ReadySide side(configs);
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 60s});
  const auto shorten = [&] {  // So that a renewal has something to write.
    for (std::size_t node = 0; node < 3; ++node) nodes[node].command("PEXPIRE k 50000");
  };
  const auto lengthened = [&] {
    bool all = true;
    for (std::size_t node = 0; node < 3; ++node) all = all && std::stol(nodes[node].command("PTTL k")) > 50'000;
    return all;
  };
  const auto released = [&] { return nodes.all("EXISTS k", "0"); };
  const auto begin = [&] {
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
    await_everywhere(side, nodes);
    shorten();
  };
  // From here on each node knows the scripts.
  begin();
  Outcome first;
  lock.async_renew(20s, first.handler());
  TEST_ASSERT_EQUAL(Status::ok, side.wait(first));
  TEST_ASSERT_TRUE(side.comes(lengthened));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  await_nothing_left(side, nodes);
  begin();
  for (const bool releases : {false, true}) {
    for (std::size_t node = 0; node < 3; ++node) nodes[node].pause();
    Outcome outcome;
    if (releases)
      lock.async_release(outcome.handler());
    else
      lock.async_renew(outcome.handler());
    const Instant asked = Client::now();
    while (side.loop.poll() != 0) {}
    for (std::size_t node = 0; node < 3; ++node) nodes[node].resume();
    // The loop stands still until all of them have answered, and the time of the call is over.
    TEST_ASSERT_TRUE(releases ? comes(released) : comes(lengthened));
    while (Client::now() < asked + timeout + 10ms) breathe(10ms);
    TEST_ASSERT_EQUAL(Status::ok, side.wait(outcome));
  }
}

TEST_ON_NODES(test_five_nodes_should_bear_two_dead_ones_and_no_third, 5) {
  ReadySide side(brisk(nodes.configs()));
  TEST_ASSERT_EQUAL(std::size_t{3}, side.quorum->majority());
  AsyncRedlockMutex<5> lock(*side.quorum, "k", calm, {.fence = true});
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  const std::uint64_t fence = lock.fence();
  TEST_ASSERT_TRUE(fence > 0);
  nodes[1].stop();
  nodes[4].stop();
  TEST_ASSERT_EQUAL(Status::ok, side.renew(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  TEST_ASSERT_TRUE(lock.fence() > fence);
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  nodes[2].stop();
  TEST_ASSERT_TRUE(side.comes([&] { return side.acquire(lock) == Status::no_quorum; }));
  const std::string text = text_of(side.quorum->error_text());
  for (const char* name : {"node 2 (", "node 3 (", "node 5 ("}) TEST_ASSERT_TRUE(contains(ByteView(text), name));
  TEST_ASSERT_TRUE(side.comes([&] { return nodes[0].command("EXISTS k") == "0"; }));
  nodes[2].start();
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 30s));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
}

TEST_ON_NODES(test_reentrant_lock_should_count_here_and_be_one_hold_there, 3) {
  ReadySide side(nodes.configs());
  ReadySide rival(nodes.configs());
  SoleAsync<AsyncRedlockReentrantLock, 3> lock(*side.quorum, "k", calm);
  SoleAsync<AsyncRedlockReentrantLock, 3> other(*rival.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  const std::string token = text_of(lock.token().bytes());
  await_everywhere(side, nodes);
  const Instant until = lock.valid_until();
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 5s));
  TEST_ASSERT_EQUAL(3U, lock.hold_count());
  TEST_ASSERT_TRUE(lock.valid_until() > until);
  TEST_ASSERT_TRUE(nodes.all("HGETALL k", token + " 1"));
  TEST_ASSERT_EQUAL(Status::lock_busy, rival.acquire(other));
  // A cancelled re-entry leaves the hold and its count as they were.
  Outcome outcome;
  lock.async_try_acquire(outcome.handler());
  lock.cancel();
  TEST_ASSERT_EQUAL(Status::cancelled, side.wait(outcome));
  TEST_ASSERT_EQUAL(3U, lock.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_TRUE(nodes.all("HGETALL k", token + " 1"));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::not_held, side.release(lock));
  await_nothing_left(side, nodes);
}

// What a handle leaves behind that goes while another one's operation is in progress comes after that, and once.
TEST_ON_NODES(test_handle_that_goes_while_another_waits_should_leave_its_release_to_the_end_of_that, 3) {
  enum class Deed { acquire, renew, release };
  for (const Deed deed : {Deed::acquire, Deed::renew, Deed::release}) {
    ReadySide side(nodes.configs());
    AsyncQuorumOwner<3> owner(*side.quorum);
    std::optional<AsyncRedlockReentrantLock<3>> first(std::in_place, owner, "k", calm);
    AsyncRedlockReentrantLock<3> second(owner, "k", calm);
    for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, side.acquire(*first));
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(second));
    if (deed == Deed::release) TEST_ASSERT_EQUAL(Status::ok, side.release(*first));
    Outcome outcome;
    Outcome refused;
    if (deed == Deed::acquire) second.async_try_acquire(outcome.handler());
    if (deed == Deed::renew) second.async_renew(outcome.handler());
    if (deed == Deed::release) second.async_release(outcome.handler());
    if (deed != Deed::release) {
      first->async_release(refused.handler());  // A hold has one operation at a time.
      TEST_ASSERT_EQUAL(Status::too_many_requests, side.wait(refused));
    }
    first.reset();
    TEST_ASSERT_EQUAL(Status::ok, side.wait(outcome));
    const unsigned left = deed == Deed::acquire ? 2U : deed == Deed::renew ? 1U : 0U;
    TEST_ASSERT_EQUAL(left, second.hold_count());
    for (unsigned turn = left; turn != 0; --turn) TEST_ASSERT_EQUAL(Status::ok, side.release(second));
    await_nothing_left(side, nodes);
  }
}

// Its own operation ends with it, whether the lock is held or not.
TEST_ON_NODES(test_handle_that_goes_while_it_acquires_should_leave_the_others_theirs, 3) {
  ReadySide side(nodes.configs());
  AsyncQuorumOwner<3> owner(*side.quorum);
  for (const bool held : {false, true}) {
    std::optional<AsyncRedlockReentrantLock<3>> first(std::in_place, owner, "k", calm);
    AsyncRedlockReentrantLock<3> second(owner, "k", {.lease = 50s, .node_timeout = 12s});
    if (held) TEST_ASSERT_EQUAL(Status::ok, side.acquire(second));
    Outcome outcome;
    first->async_try_acquire(outcome.handler());
    first.reset();
    TEST_ASSERT_EQUAL(Status::cancelled, side.wait(outcome));
    TEST_ASSERT_EQUAL(held ? 1U : 0U, second.hold_count());
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(second, 20s));  // By the timing of who is left.
    TEST_ASSERT_EQUAL(held ? 2U : 1U, second.hold_count());
    while (second.hold_count() != 0) TEST_ASSERT_EQUAL(Status::ok, side.release(second));
    await_nothing_left(side, nodes);
  }
}

// A hold that a majority has lost is unwound before it can be had again.
TEST_ON_NODES(test_lost_reentrant_hold_should_be_unwound_before_it_is_acquired_anew, 3) {
  ReadySide side(nodes.configs());
  SoleAsync<AsyncRedlockReentrantLock, 3> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  await_everywhere(side, nodes);
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, side.renew(lock));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, side.acquire(lock));
  TEST_ASSERT_EQUAL(Status::lock_lost, side.release(lock));
  TEST_ASSERT_EQUAL(Status::lock_lost, side.acquire(lock, 5s));
  TEST_ASSERT_EQUAL(Status::lock_lost, side.release(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
}

TEST_ON_NODES(test_many_locks_should_share_few_places_and_each_be_granted_and_released, 3) {
  Side side(nodes.configs());
  constexpr std::size_t many = 200;
  side.quorum.emplace(side.loop.get_executor(), 3U, AsyncQuorumLimits{.requests = 32});
  TEST_ASSERT_EQUAL(Status::ok, side.connect());
  std::vector<std::unique_ptr<AsyncRedlockMutex<3>>> locks;
  std::vector<std::unique_ptr<Outcome>> outcomes;
  for (std::size_t index = 0; index < many; ++index) {
    const std::string key = "k" + std::to_string(index);
    locks.push_back(std::make_unique<AsyncRedlockMutex<3>>(*side.quorum, ByteView(key), calm));
    outcomes.push_back(std::make_unique<Outcome>());
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t index = 0; index < many; ++index) locks[index]->async_acquire(30s, outcomes[index]->handler());
    for (std::size_t index = 0; index < many; ++index) TEST_ASSERT_EQUAL(Status::ok, side.wait(*outcomes[index]));
    TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("DBSIZE", std::to_string(many)); }));
    for (std::size_t index = 0; index < many; ++index) locks[index]->async_release(outcomes[index]->handler());
    for (std::size_t index = 0; index < many; ++index) TEST_ASSERT_FALSE(locks[index]->held());
    for (std::size_t index = 0; index < many; ++index) TEST_ASSERT_EQUAL(Status::ok, side.wait(*outcomes[index]));
    TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("DBSIZE", "0"); }));
  }
}

// A server that answers a connection which is closed by then drops what it has not read: all of it leaves in one send.
TEST_ON_NODES(test_a_quorum_that_goes_before_its_locks_should_let_go_of_them, 3) {
  Side side(nodes.configs());
  TEST_ASSERT_EQUAL(Status::ok, side.connect());
  AsyncRedlockMutex<3> once(*side.quorum, "once", calm);
  SoleAsync<AsyncRedlockReentrantLock, 3> twice(*side.quorum, "twice", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(once));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(twice));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(twice));
  TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("DBSIZE", "2"); }));
  TEST_ASSERT_EQUAL(3, sends_of([&] { side.quorum.reset(); }));
  TEST_ASSERT_FALSE(once.held());
  TEST_ASSERT_FALSE(twice.held());
  TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("DBSIZE", "0"); }));
}

// Renewals that are due together wait for each other, and none of them is a doubt.
TEST_ON_NODES(test_many_kept_holds_should_share_few_places_and_none_be_at_risk, 3) {
  Side side(nodes.configs());
  constexpr std::size_t many = 150;
  side.quorum.emplace(side.loop.get_executor(), 3U, AsyncQuorumLimits{.requests = 32});
  TEST_ASSERT_EQUAL(Status::ok, side.connect());
  Telling telling;
  std::vector<std::unique_ptr<AsyncRedlockMutex<3>>> locks;
  std::vector<std::unique_ptr<Outcome>> outcomes;
  for (std::size_t index = 0; index < many; ++index) {
    const std::string key = "k" + std::to_string(index);
    locks.push_back(std::make_unique<AsyncRedlockMutex<3>>(*side.quorum, ByteView(key),
                                                           QuorumTiming{.lease = 6s, .node_timeout = 4s}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->keep(telling.options(Keep::always)));
    outcomes.push_back(std::make_unique<Outcome>());
    locks.back()->async_acquire(30s, outcomes.back()->handler());
  }
  for (std::size_t index = 0; index < many; ++index) TEST_ASSERT_EQUAL(Status::ok, side.wait(*outcomes[index]));
  const Instant first = locks.front()->valid_until();
  // Each of them twice: past the end of the first lease.
  TEST_ASSERT_TRUE(side.comes([&] { return Client::now() > first; }));
  for (const auto& lock : locks) TEST_ASSERT_TRUE(lock->held());
  TEST_ASSERT_EQUAL(0, telling.at_risk);
  TEST_ASSERT_EQUAL(0, telling.lost);
  locks.clear();
  side.quorum.reset();
}

TEST_ON_NODES(test_lock_should_be_usable_from_any_thread, 3) {
  Side side(nodes.configs());
  side.quorum.emplace(asio::make_strand(side.loop), 3U);
  auto work = asio::make_work_guard(side.loop);
  std::vector<std::thread> threads;
  for (int count = 0; count < 2; ++count) threads.emplace_back([&] { side.loop.run(); });
  const std::vector<ClientConfig> configs = nodes.configs();
  std::promise<Status> connected;
  asio::dispatch(side.quorum->get_executor(), [&] {
    side.quorum->async_connect(configs.data(), 3, unguarded,
                               [&](const std::error_code& error) { connected.set_value(to_status(error)); });
  });
  TEST_ASSERT_EQUAL(Status::ok, connected.get_future().get());
  {
    AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
    for (int turn = 0; turn < 20; ++turn) {
      on_any_thread(lock).async_acquire(20s, asio::use_future).get();
      TEST_ASSERT_TRUE(lock.held());
      TEST_ASSERT_TRUE(lock.remaining() > 10s);
      on_any_thread(lock).async_renew(asio::use_future).get();
      on_any_thread(lock).async_release(asio::use_future).get();
      TEST_ASSERT_FALSE(lock.held());
    }
    asio::dispatch(side.quorum->get_executor(), [&] { side.quorum->close(); });
    work.reset();
    for (std::thread& thread : threads) thread.join();
  }
}

// ---- Between two clients -----------------------------------------------------------------------------------------

TEST_ON_NODES(test_it_should_exclude_the_blocking_client_both_ways, 3) {
  ReadySide side(nodes.configs());
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  AsyncRedlockMutex<3> ours(*side.quorum, "k", calm);
  RedlockMutex<3> theirs(quorum, "k", calm);
  for (int turn = 0; turn < 3; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(ours, 20s));
    await_everywhere(side, nodes);
    TEST_ASSERT_EQUAL(Status::lock_busy, theirs.try_acquire());
    TEST_ASSERT_TRUE(ours.held());
    TEST_ASSERT_EQUAL(Status::ok, side.release(ours));
    await_nothing_left(side, nodes);
    TEST_ASSERT_EQUAL(Status::ok, theirs.acquire(20s));
    await_everywhere(nodes, theirs);
    TEST_ASSERT_EQUAL(Status::lock_busy, side.acquire(ours));
    TEST_ASSERT_TRUE(contains(side.quorum->error_text(), "lock_busy"));
    TEST_ASSERT_EQUAL(Status::lock_busy, side.acquire(ours, 50ms));
    TEST_ASSERT_FALSE(ours.held());
    TEST_ASSERT_EQUAL(Status::ok, theirs.release());
    TEST_ASSERT_TRUE(side.comes([&] {  // The releases of all nodes come in a moment after that of a majority.
      (void)quorum.tend();
      return quorum.compensations_pending() == 0 && nodes.all("EXISTS k", "0");
    }));
  }
}

// Both want it all the time, and never have it together.
TEST_ON_NODES(test_contention_with_the_blocking_client_should_lose_no_update, 3) {
  ReadySide side(nodes.configs());
  constexpr int turns = 20;
  int counter = 0;
  std::thread rival([&] {
    Quorum<3> quorum;
    const Status connected = connect(quorum, nodes.configs());
    RedlockMutex<3> lock(quorum, "k", calm, {.announce = true});
    for (int turn = 0; connected == Status::ok && turn < turns; ++turn) {
      if (lock.acquire(60s) != Status::ok) continue;
      const int seen = counter;
      std::this_thread::yield();
      counter = seen + 1;
      (void)lock.release();
    }
  });
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm, {.announce = true});
  int granted = 0;
  for (int turn = 0; turn < turns; ++turn) {
    if (side.acquire(lock, 60s) != Status::ok) continue;
    ++granted;
    const int seen = counter;
    std::this_thread::yield();
    counter = seen + 1;
    (void)side.release(lock);
  }
  rival.join();
  TEST_ASSERT_EQUAL(turns, granted);
  TEST_ASSERT_EQUAL(2 * turns, counter);
}

TEST_ON_NODES(test_release_should_wake_the_waiter_and_leave_no_subscription, 3) {
  ReadySide side(nodes.configs());
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  SoleRedlock<RedlockReentrantLock, 3> holder(quorum, "k", calm);
  SoleAsync<AsyncRedlockReentrantLock, 3> waiter(*side.quorum, "k", calm);
  for (int turn = 0; turn < 3; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, holder.acquire(20s));
    await_everywhere(nodes, holder);
    Outcome outcome;
    waiter.async_acquire(60s, outcome.handler());
    for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_TRUE(side.comes([&] { return subscribed(nodes[node]); }));
    TEST_ASSERT_FALSE(outcome.done());
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, holder.release());
    TEST_ASSERT_EQUAL(Status::ok, side.wait(outcome));
    TEST_ASSERT_TRUE(Client::now() - released < soon);
    TEST_ASSERT_TRUE(waiter.held());
    TEST_ASSERT_EQUAL(Status::ok, side.release(waiter));
    await_nothing_left(side, nodes);
    TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("PUBSUB CHANNELS", ""); }));
  }
}

TEST_ON_NODES(test_waiter_should_be_woken_with_one_node_stopped, 3) {
  for (std::size_t stopped = 0; stopped < 3; ++stopped) {
    ReadySide holding(nodes.configs());
    ReadySide waiting(nodes.configs());
    AsyncRedlockMutex<3> ours(*holding.quorum, "k", calm, {.announce = true});
    // Where a release has reached one node and not the other yet, a try waits for the stopped one.
    AsyncRedlockMutex<3> theirs(*waiting.quorum, "k", {.lease = 60s, .node_timeout = 500ms}, {.announce = true});
    TEST_ASSERT_EQUAL(Status::ok, holding.acquire(ours, 20s));
    await_everywhere(holding, nodes);
    Outcome outcome;
    theirs.async_acquire(60s, outcome.handler());
    for (std::size_t node = 0; node < 3; ++node)
      TEST_ASSERT_TRUE(waiting.comes([&] { return subscribed(nodes[node]); }));
    nodes[stopped].pause();
    const Instant released = Client::now();
    const Status status = holding.release(ours);
    const bool woken = waiting.comes([&] { return outcome.done(); }, soon);
    const Status let_go = woken ? waiting.release(theirs) : Status::ok;
    nodes[stopped].resume();
    TEST_ASSERT_EQUAL(Status::ok, status);
    TEST_ASSERT_TRUE(woken);
    TEST_ASSERT_EQUAL(Status::ok, outcome.status());
    TEST_ASSERT_TRUE(Client::now() - released < soon);
    TEST_ASSERT_EQUAL(Status::ok, let_go);
    await_nothing_left(holding, nodes);
    await_nothing_left(waiting, nodes);
  }
}

TEST_ON_NODES(test_waiter_that_may_subscribe_nowhere_should_poll, 3) {
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("ACL SETUSER default -subscribe");
  ReadySide side(nodes.configs());
  ReadySide rival(nodes.configs());
  SoleAsync<AsyncRedlockReentrantLock, 3> ours(*side.quorum, "k", calm);
  SoleAsync<AsyncRedlockReentrantLock, 3> theirs(*rival.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(ours));
  await_everywhere(side, nodes);
  Outcome outcome;
  theirs.async_acquire(60s, outcome.handler());
  const auto tries = [&] { return nodes[0].calls("evalsha") + nodes[0].calls("eval"); };
  const long before = tries();
  TEST_ASSERT_TRUE(rival.comes([&] { return tries() > before + 3; }));
  TEST_ASSERT_EQUAL(Status::ok, side.release(ours));
  TEST_ASSERT_EQUAL(Status::ok, rival.wait(outcome));
  TEST_ASSERT_EQUAL(Status::ok, rival.release(theirs));
}

// The releases reach the nodes one after the other: whoever is woken by the first must not sleep over the others.
TEST_ON_NODES(test_release_that_comes_node_by_node_should_not_be_slept_over, 3) {
  Proxy second(nodes[1].socket_path() + ".proxy", nodes[1].socket_path());
  Proxy third(nodes[2].socket_path() + ".proxy", nodes[2].socket_path());
  ReadySide holding({LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(second.url()),
                     LiveNodes::config_at(third.url())});
  ReadySide waiting(nodes.configs());
  TEST_ASSERT_TRUE(holding.comes([&] { return holding.quorum->voters() == 0b111; }));
  SoleAsync<AsyncRedlockReentrantLock, 3> ours(*holding.quorum, "k", calm);
  SoleAsync<AsyncRedlockReentrantLock, 3> theirs(*waiting.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, holding.acquire(ours));
  await_everywhere(holding, nodes);
  Outcome outcome;
  theirs.async_acquire(60s, outcome.handler());
  for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_TRUE(waiting.comes([&] { return subscribed(nodes[node]); }));
  const auto tries = [&] { return nodes[1].calls("evalsha") + nodes[1].calls("eval"); };
  for (long before = -1, now = 0; before != now; before = now) {  // Through with the try behind the subscription.
    TEST_ASSERT_TRUE(waiting.comes([&] { return true; }));
    for (int turn = 0; turn < 10; ++turn) (void)waiting.loop.run_one_for(5ms);
    now = tries();
  }
  second.hold_requests_of(Proxy::all);
  third.hold_requests_of(Proxy::all);
  const long before = tries();
  TEST_ASSERT_EQUAL(Status::ok, ours.post_release());
  TEST_ASSERT_TRUE(holding.comes([&] { return nodes[0].command("EXISTS k") == "0"; }));
  TEST_ASSERT_TRUE(waiting.comes([&] { return tries() > before; }));  // Woken by the first.
  TEST_ASSERT_FALSE(outcome.done());
  const Instant released = Client::now();
  second.hold_requests_of(Proxy::none);
  const bool woken = waiting.comes([&] { return outcome.done(); }, soon);
  third.hold_requests_of(Proxy::none);
  TEST_ASSERT_TRUE(woken);
  TEST_ASSERT_EQUAL(Status::ok, outcome.status());
  TEST_ASSERT_TRUE(Client::now() - released < soon);
  TEST_ASSERT_EQUAL(Status::ok, waiting.release(theirs));
  await_nothing_left(waiting, nodes);
}

// ---- Nodes in trouble --------------------------------------------------------------------------------------------

TEST_ON_NODES(test_one_dead_or_stopped_node_should_cost_its_vote_and_nothing_else, 3) {
  for (const bool dead : {true, false}) {
    if (dead)
      nodes[1].stop();
    else
      nodes[1].pause();
    Side side(nodes.configs());
    AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
    const Instant start = Client::now();
    const Status connected = side.connect();  // A majority is enough, and the rest is given a moment.
    const Status granted = side.acquire(lock);
    const Status renewed = side.renew(lock);
    const Status released = side.release(lock);
    const Duration took = Client::now() - start;
    const Status status = side.quorum->node_status(1);
    if (dead)
      nodes[1].start();
    else
      nodes[1].resume();
    TEST_ASSERT_EQUAL(Status::ok, connected);
    TEST_ASSERT_EQUAL(Status::ok, granted);
    TEST_ASSERT_EQUAL(Status::ok, renewed);
    TEST_ASSERT_EQUAL(Status::ok, released);
    TEST_ASSERT_TRUE(took < soon);
    TEST_ASSERT_TRUE(status != Status::ok);
    // It comes back by itself, and votes again.
    TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
    await_everywhere(side, nodes);
    // Stopped in between: the renewal and the release do not wait for it.
    nodes[0].pause();
    const Instant paused = Client::now();
    const Status again = side.renew(lock);
    const Status end = side.release(lock);
    const Duration waited = Client::now() - paused;
    nodes[0].resume();
    TEST_ASSERT_EQUAL(Status::ok, again);
    TEST_ASSERT_EQUAL(Status::ok, end);
    TEST_ASSERT_TRUE(waited < soon);
    await_nothing_left(side, nodes);
  }
}

// It refuses to write, has something else under the key, or says what no server says.
TEST_ON_NODES(test_rejecting_or_lying_node_should_cost_its_vote_and_nothing_else, 3) {
  ReadySide side(nodes.configs());
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  SoleAsync<AsyncRedlockFencedLock, 3> lock(*side.quorum, "k", calm);
  const auto pair = [&] {
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
    TEST_ASSERT_EQUAL(Status::ok, side.renew(lock));
    TEST_ASSERT_TRUE(side.comes([&] { return lock.held_on(0) && lock.held_on(2); }));
    TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
    TEST_ASSERT_TRUE(
        side.comes([&] { return nodes[0].command("EXISTS k") == "0" && nodes[2].command("EXISTS k") == "0"; }));
  };
  nodes[1].command("ACL SETUSER default -hincrby -hset");
  pair();
  nodes[1].command("ACL SETUSER default +hincrby +hset");
  nodes[1].command("RPUSH k something");
  pair();
  TEST_ASSERT_EQUAL("1", nodes[1].command("LLEN k"));
  nodes[1].command("DEL k");
  // A fence counter that is no number makes its script fail, or its reply another one than asked for.
  nodes[1].command("SET redisson_lock_token:{k} nonsense");
  pair();
  nodes[1].command("DEL redisson_lock_token:{k} k");
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  pair();
  await_nothing_left(side, nodes);
}

// A full queue of a stopped node keeps nobody waiting for longer than its own deadline, and that once.
TEST_ON_NODES(test_stopped_node_without_room_should_cost_its_vote_and_nothing_else, 3) {
  Side side(nodes.configs());
  side.quorum.emplace(side.loop.get_executor(), 3U, AsyncQuorumLimits{.requests = 32});
  TEST_ASSERT_EQUAL(Status::ok, side.connect());
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 60s, .node_timeout = 500ms});
  nodes[2].pause();
  const Instant start = Client::now();
  Status worst = Status::ok;
  for (int turn = 0; turn < 60; ++turn) {
    if (const Status status = side.acquire(lock, 20s); status != Status::ok) worst = status;
    if (const Status status = side.release(lock); status != Status::ok) worst = status;
  }
  const Duration took = Client::now() - start;
  nodes[2].resume();
  TEST_ASSERT_EQUAL(Status::ok, worst);
  TEST_ASSERT_TRUE(took < soon);
  await_nothing_left(side, nodes);
}

TEST_ON_NODES(test_connect_without_a_majority_should_say_so_and_go_on_connecting, 3) {
  nodes[0].stop();
  nodes[2].stop();
  Side side(brisk(nodes.configs()));
  TEST_ASSERT_EQUAL(Status::no_quorum, side.connect());
  TEST_ASSERT_FALSE(side.quorum->connected());
  TEST_ASSERT_TRUE(contains(side.quorum->error_text(), "node 1 ("));
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::no_quorum, side.acquire(lock));
  nodes[0].start();
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 30s));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
}

TEST_ON_NODES(test_connect_should_name_what_is_wrong_with_its_arguments, 3) {
  Side side(nodes.configs());
  std::vector<ClientConfig> configs = nodes.configs();
  const auto attempt = [&](std::size_t count, const QuorumConfig& config) {
    Outcome outcome;
    side.quorum->async_connect(configs.data(), count, config, outcome.handler());
    TEST_ASSERT_FALSE(outcome.done());  // Never inside of the call that starts it.
    return side.wait(outcome);
  };
  TEST_ASSERT_EQUAL(Status::invalid_argument, attempt(2, unguarded));
  TEST_ASSERT_EQUAL("nodes", std::string(side.quorum->problem().field));
  TEST_ASSERT_EQUAL(Status::invalid_argument, attempt(3, {.max_lease = 1ms}));
  TEST_ASSERT_EQUAL("max_lease", std::string(side.quorum->problem().field));
  configs[1].database = -1;
  TEST_ASSERT_EQUAL(Status::invalid_argument, attempt(3, unguarded));
  TEST_ASSERT_EQUAL("database", std::string(side.quorum->problem().field));
  TEST_ASSERT_EQUAL(std::size_t{1}, side.quorum->problem_node());
  configs[1].database = 0;
  TEST_ASSERT_EQUAL(Status::ok, attempt(3, unguarded));
  TEST_ASSERT_FALSE(side.quorum->problem().found());
  AsyncRedlockMutex<3> longer(*side.quorum, "k", {.lease = 61s});
  TEST_ASSERT_EQUAL(Status::invalid_argument, side.acquire(longer));
  AsyncRedlockMutex<2> fewer(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::invalid_argument, side.acquire(fewer));
}

TEST_ON_NODES(test_connect_should_take_urls_and_name_the_one_that_is_none, 2) {
  Side side(nodes.configs());
  const std::string first = nodes[0].unix_url();
  const std::string second = nodes[1].tcp_url();
  const auto attempt = [&](const std::string& other) {
    const ByteView urls[] = {ByteView(first), ByteView(other)};
    Outcome outcome;
    side.quorum->async_connect(urls, 2, unguarded, outcome.handler());
    return side.wait(outcome);
  };
  TEST_ASSERT_EQUAL(Status::invalid_argument, attempt("http://somewhere"));
  TEST_ASSERT_EQUAL("url", std::string(side.quorum->problem().field));
  TEST_ASSERT_EQUAL(std::size_t{1}, side.quorum->problem_node());
  TEST_ASSERT_EQUAL(Status::ok, attempt(second));
  AsyncRedlockMutex<2> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::invalid_argument, side.acquire(lock, Duration(-1)));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  await_everywhere(side, nodes);
  // Connected anew: the hold stays, and is renewed over the next connections.
  TEST_ASSERT_EQUAL(Status::ok, attempt(second));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, side.renew(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  // A connect that is not waited for any more.
  Outcome outcome;
  const ByteView urls[] = {ByteView(first), ByteView(second)};
  side.quorum->async_connect(urls, 2, unguarded, outcome.handler());
  Outcome again;
  side.quorum->async_connect(urls, 2, unguarded, again.handler());
  side.quorum->cancel();
  TEST_ASSERT_EQUAL(Status::cancelled, side.wait(outcome));
  TEST_ASSERT_EQUAL(Status::already_held, side.wait(again));
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->connected(); }));
}

TEST_ON_NODES(test_server_that_is_given_twice_should_be_refused, 2) {
  std::vector<ClientConfig> configs = {LiveNodes::config_at(nodes[0].unix_url()),
                                       LiveNodes::config_at(nodes[1].unix_url()),
                                       LiveNodes::config_at(nodes[0].tcp_url())};
  Side side(configs);
  TEST_ASSERT_EQUAL(Status::same_machine, side.connect());
  TEST_ASSERT_TRUE(contains(side.quorum->error_text(), "is the same machine as node"));
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::same_machine, side.acquire(lock));
  TEST_ASSERT_EQUAL(0, nodes[0].calls("set"));
}

// Of a hold that is kept, the second of two that are one has no vote: what it confirms does not make a majority.
TEST_ON_NODES(test_node_that_moves_to_the_machine_of_another_should_not_vote_twice, 3) {
  const std::string path = nodes[1].socket_path() + ".moving";
  auto second = std::make_unique<Proxy>(path, nodes[1].socket_path());
  std::vector<ClientConfig> configs = {LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(second->url()),
                                       LiveNodes::config_at(nodes[2].unix_url())};
  configs[2].request_timeout = 500ms;
  ReadySide side(configs);
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 60s, .node_timeout = 500ms});
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  await_everywhere(side, nodes);
  TEST_ASSERT_TRUE(side.comes([&] { return lock.held_on(0) && lock.held_on(1) && lock.held_on(2); }));
  nodes[2].stop();
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->node_status(2) != Status::ok; }));
  // The second node's address leads to the first from now on.
  second.reset();
  second = std::make_unique<Proxy>(path, nodes[0].socket_path());
  TEST_ASSERT_TRUE(side.comes([&] {
    return side.quorum->node_status(1) == Status::same_machine || side.quorum->node_status(0) == Status::same_machine;
  }));
  TEST_ASSERT_FALSE(lock.held_on(0) && lock.held_on(1));
  const Instant until = lock.valid_until();
  const Status status = side.renew(lock);
  TEST_ASSERT_TRUE(status == Status::no_quorum || status == Status::lock_lost);
  TEST_ASSERT_TRUE(lock.valid_until() <= until);
}

// ---- Restarts ----------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_young_nodes_should_have_no_vote_until_the_longest_lease_is_over, 3) {
  constexpr Duration longest = 2s;
  Side side(nodes.configs(), {.max_lease = longest});
  const Instant before = Client::now();
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 2s});
  const Status connected = side.connect();
  if (connected == Status::no_quorum) {  // They may have grown up before we came.
    TEST_ASSERT_TRUE(side.quorum->connected());
    TEST_ASSERT_TRUE(contains(side.quorum->error_text(), " was restarted, votes in ") ||
                     Client::now() - before > longest);
  }
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 30s));
  (void)side.release(lock);
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  TEST_ASSERT_EQUAL("", text_of(side.quorum->error_text()));
  // With the first away, the second's vote is needed.
  nodes[0].stop();
  nodes[1].stop();
  const Instant killed = Client::now();
  nodes[1].start();
  TEST_ASSERT_TRUE(
      side.comes([&] { return side.quorum->voters() == 0b100 && side.quorum->seconds_until_vote(1) != 0; }));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 30s));
  TEST_ASSERT_TRUE(Client::now() - killed > longest);
}

TEST_ON_NODES(test_node_that_does_not_tell_its_run_id_should_have_no_vote_and_be_asked_again, 1) {
  nodes[0].command("ACL SETUSER default -info");
  Side side(nodes.configs(), {.max_lease = 60s});
  TEST_ASSERT_EQUAL(Status::no_quorum, side.connect());
  TEST_ASSERT_TRUE(contains(side.quorum->error_text(), "does not tell its run id"));
  TEST_ASSERT_EQUAL(UINT64_MAX, side.quorum->seconds_until_vote(0));
  RawConnection admin(nodes[0].socket_path());
  nodes[0].command("ACL SETUSER default +info");
  // On a connection of its own, without a request.
  TEST_ASSERT_TRUE(side.comes([&] {
    const std::uint64_t seconds = side.quorum->seconds_until_vote(0);
    return seconds != 0 && seconds != UINT64_MAX;
  }));
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_kept_hold_should_outlive_several_leases_by_itself, 3) {
  ReadySide side(nodes.configs());
  Telling telling;
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 1500ms, .node_timeout = 1400ms});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(telling.options(Keep::always)));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  const std::string token = text_of(lock.token().bytes());
  const Instant start = Client::now();
  bool always = true;
  (void)side.comes(
      [&] {
        always = always && lock.held();
        return !always || Client::now() - start > 4500ms;
      },
      30s);
  TEST_ASSERT_TRUE(always);
  TEST_ASSERT_EQUAL(0, telling.lost);
  TEST_ASSERT_TRUE(nodes.all("GET k", token));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  await_nothing_left(side, nodes);
}

// Its request may stay unanswered for longer than the lease. Who has the hold, and can be reached again, is asked in the same
// round.
TEST_ON_NODES(test_silent_node_should_not_keep_one_that_comes_back_out_of_the_open_round, 3, "--appendonly", "yes") {
  ReadySide side(brisk(nodes.configs()));
  Telling telling;
  constexpr Duration lease = 6s;
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = lease, .node_timeout = 2s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(telling.options(Keep::always)));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  const Instant granted = Client::now();
  await_everywhere(side, nodes);
  const auto stays_until = [&](Instant until) {
    (void)side.comes([&] { return !lock.held() || Client::now() >= until; }, 60s);
    return lock.held();
  };
  nodes[0].stop();
  nodes[2].pause();
  TEST_ASSERT_TRUE(stays_until(granted + lease / 3 + 200ms));  // The round is open, and only one of them has confirmed.
  nodes[0].start();
  const bool stayed = stays_until(granted + 2 * lease);
  nodes[2].resume();
  TEST_ASSERT_TRUE(stayed);
  TEST_ASSERT_EQUAL(0, telling.lost);
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  await_nothing_left(side, nodes);
}

TEST_ON_NODES(test_hold_that_is_not_kept_should_end_and_be_told_and_leave_nothing, 3) {
  ReadySide side(nodes.configs());
  Telling telling;
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 1s, .node_timeout = 900ms});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(telling.options(Keep::never)));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  Outcome lost;
  lock.async_wait_lost(lost.handler());
  TEST_ASSERT_EQUAL(Status::lock_lost, side.wait(lost));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(1, telling.lost);
  TEST_ASSERT_EQUAL(Status::lock_lost, side.release(lock));
  TEST_ASSERT_EQUAL(Status::not_held, side.release(lock));
  TEST_ASSERT_EQUAL(1, telling.lost);
}

TEST_ON_NODES(test_hung_holder_should_not_keep_its_lock, 3) {
  ReadySide side(nodes.configs());
  Telling telling;
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 1s, .node_timeout = 900ms});
  KeepOptions options = telling.options(Keep::always);
  options.max_hold = 2s;
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  const Instant granted = Client::now();
  Outcome lost;
  lock.async_wait_lost(lost.handler());
  TEST_ASSERT_EQUAL(Status::lock_lost, side.wait(lost));
  TEST_ASSERT_TRUE(Client::now() - granted > 1500ms);
  options.max_hold = max_hold_unlimited;
  options.liveness = 700ms;
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  lock.async_wait_lost(lost.handler());
  const Instant until = Client::now() + 2s;
  while (Client::now() < until) {
    lock.tick();
    TEST_ASSERT_FALSE(lost.done());
    (void)side.loop.run_one_for(5ms);
  }
  TEST_ASSERT_EQUAL(Status::lock_lost, side.wait(lost));  // No ticks from there on.
  TEST_ASSERT_EQUAL(2, telling.lost);
}

TEST_ON_NODES(test_loss_of_a_majority_should_be_told_once_by_all_ways, 3) {
  ReadySide side(nodes.configs());
  Telling telling;
  asio::cancellation_signal signal;
  int signalled = 0;
  signal.slot().assign([&](asio::cancellation_type) { ++signalled; });
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 3s, .node_timeout = 2s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(telling.options(Keep::always)));
  lock.set_lost_signal(&signal);
  Outcome lost;
  lock.async_wait_lost(lost.handler());
  TEST_ASSERT_EQUAL(Status::not_held, side.wait(lost));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  await_everywhere(side, nodes);
  lock.async_wait_lost(lost.handler());
  nodes[0].command("DEL k");
  nodes[1].command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, side.wait(lost));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(side.comes([&] { return telling.lost != 0 && signalled != 0; }));
  TEST_ASSERT_EQUAL(Status::lock_lost, side.release(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  TEST_ASSERT_EQUAL(1, telling.lost);
  TEST_ASSERT_EQUAL(1, signalled);
  // A node that forgot is repaired while a majority holds.
  await_everywhere(side, nodes);
  const std::string token = text_of(lock.token().bytes());
  nodes[2].command("DEL k");
  TEST_ASSERT_TRUE(side.comes([&] { return nodes[2].command("GET k") == token; }));
  TEST_ASSERT_TRUE(lock.held());
  lock.async_wait_lost(lost.handler());
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.wait(lost));
  TEST_ASSERT_EQUAL(1, telling.lost);
}

TEST_ON_NODES(test_majority_that_goes_silent_should_be_a_risk_and_then_a_loss, 3) {
  ReadySide side(brisk(nodes.configs()));
  Telling telling;
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 3s, .node_timeout = 1s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(telling.options(Keep::always)));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  await_everywhere(side, nodes);
  nodes[0].pause();
  nodes[2].pause();
  const bool doubted = side.comes([&] { return telling.at_risk != 0; });
  const bool held = lock.held() || telling.lost != 0;
  const bool lost = side.comes([&] { return telling.lost != 0; });
  const bool late = lock.held();
  nodes[0].resume();
  nodes[2].resume();
  TEST_ASSERT_TRUE(doubted);
  TEST_ASSERT_TRUE(held);
  TEST_ASSERT_TRUE(lost);
  TEST_ASSERT_FALSE(late);
  await_nothing_left(side, nodes);
  TEST_ASSERT_EQUAL(1, telling.at_risk);
  TEST_ASSERT_EQUAL(1, telling.lost);
}

// A handler of the same turn in which a loss is found lets go of the lock: nothing is told behind that.
TEST_ON_NODES(test_nothing_should_be_told_once_a_release_has_begun, 3) {
  ReadySide side(nodes.configs());
  Telling telling;
  asio::cancellation_signal signal;
  int signalled = 0;
  signal.slot().assign([&](asio::cancellation_type) { ++signalled; });
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 1s, .node_timeout = 900ms});
  lock.set_lost_signal(&signal);
  for (const bool posted : {false, true}) {
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(telling.options(Keep::never)));
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
    // The lease runs out while the loop stands still, so that only the release finds the loss.
    while (lock.held()) breathe(10ms);
    if (posted) {
      TEST_ASSERT_EQUAL(Status::lock_lost, lock.post_release());
    } else {
      Outcome outcome;
      lock.async_release(outcome.handler());
      TEST_ASSERT_EQUAL(Status::lock_lost, side.wait(outcome));
    }
    for (int turn = 0; turn < 20; ++turn) (void)side.loop.run_one_for(5ms);
    TEST_ASSERT_EQUAL(0, telling.lost);
    TEST_ASSERT_EQUAL(0, telling.at_risk);
    TEST_ASSERT_EQUAL(0, signalled);
  }
}

// Two are lost in one turn; whoever is told of the first lets go of the second.
TEST_ON_NODES(test_callback_should_be_free_to_release_another_lock_whose_loss_is_not_told_yet, 3) {
  struct World {
    AsyncRedlockMutex<3>* locks[2] = {};
    int told[2] = {};
    void lost(int which) {
      ++told[which];
      (void)locks[1 - which]->post_release();
    }
  };
  ReadySide side(nodes.configs());
  World world;
  AsyncRedlockMutex<3> first(*side.quorum, "k", {.lease = 1s, .node_timeout = 900ms});
  AsyncRedlockMutex<3> second(*side.quorum, "l", {.lease = 1s, .node_timeout = 900ms});
  world.locks[0] = &first;
  world.locks[1] = &second;
  TEST_ASSERT_EQUAL(Status::ok,
                    first.keep({.keep = Keep::never,
                                .on_lost = [](void* context) noexcept { static_cast<World*>(context)->lost(0); },
                                .context = &world}));
  TEST_ASSERT_EQUAL(Status::ok,
                    second.keep({.keep = Keep::never,
                                 .on_lost = [](void* context) noexcept { static_cast<World*>(context)->lost(1); },
                                 .context = &world}));
  Outcome one;
  Outcome other;
  do {
    first.async_acquire(20s, one.handler());
    second.async_acquire(20s, other.handler());
    TEST_ASSERT_EQUAL(Status::ok, side.wait(one));
    TEST_ASSERT_EQUAL(Status::ok, side.wait(other));
  } while (!first.held() || !second.held());
  while (first.held() || second.held()) breathe(10ms);
  TEST_ASSERT_TRUE(side.comes([&] { return world.told[0] + world.told[1] != 0; }));
  for (int turn = 0; turn < 20; ++turn) (void)side.loop.run_one_for(5ms);
  TEST_ASSERT_EQUAL(1, world.told[0] + world.told[1]);
}

// ---- Cancellation ------------------------------------------------------------------------------------------------

// One node has granted, the others have not answered yet.
TEST_ON_NODES(test_what_was_granted_before_a_cancel_should_be_released, 3) {
  for (const bool by_slot : {false, true}) {
    const std::string mark = by_slot ? ".slot" : ".proxy";
    Proxy second(nodes[1].socket_path() + mark, nodes[1].socket_path());
    Proxy third(nodes[2].socket_path() + mark, nodes[2].socket_path());
    ReadySide side({LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(second.url()),
                    LiveNodes::config_at(third.url())});
    TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
    AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 60s, .node_timeout = 20s});
    const long before = nodes[2].calls("set");
    second.hold_replies_of(Proxy::all);
    third.hold_requests_of(Proxy::all);
    asio::cancellation_signal signal;
    Outcome outcome;
    if (by_slot)
      lock.async_acquire(60s, asio::bind_cancellation_slot(signal.slot(), outcome.handler()));
    else
      lock.async_acquire(60s, outcome.handler());
    TEST_ASSERT_TRUE(side.comes([&] { return nodes.each("EXISTS k") == "1|1|0"; }));
    TEST_ASSERT_FALSE(outcome.done());
    const Instant cancelled = Client::now();
    if (by_slot)
      signal.emit(asio::cancellation_type::terminal);
    else
      lock.cancel();
    TEST_ASSERT_EQUAL(Status::cancelled, side.wait(outcome));
    TEST_ASSERT_TRUE(Client::now() - cancelled < soon);
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_TRUE(side.comes([&] { return nodes[0].command("EXISTS k") == "0"; }));
    TEST_ASSERT_TRUE(side.comes([&] { return nodes[1].command("EXISTS k") == "0"; }));
    second.hold_replies_of(Proxy::none);
    third.hold_requests_of(Proxy::none);
    await_nothing_left(side, nodes);
    TEST_ASSERT_EQUAL(before + 1, nodes[2].calls("set"));  // It came, and was taken back behind itself.
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
    TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
    await_nothing_left(side, nodes);
  }
}

TEST_ON_NODES(test_cancelled_waiter_should_leave_the_holder_alone_and_no_subscription, 3) {
  ReadySide side(nodes.configs());
  ReadySide rival(nodes.configs());
  SoleAsync<AsyncRedlockReentrantLock, 3> ours(*side.quorum, "k", calm);
  SoleAsync<AsyncRedlockReentrantLock, 3> theirs(*rival.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(ours));
  await_everywhere(side, nodes);
  Outcome outcome;
  theirs.async_acquire(60s, outcome.handler());
  Outcome second;
  theirs.async_try_acquire(second.handler());
  TEST_ASSERT_EQUAL(Status::too_many_requests, rival.wait(second));
  for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_TRUE(rival.comes([&] { return subscribed(nodes[node]); }));
  rival.quorum->cancel();
  TEST_ASSERT_EQUAL(Status::cancelled, rival.wait(outcome));
  TEST_ASSERT_TRUE(rival.comes([&] { return nodes.all("PUBSUB CHANNELS", ""); }));
  TEST_ASSERT_TRUE(nodes.all("HGETALL k", text_of(ours.token().bytes()) + " 1"));
  TEST_ASSERT_EQUAL(Status::ok, side.release(ours));
  TEST_ASSERT_EQUAL(Status::ok, rival.acquire(theirs, 20s));
  TEST_ASSERT_EQUAL(Status::ok, rival.release(theirs));
}

// Cancelled in the very turns of grant and release, a cut at every one of them.
TEST_ON_NODES(test_cancel_at_any_turn_should_leave_nothing, 3) {
  ReadySide side(nodes.configs());
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm, {.fence = true});
  int granted = 0;
  int cancelled = 0;
  for (int turns = 0; turns < 24; ++turns) {
    Outcome outcome;
    lock.async_try_acquire(outcome.handler());
    for (int turn = 0; turn < turns && !outcome.done(); ++turn) (void)side.loop.run_one_for(50ms);
    lock.cancel();
    const Status status = side.wait(outcome);
    if (status == Status::ok) {
      ++granted;
      TEST_ASSERT_TRUE(lock.held());
      Outcome released;
      lock.async_release(released.handler());
      if (turns % 2 == 0) lock.cancel();
      (void)side.wait(released);
    } else {
      TEST_ASSERT_EQUAL(Status::cancelled, status);
      ++cancelled;
    }
    TEST_ASSERT_FALSE(lock.held());
    await_nothing_left(side, nodes);
  }
  TEST_ASSERT_TRUE(granted > 0);
  TEST_ASSERT_TRUE(cancelled > 0);
}

// [issue 10, 14] A renewal that is not wanted any more is no doubt of the hold, and ends no other.
TEST_ON_NODES(test_renewal_that_is_cancelled_at_any_turn_should_leave_the_hold_as_it_is, 3) {
  ReadySide side(nodes.configs());
  Telling telling;
  SoleAsync<AsyncRedlockReentrantLock, 3> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(telling.options(Keep::never)));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  for (int turns = 0; turns < 12; ++turns) {
    const Instant until = lock.valid_until();
    const bool again = turns % 2 == 0;  // As acquiring once more does, too.
    Outcome outcome;
    if (again)
      lock.async_try_acquire(outcome.handler());
    else
      lock.async_renew(outcome.handler());
    for (int turn = 0; turn < turns && !outcome.done(); ++turn) (void)side.loop.run_one_for(50ms);
    lock.cancel();
    const Status status = side.wait(outcome);
    TEST_ASSERT_TRUE(status == Status::ok || status == Status::cancelled);
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_FALSE(lock.at_risk());
    TEST_ASSERT_TRUE(lock.valid_until() >= until);
    TEST_ASSERT_EQUAL(again && status == Status::ok ? 2U : 1U, lock.hold_count());
    if (lock.hold_count() == 2) TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
    TEST_ASSERT_EQUAL(Status::ok, side.renew(lock));
  }
  TEST_ASSERT_EQUAL(0, telling.at_risk + telling.lost);
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
}

// The majority's words do not come: the lock is not held from the call on, and what was asked follows later.
TEST_ON_NODES(test_release_with_a_silent_majority_should_end_in_time_and_follow_later, 3) {
  std::vector<ClientConfig> configs = nodes.configs();
  for (ClientConfig& config : configs) config.request_timeout = 500ms;
  ReadySide side(configs);
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 60s, .node_timeout = 500ms});
  for (const bool cancelled : {false, true}) {
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
    await_everywhere(side, nodes);
    nodes[0].pause();
    nodes[1].pause();
    Outcome lost;
    Outcome outcome;
    lock.async_wait_lost(lost.handler());
    lock.async_release(outcome.handler());
    const bool held = lock.held();
    for (int turn = 0; turn < 3; ++turn) (void)side.loop.run_one_for(20ms);
    if (cancelled) lock.cancel();
    const bool ended = side.comes([&] { return outcome.done() && lost.done(); });
    Outcome next;
    lock.async_try_acquire(next.handler());
    const bool denied = side.comes([&] { return next.done(); });
    nodes[0].resume();
    nodes[1].resume();
    TEST_ASSERT_FALSE(held);
    TEST_ASSERT_TRUE(denied);
    TEST_ASSERT_EQUAL(Status::no_quorum, next.status());  // The release is over for its lock, and not in its way.
    TEST_ASSERT_TRUE(ended);
    TEST_ASSERT_EQUAL(cancelled ? Status::cancelled : Status::timed_out, outcome.status());
    TEST_ASSERT_EQUAL(Status::ok, lost.status());
    await_nothing_left(side, nodes);
  }
}

// The grant of a node that answers when all is over is given back.
// All nodes fall silent, or are cut off, while somebody waits. The node timeout and the connect timeout are far longer than
// what he asked for.
TEST_ON_NODES(test_acquire_should_end_by_its_wait_and_one_request_timeout, 3) {
  constexpr Duration timeout = 700ms;
  constexpr Duration late = 800ms;  // A loaded machine is.
  for (const bool cut : {false, true})
    for (const Duration wait : {Duration::zero(), Duration(1200ms)}) {
      TEST_MESSAGE("cut off: " << cut << ", wait: " << wait.count());
      std::vector<std::unique_ptr<Proxy>> proxies;
      std::vector<ClientConfig> configs;
      for (std::size_t node = 0; node < 3; ++node) {
        proxies.push_back(std::make_unique<Proxy>(nodes[node].socket_path() + ".proxy", nodes[node].socket_path()));
        configs.push_back(LiveNodes::config_at(proxies.back()->url()));
        configs.back().request_timeout = timeout;
      }
      ReadySide side(configs);
      AsyncRedlockMutex<3> lock(*side.quorum, "k", {.lease = 60s, .node_timeout = 20s}, {.fence = true});
      TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
      for (const auto& proxy : proxies) {
        if (cut) proxy->delay_new(60s);
        if (cut)
          proxy->cut_after(0);
        else
          proxy->hold_replies_of(Proxy::all);
      }
      const Instant start = Client::now();
      TEST_ASSERT_TRUE(side.acquire(lock, wait) != Status::ok);
      TEST_ASSERT_TRUE(Client::now() - start < wait + timeout + late);
    }
}

TEST_ON_NODES(test_late_grant_should_be_released, 3) {
  Proxy third(nodes[2].socket_path() + ".proxy", nodes[2].socket_path());
  ReadySide side({LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(nodes[1].unix_url()),
                  LiveNodes::config_at(third.url())});
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
  third.hold_requests_of(Proxy::all);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
  TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("EXISTS k", "0"); }));
  const long before = nodes[2].calls("set");
  third.hold_requests_of(Proxy::none);
  TEST_ASSERT_TRUE(side.comes([&] { return nodes[2].calls("set") == before + 1; }));
  await_nothing_left(side, nodes);
}

// ---- Memory ------------------------------------------------------------------------------------------------------

// Acquire, wait, hand-off, renewals, repair, loss, a node that goes and comes, cancellation, release.
TEST_ON_NODES(test_nothing_should_allocate_once_it_is_connected, 3) {
  {
    HeapTrap proof;
    void* volatile block = std::malloc(1);  // Volatile: the pair may not be optimised away.
    std::free(block);
    TEST_ASSERT_TRUE(proof.count() > 0);
  }
  ReadySide side(nodes.configs());
  ReadySide rival(nodes.configs());
  std::uint64_t allocations = 0;
  // The loops alone, up to then; what the test itself does is not counted.
  const auto run = [&](auto&& condition) {
    const Instant until = Client::now() + patience;
    while (!condition() && Client::now() < until) {
      HeapTrap trap;
      for (Side* each : {static_cast<Side*>(&side), static_cast<Side*>(&rival)}) {
        if (each->loop.stopped()) each->loop.restart();
        (void)each->loop.poll_one();
      }
      allocations += trap.count();
    }
    TEST_ASSERT_TRUE(Client::now() < until);
  };
  SoleAsync<AsyncRedlockFencedLock, 3> ours(*side.quorum, "k", {.lease = 3s, .node_timeout = 2s});
  SoleAsync<AsyncRedlockFencedLock, 3> theirs(*rival.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, ours.keep({.keep = Keep::always}));
  Outcome outcome;
  Outcome waiting;
  Outcome lost;
  const auto start = [&](auto&& operation) {
    HeapTrap trap;
    operation();
    allocations += trap.count();
  };
  run([&] { return side.quorum->voters() == 0b111 && rival.quorum->voters() == 0b111; });
  for (int turn = 0; turn < 2; ++turn) {
    start([&] { ours.async_acquire(5s, outcome.handler()); });
    run([&] { return outcome.done(); });
    TEST_ASSERT_EQUAL(Status::ok, outcome.status());
    start([&] { theirs.async_acquire(60s, waiting.handler()); });
    run([&] { return subscribed(nodes[0]) && subscribed(nodes[1]) && subscribed(nodes[2]); });
    if (turn == 0) nodes[2].stop();  // It comes back empty, and is repaired.
    start([&] { ours.async_renew(outcome.handler()); });
    run([&] { return outcome.done(); });
    if (turn == 0) {
      nodes[2].start();
      run([&] { return nodes[2].command("EXISTS k") == "1"; });
    }
    start([&] { ours.async_wait_lost(lost.handler()); });
    start([&] { ours.async_release(outcome.handler()); });
    run([&] { return outcome.done() && waiting.done() && lost.done(); });
    TEST_ASSERT_EQUAL(Status::ok, waiting.status());
    start([&] { ours.async_acquire(60s, outcome.handler()); });
    run([&] { return subscribed(nodes[0]); });
    start([&] { ours.cancel(); });
    run([&] { return outcome.done(); });
    start([&] { theirs.async_release(waiting.handler()); });
    run([&] { return waiting.done(); });
    run([&] { return nodes.all("EXISTS k", "0") && rival.quorum->compensations_pending() == 0; });
  }
  start([&] { ours.async_acquire(5s, outcome.handler()); });
  run([&] { return outcome.done() && nodes.all("EXISTS k", "1"); });
  start([&] { ours.async_wait_lost(lost.handler()); });
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("DEL k");
  run([&] { return lost.done(); });
  TEST_ASSERT_EQUAL(Status::lock_lost, lost.status());
  TEST_ASSERT_EQUAL(std::uint64_t{0}, allocations);
}

// ---- Ends --------------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_handler_should_be_free_to_destroy_the_lock_and_the_quorum, 3) {
  for (int round = 0; round < 4; ++round) {
    Side side(nodes.configs());
    TEST_ASSERT_EQUAL(Status::ok, side.connect());
    // A node that has not answered yet may not read the release behind it: its lease ends it there.
    QuorumTiming brief = calm;
    brief.lease = 8s;
    brief.node_timeout = 4s;
    auto lock = std::make_shared<AsyncRedlockMutex<3>>(*side.quorum, "k", brief);
    bool called = false;
    lock->async_acquire(20s, [&](const std::error_code& error) {
      TEST_ASSERT_EQUAL(Status::ok, to_status(error));
      if (round % 2 == 0) side.quorum.reset();
      if (round != 2) lock.reset();
      if (round == 1) side.quorum.reset();
      called = true;
    });
    TEST_ASSERT_TRUE(side.comes([&] { return called; }));
    TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("EXISTS k", "0"); }));
    if (lock != nullptr) {  // It has outlived its quorum.
      TEST_ASSERT_FALSE(lock->held());
      TEST_ASSERT_EQUAL(Status::not_connected, side.acquire(*lock, 60s));
      lock.reset();
    }
    side.quorum.reset();
    side.loop.restart();
    (void)side.loop.run();  // It comes to an end: nothing keeps it alive.
  }
}

TEST_ON_NODES(test_on_lost_should_be_free_to_destroy_the_lock, 3) {
  struct World {
    std::unique_ptr<AsyncRedlockMutex<3>> lock;
    bool called = false;
  };
  ReadySide side(nodes.configs());
  World world;
  world.lock =
      std::make_unique<AsyncRedlockMutex<3>>(*side.quorum, "k", QuorumTiming{.lease = 1s, .node_timeout = 900ms});
  TEST_ASSERT_EQUAL(Status::ok, world.lock->keep({.keep = Keep::never,
                                                  .on_lost =
                                                      [](void* context) noexcept {
                                                        static_cast<World*>(context)->lock.reset();
                                                        static_cast<World*>(context)->called = true;
                                                      },
                                                  .context = &world}));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(*world.lock, 20s));
  Outcome lost;
  world.lock->async_wait_lost(lost.handler());
  TEST_ASSERT_TRUE(side.comes([&] { return world.called; }));
  TEST_ASSERT_EQUAL(Status::lock_lost, side.wait(lost));
  await_nothing_left(side, nodes);
}

// [issue 10, 5] The signal, too, is looked for only after the callback.
TEST_ON_NODES(test_callback_should_be_free_to_destroy_the_lock_the_quorum_and_the_lost_signal, 3) {
  struct World {
    std::optional<AsyncQuorum>* quorum = nullptr;
    std::unique_ptr<AsyncRedlockMutex<3>> lock{};
    std::unique_ptr<asio::cancellation_signal> signal = std::make_unique<asio::cancellation_signal>();
    int way = 0;
    int told = 0;
    int signalled = 0;
    void act() {
      ++told;
      if (way == 0) lock->set_lost_signal(nullptr);
      if (way == 2) quorum->reset();
      if (way != 0) lock.reset();
      signal.reset();
    }
  };
  for (const bool lost : {true, false})
    for (int way = 0; way < 3; ++way) {
      ReadySide side(nodes.configs());
      World world{.quorum = &side.quorum, .way = way};
      world.signal->slot().assign([&](asio::cancellation_type) { ++world.signalled; });
      world.lock =
          std::make_unique<AsyncRedlockMutex<3>>(*side.quorum, "k", QuorumTiming{.lease = 1s, .node_timeout = 900ms});
      world.lock->set_lost_signal(world.signal.get());
      KeepOptions options = {.keep = Keep::never, .context = &world};
      (lost ? options.on_lost : options.on_at_risk) = [](void* self) noexcept { static_cast<World*>(self)->act(); };
      TEST_ASSERT_EQUAL(Status::ok, world.lock->keep(options));
      TEST_ASSERT_EQUAL(Status::ok, side.acquire(*world.lock, 20s));
      TEST_ASSERT_TRUE(side.comes([&] { return world.told != 0; }));
      for (int turn = 0; turn < 20; ++turn) (void)side.loop.run_one_for(5ms);
      TEST_ASSERT_EQUAL(1, world.told);
      TEST_ASSERT_EQUAL(0, world.signalled);
      world.lock.reset();
      TEST_ASSERT_TRUE(side.comes([&] { return nodes.all("EXISTS k", "0"); }));
    }
}

TEST_ON_NODES(test_destroyed_lock_should_leave_nothing_at_any_turn, 3) {
  ReadySide side(nodes.configs());
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  for (int turns = 0; turns < 12; ++turns) {
    Outcome outcome;
    {
      std::shared_ptr<AsyncQuorumLock> lock;
      if (turns % 2 == 0)
        lock = std::make_shared<SoleAsync<AsyncRedlockFencedLock, 3>>(*side.quorum, "k", calm);
      else
        lock = std::make_shared<SoleAsync<AsyncRedlockReentrantLock, 3>>(*side.quorum, "k", calm);
      lock->async_acquire(20s, outcome.handler());
      for (int turn = 0; turn < turns; ++turn) (void)side.loop.run_one_for(20ms);
    }
    const Status status = side.wait(outcome);
    TEST_ASSERT_TRUE(status == Status::ok || status == Status::cancelled);
    await_nothing_left(side, nodes);
  }
}

// [issue 10, 17] Also a child that never runs the parent's loop.
TEST_ON_NODES(test_forked_child_should_be_told_so_on_its_own_loop, 3) {
  ReadySide side(nodes.configs());
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    asio::io_context own;
    int told = 0;
    const auto token = [&] {
      return asio::bind_executor(own.get_executor(), [&told](const std::error_code& error) {
        told += to_status(error) == Status::forked ? 1 : 100;
      });
    };
    lock.async_acquire(1s, token());
    lock.async_renew(token());
    lock.async_release(token());
    lock.async_wait_lost(token());
    const ByteView url = "redis://127.0.0.1";
    side.quorum->async_connect(&url, 1, unguarded, token());
    side.quorum->async_close(token());
    bool good = told == 0;
    own.run();
    good = good && told == 6 && lock.post_release() == Status::forked && !lock.held() && !side.quorum->connected();
    side.quorum->cancel();
    side.quorum.reset();
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  TEST_ASSERT_EQUAL(child, ::waitpid(child, &status, 0));
  TEST_ASSERT_EQUAL(0, status);
  TEST_ASSERT_EQUAL(Status::ok, side.renew(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
}

// [issue 10, 17]
TEST_ON_NODES(test_operation_that_finds_no_slot_should_be_refused, 3) {
  Side side(nodes.configs());
  side.quorum.emplace(side.loop.get_executor(), 3, AsyncQuorumLimits{.operations = 1});
  TEST_ASSERT_EQUAL(Status::ok, side.connect());
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
  AsyncRedlockMutex<3> other(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  Outcome waiting;
  other.async_acquire(wait_forever, waiting.handler());
  for (int round = 0; round < 3; ++round) {
    TEST_ASSERT_EQUAL(Status::too_many_requests, side.acquire(lock, 20s));
    TEST_ASSERT_EQUAL(Status::too_many_requests, side.renew(lock));
    TEST_ASSERT_EQUAL(Status::too_many_requests, side.release(lock));
    TEST_ASSERT_EQUAL(Status::too_many_requests, side.connect());
  }
  TEST_ASSERT_FALSE(waiting.done());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  TEST_ASSERT_EQUAL(Status::ok, side.wait(waiting));
}

// [issue 10, 8] What was promised is done on every node; what has no place on one of them says so.
TEST_ON_NODES(test_posted_release_that_finds_no_place_should_say_so, 3) {
  constexpr std::size_t places = 16;
  constexpr std::size_t count = 20;
  Proxy proxy(nodes[0].socket_path() + ".proxy", nodes[0].socket_path());
  std::vector<ClientConfig> configs = nodes.configs();
  configs[0] = LiveNodes::config_at(proxy.url());
  Side side(configs);
  side.quorum.emplace(side.loop.get_executor(), 3, AsyncQuorumLimits{.requests = 2 * places});
  TEST_ASSERT_EQUAL(Status::ok, side.connect());
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->voters() == 0b111; }));
  std::deque<AsyncRedlockMutex<3>> locks;
  for (std::size_t index = 0; index < count; ++index) {
    locks.emplace_back(*side.quorum, ByteView(std::to_string(index)), calm);
    TEST_ASSERT_EQUAL(Status::ok, side.acquire(locks.back(), 20s));
  }
  for (const AsyncRedlockMutex<3>& lock : locks)
    for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_TRUE(side.comes([&] { return lock.held_on(node); }));
  proxy.hold_replies_of(Proxy::all);
  for (std::size_t index = 0; index < count; ++index) {
    TEST_ASSERT_EQUAL(index < places ? Status::ok : Status::too_many_requests, locks[index].post_release());
    TEST_ASSERT_FALSE(locks[index].held());
  }
  proxy.hold(false);
  TEST_ASSERT_TRUE(side.comes([&] { return side.quorum->compensations_pending() == 0; }));
  for (std::size_t index = 0; index < places; ++index)
    TEST_ASSERT_TRUE(nodes.all("EXISTS " + std::to_string(index), "0"));
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(locks[0], 20s));
}

TEST_ON_NODES(test_close_should_wait_until_all_is_released_and_let_the_loop_end, 3) {
  ReadySide side(nodes.configs());
  AsyncRedlockMutex<3> lock(*side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  Outcome outcome;
  side.quorum->async_close(outcome.handler());
  TEST_ASSERT_EQUAL(Status::ok, side.wait(outcome));
  TEST_ASSERT_TRUE(nodes.all("EXISTS k", "0"));
  TEST_ASSERT_FALSE(side.quorum->connected());
  side.loop.restart();
  (void)side.loop.run();
  TEST_ASSERT_EQUAL(Status::no_quorum, side.acquire(lock));
  TEST_ASSERT_EQUAL(Status::ok, side.connect());
  TEST_ASSERT_EQUAL(Status::ok, side.acquire(lock, 20s));
  TEST_ASSERT_EQUAL(Status::ok, side.release(lock));
}
