// SPDX-License-Identifier: MIT
//
// Locks on several nodes, taken in one order within one deadline: all of them or none.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "live_fixture.hpp"
#include "live_nodes.hpp"
#include "patience.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

struct Party {
  explicit Party(const RedisServer& server) {
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  }
  Client client;
  Owner owner{client};
};

// In a watchdog's place: a client that owes a release asks it to take that back, at the end of a call, behind its last look at
// cancel(). So the release is posted when a hold is granted, and that is when cancel() comes.
class CancelsAtTheEnd : public Keeper {
 public:
  CancelsAtTheEnd(ClientBase& client, BlockingLock& owed) noexcept : Keeper(table), client_(&client), owed_(&owed) {
    client.attach(this);
  }
  ~CancelsAtTheEnd() { client_->attach(nullptr); }
  [[nodiscard]] bool cancelled() const noexcept { return cancelled_; }

 private:
  static Status enter(Keeper& self, HoldRecord&) noexcept {
    (void)static_cast<CancelsAtTheEnd&>(self).owed_->post_release();
    return Status::ok;
  }
  static void take_back(Keeper& self, ClientBase& client) noexcept {
    if (!std::exchange(static_cast<CancelsAtTheEnd&>(self).cancelled_, true)) client.cancel();
  }
  static constexpr Table table = {
      [](Keeper&, Attachment&) noexcept {}, [](Keeper&, Attachment&) noexcept {}, enter,
      [](Keeper&, HoldRecord&) noexcept {}, [](Keeper&, HoldRecord&) noexcept {}, take_back};
  ClientBase* client_;
  BlockingLock* owed_;
  bool cancelled_ = false;
};

}  // namespace

TEST_ON_SERVER(test_set_should_hold_all_or_nothing_on_two_nodes) {
  RedisServer far(server.binary());
  Party here(server);
  Party there(far);
  Party rival(far);
  Mutex first(here.client, "k", {.lease = 20s});
  ReentrantLock second(there.owner, "k", {.lease = 30s});
  MultiLock third(there.owner, {"x", "y"}, {.lease = 10s});
  BlockingLock* locks[] = {&third, &second, &first};
  LockSet set(locks, 3);
  TEST_ASSERT_EQUAL(Status::ok, set.configuration());
  TEST_ASSERT_FALSE(set.held());
  TEST_ASSERT_EQUAL(Status::not_held, set.release());
  TEST_ASSERT_EQUAL(Status::not_held, set.renew());

  TEST_ASSERT_EQUAL(Status::ok, set.try_acquire());
  TEST_ASSERT_TRUE(set.held());
  TEST_ASSERT_TRUE(set.blocker() == nullptr);
  TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL("3", far.command("EXISTS k x y"));
  TEST_ASSERT_TRUE(set.valid_until() == third.valid_until());  // The least.
  TEST_ASSERT_TRUE(set.renewal_due() == third.renewal_due());
  TEST_ASSERT_TRUE(set.remaining() > 1s && set.remaining() < 10s);
  TEST_ASSERT_EQUAL(Status::already_held, set.try_acquire());
  const Instant before = first.valid_until();
  const Instant least = set.valid_until();
  TEST_ASSERT_EQUAL(Status::ok, set.renew());
  TEST_ASSERT_TRUE(first.valid_until() > before);
  TEST_ASSERT_TRUE(set.valid_until() > least);
  TEST_ASSERT_EQUAL(Status::ok, set.release());
  TEST_ASSERT_FALSE(set.held());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL("0", far.command("DBSIZE"));

  ReentrantLock in_the_way(rival.owner, "y", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, in_the_way.try_acquire());
  const Instant begun = Client::now();
  TEST_ASSERT_EQUAL(Status::lock_busy, set.acquire(200ms));
  TEST_ASSERT_TRUE(Client::now() - begun >= 200ms);
  TEST_ASSERT_TRUE(set.blocker() == &third);
  for (const BlockingLock* const lock : locks) TEST_ASSERT_FALSE(lock->held());
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0" && far.command("DBSIZE") == "1"; }));
  TEST_ASSERT_EQUAL(Status::ok, in_the_way.release());
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(2s));
}

