// SPDX-License-Identifier: MIT
//
// The read/write lock on real servers: who shares and who excludes, what stands on the server, who is woken, and what is left
// behind.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "clients.hpp"
#include "listening_acquire.hpp"
#include "patience.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

constexpr char channel[] = "redisson_rwlock:{k}";

// One that asks again by itself only when nobody would wait any more: what is granted sooner was woken.
Client& patient(Client& client, const RedisServer& server) {
  ClientConfig config = config_for(server.unix_url());
  config.max_poll = 10min;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  return client;
}

// A client with an owner and its lock.
struct Party {
  explicit Party(const RedisServer& server, const std::string& name = "k",
                 const holdfast::ReadWriteTiming& timing = {.read = {.lease = 20s}, .write = {.lease = 20s}})
      : owner(patient(client, server)), lock(owner, ByteView(name), timing) {}
  Client client;
  Owner owner;
  ReadWriteLock lock;
};

std::string text_of(const holdfast::Token& token) { return std::string(token.bytes().string_view()); }

// The key with a reader's own time.
std::string time_key(const std::string& field, const std::string& name = "k", int place = 1) {
  const std::string tag = name.find('{') == std::string::npos ? "{" + name + "}" : name;
  return tag + ":" + field + ":rwlock_timeout:" + std::to_string(place);
}
std::string time_key(BlockingLock& side, const std::string& name = "k") {
  return time_key(text_of(side.token()), name);
}

std::string mode(const RedisServer& server) { return server.command("HGET k mode"); }
long pttl(const RedisServer& server, const std::string& key) { return std::stol(server.command({"PTTL", key})); }

// Somebody else's reader, as Redisson writes it: a count, and a key with a time for each.
void add_reader(const RedisServer& server, const std::string& field, int count, const std::string& milliseconds) {
  if (server.command("EXISTS k") == "0") server.command("HSET k mode read");
  server.command({"HSET", "k", field, std::to_string(count)});
  for (int place = 1; place <= count; ++place)
    server.command({"SET", time_key(field, "k", place), "1", "PX", milliseconds});
  if (pttl(server, "k") < std::stol(milliseconds)) server.command({"PEXPIRE", "k", milliseconds});
}

}  // namespace

// ---- Who shares ----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_readers_should_share_and_a_writer_should_exclude_all) {
  Party first(server);
  Party second(server);
  TEST_ASSERT_EQUAL(Status::ok, first.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.lock.read().try_acquire());
  Party third(server);
  TEST_ASSERT_EQUAL(Status::lock_busy, third.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, first.lock.read().release());
  TEST_ASSERT_EQUAL(Status::lock_busy, third.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.lock.read().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(Status::ok, third.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, first.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, first.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, third.lock.write().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_a_read_hold_should_be_what_redisson_looks_for) {
  for (const std::string name : {"k", "shop:{7}", "two words", "a}b"}) {
    Party party(server, name);
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
    const std::string field = text_of(party.lock.read().token());
    TEST_ASSERT_EQUAL("mode read " + field + " 1", server.command({"HGETALL", name}));
    TEST_ASSERT_EQUAL("1", server.command({"GET", time_key(field, name)}));
    TEST_ASSERT_TRUE(pttl(server, name) > 10'000 && pttl(server, name) <= 20'000);
    TEST_ASSERT_TRUE(pttl(server, time_key(field, name)) > 10'000);
    TEST_ASSERT_EQUAL("2", server.command("DBSIZE"));
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
    TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  }
}

TEST_ON_SERVER(test_a_write_hold_should_be_what_redisson_looks_for) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  TEST_ASSERT_TRUE(pttl(server, "k") > 10'000 && pttl(server, "k") <= 20'000);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  TEST_ASSERT_EQUAL("mode write " + text_of(party.lock.write().token()) + ":write 2", server.command("HGETALL k"));
  TEST_ASSERT_TRUE(pttl(server, "k") > 10'000 && pttl(server, "k") <= 20'000);  // Redisson adds the lease at each.
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().release());
  TEST_ASSERT_EQUAL("1", server.command({"HGET", "k", text_of(party.lock.write().token()) + ":write"}));
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().release());
  TEST_ASSERT_EQUAL(Status::not_held, party.lock.write().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_reading_again_should_count_on_the_server) {
  Party party(server);
  for (std::uint32_t count = 1; count <= 3; ++count) {
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
    TEST_ASSERT_EQUAL(std::to_string(count), count_on(server, party.lock.read()));
  }
  for (std::uint32_t count = 2; count >= 1; --count) {
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
    TEST_ASSERT_EQUAL(std::to_string(count), count_on(server, party.lock.read()));
    TEST_ASSERT_EQUAL(count, party.lock.read().hold_count());
  }
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// An acquisition more is a renewal: whoever else leaves must find that this reader's time runs for as long as its lease.
TEST_ON_SERVER(test_reading_again_should_extend_the_readers_own_time) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  const std::string own = time_key(party.lock.read());
  server.command({"PEXPIRE", own, "8000"});
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  TEST_ASSERT_TRUE(pttl(server, own) > 8000);
  server.command({"DEL", own});
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_TRUE(pttl(server, own) > 8000);
}

