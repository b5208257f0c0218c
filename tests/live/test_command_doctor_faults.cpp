// SPDX-License-Identifier: MIT
//
// holdfast doctor: faults of the kinds that happen are planted on real servers, sentinels and clusters, one each. Each is named
// with its severity, its words, what to do and an exit code, as text and as JSON, and nothing else is found beside it. Where all is
// well, nothing is found.
#include <algorithm>
#include <set>

#include "answering_server.hpp"
#include "cluster_setup.hpp"
#include "command_fixture.hpp"
#include "proxy.hpp"
#include "sentinel_setup.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

constexpr int exit_warning = 1;
constexpr int exit_danger = 2;

// A lease that no load of this machine makes short, and that lives through a fail-over of the set-ups' own settings.
const Words long_lease = {"-l", "60"};
// What a server of its own must have to be healthy.
const Words healthy = {"--appendonly", "yes", "--appendfsync", "always"};

std::string binary() { return server_binaries().at(0); }

Words with(Words one, const Words& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

struct Fault {
  std::string severity;
  std::string code;
  std::string what;    // A part of the words,
  std::string advice;  // and of what to do.
  // What else is found above information, since the fault brings it with it.
  std::set<std::string> beside{};
};

int code_of(const std::string& severity) {
  return severity == "danger" ? exit_danger : severity == "warning" ? exit_warning : 0;
}

// Of a finding's object, whose texts have no quotes in them.
std::string member(const std::string& object, const std::string& name) {
  const std::string mark = "\"" + name + "\": \"";
  const std::size_t begin = object.find(mark);
  if (begin == std::string::npos) return "(none)";
  return object.substr(begin + mark.size(), object.find('"', begin + mark.size()) - begin - mark.size());
}
Words findings_in(const std::string& json) {
  Words objects;
  for (std::size_t at = json.find("{\"severity\""); at != std::string::npos; at = json.find("{\"severity\"", at + 1))
    objects.push_back(json.substr(at, json.find('}', at) - at));
  return objects;
}

bool is_told_as_text(const std::string& text, const Fault& fault) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const std::string next = end < text.size() ? text.substr(end + 1, text.find('\n', end + 1) - end - 1) : "";
    if (line.rfind(fault.severity + ": ", 0) == 0 && contains(line, fault.what) && next.rfind("    ", 0) == 0 &&
        contains(next, fault.advice))
      return true;
    at = end + 1;
  }
  return false;
}

void expect(const std::string& url, const Words& options, const Fault& fault) {
  Words words = {"doctor"};
  if (std::find(options.begin(), options.end(), "--seconds") == options.end())
    words = with(words, {"--seconds", "0.2"});
  // Nothing beside it is worse.
  const std::string json = output_of(url, with(with(words, options), {"--json"}), code_of(fault.severity));
  const std::string text = output_of(url, with(words, options), code_of(fault.severity));
  bool told = false;
  for (const std::string& object : findings_in(json)) {
    const std::string code = member(object, "code");
    if (code == fault.code && member(object, "severity") == fault.severity &&
        contains(member(object, "what"), fault.what) && contains(member(object, "advice"), fault.advice))
      told = true;
    TEST_MESSAGE(object);
    if (member(object, "severity") != "information")
      TEST_ASSERT_TRUE(code == fault.code || fault.beside.count(code) != 0);
  }
  TEST_ASSERT_TRUE(told);
  TEST_ASSERT_TRUE(is_told_as_text(text, fault));
}

void expect_nothing(const std::string& url, const Words& options) {
  const Words words = with({"doctor", "--seconds", "1"}, options);
  const std::string json = output_of(url, with(words, {"--json"}), 0);
  const std::string text = output_of(url, words, 0);
  TEST_ASSERT_TRUE(contains(json, "{\"findings\": [], "));
  TEST_ASSERT_EQUAL(0U, text.find("nothing was found\n"));
}