TEST_ON_SERVER(test_set_that_goes_should_release_what_is_left) {
  Party party(server);
  Mutex first(party.client, "a", {.lease = 20s});
  Mutex second(party.client, "b", {.lease = 20s});
  {
    BlockingLock* locks[] = {&first, &second};
    LockSet set(locks, 2);
    TEST_ASSERT_EQUAL(Status::ok, set.try_acquire());
  }
  TEST_ASSERT_FALSE(first.held() || second.held());
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
}

TEST_ON_SERVER(test_set_should_be_sorted_by_node_database_and_name) {
  RedisServer far(server.binary());
  const bool far_first = far.socket_path() < server.socket_path();
  Party here(server);
  Party there(far);
  Client numbered;
  ClientConfig config = config_for(server.unix_url());
  config.database = 2;
  TEST_ASSERT_EQUAL(Status::ok, numbered.connect(config));
  Client by_port;
  TEST_ASSERT_EQUAL(Status::ok, by_port.connect(config_for(server.tcp_url())));
  Mutex a(here.client, "a");
  MultiLock b(here.owner, {"zz", "b"});  // By its first name, not by how it is packed.
  Mutex longer(here.client, "bb");
  Mutex c(here.client, "c");
  Mutex same(numbered, "a");
  Mutex other(there.client, "b");
  Mutex port(by_port, "d");  // No socket path: before all that have one.
  BlockingLock* locks[] = {&c, &longer, &same, &other, &b, &port, &a};
  const LockSet set(locks, 7);
  TEST_ASSERT_EQUAL(Status::ok, set.configuration());
  TEST_ASSERT_TRUE(locks[0] == &port);
  TEST_ASSERT_TRUE(locks[far_first ? 1 : 6] == &other);
  BlockingLock* const* const rest = locks + (far_first ? 2 : 1);
  TEST_ASSERT_TRUE(rest[0] == &a);
  TEST_ASSERT_TRUE(rest[1] == &b);
  TEST_ASSERT_TRUE(rest[2] == &longer);
  TEST_ASSERT_TRUE(rest[3] == &c);
  TEST_ASSERT_TRUE(rest[4] == &same);
}

TEST_ON_SERVER(test_locks_that_can_never_be_had_together_should_be_refused) {
  Party party(server);
  Party second(server);
  Mutex plain(party.client, "a");
  Mutex twin(second.client, "a");
  MultiLock multi(party.owner, {"a", "b"});
  MultiLock overlapping(second.owner, {"0", "b"});
  Mutex invalid(party.client, "");
  Mutex apart(party.client, "c");
  BlockingLock* const pairs[][2] = {{&plain, &plain}, {&plain, &twin},        {&multi, &twin},
                                    {&plain, &multi}, {&overlapping, &multi}, {&apart, &invalid}};
  Mutex other(party.client, "d");
  for (BlockingLock* const* const pair : pairs) {
    // Whatever else is in the set, and in whatever place.
    BlockingLock* const sets[][3] = {{pair[0], pair[1], nullptr},
                                     {pair[0], pair[1], &other},
                                     {pair[0], &other, pair[1]},
                                     {&other, pair[0], pair[1]}};
    for (BlockingLock* const* const members : sets) {
      BlockingLock* locks[] = {members[0], members[1], members[2]};
      LockSet set(locks, members[2] == nullptr ? 2 : 3);
      TEST_ASSERT_EQUAL(Status::invalid_argument, set.configuration());
      TEST_ASSERT_EQUAL(Status::invalid_argument, set.try_acquire());
      TEST_ASSERT_FALSE(set.held());
    }
  }
  BlockingLock* locks[] = {&apart};
  LockSet none(locks, 0);
  TEST_ASSERT_EQUAL(Status::invalid_argument, none.acquire(1s));
  TEST_ASSERT_FALSE(none.held());
  LockSet one(locks, 1);
  TEST_ASSERT_EQUAL(Status::invalid_argument, one.acquire(-1ns));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(Status::ok, one.acquire(wait_forever));
}

