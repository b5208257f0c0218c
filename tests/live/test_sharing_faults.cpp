// SPDX-License-Identifier: MIT
//
// Locks that several hold, when a holder is killed, a waiter stands still, connections go, the server forgets or begins anew,
// or all leave at once. Whatever it is: nothing is left behind, and whoever waits has its turn.
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "clients.hpp"
#include "forked_child.hpp"
#include "patience.hpp"
#include "waiting.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

enum class Part { reader, writer, permit };
constexpr std::uint32_t permits = 2;
// Long beside what any wake takes: who comes sooner was woken.
constexpr Duration long_lease = 20s;
constexpr Duration soon = 8s;

// A client with one of the three. It asks again by itself only when nobody would wait any more.
template <class ItsClient, class ItsOwner, class ItsReadWriteLock, class ItsSemaphore, class ItsLock>
struct PartyOf {
  PartyOf(const RedisServer& server, Part part, Duration lease = long_lease)
      : owner(patient(server)),
        sides(owner, "k", {.read = {.lease = lease}, .write = {.lease = lease}}),
        permit(client, "k", permits, {.lease = lease}),
        lock(part == Part::permit   ? static_cast<ItsLock&>(permit)
             : part == Part::reader ? static_cast<ItsLock&>(sides.read())
                                    : static_cast<ItsLock&>(sides.write())) {}
  ItsClient& patient(const RedisServer& server) {
    ClientConfig config = config_for(server.unix_url());
    config.max_poll = 10min;
    connection = client.connect(config);
    return client;
  }
  ItsClient client;
  Status connection = Status::outcome_unknown;
  ItsOwner owner;
  ItsReadWriteLock sides;
  ItsSemaphore permit;
  ItsLock& lock;
};
// Of a forked child, in which the blocking client is at home.
using ChildParty =
    PartyOf<holdfast::Client, holdfast::Owner, holdfast::ReadWriteLock, holdfast::Semaphore, holdfast::BlockingLock>;
struct Party : PartyOf<Client, Owner, ReadWriteLock, Semaphore, BlockingLock> {
  using PartyOf::PartyOf;
  bool came = false;
  Waiting waiting{client};
};

// Who is in whose way, and how many of them can be at once.
struct Rivals {
  std::string name;
  Part holder;
  std::uint32_t holders;
  Part waiter;
};
const Rivals all_rivals[] = {
    {"readers before a writer", Part::reader, 2, Part::writer},
    {"a writer before a reader", Part::writer, 1, Part::reader},
    {"permits", Part::permit, permits, Part::permit},
};

// So many have been refused, and listen. Counted by the clients: PUBSUB NUMSUB of Valkey 9.1 says anything once subscribers were
// killed.
void await_listeners(const RedisServer& server, std::size_t count) {
  TEST_ASSERT_TRUE(comes([&] {
    const std::string clients = server.command("CLIENT LIST TYPE pubsub");
    std::size_t listening = 0;
    for (std::size_t at = clients.find(" sub=1 "); at != std::string::npos; at = clients.find(" sub=1 ", at + 1))
      ++listening;
    return listening == count;
  }));
  breathe(20ms);
}

// All holders' places are taken.
void hold_all(const RedisServer& server, const Rivals& rivals, std::deque<Party>& holders) {
  for (std::uint32_t index = 0; index < rivals.holders; ++index)
    TEST_ASSERT_EQUAL(Status::ok, holders.emplace_back(server, rivals.holder).lock.try_acquire());
}
void release_all(std::deque<Party>& holders) {
  for (Party& holder : holders) TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
}

// The number of permits is a setting, and stays.
void expect_nothing_left(const RedisServer& server, const Rivals& rivals) {
  if (rivals.holder == Part::permit) {
    TEST_ASSERT_TRUE(comes([&] { return server.command("GET k") == std::to_string(permits); }));
    server.command("DEL k");
  }
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
}

}  // namespace

