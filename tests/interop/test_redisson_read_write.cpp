// SPDX-License-Identifier: MIT
//
// The read/write lock and Redisson's getReadWriteLock() on one server.
//
// Leases are long: a hold ends by a release, or because the test ends its keys. Who is served within woken_within was woken by
// a message, not by the end of a lease or by a poll.
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "redisson_fixture.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr const char* const sides[] = {"read", "write"};

bool is_read(const std::string& side) { return side == "read"; }

// Both sides of one lock, of an owner and a connection of its own.
struct Ours {
  explicit Ours(const RedisServer& server, const std::string& name = "k",
                const ReadWriteTiming& timing = {.read = {.lease = 30s}, .write = {.lease = 60s}})
      : lock(owner, ByteView(name), timing) {
    connect(client, server);
  }
  ReadWriteLock::Side& side(const std::string& which) { return is_read(which) ? lock.read() : lock.write(); }
  // The field of the hold in the hash.
  std::string field(const std::string& which) {
    const std::string token(side(which).token().bytes().string_view());
    return is_read(which) ? token : token + ":write";
  }

  Client client;
  OwnerOf<2> owner{client};
  ReadWriteLock lock;
};

// One of us who waits for a side of the lock on a thread of its own.
class Waiter {
 public:
  Waiter(const RedisServer& server, const std::string& name, const std::string& side)
      : ours_(server, name), side_(side) {
    thread_ = std::thread([this] {
      outcome_ = lock().acquire(bound);
      granted_at_ = Client::now();
    });
  }
  ~Waiter() {
    if (thread_.joinable()) thread_.join();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Waits for its end, and expects a grant that soon after `event`.
  ReadWriteLock::Side& granted_after(Instant event) {
    thread_.join();
    TEST_ASSERT_EQUAL(Status::ok, outcome_);
    TEST_ASSERT_TRUE(granted_at_ - event < woken_within);
    return lock();
  }

 private:
  ReadWriteLock::Side& lock() { return ours_.side(side_); }

  Ours ours_;
  std::string side_;
  Status outcome_ = Status::outcome_unknown;
  Instant granted_at_;
  std::thread thread_;
};

class ReadWriteRefusals : public Refusals {
 public:
  explicit ReadWriteRefusals(const RedisServer& server) : Refusals(server, read_write_channel) {}
};

// The same where one of theirs waits, too. A writer's message wakes those of their readers that are asleep, and is lost to one
// that was refused and is about to be: so Redisson has it with its own writers.
void await_theirs(Peer& peer, const Refusals& refusals, const std::string& name, long waiters = 1,
                  long connections = 1) {
  refusals.await_waiting(name, waiters, connections);
  TEST_ASSERT_EQUAL("ok", peer.ask("await-waiters", name));
}

// What they say to a command about one side: "read-lock", "unlock-write".
std::string ask_lock(Peer& peer, const std::string& side, const std::string& name, const std::string& terms) {
  return peer.ask(side + "-lock", name, terms);
}
std::string ask_start(Peer& peer, const std::string& side, const std::string& name, const std::string& terms) {
  return peer.ask("start-" + side + "-lock", name, terms);
}
std::string ask_unlock(Peer& peer, const std::string& side, const std::string& name = "k") {
  return peer.ask("unlock-" + side, name);
}

// Of a reader, as Redisson derives it: a key with its own time.
std::string timeout_key(const std::string& name, const std::string& field, int place = 1) {
  const std::string tag = name.find('{') == std::string::npos ? "{" + name + "}" : name;
  return tag + ":" + field + ":rwlock_timeout:" + std::to_string(place);
}

// Readers in the hash, but for `field`.
std::vector<std::string> fields_beside(const RedisServer& server, const std::string& field) {
  std::vector<std::string> others;
  std::istringstream fields(server.command("HKEYS k"));
  for (std::string word; fields >> word;)
    if (word != "mode" && word != field) others.push_back(word);
  return others;
}

long remaining(const RedisServer& server, const std::string& key) {
  return std::stol(server.command(std::vector<std::string>{"PTTL", key}));
}

// As the server does once a reader's own time is over.
void end_time_of(const RedisServer& server, const std::string& field) {
  const std::string key = timeout_key("k", field);
  TEST_ASSERT_EQUAL("1", server.command("PEXPIRE " + key + " 1"));
  TEST_ASSERT_TRUE(comes_true([&] { return server.command("EXISTS " + key) == "0"; }));
}

}  // namespace

