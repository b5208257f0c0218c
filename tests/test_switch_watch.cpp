// SPDX-License-Identifier: MIT
//
// What is heard of fail-overs, without a socket: what a sentinel is asked, which messages count, and what they cost the node.
#include "holdfast/core/switch_watch.hpp"

#include <memory>
#include <string>

#include "holdfast/detail/stream.hpp"
#include "holdfast/sentinels.hpp"
#include "host_desk.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr std::uint16_t half = UINT16_MAX / 2;

std::string command(std::initializer_list<std::string> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) text += bulk(word);
  return text;
}
std::string message(const std::string& text, const std::string& channel = "+switch-master") {
  return "*3\r\n" + bulk("message") + bulk(channel) + bulk(text);
}
std::string address(const std::string& host, const std::string& port = "6379") {
  return "*2\r\n" + bulk(host) + bulk(port);
}
const std::string question = command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
const std::string early = "+failover-state-reconf-slaves";
const std::string subscribe = command({"SUBSCRIBE", "+switch-master"}) + command({"SUBSCRIBE", early});
const std::string unsubscribe = command({"UNSUBSCRIBE", "+switch-master"}) + command({"UNSUBSCRIBE", early});
std::string told(const std::string& what, const std::string& channel) {
  return "*3\r\n" + bulk(what) + bulk(channel) + ":1\r\n";
}
const std::string subscribed = told("subscribe", "+switch-master") + told("subscribe", early);
const std::string unsubscribed = told("unsubscribe", "+switch-master") + told("unsubscribe", early);

struct Security : StreamSecurity {
  static constexpr Table table = {};
  Security() : StreamSecurity(table) {}
};

// The client's connection.
struct Guided : HostDesk {
  explicit Guided(Topology& topology) {
    ClientConfig config = config_of("nowhere");
    config.topology = &topology;
    config.client_name = "me";
    node->configure(config, nullptr);
  }
  void reach(const std::string& host) {
    (void)dial();
    node->handle_connected(now);
    receive((node->config().topology->password().empty() ? "+OK\r\n:7\r\n" : "+OK\r\n+OK\r\n:7\r\n") + address(host));
    close();
    TEST_ASSERT_EQUAL(host + ":6379", dial());
    answer(identity("-1master"));
    TEST_ASSERT_TRUE(node->handle_ready(now));
  }
};

// The connection to a sentinel, in the buffers that it has in a driver.
struct Lane : HostDesk {
  Lane(SwitchWatch& news, const Node& client) {
    node = std::make_unique<Node>(place->storage());
    const ClientConfig config = news.follow(client);
    TEST_ASSERT_FALSE(validate(config).found());
    TEST_ASSERT_FALSE(node->misfit(config).found());
    node->configure(config, nullptr);
  }
  std::unique_ptr<SwitchWatch::Buffers> place = std::make_unique<SwitchWatch::Buffers>();
};

struct World {
  explicit World(const SentinelConfig& config = {.hosts = "s1,s2,s3", .service = "mymaster"}) : sentinels(config) {
    client.reach("10.0.0.1");
    lane = std::make_unique<Lane>(news, *client.node);
  }
  // A sentinel that names this master is reached, and asked.
  void reach_sentinel(const std::string& named = "10.0.0.1") {
    (void)lane->dial();
    lane->answer(address(named));
    TEST_ASSERT_TRUE(lane->node->handle_ready(lane->now));
    news.handle_ready(lane->now);
    lane->sent.clear();
    work();
  }
  void listen(const std::string& named = "10.0.0.1") {
    reach_sentinel(named);
    hear(address(named) + subscribed);
    TEST_ASSERT_TRUE(news.hearing());
    TEST_ASSERT_FALSE(doubt());
  }
  void work() {
    news.work(*lane->node, lane->now, half);
    lane->transmit();
  }
  void hear(const std::string& bytes) { lane->receive(bytes); }
  [[nodiscard]] bool doubt() { return news.doubt(*lane->node, *client.node, client.now, half); }
  // The client is elsewhere, and comes back to this one.
  void come_back_to(const std::string& host) {
    client.close();
    pass(1s);  // A pause, perhaps.
    client.reach(host);
  }
  void pass(Duration time) {
    client.now = client.now + time;
    lane->now = client.now;
  }
  [[nodiscard]] bool lane_failed() const { return lane->node->session().state() == SessionState::failed; }
  [[nodiscard]] Status lane_failure() const { return lane->node->session().failure(); }
  void close_lane() {
    lane->close();
    news.handle_closed(*lane->node);
  }

