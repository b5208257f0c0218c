// SPDX-License-Identifier: MIT
//
// Redlocks on quorums of real servers, when all is well: what is on the nodes, who is told what, and who is woken.
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "live_nodes.hpp"
#include "name_buffer.hpp"
#include "patience.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// Nothing ends by itself while a test looks.
constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 12s};
// Far above what any wake takes, far below what a waiter sleeps if nobody wakes it.
constexpr Duration soon = 8s;

const std::string channel = "redisson_lock__channel:{k}";

// The releases of all nodes come in a moment after that of a majority.
void await_nothing_left(const LiveNodes& nodes, QuorumClient& quorum) {
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.compensations_pending() == 0 && nodes.all("EXISTS k", "0");
  }));
}

// A holder's or a waiter's side of a test.
template <std::size_t count>
struct Side {
  explicit Side(const std::vector<ClientConfig>& configs) { TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs)); }
  Quorum<count> quorum;
};

// A waiter on a thread of its own.
template <class Lock>
class Waiting {
 public:
  Waiting(Lock& lock, Duration limit)
      : lock_(lock), thread_([this, limit] {
          outcome_ = lock_.acquire(limit);
          finished_ = Client::now();
          done_ = true;
        }) {}
  ~Waiting() {
    if (!done_) lock_.quorum().cancel();  // Not of the next call.
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Instant finished() const { return finished_; }
  Status join() {
    thread_.join();
    return outcome_;
  }

 private:
  Lock& lock_;
  Status outcome_ = Status::ok;
  Instant finished_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

bool subscribed(const RedisServer& server) { return server.command("PUBSUB NUMSUB " + channel) == channel + " 1"; }

long tries(const LiveNodes& nodes, std::size_t node) {
  return nodes[node].calls("evalsha") + nodes[node].calls("eval");
}

// Subscribed on these nodes, and through with the try behind it: nothing more is asked.
void await_sleep(const LiveNodes& nodes, const std::vector<std::size_t>& which) {
  for (const std::size_t node : which) TEST_ASSERT_TRUE(comes([&] { return subscribed(nodes[node]); }));
  long before = -1;
  TEST_ASSERT_TRUE(comes([&] {
    long now = 0;
    for (const std::size_t node : which) now += tries(nodes, node);
    const bool still = now == before;
    before = now;
    if (!still) breathe(50ms);
    return still;
  }));
}

// Held by every node, so that nobody else is granted anything.
void hold_everywhere(const LiveNodes& nodes, QuorumLock& lock) {
  await_voters(lock.quorum(), static_cast<NodeSet>((1U << nodes.size()) - 1));  // A majority is enough for connect().
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  await_everywhere(nodes, lock);
}

void await_silence(const LiveNodes& nodes) {
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("PUBSUB CHANNELS", ""); }));
}

}  // namespace

// ---- One holder --------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_a_name_in_an_array_should_be_the_same_redlock_whatever_follows_its_nul, 3) {
  Side<3> first(nodes.configs());
  Side<3> second(nodes.configs());
  NameBuffer ours("k", 'x');
  NameBuffer theirs("k", '\0');
  const char* const missing = nullptr;
  RedlockMutex<3> mine(first.quorum, ours.name, calm);
  RedlockMutex<3> same(second.quorum, theirs.name, calm);
  RedlockMutex<3> by_address(second.quorum, &ours.name[0], calm);
  RedlockMutex<3> nameless(second.quorum, missing, calm);
  TEST_ASSERT_EQUAL(Status::ok, mine.try_acquire());
  await_everywhere(nodes, mine);
  TEST_ASSERT_EQUAL(Status::lock_busy, same.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, by_address.try_acquire());
  TEST_ASSERT_EQUAL(Status::invalid_argument, nameless.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, mine.release());
  SoleRedlock<RedlockReentrantLock, 3> my_reentrant(first.quorum, ours.name, calm);
  SoleRedlock<RedlockReentrantLock, 3> their_reentrant(second.quorum, theirs.name, calm);
  TEST_ASSERT_EQUAL(Status::ok, my_reentrant.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, their_reentrant.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, my_reentrant.release());
}

