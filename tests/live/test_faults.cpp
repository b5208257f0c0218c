// SPDX-License-Identifier: MIT
//
// What goes wrong between a client and a real server. Whatever it is: a clear Status, no lock of another touched, and
// nothing left behind that could be taken back.
#include <set>
#include <thread>

#include "clients.hpp"
#include "fake_server.hpp"
#include "patience.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

std::string proxy_path(const RedisServer& server) { return server.socket_path() + ".proxy"; }

// On Asio's loop the way to the next connection is part of a request's time, and a loaded machine takes its own.
ClientConfig patient_config_for(const std::string& url) {
  ClientConfig config = config_for(url);
  config.request_timeout = 5s;
  return config;
}

}  // namespace

// The reply to each request of a hold is cut at each of its bytes, and of the handshake before.
TEST_ON_SERVER(test_connection_cut_at_every_byte_should_leave_no_lock_behind) {
  Proxy proxy(proxy_path(server), server.socket_path());
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 2s;  // A cut is seen at once.
  std::set<Status> outcomes;
  bool whole = false;
  for (std::int64_t cut = 1; !whole; ++cut) {
    TEST_MESSAGE("cut after reply byte " << cut);
    proxy.cut_after(cut);
    {
      Client client;
      Status status = client.connect(config);
      Mutex lock(client, "k", {.lease = 20s});
      if (status == Status::ok) status = lock.try_acquire();
      if (status == Status::ok) status = lock.renew();
      const bool held = lock.held();
      if (status == Status::ok)
        status = lock.release();
      else if (held)
        (void)lock.release();
      whole = status == Status::ok && !proxy.cut_done();
      outcomes.insert(status);
      TEST_ASSERT_FALSE(lock.held());
      proxy.cut_after(Proxy::never);
      // The next call reconnects; before it is answered, what may have been left is taken back.
      Mutex other(client, "other");
      TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return other.try_acquire(); }, Status::ok));
      TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
      TEST_ASSERT_EQUAL(0U, client.compensations_pending());
      TEST_ASSERT_EQUAL(Status::ok, other.release());
    }
    TEST_ASSERT_TRUE(cut < 1000);
  }
  TEST_ASSERT_TRUE(outcomes.count(Status::transport_closed) == 1);
}

TEST_ON_SERVER(test_replies_that_dribble_should_be_understood) {
  Proxy proxy(proxy_path(server), server.socket_path());
  proxy.dribble(true);
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 2s;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k");
  for (int round = 0; round < 20; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

// A lost reply is unknown, and the hold that it may have granted is taken back behind it.
TEST_ON_SERVER(test_lost_reply_to_an_acquire_should_be_unknown_and_compensated) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(hasty_config_for(proxy.url())));
  Mutex lock(client, "k", {.lease = 20s});
  proxy.hold(true);
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::timed_out, lock.try_acquire());
  TEST_ASSERT_TRUE(Client::now() - begin < 2s);
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(1U, client.compensations_pending());
  proxy.hold(false);
  // The next attempt has a new token and follows the compensation: it is granted, not busy with our own ghost.
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET k")));
  TEST_ASSERT_EQUAL(1, proxy.connections());
  TEST_ASSERT_EQUAL(0U, client.compensations_pending());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// [rule 8] What lies in the socket before the request leaves is no answer to it: nothing is sent, and the call goes on over
// the next connection.
TEST_ON_SERVER(test_unasked_reply_should_not_be_taken_for_a_grant) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(patient_config_for(proxy.url())));
  Mutex lock(client, "k", {.lease = 20s});
  // Once to and fro: what is prepared the first time is used from the second on.
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("OK", server.command("SET k stranger PX 60000"));
  for (const std::string unasked : {"+OK\r\n", "$-1\r\n", ":1\r\n", "+O", "+OK\r\n+OK\r\n"}) {
    TEST_MESSAGE("unasked: " << unasked);
    const int connection = proxy.connections() - 1;
    proxy.say(connection, unasked);
    TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL(connection + 2, proxy.connections());
    TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  }
  TEST_ASSERT_EQUAL("stranger", server.command("GET k"));
  TEST_ASSERT_EQUAL(0U, client.compensations_pending());
}

