// SPDX-License-Identifier: MIT
//
// An owner's holds on a quorum: lock objects of one owner, kind and name are handles of one hold, and leave behind what the others
// acquired, whatever the order in which they acquire, release and go.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "live_nodes.hpp"
#include "quorum_clients.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// Nothing ends by itself while a test looks.
constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 12s};

struct Side {
  explicit Side(const LiveNodes& nodes) { TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs())); }
  Quorum<3> quorum;
};

void await_nothing_left(const LiveNodes& nodes, QuorumClient& quorum) {
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.compensations_pending() == 0 && nodes.all("DBSIZE", "0");
  }));
}

}  // namespace

TEST_ON_NODES(test_objects_of_one_owner_and_name_should_share_one_hold, 3) {
  Side side(nodes);
  QuorumOwner<3> owner(side.quorum);
  RedlockReentrantLock<3> first(owner, "k", calm);
  RedlockReentrantLock<3> second(owner, "k", calm);
  RedlockReentrantLock<3> other(owner, "another", calm);
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_EQUAL(2U, first.hold_count());
  TEST_ASSERT_TRUE(first.token().bytes() == second.token().bytes());
  TEST_ASSERT_FALSE(other.held());
  TEST_ASSERT_EQUAL(Status::ok, second.release());
  TEST_ASSERT_EQUAL(Status::ok, second.release());  // What the other took.
  TEST_ASSERT_FALSE(first.held());
  TEST_ASSERT_EQUAL(Status::not_held, first.release());
  await_nothing_left(nodes, side.quorum);
}

TEST_ON_NODES(test_owners_and_kinds_should_exclude_each_other, 3) {
  Side side(nodes);
  QuorumOwnerOf<3, 2> owner(side.quorum);
  QuorumOwnerOf<3, 1> another(side.quorum);
  RedlockReentrantLock<3> ours(owner, "k", calm);
  RedlockFencedLock<3> fenced(owner, "k", calm);
  RedlockReentrantLock<3> theirs(another, "k", calm);
  await_voters(side.quorum, 7);
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  await_everywhere(nodes, ours);
  TEST_ASSERT_EQUAL(Status::lock_busy, theirs.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, fenced.try_acquire());
  TEST_ASSERT_EQUAL(Status::not_held, theirs.release());
  TEST_ASSERT_TRUE(ours.held());
  // Whoever released it last, the next is granted.
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::lock_busy, theirs.try_acquire());  // Only the outermost release lets go of it.
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, theirs.acquire(20s));
  TEST_ASSERT_EQUAL(Status::lock_busy, ours.try_acquire());
}

TEST_ON_NODES(test_handles_should_go_in_any_order_and_release_what_they_acquired, 3) {
  Side side(nodes);
  QuorumOwner<3> owner(side.quorum);
  std::array<std::size_t, 3> order = {0, 1, 2};
  do {
    std::array<std::optional<RedlockReentrantLock<3>>, 3> locks;
    for (auto& lock : locks) lock.emplace(owner, "k", calm);
    for (std::size_t index = 0; index < locks.size(); ++index)
      for (std::size_t turn = 0; turn <= index; ++turn) TEST_ASSERT_EQUAL(Status::ok, locks[index]->acquire(20s));
    std::size_t left = 6;
    for (const std::size_t next : order) {
      for (const auto& lock : locks)
        if (lock.has_value()) TEST_ASSERT_EQUAL(left, std::size_t{lock->hold_count()});
      locks[next].reset();
      left -= next + 1;
    }
    await_nothing_left(nodes, side.quorum);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_ON_NODES(test_release_through_another_handle_should_not_be_made_twice, 3) {
  Side side(nodes);
  QuorumOwner<3> owner(side.quorum);
  std::optional<RedlockFencedLock<3>> first(std::in_place, owner, "k", calm);
  RedlockFencedLock<3> second(owner, "k", calm);
  for (int turn = 0; turn < 3; ++turn) TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_TRUE(second.fence() != 0 && first->fence() == second.fence());
  TEST_ASSERT_EQUAL(Status::ok, second.release());
  TEST_ASSERT_EQUAL(Status::ok, second.post_release());  // What the other took.
  first.reset();
  TEST_ASSERT_EQUAL(0U, second.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, second.acquire(20s));
  TEST_ASSERT_EQUAL(1U, second.hold_count());
  // What it has released itself is not released once more when it goes.
  first.emplace(owner, "k", calm);
  for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, first->release());
  first.reset();
  TEST_ASSERT_EQUAL(2U, second.hold_count());
}

// A handle that goes unwinds its part of a loss.
TEST_ON_NODES(test_loss_should_be_unwound_by_the_handle_that_goes, 3) {
  Side side(nodes);
  QuorumOwner<3> owner(side.quorum);
  std::optional<RedlockReentrantLock<3>> first(std::in_place, owner, "k", calm);
  RedlockReentrantLock<3> second(owner, "k", calm);
  for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  await_everywhere(nodes, second);
  (void)nodes.each("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, second.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, second.try_acquire());
  first.reset();
  TEST_ASSERT_EQUAL(Status::ok, second.acquire(20s));
  TEST_ASSERT_EQUAL(1U, second.hold_count());
}

TEST_ON_NODES(test_owner_without_a_free_place_should_refuse_one_name_more, 3) {
  Side side(nodes);
  QuorumOwnerOf<3, 1> owner(side.quorum);
  std::optional<RedlockReentrantLock<3>> first(std::in_place, owner, "first", calm);
  for (const Duration lease : {Duration(1ms), 2 * unguarded.max_lease}) {
    RedlockReentrantLock<3> wrong(owner, "first", {.lease = lease});
    TEST_ASSERT_EQUAL(Status::invalid_argument, wrong.try_acquire());
  }
  RedlockReentrantLock<3> second(owner, "second", calm);
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  for (int turn = 0; turn < 2; ++turn) {
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.configuration());
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.keep({}));
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.try_acquire());
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.acquire(1s));
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.renew());
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.release());
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.post_release());
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.forget_loss());
    TEST_ASSERT_EQUAL(Status::too_many_requests, second.node_status(0));
    TEST_ASSERT_FALSE(second.held() || second.at_risk() || second.held_on(0));
    TEST_ASSERT_EQUAL(Instant(), second.valid_until());
    TEST_ASSERT_EQUAL(Instant::max(), second.renewal_due());
    TEST_ASSERT_TRUE(second.key().bytes().empty() && second.token().empty());
    first.reset();  // An object that was refused stays so.
  }
  RedlockFencedLock<3> third(owner, "second", calm);  // The place is free.
  TEST_ASSERT_EQUAL(Status::ok, third.try_acquire());
}

