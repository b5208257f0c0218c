// SPDX-License-Identifier: MIT
//
// How a node with Sentinels finds its master, without a socket: who is asked next, what answers mean, who is believed.
#include "holdfast/core/master_search.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/node.hpp"
#include "holdfast/sentinels.hpp"
#include "holdfast/url.hpp"
#include "host_desk.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

struct SearchDesk : HostDesk {
  explicit SearchDesk(const SentinelConfig& sentinel_config = {.hosts = "s1,s2,s3", .service = "mymaster"}) {
    sentinels.configure(sentinel_config);
    ClientConfig config = config_of("nowhere");
    config.topology = &sentinels;
    config.password = "master-secret";
    TEST_ASSERT_FALSE(validate(config).found());
    TEST_ASSERT_FALSE(node->misfit(config).found());
    node->configure(config, nullptr);
  }
  void name_master(const std::string& host = "10.0.0.9", const std::string& port = "6379") {
    answer("*2\r\n" + bulk(host) + bulk(port));
  }
  // The master has a password.
  void prove(const std::string& bytes) { answer("+OK\r\n" + bytes); }
  // It accepts, and says nothing until its time is over.
  void be_silent() {
    node->handle_connected(now);
    transmit();
    now = node->timeout();
    node->session().handle_timeout(now);
    TEST_ASSERT_EQUAL(SessionState::failed, node->session().state());
    close();
  }
  // Brings it to a master that is ready.
  void reach_master() {
    (void)dial();
    name_master();
    TEST_ASSERT_EQUAL("10.0.0.9:6379", dial());
    prove(identity("-1master"));
    TEST_ASSERT_TRUE(node->handle_ready(now));
  }

  Sentinels sentinels;
};

// Reads a reply's bytes by the parser that ships.
struct Parsed {
  explicit Parsed(std::string_view bytes) {
    TEST_ASSERT_TRUE(bytes.size() < sizeof buffer);
    TEST_ASSERT_TRUE(receive_piece(parser_face, Instant(), bytes));
    TEST_ASSERT_EQUAL(ParseResult::value, parser.poll_value(value));
  }
  char buffer[reply_size_max];
  RespValue nodes[elements_max];
  RespParser parser{{buffer, sizeof buffer}, nodes, elements_max};
  struct Face {
    RespParser& parser;
    MutableBytes receive_space() { return parser.receive_space(); }
    void handle_received(std::size_t count, Instant) { parser.handle_received(count); }
  } parser_face{parser};
  RespValue value;
};

Status read_address(const std::string& bytes, std::string& host, std::uint16_t& port) {
  const Parsed parsed(bytes);
  ByteView name = "untouched";
  port = 7;
  const Status status = MasterSearch::read_address(parsed.value, name, port);
  host = name.string_view();
  return status;
}

Status read_role(const std::string& bytes) { return MasterSearch::read_role(Parsed(bytes).value); }

}  // namespace

// ---- What answers mean -------------------------------------------------------------------------------------------

TEST(test_an_address_should_be_read_from_host_and_port) {
  std::string host;
  std::uint16_t port = 0;
  for (const char* name : {"10.0.0.1", "fe80::1%eth0", "db-1.example.com", "a_b"}) {
    TEST_ASSERT_EQUAL(Status::ok, read_address("*2\r\n" + bulk(name) + bulk("65535"), host, port));
    TEST_ASSERT_EQUAL(std::string(name), host);
    TEST_ASSERT_EQUAL(65535, port);
  }
}

TEST(test_a_service_that_a_sentinel_does_not_know_should_have_a_status_of_its_own) {
  std::string host;
  std::uint16_t port = 0;
  TEST_ASSERT_EQUAL(Status::unknown_service, read_address("*-1\r\n", host, port));
  TEST_ASSERT_EQUAL(Status::unknown_service, read_address("$-1\r\n", host, port));
  TEST_ASSERT_EQUAL("untouched", host);
}

TEST(test_an_error_should_be_told_as_what_it_is) {
  std::string host;
  std::uint16_t port = 0;
  TEST_ASSERT_EQUAL(Status::server_error, read_address("-IDONTKNOW I have no info about this master\r\n", host, port));
  TEST_ASSERT_EQUAL(Status::auth_required, read_address("-NOAUTH Authentication required.\r\n", host, port));
  TEST_ASSERT_EQUAL(Status::unknown_command, read_address("-ERR unknown command 'SENTINEL'\r\n", host, port));
}

TEST(test_hostile_answers_should_be_refused_with_outputs_untouched) {
  std::string long_host(listed_host_size_max, 'h');
  std::string host;
  std::uint16_t port = 0;
  TEST_ASSERT_EQUAL(Status::ok, read_address("*2\r\n" + bulk(long_host) + bulk("1"), host, port));
  const std::string bad[] = {
      "*2\r\n" + bulk(long_host + "h") + bulk("1"),
      "*2\r\n" + bulk("") + bulk("1"),
      "*2\r\n" + bulk("10.0.0.1") + bulk("0"),
      "*2\r\n" + bulk("10.0.0.1") + bulk("65536"),
      "*2\r\n" + bulk("10.0.0.1") + bulk("18446744073709551617"),
      "*2\r\n" + bulk("10.0.0.1") + bulk("-1"),
      "*2\r\n" + bulk("10.0.0.1") + bulk("+1"),
      "*2\r\n" + bulk("10.0.0.1") + bulk(""),
      "*2\r\n" + bulk("10.0.0.1") + bulk("80 "),
      "*2\r\n" + bulk("10.0.0.1") + ":6379\r\n",
      "*2\r\n" + bulk("10.0.0.1") + "$-1\r\n",
      "*2\r\n$-1\r\n" + bulk("1"),
      "*2\r\n*1\r\n" + bulk("10.0.0.1") + bulk("1"),
      "*2\r\n-ERR no\r\n" + bulk("1"),
      "*2\r\n" + bulk(std::string("a\0b", 3)) + bulk("1"),
      "*2\r\n" + bulk("a\r\nb") + bulk("1"),
      "*2\r\n" + bulk("/run/redis.sock") + bulk("1"),
      "*2\r\n" + bulk("a b") + bulk("1"),
      "*2\r\n" + bulk("\xff\xfe") + bulk("1"),
      "*1\r\n" + bulk("10.0.0.1"),
      "*3\r\n" + bulk("10.0.0.1") + bulk("1") + bulk("2"),
      "*0\r\n",
      ":1\r\n",
      "+OK\r\n",
      bulk("10.0.0.1"),
  };
  for (const std::string& bytes : bad) {
    TEST_ASSERT_EQUAL(Status::protocol_error, read_address(bytes, host, port));
    TEST_ASSERT_EQUAL("untouched", host);
    TEST_ASSERT_EQUAL(7, port);
  }
}