// ---- Who is let in beside whom -----------------------------------------------------------------------------------

TEST_ON_SERVER(test_readers_of_both_should_share_and_a_writer_should_exclude_everybody) {
  Peer peer(server.port());
  for (const std::string& name : names) {
    TEST_MESSAGE("name: " << name);
    Ours ours(server, name);
    for (const std::string holder : sides)
      for (const std::string other : sides) {
        TEST_MESSAGE("holder: " << holder << ", other: " << other);
        const bool shared = is_read(holder) && is_read(other);
        TEST_ASSERT_EQUAL("granted", ask_lock(peer, holder, name, "60000 0"));
        TEST_ASSERT_EQUAL(shared ? Status::ok : Status::lock_busy, ours.side(other).try_acquire());
        TEST_ASSERT_EQUAL("yes", peer.ask("is-held-" + holder, name));
        if (shared) TEST_ASSERT_EQUAL(Status::ok, ours.side(other).release());
        TEST_ASSERT_EQUAL("ok", ask_unlock(peer, holder, name));

        TEST_ASSERT_EQUAL(Status::ok, ours.side(holder).try_acquire());
        TEST_ASSERT_EQUAL(shared ? "granted" : "busy", ask_lock(peer, other, name, "60000 0"));
        TEST_ASSERT_EQUAL("yes", peer.ask("is-locked-" + holder, name));
        TEST_ASSERT_EQUAL(shared ? "ok" : "lost", ask_unlock(peer, other, name));
        TEST_ASSERT_TRUE(ours.side(holder).held());
        TEST_ASSERT_EQUAL(Status::ok, ours.side(holder).renew());
        TEST_ASSERT_EQUAL(Status::ok, ours.side(holder).release());
        TEST_ASSERT_EQUAL("no", peer.ask("is-locked-" + holder, name));
      }
  }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_a_reader_of_ours_should_be_refused_the_write_lock_whoever_reads_beside_it) {
  Peer peer(server.port());
  Ours ours(server);
  TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::upgrade_refused, ours.lock.write().acquire(bound));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.write().try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().release());
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_what_is_locked_twice_should_be_held_until_it_is_released_twice) {
  Peer peer(server.port());
  Ours ours(server);
  for (const std::string side : sides) {
    TEST_MESSAGE("side: " << side);
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).try_acquire());
    TEST_ASSERT_EQUAL("2", server.command("HGET k " + ours.field(side)));
    TEST_ASSERT_EQUAL("0", peer.ask("hold-count-" + side + " k"));
    TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).release());
    TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).release());

    TEST_ASSERT_EQUAL("granted", ask_lock(peer, side, "k", "60000 0"));
    TEST_ASSERT_EQUAL("granted", ask_lock(peer, side, "k", "60000 0"));
    TEST_ASSERT_EQUAL("2", peer.ask("hold-count-" + side + " k"));
    TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.write().try_acquire());
    TEST_ASSERT_EQUAL("ok", ask_unlock(peer, side));
    TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.write().try_acquire());
    TEST_ASSERT_EQUAL("ok", ask_unlock(peer, side));
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().release());
  }
  // Both read twice: neither's steps touch the other's count.
  for (int turn = 0; turn < 2; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
    TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
  }
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL("2", server.command("HGET k " + ours.field("read")));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  TEST_ASSERT_EQUAL("1", peer.ask("hold-count-read k"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  expect_nothing_left(server);
}

// A lock of another kind under that name excludes ours, and the other way round. Redisson's own kinds do not look that far.
TEST_ON_SERVER(test_their_plain_lock_should_keep_our_sides_out_and_their_sides_our_other_kinds) {
  Peer peer(server.port());
  Ours ours(server);
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 60000 0"));
  for (const std::string side : sides) TEST_ASSERT_EQUAL(Status::lock_busy, ours.side(side).try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  Owner owner(ours.client);
  Mutex mutex(ours.client, "k");
  ReentrantLock reentrant(owner, "k");
  for (const std::string side : sides) {
    TEST_ASSERT_EQUAL("granted", ask_lock(peer, side, "k", "60000 0"));
    TEST_ASSERT_EQUAL(Status::lock_busy, mutex.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, reentrant.try_acquire());
    TEST_ASSERT_EQUAL("ok", ask_unlock(peer, side));
  }
  expect_nothing_left(server);
}

// ---- Who wakes whom ----------------------------------------------------------------------------------------------

// Theirs waits in each way that Redisson has: with and without a bound, with and without a lease.
TEST_ON_SERVER(test_our_release_should_wake_their_waiter) {
  Peer peer(server.port());
  Ours ours(server);
  for (const std::string holder : sides)
    for (const std::string waiter : sides) {
      if (is_read(holder) && is_read(waiter)) continue;  // It would not wait.
      for (const char* const terms : {"60000 40000", "watchdog 40000", "watchdog forever"}) {
        TEST_MESSAGE("holder: " << holder << ", waiter: " << waiter << ", lease and wait: " << std::string(terms));
        TEST_ASSERT_EQUAL(Status::ok, ours.side(holder).try_acquire());
        const ReadWriteRefusals refusals(server);
        TEST_ASSERT_EQUAL("waiting", ask_start(peer, waiter, "k", terms));
        await_theirs(peer, refusals, "k");
        TEST_ASSERT_FALSE(peer.has_event());
        const Instant released = Client::now();
        TEST_ASSERT_EQUAL(Status::ok, ours.side(holder).release());
        expect_granted_after(peer, "k", released);
        TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.write().try_acquire());
        TEST_ASSERT_EQUAL("ok", ask_unlock(peer, waiter));
        await_subscribers(server, "k", 0, read_write_channel);
      }
    }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_their_unlock_should_wake_our_waiter) {
  Peer peer(server.port());
  for (const std::string holder : sides)
    for (const std::string waiting : sides) {
      if (is_read(holder) && is_read(waiting)) continue;  // It would not wait.
      TEST_MESSAGE("holder: " << holder << ", waiter: " << waiting);
      TEST_ASSERT_EQUAL("granted", ask_lock(peer, holder, "k", "60000 0"));
      const ReadWriteRefusals refusals(server);
      Waiter waiter(server, "k", waiting);
      refusals.await_waiting("k");
      const Instant unlocked = Client::now();
      TEST_ASSERT_EQUAL("ok", ask_unlock(peer, holder));
      TEST_ASSERT_EQUAL(Status::ok, waiter.granted_after(unlocked).release());
    }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_both_should_mean_the_same_keys_and_channel_by_a_name) {
  Peer peer(server.port());
  for (const std::string& name : names) {
    TEST_MESSAGE("name: " << name);
    TEST_ASSERT_EQUAL("granted", ask_lock(peer, "read", name, "60000 0"));
    const ReadWriteRefusals refusals(server);
    Waiter waiter(server, name, "write");
    refusals.await_waiting(name);
    const Instant unlocked = Client::now();
    TEST_ASSERT_EQUAL("ok", ask_unlock(peer, "read", name));
    ReadWriteLock::Side& granted = waiter.granted_after(unlocked);
    await_subscribers(server, name, 0, read_write_channel);
    const ReadWriteRefusals theirs(server);
    TEST_ASSERT_EQUAL("waiting", ask_start(peer, "read", name, "60000 forever"));
    await_theirs(peer, theirs, name);
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, granted.release());
    expect_granted_after(peer, name, released);
    // Each finds the other's time: the lock stays for whoever is left.
    Ours ours(server, name);
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
    TEST_ASSERT_TRUE(remaining(server, timeout_key(name, ours.field("read"))) > 0);
    TEST_ASSERT_EQUAL("ok", ask_unlock(peer, "read", name));
    TEST_ASSERT_EQUAL("busy", ask_lock(peer, "write", name, "60000 0"));
    TEST_ASSERT_EQUAL("granted", ask_lock(peer, "read", name, "60000 0"));
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
    TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.write().try_acquire());
    TEST_ASSERT_EQUAL("ok", ask_unlock(peer, "read", name));
  }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_a_writers_release_should_wake_all_readers_of_both) {
  Peer peer(server.port());
  Ours ours(server);
  for (const bool theirs : {false, true}) {
    TEST_MESSAGE("the writer is " << (theirs ? "theirs" : "ours"));
    if (theirs)
      TEST_ASSERT_EQUAL("granted", peer.ask("write-lock k 60000 0"));
    else
      TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().try_acquire());
    const ReadWriteRefusals refusals(server);
    Waiter first(server, "k", "read");
    Waiter second(server, "k", "read");
    for (int turn = 0; turn < 3; ++turn) TEST_ASSERT_EQUAL("waiting", peer.ask("start-read-lock k 60000 40000"));
    await_theirs(peer, refusals, "k", 5, 3);  // Redisson subscribes once a process.
    const Instant released = Client::now();
    if (theirs)
      TEST_ASSERT_EQUAL("ok", peer.ask("unlock-write k"));
    else
      TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().release());
    for (int turn = 0; turn < 3; ++turn) expect_granted_after(peer, "k", released);
    ReadWriteLock::Side& reader = first.granted_after(released);
    TEST_ASSERT_EQUAL(Status::ok, second.granted_after(released).release());
    TEST_ASSERT_EQUAL("5", server.command("HLEN k"));  // Four readers and the mode.
    TEST_ASSERT_EQUAL(Status::ok, reader.release());
    bool freed = false;
    TEST_ASSERT_EQUAL(
        Status::ok, force_release(ours.client, Key("k"), freed));  // Three owners at once, of which the peer knows one.
    TEST_ASSERT_TRUE(freed);
    TEST_ASSERT_EQUAL("lost", peer.ask("unlock-read k"));
    // What a forced release leaves to their TTL.
    std::istringstream keys(server.command("KEYS *rwlock_timeout*"));
    for (std::string key; keys >> key;) server.command("DEL " + key);
  }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_the_last_readers_release_should_wake_a_writer) {
  Peer peer(server.port());
  for (const bool theirs_last : {false, true})
    for (const bool theirs_waits : {false, true}) {
      TEST_MESSAGE("theirs is last: " << theirs_last << ", theirs waits: " << theirs_waits);
      Ours ours(server);
      TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
      TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
      const ReadWriteRefusals refusals(server);
      std::optional<Waiter> waiter;
      if (theirs_waits)
        TEST_ASSERT_EQUAL("waiting", peer.ask("start-write-lock k 60000 40000"));
      else
        waiter.emplace(server, "k", "write");
      refusals.await_waiting("k");
      const auto leave = [&](bool theirs) {
        if (theirs)
          TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
        else
          TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
      };
      leave(!theirs_last);
      TEST_ASSERT_EQUAL("read", server.command("HGET k mode"));
      TEST_ASSERT_FALSE(peer.has_event());
      const Instant released = Client::now();
      leave(theirs_last);
      if (theirs_waits) {
        expect_granted_after(peer, "k", released);
        TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.read().try_acquire());
        TEST_ASSERT_EQUAL("ok", peer.ask("unlock-write k"));
      } else {
        ReadWriteLock::Side& granted = waiter->granted_after(released);
        TEST_ASSERT_EQUAL("busy", peer.ask("read-lock k 60000 0"));
        TEST_ASSERT_EQUAL(Status::ok, granted.release());
      }
    }
  expect_nothing_left(server);
}

