// SPDX-License-Identifier: MIT
//
// Every call of a blocking quorum ends: by its bound, by cancel() at whatever step it is, and without turning meanwhile. No
// step of it keeps another hold from its renewal.
#include <poll.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "live_nodes.hpp"
#include "patience.hpp"
#include "proxy.hpp"

namespace {

thread_local int sleeps = 0;

}  // namespace

extern "C" {
int __real_ppoll(pollfd*, nfds_t, const timespec*, const sigset_t*);
int __wrap_ppoll(pollfd* entries, nfds_t count, const timespec* limit, const sigset_t* mask) {
  ++sleeps;
  return __real_ppoll(entries, count, limit, mask);
}
}

static void setUp() {}
static void tearDown() {}

namespace {

// A node has long to answer: what ends a call sooner is cancel(), or its own bound.
constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 20s};
// A loaded machine is late; a step that waits for something else takes seconds.
constexpr Duration at_once = 800ms;

// Three nodes behind proxies.
struct Side {
  explicit Side(const LiveNodes& nodes) {
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      proxies.emplace_back(nodes[node].socket_path() + ".proxy", nodes[node].socket_path());
      configs.push_back(LiveNodes::config_at(proxies.back().url()));
    }
  }
  void connect_all() { TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs)); }
  void fall_silent() {
    for (Proxy& proxy : proxies) proxy.hold_replies_of(Proxy::all);
  }
  void speak() {
    for (Proxy& proxy : proxies) proxy.hold_replies_of(Proxy::none);
  }
  // No connection is left, and none comes about.
  void be_cut() {
    for (Proxy& proxy : proxies) {
      proxy.delay_new(60s);
      proxy.cut_after(0);
    }
  }
  [[nodiscard]] std::int64_t requested() const {
    std::int64_t bytes = 0;
    for (const Proxy& proxy : proxies) bytes += proxy.requested(0);
    return bytes;
  }

  std::deque<Proxy> proxies;
  std::vector<ClientConfig> configs;
  Quorum<3> quorum;
};

// A call on a thread of its own, which is cancelled once it is where the test wants it.
struct Running {
  explicit Running(std::function<Status()> call)
      : thread([this, call = std::move(call)] {
          outcome = call();
          ended_at = Client::now();
          ended = true;
        }) {}
  ~Running() {
    if (thread.joinable()) thread.join();
  }
  // How long it went on after cancel().
  Duration cancel(QuorumClient& quorum) {
    const Instant cancelled_at = Client::now();
    quorum.cancel();
    TEST_ASSERT_TRUE(comes([&] { return ended.load(); }, 30s));
    thread.join();
    TEST_ASSERT_EQUAL(Status::cancelled, outcome);
    return ended_at - cancelled_at;
  }
  Status outcome = Status::ok;
  Instant ended_at;
  std::atomic<bool> ended = false;
  std::thread thread;
};

}  // namespace

// ---- cancel() ----------------------------------------------------------------------------------------------------

// Another call is not ended by it, and what the cancelled one may have acquired is taken back.
TEST_ON_NODES(test_cancel_should_end_a_call_that_waits_for_replies_and_no_later_one, 3) {
  struct Step {
    const char* name;
    bool held;
    std::function<Status(RedlockMutex<3>&, SoleRedlock<RedlockReentrantLock, 3>&)> call;
  };
  const Step steps[] = {
      {"try_acquire", false, [](auto& mutex, auto&) { return mutex.try_acquire(); }},
      {"acquire", false, [](auto& mutex, auto&) { return mutex.acquire(60s); }},
      {"acquire by push", false, [](auto&, auto& hash) { return hash.acquire(60s); }},
      {"renew", true, [](auto& mutex, auto&) { return mutex.renew(); }},
      {"re-entry", true, [](auto&, auto& hash) { return hash.try_acquire(); }},
      {"release", true, [](auto& mutex, auto&) { return mutex.release(); }},
  };
  for (const Step& step : steps) {
    TEST_MESSAGE(step.name);
    Side side(nodes);
    side.connect_all();
    RedlockMutex<3> mutex(side.quorum, "k", calm);
    SoleRedlock<RedlockReentrantLock, 3> hash(side.quorum, "hash", calm);
    if (step.held) TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
    if (step.held) TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
    await_voters(side.quorum, 0b111);
    side.fall_silent();
    const std::int64_t before = side.requested();
    Running running([&] { return step.call(mutex, hash); });
    TEST_ASSERT_TRUE(comes([&] { return side.requested() > before; }));
    const Duration took = running.cancel(side.quorum);
    side.speak();
    TEST_ASSERT_TRUE(took < at_once);
    if (mutex.held()) TEST_ASSERT_EQUAL(Status::ok, mutex.release());
    while (hash.held()) TEST_ASSERT_EQUAL(Status::ok, hash.release());
    TEST_ASSERT_EQUAL(Status::ok, mutex.acquire(5s));
    TEST_ASSERT_EQUAL(Status::ok, hash.acquire(5s));
    TEST_ASSERT_EQUAL(Status::ok, mutex.renew());
    TEST_ASSERT_EQUAL(Status::ok, mutex.release());
    TEST_ASSERT_EQUAL(Status::ok, hash.release());
  }
}

