// SPDX-License-Identifier: MIT
//
// Semaphores on real servers: how many share, what stands on the server, who is woken, and what comes back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "listening_acquire.hpp"
#include "patience.hpp"
#include "written_line.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

constexpr char channel[] = "redisson_sc:{k}";

const LockTiming long_lease = {.lease = 20s};

// A client with a permit. It asks again by itself only when nobody would wait any more: what is granted sooner was woken.
struct Party {
  explicit Party(const RedisServer& server, std::uint32_t permits = 2, const std::string& name = "k",
                 const LockTiming& timing = long_lease)
      : permit(patient(server), ByteView(name), permits, timing) {}
  Client& patient(const RedisServer& server) {
    ClientConfig config = config_for(server.unix_url());
    config.max_poll = 10min;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
    return client;
  }
  Client client;
  Semaphore permit;
};

std::string text_of(const holdfast::Token& token) { return std::string(token.bytes().string_view()); }
// The end of a permit, in milliseconds of the server's clock.
long long end_of(const RedisServer& server, const Party& party) {
  return std::stoll(server.command({"ZSCORE", "{k}:timeout", text_of(party.permit.token())}));
}
long long microseconds_of(const RedisServer& server) {
  const std::string time = server.command("TIME");
  const std::size_t space = time.find(' ');
  return std::stoll(time.substr(0, space)) * 1'000'000 + std::stoll(time.substr(space + 1));
}
long long now_of(const RedisServer& server) { return microseconds_of(server) / 1000; }
// As if its lease were over.
void end_lease(const RedisServer& server, const std::string& member) {
  server.command({"ZADD", "{k}:timeout", std::to_string(now_of(server) - 1000), member});
}
void expect_permits(const RedisServer& server, const std::string& free, const std::string& taken) {
  TEST_ASSERT_EQUAL(free, server.command("GET k"));
  TEST_ASSERT_EQUAL(taken, server.command("ZCARD {k}:timeout"));
}

}  // namespace

// ---- How many share ------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_as_many_as_there_are_permits_should_share_and_no_more) {
  Party first(server);
  Party second(server);
  Party third(server);
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  expect_permits(server, "1", "1");
  TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, third.permit.try_acquire());
  expect_permits(server, "0", "2");
  TEST_ASSERT_EQUAL(Status::ok, first.permit.release());
  TEST_ASSERT_EQUAL(Status::ok, third.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, first.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.permit.release());
  TEST_ASSERT_EQUAL(Status::ok, third.permit.release());
  expect_permits(server, "2", "0");
}

TEST_ON_SERVER(test_one_client_should_have_a_permit_for_each_object) {
  Client client;
  (void)connected(client, server);
  Semaphore first(client, "k", 2, long_lease);
  Semaphore second(client, "k", 2, long_lease);
  Semaphore third(client, "k", 2, long_lease);
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  TEST_ASSERT_EQUAL(Status::already_held, first.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, third.try_acquire());
  TEST_ASSERT_TRUE(text_of(first.token()) != text_of(second.token()));
}

TEST_ON_SERVER(test_a_permit_should_be_what_redisson_looks_for) {
  for (const std::string name : {"k", "shop:{7}", "two words", "a}b"}) {
    const std::string tag = name.find('{') == std::string::npos ? "{" + name + "}" : name;
    Party party(server, 3, name);
    TEST_ASSERT_EQUAL(Status::ok, party.permit.try_acquire());
    TEST_ASSERT_EQUAL("2", server.command({"GET", name}));
    TEST_ASSERT_EQUAL(text_of(party.permit.token()), server.command({"ZRANGE", tag + ":timeout", "0", "-1"}));
    TEST_ASSERT_EQUAL("-1", server.command({"PTTL", name}));
    TEST_ASSERT_EQUAL(Status::ok, party.permit.release());
    TEST_ASSERT_EQUAL("3", server.command({"GET", name}));
    TEST_ASSERT_EQUAL("0", server.command({"EXISTS", tag + ":timeout"}));
    server.command({"DEL", name});
    TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  }
}