TEST(test_only_a_master_should_be_a_master) {
  TEST_ASSERT_EQUAL(Status::ok, read_role(SearchDesk::identity("-1master")));
  TEST_ASSERT_EQUAL(Status::ok, read_role(SearchDesk::identity("4711master")));
  TEST_ASSERT_EQUAL(Status::read_only, read_role(SearchDesk::identity("-1slave")));
  TEST_ASSERT_EQUAL(Status::no_permission, read_role(SearchDesk::identity("")));
  TEST_ASSERT_EQUAL(Status::no_permission, read_role(SearchDesk::identity("-1sentinel")));
  TEST_ASSERT_EQUAL(Status::no_permission,
                    read_role("-NOPERM this user has no permissions to run the 'eval' command\r\n"));
  TEST_ASSERT_EQUAL(Status::loading, read_role("-LOADING Redis is loading the dataset in memory\r\n"));
  TEST_ASSERT_EQUAL(Status::protocol_error, read_role(bulk("-1master")));
  TEST_ASSERT_EQUAL(Status::protocol_error, read_role("*1\r\n" + bulk("-1master")));
  TEST_ASSERT_EQUAL(Status::protocol_error, read_role("*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"));
}

// ---- The configuration -------------------------------------------------------------------------------------------

TEST(test_hosts_should_be_read_one_by_one) {
  const SentinelConfig config = {.hosts = "10.0.0.1,db.internal:26380,[fe80::1],[::1]:1", .service = "m"};
  TEST_ASSERT_FALSE(validate(config).found());
  TEST_ASSERT_EQUAL(4U, config.count());
  const struct {
    const char* host;
    int port;
  } expected[] = {{"10.0.0.1", 26379}, {"db.internal", 26380}, {"fe80::1", 26379}, {"::1", 1}};
  for (std::size_t index = 0; index < 4; ++index) {
    ByteView host;
    std::uint16_t port = 0;
    TEST_ASSERT_TRUE(config.at(index, host, port));
    TEST_ASSERT_TRUE(host == ByteView(expected[index].host));
    TEST_ASSERT_EQUAL(expected[index].port, port);
  }
  ByteView host = "untouched";
  std::uint16_t port = 7;
  TEST_ASSERT_FALSE(config.at(4, host, port));
  TEST_ASSERT_TRUE(host == ByteView("untouched"));
}

TEST(test_hosts_that_cannot_be_should_be_refused) {
  for (const char* hosts : {"",
                            ",",
                            "a,",
                            ",a",
                            "a,,b",
                            "a:",
                            "a:0",
                            "a:65536",
                            "a:b",
                            "a b",
                            "::1",
                            "[::1",
                            "[::1]x",
                            "[]",
                            "[a]",
                            "a:1:2",
                            "a/b",
                            "a@b",
                            "[::1]x80",
                            "a{b",
                            "a`b",
                            "a[b",
                            "1,2,3,4,5,6,7,8,9,10"}) {
    const SentinelConfig config = {.hosts = ByteView(hosts), .service = "m"};
    TEST_ASSERT_TRUE(validate(config).found());
    TEST_ASSERT_EQUAL("sentinels.hosts", std::string(validate(config).field));
  }
  const std::string long_host(listed_host_size_max + 1, 'h');
  TEST_ASSERT_TRUE(validate(SentinelConfig{.hosts = ByteView(long_host), .service = "m"}).found());
  TEST_ASSERT_FALSE(validate(SentinelConfig{.hosts = "1,2,3,4,5,6,7,8,9", .service = "m"}).found());
}

TEST(test_what_else_is_wrong_should_be_named) {
  const std::string long_text(1024, 'x');
  TEST_ASSERT_EQUAL("sentinels.service", std::string(validate(SentinelConfig{.hosts = "a"}).field));
  TEST_ASSERT_EQUAL("sentinels.service",
                    std::string(validate(SentinelConfig{.hosts = "a", .service = ByteView(long_text)}).field));
  TEST_ASSERT_EQUAL("sentinels.user",
                    std::string(validate(SentinelConfig{.hosts = "a", .service = "m", .user = "u"}).field));
  TEST_ASSERT_EQUAL(
      "sentinels.password",
      std::string(validate(SentinelConfig{.hosts = "a", .service = "m", .password = ByteView(long_text)}).field));
  Sentinels sentinels({.hosts = "a", .service = "m"});
  ClientConfig config;
  config.topology = &sentinels;
  TEST_ASSERT_FALSE(validate(config).found());
  config.socket_path = "/run/redis.sock";
  TEST_ASSERT_EQUAL("topology", std::string(validate(config).field));
}

// ---- An attempt --------------------------------------------------------------------------------------------------