TEST_ON_SERVER(test_unasked_reply_should_not_be_taken_for_busy) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(patient_config_for(proxy.url())));
  Mutex lock(client, "k", {.lease = 20s});
  for (int round = 0; round < 3; ++round) {
    proxy.say(proxy.connections() - 1, "$-1\r\n");
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
    TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET k")));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

TEST_ON_SERVER(test_unasked_reply_should_extend_no_hold) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(patient_config_for(proxy.url())));
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL("OK", server.command("SET k stranger"));
  proxy.say(proxy.connections() - 1, ":1\r\n");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL("stranger", server.command("GET k"));
}

TEST_ON_SERVER(test_unasked_reply_should_grant_no_re_entry) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(patient_config_for(proxy.url())));
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("1", server.command("DEL k"));
  proxy.say(proxy.connections() - 1, ":1\r\n");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_FALSE(lock.held());
}

TEST_ON_SERVER(test_lost_reply_to_a_renewal_should_keep_the_hold_until_its_bound) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(hasty_config_for(proxy.url())));
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const Instant until = lock.valid_until();
  proxy.hold(true);
  TEST_ASSERT_EQUAL(Status::timed_out, lock.renew());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_TRUE(lock.at_risk());
  TEST_ASSERT_EQUAL(until, lock.valid_until());
  proxy.hold(false);
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.renew(); }, Status::ok));
  TEST_ASSERT_FALSE(lock.at_risk());
  TEST_ASSERT_TRUE(lock.valid_until() > until);
}

TEST_ON_SERVER(test_lost_reply_to_a_release_should_be_unknown_and_repeated_by_token) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(hasty_config_for(proxy.url())));
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  proxy.hold(true);
  TEST_ASSERT_EQUAL(Status::timed_out, lock.release());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  proxy.hold(false);
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.is_locked(locked); }, Status::ok));
  TEST_ASSERT_FALSE(locked);
}

TEST_ON_SERVER(test_stalled_connection_should_be_closed_and_replaced) {
  Proxy proxy(proxy_path(server), server.socket_path());
  ClientConfig config = hasty_config_for(proxy.url());
  config.stall_timeout = 450ms;  // Longer than a request.
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k", {.lease = 20s});
  proxy.swallow_replies(true);
  TEST_ASSERT_EQUAL(Status::timed_out, lock.try_acquire());
  (void)lock.try_acquire();
  proxy.swallow_replies(false);
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  // More where the machine was so busy that the new one's handshake stalled, too.
  TEST_ASSERT_TRUE(proxy.connections() >= 2);
  TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET k")));
}

TEST_ON_SERVER(test_restart_without_data_should_be_survived_and_noticed) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.stop();
  TEST_ASSERT_FALSE(lock.renew() == Status::ok);
  TEST_ASSERT_TRUE(lock.held());  // Still valid as far as anybody can know.
  server.start();
  TEST_ASSERT_EQUAL(Status::lock_lost, eventually([&] { return lock.renew(); }, Status::lock_lost));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_SERVER(test_script_flush_should_cost_one_eval) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("SCRIPT FLUSH");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(client.error_text().empty());
  server.command("SCRIPT FLUSH");
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(client.error_text().empty());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_client_kill_should_be_survived) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  // The look before the request finds the end: nothing has left, and it is asked again on a new connection.
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(lock.held());
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.tcp_url())));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::ok, lock.release());  // Its compensation found the key, and the server said so.
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