// [rule 3] The server may not end it before the holder's own reckoning does.
TEST_ON_SERVER(test_a_permit_should_end_a_lease_after_it_was_taken_or_renewed) {
  Party party(server);
  for (int turn = 0; turn < 2; ++turn) {
    const long long before = microseconds_of(server);
    TEST_ASSERT_EQUAL(Status::ok, turn == 0 ? party.permit.try_acquire() : party.permit.renew());
    TEST_ASSERT_TRUE(end_of(server, party) * 1000 >= before + 20'000'000);
    TEST_ASSERT_TRUE(end_of(server, party) <= now_of(server) + 20'001);
    breathe(5ms);
  }
}

TEST_ON_SERVER(test_renewal_should_never_shorten_and_never_create) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.permit.try_acquire());
  const std::string member = text_of(party.permit.token());
  const std::string far = std::to_string(now_of(server) + 500'000);
  server.command({"ZADD", "{k}:timeout", far, member});
  TEST_ASSERT_EQUAL(Status::ok, party.permit.renew());
  TEST_ASSERT_EQUAL(far, server.command({"ZSCORE", "{k}:timeout", member}));
  server.command({"ZREM", "{k}:timeout", member});
  server.command("INCR k");
  TEST_ASSERT_EQUAL(Status::lock_lost, party.permit.renew());
  expect_permits(server, "2", "0");
}

// ---- How many there are --------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_the_number_should_be_set_once_and_another_one_be_refused) {
  Party first(server, 3);
  Party other(server, 4);
  Party any(server, 0);
  TEST_ASSERT_EQUAL(Status::permits_differ, any.permit.try_acquire());  // Nobody has said it.
  TEST_ASSERT_EQUAL(Status::permits_differ, any.permit.acquire(wait_forever));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::permits_differ, other.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::permits_differ, other.permit.acquire(wait_forever));
  expect_permits(server, "2", "1");
  TEST_ASSERT_EQUAL(Status::ok, any.permit.try_acquire());
  expect_permits(server, "1", "2");
}

// A waiter of Redisson's, or of ours that names none, may wait for the number as well.
TEST_ON_SERVER(test_who_sets_the_number_should_tell_how_many_are_left) {
  RawConnection listener(server.socket_path());
  (void)listener.command("SUBSCRIBE redisson_sc:{k}");
  Party first(server, 3);
  Party second(server, 3);
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  TEST_ASSERT_EQUAL("message redisson_sc:{k} 2", listener.command("PING"));
  TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
  for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL("pong ", listener.command("PING"));
}

// As if the answer of another request had been taken for its own.
TEST_ON_SERVER(test_an_acquire_that_runs_twice_should_take_one_permit) {
  const holdfast::LockKind& kind = holdfast::semaphore_kind;
  holdfast::LockMachine machine(kind);
  machine.set_argument(3);
  const holdfast::Token token{ByteView("a token")};
  holdfast::testing::WrittenLine line;
  kind.fill(line, kind, holdfast::Operation::acquire, holdfast::RequestForm::by_text,
            {.key = Key(ByteView("k")), .token = &token, .lease = 20s, .machine = &machine});
  for (int turn = 0; turn < 2; ++turn) {
    TEST_ASSERT_EQUAL("OK", server.command(line.words()));
    expect_permits(server, "2", "1");
  }
}

TEST_ON_SERVER(test_an_impossible_number_should_be_an_invalid_lock) {
  Party party(server, holdfast::permits_max + 1);
  TEST_ASSERT_EQUAL(Status::invalid_argument, party.permit.configuration());
  TEST_ASSERT_EQUAL(Status::invalid_argument, party.permit.try_acquire());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// An eviction, say: those who have permits still count.
TEST_ON_SERVER(test_a_number_that_was_lost_should_be_set_anew_less_what_is_taken) {
  Party first(server);
  Party second(server);
  Party third(server);
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, third.permit.try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::ok, first.permit.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, third.permit.try_acquire());
  expect_permits(server, "0", "2");
}

// Redisson takes permits away so.
TEST_ON_SERVER(test_a_number_below_none_should_be_busy) {
  Party party(server, 0);
  server.command("SET k -1");
  TEST_ASSERT_EQUAL(Status::lock_busy, party.permit.try_acquire());
  bool locked = false;
  TEST_ASSERT_EQUAL(Status::ok, party.permit.is_locked(locked));
  TEST_ASSERT_TRUE(locked);
  server.command({"ZADD", "{k}:timeout", "1", "old"});
  TEST_ASSERT_EQUAL(Status::lock_busy, party.permit.try_acquire());
  expect_permits(server, "0", "0");
}

