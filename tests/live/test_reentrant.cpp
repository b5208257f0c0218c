// SPDX-License-Identifier: MIT
//
// The reentrant kinds on real servers: counts, owners, shared records, fences, and what is left behind.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "clients.hpp"

static void setUp() {}
static void tearDown() {}

TEST_ON_SERVER(test_hold_should_be_a_hash_of_owner_field_and_count) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::string field(lock.token().bytes().string_view());
  TEST_ASSERT_EQUAL(std::size_t{38}, field.size());
  TEST_ASSERT_EQUAL("-", field.substr(8, 1));
  TEST_ASSERT_EQUAL("4", field.substr(14, 1));
  TEST_ASSERT_EQUAL(":1", field.substr(36));
  TEST_ASSERT_EQUAL(field + " 1", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(0U, lock.hold_count());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_every_outermost_acquisition_should_have_an_ordinal_of_its_own) {  // [rule 1]
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  std::string last;
  for (int turn = 0; turn < 12; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    const std::string field(lock.token().bytes().string_view());
    TEST_ASSERT_TRUE(field != last);
    TEST_ASSERT_EQUAL(field + " 1", server.command("HGETALL k"));
    last = field;
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

TEST_ON_SERVER(test_reentry_should_count_on_the_server_and_release_should_step_down) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  for (std::uint32_t count = 1; count <= 3; ++count) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(count, lock.hold_count());
    TEST_ASSERT_EQUAL(std::to_string(count), count_on(server, lock));
  }
  for (std::uint32_t count = 2; count >= 1; --count) {
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(count, lock.hold_count());
    TEST_ASSERT_EQUAL(std::to_string(count), count_on(server, lock));
    TEST_ASSERT_TRUE(lock.held());
  }
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_owners_of_one_client_should_exclude_each_other) {
  Client client;
  connected(client, server);
  Owner first(client);
  Owner second(client);
  ReentrantLock ours(first, "k", {.lease = 20s});
  ReentrantLock theirs(second, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, theirs.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, theirs.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, ours.try_acquire());
}

TEST_ON_SERVER(test_objects_of_one_owner_and_name_should_share_one_hold) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock first(owner, "k", {.lease = 20s});
  ReentrantLock second(owner, "k", {.lease = 20s});
  ReentrantLock other(owner, "another", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_EQUAL("2", count_on(server, first));
  TEST_ASSERT_EQUAL(2U, second.hold_count());
  TEST_ASSERT_TRUE(second.held());
  TEST_ASSERT_FALSE(other.held());
  TEST_ASSERT_EQUAL(Status::ok, second.release());
  TEST_ASSERT_EQUAL(Status::ok, second.release());  // What the other took.
  TEST_ASSERT_FALSE(first.held());
  TEST_ASSERT_EQUAL(Status::not_held, first.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_object_that_goes_should_leave_the_others_their_hold) {
  Client client;
  Owner owner(connected(client, server));
  std::optional<ReentrantLock> first(std::in_place, owner, "k", LockTiming{.lease = 20s});
  ReentrantLock second(owner, "k", {.lease = 20s});
  std::optional<ReentrantLock> third(std::in_place, owner, "k", LockTiming{.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, third->try_acquire());
  third.reset();
  TEST_ASSERT_EQUAL(2U, second.hold_count());
  first.reset();
  TEST_ASSERT_TRUE(second.held());
  TEST_ASSERT_EQUAL(1U, second.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, second.renew());
  TEST_ASSERT_EQUAL("1", count_on(server, second));
  ReentrantLock fourth(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(1U, fourth.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, second.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_last_object_that_goes_should_release_what_is_left) {
  Client client;
  Owner owner(connected(client, server));
  {
    ReentrantLock lock(owner, "k", {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
  ReentrantLock next(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, next.try_acquire());
  TEST_ASSERT_EQUAL(":2", std::string(next.token().bytes().string_view()).substr(36));
}

TEST_ON_SERVER(test_posted_release_should_step_down_too) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  expect_post_outcome(Status::ok, lock);
  TEST_ASSERT_EQUAL("1", count_on(server, lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
}

TEST_ON_SERVER(test_posted_release_that_found_nothing_should_say_so_behind_a_posted_step) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());  // Answered 1, which says nothing of the next.
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  expect_post_outcome(Status::lock_lost, lock);
}

// Found by the simulator: the reply to a posted step, read while an idle connection was looked at, had the next step
// submitted; what was submitted once more was a release.
TEST_ON_SERVER(test_release_should_step_down_once_on_a_connection_that_was_idle) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());  // The server knows the script.
  for (int turn = 0; turn < 3; ++turn) TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  ::poll(nullptr, 0, 1100);  // From a second on a connection is idle.
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL("1", count_on(server, lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_SERVER(test_reentry_after_loss_should_be_refused_until_it_is_unwound) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());  // [rule 17] Absent means lost, never granted anew.
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
}

TEST_ON_SERVER(test_loss_that_is_forgotten_should_not_have_to_be_unwound) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::not_held, lock.forget_loss());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::already_held, lock.forget_loss());
  TEST_ASSERT_EQUAL("2", count_on(server, lock));
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.forget_loss());
  TEST_ASSERT_EQUAL(Status::not_held, lock.forget_loss());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  TEST_ASSERT_EQUAL("1", count_on(server, lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_step_should_not_shorten_what_was_promised) {  // [rule 3]
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("PEXPIRE k 500000");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 400000);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 400000);
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 400000);
}