TEST_ON_NODES(test_urls_in_arrays_should_end_at_their_nul, 3) {
  NameBuffer texts[3] = {
      {nodes[0].unix_url().c_str(), '7'}, {nodes[1].tcp_url().c_str(), '7'}, {nodes[2].unix_url().c_str(), '7'}};
  const ByteView urls[] = {texts[0].name, texts[1].name, &texts[2].name[0]};
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, quorum.connect(urls, 3, unguarded));
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.connected();
  }));
  const char* const missing = nullptr;
  const ByteView incomplete[] = {texts[0].name, missing, texts[2].name};
  Quorum<3> other;
  TEST_ASSERT_EQUAL(Status::invalid_argument, other.connect(incomplete, 3, unguarded));
}

TEST_ON_NODES(test_hold_should_be_on_every_node_and_its_release_should_leave_none, 3) {
  Side<3> side(nodes.configs());
  RedlockMutex<3> lock(side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.configuration());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  TEST_ASSERT_EQUAL(Status::not_held, lock.renew());
  const Instant before = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const Instant after = Client::now();
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_FALSE(lock.at_risk());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  // The lease, less drift, from the send.
  TEST_ASSERT_TRUE(lock.valid_until() >= before + 60s - drift_of(60s));
  TEST_ASSERT_TRUE(lock.valid_until() <= after + 60s - drift_of(60s));
  const std::string token = text_of(lock.token().bytes());
  await_everywhere(nodes, lock);
  TEST_ASSERT_TRUE(nodes.all("GET k", token));
  for (std::size_t node = 0; node < 3; ++node) {
    const long remaining = std::stol(nodes[node].command("PTTL k"));
    TEST_ASSERT_TRUE(remaining > 30000);
    TEST_ASSERT_TRUE(remaining <= 60000);
  }
  TEST_ASSERT_TRUE(comes([&] {
    (void)side.quorum.tend();
    return lock.held_on(0) && lock.held_on(1) && lock.held_on(2);
  }));
  TEST_ASSERT_EQUAL(Status::already_held, lock.try_acquire());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_FALSE(lock.held_on(0));
  TEST_ASSERT_EQUAL(Instant(), lock.valid_until());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  await_nothing_left(nodes, side.quorum);
  TEST_ASSERT_TRUE(nodes.all("DBSIZE", "0"));
}

TEST_ON_NODES(test_second_holder_should_find_it_busy_and_leave_the_first_alone, 3) {
  Side<3> first(nodes.configs());
  Side<3> second(nodes.configs());
  RedlockMutex<3> ours(first.quorum, "k", calm);
  RedlockMutex<3> theirs(second.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  const std::string token = text_of(ours.token().bytes());
  await_everywhere(nodes, ours);
  TEST_ASSERT_EQUAL(Status::lock_busy, theirs.try_acquire());
  TEST_ASSERT_FALSE(theirs.held());
  TEST_ASSERT_TRUE(contains(second.quorum.error_text(), "lock_busy"));
  TEST_ASSERT_EQUAL(Status::lock_busy, theirs.acquire(30ms));
  TEST_ASSERT_TRUE(nodes.all("GET k", token));
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, theirs.acquire(20s));
  TEST_ASSERT_FALSE(ours.held());
  TEST_ASSERT_EQUAL(Status::ok, theirs.release());
  await_nothing_left(nodes, second.quorum);
}

// Two of three are another's: what the third granted is taken back.
TEST_ON_NODES(test_minority_that_grants_should_be_released_when_the_lock_is_busy, 3) {
  Side<3> side(nodes.configs());
  RedlockMutex<3> lock(side.quorum, "k", calm);
  nodes[0].command("SET k somebody");
  nodes[2].command("SET k somebody");
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] {
    (void)side.quorum.tend();
    return side.quorum.compensations_pending() == 0 && nodes.each("GET k") == "somebody|(nil)|somebody";
  }));
  nodes[0].command("DEL k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());  // The third is still another's.
  TEST_ASSERT_FALSE(lock.held_on(2));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(comes([&] { return nodes.each("GET k") == "(nil)|(nil)|somebody"; }));
}

