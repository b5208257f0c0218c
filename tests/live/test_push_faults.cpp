// SPDX-License-Identifier: MIT
//
// Waiting by push when messages lie, are lost, or come at a bad time. Whatever it is: a waiter has the lock soon after it
// is free, never turns faster than its floor, and is granted nothing by a message.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "patience.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

const std::string channel = "redisson_lock__channel:{k}";
// Far above what any wake takes, far below what a waiter sleeps if nobody wakes it.
constexpr Duration soon = 8s;
constexpr Duration late = 60s;

std::string proxy_path(const RedisServer& server) { return server.socket_path() + ".proxy"; }

// The server is asked so seldom that a waiter which is not woken is seen.
ClientConfig patient_config(const std::string& url) {
  ClientConfig config = config_for(url);
  config.request_timeout = 20s;
  config.stall_timeout = 20s;
  config.max_poll = late;
  return config;
}

long tries(const RedisServer& server) { return server.calls("evalsha") + server.calls("eval"); }

// A waiter for "k" on a thread of its own.
struct Waiting {
  explicit Waiting(const ClientConfig& config) { TEST_ASSERT_EQUAL(Status::ok, client.connect(config)); }
  ~Waiting() {
    client.cancel();
    if (thread.joinable()) thread.join();
  }
  void begin(Duration limit = late) {
    done = false;
    thread = std::thread([this, limit] {
      outcome = lock.acquire(limit);
      finished = Client::now();
      done = true;
    });
  }
  // It has the lock soon after `since`, and lets it go again.
  void ends(Instant since) {
    TEST_ASSERT_TRUE(comes([&] { return done.load(); }, late));
    thread.join();
    TEST_ASSERT_EQUAL(Status::ok, outcome);
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_TRUE(finished - since < soon);
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }

  Client client;
  Owner owner{client};
  ReentrantLock lock{owner, "k", {.lease = late}};
  std::thread thread;
  Status outcome = Status::ok;
  Instant finished;
  std::atomic<bool> done = false;
};

// Who is in the way.
struct Holding {
  explicit Holding(const RedisServer& server) {
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
  Instant release() {
    const Instant now = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    return now;
  }

  Client client;
  Owner owner{client};
  ReentrantLock lock{owner, "k", {.lease = late}};
};

bool subscribed(const RedisServer& server, int count = 1) {
  return server.command("PUBSUB NUMSUB " + channel) == channel + " " + std::to_string(count);
}

// Subscribed, and through with the try behind it: nothing more is asked.
void await_sleep(const RedisServer& server, int count = 1) {
  TEST_ASSERT_TRUE(comes([&] { return subscribed(server, count); }));
  long before = -1;
  TEST_ASSERT_TRUE(comes([&] {
    const long now = tries(server);
    const bool still = now == before;
    before = now;
    if (!still) breathe(30ms);
    return still;
  }));
}

// Messages as fast as the server takes them, for so long. The number that was published.
long flood(const RedisServer& server, const std::string& payload, Duration length) {
  RawConnection publisher(server.socket_path());
  long count = 0;
  for (const Instant until = Client::now() + length; Client::now() < until; ++count)
    publisher.command({"PUBLISH", channel, payload});
  return count;
}

}  // namespace

// ---- Messages ----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_forged_messages_should_make_the_waiter_try_and_wait_on) {
  Holding holder(server);
  Waiting waiter(patient_config(server.tcp_url()));
  waiter.begin();
  await_sleep(server);
  for (const char* const payload : {"0", "1"}) {
    const long before = tries(server);
    server.command({"PUBLISH", channel, payload});
    TEST_ASSERT_TRUE(comes([&] { return tries(server) > before; }));
  }
  TEST_ASSERT_FALSE(waiter.done);
  TEST_ASSERT_TRUE(holder.lock.held());
  TEST_ASSERT_EQUAL("1", server.command("HLEN k"));
  waiter.ends(holder.release());
}