  Sentinels sentinels;
  Guided client{sentinels};
  SwitchWatch news;
  std::unique_ptr<Lane> lane;
};

}  // namespace

// ---- What is asked -----------------------------------------------------------------------------------------------

TEST(test_a_sentinel_should_be_asked_and_subscribed_in_one_send) {
  World world;
  world.reach_sentinel();
  TEST_ASSERT_EQUAL(question + subscribe, world.lane->sent);
  TEST_ASSERT_FALSE(world.news.hearing());
  world.hear(address("10.0.0.1") + subscribed);
  TEST_ASSERT_TRUE(world.news.hearing());
  TEST_ASSERT_FALSE(world.doubt());
}

TEST(test_a_sentinel_should_be_logged_in_to_with_its_own_credentials) {
  World world({.hosts = "s1", .service = "mymaster", .user = "listener", .password = "sentinel-secret"});
  (void)world.lane->dial();
  world.lane->node->handle_connected(world.lane->now);
  world.lane->transmit();
  TEST_ASSERT_EQUAL(command({"AUTH", "listener", "sentinel-secret"}) + command({"CLIENT", "SETNAME", "me"}) +
                        command({"CLIENT", "ID"}) + question,
                    world.lane->sent);
}

TEST(test_a_sentinel_should_be_asked_anew_between_half_of_the_time_and_all_of_it) {
  for (const std::uint16_t random : {std::uint16_t{0}, std::uint16_t{UINT16_MAX}}) {
    World world;
    world.listen();
    world.pass(switch_check_max);
    world.news.work(*world.lane->node, world.lane->now, random);
    world.lane->transmit();
    TEST_ASSERT_EQUAL(Instant::max(), world.news.poll_timeout(*world.lane->node, *world.client.node));
    world.hear(unsubscribed + address("10.0.0.1") + subscribed);
    TEST_ASSERT_TRUE(world.news.hearing());
    const Instant next = world.news.poll_timeout(*world.lane->node, *world.client.node);
    TEST_ASSERT_EQUAL(world.lane->now + (random == 0 ? switch_check_max / 2 : switch_check_max), next);
    world.lane->sent.clear();
    world.pass(next - world.lane->now - 1ns);
    world.work();
    TEST_ASSERT_EQUAL("", world.lane->sent);
    world.pass(1ns);
    world.work();
    TEST_ASSERT_EQUAL(unsubscribe + question + subscribe, world.lane->sent);
  }
}

TEST(test_a_sentinel_that_does_not_answer_should_be_left_for_the_next_one) {
  World world;
  world.listen();
  world.pass(switch_check_max);
  world.work();
  world.pass(stall_timeout_default);
  world.lane->node->session().handle_timeout(world.lane->now);
  TEST_ASSERT_TRUE(world.lane_failed());
  TEST_ASSERT_EQUAL(Status::timed_out, world.lane_failure());
  world.close_lane();
  TEST_ASSERT_FALSE(world.news.hearing());
  TEST_ASSERT_EQUAL("s2:26379", world.lane->dial());
  world.lane->answer(address("10.0.0.1"));
  TEST_ASSERT_TRUE(world.lane->node->handle_ready(world.lane->now));
  world.news.handle_ready(world.lane->now);
  world.close_lane();
  world.pass(1s);
  TEST_ASSERT_EQUAL("s3:26379", world.lane->dial());
  world.lane->answer(address("10.0.0.1"));
  TEST_ASSERT_TRUE(world.lane->node->handle_ready(world.lane->now));
  world.news.handle_ready(world.lane->now);
  world.close_lane();
  world.pass(2s);
  TEST_ASSERT_EQUAL("s1:26379", world.lane->dial());
}

TEST(test_what_a_sentinel_refuses_should_cost_no_connection) {
  World world;
  world.reach_sentinel();
  world.hear(address("10.0.0.1") + subscribed);
  int asker = 0;
  const Argument ping[] = {"PING"};
  TEST_ASSERT_EQUAL(Status::ok, world.lane->node->ask({ping, 1}, {.requester = &asker}, world.lane->now));
  world.lane->heard.clear();
  world.hear("-READONLY no\r\n");
  TEST_ASSERT_EQUAL(1U, world.lane->heard.size());
  TEST_ASSERT_EQUAL(Status::read_only, world.lane->heard[0].outcome);
  TEST_ASSERT_TRUE(world.lane->node->ready());
  TEST_ASSERT_FALSE(world.lane_failed());
}

TEST(test_a_sentinel_that_does_not_know_the_service_should_be_passed_over) {
  World world;
  TEST_ASSERT_EQUAL("s1:26379", world.lane->dial());
  world.lane->answer("*-1\r\n");
  TEST_ASSERT_EQUAL("s2:26379", world.lane->dial());
}

