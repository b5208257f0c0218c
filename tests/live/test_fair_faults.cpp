// SPDX-License-Identifier: MIT
//
// Fair locks when waiters leave at a bad time, are cut off, or the server goes. Whatever it is: who was given the lock and does
// not take it costs at most an offer, and nobody believes in a hold that the server has given to another.
#include <string>

#include "clients.hpp"
#include "patience.hpp"
#include "proxy.hpp"
#include "waiting.hpp"

#ifdef HOLDFAST_TEST_ASIO
#include "asio_fixture.hpp"
#endif

static void setUp() {}
static void tearDown() {}

namespace {

const LockTiming long_lease = {.lease = 20s};
constexpr Duration offer = 3s;
const std::string queue = "holdfast_queue:{k}";

std::string text_of(const holdfast::Token& token) { return std::string(token.bytes().string_view()); }

struct Party {
  explicit Party(const std::string& url, const LockTiming& timing = long_lease)
      : owner(client), lock(owner, "k", timing) {
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(url)));
  }
  // On a thread of its own. Returns when it stands in the queue, as so many's, and so many clients listen.
  void wait_in_queue(const RedisServer& server, int place) {
    waiting.begin(lock);
    TEST_ASSERT_TRUE(comes([&] { return server.command("ZCARD " + queue) == std::to_string(place); }));
    TEST_ASSERT_TRUE(comes([&] { return server.calls("subscribe") >= place; }));
    token = server.command({"ZRANGE", queue, "-1", "-1"});
  }
  Client client;
  WatchdogPlaces<1> places;
  Watchdog watchdog{places.storage()};
  Owner owner;
  FairLock lock;
  std::string token;  // As the server had it when it came into the queue.
  Waiting waiting{client};
};

std::string holder_on(const RedisServer& server) { return server.command("HKEYS k"); }

// As the first of the queue, who lives for longer than a test.
void enqueue(const RedisServer& server, const std::string& token) {
  server.command({"ZADD", queue, "1", token});
  server.command({"SET", "holdfast_beat:{k}:" + token, "", "PX", "60000"});
}

}  // namespace

// ---- Who does not take what it was given -----------------------------------------------------------------------------

// It was given the lock and does not know it yet. Its leave is a release.
TEST_ON_SERVER(test_a_waiter_that_leaves_with_an_offer_should_hand_it_on) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  Party holder(server.unix_url());
  Party leaver(proxy.url());
  Party next(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  leaver.wait_in_queue(server, 1);
  next.wait_in_queue(server, 2);
  proxy.hold_replies_of(1);  // Its subscription: it is not told.
  // Between two beats, so that it does not find out by itself.
  const long beats = server.calls("zadd");
  TEST_ASSERT_TRUE(comes([&] { return server.calls("zadd") >= beats + 2; }));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  const std::string given = holder_on(server);
  leaver.client.cancel();
  const bool handed_on = comes([&] { return holder_on(server) == next.token; }, 700ms);  // Before any beat of the next.
  const Status outcome = leaver.waiting.join();
  TEST_ASSERT_EQUAL(leaver.token, given);
  TEST_ASSERT_TRUE(handed_on);
  TEST_ASSERT_EQUAL(Status::cancelled, outcome);
  TEST_ASSERT_FALSE(leaver.lock.held());
  TEST_ASSERT_EQUAL(Status::ok, next.waiting.join());
  TEST_ASSERT_EQUAL(next.token, holder_on(server));
  proxy.hold_replies_of(Proxy::none);
  TEST_ASSERT_EQUAL(Status::ok, next.lock.release());
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
}

// It is given the lock while nothing of it comes through. The offer ends, and the lock is another's before it is back.
TEST_ON_SERVER(test_a_waiter_that_is_cut_off_beyond_its_offer_should_not_believe_that_it_holds) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  Party holder(server.unix_url());
  Party late(proxy.url());
  Party next(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  late.wait_in_queue(server, 1);
  next.wait_in_queue(server, 2);
  proxy.hold(true);
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_EQUAL(late.token, holder_on(server));
  TEST_ASSERT_EQUAL(Status::ok, next.waiting.join());
  TEST_ASSERT_TRUE(Client::now() - released < offer + 2s);  // An offer and a beat, and not a lease.
  proxy.hold(false);                                        // The message and the beats of that time arrive.
  const long beats = server.calls("zadd");
  TEST_ASSERT_TRUE(comes([&] { return late.waiting.done() || server.calls("zadd") > beats + 1; }));
  TEST_ASSERT_FALSE(late.waiting.done());
  TEST_ASSERT_EQUAL(next.token, holder_on(server));
  TEST_ASSERT_TRUE(next.lock.held());
  TEST_ASSERT_EQUAL(Status::ok, next.lock.release());
  TEST_ASSERT_EQUAL(Status::ok, late.waiting.join());
  TEST_ASSERT_EQUAL(text_of(late.lock.token()), holder_on(server));
}

