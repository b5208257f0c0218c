// SPDX-License-Identifier: MIT
//
// Redlocks that a thread keeps while their owners do nothing. Whatever becomes of single nodes, a hold is kept while a majority
// confirms it; its owner is told of a doubt and of the end, each once, and of nothing after a release began.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/watchdog.hpp"
#include "live_nodes.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using holdfast::QuorumWatchdog;

static void setUp() {}
static void tearDown() {}

namespace {

// Short enough to be seen running out, long enough for a busy machine.
constexpr Duration lease = 3s;
constexpr QuorumTiming timing = {.lease = lease, .node_timeout = 2s, .kept = true};
// A machine that stands still for a second is no reason to lose a hold, while a node stands still for good.
constexpr QuorumTiming patient = {.lease = 2 * lease, .node_timeout = 2s, .kept = true};

// A dead node is noticed, and asked again, soon.
std::vector<ClientConfig> brisk(const LiveNodes& nodes) {
  std::vector<ClientConfig> configs = nodes.configs();
  for (ClientConfig& config : configs) config.connect_timeout = 1s;
  return configs;
}

// A quorum whose holds a watchdog keeps.
struct Guarded {
  explicit Guarded(const std::vector<ClientConfig>& configs, const QuorumConfig& config = unguarded) {
    (void)connect(quorum, configs, config);
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(quorum));
  }
  Quorum<3> quorum;
  QuorumWatchdog watchdog;
};

struct Told {
  std::atomic<int> at_risk = 0;
  std::atomic<int> lost = 0;
  std::atomic<bool> by_other_thread = true;
  std::thread::id owner = std::this_thread::get_id();
  void note(std::atomic<int>& count) {
    if (std::this_thread::get_id() == owner) by_other_thread = false;
    ++count;
  }
  [[nodiscard]] KeepOptions options() {
    return {
        .keep = Keep::always,
        .on_at_risk = [](void* self) noexcept { static_cast<Told*>(self)->note(static_cast<Told*>(self)->at_risk); },
        .on_lost = [](void* self) noexcept { static_cast<Told*>(self)->note(static_cast<Told*>(self)->lost); },
        .context = this};
  }
};

// It is held all the time from now on, for so long, and its owner calls nothing but held().
[[nodiscard]] bool stays(const QuorumLock& lock, Duration duration) {
  for (const Instant until = Client::now() + duration; Client::now() < until; breathe(5ms))
    if (!lock.held()) return false;
  return true;
}

}  // namespace

TEST_ON_NODES(test_watchdog_should_keep_redlocks_beyond_their_leases_while_the_owner_does_nothing, 3) {
  Guarded guarded(brisk(nodes));
  Told told;
  RedlockMutex<3> mutex(guarded.quorum, "m", timing, {.fence = true});
  SoleRedlock<RedlockReentrantLock, 3> hash(guarded.quorum, "h", {.lease = lease, .node_timeout = 2s});
  SoleRedlock<RedlockFencedLock, 3> fenced(guarded.quorum, "f", timing);
  RedlockMutex<3> unkept(guarded.quorum, "u", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, mutex.keep({.on_at_risk = told.options().on_at_risk, .context = &told}));
  TEST_ASSERT_EQUAL(Status::ok, hash.keep(told.options()));
  for (QuorumLock* const lock : std::array<QuorumLock*, 4>{&mutex, &hash, &fenced, &unkept})
    TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, fenced.try_acquire());
  TEST_ASSERT_TRUE(stays(mutex, 3 * lease / 2));
  TEST_ASSERT_TRUE(hash.held());
  TEST_ASSERT_TRUE(fenced.held());
  TEST_ASSERT_EQUAL(2U, fenced.hold_count());
  TEST_ASSERT_FALSE(unkept.held());
  TEST_ASSERT_TRUE(nodes.all("EXISTS m h f u", "3"));
  TEST_ASSERT_EQUAL(Status::ok, mutex.renew());  // The owner's own calls work beside it.
  TEST_ASSERT_EQUAL(Status::ok, fenced.release());
  TEST_ASSERT_TRUE(fenced.held());
  for (QuorumLock* const lock : std::array<QuorumLock*, 3>{&mutex, &hash, &fenced})
    TEST_ASSERT_EQUAL(Status::ok, lock->release());
  TEST_ASSERT_EQUAL(Status::lock_lost, unkept.release());
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS m h f u", "0"); }));
  TEST_ASSERT_EQUAL(0, told.at_risk);
  TEST_ASSERT_EQUAL(0, told.lost);
}