// Its time is spent on the first, and the others have an attempt each.
TEST_ON_SERVER(test_deadline_should_be_one_for_all) {
  Party party(server);
  Mutex a(party.client, "a", {.lease = 60s});
  Mutex b(party.client, "b", {.lease = 60s});
  Mutex c(party.client, "c", {.lease = 60s});
  BlockingLock* locks[] = {&a, &b, &c};
  LockSet set(locks, 3);
  server.command("SET a x PX 2500");
  server.command("SET b x PX 60000");
  const Instant begun = Client::now();
  TEST_ASSERT_EQUAL(Status::lock_busy, set.acquire(3s));
  const Duration taken = Client::now() - begun;
  TEST_ASSERT_TRUE(taken >= at_least(3s));
  TEST_ASSERT_TRUE(taken < 5300ms);  // With one of its own, the second would have waited until 5500 ms.
  TEST_ASSERT_TRUE(set.blocker() == &b);
  TEST_ASSERT_FALSE(a.held());
  server.command("DEL b");
  server.command("SET a x PX 300");
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(60s));
  TEST_ASSERT_TRUE(set.held());
}

TEST_ON_SERVER(test_what_is_taken_should_be_renewed_while_the_next_is_waited_for) {
  RedisServer far(server.binary());
  const bool far_first = far.socket_path() < server.socket_path();
  RedisServer& early = far_first ? far : server;
  RedisServer& late = far_first ? server : far;
  Party here(early);
  Party there(late);
  Mutex first(here.client, "k", {.lease = 3s});  // An explicit lease: nobody else keeps it.
  Mutex second(there.client, "k", {.lease = 20s});
  BlockingLock* locks[] = {&first, &second};
  LockSet set(locks, 2);
  late.command("SET k x PX 5000");
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(60s));
  TEST_ASSERT_TRUE(set.held());
  TEST_ASSERT_EQUAL("1", early.command("EXISTS k"));
}

TEST_ON_SERVER(test_loss_of_a_taken_one_should_end_the_wait) {
  Party party(server);
  Mutex a(party.client, "a", {.lease = 1s});
  Mutex b(party.client, "b", {.lease = 20s});
  BlockingLock* locks[] = {&a, &b};
  LockSet set(locks, 2);
  server.command("SET b x");
  std::thread thief([&] {
    (void)comes([&] { return server.command("EXISTS a") == "1"; });
    server.command("SET a stolen PX 60000");
  });
  const Status status = set.acquire(60s);
  thief.join();
  TEST_ASSERT_EQUAL(Status::lock_lost, status);
  TEST_ASSERT_TRUE(set.blocker() == &a);
  TEST_ASSERT_FALSE(set.held());
  TEST_ASSERT_EQUAL(Status::not_held, set.release());
  TEST_ASSERT_EQUAL("stolen", server.command("GET a"));
}

TEST_ON_SERVER(test_set_should_not_be_held_when_one_is_lost) {
  Party party(server);
  Mutex a(party.client, "a", {.lease = 20s});
  ReentrantLock b(party.owner, "b", {.lease = 20s});
  Mutex c(party.client, "c", {.lease = 20s});
  BlockingLock* locks[] = {&a, &b, &c};
  LockSet set(locks, 3);
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(1s));
  server.command("DEL b");
  const Instant before = c.valid_until();
  TEST_ASSERT_EQUAL(Status::lock_lost, set.renew());
  TEST_ASSERT_TRUE(c.valid_until() > before);  // All are asked.
  TEST_ASSERT_FALSE(set.held());
  TEST_ASSERT_TRUE(set.valid_until() == Instant());
  TEST_ASSERT_TRUE(set.remaining() == Duration::zero());
  TEST_ASSERT_TRUE(a.held() && c.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, set.release());
  TEST_ASSERT_FALSE(a.held() || c.held());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(1s));  // What was lost is unwound.
}

TEST_ON_SERVER(test_a_lock_that_was_held_before_should_stay_held) {
  Party party(server);
  Mutex a(party.client, "a", {.lease = 20s});
  ReentrantLock b(party.owner, "b", {.lease = 20s});
  BlockingLock* locks[] = {&a, &b};
  LockSet set(locks, 2);
  TEST_ASSERT_EQUAL(Status::ok, b.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, set.try_acquire());
  TEST_ASSERT_EQUAL(2U, b.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, set.post_release());
  TEST_ASSERT_EQUAL(1U, b.hold_count());
  TEST_ASSERT_FALSE(set.held());
  TEST_ASSERT_EQUAL(Status::ok, a.try_acquire());
  TEST_ASSERT_EQUAL(Status::already_held, set.acquire(1s));
  TEST_ASSERT_TRUE(a.held());  // Not the set's to let go of.
  TEST_ASSERT_EQUAL(1U, b.hold_count());
}