TEST_ON_SERVER(test_messages_for_nobody_should_wake_nobody) {
  Holding holder(server);
  Waiting waiter(patient_config(server.tcp_url()));
  waiter.begin();
  await_sleep(server);
  const long before = tries(server);
  server.command("PUBLISH redisson_lock__channel:{other} 0");
  server.command("PUBLISH k 0");
  for (const std::string& payload :
       {std::string(), std::string("2"), std::string("00"), std::string("-1"), std::string("0\0", 2),
        std::string("\r\n"), std::string("\xff\xfe\0\r\n:1\r\n", 9), std::string("unlock"), std::string(100, '0')})
    server.command({"PUBLISH", channel, payload});
  breathe(200ms);  // That nothing comes has no event.
  TEST_ASSERT_EQUAL(before, tries(server));
  TEST_ASSERT_EQUAL(1, server.calls("subscribe"));
  waiter.ends(holder.release());
}

TEST_ON_SERVER(test_flood_of_messages_should_not_turn_the_waiter_faster_than_its_floor) {
  Holding holder(server);
  Waiting waiter(patient_config(server.tcp_url()));
  waiter.begin();
  await_sleep(server);
  const long before = tries(server);
  const Instant start = Client::now();
  const long published = flood(server, "0", 600ms);
  const long tried = tries(server) - before;
  const Duration took = Client::now() - start;
  TEST_MESSAGE("messages " << published << ", tries " << tried);
  TEST_ASSERT_TRUE(tried > 0);
  TEST_ASSERT_TRUE(published > tried);
  TEST_ASSERT_TRUE(tried <= took / retry_delay_min + 2);
  TEST_ASSERT_FALSE(waiter.done);
  waiter.ends(holder.release());
}

TEST_ON_SERVER(test_flood_of_oversized_messages_should_be_survived_at_the_same_pace) {
  Holding holder(server);
  Waiting waiter(patient_config(server.tcp_url()));
  waiter.begin();
  await_sleep(server);
  const std::string huge = "0" + std::string(100000, '\n');
  const long before = tries(server);
  const long subscribes = server.calls("subscribe");
  const Instant start = Client::now();
  (void)flood(server, huge, 600ms);
  const long turns = (Client::now() - start) / retry_delay_min + 2;
  TEST_ASSERT_TRUE(tries(server) - before <= turns);
  TEST_ASSERT_TRUE(server.calls("subscribe") - subscribes <= turns);
  TEST_ASSERT_FALSE(waiter.done);
  waiter.ends(holder.release());
}

// The message comes between the server's answer to a try and the waiter's going to sleep.
TEST_ON_SERVER(test_release_during_a_try_should_not_be_slept_over) {  // [rule 18]
  Proxy proxy(proxy_path(server), server.socket_path());
  Waiting waiter(patient_config(proxy.url()));
  for (int turn = 0; turn < 3; ++turn) {
    Holding holder(server);
    waiter.begin();
    await_sleep(server);
    proxy.hold_replies_of(0);  // Its commands; the subscription is another connection.
    const long before = tries(server);
    server.command({"PUBLISH", channel, "0"});
    TEST_ASSERT_TRUE(comes([&] { return tries(server) > before; }));
    const Instant released = holder.release();
    breathe(20ms);  // The message is on its way while the waiter looks at its try alone.
    proxy.hold_replies_of(Proxy::none);
    waiter.ends(released);
  }
}

// The release comes between the first try and the confirmation of the subscription.
TEST_ON_SERVER(test_release_before_the_subscription_should_not_be_slept_over) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Waiting waiter(patient_config(proxy.url()));
  Holding holder(server);
  proxy.hold_requests_of(1);  // The subscription's SUBSCRIBE.
  waiter.begin();
  TEST_ASSERT_TRUE(comes([&] { return proxy.connections() == 2; }));
  const Instant released = holder.release();
  proxy.hold_requests_of(Proxy::none);
  waiter.ends(released);
}