// ---- A writer that becomes a reader ------------------------------------------------------------------------------

TEST_ON_SERVER(test_our_writer_that_becomes_a_reader_should_let_their_readers_in) {
  Peer peer(server.port());
  Ours ours(server);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL("busy", peer.ask("read-lock k 60000 0"));
  TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
  const ReadWriteRefusals refusals(server);
  TEST_ASSERT_EQUAL("waiting", peer.ask("start-read-lock k 60000 40000"));
  await_theirs(peer, refusals, "k");
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().release());
  expect_granted_after(peer, "k", released);
  TEST_ASSERT_EQUAL("read", server.command("HGET k mode"));
  TEST_ASSERT_TRUE(ours.lock.read().held());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().renew());
  TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_their_writer_that_becomes_a_reader_should_let_our_readers_in) {
  Peer peer(server.port());
  Ours ours(server);
  TEST_ASSERT_EQUAL("granted", peer.ask("write-lock k 60000 0"));
  TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
  TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-write k"));
  TEST_ASSERT_EQUAL("yes", peer.ask("is-held-read k"));
  // Redisson tells nobody, so this is no test of a waiter.
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().renew());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_a_writer_that_reads_should_still_be_the_only_one_after_it_has_stopped_reading) {
  Peer peer(server.port());
  Ours ours(server);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  TEST_ASSERT_EQUAL("write", server.command("HGET k mode"));
  TEST_ASSERT_EQUAL("busy", peer.ask("read-lock k 60000 0"));
  TEST_ASSERT_TRUE(ours.lock.write().held());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().release());
  TEST_ASSERT_EQUAL("granted", peer.ask("write-lock k 60000 0"));
  TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-write k"));
  expect_nothing_left(server);
}