TEST_ON_NODES(test_renewal_should_extend_the_lease_on_every_node, 3) {
  Side<3> side(nodes.configs());
  RedlockMutex<3> lock(side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);
  const Instant until = lock.valid_until();
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("PEXPIRE k 20000");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(lock.valid_until() > until);
  TEST_ASSERT_TRUE(comes([&] {
    (void)side.quorum.tend();
    for (std::size_t node = 0; node < 3; ++node)
      if (std::stol(nodes[node].command("PTTL k")) <= 20000) return false;
    return true;
  }));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_NODES(test_kept_hold_should_outlive_its_lease_by_tending, 3) {
  Side<3> side(nodes.configs());
  RedlockMutex<3> lock(side.quorum, "k", {.lease = 3s, .node_timeout = 2s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const Instant until = lock.valid_until();
  while (Client::now() < until) {
    const Instant next = side.quorum.tend();
    TEST_ASSERT_TRUE(lock.held());
    const Instant now = Client::now();
    if (next > now) breathe(earlier(next, now + 200ms) - now);
  }
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_NODES(test_reentrant_lock_should_count_here_and_be_one_hold_there, 3) {
  Side<3> side(nodes.configs());
  Side<3> rival(nodes.configs());
  SoleRedlock<RedlockReentrantLock, 3> lock(side.quorum, "k", calm);
  SoleRedlock<RedlockReentrantLock, 3> other(rival.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::string token = text_of(lock.token().bytes());
  await_everywhere(nodes, lock);
  TEST_ASSERT_TRUE(nodes.all("HGETALL k", token + " 1"));
  const Instant until = lock.valid_until();
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
  TEST_ASSERT_EQUAL(3U, lock.hold_count());
  TEST_ASSERT_TRUE(lock.valid_until() > until);
  TEST_ASSERT_EQUAL(token, text_of(lock.token().bytes()));
  TEST_ASSERT_TRUE(nodes.all("HGETALL k", token + " 1"));
  TEST_ASSERT_EQUAL(Status::lock_busy, other.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  await_nothing_left(nodes, side.quorum);
  TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
  TEST_ASSERT_TRUE(text_of(other.token().bytes()) != token);
  TEST_ASSERT_EQUAL(Status::ok, other.release());
  await_nothing_left(nodes, rival.quorum);
}

// A hold that a majority has lost is unwound before it can be had again.
TEST_ON_NODES(test_lost_reentrant_hold_should_be_unwound_before_it_is_acquired_anew, 3) {
  Side<3> side(nodes.configs());
  SoleRedlock<RedlockReentrantLock, 3> lock(side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_NODES(test_loss_that_is_forgotten_should_not_have_to_be_unwound, 3) {
  Side<3> side(nodes.configs());
  SoleRedlock<RedlockReentrantLock, 3> lock(side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::not_held, lock.forget_loss());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::already_held, lock.forget_loss());
  await_everywhere(nodes, lock);
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.forget_loss());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

#ifndef HOLDFAST_TEST_ASIO  // Guards that acquire are those of the blocking client.
TEST_ON_NODES(test_guards_should_release_on_every_node_at_the_end_of_their_scope, 3) {
  Side<3> side(nodes.configs());
  RedlockMutex<3> lock(side.quorum, "k", calm);
  {
    const holdfast::ScopedRedlock guard(lock, 1s);
    TEST_ASSERT_TRUE(static_cast<bool>(guard));
    await_everywhere(nodes, lock);
  }
  await_nothing_left(nodes, side.quorum);
  holdfast::LockableRedlock lockable(lock);
  {
    const std::unique_lock guard(lockable);
    TEST_ASSERT_TRUE(lock.held());
    Side<3> rival(nodes.configs());
    RedlockMutex<3> other(rival.quorum, "k", calm);
    const holdfast::ScopedRedlock refused(other, 0s);
    TEST_ASSERT_EQUAL(Status::lock_busy, refused.status());
    TEST_ASSERT_FALSE(static_cast<bool>(refused));
  }
  TEST_ASSERT_FALSE(lock.held());
  await_nothing_left(nodes, side.quorum);
}
#endif

TEST_ON_NODES(test_locks_of_one_quorum_should_not_mix_up_their_replies, 3) {
  Side<3> side(nodes.configs());
  RedlockMutex<3> first(side.quorum, "k", calm);
  RedlockMutex<3> same(side.quorum, "k", calm);
  RedlockMutex<3> other(side.quorum, "other", calm, {.fence = true});
  SoleRedlock<RedlockFencedLock, 3> hash(side.quorum, "hash", calm);
  for (int turn = 0; turn < 5; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, same.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, first.release());
    TEST_ASSERT_EQUAL(Status::ok, same.acquire(20s));
    TEST_ASSERT_EQUAL(Status::ok, hash.renew());
    TEST_ASSERT_EQUAL(Status::ok, other.release());
    TEST_ASSERT_EQUAL(Status::ok, same.post_release());
    TEST_ASSERT_EQUAL(Status::ok, hash.release());
    TEST_ASSERT_FALSE(first.held() || same.held() || other.held() || hash.held());
    await_nothing_left(nodes, side.quorum);
  }
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS hash other", "0"); }));
}

// The quorum outlives them: who closes right behind a release may leave a grant on a node (rule 5).
TEST_ON_NODES(test_destructor_should_post_the_release_to_every_node, 3) {
  Side<3> side(nodes.configs());
  {
    RedlockMutex<3> mutex(side.quorum, "k", calm);
    SoleRedlock<RedlockReentrantLock, 3> hash(side.quorum, "hash", calm);
    TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
  }
  await_nothing_left(nodes, side.quorum);
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("DBSIZE", "0"); }));
}

// ---- Fences ------------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_fence_should_grow_with_every_grant_and_be_known_to_a_majority, 3) {
  Side<3> side(nodes.configs());
  Side<3> rival(nodes.configs());
  RedlockMutex<3> mutex(side.quorum, "k", calm, {.fence = true});
  RedlockMutex<3> theirs(rival.quorum, "k", calm, {.fence = true});
  std::uint64_t last = 0;
  for (int turn = 0; turn < 20; ++turn) {
    RedlockMutex<3>& lock = turn % 2 == 0 ? mutex : theirs;
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
    TEST_ASSERT_TRUE(lock.fence() > last);
    last = lock.fence();
    int written = 0;
    for (std::size_t node = 0; node < 3; ++node)
      written += nodes[node].command("GET redisson_lock_token:{k}") == std::to_string(last) ? 1 : 0;
    TEST_ASSERT_TRUE(written >= 2);
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(last, lock.fence());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

TEST_ON_NODES(test_fence_of_a_reentrant_lock_should_be_its_first_acquisitions, 3) {
  Side<3> side(nodes.configs());
  SoleRedlock<RedlockFencedLock, 3> lock(side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::uint64_t fence = lock.fence();
  TEST_ASSERT_TRUE(fence > 0);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(fence, lock.fence());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_TRUE(lock.fence() > fence);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  await_nothing_left(nodes, side.quorum);
}

// ---- Other numbers of nodes --------------------------------------------------------------------------------------

TEST_ON_NODES(test_quorum_of_one_should_need_its_node, 1) {
  std::vector<ClientConfig> configs = nodes.configs();
  configs[0].connect_timeout = 500ms;
  Side<1> side(configs);
  TEST_ASSERT_EQUAL(std::size_t{1}, side.quorum.majority());
  RedlockMutex<1> lock(side.quorum, "k", calm, {.fence = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(lock.fence() > 0);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  nodes[0].stop();
  TEST_ASSERT_EQUAL(Status::no_quorum, eventually([&] { return lock.try_acquire(); }, Status::no_quorum));
  nodes[0].start();
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
}

TEST_ON_NODES(test_quorum_of_two_should_need_both, 2) {
  Side<2> side(nodes.configs());
  TEST_ASSERT_EQUAL(std::size_t{2}, side.quorum.majority());
  RedlockMutex<2> lock(side.quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(nodes.all("EXISTS k", "1"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  nodes[1].command("SET k somebody");
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] {
    (void)side.quorum.tend();
    return nodes.each("GET k") == "(nil)|somebody";
  }));
}

TEST_ON_NODES(test_quorum_of_four_should_need_three, 4) {
  Side<4> side(nodes.configs());
  TEST_ASSERT_EQUAL(std::size_t{3}, side.quorum.majority());
  RedlockMutex<4> lock(side.quorum, "k", calm);
  nodes[0].command("SET k somebody");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  nodes[3].command("SET k somebody");
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());  // Two of four are no majority.
  TEST_ASSERT_TRUE(comes([&] {
    (void)side.quorum.tend();
    return nodes.each("GET k") == "somebody|(nil)|(nil)|somebody";
  }));
}

TEST_ON_NODES(test_quorum_of_nine_should_bear_four_and_no_fifth, 9) {
  std::vector<ClientConfig> configs = nodes.configs();
  for (ClientConfig& config : configs) config.connect_timeout = 500ms;
  Quorum<9> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  TEST_ASSERT_EQUAL(std::size_t{5}, quorum.majority());
  RedlockMutex<9> lock(quorum, "k", calm, {.fence = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  for (std::size_t node : {0U, 2U, 5U, 8U}) nodes[node].stop();
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  nodes[7].stop();
  TEST_ASSERT_EQUAL(Status::no_quorum, eventually([&] { return lock.try_acquire(); }, Status::no_quorum));
  for (std::size_t node : {1U, 3U, 4U, 6U})
    TEST_ASSERT_TRUE(comes([&] {
      (void)quorum.tend();
      return nodes[node].command("EXISTS k") == "0";
    }));
}

// ---- Waiting by push ---------------------------------------------------------------------------------------------

TEST_ON_NODES(test_release_should_wake_the_waiter_and_leave_no_subscription, 3) {
  Side<3> holding(nodes.configs());
  Side<3> waiting(nodes.configs());
  SoleRedlock<RedlockReentrantLock, 3> ours(holding.quorum, "k", calm);
  SoleRedlock<RedlockReentrantLock, 3> theirs(waiting.quorum, "k", calm);
  for (int turn = 0; turn < 3; ++turn) {
    hold_everywhere(nodes, ours);
    Waiting waiter(theirs, 60s);
    await_sleep(nodes, {0, 1, 2});
    TEST_ASSERT_FALSE(waiter.done());
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, ours.release());
    TEST_ASSERT_EQUAL(Status::ok, waiter.join());
    TEST_ASSERT_TRUE(waiter.finished() - released < soon);
    TEST_ASSERT_TRUE(theirs.held());
    TEST_ASSERT_EQUAL(Status::ok, theirs.release());
    await_nothing_left(nodes, waiting.quorum);
    await_silence(nodes);
  }
}

TEST_ON_NODES(test_announced_mutex_should_wake_its_waiter, 3) {
  Side<3> holding(nodes.configs());
  Side<3> waiting(nodes.configs());
  RedlockMutex<3> ours(holding.quorum, "k", calm, {.announce = true, .fence = true});
  RedlockMutex<3> theirs(waiting.quorum, "k", calm, {.announce = true, .fence = true});
  hold_everywhere(nodes, ours);
  const std::uint64_t fence = ours.fence();
  Waiting waiter(theirs, 60s);
  await_sleep(nodes, {0, 1, 2});
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, waiter.join());
  TEST_ASSERT_TRUE(waiter.finished() - released < soon);
  TEST_ASSERT_TRUE(theirs.fence() > fence);
  TEST_ASSERT_EQUAL(Status::ok, theirs.release());
  await_silence(nodes);
}

TEST_ON_NODES(test_waiter_should_be_woken_with_one_node_stopped, 3) {
  std::vector<ClientConfig> configs = nodes.configs();
  for (std::size_t stopped = 0; stopped < 3; ++stopped) {
    Side<3> holding(configs);
    Side<3> waiting(configs);
    SoleRedlock<RedlockReentrantLock, 3> ours(holding.quorum, "k", calm);
    // Where a release has reached one node and not the other yet, a try waits for the stopped one.
    SoleRedlock<RedlockReentrantLock, 3> theirs(waiting.quorum, "k", {.lease = 60s, .node_timeout = 500ms});
    hold_everywhere(nodes, ours);
    Waiting waiter(theirs, 60s);
    await_sleep(nodes, {0, 1, 2});
    nodes[stopped].pause();
    const Instant released = Client::now();
    const Status status = ours.release();
    const bool woken = comes([&] { return waiter.done(); }, soon);
    nodes[stopped].resume();
    TEST_ASSERT_EQUAL(Status::ok, status);
    TEST_ASSERT_TRUE(woken);
    TEST_ASSERT_EQUAL(Status::ok, waiter.join());
    TEST_ASSERT_TRUE(waiter.finished() - released < soon);
    TEST_ASSERT_EQUAL(Status::ok, theirs.release());
    await_nothing_left(nodes, holding.quorum);
    await_nothing_left(nodes, waiting.quorum);
    await_silence(nodes);
  }
}

// The releases reach the nodes one after the other: whoever is woken by the first must not sleep over the others.
TEST_ON_NODES(test_release_that_comes_node_by_node_should_not_be_slept_over, 3) {
  Proxy second(nodes[1].socket_path() + ".proxy", nodes[1].socket_path());
  Proxy third(nodes[2].socket_path() + ".proxy", nodes[2].socket_path());
  Side<3> holding({LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(second.url()),
                   LiveNodes::config_at(third.url())});
  Side<3> waiting(nodes.configs());
  SoleRedlock<RedlockReentrantLock, 3> ours(holding.quorum, "k", calm);
  SoleRedlock<RedlockReentrantLock, 3> theirs(waiting.quorum, "k", calm);
  hold_everywhere(nodes, ours);
  Waiting waiter(theirs, 60s);
  await_sleep(nodes, {0, 1, 2});
  second.hold_requests_of(Proxy::all);
  third.hold_requests_of(Proxy::all);
  const long before = tries(nodes, 1);
  TEST_ASSERT_EQUAL(Status::ok, ours.post_release());
  TEST_ASSERT_TRUE(comes([&] { return tries(nodes, 1) > before; }));  // Woken by the first.
  TEST_ASSERT_FALSE(waiter.done());
  const Instant released = Client::now();
  second.hold_requests_of(Proxy::none);
  const bool woken = comes([&] { return waiter.done(); }, soon);
  third.hold_requests_of(Proxy::none);
  TEST_ASSERT_TRUE(woken);
  TEST_ASSERT_EQUAL(Status::ok, waiter.join());
  TEST_ASSERT_TRUE(waiter.finished() - released < soon);
  TEST_ASSERT_EQUAL(Status::ok, theirs.release());
  await_nothing_left(nodes, waiting.quorum);
}

TEST_ON_NODES(test_waiter_that_may_subscribe_nowhere_should_poll, 3) {
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("ACL SETUSER default -subscribe");
  Side<3> holding(nodes.configs());
  Side<3> waiting(nodes.configs());
  SoleRedlock<RedlockReentrantLock, 3> ours(holding.quorum, "k", calm);
  SoleRedlock<RedlockReentrantLock, 3> theirs(waiting.quorum, "k", calm);
  hold_everywhere(nodes, ours);
  Waiting waiter(theirs, 60s);
  // It goes on asking.
  const long before = tries(nodes, 0);
  TEST_ASSERT_TRUE(comes([&] { return tries(nodes, 0) > before + 3; }));
  TEST_ASSERT_TRUE(nodes.all("PUBSUB CHANNELS", ""));
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, waiter.join());
  TEST_ASSERT_TRUE(waiter.finished() - released < soon);
}

TEST_ON_NODES(test_waiter_that_may_subscribe_on_one_node_should_be_woken_by_it, 3) {
  nodes[0].command("ACL SETUSER default -subscribe");
  nodes[1].command("ACL SETUSER default -subscribe");
  Side<3> holding(nodes.configs());
  Side<3> waiting(nodes.configs());
  SoleRedlock<RedlockReentrantLock, 3> ours(holding.quorum, "k", calm);
  SoleRedlock<RedlockReentrantLock, 3> theirs(waiting.quorum, "k", calm);
  hold_everywhere(nodes, ours);
  Waiting waiter(theirs, 60s);
  await_sleep(nodes, {2});
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, waiter.join());
  TEST_ASSERT_TRUE(waiter.finished() - released < soon);
  TEST_ASSERT_EQUAL(Status::ok, theirs.release());
  await_silence(nodes);
}

TEST_ON_NODES(test_cancel_from_another_thread_should_end_a_wait_by_push, 3) {
  Side<3> holding(nodes.configs());
  Side<3> waiting(nodes.configs());
  SoleRedlock<RedlockReentrantLock, 3> ours(holding.quorum, "k", calm);
  SoleRedlock<RedlockReentrantLock, 3> theirs(waiting.quorum, "k", calm);
  hold_everywhere(nodes, ours);
  const std::string token = text_of(ours.token().bytes());
  TEST_ASSERT_TRUE(nodes.all("HGETALL k", token + " 1"));
  Waiting waiter(theirs, 60s);
  await_sleep(nodes, {0, 1, 2});
  const Instant cancelled = Client::now();
  waiting.quorum.cancel();
  TEST_ASSERT_EQUAL(Status::cancelled, waiter.join());
  TEST_ASSERT_TRUE(waiter.finished() - cancelled < soon);
  await_silence(nodes);
  TEST_ASSERT_TRUE(nodes.all("HGETALL k", token + " 1"));
  TEST_ASSERT_TRUE(ours.held());
  // The next call is not concerned.
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, theirs.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, theirs.release());
}

TEST_ON_NODES(test_cancel_should_end_a_wait_by_polling, 3) {
  Side<3> waiting(nodes.configs());
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("SET k somebody");
  RedlockMutex<3> lock(waiting.quorum, "k", calm);
  Waiting waiter(lock, 60s);
  const long before = nodes[0].calls("set");
  TEST_ASSERT_TRUE(comes([&] { return nodes[0].calls("set") > before + 2; }));
  const Instant cancelled = Client::now();
  waiting.quorum.cancel();
  TEST_ASSERT_EQUAL(Status::cancelled, waiter.join());
  TEST_ASSERT_TRUE(waiter.finished() - cancelled < soon);
  TEST_ASSERT_TRUE(nodes.all("GET k", "somebody"));
}

// One node has granted, the others have not answered yet.
TEST_ON_NODES(test_what_was_granted_before_a_cancel_should_be_released, 3) {
  Proxy second(nodes[1].socket_path() + ".proxy", nodes[1].socket_path());
  Proxy third(nodes[2].socket_path() + ".proxy", nodes[2].socket_path());
  Side<3> side({LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(second.url()),
                LiveNodes::config_at(third.url())});
  RedlockMutex<3> lock(side.quorum, "k", {.lease = 60s, .node_timeout = 20s});
  second.hold_replies_of(Proxy::all);
  third.hold_requests_of(Proxy::all);
  Instant cancelled;
  {
    Waiting waiter(lock, 60s);
    TEST_ASSERT_TRUE(comes([&] { return nodes.each("EXISTS k") == "1|1|0"; }));
    TEST_ASSERT_FALSE(waiter.done());
    cancelled = Client::now();
    side.quorum.cancel();
    TEST_ASSERT_EQUAL(Status::cancelled, waiter.join());
    TEST_ASSERT_TRUE(waiter.finished() - cancelled < soon);
  }
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(comes([&] { return nodes[0].command("EXISTS k") == "0"; }));
  TEST_ASSERT_TRUE(comes([&] { return nodes[1].command("EXISTS k") == "0"; }));
  second.hold_replies_of(Proxy::none);
  third.hold_requests_of(Proxy::none);
  await_nothing_left(nodes, side.quorum);
  TEST_ASSERT_EQUAL(1, nodes[2].calls("set"));  // It came, and was taken back behind itself.
}
