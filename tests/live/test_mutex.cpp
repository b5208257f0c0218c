// SPDX-License-Identifier: MIT
//
// The Mutex on a real server.
#include <atomic>
#include <mutex>
#include <thread>

#include "clients.hpp"
#include "name_buffer.hpp"
#include "scripts.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

void connect(Client& client, const std::string& url) {
  const Status status = client.connect(ByteView(url));
  TEST_MESSAGE("error text: " << std::string(client.error_text().string_view()));
  TEST_ASSERT_EQUAL(Status::ok, status);
}

}  // namespace

#ifndef HOLDFAST_TEST_ASIO  // No client takes part.
TEST_ON_SERVER(test_script_load_should_agree_with_every_embedded_sha) {
  namespace scripts = holdfast::scripts;
  const holdfast::Script all[] = {scripts::fenced_acquire,    scripts::fenced_set,
                                  scripts::force_release,     scripts::lock_info,
                                  scripts::multi_acquire,     scripts::multi_release,
                                  scripts::multi_remaining,   scripts::multi_renew,
                                  scripts::multi_step,        scripts::mutex_acquire_fenced,
                                  scripts::mutex_release,     scripts::mutex_release_announced,
                                  scripts::mutex_renew,       scripts::mutex_renew_batch,
                                  scripts::reentrant_acquire, scripts::reentrant_release,
                                  scripts::reentrant_renew,   scripts::reentrant_step,
                                  scripts::read_acquire,      scripts::read_write_release,
                                  scripts::read_write_renew,  scripts::read_write_step,
                                  scripts::write_acquire,     scripts::server_identity};
  for (const holdfast::Script& script : all) {
    const std::string text(script.text.string_view());
    TEST_ASSERT_EQUAL(script.sha.bytes(), ByteView(server.command({"SCRIPT", "LOAD", text})));
  }
}
#endif

TEST_ON_SERVER(test_acquire_should_set_the_key_to_the_token_with_the_lease) {
  for (const std::string& url : {server.unix_url(), server.tcp_url()}) {
    Client client;
    connect(client, url);
    Mutex lock(client, "orders", {.lease = 7s});
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET orders")));
    const long ttl = std::stol(server.command("PTTL orders"));
    TEST_ASSERT_TRUE(ttl > 6000);
    TEST_ASSERT_TRUE(ttl <= 7000);
    TEST_ASSERT_TRUE(lock.remaining() <= 7s - 72ms);
    TEST_ASSERT_TRUE(lock.valid_until() > Client::now());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS orders"));
  }
}

TEST_ON_SERVER(test_two_clients_should_exclude_each_other) {
  Client first;
  Client second;
  connect(first, server.unix_url());
  connect(second, server.tcp_url());
  Mutex mine(first, "k");
  Mutex theirs(second, "k");
  TEST_ASSERT_EQUAL(Status::ok, mine.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, theirs.try_acquire());
  TEST_ASSERT_EQUAL(Status::already_held, mine.try_acquire());
  TEST_ASSERT_EQUAL(Status::not_held, theirs.release());
  TEST_ASSERT_EQUAL(Status::not_held, theirs.renew());
  TEST_ASSERT_TRUE(mine.held());
  TEST_ASSERT_EQUAL(Status::ok, mine.release());
  TEST_ASSERT_EQUAL(Status::ok, theirs.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, theirs.release());
}

