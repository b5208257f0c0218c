// SPDX-License-Identifier: MIT
//
// The reentrant kinds when replies are lost, connections and servers go, and others meddle. Whatever it is: no hold of
// another is touched, the server's count is the client's once the compensations are through, and nothing stays behind.
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "patience.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// Each request of a hold's life.
enum class Step { acquire, reenter, renew, step_down, release };
constexpr Step steps[] = {Step::acquire, Step::reenter, Step::renew, Step::step_down, Step::release};

std::string name_of(Step step) {
  switch (step) {
    case Step::acquire: return "acquire";
    case Step::reenter: return "re-entry";
    case Step::renew: return "renew";
    case Step::step_down: return "step down";
    case Step::release: return "release";
  }
  return "?";
}

// How often the lock is held before a step, after it, and where its outcome is not known.
struct Counts {
  std::uint32_t before, after, unknown;
};
Counts counts_of(Step step) {
  switch (step) {
    case Step::acquire: return {0, 1, 0};
    case Step::reenter: return {1, 2, 1};
    case Step::renew: return {1, 1, 1};
    case Step::step_down: return {2, 1, 1};
    case Step::release: return {1, 0, 0};
  }
  return {};
}

ClientConfig quick_config(const std::string& url) {
  ClientConfig config = config_for(url);
  config.request_timeout = 300ms;
  config.stall_timeout = 300ms;
  return config;
}

std::string text_of(ByteView bytes) { return std::string(bytes.string_view()); }

std::string field_of(const RedisServer& server, const BlockingLock& lock) {
  return server.command({"HGET", text_of(lock.key().bytes()), text_of(lock.token().bytes())});
}

Status perform(BlockingLock& lock, Step step) {
  switch (step) {
    case Step::acquire:
    case Step::reenter: return lock.try_acquire();
    case Step::renew: return lock.renew();
    case Step::step_down:
    case Step::release: return lock.release();
  }
  return Status::ok;
}

// A lock behind a proxy, another client's on the same name, and a stranger's key beside them.
template <class Lock>
struct Scene {
  explicit Scene(RedisServer& where, const ClientConfig& config) : server(&where) {
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
    TEST_ASSERT_EQUAL(Status::ok, rivals.connect(config_for(where.unix_url())));
    server->command("HSET stranger somebody 1");
    server->command("PEXPIRE stranger 900000");
    warm_up();
  }
  // The server knows every script.
  void warm_up() {
    acquire_once();
    acquire_once();
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.renew(); }, Status::ok));
    release_once();
    release_once();
  }
  // The timeouts here are short, so on a machine that stands still a moment also a call is late that nobody cuts: what it left
  // is taken back then.
  void acquire_once() {
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  }
  void release_once() {
    if (const Status status = lock.release(); status == Status::timed_out)
      settle();
    else
      TEST_ASSERT_EQUAL(Status::ok, status);
  }
  void prepare(Step step) {
    for (std::uint32_t count = 0; count < counts_of(step).before; ++count) acquire_once();
    TEST_ASSERT_EQUAL(counts_of(step).before, lock.hold_count());
  }
  // Until the client is through with what it has to take back.
  void settle() {
    bool locked = false;
    TEST_ASSERT_TRUE(comes([&] {
      return lock.is_locked(locked) == Status::ok && client.connected() && client.compensations_pending() == 0;
    }));
  }
  // After a step that ended so, while something was wrong. `meddled`: the rival has tried meanwhile.
  void check(Step step, Status outcome, Status meddled) {
    const Counts counts = counts_of(step);
    settle();
    TEST_ASSERT_EQUAL(outcome == Status::ok ? counts.after : counts.unknown, lock.hold_count());
    TEST_ASSERT_EQUAL(lock.hold_count() != 0, lock.held());
    if (meddled == Status::ok) {  // The name was free, so the hold that stands is the rival's, as it was.
      TEST_ASSERT_FALSE(lock.held());
      TEST_ASSERT_EQUAL("1", field_of(*server, rival));
      TEST_ASSERT_EQUAL("1", server->command("HLEN k"));
      TEST_ASSERT_EQUAL(Status::lock_busy, eventually([&] { return lock.try_acquire(); }, Status::lock_busy));
      TEST_ASSERT_EQUAL(Status::ok, rival.release());
    }
    unwind();
    // Free for everybody, at once.
    TEST_ASSERT_EQUAL("0", server->command("EXISTS k"));
    TEST_ASSERT_EQUAL(Status::ok, rival.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, rival.release());
    TEST_ASSERT_EQUAL("somebody 1", server->command("HGETALL stranger"));
  }
  void unwind() {
    for (std::uint32_t count = lock.hold_count(); count != 0; --count) {
      TEST_ASSERT_EQUAL(std::to_string(count), field_of(*server, lock));
      TEST_ASSERT_TRUE(std::stol(server->command("PTTL k")) > 1000);
      release_once();
    }
  }

  RedisServer* server;
  Client client;
  Client rivals;
  Owner owner{client};
  Owner rival_owner{rivals};
  Lock lock{owner, "k", {.lease = 60s}};
  Lock rival{rival_owner, "k", {.lease = 60s}};
};

