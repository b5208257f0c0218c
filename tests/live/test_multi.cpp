// SPDX-License-Identifier: MIT
//
// Locks on several names, on real servers: all or nothing, whom they exclude, who is woken, and what a loss leaves.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "name_buffer.hpp"
#include "patience.hpp"

static void setUp() {}
static void tearDown() {}

// One text is no list of names: that each of its characters were one does not compile.
static_assert(!std::is_constructible_v<MultiLock, Owner&, char (&)[8]> &&
              !std::is_constructible_v<MultiLock, Owner&, const char (&)[8]> &&
              !std::is_constructible_v<MultiLock, Owner&, const char*> &&
              std::is_constructible_v<MultiLock, Owner&, const char* (&)[2]>);

namespace {

std::string text_of(ByteView bytes) { return std::string(bytes.string_view()); }

// A client with an owner.
struct Party {
  explicit Party(const RedisServer& server) : Party(config_for(server.unix_url())) {}
  explicit Party(const ClientConfig& config) { TEST_ASSERT_EQUAL(Status::ok, client.connect(config)); }
  Client client;
  Owner owner{client};
};

// One that asks again by itself only when nobody would wait any more: what is granted sooner was woken.
ClientConfig patient_config(const RedisServer& server) {
  ClientConfig config = config_for(server.unix_url());
  config.max_poll = 10min;
  return config;
}
constexpr Duration wait_limit = 40s;

// The whole hash of a name: "field count".
std::string hash_on(const RedisServer& server, const std::string& name) { return server.command({"HGETALL", name}); }

std::string held_by(const BlockingLock& lock, int count = 1) {
  return text_of(lock.token().bytes()) + " " + std::to_string(count);
}

// Nothing that a lock made may stay for ever.
void expect_ttls(const RedisServer& server, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (server.command({"EXISTS", name}) == "1") TEST_ASSERT_TRUE(std::stol(server.command({"PTTL", name})) > 0);
}

// An acquire on a thread of its own.
struct Waiting {
  Waiting(BlockingLock& lock, Duration limit) {
    thread = std::thread([this, &lock, limit] {
      outcome = lock.acquire(limit);
      done.store(true);
    });
  }
  ~Waiting() {
    if (thread.joinable()) thread.join();
  }
  Status join() {
    thread.join();
    return outcome;
  }
  Status outcome = Status::ok;
  std::atomic<bool> done = false;
  std::thread thread;
};

// Until somebody listens for the release of this name, and a breath for the try behind it.
void await_listener(const RedisServer& server, const std::string& name) {
  const std::string channel = "redisson_lock__channel:{" + name + "}";
  TEST_ASSERT_TRUE(comes([&] { return server.command("PUBSUB NUMSUB " + channel) == channel + " 1"; }));
  breathe(20ms);
}

}  // namespace

TEST_ON_SERVER(test_names_in_arrays_should_be_the_same_lock_whatever_follows_their_nul) {
  Party first(server);
  Party second(server);
  NameBuffer a("a", 'x');
  NameBuffer b("b", 'y');
  MultiLock mine(first.owner, {a.name, b.name}, {.lease = 20s});
  const std::string prefix;
  MultiLock temporary(second.owner, {prefix + "b", prefix + "a"}, {.lease = 20s});
  const char* const pointers[] = {b.name, a.name};
  MultiLock by_pointer(second.owner, pointers, {.lease = 20s});
  const ByteView views[] = {a.name, "b"};
  MultiLock by_view(second.owner, views, {.lease = 20s});
  NameBuffer other("a", '\0');
  MultiLock one(second.owner, {other.name}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, mine.try_acquire());
  TEST_ASSERT_EQUAL("2", server.command("EXISTS a b"));
  for (MultiLock* const lock : {&temporary, &by_pointer, &by_view, &one}) {
    TEST_ASSERT_EQUAL(ByteView("a"), lock->name(0));
    TEST_ASSERT_EQUAL(Status::lock_busy, lock->try_acquire());
  }
  TEST_ASSERT_EQUAL(Status::ok, mine.release());
}