// All have granted, and nobody says that he has written the fence down.
TEST_ON_NODES(test_cancel_should_end_the_round_of_a_fence_at_once, 3) {
  Side side(nodes);
  side.connect_all();
  await_voters(side.quorum, 0b111);
  RedlockMutex<3> lock(side.quorum, "k", calm, {.fence = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);  // The nodes know the scripts.
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(comes([&] {
    (void)side.quorum.tend();
    return side.quorum.compensations_pending() == 0 && nodes.all("EXISTS k", "0");
  }));
  side.fall_silent();
  Running running([&] { return lock.try_acquire(); });
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS k", "1"); }));
  for (Proxy& proxy : side.proxies) proxy.hold_requests_of(Proxy::all);
  side.speak();
  breathe(200ms);
  TEST_ASSERT_FALSE(running.ended);
  TEST_ASSERT_TRUE(running.cancel(side.quorum) < at_once);
  TEST_ASSERT_FALSE(lock.held());
  for (Proxy& proxy : side.proxies) proxy.hold_requests_of(Proxy::none);
  TEST_ASSERT_TRUE(comes([&] {
    (void)side.quorum.tend();
    return nodes.all("EXISTS k", "0");
  }));
}

TEST_ON_NODES(test_cancel_should_end_connect_at_once_in_the_handshakes, 3) {
  Side side(nodes);
  side.fall_silent();
  Running running([&] { return connect(side.quorum, side.configs); });
  TEST_ASSERT_TRUE(comes([&] { return side.requested() != 0; }));
  TEST_ASSERT_TRUE(running.cancel(side.quorum) < at_once);
  side.speak();
  RedlockMutex<3> lock(side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(10s));
}

// Before there is anything that it could wake.
TEST_ON_NODES(test_cancel_before_connect_should_end_it_at_once, 3) {
  Side side(nodes);
  side.fall_silent();
  for (ClientConfig& config : side.configs) config.connect_timeout = 10s;
  side.quorum.cancel();
  const Instant since = Client::now();
  TEST_ASSERT_EQUAL(Status::cancelled, connect(side.quorum, side.configs));
  TEST_ASSERT_TRUE(Client::now() - since < at_once);
}

// A majority is on its way, and does not come.
TEST_ON_NODES(test_cancel_should_end_a_wait_for_nodes_at_once, 3) {
  for (const bool waits : {false, true}) {
    Side side(nodes);
    side.connect_all();
    await_voters(side.quorum, 0b111);
    RedlockMutex<3> lock(side.quorum, "k", calm);
    side.be_cut();
    for (std::size_t node = 0; node < 3; ++node) nodes[node].command("CLIENT KILL TYPE normal SKIPME yes");
    await_voters(side.quorum, 0);
    Running running([&] { return waits ? lock.acquire(60s) : lock.try_acquire(); });
    breathe(100ms);  // Into the wait.
    TEST_ASSERT_TRUE(running.cancel(side.quorum) < at_once);
  }
}

// The renewal of another hold is under way, and nobody answers it.
TEST_ON_NODES(test_cancel_should_end_a_wait_beside_a_renewal_that_is_not_answered_at_once, 3) {
  for (const bool pushed : {false, true}) {
    Side side(nodes);
    for (ClientConfig& config : side.configs) config.request_timeout = 15s;
    side.connect_all();
    await_voters(side.quorum, 0b111);
    for (std::size_t node = 0; node < 3; ++node) {
      nodes[node].command("SET busy somebody PX 60000");
      nodes[node].command("HSET hash somebody 1");
      nodes[node].command("PEXPIRE hash 60000");
    }
    RedlockMutex<3> kept(side.quorum, "kept", {.lease = 4500ms, .node_timeout = 1s});
    TEST_ASSERT_EQUAL(Status::ok, kept.keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
    const Instant due = kept.renewal_due();
    RedlockMutex<3> polled(side.quorum, "busy", {.lease = 60s, .node_timeout = 100ms});
    SoleRedlock<RedlockReentrantLock, 3> waited(side.quorum, "hash", {.lease = 60s, .node_timeout = 100ms});
    Running running([&] { return pushed ? waited.acquire(60s) : polled.acquire(60s); });
    TEST_ASSERT_TRUE(comes([&] { return Client::now() > due - 200ms; }));
    for (Proxy& proxy : side.proxies) proxy.hold_replies_of(0);
    TEST_ASSERT_TRUE(comes([&] { return Client::now() > due + 300ms; }));
    TEST_ASSERT_TRUE(running.cancel(side.quorum) < at_once);
    side.speak();
  }
}

// A release goes on; what was cancelled before it is the next call's.
TEST_ON_NODES(test_cancel_before_a_release_should_end_the_call_after_it, 3) {
  Side side(nodes);
  side.connect_all();
  RedlockMutex<3> lock(side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  side.quorum.cancel();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::cancelled, lock.acquire(5s));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
}

// ---- Without turning ---------------------------------------------------------------------------------------------

TEST_ON_NODES(test_a_wait_after_a_cancel_should_sleep, 3) {
  Side side(nodes);
  side.connect_all();
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("SET k somebody PX 60000");
  RedlockMutex<3> lock(side.quorum, "k", calm);
  for (int turn = 0; turn < 3; ++turn) {
    side.quorum.cancel();
    TEST_ASSERT_EQUAL(Status::cancelled, lock.acquire(5s));
  }
  const int before = sleeps;
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(1s));
  TEST_ASSERT_TRUE(sleeps - before < 600);
}

// ---- One bound ---------------------------------------------------------------------------------------------------

// All nodes fall silent, or are cut off, while somebody waits. The node timeout and the connect timeout are far longer than
// what he asked for.
TEST_ON_NODES(test_acquire_should_end_by_its_wait_and_one_request_timeout_when_the_nodes_fall_silent, 3) {
  constexpr Duration wait = 1200ms;
  constexpr Duration timeout = 700ms;
  for (std::size_t node = 0; node < 3; ++node) {
    nodes[node].command("SET busy somebody PX 60000");
    nodes[node].command("HSET hash somebody 1");
    nodes[node].command("PEXPIRE hash 60000");
  }
  for (const bool pushed : {false, true})
    for (const bool cut : {false, true}) {
      TEST_MESSAGE("pushed: " << pushed << ", cut off: " << cut);
      Side side(nodes);
      for (ClientConfig& config : side.configs) config.request_timeout = timeout;
      side.connect_all();
      await_voters(side.quorum, 0b111);
      RedlockMutex<3> polled(side.quorum, "busy", calm, {.fence = true});
      SoleRedlock<RedlockReentrantLock, 3> waited(side.quorum, "hash", calm);
      const Instant start = Client::now();
      Running running([&] { return pushed ? waited.acquire(wait) : polled.acquire(wait); });
      breathe(300ms);
      if (cut)
        side.be_cut();
      else
        side.fall_silent();
      // Shortly before its time is over a waiter is sent into an attempt that nobody answers.
      breathe(600ms);
      for (std::size_t node = 0; node < 3; ++node) nodes[node].command("PUBLISH redisson_lock__channel:{hash} 0");
      TEST_ASSERT_TRUE(comes([&] { return running.ended.load(); }, 30s));
      TEST_ASSERT_TRUE(running.outcome != Status::ok);
      TEST_ASSERT_TRUE(running.ended_at - start < wait + timeout + at_once);
      side.speak();
    }
}

TEST_ON_NODES(test_acquire_without_a_wait_should_end_by_one_request_timeout, 3) {
  constexpr Duration timeout = 700ms;
  for (const bool cut : {false, true}) {
    Side side(nodes);
    for (ClientConfig& config : side.configs) config.request_timeout = timeout;
    side.connect_all();
    await_voters(side.quorum, 0b111);
    RedlockMutex<3> lock(side.quorum, "k", calm, {.fence = true});
    if (cut)
      side.be_cut();
    else
      side.fall_silent();
    const Instant start = Client::now();
    TEST_ASSERT_TRUE(lock.acquire(Duration::zero()) != Status::ok);
    TEST_ASSERT_TRUE(Client::now() - start < timeout + at_once);
    side.speak();
  }
}

// ---- The right of way --------------------------------------------------------------------------------------------

// Another lock is held by three nodes, of which two do not answer: its renewal takes its time. The hold has a majority.
TEST_ON_NODES(test_a_kept_hold_should_be_renewed_while_another_call_waits, 5) {  // [rule 18]
  std::vector<ClientConfig> configs = nodes.configs();
  for (ClientConfig& config : configs) config.request_timeout = 3s;
  Quorum<5> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  await_voters(quorum, 0b11111);
  nodes[3].command("SET other somebody");
  nodes[4].command("SET other somebody");
  RedlockMutex<5> kept(quorum, "kept", {.lease = 1500ms, .node_timeout = 1s});
  RedlockMutex<5> other(quorum, "other", calm);
  TEST_ASSERT_EQUAL(Status::ok, kept.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
  await_everywhere(nodes, kept);
  nodes[0].pause();
  nodes[1].pause();
  const Instant start = Client::now();
  const Status status = other.renew(3s);
  const Duration took = Client::now() - start;
  const bool held = kept.held();
  nodes[0].resume();
  nodes[1].resume();
  TEST_ASSERT_EQUAL(Status::no_quorum, status);
  TEST_ASSERT_TRUE(took > 2s);
  TEST_ASSERT_TRUE(held);
}