std::string proxy_path(const RedisServer& server) { return server.socket_path() + ".proxy"; }

// The reply to each step is cut at each of its bytes, none of them included.
template <class Lock>
void cut_everywhere(RedisServer& server, bool flushed) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Scene<Lock> scene(server, config_for(proxy.url()));
  for (const Step step : steps) {
    std::set<Status> outcomes;
    bool cut = true;
    for (std::int64_t bytes = 0; cut; ++bytes) {
      TEST_MESSAGE(name_of(step) << " cut after " << bytes << " bytes");
      scene.prepare(step);
      if (flushed) server.command("SCRIPT FLUSH");
      proxy.cut_after(bytes);
      const Status outcome = perform(scene.lock, step);
      cut = proxy.cut_done();
      proxy.cut_after(Proxy::never);
      outcomes.insert(outcome);
      const Status meddled = scene.rival.try_acquire();
      scene.check(step, outcome, meddled);
      TEST_ASSERT_TRUE(bytes < 200);
    }
    TEST_ASSERT_EQUAL(1U, outcomes.count(Status::ok));
    if (step != Step::release) TEST_ASSERT_EQUAL(1U, outcomes.count(Status::transport_closed));
  }
}

// The fault begins before the step, and ends behind it and the rival's attempt.
template <class Lock, class Begin, class End>
void fail_each_step(RedisServer& server, Begin&& begin, End&& end) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Scene<Lock> scene(server, quick_config(proxy.url()));
  for (const Step step : steps) {
    TEST_MESSAGE(name_of(step));
    scene.prepare(step);
    begin(proxy);
    const Instant start = Client::now();
    const Status outcome = perform(scene.lock, step);
    TEST_MESSAGE("outcome: " << outcome);
    TEST_ASSERT_TRUE(outcome == Status::timed_out || outcome == Status::transport_closed ||
                     outcome == Status::not_connected || outcome == Status::ok);
    TEST_ASSERT_TRUE(Client::now() - start < 5s);
    const Status meddled = scene.rival.try_acquire();
    end(proxy);
    scene.check(step, outcome, meddled);
  }
}

}  // namespace

// ---- Lost replies ------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_reply_cut_at_every_byte_should_leave_a_reentrant_hold_as_the_client_says) {
  cut_everywhere<ReentrantLock>(server, false);
}

TEST_ON_SERVER(test_reply_cut_at_every_byte_should_leave_a_fenced_hold_as_the_client_says) {
  cut_everywhere<FencedLock>(server, false);
}

TEST_ON_SERVER(test_reply_cut_where_the_server_has_forgotten_the_scripts_should_leave_the_hold_as_the_client_says) {
  cut_everywhere<ReentrantLock>(server, true);
}

TEST_ON_SERVER(test_swallowed_reply_should_leave_the_hold_as_the_client_says) {
  const auto begin = [](Proxy& proxy) { proxy.swallow_replies(true); };
  const auto end = [](Proxy& proxy) { proxy.swallow_replies(false); };
  fail_each_step<ReentrantLock>(server, begin, end);
  fail_each_step<FencedLock>(server, begin, end);
}