TEST(test_the_first_sentinel_should_be_asked_and_the_master_it_names_dialled) {
  SearchDesk desk({.hosts = "s1,s2:26380", .service = "mymaster", .user = "watch", .password = "secret"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.node->handle_connected(desk.now);
  desk.transmit();
  TEST_ASSERT_EQUAL(command_of({"AUTH", "watch", "secret"}) + command_of({"CLIENT", "SETNAME", "holdfast"}) +
                        command_of({"CLIENT", "ID"}) + command_of({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"}),
                    desk.sent);
  desk.sent.clear();
  desk.receive("+OK\r\n+OK\r\n:3\r\n*2\r\n" + bulk("10.0.0.9") + bulk("7000"));
  TEST_ASSERT_EQUAL(SessionState::failed, desk.node->session().state());
  desk.close();
  TEST_ASSERT_TRUE(desk.node->timeout() <= desk.now);
  TEST_ASSERT_TRUE(desk.node->dialer().hopeful(desk.now));
  TEST_ASSERT_EQUAL("10.0.0.9:7000", desk.dial());
  desk.prove(SearchDesk::identity("-1master"));
  TEST_ASSERT_TRUE(desk.sent.find(command_of({"AUTH", "master-secret"})) == 0);
  TEST_ASSERT_TRUE(desk.sent.find("SENTINEL") == std::string::npos);
  TEST_ASSERT_TRUE(desk.node->handle_ready(desk.now));
  TEST_ASSERT_TRUE(desk.node->placed());
  TEST_ASSERT_EQUAL(Status::ok, desk.failure());
}

TEST(test_a_literal_master_should_need_no_resolver) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("10.0.0.9");
  TEST_ASSERT_EQUAL(DialAction::dial, desk.node->poll_dial(desk.now, least));
}

// Each of them once, and then a pause that grows.
TEST(test_all_sentinels_should_be_asked_once_per_attempt) {
  SearchDesk desk;
  Duration before = Duration::zero();
  for (int attempt = 0; attempt < 4; ++attempt) {
    for (const char* host : {"s1:26379", "s2:26379", "s3:26379"}) {
      TEST_ASSERT_EQUAL(host, desk.dial());
      TEST_ASSERT_FALSE(desk.node->placed());
      desk.refuse();
    }
    TEST_ASSERT_EQUAL("none", desk.dial());
    TEST_ASSERT_EQUAL(DialState::waiting, desk.node->dialer().state());
    TEST_ASSERT_EQUAL(Status::connect_failed, desk.failure());
    TEST_ASSERT_EQUAL("connect_failed: sentinel s3:26379", desk.text());
    const Duration pause = desk.node->timeout() - desk.now;
    TEST_ASSERT_TRUE(pause > before && pause <= reconnect_delay_max);
    TEST_ASSERT_FALSE(desk.node->dialer().hopeful(desk.now));
    before = pause;
    desk.now = desk.node->timeout();
  }
}

// Somebody may ask for them only then.
TEST(test_words_should_stay_until_the_next_attempt_has_found_out_more) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  const std::string words = "it does not know the service m: sentinel s2:26379";
  TEST_ASSERT_EQUAL(words, desk.text());
  desk.now = desk.node->timeout();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  TEST_ASSERT_EQUAL(words, desk.text());
  desk.refuse();
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  TEST_ASSERT_EQUAL("", desk.text());
  desk.refuse();
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("connect_failed: sentinel s2:26379", desk.text());
  desk.now = desk.node->timeout();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.node->handle_connected(desk.now);
  TEST_ASSERT_EQUAL("", desk.text());
}

TEST(test_a_silent_sentinel_should_leave_time_for_the_others) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.now = desk.node->timeout();
  TEST_ASSERT_TRUE(desk.now <= start + 500ms);
  TEST_ASSERT_EQUAL("hang_up", desk.dial());
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.node->handle_connected(desk.now);  // It accepts, and says nothing.
  desk.transmit();
  desk.now = desk.node->timeout();
  TEST_ASSERT_TRUE(desk.now <= start + 1s);
  desk.node->session().handle_timeout(desk.now);
  TEST_ASSERT_EQUAL(SessionState::failed, desk.node->session().state());
  desk.close();
  TEST_ASSERT_EQUAL("s3:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.prove(SearchDesk::identity("-1master"));
  TEST_ASSERT_TRUE(desk.node->handle_ready(desk.now));
  // Who led to it is asked first when it is lost, and the attempt is due at once.
  desk.close();
  TEST_ASSERT_EQUAL("s3:26379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
}

TEST(test_an_attempt_should_end_at_its_deadline) {
  SearchDesk desk({.hosts = "s1,s2,s3,s4,s5,s6,s7,s8,s9", .service = "m"});
  for (int host = 0; host < 9; ++host) {
    TEST_ASSERT_TRUE(desk.dial() != "none");
    desk.now = desk.node->timeout();
    TEST_ASSERT_TRUE(desk.now <= start + 2s);
    TEST_ASSERT_EQUAL("hang_up", desk.dial());
  }
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(DialState::waiting, desk.node->dialer().state());
  TEST_ASSERT_TRUE(desk.now <= start + 2s);
}

TEST(test_a_replica_that_is_named_should_not_be_believed) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("10.0.0.8");
  TEST_ASSERT_EQUAL("10.0.0.8:6379", desk.dial());
  desk.prove(SearchDesk::identity("-1slave"));
  TEST_ASSERT_FALSE(desk.node->ready());
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.name_master("10.0.0.8");
  TEST_ASSERT_EQUAL("10.0.0.8:6379", desk.dial());
  desk.prove(SearchDesk::identity("-1slave"));
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::read_only, desk.failure());
  TEST_ASSERT_EQUAL("it is a replica: 10.0.0.8:6379, named by sentinel s2:26379", desk.text());
}

TEST(test_who_has_answered_should_be_told_of_before_who_has_not) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("s3:26379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("none", desk.dial());
  // Those that did not answer may know it.
  TEST_ASSERT_EQUAL(Status::connect_failed, desk.failure());
  TEST_ASSERT_EQUAL("it does not know the service mymaster: sentinel s1:26379", desk.text());
}

TEST(test_a_sentinels_own_words_should_be_told) {
  SearchDesk desk({.hosts = "s1", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.answer("-IDONTKNOW no info\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::server_error, desk.failure());
  TEST_ASSERT_EQUAL("IDONTKNOW no info: sentinel s1:26379", desk.text());
}

TEST(test_hostile_bytes_should_lead_to_the_next_sentinel) {
  for (const std::string& bytes :
       {std::string("*2\r\n$3\r\na b\r\n$1\r\n1\r\n"), std::string("hello\r\n"), std::string("*160\r\n"),
        std::string("$99999999\r\n"), SearchDesk::identity("-1master"), std::string("+OK\r\n+OK\r\n")}) {
    SearchDesk desk;
    TEST_ASSERT_EQUAL("s1:26379", desk.dial());
    desk.answer(bytes);
    TEST_ASSERT_FALSE(desk.node->ready());
    TEST_ASSERT_TRUE(desk.node->session().invariants());
    if (desk.node->open()) desk.close();
    TEST_ASSERT_EQUAL(Status::protocol_error, desk.failure());
    TEST_ASSERT_EQUAL("s2:26379", desk.dial());
    desk.name_master();
    TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  }
}

// ---- The resolver ------------------------------------------------------------------------------------------------

// One that blocks, and takes longer than connect_timeout for each name.
TEST(test_the_time_of_a_slow_resolver_should_not_be_the_masters) {
  SearchDesk desk;
  desk.resolver_time = 3s;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("10.0.0.9");
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  TEST_ASSERT_TRUE(desk.node->timeout() >= desk.now + 400ms);
  desk.prove(SearchDesk::identity("-1master"));
  TEST_ASSERT_TRUE(desk.node->handle_ready(desk.now));
  desk.close();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("master.example.com");
  TEST_ASSERT_EQUAL("master.example.com:6379", desk.dial());
  TEST_ASSERT_TRUE(desk.node->timeout() >= desk.now + 400ms);
}

TEST(test_a_slow_resolver_that_finds_nothing_should_leave_time_for_the_others) {
  SearchDesk desk;
  desk.resolver_time = 3s;
  desk.addresses = 0;
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(3, desk.questions);
  TEST_ASSERT_EQUAL(Status::name_not_resolved, desk.failure());
}

// One on a thread, as a watchdog has it: each question is a thread. It has connect_timeout, and the hosts have theirs after it.
TEST(test_a_resolver_should_have_a_time_of_its_own) {
  SearchDesk desk({.hosts = "s1,s2,s3,s4,s5,s6,s7,s8,s9", .service = "m"});
  desk.resolver_time = Duration::max();
  TEST_ASSERT_EQUAL("asked", desk.dial());
  TEST_ASSERT_EQUAL(start + 2s, desk.node->timeout());
  desk.now = start + 1500ms;
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(DialState::resolving, desk.node->dialer().state());
  desk.resolve();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  TEST_ASSERT_EQUAL(desk.now + 200ms, desk.node->timeout());
  desk.name_master("10.0.0.9");
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  TEST_ASSERT_EQUAL(1, desk.questions);
  TEST_ASSERT_TRUE(desk.node->timeout() >= desk.now + 200ms);
  TEST_ASSERT_TRUE(desk.node->timeout() <= start + 3500ms);
}

TEST(test_a_resolver_that_hangs_should_leave_time_for_hosts_that_need_none) {
  SearchDesk desk({.hosts = "s1,s2,10.0.0.3", .service = "m"});
  desk.resolver_time = Duration::max();
  TEST_ASSERT_EQUAL("asked", desk.dial());
  desk.now = start + 2s;
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("none", desk.dial());  // One question at a time: s2 is not asked for.
  TEST_ASSERT_EQUAL("10.0.0.3:26379", desk.dial());
  TEST_ASSERT_EQUAL(1, desk.questions);
  TEST_ASSERT_TRUE(desk.node->timeout() >= desk.now + 400ms);
  desk.resolve();  // Of s1: dropped.
  TEST_ASSERT_EQUAL(1U, desk.node->dialer().address_count());
  desk.name_master("db.internal");
  TEST_ASSERT_EQUAL("asked", desk.dial());
  desk.resolve();
  TEST_ASSERT_EQUAL("db.internal:6379", desk.dial());
  TEST_ASSERT_EQUAL(2, desk.questions);
}

// The pauses between attempts grow as ever, and no attempt asks again while a question is under way.
TEST(test_an_answer_that_comes_after_its_attempt_should_neither_hurry_the_next_nor_be_taken_for_it) {
  const struct {
    const char* hosts;
    int attempts;  // Before it comes.
  } cases[] = {{"s1,s2", 3}, {"s1", 3}, {"s1", 1}};
  for (const auto& [hosts, attempts] : cases) {
    SearchDesk desk({.hosts = ByteView(hosts), .service = "m"});
    desk.resolver_time = Duration::max();
    TEST_ASSERT_EQUAL("asked", desk.dial());
    desk.now = start + 2s;
    Duration before = Duration::zero();
    Instant next;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      while (desk.node->dialer().state() != DialState::waiting || desk.node->timeout() <= desk.now)
        TEST_ASSERT_EQUAL("none", desk.dial());
      TEST_ASSERT_EQUAL(Status::name_not_resolved, desk.failure());
      next = desk.node->timeout();
      TEST_ASSERT_TRUE(next - desk.now > before);
      TEST_ASSERT_TRUE(next - desk.now <= reconnect_delay_max);
      before = next - desk.now;
      if (attempt + 1 != attempts) desk.now = next;
    }
    TEST_ASSERT_EQUAL(1, desk.questions);
    desk.resolve();
    TEST_ASSERT_EQUAL(next, desk.node->timeout());
    TEST_ASSERT_EQUAL(0U, desk.node->dialer().address_count());
    TEST_ASSERT_EQUAL("none", desk.dial());
    desk.now = next;
    TEST_ASSERT_EQUAL("asked", desk.dial());
    TEST_ASSERT_EQUAL(2, desk.questions);
  }
}

// ---- Several addresses -------------------------------------------------------------------------------------------

TEST(test_all_addresses_of_a_sentinel_should_be_asked_in_turn) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  desk.addresses = 2;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  TEST_ASSERT_EQUAL(0, desk.node->dialer().address());
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  TEST_ASSERT_EQUAL(1, desk.node->dialer().address());
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  // One that accepts and is silent leaves time for the other.
  const Instant begun = desk.now;
  desk.node->handle_connected(desk.now);
  desk.transmit();
  desk.now = desk.node->timeout();
  TEST_ASSERT_TRUE(desk.now <= begun + 600ms);
  desk.node->session().handle_timeout(desk.now);
  desk.close();
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  TEST_ASSERT_EQUAL(1, desk.node->dialer().address());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.prove(SearchDesk::identity("-1master"));
  TEST_ASSERT_TRUE(desk.node->handle_ready(desk.now));
}

// A sentinel that has named the master is asked no more, at whatever address.
TEST(test_all_addresses_of_a_master_should_be_dialled_in_turn) {
  SearchDesk desk({.hosts = "s1", .service = "m"});
  desk.addresses = 2;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("db.internal");
  TEST_ASSERT_EQUAL("db.internal:6379", desk.dial());
  desk.prove(SearchDesk::identity("-1slave"));
  TEST_ASSERT_EQUAL("db.internal:6379", desk.dial());
  TEST_ASSERT_EQUAL(1, desk.node->dialer().address());
  desk.prove(SearchDesk::identity("-1slave"));
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::read_only, desk.failure());
}

// ---- The end of an attempt ---------------------------------------------------------------------------------------

TEST(test_a_status_that_ends_waits_should_be_told_only_where_all_ended_so) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.answer("-NOAUTH Authentication required.\r\n");
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::unknown_service, desk.failure());

  desk.now = desk.node->timeout();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.prove(SearchDesk::identity("-1slave"));
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::read_only, desk.failure());
}