// Two programs write one name into arrays where other things were before.
TEST_ON_SERVER(test_a_name_in_an_array_should_be_the_same_lock_whatever_follows_its_nul) {
  Client first;
  Client second;
  NameBuffer url(server.unix_url().c_str(), '9');
  TEST_ASSERT_EQUAL(Status::ok, first.connect(url.name));
  TEST_ASSERT_EQUAL(Status::ok, second.connect(&url.name[0]));
  NameBuffer ours("orders/42", 'x');
  NameBuffer theirs("orders/42", '\0');
  const NameBuffer& seen = ours;
  Mutex mine(first, ours.name, {.lease = 20s});
  Mutex same(second, theirs.name, {.lease = 20s});
  Mutex by_address(second, &ours.name[0], {.lease = 20s});
  Mutex by_reference(second, seen.name, {.lease = 20s});
  Mutex literal(second, "orders/42", {.lease = 20s});
  Mutex temporary(second, std::string("orders/") + "42", {.lease = 20s});
  TEST_ASSERT_EQUAL(ByteView("orders/42"), mine.key().bytes());
  TEST_ASSERT_EQUAL(Status::ok, mine.try_acquire());
  TEST_ASSERT_EQUAL("1", server.command("EXISTS orders/42"));
  for (Mutex* const other : {&same, &by_address, &by_reference, &literal, &temporary}) {
    TEST_ASSERT_EQUAL(mine.key().bytes(), other->key().bytes());
    TEST_ASSERT_EQUAL(Status::lock_busy, other->try_acquire());
  }
  TEST_ASSERT_EQUAL(Status::ok, mine.release());

  Owner our_owner(first);
  Owner their_owner(second);
  ReentrantLock my_reentrant(our_owner, ours.name, {.lease = 20s});
  ReentrantLock their_reentrant(their_owner, theirs.name, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, my_reentrant.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, their_reentrant.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, my_reentrant.release());
  FencedLock my_fenced(our_owner, ours.name, {.lease = 20s});
  FencedLock their_fenced(their_owner, theirs.name, {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, my_fenced.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, their_fenced.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, my_fenced.release());
}

TEST_ON_SERVER(test_a_name_that_is_missing_should_be_refused_and_not_followed) {
  Client client;
  connect(client, server.unix_url());
  const char* const missing = nullptr;
  Mutex lock(client, missing);
  TEST_ASSERT_EQUAL(Status::invalid_argument, lock.try_acquire());
  NameBuffer empty("", 'x');
  Mutex nameless(client, empty.name);
  TEST_ASSERT_EQUAL(Status::invalid_argument, nameless.try_acquire());
  Client unconnected;
  TEST_ASSERT_EQUAL(Status::invalid_argument, unconnected.connect(missing));
}

// Each hold has a token of its own.
TEST_ON_SERVER(test_tokens_should_never_repeat) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  std::vector<std::string> seen;
  for (int round = 0; round < 100; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    const std::string token(lock.token().bytes().string_view());
    TEST_ASSERT_EQUAL(token_text_size, token.size());
    TEST_ASSERT_TRUE(std::find(seen.begin(), seen.end(), token) == seen.end());
    seen.push_back(token);
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

TEST_ON_SERVER(test_release_should_not_delete_foreign_key) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("SET k somebody PX 10000");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL("somebody", server.command("GET k"));
}

TEST_ON_SERVER(test_release_should_not_delete_a_key_of_another_type) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("DEL k");
  server.command("HSET k field value");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL("value", server.command("HGET k field"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
}

TEST_ON_SERVER(test_renew_should_not_extend_foreign_key) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("SET k somebody PX 500");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 500);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
}

TEST_ON_SERVER(test_renew_should_not_recreate_a_deleted_key) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

// No script shortens a TTL.
TEST_ON_SERVER(test_renew_should_not_shorten_a_longer_lease) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k", {.lease = 5s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("PEXPIRE k 60000");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 50000);
  server.command("PEXPIRE k 100");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 4000);
}

// No lock key without a TTL: a renewal gives it back where somebody took it away.
TEST_ON_SERVER(test_renew_should_restore_a_removed_ttl) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k", {.lease = 5s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("PERSIST k");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 4000);
}

TEST_ON_SERVER(test_lease_should_end_by_itself_and_held_should_know_before_the_server) {
  Client client;
  Client other;
  connect(client, server.unix_url());
  connect(other, server.unix_url());
  Mutex lock(client, "k", {.lease = 60ms});
  Mutex next(other, "k", {.lease = 5s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, next.acquire(2s));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(next.token().bytes(), ByteView(server.command("GET k")));
}

TEST_ON_SERVER(test_acquire_should_wait_for_the_release) {
  Client client;
  Client other;
  connect(client, server.unix_url());
  connect(other, server.unix_url());
  Mutex lock(client, "k");
  Mutex waiting(other, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  std::thread waiter([&] { TEST_ASSERT_EQUAL(Status::ok, waiting.acquire(10s)); });
  while (server.command("INFO commandstats").find("cmdstat_set:calls=3") == std::string::npos)
    std::this_thread::yield();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  waiter.join();
  TEST_ASSERT_TRUE(waiting.held());
}

TEST_ON_SERVER(test_acquire_should_give_up_at_its_deadline) {
  Client client;
  connect(client, server.unix_url());
  server.command("SET k somebody PX 60000");
  Mutex lock(client, "k");
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(100ms));
  TEST_ASSERT_TRUE(Client::now() - begin <= 1s);
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(0ms));
  TEST_ASSERT_EQUAL(Status::invalid_argument, lock.acquire(-1ms));
}