// All servers keep each write on their disks, and the sentinels know each other, of whom they hear from their master.
void heal(const SentinelSetup& setup) {
  for (const auto& server : setup.servers) {
    server->command("CONFIG SET appendfsync always");
    server->command("CONFIG SET appendonly yes");
  }
  setup.master().command("CONFIG SET min-replicas-to-write 1");
  await([&] {
    return contains(setup.master().command("INFO replication"), "min_slaves_good_slaves:2") &&
           contains(setup.master().command("INFO persistence"), "aof_rewrite_in_progress:0") &&
           std::all_of(setup.sentinels.begin(), setup.sentinels.end(), [](const auto& sentinel) {
             return contains(sentinel->command("SENTINEL CKQUORUM mymaster"), "OK 3 usable");
           });
  });
}
void heal(const ClusterSetup& cluster) {
  for (const auto& server : cluster.servers) {
    server->command("CONFIG SET appendfsync always");
    server->command("CONFIG SET appendonly yes");
    server->command("CONFIG SET min-replicas-to-write 1");
  }
  await([&] {
    return std::all_of(cluster.servers.begin(), cluster.servers.end(), [](const auto& server) {
      const std::string replication = server->command("INFO replication");
      return (contains(replication, "role:slave") || contains(replication, "min_slaves_good_slaves:1")) &&
             contains(server->command("INFO persistence"), "aof_rewrite_in_progress:0");
    });
  });
}

std::string url_of_user(const RedisServer& server) {
  return "redis://bob:x@127.0.0.1:" + std::to_string(server.port());
}

// Hands everything on to a server, and says another time than it.
class BentClock {
 public:
  // What the clock says, of what the server's says, in microseconds; and how often it was asked before.
  using Bend = std::function<std::int64_t(std::int64_t now, int asked)>;

  BentClock(const RedisServer& server, Bend bend)
      : raw_(server.socket_path()),
        bend_(std::move(bend)),
        face_(server.socket_path() + ".bent", [this](const Words& words) {
          if (words[0] != "TIME") return handed_on(words);
          const std::string time = raw_.command("TIME");
          const std::size_t space = time.find(' ');
          const std::int64_t now = std::stoll(time) * 1'000'000 + std::stoll(time.substr(space + 1));
          const std::int64_t said = bend_(now, asked_++);
          return holdfast::testing::command_of({std::to_string(said / 1'000'000), std::to_string(said % 1'000'000)});
        }) {}
  [[nodiscard]] std::string url() const { return face_.url(); }

 private:
  std::string handed_on(const Words& words) const {
    const std::string bytes = holdfast::testing::command_of(words);
    (void)!::send(raw_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return reply();
  }
  [[nodiscard]] std::string reply() const {
    std::string text;
    for (char byte = 0;
         (text.size() < 2 || text.substr(text.size() - 2) != "\r\n") && ::recv(raw_.descriptor(), &byte, 1, 0) == 1;)
      text += byte;
    long left = text[0] == '$' ? std::strtol(text.c_str() + 1, nullptr, 10) : -1;
    for (char byte = 0; text[0] == '$' && left > -2 && ::recv(raw_.descriptor(), &byte, 1, 0) == 1; --left)
      text += byte;
    const long count = text[0] == '*' ? std::strtol(text.c_str() + 1, nullptr, 10) : 0;
    for (long index = 0; index < count; ++index) text += reply();
    return text;
  }

  RawConnection raw_;
  Bend bend_;
  int asked_ = 0;
  AnsweringServer face_;
};

}  // namespace

// ---- Nothing is wrong ------------------------------------------------------------------------------------------------

TEST(test_a_healthy_server_should_have_no_finding_of_any_kind) {
  const RedisServer server(binary(), healthy);
  for (const char* const kind : {"mutex", "fenced", "fair", "read", "semaphore"})
    expect_nothing(server.unix_url(), with(long_lease, {"--kind", kind, "lock"}));
}

TEST(test_healthy_sentinels_should_have_no_finding) {
  const SentinelSetup setup(binary());
  heal(setup);
  // Each on a host of its own, as far as names tell.
  const std::string url = "redis-sentinel://127.0.0.1:" + std::to_string(setup.sentinels[0]->port()) +
                          ",localhost:" + std::to_string(setup.sentinels[1]->port()) +
                          ",127.1:" + std::to_string(setup.sentinels[2]->port()) + "/mymaster";
  expect_nothing(url, with(long_lease, {"lock"}));
}

TEST(test_a_healthy_cluster_should_have_no_finding) {
  const ClusterSetup cluster(binary());
  heal(cluster);
  expect_nothing("redis-cluster://" + cluster.hosts(), with(long_lease, {"lock"}));
}

// ---- One server ------------------------------------------------------------------------------------------------------