TEST(test_a_final_status_should_not_be_told_of_sentinels_that_were_not_asked) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.now = start + 2s;
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::timed_out, desk.failure());
  TEST_ASSERT_EQUAL("it does not know the service m: sentinel s1:26379", desk.text());
}

TEST(test_a_master_that_is_not_there_should_be_dialled_once) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("s3:26379", desk.dial());
  desk.name_master("10.0.0.9", "6380");
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::connect_failed, desk.failure());
  TEST_ASSERT_EQUAL("connect_failed: 10.0.0.9:6380, named by sentinel s3:26379", desk.text());
  // In the next attempt it is dialled again.
  desk.now = desk.node->timeout();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
}

// ---- The master is lost ------------------------------------------------------------------------------------------

TEST(test_a_request_that_a_replica_refuses_should_lead_to_the_sentinels) {
  for (const char* refusal :
       {"-READONLY You can't write against a read only replica.\r\n",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n"}) {
    SearchDesk desk;
    desk.reach_master();
    Locked locked;
    desk.submit(locked);
    desk.receive(refusal);
    TEST_ASSERT_EQUAL(1U, desk.heard.size());
    TEST_ASSERT_EQUAL(SessionState::failed, desk.node->session().state());
    TEST_ASSERT_TRUE(desk.text().size() > 10 && std::string(refusal).find(desk.text()) == 1);
    desk.close();
    TEST_ASSERT_EQUAL("s1:26379", desk.dial());  // At once.
  }
}

// They may follow another by now, or be down: so it is asked, and not all the time.
TEST(test_a_master_that_its_replicas_have_left_should_be_asked_for_once_in_a_while) {
  SearchDesk desk;
  desk.reach_master();
  const auto refuse = [&] {
    Locked locked;
    desk.submit(locked);
    desk.transmit();
    desk.heard.clear();
    desk.receive("-NOREPLICAS Not enough good replicas to write.\r\n");
    TEST_ASSERT_EQUAL(1U, desk.heard.size());
    return desk.node->session().state();
  };
  TEST_ASSERT_EQUAL(SessionState::ready, refuse());
  desk.now = desk.now + reconnect_delay_max - 1ms;
  TEST_ASSERT_EQUAL(SessionState::ready, refuse());
  desk.now = desk.now + 1ms;
  TEST_ASSERT_EQUAL(SessionState::failed, refuse());
  TEST_ASSERT_EQUAL("NOREPLICAS Not enough good replicas to write.", desk.text());
  desk.close();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());  // At once.
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
}