TEST_ON_SERVER(test_reply_delayed_beyond_the_deadline_should_leave_the_hold_as_the_client_says) {
  const auto begin = [](Proxy& proxy) { proxy.hold_replies_of(Proxy::all); };
  const auto end = [](Proxy& proxy) { proxy.hold_replies_of(Proxy::none); };
  fail_each_step<ReentrantLock>(server, begin, end);
  fail_each_step<FencedLock>(server, begin, end);
}

TEST_ON_SERVER(test_request_delayed_beyond_the_deadline_should_leave_the_hold_as_the_client_says) {
  const auto begin = [](Proxy& proxy) { proxy.hold_requests_of(Proxy::all); };
  const auto end = [](Proxy& proxy) { proxy.hold_requests_of(Proxy::none); };
  fail_each_step<ReentrantLock>(server, begin, end);
  fail_each_step<FencedLock>(server, begin, end);
}

TEST_ON_SERVER(test_killed_connection_should_leave_the_hold_as_the_client_says) {
  const auto begin = [&](Proxy&) { server.command("CLIENT KILL TYPE normal SKIPME yes"); };
  const auto end = [](Proxy&) {};
  fail_each_step<ReentrantLock>(server, begin, end);
  fail_each_step<FencedLock>(server, begin, end);
}

TEST_ON_SERVER(test_replies_that_dribble_should_be_understood) {
  Proxy proxy(proxy_path(server), server.socket_path());
  proxy.dribble(true);
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 5s;
  config.connect_timeout = 5s;
  Scene<FencedLock> scene(server, config);
  for (int turn = 0; turn < 10; ++turn) {
    scene.warm_up();
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  }
}

// The same on a connection whose predecessor may still bring something: CLIENT KILL is not allowed.
TEST_ON_SERVER(test_requests_of_a_dead_connection_that_run_late_should_change_nothing) {  // [rules 1, 9]
  server.command("ACL SETUSER joe on >secret ~* &* +@all -client|kill");
  for (const Step step : steps) {
    TEST_MESSAGE(name_of(step));
    Proxy proxy(proxy_path(server), server.socket_path());
    ClientConfig config = quick_config(proxy.url());
    config.user = "joe";
    config.password = "secret";
    Scene<ReentrantLock> scene(server, config);
    scene.prepare(step);
    proxy.hold_requests_of(0);
    TEST_ASSERT_TRUE(perform(scene.lock, step) != Status::ok || step == Step::release);
    scene.settle();
    TEST_ASSERT_TRUE(proxy.connections() >= 2);
    TEST_ASSERT_EQUAL(counts_of(step).unknown, scene.lock.hold_count());
    scene.unwind();
    // The next hold of the same owner, twice held; and the late request arrives.
    TEST_ASSERT_EQUAL(Status::ok, scene.lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, scene.lock.try_acquire());
    const std::int64_t before = proxy.requested(0);
    const std::string all = server.command("HGETALL k");
    proxy.hold_requests_of(Proxy::none);
    TEST_ASSERT_TRUE(comes([&] { return proxy.requested(0) > before; }));
    // It has run when the connection behind it has gone. One that came last may have been granted what was free.
    TEST_ASSERT_TRUE(comes([&] {
      const std::string clients = server.command("CLIENT LIST");
      std::size_t count = 0;
      for (std::size_t at = clients.find("user=joe"); at != std::string::npos; at = clients.find("user=joe", at + 1))
        ++count;
      return count == 1;
    }));
    TEST_ASSERT_EQUAL(all, server.command("HGETALL k"));
    TEST_ASSERT_EQUAL(2U, scene.lock.hold_count());
    scene.unwind();
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  }
}