TEST_ON_SERVER(test_waiters_of_several_clients_should_all_come_to_their_turn) {
  Holding holder(server);
  std::vector<std::unique_ptr<Waiting>> waiters;
  for (int index = 0; index < 4; ++index) {
    waiters.push_back(std::make_unique<Waiting>(patient_config(index % 2 == 0 ? server.tcp_url() : server.unix_url())));
    waiters.back()->begin();
  }
  await_sleep(server, 4);
  Instant since = holder.release();
  for (std::size_t left = waiters.size(); left != 0; --left) {
    const auto winner = [&] {
      return std::find_if(waiters.begin(), waiters.end(), [](const auto& waiter) { return waiter->done.load(); });
    };
    TEST_ASSERT_TRUE(comes([&] { return winner() != waiters.end(); }, late));
    const auto found = winner();
    (*found)->ends(since);
    since = Client::now();
    waiters.erase(found);
  }
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_woken_waiter_that_leaves_should_pass_the_wake_on) {
  Holding holder(server);
  Waiting gone(patient_config(server.tcp_url()));
  Waiting waiter(patient_config(server.tcp_url()));
  gone.begin();
  waiter.begin();
  await_sleep(server, 2);
  gone.client.cancel();
  TEST_ASSERT_TRUE(comes([&] { return gone.done.load(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, gone.outcome);
  gone.thread.join();
  waiter.ends(holder.release());
}

// ---- Lost subscriptions ------------------------------------------------------------------------------------------

// Each byte that the server says to a waiter may be its last.
TEST_ON_SERVER(test_waiter_should_have_the_lock_soon_wherever_its_replies_are_cut) {
  Proxy proxy(proxy_path(server), server.socket_path());
  ClientConfig config = patient_config(proxy.url());
  config.request_timeout = 2s;
  bool cut = true;
  for (std::int64_t bytes = 0; cut; ++bytes) {
    TEST_MESSAGE("cut after " << bytes << " bytes");
    Waiting waiter(config);
    Holding holder(server);
    proxy.cut_after(bytes);
    waiter.begin();
    TEST_ASSERT_TRUE(comes([&] { return proxy.cut_done() || subscribed(server); }));
    // The rest of what is said before the lock is free.
    cut = comes([&] { return proxy.cut_done(); }, 30ms);
    TEST_ASSERT_FALSE(waiter.done);
    const Instant released = holder.release();
    waiter.ends(released);
    proxy.cut_after(Proxy::never);
    TEST_ASSERT_TRUE(bytes < 500);
  }
}

TEST_ON_SERVER(test_subscription_killed_around_a_release_should_cost_no_wake) {
  for (int turn = 0; turn < 12; ++turn) {
    Holding holder(server);
    Waiting waiter(patient_config(turn % 2 == 0 ? server.tcp_url() : server.unix_url()));
    waiter.begin();
    await_sleep(server);
    Instant released;
    if (turn % 3 == 0) released = holder.release();
    server.command("CLIENT KILL TYPE pubsub");
    if (turn % 3 == 1) TEST_ASSERT_TRUE(comes([&] { return subscribed(server); }));
    if (turn % 3 != 0) released = holder.release();
    waiter.ends(released);
  }
}

TEST_ON_SERVER(test_killed_connections_of_all_kinds_should_not_end_a_wait) {
  Holding holder(server);
  Waiting waiter(patient_config(server.tcp_url()));
  waiter.begin();
  await_sleep(server);
  server.command("CLIENT KILL TYPE normal SKIPME yes");  // The holder's, too.
  server.command("CLIENT KILL TYPE pubsub");
  server.command("SCRIPT FLUSH");
  TEST_ASSERT_TRUE(comes([&] { return subscribed(server); }));
  waiter.ends(holder.release());
}

// A subscriber that does not read is thrown out by the server.
TEST_ON_SERVER(test_subscriber_thrown_out_at_its_buffer_limit_should_come_back) {
  server.command({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 65536 65536 0"});
  Proxy proxy(proxy_path(server), server.socket_path());
  Holding holder(server);
  Waiting waiter(patient_config(proxy.url()));
  waiter.begin();
  await_sleep(server);
  proxy.hold_replies_of(1);
  RawConnection publisher(server.socket_path());
  const std::string noise(300, 'x');
  TEST_ASSERT_TRUE(comes([&] {
    for (int index = 0; index < 500; ++index) publisher.command({"PUBLISH", channel, noise});
    return subscribed(server, 0);
  }));
  const Instant released = holder.release();  // Nobody hears of it.
  proxy.hold_replies_of(Proxy::none);
  waiter.ends(released);
}

// Nothing comes any more, and nothing says so: the heartbeat finds out, and the bound of a poll is kept.
TEST_ON_SERVER(test_half_open_subscription_should_be_found_within_the_bound_of_a_poll) {
  Proxy proxy(proxy_path(server), server.socket_path());
  ClientConfig config = patient_config(proxy.url());
  config.max_poll = 300ms;
  config.stall_timeout = 300ms;
  Waiting waiter(config);
  {
    Holding holder(server);
    waiter.begin();
    await_sleep(server);
    proxy.swallow_replies_of(1);
    // With the lock still held: the subscription is replaced, and the next release wakes.
    TEST_ASSERT_TRUE(comes([&] { return proxy.connections() >= 3 && subscribed(server); }));
    waiter.ends(holder.release());
  }
  Holding again(server);
  waiter.begin();
  await_sleep(server);
  proxy.swallow_replies_of(proxy.connections() - 1);
  waiter.ends(again.release());  // By a poll, or by the next subscription.
}

TEST_ON_SERVER(test_waiting_should_live_through_a_restart_of_the_server) {
  Waiting waiter(patient_config(server.tcp_url()));
  {
    Holding holder(server);
    waiter.begin();
    await_sleep(server);
    server.stop();
    server.start();  // Without data: the lock is free.
    waiter.ends(Client::now());
  }
  Holding holder(server);
  waiter.begin();
  await_sleep(server);
  waiter.ends(holder.release());
}

// ---- Rights ------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_waiter_that_may_not_subscribe_should_poll) {
  for (const char* const missing : {"-subscribe", "resetchannels"}) {
    TEST_MESSAGE("user " << std::string(missing));
    server.command("ACL SETUSER joe reset on >secret ~* &* +@all");
    server.command(std::string("ACL SETUSER joe ") + missing);
    ClientConfig config = patient_config(server.tcp_url());
    config.user = "joe";
    config.password = "secret";
    Holding holder(server);
    Waiting waiter(config);
    waiter.begin();
    const long before = tries(server);
    TEST_ASSERT_TRUE(comes([&] { return tries(server) > before + 3; }));
    waiter.ends(holder.release());
    // Its delays grow to the bound of a poll, and stay there.
    Holding again(server);
    waiter.begin();
    const long restarted = tries(server);
    TEST_ASSERT_TRUE(comes([&] { return tries(server) > restarted + 8; }));
    const long polled = tries(server);
    const Instant start = Client::now();
    breathe(500ms);
    TEST_ASSERT_TRUE(tries(server) - polled <= (Client::now() - start) / (retry_delay_max / 2) + 2);
    waiter.ends(again.release());
  }
}

TEST_ON_SERVER(test_holder_that_may_not_publish_should_release_and_its_waiter_come_by_its_poll) {
  server.command("ACL SETUSER joe on >secret ~* &* +@all -publish");
  ClientConfig config = patient_config(server.tcp_url());
  config.user = "joe";
  config.password = "secret";
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Owner owner(client);
  ReentrantLock holder(owner, "k", {.lease = late});
  TEST_ASSERT_EQUAL(Status::ok, holder.try_acquire());
  ClientConfig quick = patient_config(server.tcp_url());
  quick.max_poll = 300ms;
  Waiting waiter(quick);
  waiter.begin();
  await_sleep(server);
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, holder.release());
  waiter.ends(released);
}

// A right that is taken away while somebody waits ends the subscription on some servers and not on others.
TEST_ON_SERVER(test_right_that_goes_while_waiting_should_leave_a_poll) {
  server.command("ACL SETUSER joe on >secret ~* &* +@all");
  ClientConfig config = patient_config(server.tcp_url());
  config.user = "joe";
  config.password = "secret";
  Holding holder(server);
  Waiting waiter(config);
  waiter.begin();
  await_sleep(server);
  server.command("ACL SETUSER joe -subscribe resetchannels");
  server.command("CLIENT KILL TYPE pubsub");
  const long before = tries(server);
  TEST_ASSERT_TRUE(comes([&] { return tries(server) > before + 2; }));
  waiter.ends(holder.release());
}