TEST(test_another_refusal_should_not_end_the_connection) {
  SearchDesk desk;
  desk.reach_master();
  Locked locked;
  desk.submit(locked);
  desk.receive("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  TEST_ASSERT_TRUE(desk.node->session().ready());
}

// A master that is gone as soon as it is there is not dialled as fast as that.
TEST(test_a_master_that_is_lost_again_and_again_should_be_left_alone_for_longer_and_longer) {
  SearchDesk desk;
  Duration before = Duration::zero();
  for (int turn = 0; turn < 4; ++turn) {
    desk.reach_master();
    desk.close();
    const Instant next = desk.node->timeout();
    TEST_ASSERT_TRUE(turn == 0 ? next <= desk.now : next - desk.now > before);
    if (turn != 0) before = next - desk.now;
    if (next > desk.now) desk.now = next;
  }
}

// What is to be taken back goes to a master, and never to a sentinel.
TEST(test_a_compensation_should_wait_for_the_master) {
  SearchDesk desk;
  desk.reach_master();
  Locked locked;
  desk.submit(locked);
  desk.transmit();
  desk.close();
  TEST_ASSERT_EQUAL(1U, desk.node->session().compensations_pending());
  desk.sent.clear();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("10.0.0.8");
  TEST_ASSERT_TRUE(desk.sent.find(std::string(32, 't')) == std::string::npos);
  desk.sent.clear();
  TEST_ASSERT_EQUAL("10.0.0.8:6379", desk.dial());
  desk.prove(SearchDesk::identity("4711master"));
  desk.transmit();
  TEST_ASSERT_TRUE(desk.sent.find(std::string(32, 't')) != std::string::npos);
}

// ---- Copies and storage ------------------------------------------------------------------------------------------

TEST(test_a_copy_should_ask_the_sentinels_itself) {
  SearchDesk desk;
  (void)desk.dial();
  desk.name_master();
  (void)desk.dial();
  NodeDesk other;
  other.node->configure_like(*desk.node);
  TEST_ASSERT_EQUAL(DialAction::resolve, other.node->poll_dial(other.now, least));
  TEST_ASSERT_TRUE(other.node->config().host.view() == ByteView("s1"));
  TEST_ASSERT_TRUE(other.node->config().password.view() == ByteView("master-secret"));
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.where());
}

namespace {

struct SmallDesk {
  SmallDesk() { config.topology = &sentinels; }
  Sentinels sentinels{{.hosts = "s1", .service = "m"}};
  ClientConfig config;
  NodeBuffersOf<SmallSessionBuffers, small_texts_size, small_addresses> buffers{};
  Node node{buffers.storage()};
};

}  // namespace

TEST(test_a_small_storage_should_do_and_what_does_not_fit_be_refused) {
  SmallDesk desk;
  auto& [sentinels, config, buffers, node] = desk;
  config.password = ByteView(std::string(80, 'p'));
  TEST_ASSERT_FALSE(node.misfit(config).found());
  node.configure(config, nullptr);
  TEST_ASSERT_EQUAL(DialAction::resolve, node.poll_dial(start, least));
  TEST_ASSERT_TRUE(node.config().password.view() == ByteView(std::string(80, 'p')));
  config.password = ByteView(std::string(100, 'p'));
  TEST_ASSERT_TRUE(node.misfit(config).found());
}

TEST(test_a_question_that_does_not_fit_into_the_send_buffer_should_be_refused) {
  SmallDesk desk;
  auto& [sentinels, config, buffers, node] = desk;
  node.configure(config, nullptr);
  sentinels.configure({.hosts = "s1",
                       .service = ByteView(std::string(service_size_max, 's')),
                       .user = "u",
                       .password = ByteView(std::string(password_size_max, 'p'))});
  TEST_ASSERT_EQUAL(DialAction::none, node.poll_dial(start, least));
  TEST_ASSERT_EQUAL(Status::buffer_too_small, node.dialer().failure());
  TEST_ASSERT_TRUE(std::string(node.session().failure_text().string_view()).find("do not fit") != std::string::npos);
}

// ---- Words -------------------------------------------------------------------------------------------------------

TEST(test_why_a_server_is_not_the_master_should_be_said_and_who_named_it) {
  struct Case {
    std::string answer;
    const char* words;
  };
  const Case cases[] = {
      {SearchDesk::identity("-1slave"), "it is a replica"},
      {SearchDesk::identity(""), "it does not tell its role: may its user run INFO?"},
      {bulk("-1master"), "it does not tell who it is"},
  };
  for (const Case& it : cases) {
    SearchDesk desk({.hosts = "s1", .service = "m"});
    TEST_ASSERT_EQUAL("s1:26379", desk.dial());
    desk.name_master();
    TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
    desk.prove(it.answer);
    TEST_ASSERT_EQUAL("none", desk.dial());
    TEST_ASSERT_EQUAL(std::string(it.words) + ": 10.0.0.9:6379, named by sentinel s1:26379", desk.text());
  }
}

TEST(test_a_sentinel_whose_answer_is_no_address_should_be_told) {
  SearchDesk desk({.hosts = "s1", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("a b");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("its answer is no host and port: sentinel s1:26379", desk.text());
}

TEST(test_sentinels_should_be_told_by_their_hosts_service_and_password) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m", .user = "u", .password = "p"});
  TEST_ASSERT_EQUAL(ByteView("s1,s2"), desk.sentinels.hosts());
  TEST_ASSERT_EQUAL(ByteView("m"), desk.sentinels.name());
  TEST_ASSERT_EQUAL(ByteView("p"), desk.sentinels.password());
  TEST_ASSERT_TRUE(desk.sentinels.sharded_by({}) == nullptr);
  TEST_ASSERT_FALSE(desk.sentinels.has_slots());
}

// ---- Whom it speaks to, and as whom ------------------------------------------------------------------------------

TEST(test_a_master_should_be_spoken_to_as_its_user_and_a_sentinel_as_that_of_sentinels) {
  SearchDesk desk({.hosts = "s1", .service = "m", .user = "watcher", .password = "sentinel-secret"});
  ClientConfig config = config_of("nowhere");
  config.topology = &desk.sentinels;
  config.user = "worker";
  config.password = "master-secret";
  config.database = 3;
  desk.node->configure(config, nullptr);
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.node->handle_connected(desk.now);
  desk.transmit();
  TEST_ASSERT_TRUE(desk.sent.find(command_of({"AUTH", "watcher", "sentinel-secret"})) != std::string::npos);
  TEST_ASSERT_TRUE(desk.sent.find("SELECT") == std::string::npos);
  desk.receive("+OK\r\n+OK\r\n:7\r\n*2\r\n" + bulk("10.0.0.9") + bulk("6379"));
  desk.close();
  desk.sent.clear();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.node->handle_connected(desk.now);
  desk.transmit();
  TEST_ASSERT_TRUE(desk.sent.find(command_of({"AUTH", "worker", "master-secret"})) != std::string::npos);
  TEST_ASSERT_TRUE(desk.sent.find(command_of({"SELECT", "3"})) != std::string::npos);
}

TEST(test_a_masters_own_compare_and_delete_should_be_used_unless_it_is_not_wanted) {
  for (const bool wanted : {true, false}) {
    SearchDesk desk;
    ClientConfig config = config_of("nowhere");
    config.topology = &desk.sentinels;
    config.native_delete = wanted;
    desk.node->configure(config, nullptr);
    (void)desk.dial();
    desk.name_master();
    TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
    desk.answer(SearchDesk::identity("-1master", "8.4.0"));
    TEST_ASSERT_TRUE(desk.node->handle_ready(desk.now));
    TEST_ASSERT_TRUE(desk.node->session().identity().native_delete ==
                     (wanted ? NativeDelete::delex : NativeDelete::none));
  }
}

TEST(test_texts_of_sentinels_that_are_too_long_should_be_named_as_that) {
  const std::string hosts(listed_hosts_size_max + 1, 'h');
  const std::string service(service_size_max + 1, 's');
  const std::string user(user_size_max + 1, 'u');
  const std::string words = "it is longer than limits.hpp allows";
  TEST_ASSERT_EQUAL(words, std::string(validate(SentinelConfig{.hosts = ByteView(hosts), .service = "m"}).reason));
  TEST_ASSERT_EQUAL(words, std::string(validate(SentinelConfig{.hosts = "a", .service = ByteView(service)}).reason));
  TEST_ASSERT_EQUAL(
      words,
      std::string(
          validate(SentinelConfig{.hosts = "a", .service = "m", .user = ByteView(user), .password = "p"}).reason));
}

TEST(test_the_server_of_another_sentinel_should_be_told_where_the_last_one_says_less) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.prove(SearchDesk::identity("-1slave"));
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::read_only, desk.failure());
  TEST_ASSERT_EQUAL("it is a replica: the server that was named by sentinel s1:26379", desk.text());
}

