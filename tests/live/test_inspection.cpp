// SPDX-License-Identifier: MIT
//
// Who holds a lock, and taking it away, by the key's type alone.
#include <string>
#include <thread>

#include "clients.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

using holdfast::LockForm;
using holdfast::LockInfo;

LockInfo info_of(Client& client, const std::string& name) {
  LockInfo info;
  TEST_ASSERT_EQUAL(Status::ok, inspect(client, Key(ByteView(name)), info));
  return info;
}

}  // namespace

TEST_ON_SERVER(test_info_should_name_owner_count_and_remaining_time) {
  Client inspector;
  connected(inspector, server);
  Client client;
  Owner owner(connected(client, server));
  TEST_ASSERT_TRUE(info_of(inspector, "k").form == LockForm::free);
  FencedLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  LockInfo info = info_of(inspector, "k");
  TEST_ASSERT_TRUE(info.form == LockForm::reentrant);
  TEST_ASSERT_EQUAL(lock.token().bytes(), info.owner.view());
  TEST_ASSERT_EQUAL(std::uint64_t{2}, info.count);
  TEST_ASSERT_EQUAL(std::uint64_t{1}, info.owners);
  TEST_ASSERT_EQUAL(lock.fence(), info.fence);
  TEST_ASSERT_TRUE(info.remaining > 10s);
  TEST_ASSERT_TRUE(info.remaining <= 20s);
  Mutex mutex(client, "m", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
  info = info_of(inspector, "m");
  TEST_ASSERT_TRUE(info.form == LockForm::mutex);
  TEST_ASSERT_EQUAL(mutex.token().bytes(), info.owner.view());
  TEST_ASSERT_EQUAL(std::uint64_t{1}, info.count);
  TEST_ASSERT_EQUAL(std::uint64_t{0}, info.fence);
}

TEST_ON_SERVER(test_info_should_tell_readers_from_a_writer) {
  Client client;
  connected(client, server);
  Owner first(client);
  Owner second(client);
  ReadWriteLock lock(first, "k", {.write = {.lease = 60s}});
  ReadWriteLock other(second, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.read().try_acquire());
  LockInfo info = info_of(client, "k");
  TEST_ASSERT_TRUE(info.form == LockForm::read);
  TEST_ASSERT_EQUAL(lock.read().token().bytes(), info.owner.view());
  TEST_ASSERT_EQUAL(std::uint64_t{2}, info.count);
  TEST_ASSERT_EQUAL(std::uint64_t{1}, info.owners);
  TEST_ASSERT_EQUAL(Status::ok, other.read().try_acquire());
  info = info_of(client, "k");
  TEST_ASSERT_EQUAL(std::uint64_t{2}, info.owners);
  TEST_ASSERT_TRUE(info.remaining > 10s);
  TEST_ASSERT_TRUE(info.remaining <= 30s);
  TEST_ASSERT_EQUAL(Status::ok, other.read().release());
  TEST_ASSERT_EQUAL(Status::ok, lock.read().release());
  TEST_ASSERT_EQUAL(Status::ok, lock.read().release());
  TEST_ASSERT_EQUAL(Status::ok, lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.read().try_acquire());
  info = info_of(client, "k");
  TEST_ASSERT_TRUE(info.form == LockForm::write);
  TEST_ASSERT_EQUAL(lock.write().token().bytes(), info.owner.view());
  TEST_ASSERT_EQUAL(std::uint64_t{1}, info.count);
  TEST_ASSERT_EQUAL(std::uint64_t{1}, info.owners);
  TEST_ASSERT_TRUE(info.remaining > 40s);
  TEST_ASSERT_EQUAL(Status::ok, lock.write().release());
  TEST_ASSERT_TRUE(info_of(client, "k").form == LockForm::read);
  TEST_ASSERT_EQUAL(Status::ok, lock.read().release());
}

TEST_ON_SERVER(test_info_should_count_the_permits_of_a_semaphore) {
  Client client;
  connected(client, server);
  Semaphore first(client, "k", 3, {.lease = 60s});
  Semaphore second(client, "k", 3, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  LockInfo info = info_of(client, "k");
  TEST_ASSERT_TRUE(info.form == LockForm::semaphore);
  TEST_ASSERT_TRUE(info.permits == 3 && info.owners == 2 && info.count == 1);
  TEST_ASSERT_EQUAL(second.token().bytes(), info.owner.view());  // Which ends next.
  TEST_ASSERT_TRUE(info.remaining > 10s && info.remaining <= 20s);
  server.command({"ZADD", "{k}:timeout", "1", std::string(second.token().bytes().string_view())});
  info = info_of(client, "k");  // It has ended, and nobody has taken it back.
  TEST_ASSERT_TRUE(info.permits == 3 && info.owners == 1);
  TEST_ASSERT_EQUAL(first.token().bytes(), info.owner.view());
  TEST_ASSERT_EQUAL(Status::ok, first.release());
  TEST_ASSERT_EQUAL(Status::ok, second.release());
  // Nobody has one: a number is a string like any other.
  info = info_of(client, "k");
  TEST_ASSERT_TRUE(info.form == LockForm::mutex && info.permits == 0);
  TEST_ASSERT_EQUAL(ByteView("3"), info.owner.view());
  // What stands beside a string of digits is no permit.
  server.command("SET {k}:timeout text");
  TEST_ASSERT_TRUE(info_of(client, "k").form == LockForm::mutex);
  server.command("ACL SETUSER default -zcard");
  TEST_ASSERT_TRUE(info_of(client, "k").form == LockForm::mutex);
}

// Readers who wait for a writer are let in together: of each client all are woken. Of those who wait for readers one is.
TEST_ON_SERVER(test_forced_release_of_either_side_should_wake_as_its_own_release_does) {
  Client client;
  connected(client, server);
  for (const std::string name : {"k", "{k}", "a{b}c", "two words"}) {
    const std::string channel = "redisson_rwlock:" + (name.find('{') == std::string::npos ? "{" + name + "}" : name);
    for (const bool writes : {false, true}) {
      RawConnection listener(server.socket_path());
      listener.command({"SUBSCRIBE", channel});
      Owner owner(client);
      ReadWriteLock lock(owner, ByteView(name));
      TEST_ASSERT_EQUAL(Status::ok, writes ? lock.write().try_acquire() : lock.read().try_acquire());
      Status outcome = Status::outcome_unknown;
      std::thread waiter([&] {
        Client own;
        (void)own.connect(config_for(server.unix_url()));
        Owner me(own);
        ReadWriteLock mine(me, ByteView(name));
        outcome = writes ? mine.read().acquire(20s) : mine.write().acquire(20s);
        if (outcome == Status::ok) outcome = writes ? mine.read().release() : mine.write().release();
      });
      const auto subscribers = [&] { return server.command({"PUBSUB", "NUMSUB", channel}); };
      for (int turns = 0; turns < 5000 && subscribers() != channel + " 2"; ++turns) ::poll(nullptr, 0, 1);
      const Instant start = Client::now();
      bool released = false;
      const Status forced = force_release(client, Key(ByteView(name)), released);
      waiter.join();
      const Duration taken = Client::now() - start;
      TEST_ASSERT_EQUAL(Status::ok, forced);
      TEST_ASSERT_TRUE(released);
      TEST_ASSERT_EQUAL(Status::ok, outcome);
      TEST_ASSERT_TRUE(taken < 5s);
      TEST_ASSERT_EQUAL("message " + channel + (writes ? " 1" : " 0"), listener.command("PING"));
      TEST_ASSERT_EQUAL(Status::lock_lost, writes ? lock.write().release() : lock.read().release());
    }
  }
}

TEST_ON_SERVER(test_info_should_survive_what_is_no_lock) {
  Client client;
  connected(client, server);
  server.command({"SET", "long", std::string(100000, 'x')});
  TEST_ASSERT_EQUAL(std::size_t{128}, info_of(client, "long").owner.view().size());
  TEST_ASSERT_TRUE(info_of(client, "long").remaining == Duration::max());
  server.command("RPUSH list a b");
  TEST_ASSERT_TRUE(info_of(client, "list").form == LockForm::other);
  server.command({"HSET", "hash", std::string(100000, 'f'), std::string(100000, 'v')});
  TEST_ASSERT_EQUAL(std::size_t{128}, info_of(client, "hash").owner.view().size());
  TEST_ASSERT_EQUAL(std::uint64_t{0}, info_of(client, "hash").count);
  for (int field = 0; field < 200; ++field) server.command("HSET large " + std::to_string(field) + " 1");
  TEST_ASSERT_EQUAL(std::uint64_t{200}, info_of(client, "large").owners);
  server.command("HSET mode mode other uuid:1 2");
  TEST_ASSERT_TRUE(info_of(client, "mode").form == LockForm::other);
  server.command("HSET writer mode write uuid:1 2");  // Nobody writes.
  TEST_ASSERT_TRUE(info_of(client, "writer").form == LockForm::write);
  TEST_ASSERT_EQUAL(std::uint64_t{0}, info_of(client, "writer").count);
  TEST_ASSERT_TRUE(info_of(client, "writer").owner.empty());
  server.command("RPUSH redisson_lock_token:{hash} a");
  TEST_ASSERT_EQUAL(std::uint64_t{0}, info_of(client, "hash").fence);
  LockInfo untouched;
  TEST_ASSERT_EQUAL(Status::invalid_argument, inspect(client, Key(ByteView("")), untouched));
}

TEST_ON_SERVER(test_forced_release_should_free_either_kind_and_wake_the_waiter) {
  Client client;
  Client other;
  connected(client, server);
  Owner owner(connected(other, server));
  for (const char* const command : {"SET k somebody PX 60000", "HSET k somebody 3"}) {
    server.command(command);
    ReentrantLock lock(owner, "k", {.lease = 20s});
    Status outcome = Status::ok;
    std::thread waiter([&] { outcome = lock.acquire(20s); });
    for (int turns = 0; turns < 5000 && server.command("PUBSUB CHANNELS").empty(); ++turns) ::poll(nullptr, 0, 1);
    const Instant start = Client::now();
    bool released = false;
    TEST_ASSERT_EQUAL(Status::ok, force_release(client, Key(ByteView("k")), released));
    waiter.join();
    TEST_ASSERT_TRUE(released);
    TEST_ASSERT_EQUAL(Status::ok, outcome);
    TEST_ASSERT_TRUE(Client::now() - start < 5s);
    TEST_ASSERT_EQUAL(Status::ok, force_release(client, Key(ByteView("k")), released));
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, force_release(client, Key(ByteView("k")), released));
    TEST_ASSERT_FALSE(released);
  }
}

TEST_ON_SERVER(test_forced_release_should_refuse_what_is_no_lock) {
  Client client;
  connected(client, server);
  server.command("RPUSH k a b");
  bool released = true;
  TEST_ASSERT_EQUAL(Status::wrong_type, force_release(client, Key(ByteView("k")), released));
  TEST_ASSERT_TRUE(released);  // Untouched.
  server.command("DEL k");
  server.command("HSET k mode other uuid:1 1");
  TEST_ASSERT_EQUAL(Status::wrong_type, force_release(client, Key(ByteView("k")), released));
  TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));
}

