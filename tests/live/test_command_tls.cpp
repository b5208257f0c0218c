// SPDX-License-Identifier: MIT
//
// The holdfast command over TLS.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster_setup.hpp"
#include "command_fixture.hpp"
#include "sentinel_setup.hpp"
#include "tls_server.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

std::vector<std::string> trusting(const TlsServer& server, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin() + 1, {"--tls-ca", server.authority().file()});
  return arguments;
}

// With a certificate of our own: the processes of sentinels and clusters want one.
Words trusting(const CertificateAuthority& authority, Words arguments) {
  const CertificateFiles ours = authority.sign("client", "DNS:client");
  arguments.insert(arguments.begin() + 1,
                   {"--tls-ca", authority.file(), "--tls-cert", ours.certificate, "--tls-key", ours.key});
  return arguments;
}

// One for each process of a set-up.
std::vector<ServerTls> certificates(const CertificateAuthority& authority, const std::string& names) {
  std::vector<ServerTls> made;
  for (std::size_t index = 0; index < SentinelSetup::processes; ++index)
    made.push_back(authority.tls_of("node-" + std::to_string(index), names));
  return made;
}

// A holdfast that keeps "lock" as long as it is told to.
class Keeper {
 public:
  Keeper(const CertificateAuthority& authority, const std::string& url, const RedisServer& beside)
      : fifo_(beside.socket_path() + ".over"),
        made_(::mkfifo(fifo_.c_str(), 0600) == 0),
        command_(url, trusting(authority, {"run", "-l", "30", "lock", "--", "cat", fifo_})) {
    TEST_ASSERT_TRUE(made_);
  }
  // It renews there.
  static void expect_renewed(const RedisServer& server) {
    TEST_ASSERT_TRUE(comes([&] { return std::atol(server.command("PTTL lock").c_str()) > 25000; }, 60s));
  }
  void expect_end() {
    ::close(::open(fifo_.c_str(), O_WRONLY));  // Its command reads the end.
    TEST_ASSERT_EQUAL(0, command_.wait());
  }

 private:
  std::string fifo_;
  bool made_;
  Running command_;
};

}  // namespace

TEST(test_run_info_and_release_should_work_over_tls) {
  const TlsServer server;
  const Outcome ran = outcome_of(server.url(), trusting(server, {"run", "lock", "--", "true"}));
  TEST_ASSERT_EQUAL(0, ran.code);
  server.plain().command("SET lock somebody PX 20000");
  const Outcome told = outcome_of(server.url(), trusting(server, {"info", "lock"}));
  TEST_ASSERT_EQUAL(0, told.code);
  TEST_ASSERT_TRUE(contains(told.text, "somebody"));
  TEST_ASSERT_EQUAL(0, outcome_of(server.url(), trusting(server, {"release", "--force", "lock"})).code);
  TEST_ASSERT_EQUAL("0", server.plain().command("EXISTS lock"));
}

// Its looks, and what the server says by itself over a connection of its own.
TEST(test_watch_should_look_and_hear_over_tls) {
  const TlsServer server;
  server.plain().command("CONFIG SET notify-keyspace-events KA");
  Running watch(server.url(), trusting(server, {"watch", "lock"}));
  TEST_ASSERT_TRUE(contains(watch.line(), " free lock"));
  TEST_ASSERT_TRUE(
      eventually([&] { return contains(server.plain().command("PUBSUB CHANNELS"), "__keyspace@0__:lock"); }));
  server.plain().command("SET lock somebody PX 20000");
  TEST_ASSERT_TRUE(contains(watch.line(), " acquired lock"));
  server.plain().command("SET lock another PX 20000");
  TEST_ASSERT_TRUE(contains(watch.line(), " stolen lock: mutex another wrote over somebody"));
  watch.signal(SIGTERM);
  TEST_ASSERT_EQUAL(0, watch.wait());
}