// ---- Readers beside each other -----------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_reader_that_leaves_should_leave_the_other_ones_hold_alone) {
  Peer peer(server.port());
  Ours ours(server);
  for (const bool theirs_first : {false, true})
    for (const bool theirs_leaves : {false, true}) {
      TEST_MESSAGE("theirs comes first: " << theirs_first << ", theirs leaves: " << theirs_leaves);
      if (theirs_first) TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
      TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
      if (!theirs_first) TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
      TEST_ASSERT_TRUE(remaining(server, "k") > 40000);  // Nobody cut the longer lease short.
      const std::vector<std::string> theirs = fields_beside(server, ours.field("read"));
      TEST_ASSERT_EQUAL(1u, theirs.size());
      if (theirs_leaves) {
        TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
        TEST_ASSERT_TRUE(ours.lock.read().held());
        TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().renew());
        TEST_ASSERT_EQUAL("1", server.command("HGET k " + ours.field("read")));
        TEST_ASSERT_TRUE(fields_beside(server, ours.field("read")).empty());
        TEST_ASSERT_TRUE(remaining(server, timeout_key("k", ours.field("read"))) > 15000);
        TEST_ASSERT_EQUAL("0", server.command("EXISTS " + timeout_key("k", theirs[0])));
        TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
        TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
      } else {
        TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
        TEST_ASSERT_EQUAL("yes", peer.ask("is-held-read k"));
        TEST_ASSERT_EQUAL("1", peer.ask("hold-count-read k"));
        TEST_ASSERT_TRUE(remaining(server, timeout_key("k", theirs[0])) > 40000);
        TEST_ASSERT_TRUE(remaining(server, "k") > 40000);
        TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.write().try_acquire());
        TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
      }
      TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
    }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_our_readers_hold_should_outlive_their_reader_with_a_shorter_lease) {
  Peer peer(server.port());
  Ours ours(server);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 10000 0"));
  TEST_ASSERT_TRUE(remaining(server, "k") > 10000);
  end_time_of(server, fields_beside(server, ours.field("read")).at(0));
  // Its field is still there: Redisson leaves it.
  TEST_ASSERT_EQUAL(1u, fields_beside(server, ours.field("read")).size());
  TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
  TEST_ASSERT_TRUE(ours.lock.read().held());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().renew());
  // And it does not keep the lock after us, nor its own unlock take it from us.
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().renew());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  expect_nothing_left(server);
}