// ---- Up and down ---------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_writer_should_read_and_become_a_reader) {
  Party party(server);
  Party other(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  TEST_ASSERT_TRUE(text_of(party.lock.read().token()) != text_of(party.lock.write().token()));
  TEST_ASSERT_EQUAL("write", mode(server));
  TEST_ASSERT_EQUAL(Status::lock_busy, other.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().release());
  TEST_ASSERT_EQUAL("read", mode(server));
  TEST_ASSERT_TRUE(party.lock.read().held());
  TEST_ASSERT_EQUAL(Status::ok, other.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_EQUAL(Status::ok, other.lock.read().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_a_writer_should_stay_one_after_it_has_read) {
  Party party(server);
  Party other(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  for (int turn = 0; turn < 2; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  }
  TEST_ASSERT_EQUAL("write", mode(server));
  TEST_ASSERT_EQUAL(Status::lock_busy, other.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// It would wait for itself.
TEST_ON_SERVER(test_a_reader_who_asks_for_write_should_be_refused_at_once) {
  Party party(server);
  Party other(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  const std::string before = server.command("HGETALL k");
  TEST_ASSERT_EQUAL(Status::upgrade_refused, party.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::upgrade_refused, party.lock.write().acquire(holdfast::wait_forever));
  TEST_ASSERT_EQUAL(before, server.command("HGETALL k"));
  TEST_ASSERT_TRUE(party.lock.read().held());
  TEST_ASSERT_EQUAL(Status::ok, other.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_EQUAL(Status::lock_busy, party.lock.write().try_acquire());  // Now it is another one's.
  TEST_ASSERT_EQUAL(Status::ok, other.lock.read().release());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
}

TEST_ON_SERVER(test_lock_objects_of_one_owner_should_be_handles_of_the_same_sides) {
  Party party(server);
  ReadWriteLock again(party.owner, "k");
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, again.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().release());
  TEST_ASSERT_EQUAL(Status::upgrade_refused, party.lock.write().try_acquire());
}

TEST_ON_SERVER(test_a_lock_whose_owner_has_one_place_should_refuse_both_sides) {
  Client client;
  OwnerOf<1> owner(connected(client, server));
  {
    ReadWriteLock lock(owner, "k");
    for (BlockingLock* const side :
         {static_cast<BlockingLock*>(&lock.read()), static_cast<BlockingLock*>(&lock.write())}) {
      TEST_ASSERT_EQUAL(Status::too_many_requests, side->configuration());
      TEST_ASSERT_EQUAL(Status::too_many_requests, side->try_acquire());
      TEST_ASSERT_EQUAL(Status::too_many_requests, side->release());
    }
  }
  ReentrantLock lock(owner, "k");  // Its place is free again.
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
}

TEST_ON_SERVER(test_a_reader_with_too_long_a_lease_should_be_refused) {
  Party party(server, "k", {.read = {.lease = 31s}, .write = {.lease = 20s}});
  TEST_ASSERT_EQUAL(Status::invalid_argument, party.lock.read().configuration());
  TEST_ASSERT_EQUAL(Status::invalid_argument, party.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::invalid_argument, party.lock.write().configuration());
  TEST_ASSERT_EQUAL(Status::invalid_argument, party.lock.write().try_acquire());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// ---- Others on the server ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_lock_of_another_kind_should_exclude_both_sides) {
  Party party(server);
  Party other(server);
  ReentrantLock plain(other.owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, plain.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, party.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, party.lock.write().try_acquire());  // Redisson's writer would be let in.
  TEST_ASSERT_EQUAL(Status::ok, plain.release());
  Mutex mutex(other.client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, party.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, party.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, mutex.release());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, plain.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, mutex.try_acquire());
}

TEST_ON_SERVER(test_a_foreign_reader_should_keep_the_lock_until_its_own_time_is_over) {
  Party party(server);
  Party other(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  add_reader(server, "them:1", 2, "20000");
  server.command({"DEL", time_key("them:1")});  // The second of two is left.
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_EQUAL("mode read them:1 2", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  server.command({"DEL", time_key("them:1", "k", 2)});  // As if it had died.
  TEST_ASSERT_EQUAL(Status::lock_busy, other.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, other.lock.write().try_acquire());
}

// Whoever counts so far is no honest client, and the server has other things to do than to count with it.
TEST_ON_SERVER(test_a_foreign_count_of_any_size_should_be_believed_unseen) {
  for (const std::string count : {"101", "9007199254740993", "1e300", "-5", "none"}) {
    Party party(server);
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
    server.command({"HSET", "k", "them:1", count});
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
    const bool believed = count != "-5" && count != "none";
    TEST_ASSERT_EQUAL(believed ? "mode read them:1 " + count : std::string(), server.command("HGETALL k"));
    server.command("FLUSHALL");
  }
}

TEST_ON_SERVER(test_no_call_should_shorten_the_time_of_others) {
  Party party(server, "k", {.read = {.lease = 5s}, .write = {.lease = 5s}});
  add_reader(server, "them:1", 1, "20000");
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  TEST_ASSERT_TRUE(pttl(server, "k") > 10'000);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  TEST_ASSERT_TRUE(pttl(server, "k") > 10'000);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().renew());
  TEST_ASSERT_TRUE(pttl(server, "k") > 10'000);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_TRUE(pttl(server, "k") > 10'000);
  TEST_ASSERT_TRUE(pttl(server, time_key("them:1")) > 10'000);
}

// Nobody knows then how long the others hold it, and without one it would stay for ever.
TEST_ON_SERVER(test_a_lock_whose_ttl_was_removed_should_get_one_that_cuts_no_hold_short) {
  Party party(server, "k", {.read = {.lease = 5s}, .write = {.lease = 5s}});
  add_reader(server, "them:1", 1, "20000");
  for (int turn = 0; turn < 2; ++turn) {
    server.command("PERSIST k");
    TEST_ASSERT_EQUAL(Status::ok,
                      party.lock.read().held() ? party.lock.read().renew() : party.lock.read().try_acquire());
    TEST_ASSERT_TRUE(pttl(server, "k") > 10'000);
    server.command("PERSIST k");
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
    TEST_ASSERT_TRUE(pttl(server, "k") > 10'000);
  }
}

// ---- Renewal and loss ----------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_renewal_should_extend_the_lock_and_the_readers_own_time) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  const std::string own = time_key(party.lock.read());
  server.command("PEXPIRE k 8000");
  server.command({"PEXPIRE", own, "8000"});
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().renew());
  TEST_ASSERT_TRUE(pttl(server, "k") > 8000);
  TEST_ASSERT_TRUE(pttl(server, own) <= 8000);  // It is the reader's.
  server.command("PEXPIRE k 8000");
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().renew());
  TEST_ASSERT_TRUE(pttl(server, "k") > 8000);
  TEST_ASSERT_TRUE(pttl(server, own) > 8000);
  server.command({"DEL", own});  // Its field says that it holds: nobody else was let in.
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().renew());
  TEST_ASSERT_TRUE(pttl(server, own) > 8000);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_a_watchdog_should_keep_both_sides) {
  Client client;
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  connected(client, server);
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Owner owner(client);
  ReadWriteLock lock(owner, "k", {.read = {.lease = 6s, .kept = true}, .write = {.lease = 6s, .kept = true}});
  TEST_ASSERT_EQUAL(Status::ok, lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.read().try_acquire());
  const std::string own = time_key(lock.read());
  server.command("PEXPIRE k 4500");
  server.command({"PEXPIRE", own, "4500"});
  TEST_ASSERT_TRUE(comes([&] { return pttl(server, "k") > 4500 && pttl(server, own) > 4500; }));
  TEST_ASSERT_EQUAL(Status::ok, lock.write().release());
  server.command({"PEXPIRE", own, "4500"});
  TEST_ASSERT_TRUE(comes([&] { return pttl(server, own) > 4500; }));
  TEST_ASSERT_TRUE(lock.read().held());
  TEST_ASSERT_EQUAL(Status::ok, lock.read().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_a_hold_that_was_taken_away_should_be_lost_and_touch_nothing) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  server.command("FLUSHALL");
  add_reader(server, "them:1", 1, "20000");
  TEST_ASSERT_EQUAL(Status::lock_lost, party.lock.read().renew());
  TEST_ASSERT_FALSE(party.lock.read().held());
  TEST_ASSERT_EQUAL(Status::lock_lost, party.lock.read().release());
  TEST_ASSERT_EQUAL("mode read them:1 1", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL(Status::lock_busy,
                    party.lock.write().try_acquire());  // The own read hold is over: it is another one's.
  server.command("FLUSHALL");
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  server.command("FLUSHALL");
  server.command("SET k other PX 20000");
  TEST_ASSERT_EQUAL(Status::lock_lost, party.lock.write().renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, party.lock.write().release());
  TEST_ASSERT_EQUAL("other", server.command("GET k"));
}

TEST_ON_SERVER(test_forgotten_scripts_should_cost_no_hold) {
  Party party(server);
  for (int turn = 0; turn < 2; ++turn) {
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().renew());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, party.lock.write().release());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
    TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  }
}

TEST_ON_SERVER(test_a_full_server_should_let_holders_renew_and_release) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
  server.command("CONFIG SET maxmemory 1");
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().renew());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().renew());
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().release());
  TEST_ASSERT_EQUAL("read", mode(server));
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().release());
  server.command("CONFIG SET maxmemory 0");
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// ---- Who is woken --------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_writer_that_goes_should_wake_every_reader) {
  Party writer(server);
  Party first(server);
  Party second(server);
  TEST_ASSERT_EQUAL(Status::ok, writer.lock.write().try_acquire());
  ListeningAcquire one(server, first.lock.read(), channel);
  ListeningAcquire two(server, second.lock.read(), channel, 2);
  TEST_ASSERT_EQUAL(Status::ok, writer.lock.write().release());
  TEST_ASSERT_EQUAL(Status::ok, one.join());
  TEST_ASSERT_EQUAL(Status::ok, two.join());
}