TEST_ON_SERVER(test_hold_should_be_on_every_name_what_a_reentrant_one_is) {
  Party party(server);
  MultiLock lock(party.owner, {"b", "a", "c"}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(lock.held());
  for (const std::string name : {"a", "b", "c"}) {
    TEST_ASSERT_EQUAL(held_by(lock), hash_on(server, name));
    const long left = std::stol(server.command("PTTL " + name));
    TEST_ASSERT_TRUE(left > 10000 && left <= 20000);
  }
  TEST_ASSERT_EQUAL("3", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(":1", text_of(lock.token().bytes()).substr(36));
  TEST_ASSERT_EQUAL(ByteView("a"), lock.name(0));
  TEST_ASSERT_EQUAL(ByteView("c"), lock.name(2));
  TEST_ASSERT_TRUE(lock.name(3).empty());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
}

TEST_ON_SERVER(test_a_name_in_the_way_should_leave_all_the_others_untouched) {
  Party ours(server);
  Party theirs(server);
  MultiLock lock(ours.owner, {"a", "b", "c"}, {.lease = 20s});
  for (const std::string name : {"a", "b", "c"}) {
    ReentrantLock other(theirs.owner, name, {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
    TEST_ASSERT_EQUAL(held_by(other), hash_on(server, name));
    TEST_ASSERT_EQUAL(Status::ok, other.release());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, other.try_acquire());
    TEST_ASSERT_EQUAL(held_by(lock), hash_on(server, name));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, other.release());
  }
}

TEST_ON_SERVER(test_locks_of_overlapping_names_should_exclude_each_other) {
  Party ours(server);
  Party theirs(server);
  MultiLock left(ours.owner, {"a", "b"}, {.lease = 20s});
  MultiLock right(theirs.owner, {"b", "c"}, {.lease = 20s});
  MultiLock apart(theirs.owner, {"c", "d"}, {.lease = 20s});
  Owner second(ours.client);
  MultiLock same(second, {"a", "b"}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, left.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, right.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, same.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, apart.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, left.release());
  TEST_ASSERT_EQUAL(Status::lock_busy, right.try_acquire());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS b"));
  TEST_ASSERT_EQUAL(Status::ok, apart.release());
  TEST_ASSERT_EQUAL(Status::ok, right.try_acquire());
}

TEST_ON_SERVER(test_reentry_should_count_on_every_name) {
  Party party(server);
  MultiLock lock(party.owner, {"a", "b"}, {.lease = 20s});
  MultiLock twin(party.owner, {"b", "a", "b"}, {.lease = 20s});  // The same lock.
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, twin.try_acquire());
  TEST_ASSERT_EQUAL(3U, twin.hold_count());
  for (int count = 3; count >= 1; --count) {
    for (const std::string name : {"a", "b"}) TEST_ASSERT_EQUAL(held_by(lock, count), hash_on(server, name));
    TEST_ASSERT_TRUE(lock.held());
    if (count == 2)
      TEST_ASSERT_EQUAL(Status::ok, twin.post_release());
    else
      TEST_ASSERT_EQUAL(Status::ok, lock.release());
    bool locked = false;
    TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
    TEST_ASSERT_EQUAL(count != 1, locked);
  }
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_step_and_renewal_should_not_shorten_what_was_promised) {  // [rule 3]
  Party party(server);
  MultiLock lock(party.owner, {"a", "b"}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("PEXPIRE b 500000");
  server.command("PEXPIRE a 9000");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL a")) > 9000);
  server.command("PEXPIRE a 9000");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL a")) > 9000);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL b")) > 400000);
}

// [rule 12] Not ours on any name: nothing is created anew or extended, the whole is lost, and the rest is freed.
TEST_ON_SERVER(test_loss_of_one_name_should_be_the_loss_of_all) {
  Party party(server);
  Party others(server);
  for (const std::string name : {"a", "b", "c"}) {
    MultiLock lock(party.owner, {"a", "b", "c"}, {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    server.command("DEL " + name);
    ReentrantLock other(others.owner, name, {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_lost, name == "b" ? lock.try_acquire() : lock.renew());
    TEST_ASSERT_FALSE(lock.held());
    bool locked = false;
    TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));  // Behind the compensation.
    TEST_ASSERT_TRUE(locked);
    TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
    TEST_ASSERT_EQUAL(held_by(other), hash_on(server, name));
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, other.release());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_release_behind_a_loss_should_say_so_and_free_the_rest) {
  Party party(server);
  MultiLock lock(party.owner, {"a", "b", "c"}, {.lease = 20s});
  for (const std::string name : {"a", "b", "c"}) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    server.command("DEL " + name);
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  }
}