// Their reader that leaves asks for how long the others' own times run.
TEST_ON_SERVER(test_what_renews_our_hold_should_renew_its_own_time_for_their_readers_to_see) {
  Peer peer(server.port());
  Ours ours(server);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
  const std::string own_time = timeout_key("k", ours.field("read"));
  for (const bool gone : {false, true})
    for (const bool again : {false, true}) {
      TEST_MESSAGE("it is gone: " << gone << ", it is acquired again: " << again);
      TEST_ASSERT_EQUAL("1", server.command(gone ? "DEL " + own_time : "PEXPIRE " + own_time + " 10000"));
      TEST_ASSERT_EQUAL(Status::ok, again ? ours.lock.read().try_acquire() : ours.lock.read().renew());
      TEST_ASSERT_TRUE(remaining(server, own_time) > 10000);
      TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
      TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
      TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 0"));
      TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().renew());
    }
  while (ours.lock.read().hold_count() > 0) TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  expect_nothing_left(server);
}

// The field of one that died is no reader.
TEST_ON_SERVER(test_a_reader_whose_time_is_over_should_keep_no_writer_out_once_the_others_have_left) {
  Peer peer(server.port());
  for (const bool theirs_died : {false, true}) {
    TEST_MESSAGE("theirs died: " << theirs_died);
    Ours ours(server);
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
    TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
    end_time_of(server, theirs_died ? fields_beside(server, ours.field("read")).at(0) : ours.field("read"));
    const ReadWriteRefusals refusals(server);
    Waiter waiter(server, "k", "write");
    refusals.await_waiting("k");
    const Instant released = Client::now();
    if (theirs_died)
      TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
    else
      TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
    ReadWriteLock::Side& granted = waiter.granted_after(released);
    if (theirs_died)
      TEST_ASSERT_EQUAL("lost", peer.ask("unlock-read k"));
    else
      TEST_ASSERT_EQUAL(Status::lock_lost, ours.lock.read().release());
    TEST_ASSERT_EQUAL(Status::ok, granted.renew());
    TEST_ASSERT_EQUAL(Status::ok, granted.release());
  }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_a_late_release_should_leave_the_next_holder_alone) {
  Peer peer(server.port());
  Ours ours(server);
  for (const std::string late : sides)
    for (const std::string next : sides) {
      TEST_MESSAGE("late: " << late << ", next: " << next);
      const auto end_all = [&] {  // As the server does once all leases are over.
        std::istringstream keys(server.command("KEYS *"));
        for (std::string key; keys >> key;) server.command("PEXPIRE " + key + " 1");
        TEST_ASSERT_TRUE(comes_true([&] { return server.command("EXISTS k") == "0"; }));
      };
      TEST_ASSERT_EQUAL("granted", ask_lock(peer, late, "k", "60000 0"));
      end_all();
      TEST_ASSERT_EQUAL(Status::ok, ours.side(next).try_acquire());
      TEST_ASSERT_EQUAL("lost", ask_unlock(peer, late));
      TEST_ASSERT_EQUAL("1", server.command("HGET k " + ours.field(next)));
      TEST_ASSERT_EQUAL(Status::ok, ours.side(next).renew());
      TEST_ASSERT_EQUAL(Status::ok, ours.side(next).release());

      TEST_ASSERT_EQUAL(Status::ok, ours.side(late).try_acquire());
      end_all();
      TEST_ASSERT_EQUAL("granted", ask_lock(peer, next, "k", "60000 0"));
      TEST_ASSERT_EQUAL(Status::lock_lost, ours.side(late).release());
      TEST_ASSERT_EQUAL("yes", peer.ask("is-held-" + next + " k"));
      TEST_ASSERT_EQUAL("ok", ask_unlock(peer, next));
    }
  expect_nothing_left(server);
}