TEST_ON_SERVER(test_cancelled_wait_should_let_go_of_what_was_taken) {
  Party party(server);
  Mutex a(party.client, "a", {.lease = 60s});
  Mutex b(party.client, "b", {.lease = 60s});
  BlockingLock* locks[] = {&a, &b};
  LockSet set(locks, 2);
  server.command("SET b x");
  std::thread other([&] {
    (void)comes([&] { return server.command("EXISTS a") == "1"; });
    party.client.cancel();
  });
  const Status status = set.acquire(wait_forever);
  other.join();
  TEST_ASSERT_EQUAL(Status::cancelled, status);
  TEST_ASSERT_FALSE(a.held());
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS a") == "0"; }));
}

// Bug 38: the lock's call took it with its ok, and the set waited on for the next one.
TEST_ON_SERVER(test_cancel_that_comes_as_a_lock_is_granted_should_end_the_acquire_of_the_set) {
  Party party(server);
  Mutex owed(party.client, "owed", {.lease = 60s});
  Mutex a(party.client, "a");
  Mutex b(party.client, "b");
  BlockingLock* locks[] = {&a, &b};
  LockSet set(locks, 2);
  server.command("SET b x");
  TEST_ASSERT_EQUAL(Status::ok, owed.try_acquire());
  const CancelsAtTheEnd keeper(party.client, owed);
  const Status status = set.acquire(2s);
  TEST_ASSERT_TRUE(keeper.cancelled());
  TEST_ASSERT_EQUAL(Status::cancelled, status);
  TEST_ASSERT_FALSE(a.held());
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS a") == "0"; }));
  server.command("DEL b");
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(20s));  // It ended one call.
  TEST_ASSERT_EQUAL(Status::ok, set.release());
}

TEST_ON_SERVER(test_cancel_of_a_client_that_is_not_waited_on_should_end_the_acquire_of_the_set) {
  RedisServer far(server.binary());
  const bool far_first = far.socket_path() < server.socket_path();
  RedisServer& early = far_first ? far : server;
  RedisServer& late = far_first ? server : far;
  Party here(early);
  Party there(late);
  Mutex first(here.client, "k", {.lease = 60s});
  Mutex second(there.client, "k", {.lease = 60s});
  BlockingLock* locks[] = {&first, &second};
  LockSet set(locks, 2);
  late.command("SET k x");
  std::thread other([&] {
    (void)comes([&] { return early.command("EXISTS k") == "1"; });
    here.client.cancel();
    late.command("DEL k");
  });
  const Status status = set.acquire(wait_forever);
  other.join();
  TEST_ASSERT_EQUAL(Status::cancelled, status);
  TEST_ASSERT_FALSE(first.held() || second.held());
  TEST_ASSERT_TRUE(comes([&] { return early.command("EXISTS k") == "0" && late.command("EXISTS k") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, first.acquire(20s));  // It ended one call.
}

TEST_ON_SERVER(test_sets_in_opposite_order_should_not_deadlock) {
  RedisServer far(server.binary());
  constexpr int turns = 25;
  std::atomic<int> inside = 0;
  std::atomic<int> crowded = 0;
  std::atomic<int> refused = 0;
  const auto run = [&](bool reversed) {
    Client here;
    Client there;
    if (here.connect(config_for(server.unix_url())) != Status::ok) return;
    if (there.connect(config_for(far.unix_url())) != Status::ok) return;
    Owner owner(here);
    ReentrantLock first(owner, "k", {.lease = 60s});
    Mutex second(there, "k", {.lease = 60s});
    BlockingLock* locks[] = {&first, &second};
    if (reversed) std::swap(locks[0], locks[1]);
    LockSet set(locks, 2);
    for (int turn = 0; turn < turns; ++turn) {
      if (set.acquire(60s) != Status::ok) {
        refused.fetch_add(1);
        continue;
      }
      if (inside.fetch_add(1) != 0) crowded.fetch_add(1);
      inside.fetch_sub(1);
      if (set.release() != Status::ok) refused.fetch_add(1);
    }
  };
  std::thread other(run, true);
  run(false);
  other.join();
  TEST_ASSERT_EQUAL(0, crowded.load());
  TEST_ASSERT_EQUAL(0, refused.load());
}

// ---- With locks on quorums -------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_mixed_set_should_hold_all_or_nothing_on_a_server_and_a_quorum) {
  LiveNodes nodes(server.binary(), 3);
  Party party(server);
  Party rival(server);
  Quorum<3> quorum;
  Quorum<3> other;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  TEST_ASSERT_EQUAL(Status::ok, connect(other, nodes.configs()));
  await_voters(quorum, 7);
  constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 12s};
  Mutex stock(party.client, "stock", {.lease = 60s});
  RedlockMutex<3> orders(quorum, "orders", calm);
  SoleRedlock<RedlockReentrantLock, 3> more(quorum, "more", calm);
  AnyLock locks[] = {&more, &stock, &orders};
  MixedLockSet set(locks, 3);
  TEST_ASSERT_EQUAL(Status::ok, set.configuration());
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(20s));
  TEST_ASSERT_TRUE(set.held() && stock.held() && orders.held() && more.held());
  TEST_ASSERT_TRUE(set.blocker() == nullptr);
  TEST_ASSERT_TRUE(set.valid_until() <= orders.valid_until() && set.valid_until() <= stock.valid_until());
  RedlockMutex<3> theirs(other, "orders", calm);
  TEST_ASSERT_EQUAL(Status::lock_busy, theirs.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, set.renew());
  TEST_ASSERT_EQUAL(Status::ok, set.release());
  TEST_ASSERT_FALSE(stock.held() || orders.held() || more.held());
  // One that is not to be had, on either: nothing of the others is left.
  Mutex busy(rival.client, "stock", {.lease = 60s});
  for (const bool on_server : {true, false}) {
    TEST_ASSERT_EQUAL(Status::ok, on_server ? busy.acquire(20s) : theirs.acquire(20s));
    TEST_ASSERT_EQUAL(Status::lock_busy, set.acquire(200ms));
    TEST_ASSERT_TRUE(set.blocker() != nullptr);
    TEST_ASSERT_TRUE(on_server ? set.blocker()->one() == &stock : set.blocker()->many() == &orders);
    TEST_ASSERT_FALSE(stock.held() || orders.held() || more.held());
    TEST_ASSERT_EQUAL(Status::ok, on_server ? busy.release() : theirs.release());
  }
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, set.post_release());
}