// ---- Connections and servers that go ---------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_lost_subscription_should_cost_nobody_its_place) {
  Party holder(server.unix_url());
  Party first(server.unix_url());
  Party second(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  first.wait_in_queue(server, 1);
  second.wait_in_queue(server, 2);
  server.command("CLIENT KILL TYPE pubsub");
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_EQUAL(Status::ok, first.waiting.join());
  TEST_ASSERT_EQUAL(first.token, text_of(first.lock.token()));
  TEST_ASSERT_FALSE(second.waiting.done());
  TEST_ASSERT_EQUAL(Status::ok, first.lock.release());
  TEST_ASSERT_EQUAL(Status::ok, second.waiting.join());
  TEST_ASSERT_EQUAL(second.token, text_of(second.lock.token()));
}

TEST_ON_SERVER(test_a_restart_with_data_should_leave_the_hold_and_end_no_wait, "--appendonly", "yes", "--appendfsync",
               "no") {
  Party holder(server.unix_url());
  Party waiter(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  waiter.wait_in_queue(server, 1);
  server.stop();
  server.start();
  TEST_ASSERT_EQUAL(text_of(holder.lock.token()), holder_on(server));
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return holder.lock.renew(); }, Status::ok));
  TEST_ASSERT_FALSE(waiter.waiting.done());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_EQUAL(Status::ok, waiter.waiting.join());
  TEST_ASSERT_EQUAL(text_of(waiter.lock.token()), holder_on(server));
  TEST_ASSERT_EQUAL(Status::ok, waiter.lock.release());
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k " + queue) == "0"; }));
}

TEST_ON_SERVER(test_a_restart_without_data_should_end_no_wait) {
  Party waiter(server.unix_url());
  server.command("HSET k dead:1 1");
  server.command("PEXPIRE k 60000");
  waiter.wait_in_queue(server, 1);
  server.stop();
  server.start();
  TEST_ASSERT_EQUAL(Status::ok, waiter.waiting.join());
  TEST_ASSERT_EQUAL(text_of(waiter.lock.token()), holder_on(server));
  TEST_ASSERT_EQUAL(Status::ok, waiter.lock.release());
}

// ---- A queue that cannot be read -------------------------------------------------------------------------------------