TEST_ON_SERVER(test_late_reentry_should_not_create_what_was_lost) {  // [rule 17]
  Proxy proxy(proxy_path(server), server.socket_path());
  Scene<ReentrantLock> scene(server, quick_config(proxy.url()));
  scene.prepare(Step::reenter);
  proxy.hold_requests_of(Proxy::all);
  TEST_ASSERT_EQUAL(Status::timed_out, scene.lock.try_acquire());
  server.command("DEL k");
  const bool taken = scene.rival.try_acquire() == Status::ok;
  proxy.hold_requests_of(Proxy::none);
  TEST_ASSERT_EQUAL(Status::lock_lost, eventually([&] { return scene.lock.try_acquire(); }, Status::lock_lost));
  TEST_ASSERT_TRUE(taken);
  TEST_ASSERT_EQUAL(text_of(scene.rival.token().bytes()) + " 1", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL(Status::ok, scene.rival.release());
  scene.settle();
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_compensated_step_should_not_shorten_what_was_promised) {  // [rule 3]
  Proxy proxy(proxy_path(server), server.socket_path());
  Scene<FencedLock> scene(server, quick_config(proxy.url()));
  for (const Step step : {Step::reenter, Step::step_down, Step::renew}) {
    TEST_MESSAGE(name_of(step));
    scene.prepare(step);
    server.command("PEXPIRE k 500000");
    proxy.cut_after(1);
    (void)perform(scene.lock, step);
    scene.settle();
    TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 400000);
    scene.unwind();
  }
}

TEST_ON_SERVER(test_renewal_confirmed_after_the_end_should_revive_nothing) {  // [rule 2]
  Proxy proxy(proxy_path(server), server.socket_path());
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 10s;
  config.stall_timeout = 10s;
  Scene<ReentrantLock> scene(server, config);
  ReentrantLock lock(scene.owner, "short", {.lease = 400ms});
  for (const bool step : {false, true}) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    const Instant until = lock.valid_until();
    proxy.hold_replies_of(Proxy::all);
    std::thread late([&] {
      (void)comes([&] { return Client::now() > until + 20ms; });
      proxy.hold_replies_of(Proxy::none);
    });
    const Status outcome = step ? lock.try_acquire() : lock.renew(10s);
    late.join();
    // A step is given up when the hold ends; a renewal is waited for.
    TEST_ASSERT_TRUE(outcome == Status::lock_lost);
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    scene.settle();
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS short"));
  }
}

// ---- Servers that go ---------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_restart_with_data_should_leave_the_hold, "--appendonly", "yes", "--appendfsync", "no") {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::uint64_t fence = lock.fence();
  for (int turn = 0; turn < 2; ++turn) {
    server.stop();
    TEST_ASSERT_FALSE(lock.renew() == Status::ok);
    TEST_ASSERT_FALSE(lock.try_acquire() == Status::ok);
    TEST_ASSERT_TRUE(lock.held());
    server.start();
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.renew(); }, Status::ok));
    TEST_ASSERT_EQUAL(2U, lock.hold_count());
    TEST_ASSERT_EQUAL("2", field_of(server, lock));
  }
  TEST_ASSERT_EQUAL(fence, lock.fence());
  server.stop();
  TEST_ASSERT_FALSE(lock.release() == Status::ok);  // Whatever comes, this one is over.
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  server.start();
  bool locked = false;
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.is_locked(locked); }, Status::ok));
  TEST_ASSERT_EQUAL("1", field_of(server, lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(lock.fence() > fence);
}

TEST_ON_SERVER(test_restart_without_data_should_be_a_loss_that_touches_nobody) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::uint64_t fence = lock.fence();
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.stop();
  server.start();
  Client other;
  TEST_ASSERT_EQUAL(Status::ok, other.connect(config_for(server.tcp_url())));
  Owner rival(other);
  FencedLock next(rival, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, next.try_acquire());
  TEST_ASSERT_TRUE(next.fence() > fence);  // Also where the counter is lost.
  TEST_ASSERT_EQUAL(Status::lock_lost, eventually([&] { return lock.try_acquire(); }, Status::lock_lost));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("1", field_of(server, next));
}

TEST_ON_SERVER(test_paused_clients_beyond_the_lease_should_be_a_loss_that_stays) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 300ms});
  RawConnection control(server.socket_path());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("OK", control.command("CLIENT PAUSE 1000 ALL"));
  while (lock.held()) (void)(lock.renew() == Status::ok && lock.try_acquire() == Status::ok);
  TEST_ASSERT_TRUE(Client::now() >= lock.valid_until());
  TEST_ASSERT_EQUAL("PONG", server.command("PING"));  // The pause is over, and what piled up has run.
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.is_locked(locked); }, Status::ok));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  while (lock.release() == Status::lock_lost) {}
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }));
}