TEST(test_what_a_crash_forgets_should_be_found) {
  RedisServer server(binary(), healthy);
  server.command("CONFIG SET appendfsync no");
  expect(server.unix_url(), long_lease,
         {"warning", "fsync", "forgets the grants of about half a minute", "appendfsync always"});
  server.command("CONFIG SET appendonly no");
  expect(server.unix_url(), with(long_lease, {"--kind", "fenced"}),
         {"warning", "no-persistence", "lets others in; fences go on growing only if its clock is not set back",
          "CONFIG SET appendonly yes"});
}

TEST(test_memory_that_takes_locks_or_refuses_them_should_be_found) {
  RedisServer server(binary(), healthy);
  server.command("CONFIG SET maxmemory-policy allkeys-lru");
  server.command("CONFIG SET maxmemory 100mb");
  expect(server.unix_url(), long_lease,
         {"danger", "eviction", "its policy is allkeys-lru", "CONFIG SET maxmemory-policy noeviction"});
  server.command("CONFIG SET maxmemory-policy noeviction");
  server.command("CONFIG SET maxmemory 1mb");
  server.command("SET ballast x");
  expect(server.unix_url(), long_lease,
         {"danger", "memory-full", "refuses writes: no lock can be acquired", "raise maxmemory"});
}

TEST(test_rights_that_a_user_lacks_should_be_found) {
  RedisServer server(binary(), healthy);
  server.command("ACL SETUSER bob on >x ~lock &* +@all -evalsha");
  expect(url_of_user(server), with(long_lease, {"lock"}),
         {"danger", "rights", "this user cannot use locks of kind mutex", "ACL SETUSER bob +evalsha"});
  server.command("ACL SETUSER bob +evalsha resetkeys ~other");
  expect(url_of_user(server), with(long_lease, {"lock"}),
         {"danger", "key", "may not use all keys of lock", "ACL SETUSER bob ~lock"});
  server.command("ACL SETUSER bob ~lock resetchannels");
  expect(url_of_user(server), with(long_lease, {"lock"}),
         {"information", "channel", "waiters poll", "ACL SETUSER bob &redisson_lock__channel:*"});
}

TEST(test_what_keeps_replicas_from_confirming_should_be_found) {
  RedisServer server(binary(), healthy);
  RedisServer replica(binary(), with(healthy, {"--replicaof", "127.0.0.1 " + std::to_string(server.port())}));
  server.command("CONFIG SET repl-diskless-sync-delay 0");
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("INFO replication"), "state=online"); }));
  server.command("ACL SETUSER bob on >x ~* &* +@all -wait");
  const Words with_acks = with(long_lease, {"--acks", "1"});
  for (const bool dry : {true, false}) {  // Asked for, and tried.
    server.command(dry ? "ACL SETUSER bob +acl" : "ACL SETUSER bob -acl");
    expect(url_of_user(server), with_acks,
           {"danger", "rights", "this user may not WAIT: no grant with --acks counts",
            dry ? "ACL SETUSER bob +wait" : "+wait"});
    const Words without = with({"doctor", "--seconds", "0.2"}, long_lease);
    TEST_ASSERT_FALSE(contains(output_of(url_of_user(server), without, 0), "WAIT"));
  }
  expect(server.unix_url(), with(long_lease, {"--acks", "2"}),
         {"danger", "few-replicas", "--acks 2, and of the server's replicas 1 is online", "ask for fewer"});
  const Outcome quorum = outcome_of("", {"doctor", "--acks", "1", "--url", "redis://a", "--url", "redis://b"});
  TEST_ASSERT_EQUAL(exit_usage, quorum.code);
  RedisServer bare(binary(), with(healthy, {"--rename-command", "WAIT", ""}));
  expect(bare.unix_url(), with_acks,
         {"danger", "missing-command", "the server has no command for WAIT", "rename-command", {"few-replicas"}});
}

TEST(test_a_renamed_command_should_be_found) {
  const RedisServer server(binary(), with(healthy, {"--rename-command", "PEXPIRE", ""}));
  expect(server.unix_url(), long_lease,
         {"danger", "missing-command", "no command for +pexpire: no locks of kind mutex", "rename-command"});
}