TEST_ON_SERVER(test_other_types_should_be_busy_or_lost_and_untouched) {
  Party party(server);
  MultiLock lock(party.owner, {"a", "b", "c"}, {.lease = 20s});
  for (const std::string name : {"a", "b", "c"}) {
    server.command("SET " + name + " text");
    TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
    TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
    for (int way = 0; way < 3; ++way) {
      server.command("DEL " + name);
      TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
      server.command("SET " + name + " text");
      if (way == 0) TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
      if (way == 1) TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
      TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
      bool locked = false;
      TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
      TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
      TEST_ASSERT_EQUAL("text", server.command("GET " + name));
    }
    server.command("DEL " + name);
  }
}

TEST_ON_SERVER(test_foreign_fields_should_be_left_alone) {
  Party party(server);
  MultiLock lock(party.owner, {"a", "b"}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("HSET a somebody 7");
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("somebody 7", hash_on(server, "a"));
  TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
}

// [rule 16] A server that has run the probe may let a script go on: then it is all names, otherwise none.
TEST_ON_SERVER(test_full_memory_should_let_go_and_leave_nothing_without_an_end) {
  Party party(server);
  Party others(server);
  MultiLock lock(party.owner, {"a", "b"}, {.lease = 20s});
  MultiLock other(others.owner, {"c", "d"}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("CONFIG SET maxmemory-policy noeviction");
  server.command("CONFIG SET maxmemory 1");
  const Status status = other.try_acquire();
  TEST_ASSERT_TRUE(status == Status::ok || status == Status::out_of_memory);
  TEST_ASSERT_EQUAL(status == Status::ok ? "2" : "0", server.command("EXISTS c d"));
  expect_ttls(server, {"c", "d"});
  if (status == Status::ok) TEST_ASSERT_EQUAL(Status::ok, other.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(held_by(lock), hash_on(server, "a"));
  expect_ttls(server, {"a", "b"});
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// [rule 16] Whatever the server refuses, and from which name on: nothing is left, and never without a TTL.
TEST_ON_SERVER(test_refused_commands_should_leave_nothing) {
  server.command("ACL SETUSER other on >secret ~* &* +@all");
  ClientConfig config = config_for(server.unix_url());
  config.user = "other";
  config.password = "secret";
  Party party(config);
  MultiLock lock(party.owner, {"a", "b", "c"}, {.lease = 20s});
  for (const char* const rule : {"-pexpire", "-hset", "-pttl"}) {
    server.command("ACL SETUSER other +@all " + std::string(rule));
    TEST_ASSERT_EQUAL(Status::no_permission, lock.try_acquire());
    server.command("ACL SETUSER other +@all");
    bool locked = true;
    TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
    TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  }
  // The second name is refused when the first was taken: where there are selectors, from 7.0.
  if (server.command("ACL SETUSER other +@all -hset (+hset ~a)")[0] == '-') return;
  TEST_ASSERT_EQUAL(Status::no_permission, lock.try_acquire());
  expect_ttls(server, {"a", "b", "c"});
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// A name that may not be given back keeps nobody from the others.
TEST_ON_SERVER(test_a_name_whose_release_is_refused_should_not_keep_the_others) {
  server.command("ACL SETUSER other on >secret ~* &* +@all");
  ClientConfig config = config_for(server.unix_url());
  config.user = "other";
  config.password = "secret";
  Party party(config);
  MultiLock lock(party.owner, {"a", "b", "c"}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  if (server.command("ACL SETUSER other +@all -hdel (+hdel ~b) (+hdel ~c)")[0] == '-') return;
  TEST_ASSERT_EQUAL(Status::no_permission, lock.release());
  TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL("1", server.command("EXISTS a"));
}

TEST_ON_SERVER(test_names_of_any_bytes_and_full_length_should_work) {
  Party party(server);
  const std::string hostile("a\r\nb\0c", 6);
  const std::string longest = std::string(key_size_max - 3 - 7 - 8, 'x');
  const std::string strange("\n\xff{ \0'", 7);
  MultiLock lock(party.owner, {longest, strange, hostile}, {.lease = 20s});
  for (int turn = 0; turn < 2; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    for (const std::string& name : {hostile, longest, strange})
      TEST_ASSERT_EQUAL(held_by(lock, 2), hash_on(server, name));
    TEST_ASSERT_EQUAL("3", server.command("DBSIZE"));
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  }
  const std::string one(name_size_max, 'y');
  MultiLock single(party.owner, {one}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, single.try_acquire());
  TEST_ASSERT_EQUAL(held_by(single), hash_on(server, one));
}

TEST_ON_SERVER(test_as_many_names_as_there_may_be_should_work_and_more_be_refused) {
  Party party(server);
  std::vector<std::string> texts;
  for (std::size_t index = 0; index <= names_max; ++index) texts.push_back("name" + std::to_string(index));
  const std::vector<ByteView> names(texts.begin(), texts.end());
  MultiLock most(party.owner, names.data(), names_max, {.lease = 20s});
  MultiLock many(party.owner, names.data(), names_max + 1, {.lease = 20s});
  MultiLock none(party.owner, names.data(), 0, {.lease = 20s});
  MultiLock empty(party.owner, {"a", ""}, {.lease = 20s});
  MultiLock longer(party.owner, {std::string(name_size_max + 1, 'x')}, {.lease = 20s});
  MultiLock large(party.owner, {std::string(128, 'x'), std::string(127, 'y')}, {.lease = 20s});
  for (MultiLock* const lock : {&many, &none, &empty, &longer, &large}) {
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock->configuration());
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock->try_acquire());
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock->acquire(1s));
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock->renew());
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock->release());
    bool locked = true;
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock->is_locked(locked));
    TEST_ASSERT_TRUE(locked);
    TEST_ASSERT_TRUE(lock->name(0).empty());
    TEST_ASSERT_FALSE(lock->held());
  }
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  for (int count = 1; count <= 2; ++count) TEST_ASSERT_EQUAL(Status::ok, most.try_acquire());
  TEST_ASSERT_EQUAL(std::to_string(names_max), server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(Status::ok, most.renew());
  for (int count = 1; count <= 2; ++count) TEST_ASSERT_EQUAL(Status::ok, most.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_remaining_time_should_be_the_longest_of_the_names) {
  Party party(server);
  MultiLock lock(party.owner, {"a", "b", "c"}, {.lease = 20s});
  Duration remaining = 1s;
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, lock.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining == Duration::zero());
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  server.command("SET b x PX 500000");
  server.command("SET c x PX 100000");
  TEST_ASSERT_EQUAL(Status::ok, lock.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining > 400s && remaining <= 500s);
  server.command("SET a x");
  TEST_ASSERT_EQUAL(Status::ok, lock.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining == remaining_unlimited);
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_TRUE(locked);
}

TEST_ON_SERVER(test_release_should_wake_those_who_wait_for_any_of_its_names) {
  for (const std::string name : {"a", "b", "{c}d"}) {
    Party ours(server);
    Party theirs(patient_config(server));
    MultiLock lock(ours.owner, {"a", "b", "{c}d"}, {.lease = 60s});
    ReentrantLock other(theirs.owner, name, {.lease = 60s});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    Waiting waiting(other, wait_limit);
    const std::string channel = "redisson_lock__channel:" + (name == "{c}d" ? name : "{" + name + "}");
    TEST_ASSERT_TRUE(comes([&] { return server.command("PUBSUB NUMSUB " + channel) == channel + " 1"; }));
    breathe(20ms);
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, waiting.join());
    TEST_ASSERT_TRUE(Client::now() - released < wait_limit);
    TEST_ASSERT_EQUAL(Status::ok, other.release());
  }
}