// ---- Others that meddle ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_key_that_others_took_should_be_a_loss_at_every_step_and_stay_theirs) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  const std::vector<std::vector<std::string>> meddlings = {{},
                                                           {"HSET", "k", "somebody", "1"},
                                                           {"SET", "k", "somebody"},
                                                           {"RPUSH", "k", "somebody"},
                                                           {"SADD", "k", "somebody"},
                                                           {"HSET", "k", "mode", "write"},
                                                           {"XADD", "k", "*", "a", "b"}};
  for (const Step step : steps) {
    if (step == Step::acquire) continue;
    for (const std::vector<std::string>& meddling : meddlings) {
      TEST_MESSAGE(name_of(step) << " after " << (meddling.empty() ? std::string("DEL") : meddling[0]));
      Owner owner(client);
      ReentrantLock lock(owner, "k", {.lease = 60s});
      for (std::uint32_t count = 0; count < counts_of(step).before; ++count)
        TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
      server.command("DEL k");
      if (!meddling.empty()) server.command(meddling);
      const std::string theirs = server.command("DUMP k");
      TEST_ASSERT_EQUAL(Status::lock_lost, perform(lock, step));
      TEST_ASSERT_FALSE(lock.held());
      TEST_ASSERT_EQUAL(0U, lock.hold_count());
      while (lock.release() == Status::lock_lost) {}
      TEST_ASSERT_EQUAL(theirs, server.command("DUMP k"));
      TEST_ASSERT_EQUAL(meddling.empty() ? Status::ok : Status::lock_busy, lock.try_acquire());
      if (!meddling.empty()) TEST_ASSERT_EQUAL(theirs, server.command("DUMP k"));
      (void)lock.release();
      server.command("DEL k");
    }
  }
}

TEST_ON_SERVER(test_missing_right_should_be_named_and_leave_nothing_without_an_end) {
  struct Case {
    const char* missing;
    Status acquired, reentered, renewed, released;
  };
  constexpr Status refused = Status::no_permission;
  constexpr Status works = Status::ok;
  constexpr Status none = Status::not_held;
  const Case cases[] = {{"-evalsha", refused, none, none, none},      {"-eval", refused, none, none, none},
                        {"-exists", works, works, works, works},      {"-hset", refused, none, none, none},
                        {"-pexpire", refused, none, none, none},      {"-pexpire -hdel", refused, none, none, none},
                        {"-hdel", works, works, works, refused},      {"-pttl", refused, none, none, none},
                        {"-hexists", works, refused, refused, works}, {"-publish", works, works, works, works},
                        {"-subscribe", works, works, works, works},   {"resetchannels", works, works, works, works}};
  for (const Case& one : cases) {
    TEST_MESSAGE("user " << std::string(one.missing));
    server.command("FLUSHALL");
    server.command("SCRIPT FLUSH");
    server.command("ACL SETUSER joe reset on >secret ~* &* +@all");
    server.command(std::string("ACL SETUSER joe ") + one.missing);
    ClientConfig config = config_for(server.unix_url());
    config.user = "joe";
    config.password = "secret";
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
    Owner owner(client);
    ReentrantLock lock(owner, "k", {.lease = 60s});
    const auto outcome_is = [&](Status wanted, Status actual) {
      TEST_ASSERT_EQUAL(wanted, actual);
      if (wanted == refused) {  // Named: the command, or the key or channel that is out of reach.
        const std::string text = text_of(client.error_text());
        TEST_MESSAGE("text: " << text);
        TEST_ASSERT_TRUE(text.find("permission") != std::string::npos || text.find("can't run") != std::string::npos);
      }
    };
    outcome_is(one.acquired, lock.try_acquire());
    FencedLock fenced(owner, "fenced", {.lease = 60s});
    outcome_is(one.acquired, fenced.try_acquire());
    if (one.acquired == works)
      outcome_is(one.released, fenced.release());
    else
      TEST_ASSERT_EQUAL("0", server.command("EXISTS fenced"));
    if (one.acquired == works) {
      outcome_is(one.reentered, lock.try_acquire());
      TEST_ASSERT_EQUAL(one.reentered == works ? 2U : 1U, lock.hold_count());
      server.command("PEXPIRE k 50000");  // So that the renewal has something to write.
      outcome_is(one.renewed, lock.renew());
      TEST_ASSERT_TRUE(lock.held());
      TEST_ASSERT_TRUE(client.connected());
      TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 0);
      if (lock.hold_count() == 2) outcome_is(works, lock.release());
      TEST_ASSERT_EQUAL("1", field_of(server, lock));
      outcome_is(one.released, lock.release());
    }
    TEST_ASSERT_FALSE(lock.held());
    if (one.released == refused)
      TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 0);
    else
      TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  }
}