// The hold is gone by then: to say anything else would be wrong.
TEST_ON_SERVER(test_a_release_should_be_done_also_where_the_queue_is_no_queue) {
  Party holder(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  server.command({"SET", queue, "text"});
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL("text", server.command({"GET", queue}));
  server.command({"DEL", queue});
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  server.command("ACL SETUSER default -zpopmin");
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  server.command("ACL SETUSER default +zpopmin");
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

// [rule 3] The name is ours, and what stands there is not: a waiter leaves it as it is.
TEST_ON_SERVER(test_a_waiter_should_not_touch_what_is_no_queue) {
  Party holder(server.unix_url());
  Party waiter(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  server.command({"SET", queue, "text"});
  TEST_ASSERT_EQUAL(Status::wrong_type, waiter.lock.acquire(30s));
  TEST_ASSERT_EQUAL("text", server.command({"GET", queue}));
  TEST_ASSERT_EQUAL("-1", server.command({"PTTL", queue}));
}

// Whatever a user may not do, or somebody else has put there, the lock is free for whoever asks next.
TEST_ON_SERVER(test_a_release_should_be_done_whatever_keeps_it_from_handing_on) {
  for (const std::string right : {"del", "pexpire", "hset"}) {
    Party holder(server.unix_url());
    TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
    enqueue(server, "other:1");
    server.command("ACL SETUSER default -" + right);
    const Status status = holder.lock.release();
    server.command("ACL SETUSER default +" + right);
    TEST_ASSERT_EQUAL(Status::ok, status);
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
    server.command("FLUSHALL");
  }
}

// It is nobody's whom we could tell. It gets what a waiter gets that does not come: an offer.
TEST_ON_SERVER(test_a_member_that_is_no_token_should_keep_neither_a_release_nor_an_acquire_from_its_end) {
  Party holder(server.unix_url());
  Party waiter(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  enqueue(server, "nobody");
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_EQUAL("nobody", holder_on(server));
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 0);
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 3'000);
  server.command("DEL k");
  enqueue(server, "nobody");
  TEST_ASSERT_EQUAL(Status::lock_busy, waiter.lock.try_acquire());
  TEST_ASSERT_EQUAL("nobody", holder_on(server));
}

// It cannot see that it was given the lock. It is told so, and leaves both the lock and the queue.
TEST_ON_SERVER(test_who_may_not_look_should_be_told_and_leave_what_it_was_given) {
  Party holder(server.unix_url());
  Party leaver(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  leaver.wait_in_queue(server, 1);
  server.command("ACL SETUSER default -hkeys");
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  const Status status = leaver.waiting.join();
  const bool free = comes([&] { return server.command("EXISTS k " + queue) == "0"; }, 2s);  // Before an offer ends.
  server.command("ACL SETUSER default +hkeys");
  TEST_ASSERT_EQUAL(Status::no_permission, status);
  TEST_ASSERT_TRUE(free);
}

// Who waits by another kind hears of it all the same.
TEST_ON_SERVER(test_a_release_over_what_is_no_queue_should_wake_who_waits_without_one) {
  Party holder(server.unix_url());
  Client others;
  Owner owner(connected(others, server));
  ReentrantLock reentrant(owner, "k", long_lease);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  server.command({"SET", queue, "text"});
  Waiting waiting(others);
  waiting.begin(reentrant);
  TEST_ASSERT_TRUE(comes([&] { return server.calls("subscribe") >= 1; }));
  breathe(20ms);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_EQUAL(Status::ok, waiting.join(8s));  // It would ask again when a lease of 20 s ends.
}

// ---- What was given is kept ------------------------------------------------------------------------------------------

// For longer than the offer and the lease.
TEST_ON_SERVER(test_a_hold_that_came_by_a_release_should_be_kept_like_any_other) {
  Party holder(server.unix_url());
  Party waiter(server.unix_url(), {.lease = 1500ms, .kept = true});
  TEST_ASSERT_EQUAL(Status::ok, waiter.watchdog.start(waiter.client));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  waiter.wait_in_queue(server, 1);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_EQUAL(Status::ok, waiter.waiting.join());
  const Instant given = Client::now();
  bool held = true;
  TEST_ASSERT_TRUE(comes([&] {
    held = held && waiter.lock.held();
    return !held || Client::now() - given > offer + 1s;
  }));
  TEST_ASSERT_TRUE(held);
  TEST_ASSERT_EQUAL(waiter.token, holder_on(server));
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 0);
  TEST_ASSERT_EQUAL(Status::ok, waiter.lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

#ifdef HOLDFAST_TEST_ASIO

// ---- One client that waits more than once ----------------------------------------------------------------------------

TEST_ON_SERVER(test_waiters_of_one_client_should_each_be_woken_by_their_own_message) {
  AsioWorld world(server.unix_url());
  Party holder(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  Sole<holdfast::AsyncFairLock> first(world.client, "k", long_lease);
  Sole<holdfast::AsyncFairLock> second(world.client, "k", long_lease);
  Outcome first_told;
  Outcome second_told;
  first.async_acquire(60s, first_told.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("ZCARD " + queue) == "1"; }));
  second.async_acquire(60s, second_told.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("ZCARD " + queue) == "2"; }));
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("PUBSUB CHANNELS holdfast_fair:*") != ""; }));
  // Just after a beat of the second, so that what comes from it soon is no beat.
  const std::string second_beat = "holdfast_beat:{k}:" + server.command("ZRANGE " + queue + " 1 1");
  const auto left = [&] { return std::stol(server.command("PTTL " + second_beat)); };
  TEST_ASSERT_TRUE(world.runs_until([&] { return left() < 2500; }));  // It asks twice when it begins to wait.
  TEST_ASSERT_TRUE(world.runs_until([&] { return left() > 2900; }));
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  const long asked = server.calls("zadd");
  TEST_ASSERT_TRUE(world.runs_until([&] { return first_told.done(); }));
  TEST_ASSERT_TRUE(Client::now() - released < 900ms);
  TEST_ASSERT_EQUAL(Status::ok, first_told.status);
  world.run_for(50ms);
  // The message woke the one, and not the other, whose next beat is later.
  TEST_ASSERT_TRUE(server.calls("zadd") == asked || Client::now() - released > 600ms);
  TEST_ASSERT_FALSE(second_told.done());
  TEST_ASSERT_EQUAL(text_of(first.token()), holder_on(server));
  TEST_ASSERT_EQUAL(Status::ok, world.release(first));
  TEST_ASSERT_TRUE(world.runs_until([&] { return second_told.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, second_told.status);
  TEST_ASSERT_EQUAL(text_of(second.token()), holder_on(server));
  TEST_ASSERT_EQUAL(1, server.calls("subscribe"));
  TEST_ASSERT_EQUAL(Status::ok, world.release(second));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k " + queue));
}

#endif  // HOLDFAST_TEST_ASIO