// A connection that ended by the refusal would be made anew, and refused, many times per second.
TEST(test_who_may_not_subscribe_should_ask_from_time_to_time) {
  for (const char* words : {"-NOPERM this user has no permissions to access one of the channels\r\n", "-ERR no\r\n",
                            "-LOADING Redis is loading the dataset in memory\r\n"}) {
    const std::string refused = words;
    World world;
    world.reach_sentinel();
    world.hear(address("10.0.0.1") + refused + refused);
    TEST_ASSERT_FALSE(world.lane_failed());
    TEST_ASSERT_FALSE(world.news.hearing());
    world.lane->sent.clear();
    world.pass(switch_check_max);
    world.work();
    TEST_ASSERT_EQUAL(question + subscribe, world.lane->sent);
    world.hear(address("10.0.0.2") + refused + refused);
    TEST_ASSERT_TRUE(world.doubt());
  }
}

TEST(test_who_may_hear_one_channel_should_hear_that) {
  for (const bool first : {true, false}) {
    World world;
    world.reach_sentinel();
    const std::string one = first ? "+switch-master" : early;
    world.hear(address("10.0.0.1") +
               (first ? told("subscribe", one) + "-NOPERM no\r\n" : "-NOPERM no\r\n" + told("subscribe", one)));
    TEST_ASSERT_FALSE(world.lane_failed());
    TEST_ASSERT_EQUAL(first, world.news.hearing());
    world.lane->sent.clear();
    world.pass(switch_check_max);
    world.work();
    TEST_ASSERT_EQUAL(command({"UNSUBSCRIBE", one}) + question + subscribe, world.lane->sent);
    world.hear(told("unsubscribe", one) + address("10.0.0.1") + subscribed);
    TEST_ASSERT_FALSE(world.lane_failed());
    TEST_ASSERT_TRUE(world.news.hearing());
  }
}

// It says +switch-master when all replicas have followed, and names the new master long before.
TEST(test_a_sentinel_that_leads_a_fail_over_should_be_asked_at_once) {
  World world;
  world.listen();
  world.lane->sent.clear();
  world.pass(1s);
  world.lane->heard.clear();
  world.hear(message("master mymaster 10.0.0.1 6379", early));
  TEST_ASSERT_TRUE(world.lane->heard.empty());  // It is no reply to anybody.
  TEST_ASSERT_FALSE(world.doubt());
  TEST_ASSERT_TRUE(world.news.poll_timeout(*world.lane->node, *world.client.node) <= world.lane->now);
  world.work();
  TEST_ASSERT_EQUAL(unsubscribe + question + subscribe, world.lane->sent);
  world.hear(unsubscribed + address("10.0.0.2") + subscribed);
  TEST_ASSERT_TRUE(world.doubt());
  // It was called once.
  TEST_ASSERT_TRUE(world.news.poll_timeout(*world.lane->node, *world.client.node) > world.lane->now + switch_check_min);
}

TEST(test_a_call_to_ask_should_count_whatever_is_said_behind_it) {
  World world;
  world.listen();
  world.pass(switch_check_min);
  world.hear(message("master mymaster 10.0.0.1 6379", early) + message("x"));
  TEST_ASSERT_TRUE(world.news.poll_timeout(*world.lane->node, *world.client.node) <= world.lane->now);
}

// Neither a question without an answer nor a call to ask is taken along to another connection.
TEST(test_a_new_connection_should_be_asked_at_once) {
  for (const bool answered : {true, false}) {
    World world;
    world.reach_sentinel();
    if (answered) world.hear(address("10.0.0.1") + subscribed + message("master mymaster 10.0.0.1 6379", early));
    world.close_lane();
    TEST_ASSERT_FALSE(world.news.hearing());
    world.reach_sentinel();
    TEST_ASSERT_EQUAL(question + subscribe, world.lane->sent);
  }
}

TEST(test_a_subscription_that_was_given_up_should_not_be_told_as_one) {
  World world;
  world.listen();
  world.pass(switch_check_max);
  world.work();
  world.hear(unsubscribed);
  TEST_ASSERT_FALSE(world.news.hearing());
  world.hear(address("10.0.0.1") + subscribed);
  TEST_ASSERT_TRUE(world.news.hearing());
}