TEST_ON_SERVER(test_foreign_fields_should_be_left_alone) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("HSET k somebody 7");
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("somebody 7", server.command("HGETALL k"));
}

TEST_ON_SERVER(test_other_types_and_modes_should_be_busy_or_refused_and_untouched) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock lock(owner, "k", {.lease = 20s});
  server.command("SET k text PX 100000");
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  server.command("DEL k");
  server.command("HSET k mode read uuid:1 1");
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("mode read uuid:1 1", server.command("HGETALL k"));
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("DEL k");
  server.command("SET k text");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL("text", server.command("GET k"));
}

TEST_ON_SERVER(test_fence_should_be_the_servers_time_and_grow_with_every_grant) {
  Client client;
  Owner owner(connected(client, server));
  FencedLock lock(owner, "k", {.lease = 20s});
  std::uint64_t last = 1'600'000'000'000'000;
  for (int turn = 0; turn < 5; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    const std::uint64_t fence = lock.fence();
    TEST_ASSERT_TRUE(fence > last);
    TEST_ASSERT_EQUAL(std::to_string(fence), server.command("GET redisson_lock_token:{k}"));
    TEST_ASSERT_EQUAL("-1", server.command("PTTL redisson_lock_token:{k}"));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());  // The same grant.
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(fence, lock.fence());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(fence, lock.fence());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    last = fence;
  }
  server.command("FLUSHALL");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(lock.fence() > last);
}