// Nobody was there: what was said before is no word of it.
TEST(test_who_was_not_reached_should_not_be_given_the_words_of_another) {
  for (const Status status :
       {Status::connect_failed, Status::name_not_resolved, Status::system_error, Status::too_many_requests}) {
    SearchDesk desk({.hosts = "s1,s2", .service = "m"});
    TEST_ASSERT_EQUAL("s1:26379", desk.dial());
    desk.answer("-NOAUTH Authentication required.\r\n");
    TEST_ASSERT_EQUAL("s2:26379", desk.dial());
    desk.node->dialer().handle_dial_failed(status, desk.now, least);
    TEST_ASSERT_EQUAL("none", desk.dial());
    TEST_ASSERT_TRUE(desk.text().find("sentinel s2:26379: NOAUTH") == std::string::npos);
    TEST_ASSERT_TRUE(desk.text().find("NOAUTH Authentication required.: sentinel s2") == std::string::npos);
  }
}

TEST(test_a_master_that_is_silent_in_any_way_should_be_dialled_once_in_an_attempt) {
  for (const Status status : {Status::connect_failed, Status::system_error, Status::name_not_resolved,
                              Status::timed_out, Status::transport_closed, Status::not_connected}) {
    SearchDesk desk({.hosts = "s1,s2,s3", .service = "m"});
    TEST_ASSERT_EQUAL("s1:26379", desk.dial());
    desk.name_master();
    TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
    desk.node->dialer().handle_dial_failed(status, desk.now, least);
    TEST_ASSERT_EQUAL("s2:26379", desk.dial());
    desk.name_master();
    TEST_ASSERT_EQUAL("s3:26379", desk.dial());
    desk.name_master("10.0.0.8");
    TEST_ASSERT_EQUAL("10.0.0.8:6379", desk.dial());
  }
}

// ---- The time of an attempt --------------------------------------------------------------------------------------

TEST(test_each_host_should_have_an_even_share_of_what_is_left_and_the_last_one_all_of_it) {
  SearchDesk desk;  // Three sentinels, and the master that one of them names.
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  TEST_ASSERT_EQUAL(start + 500ms, desk.node->timeout());
  desk.now = start + 500ms;
  TEST_ASSERT_EQUAL("hang_up", desk.dial());
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  TEST_ASSERT_EQUAL(start + 1s, desk.node->timeout());
  desk.now = start + 1s;
  TEST_ASSERT_EQUAL("hang_up", desk.dial());
  TEST_ASSERT_EQUAL("s3:26379", desk.dial());
  TEST_ASSERT_EQUAL(start + 1500ms, desk.node->timeout());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  TEST_ASSERT_EQUAL(start + 2s, desk.node->timeout());
  desk.now = start + 2s;
  TEST_ASSERT_EQUAL("hang_up", desk.dial());
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(DialState::waiting, desk.node->dialer().state());
}

TEST(test_a_master_should_share_the_time_with_the_sentinels_that_were_not_asked) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  TEST_ASSERT_EQUAL(start + Duration(2s) / 3, desk.node->timeout());
  desk.now = start + 200ms;
  desk.refuse();
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  TEST_ASSERT_EQUAL(start + 800ms, desk.node->timeout());
}

TEST(test_each_host_should_have_a_least_time_but_none_beyond_the_attempt) {
  SearchDesk desk({.hosts = "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4", .service = "m"});
  ClientConfig config = config_of("nowhere");
  config.topology = &desk.sentinels;
  config.connect_timeout = 250ms;
  desk.node->configure(config, nullptr);
  for (const Duration end : {Duration(100ms), Duration(200ms), Duration(250ms)}) {
    TEST_ASSERT_TRUE(desk.dial().find("10.0.0.") == 0);
    TEST_ASSERT_EQUAL(start + end, desk.node->timeout());
    desk.now = start + end;
    TEST_ASSERT_EQUAL("hang_up", desk.dial());
  }
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(DialState::waiting, desk.node->dialer().state());
}

TEST(test_the_end_of_an_attempt_should_move_by_the_time_of_the_resolver_and_no_more) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  desk.resolver_time = 700ms;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  TEST_ASSERT_EQUAL(start + 700ms + Duration(2s) / 3, desk.node->timeout());
  desk.refuse();
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  TEST_ASSERT_EQUAL(start + 1400ms + 1s, desk.node->timeout());
  desk.name_master();  // A literal address, for which nobody is asked.
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  TEST_ASSERT_EQUAL(start + 1400ms + 2s, desk.node->timeout());
}

// ---- What is told of an attempt ----------------------------------------------------------------------------------