// All of them are due at once, and fill a node's buffer several times over.
TEST_ON_NODES(test_many_redlocks_that_are_due_together_should_all_be_kept_without_a_doubt, 3) {
  Guarded guarded(brisk(nodes));
  Told told;
  std::vector<std::unique_ptr<SoleRedlock<RedlockFencedLock, 3>>> locks;
  for (int number = 0; number < 20; ++number) {
    locks.push_back(std::make_unique<SoleRedlock<RedlockFencedLock, 3>>(
        guarded.quorum, std::string(150, 'k') + std::to_string(number),
        QuorumTiming{.lease = 2 * lease, .node_timeout = 5s}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->try_acquire());
  }
  guarded.watchdog.stop();
  breathe(lease);  // By now each is due.
  TEST_ASSERT_EQUAL(Status::ok, guarded.watchdog.start(guarded.quorum));
  TEST_ASSERT_TRUE(stays(*locks[0], 2 * lease));
  for (const auto& lock : locks) {
    TEST_ASSERT_TRUE(lock->held());
    TEST_ASSERT_EQUAL(Status::ok, lock->release());
  }
  TEST_ASSERT_EQUAL(0, told.at_risk + told.lost);
}

// A node that is dead, or stands still, costs its vote and no time; and the watchdog mends it when it comes back empty.
TEST_ON_NODES(test_hold_should_be_kept_without_one_node_which_is_mended_by_the_watchdog_alone, 3) {
  Guarded guarded(brisk(nodes));
  Told told;
  RedlockMutex<3> lock(guarded.quorum, "k", patient);
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS k", "1"); }));
  nodes[0].stop();
  nodes[1].pause();
  TEST_ASSERT_TRUE(stays(lock, patient.lease / 6));
  nodes[1].resume();
  TEST_ASSERT_TRUE(stays(lock, 3 * patient.lease / 2));
  nodes[0].start();
  TEST_ASSERT_EQUAL("0", nodes[0].command("EXISTS k"));
  TEST_ASSERT_TRUE(comes([&] { return nodes[0].command("EXISTS k") == "1"; }));
  TEST_ASSERT_EQUAL(text_of(lock.token().bytes()), nodes[0].command("GET k"));
  nodes[2].pause();
  TEST_ASSERT_TRUE(comes([&] { return lock.held_on(0); }));
  TEST_ASSERT_TRUE(stays(lock, 3 * patient.lease / 2));  // By the one that was mended.
  nodes[2].resume();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS k", "0"); }));
  TEST_ASSERT_EQUAL(0, told.lost);
}

// Its request may stay unanswered for longer than the lease. Who has the hold, and can be reached again, is asked in the same
// round.
TEST_ON_NODES(test_silent_node_should_not_keep_one_that_comes_back_out_of_the_open_round, 3, "--appendonly", "yes") {
  Guarded guarded(brisk(nodes));
  Told told;
  RedlockMutex<3> lock(guarded.quorum, "k", patient);
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const Instant granted = Client::now();
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS k", "1"); }));
  nodes[0].stop();
  nodes[2].pause();
  // The round is open, and only one of them has confirmed.
  breathe(granted + patient.lease / 3 + 200ms - Client::now());
  nodes[0].start();
  const bool stayed = stays(lock, 3 * patient.lease / 2);
  nodes[2].resume();
  TEST_ASSERT_TRUE(stayed);
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS k", "0"); }));
}

TEST_ON_NODES(test_majority_that_dies_should_be_told_as_risk_and_then_as_loss_once_and_in_time, 3) {
  Guarded guarded(brisk(nodes));
  Told told;
  RedlockMutex<3> lock(guarded.quorum, "k", timing);
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  nodes[0].pause();
  nodes[1].stop();
  bool at_risk_first = true;
  const bool lost = comes([&] {
    if (told.lost != 0 && told.at_risk == 0) at_risk_first = false;
    return told.lost != 0;
  });
  const bool held = lock.held();
  const Instant until = Client::now();
  nodes[0].resume();
  nodes[1].start();
  TEST_ASSERT_TRUE(lost);
  TEST_ASSERT_FALSE(held);
  TEST_ASSERT_TRUE(at_risk_first);
  TEST_ASSERT_TRUE(told.by_other_thread);
  TEST_ASSERT_TRUE(Client::now() - until < patience);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(1, told.at_risk);
  TEST_ASSERT_EQUAL(1, told.lost);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_TRUE(stays(lock, lease));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(1, told.lost);
}

// A majority forgot it: the watchdog finds out by its next renewal, long before the lease is over.
TEST_ON_NODES(test_loss_should_be_told_by_the_watchdog_as_soon_as_a_majority_says_so, 3) {
  Guarded guarded(brisk(nodes));
  Told told;
  RedlockMutex<3> lock(guarded.quorum, "k", {.lease = 12s, .node_timeout = 3s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS k", "1"); }));
  const Instant until = lock.valid_until();
  nodes[0].command("SET k somebody");
  nodes[2].command("SET k somebody");
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  TEST_ASSERT_TRUE(Client::now() < until);
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(told.by_other_thread);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(1, told.lost);
  TEST_ASSERT_TRUE(comes([&] { return nodes.each("GET k") == "somebody|(nil)|somebody"; }));
}

// The renewals of all nodes stand in their sockets as it is released: nothing is renewed, made anew or told after.
TEST_ON_NODES(test_release_should_overtake_no_renewal_and_leave_nothing, 3) {
  std::vector<ClientConfig> configs = brisk(nodes);
  std::vector<std::unique_ptr<Proxy>> proxies;
  for (std::size_t node = 0; node < 3; ++node) {
    proxies.push_back(std::make_unique<Proxy>(nodes[node].socket_path() + ".proxy", nodes[node].socket_path()));
    configs[node] = LiveNodes::config_at(proxies[node]->url());
  }
  Guarded guarded(configs);
  Told told;
  RedlockMutex<3> lock(guarded.quorum, "k", {.lease = 12s, .node_timeout = 3s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return lock.held_on(0) && lock.held_on(1) && lock.held_on(2); }));
  nodes[2].command("DEL k");
  const Instant due = lock.renewal_due();
  for (const auto& proxy : proxies) proxy->hold(true);
  TEST_ASSERT_TRUE(comes([&] { return lock.renewal_due() > due; }));  // Asked: none is due.
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  TEST_ASSERT_FALSE(lock.held());
  for (const auto& proxy : proxies) proxy->hold(false);
  TEST_ASSERT_TRUE(comes([&] { return guarded.quorum.compensations_pending() == 0 && nodes.all("EXISTS k", "0"); }));
  breathe(lease / 3);
  TEST_ASSERT_TRUE(nodes.all("EXISTS k", "0"));
  TEST_ASSERT_EQUAL(0, told.at_risk + told.lost);
}

// The delayed restart is the watchdog's, too. [redlock 9]
TEST(test_watchdog_should_mend_a_restarted_node_after_its_delayed_restart_only) {
  for (const std::string& binary : server_binaries()) {
    LiveNodes nodes(binary, 3);
    Guarded guarded(brisk(nodes), {.max_lease = lease});
    RedlockMutex<3> lock(guarded.quorum, "k", timing);
    await_voters(guarded.quorum, 0b111);
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
    TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS k", "1"); }));
    nodes[2].stop();
    nodes[2].start();
    bool guarded_then = false;
    TEST_ASSERT_TRUE(comes(
        [&] {
          const bool waits = guarded.quorum.seconds_until_vote(2) != 0;
          const bool empty = nodes[2].command("EXISTS k") == "0";
          guarded_then = guarded_then || (waits && empty);
          return !empty;
        },
        2 * patience));
    TEST_ASSERT_TRUE(guarded_then);
    TEST_ASSERT_EQUAL(0b111, guarded.quorum.voters());
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

// Each quorum has a thread of its own, which locks and lets go beside what is kept.
TEST_ON_NODES(test_quorums_of_several_threads_should_share_one_watchdog, 3) {
  Quorum<3> quorums[2];
  QuorumWatchdog watchdog;
  for (Quorum<3>& quorum : quorums) TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes)));
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(quorums[0]));
  TEST_ASSERT_EQUAL(Status::ok, watchdog.attach(quorums[1]));
  std::atomic<int> wrong = 0;
  const auto work = [&](std::size_t number) {
    Told told;
    RedlockMutex<3> kept(quorums[number], std::string("kept") + std::to_string(number), timing);
    RedlockMutex<3> shared(quorums[number], "shared", timing);
    if (kept.keep(told.options()) != Status::ok || kept.acquire(20s) != Status::ok) ++wrong;
    for (const Instant until = Client::now() + 3 * lease / 2; Client::now() < until;) {
      if (!kept.held()) ++wrong;
      if (shared.acquire(20s) == Status::ok && shared.release() != Status::ok) ++wrong;
      breathe(20ms);
    }
    if (kept.release() != Status::ok || told.lost != 0) ++wrong;
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  TEST_ASSERT_EQUAL(0, wrong);
  watchdog.detach(quorums[0]);
  TEST_ASSERT_EQUAL(Status::ok, watchdog.attach(quorums[0]));
}

TEST_ON_NODES(test_watchdog_should_stop_and_start_anew_and_leave_its_holds_to_tend, 3) {
  Quorum<3> quorum;
  Told told;
  QuorumWatchdog watchdog;
  TEST_ASSERT_EQUAL(Status::not_connected, watchdog.start(quorum));
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes)));
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(quorum));
  TEST_ASSERT_EQUAL(Status::already_held, watchdog.start(quorum));
  RedlockMutex<3> lock(quorum, "k", timing);
  {
    QuorumWatchdog second;
    TEST_ASSERT_EQUAL(Status::already_held, second.start(quorum));
  }
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(stays(lock, lease));
  watchdog.stop();
  TEST_ASSERT_FALSE(watchdog.running());
  TEST_ASSERT_TRUE(comes([&] { return !lock.held(); }));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  for (const Instant until = Client::now() + 3 * lease / 2; Client::now() < until; breathe(20ms)) (void)quorum.tend();
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(quorum));
  TEST_ASSERT_TRUE(stays(lock, 3 * lease / 2));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// A function of ours that takes long holds up neither the owner's calls nor, on its thread, the keeping; a release waits for it.