// The server stands still for longer than the lease: the holder knows, and the next holder is not disturbed.
TEST_ON_SERVER(test_server_pause_beyond_the_lease_should_be_a_loss_that_touches_nobody) {
  Client client;
  ClientConfig config = hasty_config_for(server.unix_url());
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k", {.lease = 150ms});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.pause();
  while (lock.held()) (void)lock.renew();
  server.resume();
  Client other;
  TEST_ASSERT_EQUAL(Status::ok, other.connect(config_for(server.tcp_url())));
  Mutex next(other, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, next.acquire(5s));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  bool locked = false;
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.is_locked(locked); }, Status::ok));
  TEST_ASSERT_TRUE(locked);
  TEST_ASSERT_EQUAL(next.token().bytes(), ByteView(server.command("GET k")));
}

TEST_ON_SERVER(test_full_memory_should_refuse_the_acquire_and_allow_the_release) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Mutex held(client, "held");
  Mutex refused(client, "refused");
  TEST_ASSERT_EQUAL(Status::ok, held.try_acquire());
  server.command("CONFIG SET maxmemory 1");
  TEST_ASSERT_EQUAL(Status::out_of_memory, refused.try_acquire());
  TEST_ASSERT_TRUE(client.error_text().begins_with("OOM"));
  TEST_ASSERT_EQUAL(Status::ok, held.renew());
  TEST_ASSERT_EQUAL(Status::ok, held.release());
  server.command("CONFIG SET maxmemory 0");
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_replica_should_refuse_with_read_only_and_be_compensated_after_its_promotion) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("PEXPIRE k 10000");  // So that the renewal has something to write.
  server.command("REPLICAOF 127.0.0.1 1");
  Mutex refused(client, "other");
  TEST_ASSERT_EQUAL(Status::read_only, refused.try_acquire());
  TEST_ASSERT_EQUAL(Status::read_only, lock.renew());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::read_only, lock.release());
  server.command("REPLICAOF NO ONE");
  TEST_ASSERT_EQUAL(1U, client.compensations_pending());
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, eventually(
                                    [&] {
                                      const Status status = lock.is_locked(locked);
                                      return locked ? Status::lock_busy : status;
                                    },
                                    Status::ok));
}

TEST_ON_SERVER(test_missing_permissions_should_be_named) {
  server.command("ACL SETUSER joe on >secret ~* &* +@all -set");
  ClientConfig config = config_for(server.unix_url());
  config.user = "joe";
  config.password = "secret";
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::no_permission, lock.try_acquire());
  TEST_ASSERT_TRUE(client.error_text().find("'set'") != SIZE_MAX);
  TEST_ASSERT_EQUAL(Status::no_permission, lock.acquire(10s));
  // Neither identity nor name: the lock works without.
  server.command("ACL SETUSER joe reset");
  server.command("ACL SETUSER joe on >secret ~* &* +set +get +del +pttl +pexpire +eval +evalsha");
  Client modest;
  TEST_ASSERT_EQUAL(Status::ok, modest.connect(config));
  TEST_ASSERT_FALSE(modest.server().run_id_known);
  Mutex works(modest, "k");
  TEST_ASSERT_EQUAL(Status::ok, works.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, works.renew());
  TEST_ASSERT_EQUAL(Status::ok, works.release());
}

TEST_ON_SERVER(test_full_server_should_say_so) {
  RawConnection keep(server.socket_path());
  keep.command("CONFIG SET maxclients 1");
  Client client;
  TEST_ASSERT_EQUAL(Status::too_many_clients, client.connect(config_for(server.unix_url())));
  keep.command("CONFIG SET maxclients 100");
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
}

TEST_ON_SERVER(test_waiting_should_live_through_a_restart) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  server.command("SET k somebody PX 60000");
  Mutex lock(client, "k");
  std::thread waiter([&] { TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s)); });
  while (server.command("INFO commandstats").find("cmdstat_set:calls=3") == std::string::npos)
    std::this_thread::yield();
  server.stop();
  server.start();
  waiter.join();
  TEST_ASSERT_TRUE(lock.held());
}

// From the call on the lock is not held, for every thread, however long the server takes.
TEST_ON_SERVER(test_release_should_end_the_hold_before_the_server_has_answered) {
  Client client;
  ClientConfig config = config_for(server.unix_url());
  config.request_timeout = 3s;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.pause();
  const Instant begin = Client::now();
  std::thread releasing([&] { (void)lock.release(); });
  while (lock.held()) std::this_thread::yield();
  const Duration took = Client::now() - begin;
  server.resume();
  releasing.join();
  TEST_ASSERT_TRUE(took < 2s);
}