TEST(test_a_flood_of_calls_to_ask_should_be_bounded) {
  World world;
  world.listen();
  world.lane->sent.clear();
  for (int times = 0; times < 1000; ++times) {
    world.hear(message("master mymaster 10.0.0.1 6379", early) + message("x", early));
    world.work();
    if (!world.lane->sent.empty()) world.hear(unsubscribed + address("10.0.0.1") + subscribed);
    TEST_ASSERT_TRUE(world.lane->sent.empty() || world.lane->sent == unsubscribe + question + subscribe);
    if (!world.lane->sent.empty()) TEST_ASSERT_TRUE(times % 100 == 99 || times % 100 == 0);
    world.lane->sent.clear();
    world.pass(1ms);
  }
  TEST_ASSERT_FALSE(world.lane_failed());
}

TEST(test_a_sentinel_should_be_asked_nothing_while_the_connection_to_it_is_not_ready) {
  World world;
  world.work();
  TEST_ASSERT_EQUAL("", world.lane->sent);
  TEST_ASSERT_EQUAL(Instant::max(), world.news.poll_timeout(*world.lane->node, *world.client.node));
  (void)world.lane->dial();
  world.lane->node->handle_connected(world.lane->now);
  world.work();
  TEST_ASSERT_EQUAL(command({"CLIENT", "SETNAME", "me"}) + command({"CLIENT", "ID"}) + question, world.lane->sent);
}

// Only a sentinel that was reached is left for the next one; the search itself goes on from one that was not.
TEST(test_a_sentinel_that_was_never_reached_should_be_left_to_the_search) {
  World world;
  for (const char* const sentinel : {"s1:26379", "s2:26379", "s3:26379"}) {
    TEST_ASSERT_EQUAL(sentinel, world.lane->dial());
    world.lane->refuse();
    world.news.handle_closed(*world.lane->node);
  }
  // The next round begins with the first one.
  TEST_ASSERT_EQUAL("none", world.lane->dial());
  world.pass(world.lane->node->dialer().poll_timeout() - world.lane->now);
  TEST_ASSERT_EQUAL("s1:26379", world.lane->dial());
}

TEST(test_a_sentinel_that_names_no_master_any_more_should_be_left_with_its_own_words) {
  for (const bool silent : {true, false}) {
    World world;
    world.listen();
    world.pass(switch_check_max);
    world.work();
    world.hear(unsubscribed + (silent ? "*-1\r\n" : "-ERR ask another one\r\n"));
    TEST_ASSERT_TRUE(world.lane_failed());
    TEST_ASSERT_EQUAL(silent ? "the sentinel names no master any more" : "ERR ask another one", world.lane->text());
    TEST_ASSERT_FALSE(world.doubt());
  }
}

// ---- Which messages count ----------------------------------------------------------------------------------------

TEST(test_a_message_should_be_read_as_the_new_address) {
  ByteView host;
  std::uint16_t port = 0;
  TEST_ASSERT_TRUE(SwitchWatch::read_message("mymaster 10.0.0.1 6379 db-2.example.com 6380", "mymaster", host, port));
  TEST_ASSERT_EQUAL("db-2.example.com", host.string_view());
  TEST_ASSERT_EQUAL(6380, port);
  TEST_ASSERT_TRUE(SwitchWatch::read_message("my master ::1 1 fe80::2 65535", "my master", host, port));
  TEST_ASSERT_EQUAL("fe80::2", host.string_view());
  TEST_ASSERT_EQUAL(65535, port);
}

TEST(test_messages_of_others_and_hostile_ones_should_be_ignored_with_outputs_untouched) {
  const std::string bad[] = {"",
                             "mymaster",
                             "mymaster ",
                             "mymaster2 10.0.0.1 6379 10.0.0.2 6379",
                             "other 10.0.0.1 6379 10.0.0.2 6379",
                             "mymaste 10.0.0.1 6379 10.0.0.2 6379",
                             "MYMASTER 10.0.0.1 6379 10.0.0.2 6379",
                             "mymaster 10.0.0.1 6379 10.0.0.2",
                             "mymaster 10.0.0.1 6379 10.0.0.2 ",
                             "mymaster 10.0.0.1 6379 10.0.0.2 0",
                             "mymaster 10.0.0.1 6379 10.0.0.2 65536",
                             "mymaster 10.0.0.1 6379 10.0.0.2 -1",
                             "mymaster 10.0.0.1 6379 10.0.0.2 6379 7",
                             "mymaster 10.0.0.1 6379 10.0.0.2 6379 ",
                             "mymaster 10.0.0.1 x 10.0.0.2 6379",
                             "mymaster  6379 10.0.0.2 6379",
                             "mymaster 10.0.0.1 6379  6379",
                             "mymaster  10.0.0.1 6379 10.0.0.2 6379",
                             "mymaster 10.0.0.1 6379 /run/redis 6379",
                             "mymaster 10.0.0.1 6379 a\r\nb 6379",
                             "mymaster 10.0.0.1 6379 \xff\xfe 6379",
                             "mymaster 10.0.0.1 6379 " + std::string("a\0b", 3) + " 6379",
                             "mymaster 10.0.0.1 6379 " + std::string(listed_host_size_max + 1, 'h') + " 6379"};
  World world;
  world.listen();
  for (const std::string& text : bad) {
    ByteView host = "untouched";
    std::uint16_t port = 7;
    TEST_ASSERT_FALSE(SwitchWatch::read_message(ByteView(text), "mymaster", host, port));
    TEST_ASSERT_EQUAL("untouched", host.string_view());
    TEST_ASSERT_EQUAL(7, port);
    world.hear(message(text));
    TEST_ASSERT_FALSE(world.lane_failed());
    TEST_ASSERT_FALSE(world.doubt());
  }
}