TEST_ON_NODES(test_release_should_wait_for_a_call_in_progress_and_no_other_call_should, 3) {
  Guarded guarded(brisk(nodes));
  struct Slow {
    std::atomic<bool> begun = false;
    std::atomic<bool> end = false;
    std::atomic<bool> over = false;
  } slow;
  SoleRedlock<RedlockReentrantLock, 3> lock(guarded.quorum, "k", {.lease = 9s, .node_timeout = 3s});
  RedlockMutex<3> other(guarded.quorum, "o", timing);
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always,
                                           .on_lost =
                                               [](void* context) noexcept {
                                                 auto& self = *static_cast<Slow*>(context);
                                                 self.begun = true;
                                                 const Instant until = Client::now() + patience;
                                                 while (!self.end && Client::now() < until) breathe(1ms);
                                                 self.over = true;
                                               },
                                           .context = &slow}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  nodes[0].command("SET k somebody");
  nodes[1].command("SET k somebody");
  TEST_ASSERT_TRUE(comes([&] { return slow.begun.load(); }));
  TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, other.renew());
  TEST_ASSERT_EQUAL(Status::ok, other.release());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.acquire(1s));
  TEST_ASSERT_FALSE(slow.over);
  std::thread ends([&] {
    breathe(50ms);
    slow.end = true;
  });
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_TRUE(slow.over);
  ends.join();
}