TEST(test_replicas_that_are_no_help_should_be_found) {
  RedisServer server(binary(), healthy);
  const std::string port = std::to_string(server.port());
  RedisServer replica(binary(), with(healthy, {"--replicaof", "127.0.0.1 " + port}));
  expect(replica.unix_url(), long_lease,
         {"danger", "replica", "this is a replica of 127.0.0.1:" + port, "the address of the master"});
  server.command("CONFIG SET repl-diskless-sync-delay 0");
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("INFO replication"), "state=online"); }));
  // One that does not get on any more, and a master that writes.
  replica.pause();
  server.command({"SET", "ballast", std::string(3'000'000, 'x')});
  expect(server.unix_url(), long_lease, {"warning", "replica-lag", "lags by", "a fail-over to it would lose grants"});
  replica.stop();
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("INFO replication"), "connected_slaves:0"); }));
  server.command("CONFIG SET min-replicas-to-write 1");
  expect(server.unix_url(), long_lease, {"danger", "few-replicas", "NOREPLICAS", "a smaller min-replicas-to-write"});
}

TEST(test_writes_that_stopped_should_be_found) {
  RedisServer server(binary(), healthy);
  server.command("CONFIG SET save \"3600 1\"");
  server.command("SET x y");
  const std::string folder = server.command("CONFIG GET dir").substr(4);
  std::filesystem::create_directory(folder + "/dump.rdb");  // Nothing can be renamed over it.
  std::ofstream(folder + "/dump.rdb/x") << "x";
  server.command("BGSAVE");
  TEST_ASSERT_TRUE(
      eventually([&] { return contains(server.command("INFO persistence"), "rdb_last_bgsave_status:err"); }));
  expect(server.unix_url(), long_lease, {"danger", "disk", "refuses writes", "free the disk or repair it"});
}

TEST(test_connections_that_end_or_are_refused_should_be_found) {
  RedisServer server(binary(), healthy);
  server.command("CONFIG SET timeout 5");
  expect(server.unix_url(), {"-l", "30"},
         {"warning", "idle-timeout", "says nothing for 5 seconds", "CONFIG SET timeout 0"});
  server.command("CONFIG SET timeout 0");
  RawConnection last(server.socket_path());
  TEST_ASSERT_EQUAL("OK", last.command("CONFIG SET maxclients 1"));
  expect(server.unix_url(), long_lease, {"danger", "clients", "max number of clients", "raise maxclients"});
}

TEST(test_a_script_that_blocks_the_server_should_be_found) {
  const RedisServer server(binary(), with(healthy, {"--lua-time-limit", "10"}));
  RawConnection blocking(server.socket_path());
  const std::string endless = holdfast::testing::command_of({"EVAL", "while true do end", "0"});
  (void)!::send(blocking.descriptor(), endless.data(), endless.size(), MSG_NOSIGNAL);
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("PING"), "BUSY"); }));
  expect(server.unix_url(), with(long_lease, {"lock"}),
         {"danger", "busy", "a script of another client blocks the server", "SCRIPT KILL"});
  server.command("SCRIPT KILL");
}

TEST(test_a_server_that_is_loading_should_be_found) {
  const RedisServer server(binary(), with(healthy, {"--enable-debug-command", "yes"}));
  for (int index = 0; index < 200; ++index) server.command({"SET", std::to_string(index), std::string(2000, 'x')});
  server.command("CONFIG SET rdbcompression no");
  server.command("CONFIG SET loading-process-events-interval-bytes 1024");
  server.command("CONFIG SET key-load-delay 100000");  // In microseconds: for longer than this test takes.
  RawConnection loader(server.socket_path());
  (void)!::send(loader.descriptor(), "DEBUG RELOAD\r\n", 14, MSG_NOSIGNAL);
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("GET 1"), "LOADING"); }));
  expect(server.unix_url(), long_lease, {"danger", "loading", "loading", "wait until it has"});
}

TEST(test_a_clock_that_misleads_should_be_found) {
  const RedisServer server(binary(), healthy);
  std::int64_t start = 0;
  const BentClock fast(server, [&](std::int64_t now, int) {
    if (start == 0) start = now;
    return now + (now - start) / 4;
  });
  expect(fast.url(), with(long_lease, {"--seconds", "2"}),
         {"danger", "clock-rate", "runs at another rate than ours: ", "the drift allows a hundredth"});
}

TEST(test_a_clock_that_is_set_should_be_found) {
  const RedisServer server(binary(), healthy);
  const BentClock set(server, [](std::int64_t now, int asked) { return now + asked / 2 * 1'000'000; });
  expect(set.url(), with(long_lease, {"--seconds", "1"}),
         {"danger", "clock-step", "the server's clock was set", "slew the clock"});
}