TEST(test_messages_that_were_not_asked_for_should_be_ignored) {
  World world;
  world.listen();
  const std::string text = "mymaster 10.0.0.1 6379 10.0.0.2 6379";
  world.hear(message(text, "+switch-master2") + message(text, "+sdown") + "*4\r\n" + bulk("pmessage") + bulk("*") +
             bulk("+switch-master") + bulk(text) + "*3\r\n" + bulk("message") + bulk("+switch-master") + ":1\r\n" +
             "*3\r\n" + bulk("message") + ":1\r\n:2\r\n*3\r\n" + bulk("message") + "++switch-master\r\n" + bulk(text));
  TEST_ASSERT_FALSE(world.lane_failed());
  TEST_ASSERT_FALSE(world.doubt());
}

TEST(test_what_is_neither_a_message_nor_an_answer_should_close_the_connection) {
  const std::string bad[] = {"+PONG\r\n",
                             "-ERR what\r\n",
                             ":1\r\n",
                             "*-1\r\n",
                             "$-1\r\n",
                             subscribed,
                             unsubscribed,
                             address("10.0.0.2"),
                             "*3\r\n" + bulk("Message") + bulk("+switch-master") + bulk("x"),
                             "*3\r\n+message\r\n" + bulk("+switch-master") + bulk("x"),
                             "*4\r\n" + bulk("message") + bulk("+switch-master") + bulk("x") + bulk("y"),
                             message(std::string(switch_reply_size, 'x')),
                             "?"};
  for (const std::string& bytes : bad) {
    World world;
    world.listen();
    world.hear(bytes);
    TEST_ASSERT_TRUE(world.lane_failed());
    TEST_ASSERT_EQUAL(Status::protocol_error, world.lane_failure());
    TEST_ASSERT_FALSE(world.doubt());
  }
}

TEST(test_answers_of_another_shape_should_close_the_connection) {
  const std::string bad[] = {address("a b") + subscribed,
                             "*-1\r\n" + subscribed,
                             subscribed + address("10.0.0.1"),
                             address("10.0.0.1") + unsubscribed,
                             address("10.0.0.1") + "+OK\r\n",
                             address("10.0.0.1") + told("subscribe", "other"),
                             address("10.0.0.1") + told("subscribe", early) + told("subscribe", "+switch-master"),
                             address("10.0.0.1") + told("subscribe", "+switch-master") + "+OK\r\n",
                             address("10.0.0.1") + "*3\r\n" + bulk("subscribe") + bulk("+switch-master") + bulk("1"),
                             address("10.0.0.1") + "*3\r\n" + bulk("subscribe") + "++switch-master\r\n:1\r\n",
                             address("10.0.0.1") + subscribed + subscribed};
  for (const std::string& bytes : bad) {
    World world;
    world.reach_sentinel();
    world.hear(bytes);
    TEST_ASSERT_TRUE(world.lane_failed());
    TEST_ASSERT_FALSE(world.doubt());
  }
}

TEST(test_a_farewell_of_another_shape_should_close_the_connection) {
  for (const std::string& bytes : {std::string("+OK\r\n"), subscribed, told("unsubscribe", early),
                                   told("unsubscribe", "+switch-master") + "+OK\r\n",
                                   told("unsubscribe", "+switch-master") + told("subscribe", early)}) {
    World world;
    world.listen();
    world.pass(switch_check_max);
    world.work();
    world.hear(bytes);
    TEST_ASSERT_TRUE(world.lane_failed());
    TEST_ASSERT_EQUAL(Status::protocol_error, world.lane_failure());
  }
}