TEST_ON_SERVER(test_a_key_of_another_kind_should_be_left_as_it_is) {
  Party party(server);
  server.command("SET k somebody PX 60000");
  TEST_ASSERT_EQUAL(Status::wrong_type, party.permit.try_acquire());
  TEST_ASSERT_EQUAL("somebody", server.command("GET k"));
  server.command("DEL k");
  server.command("HSET k mode read");
  TEST_ASSERT_EQUAL(Status::wrong_type, party.permit.try_acquire());
  TEST_ASSERT_EQUAL("mode read", server.command("HGETALL k"));
  server.command("DEL k");
  server.command("SET {k}:timeout text");
  TEST_ASSERT_EQUAL(Status::wrong_type, party.permit.try_acquire());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

// ---- What comes back -----------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_permit_whose_time_is_over_should_go_to_who_asks_next) {
  Party first(server);
  Party second(server);
  Party third(server);
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
  end_lease(server, text_of(first.permit.token()));
  TEST_ASSERT_EQUAL(Status::ok, third.permit.try_acquire());
  expect_permits(server, "0", "2");
  TEST_ASSERT_EQUAL(Status::lock_lost, first.permit.release());
  expect_permits(server, "0", "2");
  TEST_ASSERT_EQUAL(Status::ok, second.permit.release());
  TEST_ASSERT_EQUAL(Status::ok, third.permit.release());
  expect_permits(server, "2", "0");
}

TEST_ON_SERVER(test_a_permit_that_has_not_ended_should_not_be_taken_back) {
  Party holder(server, 1);
  Party other(server, 1);
  TEST_ASSERT_EQUAL(Status::ok, holder.permit.try_acquire());
  server.command({"ZADD", "{k}:timeout", std::to_string(now_of(server) + 900), text_of(holder.permit.token())});
  TEST_ASSERT_EQUAL(Status::lock_busy, other.permit.try_acquire());
  expect_permits(server, "0", "1");
}

// Nobody has it instead: it is kept, and given back once.
TEST_ON_SERVER(test_a_permit_that_nobody_took_back_should_still_be_its_holders) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.permit.try_acquire());
  end_lease(server, text_of(party.permit.token()));
  TEST_ASSERT_EQUAL(Status::ok, party.permit.renew());
  TEST_ASSERT_TRUE(end_of(server, party) > now_of(server) + 10'000);
  end_lease(server, text_of(party.permit.token()));
  TEST_ASSERT_EQUAL(Status::ok, party.permit.release());
  expect_permits(server, "2", "0");
}

TEST_ON_SERVER(test_a_waiter_should_come_when_a_lease_ends_without_a_word) {
  Party holder(server, 1, "k", {.lease = 300ms});
  Party waiter(server, 1);
  TEST_ASSERT_EQUAL(Status::ok, holder.permit.try_acquire());
  holder.client.close();
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, waiter.permit.acquire(60s));
  TEST_ASSERT_TRUE(Client::now() - begin < 30s);  // Not by the last attempt.
  expect_permits(server, "0", "1");
}

TEST_ON_SERVER(test_the_automatic_lease_should_keep_a_permit) {
  Party party(server, 1, "k", {.lease = 300ms, .kept = true});
  TEST_ASSERT_EQUAL(Status::ok, party.permit.try_acquire());
  const long long first = end_of(server, party);
  TEST_ASSERT_TRUE(comes([&] {
    party.client.tend();
    return end_of(server, party) > first + 400;
  }));
  TEST_ASSERT_TRUE(party.permit.held());
}

// ---- Who is woken --------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_release_should_wake_a_waiter) {
  Party holder(server, 1);
  Party waiter(server, 1);
  TEST_ASSERT_EQUAL(Status::ok, holder.permit.try_acquire());
  ListeningAcquire waiting(server, waiter.permit, channel);
  TEST_ASSERT_EQUAL(Status::ok, holder.permit.release());
  TEST_ASSERT_EQUAL(Status::ok, waiting.join());
  expect_permits(server, "0", "1");
}

TEST_ON_SERVER(test_two_releases_should_wake_two_waiters) {
  std::deque<Party> holders;
  std::deque<Party> waiters;
  std::deque<ListeningAcquire> waiting;
  for (int index = 0; index < 2; ++index) {
    holders.emplace_back(server);
    TEST_ASSERT_EQUAL(Status::ok, holders.back().permit.try_acquire());
  }
  for (int index = 0; index < 2; ++index)
    waiting.emplace_back(server, waiters.emplace_back(server).permit, channel, index + 1);
  for (Party& holder : holders) TEST_ASSERT_EQUAL(Status::ok, holder.permit.release());
  for (ListeningAcquire& each : waiting) TEST_ASSERT_EQUAL(Status::ok, each.join());
  expect_permits(server, "0", "2");
}