TEST_ON_SERVER(test_cancel_of_a_quorum_should_end_the_acquire_of_a_mixed_set_that_waits_on_a_server) {
  LiveNodes nodes(server.binary(), 3);
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  await_voters(quorum, 7);
  Party party(server);
  RedlockMutex<3> orders(quorum, "orders", {.lease = 60s, .node_timeout = 12s});
  Mutex stock(party.client, "stock", {.lease = 60s});
  AnyLock locks[] = {&stock, &orders};
  MixedLockSet set(locks, 2);
  const bool quorum_first = locks[0].many() != nullptr;
  server.command("SET stock x");
  std::thread other([&] {
    if (quorum_first) (void)comes([&] { return nodes.all("EXISTS orders", "1"); });
    quorum.cancel();
    server.command("DEL stock");
  });
  const Status status = set.acquire(wait_forever);
  other.join();
  TEST_ASSERT_EQUAL(Status::cancelled, status);
  TEST_ASSERT_FALSE(stock.held() || orders.held());
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS orders", "0"); }));
  TEST_ASSERT_EQUAL(Status::ok, orders.acquire(20s));  // It ended one call.
}

TEST_ON_SERVER(test_mixed_sets_should_take_their_locks_in_one_order) {
  LiveNodes nodes(server.binary(), 3);
  Party party(server);
  Quorum<3> quorum;
  Quorum<3> turned;
  std::vector<ClientConfig> configs = nodes.configs();
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  std::swap(configs[0], configs[2]);
  TEST_ASSERT_EQUAL(Status::ok, connect(turned, configs));
  Mutex single(party.client, "a");
  RedlockMutex<3> b(quorum, "b");
  RedlockMutex<3> c(turned, "c");
  RedlockMutex<3> twin(turned, "b");
  AnyLock locks[] = {&c, &single, &b};
  const MixedLockSet set(locks, 3);
  TEST_ASSERT_EQUAL(Status::ok, set.configuration());
  std::string names;
  for (const AnyLock& lock : locks)
    if (lock.many() != nullptr) names += lock.many()->key().bytes().string_view();
  TEST_ASSERT_EQUAL("bc", names);
  AnyLock twins[] = {&twin, &single, &b};
  TEST_ASSERT_EQUAL(Status::invalid_argument, MixedLockSet(twins, 3).configuration());
}