// ---- Watchdogs ---------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_their_watchdog_should_keep_our_writer_out_for_as_long_as_they_live) {
  for (const std::string side : sides) {
    TEST_MESSAGE("side: " << side);
    Peer peer(server.port(), {"watchdog-timeout 6000"});
    Ours ours(server);
    TEST_ASSERT_EQUAL("granted", ask_lock(peer, side, "k", "watchdog 0"));
    TEST_ASSERT_TRUE(remaining(server, "k") <= 6000);
    TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.write().acquire(7s));
    TEST_ASSERT_EQUAL("yes", peer.ask("is-held-" + side + " k"));
    peer.kill();
    // No message comes from the dead: the lease's end is what is waited for.
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().acquire(bound));
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().release());
  }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_our_watchdog_should_keep_their_writer_out) {
  Peer peer(server.port());
  for (const std::string side : sides) {
    TEST_MESSAGE("side: " << side);
    Ours ours(server, "k", {.read = {.lease = 6s}, .write = {.lease = 6s}});
    WatchdogPlaces<1> places;
    Watchdog watchdog(places.storage());
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(ours.client));
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).try_acquire());
    TEST_ASSERT_EQUAL("busy", peer.ask("write-lock k 60000 7000"));
    TEST_ASSERT_TRUE(ours.side(side).held());
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).release());
    TEST_ASSERT_EQUAL("granted", peer.ask("write-lock k 60000 0"));
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock-write k"));
  }
  expect_nothing_left(server);
}