// ---- Processes -------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_killed_holder_should_cost_others_its_lease_and_leave_nothing) {
  for (const Rivals& rivals : all_rivals) {
    TEST_MESSAGE(rivals.name);
    constexpr Duration short_lease = 1500ms;
    Child killed([&](const Child& child) {
      ChildParty party(server, rivals.holder, short_lease);
      child.await_go();
      child.say(party.lock.try_acquire() == Status::ok ? "held" : "refused");
      child.await_go();
      return 0;
    });
    // A reader beside it goes when its time is over, another permit's holder stays.
    std::deque<Party> holders;
    hold_all(server, rivals, holders);
    TEST_ASSERT_EQUAL(Status::ok, holders.front().lock.release());
    holders.pop_front();
    killed.go();
    TEST_ASSERT_EQUAL("held", killed.hear());
    Party waiter(server, rivals.waiter);
    waiter.waiting.begin(waiter.lock);
    await_listeners(server, 1);
    killed.kill();
    const Instant then = Client::now();
    if (rivals.holder == Part::reader) {
      TEST_ASSERT_TRUE(comes([&] { return Client::now() - then > short_lease; }));
      TEST_ASSERT_FALSE(waiter.waiting.done());
      release_all(holders);
    }
    TEST_ASSERT_EQUAL(Status::ok, waiter.waiting.join());
    TEST_ASSERT_TRUE(Client::now() - then < short_lease + soon);
    TEST_ASSERT_EQUAL(Status::ok, waiter.lock.release());
    if (rivals.holder == Part::permit) release_all(holders);
    expect_nothing_left(server, rivals);
  }
}

// It is told like everybody else, and does nothing about it. Then its time is over.
TEST_ON_SERVER(test_a_waiter_that_stands_still_beyond_its_patience_should_be_in_nobodys_way) {
  constexpr Duration patience_of_the_still = 1s;
  for (const Rivals& rivals : all_rivals) {
    TEST_MESSAGE(rivals.name);
    Child still([&](const Child& child) {
      ChildParty party(server, rivals.waiter);
      child.await_go();
      const Status status = party.lock.acquire(patience_of_the_still);
      if (status == Status::ok) return party.lock.release() == Status::ok ? 0 : 1;
      return status == Status::timed_out || status == Status::lock_busy ? 0 : 2;
    });
    std::deque<Party> holders;
    hold_all(server, rivals, holders);
    const Instant begun = Client::now();
    still.go();
    await_listeners(server, 1);
    still.stop();
    Party other(server, rivals.waiter);
    other.waiting.begin(other.lock);
    await_listeners(server, 2);
    TEST_ASSERT_TRUE(comes([&] { return Client::now() - begun > patience_of_the_still + 100ms; }));
    release_all(holders);
    TEST_ASSERT_EQUAL(Status::ok, other.waiting.join(soon));
    TEST_ASSERT_EQUAL(Status::ok, other.lock.release());
    still.resume();
    TEST_ASSERT_EQUAL(0, still.join());
    expect_nothing_left(server, rivals);
  }
}

// ---- Connections and servers that go ---------------------------------------------------------------------------------

TEST_ON_SERVER(test_lost_connections_and_forgotten_scripts_should_end_no_hold_and_no_wait) {
  const std::string subscriptions = "CLIENT KILL TYPE pubsub";
  const std::string others = "CLIENT KILL TYPE normal SKIPME yes";
  const std::string scripts = "SCRIPT FLUSH";
  for (const Rivals& rivals : all_rivals)
    for (const std::vector<std::string>& faults :
         {std::vector<std::string>{subscriptions}, {others}, {scripts}, {others, subscriptions, scripts}}) {
      TEST_MESSAGE(rivals.name << ", " << faults.front() << " and " << faults.size() - 1 << " more");
      std::deque<Party> holders;
      hold_all(server, rivals, holders);
      Party waiter(server, rivals.waiter);
      waiter.waiting.begin(waiter.lock);
      await_listeners(server, 1);
      for (const std::string& fault : faults) server.command(fault);
      TEST_ASSERT_FALSE(waiter.waiting.done());
      for (Party& holder : holders) TEST_ASSERT_TRUE(holder.lock.held());
      release_all(holders);
      TEST_ASSERT_EQUAL(Status::ok, waiter.waiting.join(soon));
      TEST_ASSERT_TRUE(waiter.lock.held());
      TEST_ASSERT_EQUAL(Status::ok, waiter.lock.release());
      expect_nothing_left(server, rivals);
    }
}