TEST_ON_SERVER(test_a_writer_that_becomes_a_reader_should_wake_readers) {
  Party writer(server);
  Party reader(server);
  TEST_ASSERT_EQUAL(Status::ok, writer.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, writer.lock.read().try_acquire());
  ListeningAcquire one(server, reader.lock.read(), channel);
  TEST_ASSERT_EQUAL(Status::ok, writer.lock.write().release());
  TEST_ASSERT_EQUAL(Status::ok, one.join());
  TEST_ASSERT_TRUE(writer.lock.read().held());
}

TEST_ON_SERVER(test_the_last_reader_that_goes_should_wake_a_writer) {
  Party first(server);
  Party second(server);
  Party writer(server);
  TEST_ASSERT_EQUAL(Status::ok, first.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.lock.read().try_acquire());
  ListeningAcquire waiting(server, writer.lock.write(), channel);
  TEST_ASSERT_EQUAL(Status::ok, first.lock.read().release());
  breathe(20ms);
  TEST_ASSERT_FALSE(waiting.done.load());
  TEST_ASSERT_EQUAL(Status::ok, second.lock.read().release());
  TEST_ASSERT_EQUAL(Status::ok, waiting.join());
}

// ---- What is left behind -------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_lock_object_that_goes_should_let_go_of_both_sides) {
  // The client stays: of several releases that nobody has waited for a server may read the first alone where it goes, too.
  Party other(server, "other");
  {
    ReadWriteLock lock(other.owner, "k", {.read = {.lease = 20s}, .write = {.lease = 20s}});
    TEST_ASSERT_EQUAL(Status::ok, lock.write().try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.read().try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.read().try_acquire());
  }
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
}