// Redisson took permits away meanwhile: there is nothing to be had.
TEST_ON_SERVER(test_a_release_that_frees_none_should_wake_nobody) {
  Party holder(server, 0);
  server.command("SET k 1");
  TEST_ASSERT_EQUAL(Status::ok, holder.permit.try_acquire());
  server.command("SET k -1");
  RawConnection listener(server.socket_path());
  (void)listener.command("SUBSCRIBE redisson_sc:{k}");
  TEST_ASSERT_EQUAL(Status::ok, holder.permit.release());
  TEST_ASSERT_EQUAL("0", server.command("GET k"));
  TEST_ASSERT_EQUAL("pong ", listener.command("PING"));
}

TEST_ON_SERVER(test_who_takes_back_one_alone_should_wake_nobody) {
  Party gone(server);
  Party next(server);
  server.command("SET k 2");
  RawConnection listener(server.socket_path());
  (void)listener.command("SUBSCRIBE redisson_sc:{k}");
  TEST_ASSERT_EQUAL(Status::ok, gone.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, next.permit.try_acquire());
  end_lease(server, text_of(gone.permit.token()));
  Party last(server);
  TEST_ASSERT_EQUAL(Status::ok, last.permit.try_acquire());
  TEST_ASSERT_EQUAL("pong ", listener.command("PING"));
}

// What a dead program had comes back at once, and whoever finds that out tells the others.
TEST_ON_SERVER(test_who_takes_several_back_should_wake_a_waiter_for_the_rest) {
  Party first(server);
  Party second(server);
  Party waiter(server);
  Party next(server);
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
  ListeningAcquire waiting(server, waiter.permit, channel);
  end_lease(server, text_of(first.permit.token()));
  end_lease(server, text_of(second.permit.token()));
  TEST_ASSERT_EQUAL(Status::ok, next.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, waiting.join());
  expect_permits(server, "0", "2");
}