TEST_ON_SERVER(test_full_memory_should_let_go_and_leave_nothing_without_an_end) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  ReentrantLock plain(owner, "plain", {.lease = 60s});
  FencedLock fenced(owner, "fenced", {.lease = 60s});
  ReentrantLock late(owner, "late", {.lease = 60s});
  FencedLock late_fenced(owner, "late fenced", {.lease = 60s});
  for (BlockingLock* lock : {static_cast<BlockingLock*>(&plain), static_cast<BlockingLock*>(&fenced)})
    for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  server.command("CONFIG SET maxmemory-policy noeviction");
  server.command("CONFIG SET maxmemory 1");
  for (BlockingLock* lock : {static_cast<BlockingLock*>(&late), static_cast<BlockingLock*>(&late_fenced)}) {
    const Status status = lock->try_acquire();
    TEST_ASSERT_TRUE(status == Status::ok || status == Status::out_of_memory);
    const long left = std::stol(server.command({"PTTL", text_of(lock->key().bytes())}));
    TEST_ASSERT_TRUE(status == Status::ok ? left > 0 : left == -2);
    if (status == Status::ok) TEST_ASSERT_EQUAL(Status::ok, lock->release());
  }
  for (BlockingLock* lock : {static_cast<BlockingLock*>(&plain), static_cast<BlockingLock*>(&fenced)}) {
    server.command({"PEXPIRE", text_of(lock->key().bytes()), "50000"});
    TEST_ASSERT_EQUAL(Status::ok, lock->renew());
    TEST_ASSERT_EQUAL(Status::ok, lock->release());
    TEST_ASSERT_EQUAL("1", field_of(server, *lock));
    TEST_ASSERT_EQUAL(Status::ok, lock->release());
  }
  TEST_ASSERT_EQUAL("0", server.command({"EXISTS", "plain", "fenced", "late", "late fenced"}));
}

TEST_ON_SERVER(test_replica_should_be_named_at_every_step_and_be_compensated_after_its_promotion) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 60s});
  ReentrantLock refused(owner, "refused", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("PEXPIRE k 50000");  // So that a renewal has something to write.
  server.command("REPLICAOF 127.0.0.1 1");
  TEST_ASSERT_EQUAL(Status::read_only, refused.try_acquire());
  TEST_ASSERT_TRUE(text_of(client.error_text()).find("READONLY") == 0);
  TEST_ASSERT_EQUAL(Status::read_only, lock.renew());
  TEST_ASSERT_TRUE(text_of(client.error_text()).find("READONLY") == 0);
  TEST_ASSERT_EQUAL(Status::read_only, lock.try_acquire());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(1U, lock.hold_count());
  server.command("REPLICAOF NO ONE");
  bool locked = false;
  const auto settled = [&] { return lock.is_locked(locked) == Status::ok && client.compensations_pending() == 0; };
  // What is compensated late must not undo what was granted meanwhile.
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("2", field_of(server, lock));
  TEST_ASSERT_TRUE(comes(settled));
  TEST_ASSERT_EQUAL("2", field_of(server, lock));
  server.command("REPLICAOF 127.0.0.1 1");
  TEST_ASSERT_EQUAL(Status::read_only, lock.release());
  TEST_ASSERT_EQUAL(Status::read_only, lock.release());
  TEST_ASSERT_FALSE(lock.held());
  server.command("REPLICAOF NO ONE");
  TEST_ASSERT_TRUE(comes(settled));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k refused"));
}