// A waiter listens to the one name that stays for longest, and to the next when that is free.
TEST_ON_SERVER(test_waiter_should_be_woken_by_every_name_in_the_way) {
  Party ours(patient_config(server));
  Party first(server);
  Party second(server);
  MultiLock lock(ours.owner, {"a", "b", "c"}, {.lease = 60s});
  ReentrantLock left(first.owner, "c", {.lease = 300s});
  MultiLock right(second.owner, {"b", "x"}, {.lease = 200s});
  TEST_ASSERT_EQUAL(Status::ok, left.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, right.try_acquire());
  const Instant begun = Client::now();
  Waiting waiting(lock, wait_limit);
  await_listener(server, "c");
  TEST_ASSERT_EQUAL(Status::ok, left.release());
  await_listener(server, "b");
  TEST_ASSERT_FALSE(waiting.done.load());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS a c"));
  TEST_ASSERT_EQUAL(Status::ok, right.release());
  TEST_ASSERT_EQUAL(Status::ok, waiting.join());
  TEST_ASSERT_TRUE(Client::now() - begun < wait_limit);
  TEST_ASSERT_EQUAL("3", server.command("DBSIZE"));
  TEST_ASSERT_TRUE(comes([&] { return server.command("PUBSUB CHANNELS").empty(); }));
}