TEST_ON_SERVER(test_a_redisson_release_of_several_should_wake_as_many) {
  Party holder(server);
  server.command("SET k 0");
  for (const char* const member : {"one", "two"})
    server.command({"ZADD", "{k}:timeout", std::to_string(now_of(server) + 60'000), member});
  Party first(server);
  Party second(server);
  ListeningAcquire one(server, first.permit, channel);
  ListeningAcquire two(server, second.permit, channel, 2);
  server.command("DEL {k}:timeout");
  server.command("SET k 2");
  server.command("PUBLISH redisson_sc:{k} 2");
  TEST_ASSERT_EQUAL(Status::ok, one.join());
  TEST_ASSERT_EQUAL(Status::ok, two.join());
}

// ---- What the server says of it ------------------------------------------------------------------------------------

TEST_ON_SERVER(test_it_should_be_locked_while_no_permit_is_free) {
  Party first(server);
  Party second(server);
  Party asks(server);
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, asks.permit.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, asks.permit.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, asks.permit.is_locked(locked));
  TEST_ASSERT_TRUE(locked);
  Duration remaining = Duration::zero();
  TEST_ASSERT_EQUAL(Status::ok, asks.permit.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining > 10s && remaining <= 20s);
  end_lease(server, text_of(first.permit.token()));
  TEST_ASSERT_EQUAL(Status::ok, asks.permit.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  server.command("DEL {k}:timeout");  // Redisson's permits without a lease, say.
  TEST_ASSERT_EQUAL(Status::ok, asks.permit.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining == remaining_unlimited);
}

// ---- What a server refuses -----------------------------------------------------------------------------------------

// [rule 13] Nor does a renewal need memory.
TEST_ON_SERVER(test_a_full_server_should_renew_and_release) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.permit.try_acquire());
  const std::string member = text_of(party.permit.token());
  server.command({"ZADD", "{k}:timeout", std::to_string(now_of(server) + 5000), member});
  server.command("CONFIG SET maxmemory 1");
  Party other(server);
  TEST_ASSERT_EQUAL(Status::out_of_memory, other.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, party.permit.renew());
  TEST_ASSERT_TRUE(end_of(server, party) > now_of(server) + 10'000);
  TEST_ASSERT_EQUAL(Status::ok, party.permit.release());
  server.command("CONFIG SET maxmemory 0");
  expect_permits(server, "2", "0");
}

// [rule 12] The hold goes on until its end; a refusal for one does not cost the others theirs.
TEST_ON_SERVER(test_a_refused_renewal_should_leave_the_permit_as_it_is) {
  Party party(server);
  TEST_ASSERT_EQUAL(Status::ok, party.permit.try_acquire());
  const std::string member = text_of(party.permit.token());
  const std::string script(holdfast::semaphore_kind.renew_batch->text.string_view());
  const auto batch = [&] {
    return server.command({"EVAL", script, "3", "k", "other", "k", member, "90000", "nobody", "1", "nobody", "1"});
  };
  server.command({"ZADD", "{k}:timeout", std::to_string(now_of(server) + 5000), member});
  server.command("SET {other}:timeout text");
  server.command("ACL SETUSER default -zadd");
  TEST_ASSERT_EQUAL(Status::no_permission, party.permit.renew());
  TEST_ASSERT_TRUE(party.permit.held() && party.permit.at_risk());
  TEST_ASSERT_EQUAL("-1 0 0", batch());
  server.command("ACL SETUSER default +zadd");
  TEST_ASSERT_EQUAL("1 0 0", batch());
  TEST_ASSERT_EQUAL(Status::ok, party.permit.renew());
  server.command("SET {k}:timeout text");
  TEST_ASSERT_EQUAL(Status::lock_lost, party.permit.renew());
  TEST_ASSERT_EQUAL("text", server.command("GET {k}:timeout"));
}

// [rule 16] A user who may do some of it and not the rest: no permit is lost, and none is handed out twice.
TEST_ON_SERVER(test_a_refused_command_should_change_nothing) {
  const std::string all =
      "+eval +evalsha +get +set +zcard +zadd +zrem +zscore +zrange +zremrangebyscore +incrby +exists "
      "+time +publish +subscribe +unsubscribe +ping +client +info +hello +select";
  server.command("ACL SETUSER some on >secret ~* &* -@all " + all);
  ClientConfig config = config_for(server.unix_url());
  config.user = "some";
  config.password = "secret";
  using Commands = std::vector<std::string>;
  for (const Commands& denied : {Commands{"incrby"}, Commands{"zadd"}, Commands{"zrem"}, Commands{"zremrangebyscore"},
                                 Commands{"incrby", "zrem"}, Commands{"incrby", "zadd"}, Commands{"zadd", "zrem"}}) {
    const auto denies = [&](const std::string& command) {
      return std::find(denied.begin(), denied.end(), command) != denied.end();
    };
    const auto set_rights = [&](char sign) {
      for (const std::string& command : denied) server.command("ACL SETUSER some " + (sign + command));
    };
    TEST_MESSAGE(denied.front() << ", " << denied.back());
    server.command("FLUSHALL");
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
    Semaphore permit(client, "k", 2, long_lease);
    Semaphore second(client, "k", 2, long_lease);
    TEST_ASSERT_EQUAL(Status::ok, permit.try_acquire());
    set_rights('-');
    if (denies("incrby") || denies("zadd")) {
      TEST_ASSERT_EQUAL(Status::no_permission, second.try_acquire());
      expect_permits(server, "1", "1");
    }
    if (denies("incrby") || denies("zrem")) {
      TEST_ASSERT_EQUAL(Status::no_permission, permit.release());
      expect_permits(server, "1", "1");
    }
    server.command("SET k 0");
    server.command({"ZADD", "{k}:timeout", "1", "old", std::to_string(now_of(server) + 60'000), "new"});
    server.command({"ZREM", "{k}:timeout", text_of(permit.token())});
    if (denies("incrby") || denies("zremrangebyscore")) {
      TEST_ASSERT_EQUAL(Status::no_permission, second.try_acquire());
      expect_permits(server, "0", "2");
    }
    set_rights('+');
  }
}

TEST_ON_SERVER(test_a_server_that_forgot_the_scripts_should_be_told_them) {
  Party party(server);
  for (int turn = 0; turn < 2; ++turn) {
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, party.permit.try_acquire());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, party.permit.renew());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, party.permit.release());
  }
  expect_permits(server, "2", "0");
}

// ---- Many at once --------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_never_more_than_there_are_permits_should_work_at_once) {
  std::deque<Party> parties;
  for (int index = 0; index < 6; ++index) parties.emplace_back(server, 3);
  std::atomic<int> working = 0;
  std::atomic<int> most = 0;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (Party& party : parties)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 20; ++turn) {
        if (party.permit.acquire(60s) != Status::ok) ++failures;
        const int now = ++working;
        int seen = most.load();
        while (seen < now && !most.compare_exchange_weak(seen, now)) {}
        std::this_thread::yield();
        --working;
        if (party.permit.release() != Status::ok) ++failures;
      }
    });
  for (std::thread& thread : threads) thread.join();
  TEST_ASSERT_EQUAL(0, failures.load());
  TEST_ASSERT_TRUE(most.load() <= 3);
  expect_permits(server, "3", "0");
}