TEST(test_a_message_among_answers_should_be_told_from_them) {
  World world;
  world.listen();
  world.pass(switch_check_max);
  world.work();
  const std::string text = message("mymaster 10.0.0.1 6379 10.0.0.2 6379");
  world.hear(text);
  TEST_ASSERT_TRUE(world.doubt());
  world.hear(unsubscribed + address("10.0.0.2") + subscribed);
  TEST_ASSERT_FALSE(world.lane_failed());
  TEST_ASSERT_TRUE(world.news.hearing());
}

// ---- What they cost ----------------------------------------------------------------------------------------------

TEST(test_news_of_another_master_should_close_the_connection_and_be_asked_about_where_they_came_from) {
  World world;
  world.listen();
  world.close_lane();
  TEST_ASSERT_EQUAL("s2:26379", world.lane->dial());
  world.lane->answer(address("10.0.0.1"));
  TEST_ASSERT_TRUE(world.lane->node->handle_ready(world.lane->now));
  world.news.handle_ready(world.lane->now);
  world.work();
  world.hear(address("10.0.0.1") + subscribed + message("mymaster 10.0.0.1 6379 10.0.0.2 6379"));
  TEST_ASSERT_TRUE(world.doubt());
  TEST_ASSERT_TRUE(world.client.node->session().state() == SessionState::failed);
  TEST_ASSERT_EQUAL(Status::read_only, world.client.node->session().failure());
  TEST_ASSERT_EQUAL("a sentinel says that another server is the master", world.client.text());
  world.client.close();
  // Not the address of the message: the sentinel that has sent it.
  TEST_ASSERT_EQUAL("s2:26379", world.client.dial());
  world.client.answer(address("10.0.0.3"));
  TEST_ASSERT_EQUAL("10.0.0.3:6379", world.client.dial());
  // Who is named must say that it is a master.
  world.client.answer(HostDesk::identity("0replica"));
  TEST_ASSERT_FALSE(world.client.node->ready());
  TEST_ASSERT_EQUAL("s3:26379", world.client.dial());
}

TEST(test_what_is_in_flight_should_be_unknown_and_taken_back) {
  World world;
  world.listen();
  Locked locked;
  world.client.submit(locked);
  world.client.transmit();
  world.hear(message("mymaster 10.0.0.1 6379 10.0.0.2 6379"));
  TEST_ASSERT_TRUE(world.doubt());
  world.client.close();
  TEST_ASSERT_EQUAL(std::size_t{1}, world.client.heard.size());
  TEST_ASSERT_EQUAL(Status::transport_closed, world.client.heard[0].outcome);
  TEST_ASSERT_FALSE(world.client.heard[0].nothing_ran);
  TEST_ASSERT_EQUAL(std::size_t{1}, world.client.node->session().compensations_pending());
}

TEST(test_news_of_the_master_that_the_client_is_at_should_cost_nothing) {
  World world;
  world.listen();
  world.hear(message("mymaster 10.0.0.9 6379 10.0.0.1 6379"));
  TEST_ASSERT_FALSE(world.doubt());
  // The same host with another port is another master.
  world.hear(message("mymaster 10.0.0.9 6379 10.0.0.1 6380"));
  TEST_ASSERT_TRUE(world.doubt());
}

TEST(test_one_piece_of_news_should_cost_one_connection) {
  World world;
  world.listen();
  world.hear(message("mymaster 10.0.0.1 6379 10.0.0.2 6379"));
  TEST_ASSERT_TRUE(world.doubt());
  world.come_back_to("10.0.0.1");  // The sentinel thought otherwise when it was asked.
  world.pass(1h);
  TEST_ASSERT_FALSE(world.doubt());
}

TEST(test_a_flood_of_news_should_cost_one_connection_in_two_to_four_seconds) {
  World world;
  world.listen();
  int doubts = 0;
  int next = 0;
  Instant last;
  const Instant begin = world.client.now;
  while (world.client.now - begin < 60s) {
    world.hear(message("mymaster 10.0.0.1 6379 10.0.1." + std::to_string(next++ % 200 + 1) + " 6379"));
    if (world.doubt()) {
      if (doubts != 0) TEST_ASSERT_TRUE(world.client.now - last >= switch_pause_min);
      last = world.client.now;
      ++doubts;
      world.client.close();
      world.client.reach("10.0.0.1");
    }
    world.pass(100ms);
    TEST_ASSERT_FALSE(world.lane_failed());
  }
  TEST_ASSERT_TRUE(doubts >= 60 / 4 && doubts <= 60 / 2 + 1);
}