TEST_ON_SERVER(test_waiting_should_be_cancelled_from_another_thread) {
  Client client;
  connect(client, server.unix_url());
  server.command("SET k somebody PX 60000");
  Mutex lock(client, "k");
  std::thread canceller([&] {
    while (server.command("INFO commandstats").find("cmdstat_set:calls=3") == std::string::npos)
      std::this_thread::yield();
    client.cancel();
  });
  TEST_ASSERT_EQUAL(Status::cancelled, lock.acquire(wait_forever));
  canceller.join();
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());  // Consumed.
}

TEST_ON_SERVER(test_keys_of_any_bytes_should_be_taken_byte_for_byte) {
  Client client;
  connect(client, server.unix_url());
  std::string every(key_size_max, '\0');
  for (std::size_t at = 0; at < every.size(); ++at) every[at] = static_cast<char>(at);
  for (const std::string& key : {std::string("\r\n"), std::string("\0", 1), std::string("{a}b"), every}) {
    Mutex lock(client, ByteView(key));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command({"GET", key})));
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  for (const std::string& key : {std::string(), std::string(key_size_max + 1, 'k')}) {
    Mutex lock(client, ByteView(key));
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock.configuration());
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock.release());
    TEST_ASSERT_EQUAL(Status::invalid_argument, lock.post_release());
  }
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_queries_should_tell_the_servers_view) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  bool locked = true;
  Duration remaining = 1s;
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  TEST_ASSERT_EQUAL(Status::ok, lock.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining == Duration::zero());
  server.command("SET k somebody PX 5000");
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_TRUE(locked);
  TEST_ASSERT_EQUAL(Status::ok, lock.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining > 4s);
  TEST_ASSERT_TRUE(remaining <= 5s);
  server.command("PERSIST k");
  TEST_ASSERT_EQUAL(Status::ok, lock.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining == remaining_unlimited);
}

TEST_ON_SERVER(test_posted_release_should_reach_the_server_without_a_wait) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  for (int round = 0; round < 3; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
    TEST_ASSERT_FALSE(lock.held());
    expect_post_outcome(Status::outcome_unknown, lock);
  }
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  expect_post_outcome(Status::ok, lock);
  TEST_ASSERT_EQUAL(Status::not_held, lock.post_release());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  expect_post_outcome(Status::lock_lost, lock);
}

#ifndef HOLDFAST_TEST_ASIO  // ScopedLock is a guard of the blocking client.
TEST_ON_SERVER(test_guard_should_release_at_the_end_of_its_scope) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  {
    holdfast::ScopedLock guard(lock, 1s);
    TEST_ASSERT_TRUE(static_cast<bool>(guard));
    TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));
  }
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  holdfast::ScopedLock guard(lock, 1s);
  TEST_ASSERT_EQUAL(Status::ok, guard.release());
  TEST_ASSERT_EQUAL(Status::not_held, guard.release());
  TEST_ASSERT_FALSE(static_cast<bool>(guard));
}
#endif