TEST_ON_SERVER(test_fence_should_count_on_from_a_larger_counter_without_losing_digits) {
  Client client;
  Owner owner(connected(client, server));
  FencedLock lock(owner, "{tag}k", {.lease = 20s});
  server.command("SET redisson_lock_token:{tag}k 9223372036854775800");  // Beyond 2^53.
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(std::uint64_t{9223372036854775801}, lock.fence());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  server.command("SET redisson_lock_token:{tag}k -5");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(lock.fence() > 1'600'000'000'000'000);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// Both scripts that make fences, with whatever may stand in the counter.
TEST_ON_SERVER(test_fence_should_be_larger_than_counter_and_time_or_nothing_be_taken) {
  Client client;
  Owner owner(connected(client, server));
  FencedLock hash(owner, "k", {.lease = 20s});
  Mutex text(client, "k", {.lease = 20s}, {.fence = true});
  for (BlockingLock* lock : {static_cast<BlockingLock*>(&hash), static_cast<BlockingLock*>(&text)}) {
    const auto fence = [&] { return lock == &hash ? hash.fence() : text.fence(); };
    const auto count_on = [&](const std::string& counter) {
      TEST_MESSAGE("counter '" << counter << "'");
      server.command({"SET", "redisson_lock_token:{k}", counter});
      const Status status = lock->try_acquire();
      if (status == Status::ok) {
        TEST_ASSERT_EQUAL(std::to_string(fence()), server.command("GET redisson_lock_token:{k}"));
        TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 0);
        TEST_ASSERT_EQUAL(Status::ok, lock->release());
      } else {
        TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
        TEST_ASSERT_EQUAL(counter, server.command("GET redisson_lock_token:{k}"));
      }
      return status;
    };
    for (const char* const small : {"0", "1", "-1", "-9223372036854775808", "999999999999999", "1600000000000000"}) {
      TEST_ASSERT_EQUAL(Status::ok, count_on(small));
      TEST_ASSERT_TRUE(fence() > 1'600'000'000'000'000 && fence() < 9'000'000'000'000'000);
    }
    for (const std::uint64_t large :
         {9'007'199'254'740'993U, 9'999'999'999'999'999U, 10'000'000'000'000'000U, 9'223'372'036'854'775'806U}) {
      TEST_ASSERT_EQUAL(Status::ok, count_on(std::to_string(large)));
      TEST_ASSERT_EQUAL(large + 1, fence());
    }
    for (const char* const hostile : {"9223372036854775807", "9223372036854775808", "-9223372036854775809", "text", "",
                                      "007", "-0", "+5", "1.5", "1e3", " 5", "5 ", "5x", "5\n"})
      TEST_ASSERT_TRUE(count_on(hostile) != Status::ok);
    server.command("DEL redisson_lock_token:{k}");
    server.command("RPUSH redisson_lock_token:{k} 5");
    TEST_ASSERT_TRUE(lock->try_acquire() != Status::ok);
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
    TEST_ASSERT_EQUAL("5", server.command("LRANGE redisson_lock_token:{k} 0 -1"));
    server.command("DEL redisson_lock_token:{k}");
  }
}

TEST_ON_SERVER(test_resource_should_refuse_a_smaller_fence_and_take_the_same_again) {
  Client client;
  connected(client, server);
  const Key resource("order");
  const auto write = [&](std::uint64_t fence, const char* value) {
    bool written = false;
    TEST_ASSERT_EQUAL(Status::ok, fenced_set(client, resource, fence, std::string_view(value), written));
    return written;
  };
  TEST_ASSERT_TRUE(write(9, "nine"));
  TEST_ASSERT_TRUE(write(10, "ten"));  // Longer, though it begins with a smaller digit.
  TEST_ASSERT_FALSE(write(9, "late"));
  TEST_ASSERT_TRUE(write(10, "again"));
  TEST_ASSERT_EQUAL("again", server.command("GET order"));
  TEST_ASSERT_TRUE(write(9007199254740993, "large"));
  TEST_ASSERT_FALSE(write(9007199254740992, "late"));  // The same number to Lua.
  TEST_ASSERT_EQUAL("large", server.command("GET order"));
  TEST_ASSERT_EQUAL("9007199254740993", server.command("GET holdfast_fence:{order}"));
  bool untouched = true;
  TEST_ASSERT_EQUAL(Status::invalid_argument, fenced_set(client, resource, 0, "x", untouched));
  TEST_ASSERT_EQUAL(Status::invalid_argument, fenced_set(client, resource, UINT64_MAX, "x", untouched));
  TEST_ASSERT_EQUAL(Status::buffer_too_small, fenced_set(client, resource, 1, std::string(5000, 'x'), untouched));
  server.command("RPUSH holdfast_fence:{list} a");
  TEST_ASSERT_EQUAL(Status::wrong_type, fenced_set(client, Key("list"), 5, "x", untouched));
  TEST_ASSERT_TRUE(untouched);
}

TEST_ON_SERVER(test_mutex_should_carry_a_fence_where_it_is_asked_for) {
  Client client;
  connected(client, server);
  Mutex lock(client, "k", {.lease = 20s}, {.fence = true});
  Mutex other(client, "k", {.lease = 20s}, {.announce = true, .fence = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::uint64_t first = lock.fence();
  TEST_ASSERT_TRUE(first > 1'600'000'000'000'000);
  TEST_ASSERT_EQUAL(Status::lock_busy, other.try_acquire());
  TEST_ASSERT_EQUAL(std::uint64_t{0}, other.fence());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
  TEST_ASSERT_TRUE(other.fence() > first);
  TEST_ASSERT_EQUAL(Status::ok, other.release());
  Mutex plain(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, plain.try_acquire());
  TEST_ASSERT_EQUAL(std::uint64_t{0}, plain.fence());
}

TEST_ON_SERVER(test_keys_of_any_bytes_and_full_length_should_work) {
  Client client;
  Owner owner(connected(client, server));
  const std::string key = std::string("a\r\nb\0c{", 7) + std::string(key_size_max - 7, 'x');
  FencedLock lock(owner, key, {.lease = 20s});
  for (int turn = 0; turn < 2; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL("1", server.command({"EXISTS", "redisson_lock_token:" + key}));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  FencedLock too_long(owner, key + "x", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::invalid_argument, too_long.try_acquire());
  FencedLock empty(owner, "", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::invalid_argument, empty.try_acquire());
}

TEST_ON_SERVER(test_scripts_should_be_sent_anew_after_a_flush) {
  Client client;
  Owner owner(connected(client, server));
  FencedLock lock(owner, "k", {.lease = 20s});
  for (int turn = 0; turn < 2; ++turn) {
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}