// What comes while the client may not leave yet is not lost.
TEST(test_news_that_come_too_soon_should_count_when_their_time_has_come) {
  World world;
  world.listen();
  world.hear(message("mymaster 10.0.0.1 6379 10.0.0.2 6379"));
  TEST_ASSERT_TRUE(world.doubt());
  const Instant left = world.client.now;
  world.come_back_to("10.0.0.2");
  world.hear(message("mymaster 10.0.0.2 6379 10.0.0.3 6379"));
  TEST_ASSERT_FALSE(world.doubt());
  const Instant next = world.news.poll_timeout(*world.lane->node, *world.client.node);
  TEST_ASSERT_TRUE(next - left >= switch_pause_min && next - left <= 2 * switch_pause_min);
  world.pass(next - world.client.now);
  TEST_ASSERT_TRUE(world.doubt());
}

// It may have asked a sentinel that did not know yet.
TEST(test_a_client_on_its_way_should_be_looked_at_when_it_has_arrived) {
  World world;
  world.listen();
  world.client.close();
  world.hear(message("mymaster 10.0.0.1 6379 10.0.0.2 6379"));
  TEST_ASSERT_FALSE(world.doubt());
  TEST_ASSERT_TRUE(world.news.poll_timeout(*world.lane->node, *world.client.node) > world.client.now);
  world.client.reach("10.0.0.1");
  TEST_ASSERT_TRUE(world.doubt());
}

TEST(test_a_fail_over_between_two_connections_should_be_found_by_the_answer) {
  World world;
  world.listen();
  world.close_lane();
  world.reach_sentinel("10.0.0.2");
  world.hear(address("10.0.0.2") + subscribed);
  TEST_ASSERT_TRUE(world.doubt());
}

// A sentinel that was cut off says so for as long as it is.
TEST(test_a_sentinel_that_goes_on_naming_another_master_should_cost_one_connection) {
  World world;
  world.reach_sentinel("10.0.0.2");
  world.hear(address("10.0.0.2") + subscribed);
  TEST_ASSERT_TRUE(world.doubt());
  world.come_back_to("10.0.0.1");
  for (int times = 0; times < 5; ++times) {
    world.pass(switch_check_max);
    world.work();
    world.hear(unsubscribed + address("10.0.0.2") + subscribed);
    TEST_ASSERT_FALSE(world.doubt());
  }
  // A message is news, whatever it says.
  world.hear(message("mymaster 10.0.0.1 6379 10.0.0.2 6379"));
  TEST_ASSERT_TRUE(world.doubt());
}

TEST(test_an_answer_that_names_another_port_should_be_news) {
  World world;
  world.listen();
  world.pass(switch_check_max);
  world.work();
  world.hear(unsubscribed + address("10.0.0.1", "6380") + subscribed);
  TEST_ASSERT_TRUE(world.doubt());
}

TEST(test_news_should_be_followed_once_to_twice_the_shortest_pause_behind_the_last_ones) {
  for (const std::uint16_t random : {std::uint16_t{0}, std::uint16_t{UINT16_MAX}}) {
    World world;
    world.listen();
    world.hear(message("mymaster 10.0.0.1 6379 10.0.0.2 6379"));
    TEST_ASSERT_TRUE(world.news.doubt(*world.lane->node, *world.client.node, world.client.now, random));
    const Instant next = world.client.now + (random == 0 ? 1 : 2) * switch_pause_min;
    world.come_back_to("10.0.0.1");
    world.hear(message("mymaster 10.0.0.1 6379 10.0.0.3 6379"));
    TEST_ASSERT_EQUAL(next, world.news.poll_timeout(*world.lane->node, *world.client.node));
    world.pass(next - world.client.now - 1ns);
    TEST_ASSERT_FALSE(world.doubt());
    world.pass(1ns);
    TEST_ASSERT_TRUE(world.doubt());
  }
}

// ---- Whom it follows ---------------------------------------------------------------------------------------------

TEST(test_only_a_node_with_sentinels_should_be_followed) {
  NodeDesk plain;
  TEST_ASSERT_FALSE(SwitchWatch::wanted_by(*plain.node));
  World world;
  TEST_ASSERT_TRUE(SwitchWatch::wanted_by(*world.client.node));
  TEST_ASSERT_TRUE(world.news.follows(*world.client.node));
  TEST_ASSERT_FALSE(world.news.follows(*plain.node));
  Sentinels others({.hosts = "s1", .service = "mymaster"});
  const Guided other(others);
  TEST_ASSERT_FALSE(world.news.follows(*other.node));
  world.sentinels.configure({.hosts = "s1,s2,s3", .service = "another"});
  TEST_ASSERT_FALSE(world.news.follows(*world.client.node));
}