// ---- Who waits for a fair lock -------------------------------------------------------------------------------------

TEST_ON_SERVER(test_queue_should_name_who_waits_in_order_since_when_and_when_heard_of) {
  Client inspector;
  connected(inspector, server);
  holdfast::LockQueue queue;
  queue.waiting = 7;
  TEST_ASSERT_EQUAL(Status::ok, inspect_queue(inspector, Key("{tag}k"), queue));
  TEST_ASSERT_EQUAL(std::uint64_t{0}, queue.waiting);
  TEST_ASSERT_EQUAL(std::size_t{0}, queue.told);

  const std::string time = server.command("TIME");
  const long long now =
      std::stoll(time.substr(0, time.find(' '))) * 1'000'000 + std::stoll(time.substr(time.find(' ') + 1));
  const std::string overlong(100, 'x');
  server.command({"ZADD", "holdfast_queue:{tag}k", std::to_string(now - 50'000'000), "first:1",
                  std::to_string(now - 40'000'000), "two words\nand lines", std::to_string(now + 60'000'000),
                  overlong});
  server.command("SET holdfast_beat:{tag}k:first:1 x PX 2500");
  TEST_ASSERT_EQUAL(Status::ok, inspect_queue(inspector, Key("{tag}k"), queue));
  TEST_ASSERT_EQUAL(std::uint64_t{3}, queue.waiting);
  TEST_ASSERT_EQUAL(std::size_t{3}, queue.told);
  TEST_ASSERT_EQUAL(ByteView("first:1"), queue.waiters[0].token.view());
  TEST_ASSERT_TRUE(queue.waiters[0].waited >= 50s && queue.waiters[0].waited < 80s);
  TEST_ASSERT_TRUE(queue.waiters[0].heard >= 500ms && queue.waiters[0].heard <= 3s);
  TEST_ASSERT_EQUAL(ByteView("two words?and lines"), queue.waiters[1].token.view());
  TEST_ASSERT_TRUE(queue.waiters[1].heard == Duration::max());
  TEST_ASSERT_EQUAL(ByteView(std::string(64, 'x')), queue.waiters[2].token.view());
  TEST_ASSERT_TRUE(queue.waiters[2].waited == Duration::zero());  // By a clock that was put back.

  for (int index = 0; index < 20; ++index)
    server.command("ZADD holdfast_queue:{tag}k 5 " + std::string(64, static_cast<char>('a' + index)));
  TEST_ASSERT_EQUAL(Status::ok, inspect_queue(inspector, Key("{tag}k"), queue));
  TEST_ASSERT_EQUAL(std::uint64_t{23}, queue.waiting);
  TEST_ASSERT_EQUAL(std::size_t{8}, queue.told);

  server.command("DEL holdfast_queue:{tag}k");
  server.command("SET holdfast_queue:{tag}k text");
  TEST_ASSERT_EQUAL(Status::wrong_type, inspect_queue(inspector, Key("{tag}k"), queue));
  TEST_ASSERT_EQUAL(std::uint64_t{23}, queue.waiting);  // Untouched.
  TEST_ASSERT_EQUAL(Status::invalid_argument, inspect_queue(inspector, Key(""), queue));
}