// Of each sentinel: r(efuses the connection), t(imes out), s(ilent after it was connected), g(arbage), u(nknown service),
// l(oading), n(o user), p(ermission lacks).
TEST(test_an_attempt_should_be_told_by_who_answered_last_and_wait_where_anything_may_pass) {
  const struct {
    const char* outcomes;
    Status status;
    const char* words;
  } cases[] = {
      {"rr", Status::connect_failed, "connect_failed: sentinel s2:26379"},
      {"tr", Status::connect_failed, "connect_failed: sentinel s2:26379"},
      {"rt", Status::timed_out, "timed_out: sentinel s2:26379"},
      {"ur", Status::connect_failed, "it does not know the service m: sentinel s1:26379"},
      {"ru", Status::connect_failed, "it does not know the service m: sentinel s2:26379"},
      {"uu", Status::unknown_service, "it does not know the service m: sentinel s2:26379"},
      {"lr", Status::loading, "loading: sentinel s1:26379"},
      {"rl", Status::loading, "LOADING Redis is loading: sentinel s2:26379"},
      {"nl", Status::loading, "LOADING Redis is loading: sentinel s2:26379"},
      {"ln", Status::loading, "NOAUTH Authentication required.: sentinel s2:26379"},
      {"lu", Status::loading, "it does not know the service m: sentinel s2:26379"},
      {"ul", Status::loading, "LOADING Redis is loading: sentinel s2:26379"},
      {"nrr", Status::connect_failed, "auth_required: sentinel s1:26379"},
      {"lnr", Status::loading, "auth_required: sentinel s2:26379"},
      {"run", Status::connect_failed, "NOAUTH Authentication required.: sentinel s3:26379"},
      {"trl", Status::loading, "LOADING Redis is loading: sentinel s3:26379"},
      {"nn", Status::auth_required, "NOAUTH Authentication required.: sentinel s2:26379"},
      {"pr", Status::connect_failed, "no_permission: sentinel s1:26379"},
      {"ns", Status::timed_out, "auth_required: sentinel s1:26379"},
      {"ug", Status::protocol_error, "an unknown type byte: sentinel s2:26379"},
  };
  for (const auto& it : cases) {
    const std::string sequence = it.outcomes;
    TEST_MESSAGE(sequence);
    SearchDesk desk({.hosts = sequence.size() == 2 ? ByteView("s1,s2") : ByteView("s1,s2,s3"), .service = "m"});
    for (int attempt = 0; attempt < 2; ++attempt) {  // Each attempt is told by itself.
      for (std::size_t host = 0; host < sequence.size(); ++host) {
        TEST_ASSERT_EQUAL("s" + std::to_string(host + 1) + ":26379", desk.dial());
        switch (sequence[host]) {
          case 'r': desk.refuse(); break;
          case 't': desk.node->dialer().handle_dial_failed(Status::timed_out, desk.now, least); break;
          case 's': desk.be_silent(); break;
          case 'g': desk.answer("hello\r\n"); break;
          case 'p': desk.answer("-NOPERM this user may not run 'sentinel'\r\n"); break;
          case 'u': desk.answer("*-1\r\n"); break;
          case 'l': desk.answer("-LOADING Redis is loading\r\n"); break;
          default: desk.answer("-NOAUTH Authentication required.\r\n"); break;
        }
      }
      TEST_ASSERT_EQUAL("none", desk.dial());
      TEST_ASSERT_EQUAL(it.status, desk.failure());
      TEST_ASSERT_EQUAL(it.words, desk.text());
      desk.now = desk.node->timeout();
    }
    for (std::size_t host = 0; host < sequence.size(); ++host) {  // Nothing of them is left in the next.
      TEST_ASSERT_EQUAL("s" + std::to_string(host + 1) + ":26379", desk.dial());
      desk.refuse();
    }
    TEST_ASSERT_EQUAL("none", desk.dial());
    TEST_ASSERT_EQUAL(Status::connect_failed, desk.failure());
    TEST_ASSERT_EQUAL("connect_failed: sentinel s" + std::to_string(sequence.size()) + ":26379", desk.text());
  }
}

TEST(test_a_silent_master_should_be_told_also_where_another_sentinel_has_named_it_last) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  for (int attempt = 0; attempt < 2; ++attempt) {
    TEST_ASSERT_EQUAL("s1:26379", desk.dial());
    desk.name_master();
    TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
    desk.refuse();
    TEST_ASSERT_EQUAL("s2:26379", desk.dial());
    desk.name_master();
    TEST_ASSERT_EQUAL("none", desk.dial());
    TEST_ASSERT_EQUAL(Status::connect_failed, desk.failure());
    TEST_ASSERT_EQUAL("connect_failed: 10.0.0.9:6379, named by sentinel s1:26379", desk.text());
    desk.now = desk.node->timeout();
  }
}

TEST(test_the_address_of_one_master_should_not_be_told_for_that_of_another) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("10.0.0.8");
  TEST_ASSERT_EQUAL("10.0.0.8:6379", desk.dial());
  desk.prove(SearchDesk::identity("-1slave"));
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::read_only, desk.failure());
  TEST_ASSERT_EQUAL("it is a replica: the server that was named by sentinel s1:26379", desk.text());
}

// ---- Whose turn it is --------------------------------------------------------------------------------------------

TEST(test_a_sentinel_that_takes_all_the_time_should_be_the_last_one_of_the_next_attempt) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.node->handle_connected(desk.now);
  desk.transmit();
  desk.now = start + 2s;
  desk.node->session().handle_timeout(desk.now);
  desk.close();
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::timed_out, desk.failure());
  desk.now = desk.node->timeout();
  for (const char* host : {"s2:26379", "s3:26379", "s1:26379"}) {
    TEST_ASSERT_EQUAL(host, desk.dial());
    desk.refuse();
  }
  TEST_ASSERT_EQUAL("none", desk.dial());
}

TEST(test_a_sentinel_that_is_preferred_should_be_the_first_of_the_next_attempt) {
  SearchDesk desk;
  desk.reach_master();
  TEST_ASSERT_EQUAL(0U, HostSearch::listed_of(*desk.node));
  desk.close();
  HostSearch::prefer(*desk.node, 2);
  for (const char* host : {"s3:26379", "s1:26379", "s2:26379"}) {
    TEST_ASSERT_EQUAL(host, desk.dial());
    TEST_ASSERT_EQUAL(static_cast<std::size_t>(host[1] - '1'), HostSearch::listed_of(*desk.node));
    desk.refuse();
  }
  TEST_ASSERT_EQUAL("none", desk.dial());
}

TEST(test_a_question_that_does_not_fit_should_be_refused_for_all_sentinels_at_once) {
  SmallDesk desk;
  auto& [sentinels, config, buffers, node] = desk;
  node.configure(config, nullptr);
  sentinels.configure({.hosts = "s1,s2",
                       .service = ByteView(std::string(service_size_max, 's')),
                       .user = "u",
                       .password = ByteView(std::string(password_size_max, 'p'))});
  TEST_ASSERT_EQUAL(DialAction::none, node.poll_dial(start, least));
  TEST_ASSERT_EQUAL(Status::buffer_too_small, node.dialer().failure());
  TEST_ASSERT_EQUAL("its host and credentials do not fit into the client's buffers: sentinel s1:26379",
                    std::string(node.session().failure_text().string_view()));
  TEST_ASSERT_TRUE(node.timeout() > start);
}

TEST(test_who_cannot_be_reached_should_be_told_without_the_words_of_the_attempt_before) {
  for (const Status status :
       {Status::connect_failed, Status::name_not_resolved, Status::system_error, Status::too_many_requests}) {
    SearchDesk desk({.hosts = "s1", .service = "m"});
    TEST_ASSERT_EQUAL("s1:26379", desk.dial());
    desk.answer("-NOAUTH Authentication required.\r\n");
    TEST_ASSERT_EQUAL("none", desk.dial());
    desk.now = desk.node->timeout();
    TEST_ASSERT_EQUAL("s1:26379", desk.dial());
    TEST_ASSERT_EQUAL("NOAUTH Authentication required.: sentinel s1:26379", desk.text());
    desk.node->dialer().handle_dial_failed(status, desk.now, least);
    TEST_ASSERT_EQUAL("none", desk.dial());
    TEST_ASSERT_EQUAL(std::string(to_string(status)) + ": sentinel s1:26379", desk.text());
  }
}