// ---- Several servers -------------------------------------------------------------------------------------------------

TEST(test_a_quorum_of_servers_that_depend_on_each_other_should_be_found) {
  RedisServer server(binary(), healthy);
  const RedisServer second(binary(), healthy);
  expect(server.unix_url() + " " + server.tcp_url() + " " + second.tcp_url(), long_lease,
         {"danger", "one-server", "are one server: a quorum of it is none", "a server for each address", {"one-host"}});
  server.command("CONFIG SET repl-diskless-sync-delay 0");
  second.command("REPLICAOF 127.0.0.1 " + std::to_string(server.port()));
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("INFO replication"), "state=online"); }));
  expect(server.unix_url() + " " + second.tcp_url(), long_lease,
         {"danger", "one-data", "replicate each other", "servers that know nothing of each other", {"replica"}});
}

TEST(test_round_trips_that_are_longer_than_a_watchdog_can_bear_should_be_found) {
  const RedisServer server(binary(), healthy);
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  proxy.delay_replies(std::chrono::milliseconds(20));
  expect(proxy.url(), {"-l", "0.02"}, {"danger", "round-trip", "a watchdog has no second attempt", "a nearer server"});
  TEST_ASSERT_TRUE(contains(output_of(proxy.url(), {"doctor", "--seconds", "0.2", "-l", "0.02"}, exit_danger),
                            "which the slowest round trip takes longer than"));
  proxy.delay_replies(std::chrono::milliseconds(0));
}

// ---- Sentinels -------------------------------------------------------------------------------------------------------

TEST(test_sentinels_that_cannot_fail_over_should_be_found) {
  SentinelSetup setup(binary());
  heal(setup);
  const std::string here = "redis-sentinel://" + setup.hosts() + "/mymaster";
  // All of this set-up is on one host.
  expect(here, with(long_lease, {"lock"}),
         {"warning", "one-host", "all sentinels are on one host", "a machine for each"});

  for (const auto& sentinel : setup.sentinels)
    sentinel->command("ACL SETUSER bob on >x -@all +auth +client +sentinel|get-master-addr-by-name +sentinel|master");
  expect(here + "?sentinel_user=bob&sentinel_password=x", with(long_lease, {"lock"}),
         {"warning", "one-host", "all sentinels are on one host", "a machine for each"});
  TEST_ASSERT_TRUE(
      contains(output_of(here + "?sentinel_user=bob&sentinel_password=x", {"doctor", "--seconds", "0.1"}, 1),
               "ACL SETUSER bob +sentinel|get-master-addr-by-name +sentinel|master +sentinel|ckquorum"));

  for (const auto& sentinel : setup.sentinels) sentinel->command("SENTINEL SET mymaster quorum 4");
  expect(here, with(long_lease, {"lock"}),
         {"danger", "sentinel-quorum", "NOQUORUM", "start the sentinels that are missing", {"one-host"}});
  setup.sentinels[2]->command("SENTINEL SET mymaster quorum 1");
  for (const std::size_t index : {0U, 1U}) setup.sentinels[index]->command("SENTINEL SET mymaster quorum 2");
  expect(here, with(long_lease, {"lock"}),
         {"warning", "sentinels-differ", "different quorums: 2 and 1", "SENTINEL SET mymaster quorum", {"one-host"}});

  // One that watches another master under the same name.
  const RedisServer other(binary(), healthy);
  setup.sentinels[2]->command("SENTINEL REMOVE mymaster");
  expect(here, with(long_lease, {"lock"}),
         {"warning", "sentinel-unknown-service", "does not know the service", "SENTINEL MONITOR", {"one-host"}});
  setup.sentinels[2]->command("SENTINEL MONITOR mymaster 127.0.0.1 " + std::to_string(other.port()) + " 2");
  // It connects to it first.
  await([&] { return contains(setup.sentinels[2]->command("SENTINEL MASTER mymaster"), " flags master link"); });
  expect(here, with(long_lease, {"lock"}),
         {"danger",
          "sentinel-disagrees",
          "names the master 127.0.0.1:" + std::to_string(other.port()),
          "which of the two is the master",
          {"one-host", "sentinel-no-replica", "sentinel-quorum", "sentinels-differ"}});

  setup.sentinels.pop_back();
  expect(here, with(long_lease, {"lock"}),
         {"warning", "sentinel-away", "Connection refused", "see that it runs", {"one-host"}});
  setup.sentinels.pop_back();
  expect(here, with(long_lease, {"lock"}),
         {"danger", "sentinels-missing", "of 3 sentinels 1 are reached", "start them", {"one-host", "sentinel-away"}});
}