TEST(test_a_server_that_is_not_trusted_should_be_named_with_the_reason) {
  const TlsServer server;
  const Outcome told = outcome_of(server.url(), {"run", "-w", "5", "lock", "--", "true"});
  TEST_ASSERT_EQUAL(exit_no_permission, told.code);
  TEST_ASSERT_TRUE(contains(told.text, "the server's certificate: "));
  TEST_ASSERT_EQUAL(0, outcome_of(server.url(), {"run", "--tls-insecure", "lock", "--", "true"}).code);
}

TEST(test_options_of_tls_should_be_refused_where_they_count_for_nothing) {
  const TlsServer server;
  const Outcome plain = outcome_of(server.plain().unix_url(), trusting(server, {"run", "lock", "--", "true"}));
  TEST_ASSERT_EQUAL(exit_usage, plain.code);
  TEST_ASSERT_TRUE(contains(plain.text, "--tls-ca is of rediss://, and no URL begins so"));
  const Outcome missing = outcome_of(server.url(), {"info", "--tls-ca", "/nowhere/ca.pem", "lock"});
  TEST_ASSERT_EQUAL(exit_usage, missing.code);
  TEST_ASSERT_TRUE(contains(missing.text, "ca_file"));
}

TEST(test_a_command_under_a_lock_should_go_on_over_a_fail_over_over_tls) {
  const CertificateAuthority authority;
  SentinelSetup setup(server_binaries().front(), certificates(authority, "IP:127.0.0.1"));
  const std::string url = "rediss-sentinel://" + setup.hosts() + "/mymaster";
  Keeper keeper(authority, url, *setup.servers[0]);
  TEST_ASSERT_TRUE(comes([&] { return setup.servers[0]->command("EXISTS lock") == "1"; }));
  TEST_ASSERT_EQUAL(exit_not_acquired, outcome_of(url, trusting(authority, {"run", "-n", "lock", "--", "true"})).code);
  setup.await_replicas();
  RedisServer& after = setup.fail_over();
  Keeper::expect_renewed(after);
  keeper.expect_end();
  TEST_ASSERT_EQUAL("0", after.command("EXISTS lock"));
  const Outcome well = outcome_of(url, trusting(authority, {"doctor", "--seconds", "1"}));
  TEST_MESSAGE(well.text);
  TEST_ASSERT_FALSE(contains(well.text, "no connection"));
}

TEST(test_the_command_should_follow_a_slot_that_is_moved_over_tls) {
  const CertificateAuthority authority;
  const ClusterSetup cluster(server_binaries().front(), 15000, certificates(authority, "DNS:locks.example.org"));
  const std::string url = "rediss-cluster://" + cluster.host(4);
  const auto named = [&](Words words) {
    words.insert(words.begin() + 1, {"--tls-server-name", "locks.example.org"});
    return outcome_of(url, trusting(authority, words));
  };
  const std::size_t from = cluster.master_of("lock");
  const std::size_t to = cluster.other_than(from);
  TEST_ASSERT_EQUAL(0, named({"acquire", "lock", "-l", "60"}).code);
  TEST_ASSERT_EQUAL("1", cluster.servers[from]->command("EXISTS lock"));
  cluster.move_slot("lock", to);
  TEST_ASSERT_TRUE(contains(named({"info", "lock"}).text, "state: held"));
  TEST_ASSERT_EQUAL(exit_not_acquired, named({"run", "-n", "lock", "--", "true"}).code);
  TEST_ASSERT_EQUAL(0, named({"release", "--force", "lock"}).code);
  TEST_ASSERT_EQUAL("0", cluster.servers[to]->command("EXISTS lock"));
  const Outcome well = named({"doctor", "--seconds", "1"});
  TEST_MESSAGE(well.text);
  TEST_ASSERT_FALSE(contains(well.text, "no connection"));

  // Its certificates name no address.
  const Outcome unnamed = outcome_of(url, trusting(authority, {"run", "-w", "60", "lock", "--", "true"}));
  TEST_ASSERT_EQUAL(exit_no_permission, unnamed.code);
  TEST_ASSERT_TRUE(contains(unnamed.text, "the server's certificate: IP address mismatch: node " + cluster.host(4)));
}