TEST(test_words_should_be_over_once_an_attempt_goes_on_from_who_has_answered) {
  for (const int addresses : {1, 2}) {
    SearchDesk desk({.hosts = addresses == 1 ? ByteView("s1,s2") : ByteView("s1"), .service = "m"});
    desk.addresses = static_cast<std::uint8_t>(addresses);
    TEST_ASSERT_TRUE(desk.dial() != "none");
    desk.answer("-NOAUTH Authentication required.\r\n");
    TEST_ASSERT_TRUE(desk.text().find("NOAUTH") == 0);
    TEST_ASSERT_TRUE(desk.dial() != "none");
    TEST_ASSERT_EQUAL("", desk.text());
  }
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL(Status::not_connected, desk.failure());  // It is no failure, but the end of a connection.
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  TEST_ASSERT_EQUAL("", desk.text());
}

// What one address, or one host, has answered is no judgement of what the next one says.
TEST(test_each_answer_should_be_judged_by_itself) {
  SearchDesk desk({.hosts = "s1", .service = "m"});
  desk.addresses = 2;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.answer("*-1\r\n");
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.answer("hello\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("an unknown type byte: sentinel s1:26379", desk.text());
  // A master behind a sentinel's answer,
  desk.addresses = 1;
  desk.now = desk.node->timeout();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.answer("hello\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("an unknown type byte: 10.0.0.9:6379, named by sentinel s1:26379", desk.text());
  // and a sentinel behind a master that was believed.
  desk.now = desk.node->timeout();
  desk.reach_master();
  desk.now = desk.now + 10s;
  desk.close();
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.answer("hello\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("an unknown type byte: sentinel s1:26379", desk.text());
}

TEST(test_a_sentinels_words_should_not_be_replaced_by_those_of_the_silent_master_that_it_named) {
  SearchDesk desk({.hosts = "s1", .service = "m"});
  desk.addresses = 2;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.answer("-NOAUTH Authentication required.\r\n");
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master();
  TEST_ASSERT_EQUAL("10.0.0.9:6379", desk.dial());
  desk.be_silent();
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("auth_required: sentinel s1:26379", desk.text());
}

TEST(test_what_may_pass_should_be_told_of_an_attempt_that_has_not_asked_all) {
  SearchDesk desk({.hosts = "s1,s2", .service = "m"});
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.now = start + 2s;
  desk.answer("-LOADING Redis is loading\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::loading, desk.failure());
}

// ---- Where it goes -----------------------------------------------------------------------------------------------

TEST(test_a_node_should_be_nowhere_before_it_has_asked) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL(":0", desk.where());
  (void)desk.dial();
  NodeDesk other;
  other.node->configure_like(*desk.node);
  TEST_ASSERT_EQUAL(0, int{other.node->config().port});
  TEST_ASSERT_EQUAL(0U, other.node->dialer().address_count());  // That of a sentinel is none of a master.
  TEST_ASSERT_TRUE(other.node->dialer().named());
}

TEST(test_a_resolver_should_read_each_name_to_its_end_and_no_further) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("a-long-name.example.com");
  TEST_ASSERT_EQUAL("a-long-name.example.com:6379", desk.dial());
  TEST_ASSERT_EQUAL("a-long-name.example.com", std::string(desk.node->config().host.c_str()));
  desk.refuse();
  TEST_ASSERT_EQUAL("s2:26379", desk.dial());
  TEST_ASSERT_EQUAL("s2", std::string(desk.node->config().host.c_str()));
}

TEST(test_a_literal_master_should_be_dialled_at_its_own_address) {
  SearchDesk desk;
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  desk.name_master("10.20.30.40");
  TEST_ASSERT_EQUAL("10.20.30.40:6379", desk.dial());
  const SocketAddress& address = *desk.node->address();
  const std::string bytes(reinterpret_cast<const char*>(address.bytes), address.size);
  TEST_ASSERT_TRUE(bytes.find("\x0a\x14\x1e\x28") != std::string::npos);
}

// Its storage is bytes, wherever they are.
TEST(test_a_search_should_find_an_aligned_place_in_the_storage_of_the_texts) {
  std::uintptr_t alignment = 0;
  for (std::size_t shift = 0; shift < 8; ++shift) {
    auto buffers = std::make_unique<NodeBuffers>();
    Node::Storage storage = buffers->storage();
    char* const begin = storage.texts.data + ((-reinterpret_cast<std::uintptr_t>(storage.texts.data)) & 7U) + 8 + shift;
    std::memset(storage.texts.data, '#', storage.texts.size);
    storage.texts = {begin, storage.texts.size - static_cast<std::size_t>(begin - storage.texts.data)};
    Node node(storage);
    Sentinels sentinels({.hosts = "10.0.0.1", .service = "m"});
    ClientConfig config = config_of("nowhere");
    config.topology = &sentinels;
    node.configure(config, nullptr);
    TEST_ASSERT_EQUAL(DialAction::dial, node.poll_dial(start, least));
    TEST_ASSERT_TRUE(node.config().host.view() == ByteView("10.0.0.1"));
    const auto host = reinterpret_cast<std::uintptr_t>(node.config().host.view().data());
    if (shift == 0) alignment = host % alignof(HostSearch);
    TEST_ASSERT_EQUAL(alignment, host % alignof(HostSearch));
    for (std::size_t before = 1; before <= 8; ++before) TEST_ASSERT_EQUAL('#', *(begin - before));
  }
}

TEST(test_a_refusal_of_another_kind_should_not_end_a_connection_that_has_lasted) {
  SearchDesk desk;
  desk.reach_master();
  desk.now = desk.now + 10s;
  Locked locked;
  desk.submit(locked);
  desk.receive("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  TEST_ASSERT_TRUE(desk.node->session().ready());
}

// The question is sent as a whole, or not at all: whatever the password is.
TEST(test_a_question_should_be_refused_or_fit_with_the_clients_name_and_the_service) {
  int refused = 0;
  int asked = 0;
  const std::string service(service_size_max, 's');
  const std::string name(client_name_size_max, 'n');
  for (std::size_t size = 1; size <= password_size_max; ++size) {
    SmallDesk desk;
    auto& [sentinels, config, buffers, node] = desk;
    const std::string password(size, 'p');
    config.client_name = ByteView(name);
    TEST_ASSERT_FALSE(node.misfit(config).found());
    sentinels.configure(
        {.hosts = "10.0.0.1", .service = ByteView(service), .user = "u", .password = ByteView(password)});
    node.configure(config, nullptr);
    if (node.poll_dial(start, least) != DialAction::dial) {
      TEST_ASSERT_EQUAL(Status::buffer_too_small, node.dialer().failure());
      ++refused;
      continue;
    }
    TEST_ASSERT_EQUAL(0, refused);  // A longer one does not fit where a shorter one did not.
    ++asked;
    node.handle_connected(start);
    std::string sent;
    std::size_t limit = SIZE_MAX;
    while (transmit_piece(node.session(), start, sent, limit)) {}
    TEST_ASSERT_TRUE(sent.find(command_of({"AUTH", "u", password.c_str()})) != std::string::npos);
    TEST_ASSERT_TRUE(sent.find(name) != std::string::npos);
    TEST_ASSERT_TRUE(sent.find(service) != std::string::npos);
  }
  TEST_ASSERT_TRUE(refused > 0 && asked > 0);
}