TEST_ON_SERVER(test_destructor_should_not_block_on_a_stopped_server) {
  const Instant begin = Client::now();
  {
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
    Mutex lock(client, "k");
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    server.pause();
  }
  TEST_ASSERT_TRUE(Client::now() - begin < 1s);
  server.resume();
  // Nothing came before the one release, so that the server reads it, though the client is gone.
  while (server.command("EXISTS k") != "0") std::this_thread::yield();
}

// ---- Hostile peers -----------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_hostile_bytes_should_end_in_a_status_with_a_text) {
  const std::vector<std::string> hostile = {"\n",
                                            "\r\n",
                                            "+",
                                            "$",
                                            "*",
                                            ":\r\n",
                                            "+OK\n",
                                            "$5\r\nhello",
                                            "$-2\r\n",
                                            "$99999999999999999999\r\n",
                                            "*1000001\r\n",
                                            std::string("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"),
                                            "%1\r\n+a\r\n+b\r\n",
                                            "_\r\n",
                                            "#t\r\n",
                                            ",1.5\r\n",
                                            "(123\r\n",
                                            "!3\r\nERR\r\n",
                                            "=4\r\ntxt:\r\n",
                                            "~0\r\n",
                                            ">1\r\n+x\r\n",
                                            "|1\r\n",
                                            "HTTP/1.1 200 OK\r\n",
                                            std::string(100000, 'A'),
                                            "+" + std::string(100000, 'A'),
                                            std::string(1000, '\0'),
                                            "-" + std::string(70000, 'E'),
                                            "$1048577\r\n" + std::string(100, 'x'),
                                            ":9223372036854775808\r\n",
                                            "*-1\r\n*-1\r\n*-1\r\n",
                                            "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n"};
  for (const std::string& text : hostile) {
    TEST_MESSAGE("hostile: " << text.substr(0, 40));
    FakeServer fake(proxy_path(server), {text});
    ClientConfig config = config_for(fake.url());
    config.connect_timeout = 50ms;
    config.password = "secret";
    Client client;
    const Status status = client.connect(config);
    TEST_ASSERT_TRUE(status == Status::protocol_error || status == Status::timed_out ||
                     status == Status::transport_closed);
    if (status == Status::protocol_error) TEST_ASSERT_FALSE(client.error_text().empty());
    Mutex lock(client, "k");
    TEST_ASSERT_FALSE(lock.try_acquire() == Status::ok);
    TEST_ASSERT_FALSE(lock.held());
  }
}

TEST_ON_SERVER(test_unreachable_servers_should_be_told_apart) {
  Client client;
  TEST_ASSERT_EQUAL(Status::connect_failed, client.connect("unix:///nonexistent/socket"));
  TEST_ASSERT_EQUAL(ENOENT, client.system_error_number());
  TEST_ASSERT_EQUAL(Status::connect_failed, client.connect("redis://127.0.0.1:1"));
  TEST_ASSERT_EQUAL(ECONNREFUSED, client.system_error_number());
  TEST_ASSERT_EQUAL(Status::name_not_resolved, client.connect("redis://no-such-host.invalid"));
  TEST_ASSERT_EQUAL(Status::invalid_argument, client.connect("http://127.0.0.1"));
  TEST_ASSERT_TRUE(client.problem().found());
  TEST_ASSERT_EQUAL(Status::invalid_argument, client.connect(ClientConfig{.port = 0}));
  TEST_ASSERT_EQUAL(std::string("port"), client.problem().field);
  Client fresh;
  Mutex lock(fresh, "k");
  TEST_ASSERT_EQUAL(Status::not_connected, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::not_connected, lock.acquire(1s));
  TEST_ASSERT_EQUAL(Status::not_connected, lock.post_release());
}