TEST_ON_SERVER(test_destructor_should_release_what_is_left) {
  Client client;
  connect(client, server.unix_url());
  {
    Mutex lock(client, "k");
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
}

#ifndef HOLDFAST_TEST_ASIO  // Lockable is an adapter of the blocking client.
TEST_ON_SERVER(test_standard_guards_should_work_with_the_adapter) {
  Client client;
  Client other;
  connect(client, server.unix_url());
  connect(other, server.unix_url());
  Mutex one(client, "one");
  Mutex two(client, "two");
  holdfast::Lockable lockable_one(one);
  holdfast::Lockable lockable_two(two);
  {
    std::scoped_lock guard(lockable_one, lockable_two);
    TEST_ASSERT_TRUE(one.held());
    TEST_ASSERT_TRUE(two.held());
    Mutex rival(other, "one");
    holdfast::Lockable short_wait(rival, 10ms);
    std::unique_lock<holdfast::Lockable> second(short_wait, std::try_to_lock);
    TEST_ASSERT_FALSE(second.owns_lock());
    bool thrown = false;
    try {
      second.lock();
    } catch (const holdfast::LockError& error) {
      thrown = error.status() == Status::lock_busy;
    }
    TEST_ASSERT_TRUE(thrown);
  }
  TEST_ASSERT_FALSE(one.held());
  TEST_ASSERT_FALSE(two.held());
}
#endif

// held() may be asked from any thread; run under TSan.
TEST_ON_SERVER(test_held_should_be_asked_from_other_threads) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  std::atomic<bool> done{false};
  std::atomic<int> seen{0};
  std::thread watcher([&] {
    while (!done) {
      if (lock.held() && lock.remaining() > 0ms && lock.valid_until() != Instant()) ++seen;
      (void)lock.at_risk();
    }
  });
  for (int round = 0; round < 200 || seen == 0; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  done = true;
  watcher.join();
}

TEST_ON_SERVER(test_many_clients_should_never_overlap_and_lose_no_count) {
  constexpr int clients = 4;
  constexpr int rounds = 50;
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  int counter = 0;  // Guarded by the lock alone, which TSan cannot see: written under an atomic fence of its own.
  std::atomic<int> guarded{0};
  std::vector<std::thread> threads;
  for (int index = 0; index < clients; ++index) {
    threads.emplace_back([&] {
      Client client;
      TEST_ASSERT_EQUAL(Status::ok, client.connect(ByteView(server.tcp_url())));
      Mutex lock(client, "counter", {.lease = 10s});
      for (int round = 0; round < rounds; ++round) {
        TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
        if (inside.fetch_add(1) != 0) ++overlaps;
        guarded.store(guarded.load() + 1);
        inside.fetch_sub(1);
        TEST_ASSERT_EQUAL(Status::ok, lock.release());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  counter = guarded;
  TEST_ASSERT_EQUAL(0, overlaps.load());
  TEST_ASSERT_EQUAL(clients * rounds, counter);
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_client_should_log_in_select_and_say_its_name) {
  server.command("ACL SETUSER joe on >secret ~* &* +@all");
  Client client;
  ClientConfig config;
  config.socket_path = ByteView(server.socket_path());
  config.user = "joe";
  config.password = "secret";
  config.database = 5;
  config.client_name = "worker-7";
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  TEST_ASSERT_TRUE(client.server().run_id_known);
  TEST_ASSERT_TRUE(client.server().client_id > 0);
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_TRUE(server.command("CLIENT LIST").find("name=worker-7") != std::string::npos);
  config.password = "wrong";
  Client refused;
  TEST_ASSERT_EQUAL(Status::auth_failed, refused.connect(config));
  TEST_ASSERT_TRUE(refused.error_text().begins_with("WRONGPASS"));
}

// Where the server compares and deletes by itself, that is what releases; where it does not, a script does.
TEST_ON_SERVER(test_release_should_use_what_the_server_has) {
  Client client;
  connect(client, server.unix_url());
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  const std::string stats = server.command("INFO commandstats");
  const bool native = client.server().native_delete != NativeDelete::none;
  TEST_ASSERT_EQUAL(
      native, stats.find("cmdstat_delifeq") != std::string::npos || stats.find("cmdstat_delex") != std::string::npos);
  TEST_ASSERT_EQUAL(!native, stats.find("cmdstat_evalsha") != std::string::npos);
}

TEST_ON_SERVER(test_release_should_fall_back_where_the_acl_refuses_the_native_command) {
  Client client;
  server.command("ACL SETUSER joe on >secret ~* &* +@all");
  server.command("ACL SETUSER joe -delifeq");
  server.command("ACL SETUSER joe -delex");
  ClientConfig config;
  config.socket_path = ByteView(server.socket_path());
  config.user = "joe";
  config.password = "secret";
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k");
  for (int round = 0; round < 2; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
    TEST_ASSERT_TRUE(client.server().native_delete == NativeDelete::none);
  }
}