// A user who may not write the keys beside the lock gets no lock that would stay for ever.
TEST_ON_SERVER(test_a_user_without_the_readers_keys_should_leave_nothing) {
  if (server.command("ACL SETUSER narrow on >secret ~k &redisson* +@all").find("ERR") != std::string::npos) return;
  Client client;
  ClientConfig config = config_for(server.unix_url());
  config.user = "narrow";
  config.password = "secret";
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Owner owner(client);
  ReadWriteLock lock(owner, "k", {.read = {.lease = 20s}, .write = {.lease = 20s}});
  TEST_ASSERT_EQUAL(Status::no_permission, lock.read().try_acquire());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(Status::ok, lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.write().release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// The watchdog knows of renewals that the lock object has not heard of: longer than a lease after its own last call.
TEST_ON_SERVER(test_a_writer_that_a_watchdog_keeps_should_read_long_after_its_lease) {
  Client client;
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  connected(client, server);
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Owner owner(client);
  ReadWriteLock lock(owner, "k", {.read = {.lease = 1500ms, .kept = true}, .write = {.lease = 1500ms, .kept = true}});
  TEST_ASSERT_EQUAL(Status::ok, lock.write().try_acquire());
  const Instant first_end = lock.write().valid_until();
  TEST_ASSERT_TRUE(comes([&] { return Client::now() > first_end && lock.write().held(); }));
  TEST_ASSERT_EQUAL(Status::ok, lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.write().release());
  const Instant reading_end = lock.read().valid_until();
  TEST_ASSERT_TRUE(comes([&] { return Client::now() > reading_end && lock.read().held(); }));
  TEST_ASSERT_EQUAL(Status::upgrade_refused, lock.write().try_acquire());
}

// A writer's lease may be longer than any reader's, and its reading side does not know it.
TEST_ON_SERVER(test_a_writer_whose_ttl_was_removed_should_not_be_cut_short_by_its_reading_side) {
  Party party(server, "k", {.read = {.lease = 5s}, .write = {.lease = 60s}});
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().try_acquire());
  for (int turn = 0; turn < 2; ++turn) {  // Joins, and reads again.
    server.command("PERSIST k");
    TEST_ASSERT_EQUAL(Status::ok, party.lock.read().try_acquire());
    TEST_ASSERT_TRUE(pttl(server, "k") > 40'000);
  }
  server.command("PERSIST k");
  TEST_ASSERT_EQUAL(Status::ok, party.lock.read().renew());
  TEST_ASSERT_TRUE(pttl(server, "k") > 40'000);
  server.command("PERSIST k");
  TEST_ASSERT_EQUAL(Status::ok, party.lock.write().renew());
  TEST_ASSERT_TRUE(pttl(server, "k") > 40'000 && pttl(server, "k") <= 60'000);
}

// Busy would be waited for, for ever where it is the own reader that is in the way.
TEST_ON_SERVER(test_a_user_who_may_not_look_at_a_lock_should_hear_so) {
  if (server.command("ACL SETUSER blind on >secret ~* &* +@all -hget -hexists").find("ERR") != std::string::npos)
    return;
  Party other(server);
  TEST_ASSERT_EQUAL(Status::ok, other.lock.read().try_acquire());
  Client client;
  ClientConfig config = config_for(server.unix_url());
  config.user = "blind";
  config.password = "secret";
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Owner owner(client);
  ReadWriteLock lock(owner, "k", {.read = {.lease = 20s}, .write = {.lease = 20s}});
  TEST_ASSERT_EQUAL(Status::no_permission, lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::no_permission, lock.write().try_acquire());
  TEST_ASSERT_TRUE(other.lock.read().held());
  TEST_ASSERT_EQUAL(Status::ok, other.lock.read().renew());
}