// The call that tells the loss goes on as the watchdog's quorum, and ends so.
TEST_ON_NODES(test_watchdog_that_is_started_in_a_function_of_ours_should_keep_what_is_held_from_then_on, 3) {
  struct World {
    Quorum<3> quorum;
    QuorumWatchdog watchdog;
    Status started = Status::not_connected;
  } world;
  TEST_ASSERT_EQUAL(Status::ok, connect(world.quorum, brisk(nodes)));
  RedlockMutex<3> first(world.quorum, "f", {.lease = 1s, .node_timeout = 900ms});
  RedlockMutex<3> second(world.quorum, "s", timing);
  TEST_ASSERT_EQUAL(Status::ok, first.keep({.keep = Keep::never,
                                            .on_lost =
                                                [](void* context) noexcept {
                                                  auto& self = *static_cast<World*>(context);
                                                  self.started = self.watchdog.start(self.quorum);
                                                },
                                            .context = &world}));
  TEST_ASSERT_EQUAL(Status::ok, first.acquire(20s));
  TEST_ASSERT_TRUE(comes([&] { return !first.held(); }));
  TEST_ASSERT_EQUAL(Status::lock_lost, first.renew());
  TEST_ASSERT_EQUAL(Status::ok, world.started);
  TEST_ASSERT_EQUAL(Status::ok, second.acquire(20s));
  TEST_ASSERT_TRUE(stays(second, 3 * lease / 2));
  TEST_ASSERT_EQUAL(Status::ok, second.release());
}

// Without a sign of life it runs out, and with one it is kept; nor is it kept beyond max_hold.
TEST_ON_NODES(test_liveness_and_max_hold_should_end_a_redlock, 3) {
  Guarded guarded(brisk(nodes));
  RedlockMutex<3> alive(guarded.quorum, "a", timing);
  RedlockMutex<3> hung(guarded.quorum, "h", timing);
  RedlockMutex<3> old(guarded.quorum, "o", timing);
  TEST_ASSERT_EQUAL(Status::ok, alive.keep({.liveness = lease / 2}));
  TEST_ASSERT_EQUAL(Status::ok, hung.keep({.liveness = lease / 6}));
  TEST_ASSERT_EQUAL(Status::ok, old.keep({.max_hold = lease / 6}));
  for (QuorumLock* const lock : std::array<QuorumLock*, 3>{&alive, &hung, &old})
    TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  TEST_ASSERT_TRUE(comes([&] {
    alive.tick();
    return !hung.held() && !old.held();
  }));
  TEST_ASSERT_TRUE(alive.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, hung.release());
  TEST_ASSERT_EQUAL(Status::lock_lost, old.release());
  TEST_ASSERT_EQUAL(Status::ok, alive.release());
}