TEST_ON_SERVER(test_a_restart_with_data_should_end_no_hold_and_no_wait, "--appendonly", "yes", "--appendfsync", "no") {
  for (const Rivals& rivals : all_rivals) {
    TEST_MESSAGE(rivals.name);
    std::deque<Party> holders;
    hold_all(server, rivals, holders);
    Party waiter(server, rivals.waiter);
    waiter.waiting.begin(waiter.lock);
    await_listeners(server, 1);
    server.stop();
    server.start();
    for (Party& holder : holders)
      TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return holder.lock.renew(); }, Status::ok));
    TEST_ASSERT_FALSE(waiter.waiting.done());
    TEST_ASSERT_EQUAL(Status::lock_busy, Party(server, rivals.waiter).lock.try_acquire());
    release_all(holders);
    TEST_ASSERT_EQUAL(Status::ok, waiter.waiting.join(soon));
    TEST_ASSERT_EQUAL(Status::ok, waiter.lock.release());
    expect_nothing_left(server, rivals);
  }
}

// ---- Many ------------------------------------------------------------------------------------------------------------

// Also while they are being woken: what was granted to one that leaves is given back.
TEST_ON_SERVER(test_a_hundred_waiters_that_leave_at_once_should_leave_nothing) {
  for (const Rivals& rivals : all_rivals)
    for (const bool woken : {false, true}) {
      TEST_MESSAGE(rivals.name << (woken ? ", woken" : ""));
      std::deque<Party> holders;
      hold_all(server, rivals, holders);
      std::deque<Party> crowd;
      for (int index = 0; index < 100; ++index) crowd.emplace_back(server, rivals.waiter);
      for (Party& one : crowd) one.waiting.begin(one.lock);
      await_listeners(server, crowd.size());
      if (woken) release_all(holders);
      for (Party& one : crowd) one.client.cancel();
      for (Party& one : crowd) {
        const Status status = one.waiting.join();
        TEST_ASSERT_TRUE(status == Status::cancelled || (woken && status == Status::ok));
        if (status != Status::ok) continue;
        // A cancel that came too late for the acquire meets the release, which is done all the same.
        const Status released = one.lock.release();
        TEST_ASSERT_TRUE(released == Status::ok || released == Status::cancelled);
      }
      TEST_ASSERT_TRUE(comes([&] { return server.command("PUBSUB CHANNELS") == ""; }));
      if (!woken) {
        for (Party& holder : holders) TEST_ASSERT_EQUAL(Status::ok, holder.lock.renew());
        release_all(holders);
      }
      expect_nothing_left(server, rivals);
    }
}

// Each is woken by those who go before it, also after all have lost their subscriptions.
TEST_ON_SERVER(test_all_who_stay_should_come_to_their_turn) {
  for (const Rivals& rivals : all_rivals) {
    TEST_MESSAGE(rivals.name);
    std::deque<Party> holders;
    hold_all(server, rivals, holders);
    std::deque<Party> crowd;
    for (int index = 0; index < 8; ++index) crowd.emplace_back(server, index % 2 == 0 ? rivals.waiter : rivals.holder);
    // A reader comes in beside readers, and waits with everybody else where a writer is in the way.
    std::size_t listeners = 0;
    for (Party& one : crowd) {
      one.waiting.begin(one.lock);
      const bool shares = rivals.holder == Part::reader && &one.lock == &one.sides.read();
      if (!shares) await_listeners(server, ++listeners);
    }
    server.command("CLIENT KILL TYPE pubsub");
    release_all(holders);
    std::size_t come = 0;
    TEST_ASSERT_TRUE(comes([&] {
      for (Party& one : crowd) {
        if (!one.waiting.done() || one.came) continue;
        one.came = true;
        TEST_ASSERT_EQUAL(Status::ok, one.waiting.join());
        TEST_ASSERT_EQUAL(Status::ok, one.lock.release());
        ++come;
      }
      return come == crowd.size();
    }));
    expect_nothing_left(server, rivals);
  }
}