// Both read, both are renewed, and none of them cuts the other's time short.
TEST_ON_SERVER(test_readers_that_both_watchdogs_keep_should_both_keep_writers_out) {
  Peer peer(server.port(), {"watchdog-timeout 6000"});
  Ours ours(server, "k", {.read = {.lease = 6s}, .write = {.lease = 60s}});
  Ours writer(server);
  WatchdogPlaces<1> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(ours.client));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k watchdog 0"));
  TEST_ASSERT_EQUAL(Status::lock_busy, writer.lock.write().acquire(9s));
  TEST_ASSERT_EQUAL("yes", peer.ask("is-held-read k"));
  TEST_ASSERT_TRUE(ours.lock.read().held());
  // Theirs dies, and its field stays. Ours is kept all the same, and then nobody is left.
  peer.kill();
  const std::string theirs = fields_beside(server, ours.field("read")).at(0);
  TEST_ASSERT_TRUE(comes_true([&] { return server.command("EXISTS " + timeout_key("k", theirs)) == "0"; }));
  TEST_ASSERT_EQUAL(Status::lock_busy, writer.lock.write().try_acquire());
  TEST_ASSERT_TRUE(ours.lock.read().held());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  TEST_ASSERT_EQUAL(Status::ok, writer.lock.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, writer.lock.write().release());
  expect_nothing_left(server);
}

// ---- By force ----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_their_force_unlock_should_end_our_hold_of_that_side_and_wake_our_waiter) {
  Peer peer(server.port());
  for (const std::string side : sides) {
    TEST_MESSAGE("side: " << side);
    Ours ours(server);
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).try_acquire());
    const std::string own_time = timeout_key("k", ours.field(side));
    const ReadWriteRefusals refusals(server);
    Waiter waiter(server, "k", is_read(side) ? "write" : "read");
    refusals.await_waiting("k");
    TEST_ASSERT_EQUAL("no", peer.ask(is_read(side) ? "force-unlock-write k" : "force-unlock-read k"));
    TEST_ASSERT_EQUAL(Status::ok, ours.side(side).renew());
    const Instant forced = Client::now();
    TEST_ASSERT_EQUAL("yes", peer.ask("force-unlock-" + side + " k"));
    ReadWriteLock::Side& granted = waiter.granted_after(forced);
    TEST_ASSERT_EQUAL(Status::lock_lost, ours.side(side).release());
    TEST_ASSERT_EQUAL(Status::ok, granted.renew());
    TEST_ASSERT_EQUAL(Status::ok, granted.release());
    TEST_ASSERT_EQUAL("no", peer.ask("force-unlock-" + side + " k"));
    server.command("DEL " + own_time);  // What they leave to its TTL.
  }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_our_forced_release_should_end_their_hold_and_wake_their_waiter) {
  Peer peer(server.port());
  Ours ours(server);
  for (const std::string side : sides) {
    TEST_MESSAGE("side: " << side);
    const std::string other = is_read(side) ? "write" : "read";
    TEST_ASSERT_EQUAL("granted", ask_lock(peer, side, "k", "60000 0"));
    const std::string theirs = fields_beside(server, "").at(0);
    const ReadWriteRefusals refusals(server);
    TEST_ASSERT_EQUAL("waiting", ask_start(peer, other, "k", "60000 forever"));
    await_theirs(peer, refusals, "k");
    bool released = false;
    const Instant forced = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, force_release(ours.client, Key("k"), released));
    TEST_ASSERT_TRUE(released);
    expect_granted_after(peer, "k", forced);
    TEST_ASSERT_EQUAL("lost", ask_unlock(peer, side));
    TEST_ASSERT_EQUAL("ok", ask_unlock(peer, other));
    server.command("DEL " + timeout_key("k", theirs));  // What is left to its TTL.
  }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_inspection_should_tell_their_readers_from_their_writer) {
  Peer peer(server.port());
  Ours ours(server);
  LockInfo info;
  TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
  TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
  const std::string theirs = fields_beside(server, "").at(0);
  TEST_ASSERT_EQUAL(Status::ok, inspect(ours.client, Key("k"), info));
  TEST_ASSERT_TRUE(info.form == LockForm::read);
  TEST_ASSERT_EQUAL(ByteView(theirs), info.owner.view());
  TEST_ASSERT_EQUAL(std::uint64_t{2}, info.count);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, inspect(ours.client, Key("k"), info));
  TEST_ASSERT_EQUAL(std::uint64_t{2}, info.owners);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL("granted", peer.ask("write-lock k 60000 0"));
  TEST_ASSERT_EQUAL("granted", peer.ask("read-lock k 60000 0"));
  TEST_ASSERT_EQUAL(Status::ok, inspect(ours.client, Key("k"), info));
  TEST_ASSERT_TRUE(info.form == LockForm::write);
  TEST_ASSERT_EQUAL(ByteView(theirs), info.owner.view());  // It is the same thread.
  TEST_ASSERT_EQUAL(std::uint64_t{1}, info.owners);
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-read k"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock-write k"));
  expect_nothing_left(server);
}