TEST_ON_NODES(test_hold_should_begin_with_the_timing_of_the_handle_that_acquires_it, 3) {
  Side side(nodes);
  QuorumOwner<3> owner(side.quorum);
  RedlockReentrantLock<3> first(owner, "k", {.lease = 50s, .node_timeout = 12s});
  RedlockReentrantLock<3> second(owner, "k", {.lease = 20s, .node_timeout = 12s});
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_TRUE(first.remaining() <= 20s);
  TEST_ASSERT_EQUAL(Status::ok, first.release());
  await_nothing_left(nodes, side.quorum);
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  TEST_ASSERT_TRUE(second.remaining() > 20s);
}

TEST_ON_NODES(test_acquiring_once_more_should_raise_the_lease_of_the_hold_and_never_shorten_it, 3) {
  Side side(nodes);
  QuorumOwner<3> owner(side.quorum);
  RedlockReentrantLock<3> brief(owner, "k", {.lease = 20s, .node_timeout = 12s});
  RedlockReentrantLock<3> longer(owner, "k", {.lease = 50s, .node_timeout = 12s});
  TEST_ASSERT_EQUAL(Status::ok, brief.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, longer.try_acquire());
  TEST_ASSERT_TRUE(brief.remaining() > 20s);
  TEST_ASSERT_EQUAL(Status::ok, brief.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, longer.release());
  TEST_ASSERT_EQUAL(Status::ok, brief.renew());
  TEST_ASSERT_TRUE(brief.remaining() > 20s);  // To the outermost release.
  TEST_ASSERT_EQUAL(Status::ok, brief.release());
  TEST_ASSERT_EQUAL(Status::ok, brief.release());
  await_nothing_left(nodes, side.quorum);
}

#ifndef HOLDFAST_TEST_ASIO
// on_at_risk comes while a call of the hold waits for a majority, and takes a handle with it.
TEST_ON_NODES(test_handle_that_goes_in_a_function_of_the_hold_should_leave_its_release_to_the_end_of_the_call, 3) {
  Side side(nodes);
  QuorumOwner<3> owner(side.quorum);
  constexpr QuorumTiming short_lease = {.lease = 3s};
  std::optional<RedlockReentrantLock<3>> first(std::in_place, owner, "k", short_lease);
  RedlockReentrantLock<3> second(owner, "k", short_lease);
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.release());
  TEST_ASSERT_EQUAL(Status::ok,
                    second.keep({.on_at_risk =
                                     [](void* context) noexcept {
                                       static_cast<std::optional<RedlockReentrantLock<3>>*>(context)->reset();
                                     },
                                 .context = &first}));
  TEST_ASSERT_EQUAL(Status::ok, first->acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, second.acquire(20s));
  TEST_ASSERT_EQUAL(2U, second.hold_count());
  for (std::size_t node = 0; node < 2; ++node) nodes[node].stop();
  TEST_ASSERT_EQUAL(Status::no_quorum, second.acquire(2300ms));
  TEST_ASSERT_FALSE(first.has_value());
  TEST_ASSERT_EQUAL(1U, second.hold_count());
}

// A loss that the acquire itself finds is told at its end, and nothing of the lock is touched after that.
TEST_ON_NODES(test_on_lost_should_be_free_to_destroy_the_handle_that_acquires, 3) {
  Side side(nodes);
  struct World {
    std::unique_ptr<RedlockReentrantLock<3>> lock;
    std::unique_ptr<RedlockReentrantLock<3>> beside;
  };
  for (const bool last : {false, true}) {
    QuorumOwner<3> owner(side.quorum);
    World world;
    constexpr QuorumTiming brief = {.lease = 1s, .node_timeout = 900ms};
    world.lock = std::make_unique<RedlockReentrantLock<3>>(owner, "k", brief);
    if (!last) world.beside = std::make_unique<RedlockReentrantLock<3>>(owner, "k", brief);
    TEST_ASSERT_EQUAL(
        Status::ok,
        world.lock->keep({.keep = Keep::never,
                          .on_lost = [](void* context) noexcept { static_cast<World*>(context)->lock.reset(); },
                          .context = &world}));
    TEST_ASSERT_EQUAL(Status::ok, world.lock->acquire(20s));
    TEST_ASSERT_TRUE(comes([&] { return !world.lock->held(); }));
    RedlockReentrantLock<3>& lock = *world.lock;
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
    TEST_ASSERT_TRUE(world.lock == nullptr);
    if (world.beside != nullptr) TEST_ASSERT_EQUAL(Status::ok, world.beside->acquire(20s));
    if (world.beside != nullptr) TEST_ASSERT_EQUAL(1U, world.beside->hold_count());
    world.beside.reset();
    await_nothing_left(nodes, side.quorum);
  }
}
#endif