TEST_ON_SERVER(test_waiter_should_follow_as_many_names_as_there_may_be) {
  Party ours(patient_config(server));
  std::vector<std::string> texts;
  for (std::size_t index = 0; index < names_max; ++index) texts.push_back("n" + std::to_string(index));
  const std::vector<ByteView> names(texts.begin(), texts.end());
  MultiLock lock(ours.owner, names.data(), names.size(), {.lease = 60s});
  // The one that is released next has the longest time to go, and they are released from the middle on.
  std::vector<std::string> order;
  for (std::size_t index = 0; index < names_max; ++index) order.push_back(texts[(index * 3 + 4) % names_max]);
  for (std::size_t index = 0; index < names_max; ++index)
    server.command("SET " + order[index] + " x PX " + std::to_string(900000 - 1000 * index));
  const Instant begun = Client::now();
  Waiting waiting(lock, wait_limit);
  for (const std::string& name : order) {
    await_listener(server, name);
    server.command("DEL " + name);
    server.command("PUBLISH redisson_lock__channel:{" + name + "} 0");
  }
  TEST_ASSERT_EQUAL(Status::ok, waiting.join());
  TEST_ASSERT_TRUE(Client::now() - begun < wait_limit);
  TEST_ASSERT_TRUE(comes([&] { return server.command("PUBSUB CHANNELS").empty(); }));
}

TEST_ON_SERVER(test_waiter_should_try_when_the_names_in_the_way_have_run_out) {
  Party ours(patient_config(server));
  MultiLock lock(ours.owner, {"a", "b", "c"}, {.lease = 60s});
  server.command("SET a x PX 200");
  server.command("SET c x PX 600");
  const Instant begun = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(wait_limit));
  TEST_ASSERT_TRUE(Client::now() - begun < wait_limit);
  server.command("SET d x");
  MultiLock never(ours.owner, {"c", "d"}, {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::lock_busy, never.acquire(50ms));
}