// ---- All of it together ------------------------------------------------------------------------------------------

// Read, then write: whoever is let in beside a writer loses counts, and a reader that is let in beside one sees two of them.
TEST_ON_SERVER(test_a_counter_should_lose_nothing_between_us_and_them) {
  constexpr int their_rounds = 50;
  Peer peer(server.port());
  Ours ours(server);
  TEST_ASSERT_EQUAL("counting", peer.ask("start-write-count k counter " + std::to_string(their_rounds)));
  int our_rounds = 0;
  do {
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().acquire(30s));
    const std::string before = server.command("GET counter");
    const std::string after = std::to_string(before == "(nil)" ? 1 : std::stol(before) + 1);
    server.command("SET counter " + after);
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().acquire(30s));
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.write().release());
    TEST_ASSERT_EQUAL(after, server.command("GET counter"));  // Nobody wrote in between.
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.read().release());
    ++our_rounds;
  } while (!peer.has_event());
  TEST_ASSERT_EQUAL("counted", peer.event().at(0));
  TEST_ASSERT_EQUAL(std::to_string(our_rounds + their_rounds), server.command("GET counter"));
  TEST_ASSERT_EQUAL("1", server.command("DEL counter"));
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_no_key_should_be_without_an_end) {
  Peer peer(server.port());
  Ours ours(server);
  const auto expect_ends = [&] {
    std::istringstream keys(server.command("KEYS *"));
    for (std::string key; keys >> key;) {
      TEST_MESSAGE("key: " << key);
      TEST_ASSERT_TRUE(server.command("PTTL " + key) != "-1");  // -2: gone since, as latches go.
    }
  };
  for (int round = 0; round < 3; ++round) {
    for (const std::string side : sides) {
      TEST_ASSERT_EQUAL(Status::ok, ours.side(side).try_acquire());
      expect_ends();
      TEST_ASSERT_EQUAL(is_read(side) ? "granted" : "busy", peer.ask("read-lock k watchdog 0"));
      expect_ends();
      TEST_ASSERT_EQUAL(Status::ok, ours.side(side).release());
      expect_ends();
      if (!is_read(side)) TEST_ASSERT_EQUAL("granted", peer.ask("write-lock k 60000 0"));
      expect_ends();
      TEST_ASSERT_EQUAL("ok", ask_unlock(peer, side));
      expect_ends();
    }
  }
  expect_nothing_left(server);
}