// ---- A cluster -------------------------------------------------------------------------------------------------------

TEST(test_what_is_wrong_with_a_cluster_should_be_found) {
  const ClusterSetup cluster(binary());
  heal(cluster);
  const std::string url = "redis-cluster://" + cluster.hosts();
  const Words options = with(long_lease, {"lock"});
  const std::size_t master = cluster.master_of("lock");
  const int slot = ClusterSetup::slot_of(*cluster.servers[0], "lock");

  const RedisServer plain(binary(), healthy);
  expect(url + ",127.0.0.1:" + std::to_string(plain.port()), options,
         {"danger", "no-cluster-node", "this is no node of a cluster", "take it out of the URL"});
  expect(url + ",127.0.0.1:1", options, {"warning", "cluster-node-away", "Connection refused", "see that it runs"});

  // Channels of the slot.
  for (const auto& server : cluster.servers)
    server->command("ACL SETUSER bob on >x ~lock &* +@all -spublish -ssubscribe");
  expect("redis-cluster://bob:x@" + cluster.hosts(), options,
         {"information", "optional-rights", "waiters poll", "ACL SETUSER bob +spublish +ssubscribe"});

  const std::size_t other = cluster.other_than(master);
  cluster.open_slot(slot, master, other);
  expect(url, options,
         {"warning", "cluster-slot-moving", "slot " + std::to_string(slot) + ", that of lock, is being moved",
          "end the move"});
  for (const std::size_t index : {master, other})
    cluster.servers[index]->command("CLUSTER SETSLOT " + std::to_string(slot) + " STABLE");

  // A master whose replica went to another one.
  const std::size_t partner = ClusterSetup::partner_of(other);
  const std::string our_id = cluster.servers[master]->command("CLUSTER MYID");
  const std::string partner_id = cluster.servers[partner]->command("CLUSTER MYID");
  TEST_ASSERT_EQUAL("OK", cluster.servers[partner]->command("CLUSTER REPLICATE " + our_id));
  await([&] {
    return contains(cluster.servers[master]->command("INFO replication"), "min_slaves_good_slaves:2") &&
           std::all_of(cluster.servers.begin(), cluster.servers.end(), [&](const auto& server) {
             const std::string nodes = server->command("CLUSTER NODES");
             const std::size_t line = nodes.find(partner_id + " ");
             return contains(nodes.substr(line, nodes.find('\n', line) - line), "slave " + our_id);
           });
  });
  expect(url, options,
         {"warning", "cluster-no-replica", "1 master has no replica that is well: " + cluster.host(other),
          "CLUSTER REPLICATE"});

  // A slot that is nobody's: the cluster refuses all names.
  for (const auto& server : cluster.servers) server->command("CLUSTER DELSLOTS " + std::to_string(slot));
  TEST_ASSERT_TRUE(eventually([&] {
    return std::all_of(cluster.servers.begin(), cluster.servers.end(), [](const auto& server) {
      return contains(server->command("CLUSTER INFO"), "cluster_state:fail");
    });
  }));
  expect(url, options,
         {"danger",
          "cluster-slots-unassigned",
          "1 slot belongs to nobody: names in them have no lock, that of lock among them",
          "--cluster fix",
          {"cluster-down", "cluster-no-replica"}});

  // And a master that dies, and has nobody to take its place.
  const auto set_patience = [&](const char* milliseconds) {
    for (const auto& server : cluster.servers)
      server->command(std::string("CONFIG SET cluster-node-timeout ") + milliseconds);
  };
  set_patience("1000");
  cluster.servers[other]->stop();
  await([&] {
    for (std::size_t index = 0; index < cluster.servers.size(); ++index)
      if (index != other && contains(cluster.servers[index]->command("CLUSTER INFO"), "cluster_slots_fail:0"))
        return false;
    return true;
  });
  set_patience("15000");
  expect(url, options,
         {"danger",
          "cluster-slots-failed",
          "slots have a master that failed: names in them have no lock",
          "bring the master back",
          {"cluster-down", "cluster-slots-unassigned", "cluster-nodes-failed", "cluster-node-away"}});
}