TEST(test_the_longest_service_and_credentials_should_fit) {
  const std::string service(service_size_max, 's');
  const std::string host(listed_host_size_max, 'h');
  World world({.hosts = "s1",
               .service = ByteView(service),
               .user = ByteView(std::string(user_size_max, 'u')),
               .password = ByteView(std::string(password_size_max, 'p'))});
  TEST_ASSERT_EQUAL("s1:26379", world.lane->dial());
  world.lane->node->handle_connected(world.lane->now);
  world.hear("+OK\r\n+OK\r\n:7\r\n" + address("10.0.0.1"));
  TEST_ASSERT_TRUE(world.lane->node->handle_ready(world.lane->now));
  world.news.handle_ready(world.lane->now);
  world.work();
  world.hear(address(host, "65535") + subscribed);
  TEST_ASSERT_TRUE(world.news.hearing());
  world.hear(message(service + " " + host + " 65535 " + host + " 65534"));
  TEST_ASSERT_FALSE(world.lane_failed());
  TEST_ASSERT_TRUE(world.doubt());
}

TEST(test_nobody_should_be_followed_before_somebody_is) {
  const SwitchWatch nobody;
  const World world;
  const NodeDesk plain;
  TEST_ASSERT_FALSE(nobody.follows(*world.client.node));
  TEST_ASSERT_FALSE(nobody.follows(*plain.node));
  // The way to a sentinel has a topology, and is no client of a master.
  TEST_ASSERT_FALSE(SwitchWatch::wanted_by(*world.lane->node));
}

TEST(test_the_way_to_a_sentinel_should_be_as_the_client_is_configured) {
  Security tls;
  Sentinels sentinels({.hosts = "s1,s2", .service = "mymaster", .user = "me", .password = "secret"});
  const Guided client(sentinels);
  ClientConfig config = config_of("nowhere");
  config.topology = &sentinels;
  config.tls = &tls;
  config.client_name = "named";
  config.connect_timeout = 1100ms;
  config.request_timeout = 1200ms;
  config.stall_timeout = 1300ms;
  client.node->configure(config, nullptr);
  SwitchWatch news;
  const ClientConfig lane = news.follow(*client.node);
  TEST_ASSERT_TRUE(lane.topology == &news && lane.tls == &tls);
  TEST_ASSERT_EQUAL("named", std::string(lane.client_name.view().string_view()));
  TEST_ASSERT_EQUAL(Duration(1100ms), lane.connect_timeout);
  TEST_ASSERT_EQUAL(Duration(1200ms), lane.request_timeout);
  TEST_ASSERT_EQUAL(Duration(1300ms), lane.stall_timeout);
  // It is the same place, and so shares what is known of it.
  TEST_ASSERT_EQUAL(sentinels.number(), news.number());
  TEST_ASSERT_EQUAL("mymaster", std::string(news.name().string_view()));
  TEST_ASSERT_EQUAL("s1,s2", std::string(news.hosts().string_view()));
  TEST_ASSERT_EQUAL("secret", std::string(news.password().string_view()));
}

// What was heard before is news again, also of a host whose name is a single letter.
TEST(test_who_is_followed_anew_should_begin_with_nothing_known) {
  World world;
  world.listen();
  world.hear(message("mymaster 10.0.0.1 6379 d 6379"));
  (void)world.news.follow(*world.client.node);
  TEST_ASSERT_FALSE(world.news.hearing());
  TEST_ASSERT_FALSE(world.doubt());
  world.lane = std::make_unique<Lane>(world.news, *world.client.node);
  world.reach_sentinel("d");
  world.hear(address("d") + subscribed);
  TEST_ASSERT_TRUE(world.doubt());
}

TEST(test_who_is_followed_anew_should_be_reached_without_the_pause_of_before) {
  World world;
  for (const char* const sentinel : {"s1:26379", "s2:26379", "s3:26379"}) {
    TEST_ASSERT_EQUAL(sentinel, world.lane->dial());
    world.lane->refuse();
  }
  TEST_ASSERT_EQUAL("none", world.lane->dial());
  world.lane->node->configure(world.news.follow(*world.client.node), nullptr);
  TEST_ASSERT_EQUAL("s1:26379", world.lane->dial());
}

TEST(test_sentinels_that_do_not_know_the_service_should_be_told_as_such) {
  World world({.hosts = "s1", .service = "mymaster"});
  TEST_ASSERT_EQUAL("s1:26379", world.lane->dial());
  world.lane->answer("*-1\r\n");
  TEST_ASSERT_EQUAL("none", world.lane->dial());
  TEST_ASSERT_EQUAL("unknown_service: sentinel s1:26379", world.lane->text());
}