// Names that are given in opposite order, and single ones of them taken beside.
TEST_ON_SERVER(test_programs_with_names_in_opposite_order_should_not_deadlock) {
  constexpr int turns = 60;
  std::atomic<int> inside = 0;
  std::atomic<int> crowded = 0;
  std::atomic<int> refused = 0;
  const auto run = [&](bool reversed) {
    Client client;
    if (client.connect(config_for(server.unix_url())) != Status::ok) return;
    Owner owner(client);
    const ByteView forward[] = {"a", "b", "c"};
    const ByteView backward[] = {"c", "b", "a"};
    MultiLock lock(owner, reversed ? backward : forward, 3, {.lease = 60s});
    ReentrantLock single(owner, reversed ? "a" : "c", {.lease = 60s});
    for (int turn = 0; turn < turns; ++turn) {
      BlockingLock& taken = turn % 4 == 3 ? static_cast<BlockingLock&>(single) : lock;
      if (taken.acquire(60s) != Status::ok) {
        refused.fetch_add(1);
        continue;
      }
      if (&taken == &lock) {
        if (inside.fetch_add(1) != 0) crowded.fetch_add(1);
        inside.fetch_sub(1);
      }
      if (taken.release() != Status::ok) refused.fetch_add(1);
    }
  };
  std::thread other(run, true);
  run(false);
  other.join();
  TEST_ASSERT_EQUAL(0, crowded.load());
  TEST_ASSERT_EQUAL(0, refused.load());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// [rule 7] A lost reply is neither yes nor no: what may have been taken is taken back, from all names.
TEST_ON_SERVER(test_lost_replies_should_be_compensated_on_every_name) {
  Party party(hasty_config_for(server.unix_url()));
  MultiLock lock(party.owner, {"a", "b", "c"}, {.lease = 60s});
  const auto unanswered = [&](auto&& call) {
    server.pause();
    const Status status = call();
    server.resume();
    TEST_ASSERT_EQUAL(Status::timed_out, status);
    bool locked = false;
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.is_locked(locked); }, Status::ok));
    TEST_ASSERT_TRUE(
        comes([&] { return lock.is_locked(locked) == Status::ok && party.client.compensations_pending() == 0; }));
  };
  unanswered([&] { return lock.try_acquire(); });
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));

  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  unanswered([&] { return lock.try_acquire(); });
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  for (const std::string name : {"a", "b", "c"}) TEST_ASSERT_EQUAL(held_by(lock), hash_on(server, name));

  unanswered([&] { return lock.release(); });
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_object_that_goes_should_release_what_is_left) {
  Party party(server);
  {
    MultiLock lock(party.owner, {"a", "b"}, {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
  MultiLock next(party.owner, {"a", "c"}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, next.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, next.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_object_that_goes_should_leave_the_others_their_hold) {
  Party party(server);
  const ByteView names[] = {"a", "b"};
  std::optional<MultiLock> lock(std::in_place, party.owner, names, LockTiming{.lease = 20s});
  MultiLock twin(party.owner, {"a", "b"}, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, twin.try_acquire());
  lock.reset();  // Its record goes over to the other.
  TEST_ASSERT_EQUAL(1U, twin.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, twin.renew());
  TEST_ASSERT_EQUAL(held_by(twin), hash_on(server, "b"));
  TEST_ASSERT_EQUAL(Status::ok, twin.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_scripts_should_be_sent_anew_after_a_flush) {
  Party party(server);
  MultiLock lock(party.owner, {"a", "b"}, {.lease = 20s});
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

// [rule 12] By the watchdog's thread, many holds a call, those of several names in calls of their own.
TEST_ON_SERVER(test_watchdog_should_keep_all_names) {
  Party party(server);
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(party.client));
  std::atomic<int> lost = 0;
  {
    MultiLock lock(party.owner, {"a", "b"}, {.lease = 6s});
    MultiLock longer(party.owner, {"c", "d", "e"}, {.lease = 6s});
    ReentrantLock single(party.owner, "f", {.lease = 6s});
    const KeepOptions options = {
        .keep = Keep::always,
        .on_lost = [](void* context) noexcept { static_cast<std::atomic<int>*>(context)->fetch_add(1); },
        .context = &lost};
    for (BlockingLock* const each : {static_cast<BlockingLock*>(&lock), static_cast<BlockingLock*>(&longer),
                                     static_cast<BlockingLock*>(&single)}) {
      TEST_ASSERT_EQUAL(Status::ok, each->keep(options));
      TEST_ASSERT_EQUAL(Status::ok, each->try_acquire());
    }
    const Instant granted = longer.valid_until();
    TEST_ASSERT_TRUE(comes([&] {
      return lock.valid_until() > granted && longer.valid_until() > granted && single.valid_until() > granted;
    }));
    for (const std::string name : {"a", "b", "c", "d", "e", "f"})
      TEST_ASSERT_TRUE(std::stol(server.command("PTTL " + name)) > 0);
    TEST_ASSERT_EQUAL(0, lost.load());
    server.command("DEL d");
    TEST_ASSERT_TRUE(comes([&] { return lost.load() == 1; }));
    TEST_ASSERT_FALSE(longer.held());
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::lock_lost, longer.release());
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());  // Behind the compensation.
    TEST_ASSERT_EQUAL("0", server.command("EXISTS c d e"));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, single.release());
  }
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(std::size_t{0}, watchdog.size());
}

TEST_ON_SERVER(test_tending_should_keep_all_names) {
  Party party(server);
  MultiLock lock(party.owner, {"a", "b"});  // The automatic lease.
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(party.client.tend() < Instant::max());
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({}) == Status::already_held ? Status::ok : Status::not_held);
  MultiLock quick(party.owner, {"c", "d"}, {.lease = 3s});
  TEST_ASSERT_EQUAL(Status::ok, quick.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, quick.try_acquire());
  const Instant granted = quick.valid_until();
  TEST_ASSERT_TRUE(comes([&] {
    party.client.tend();
    return quick.valid_until() > granted;
  }));
  TEST_ASSERT_EQUAL(held_by(quick), hash_on(server, "c"));
  TEST_ASSERT_EQUAL(held_by(quick), hash_on(server, "d"));
}
