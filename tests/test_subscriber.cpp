// SPDX-License-Identifier: MIT
//
// One subscription connection's protocol, without a connection.
#include "unity_style.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guard_page.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/core/subscriber.hpp"
#include "printers.hpp"
#include "recorder.hpp"
#include "resp_text.hpp"
#include "wire_pieces.hpp"

using namespace holdfast;
using holdfast::testing::bulk;
using holdfast::testing::receive_piece;
using holdfast::testing::transmit_piece;

namespace {

using Waiter = Subscriber::Waiter;

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);

std::string channel_of(const std::string& key) { return "redisson_lock__channel:{" + key + "}"; }
std::string subscribe(const std::string& key) { return "*2\r\n" + bulk("SUBSCRIBE") + bulk(channel_of(key)); }
std::string unsubscribe(const std::string& key) { return "*2\r\n" + bulk("UNSUBSCRIBE") + bulk(channel_of(key)); }
std::string subscribed(const std::string& key) {
  return "*3\r\n" + bulk("subscribe") + bulk(channel_of(key)) + ":1\r\n";
}
std::string unsubscribed(const std::string& key) {
  return "*3\r\n" + bulk("unsubscribe") + bulk(channel_of(key)) + ":0\r\n";
}
std::string message(const std::string& key, const std::string& payload = "0") {
  return "*3\r\n" + bulk("message") + bulk(channel_of(key)) + bulk(payload);
}
const std::string ping = "*1\r\n" + bulk("PING");
const std::string pong = "*2\r\n" + bulk("pong") + bulk("");

// What a driver does, without a socket: bytes out are collected, bytes in are fed.
struct Wire {
  SubscriberBuffers buffers;
  Subscriber subscriber;
  Instant now = start;
  std::string sent;

  explicit Wire(const SubscriberSettings& settings = {}) : subscriber(settings, buffers.storage()) {}
  // With a table of its own.
  explicit Wire(std::vector<Waiter>& table) : subscriber({}, storage(table)) {}

  Subscriber::Storage storage(std::vector<Waiter>& table) {
    Subscriber::Storage storage = buffers.storage();
    storage.waiters = table.data();
    storage.waiter_count = table.size();
    return storage;
  }

  void transmit(std::size_t limit = SIZE_MAX) {
    while (transmit_piece(subscriber, now, sent, limit)) {}
  }
  // What has been sent since the last call.
  std::string take_sent() {
    transmit();
    return std::exchange(sent, {});
  }
  // Everything has been sent before a reply can come.
  void receive(const std::string& bytes) {
    transmit();
    receive_early(bytes);
  }
  void receive_early(std::string_view bytes) {
    while (receive_piece(subscriber, now, bytes)) {}
  }
  void connect() {
    subscriber.handle_connected(now);
    transmit();
  }
  Waiter& enter(const std::string& key) {
    Waiter* const waiter = subscriber.enter(redisson_announcement, Key(ByteView(key)), now);
    TEST_ASSERT_TRUE(waiter != nullptr);
    return *waiter;
  }
  // With its subscription confirmed.
  Waiter& enter_confirmed(const std::string& key) {
    Waiter& waiter = enter(key);
    const bool asked = !take_sent().empty();
    if (asked) receive(subscribed(key));
    TEST_ASSERT_TRUE(subscriber.confirmed(waiter));
    return waiter;
  }
  bool woken(const Waiter& waiter) const { return subscriber.woken(waiter); }
  bool confirmed(const Waiter& waiter) const { return subscriber.confirmed(waiter); }
  bool open() const { return subscriber.state() == SubscriberState::open; }
  bool failed() const { return subscriber.state() == SubscriberState::failed; }
};

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- The handshake -----------------------------------------------------------------------------------------------

TEST(test_connect_should_log_in_name_itself_and_subscribe_each_channel_once) {
  Wire wire({.user = "joe", .password = "secret", .client_name = "worker"});
  (void)wire.enter("a");
  (void)wire.enter("b");
  (void)wire.enter("a");
  TEST_ASSERT_TRUE(wire.subscriber.poll_transmit(start).empty());
  TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == Instant::max());
  wire.subscriber.handle_connected(start);
  TEST_ASSERT_EQUAL("*3\r\n" + bulk("AUTH") + bulk("joe") + bulk("secret") + "*3\r\n" + bulk("CLIENT") +
                        bulk("SETNAME") + bulk("worker") + subscribe("a") + subscribe("b"),
                    wire.take_sent());
  TEST_ASSERT_TRUE(wire.open());
  TEST_ASSERT_EQUAL(Status::ok, wire.subscriber.failure());
}

TEST(test_connect_should_log_in_without_a_user_and_say_nothing_without_settings) {
  Wire wire({.password = "secret"});
  wire.subscriber.handle_connected(start);
  TEST_ASSERT_EQUAL("*2\r\n" + bulk("AUTH") + bulk("secret"), wire.take_sent());
  Wire silent;
  silent.subscriber.handle_connected(start);
  TEST_ASSERT_EQUAL("", silent.take_sent());
}

TEST(test_configured_settings_should_hold_for_the_next_connection) {
  Wire wire;
  wire.subscriber.configure({.client_name = "worker"});
  wire.subscriber.handle_connected(start);
  TEST_ASSERT_EQUAL("*3\r\n" + bulk("CLIENT") + bulk("SETNAME") + bulk("worker"), wire.take_sent());
}

TEST(test_channel_of_a_key_with_a_brace_should_be_as_redisson_names_it) {
  Wire wire;
  wire.connect();
  (void)wire.enter("{slot}a");
  TEST_ASSERT_EQUAL("*2\r\n" + bulk("SUBSCRIBE") + bulk("redisson_lock__channel:{slot}a"), wire.take_sent());
}

TEST(test_largest_handshake_and_channels_should_be_sent_as_the_buffer_drains) {
  const std::string user(user_size_max, 'u');
  const std::string password(password_size_max, 'p');
  const std::string name(client_name_size_max, 'n');
  Wire wire({.user = ByteView(user), .password = ByteView(password), .client_name = ByteView(name)});
  std::string expected =
      "*3\r\n" + bulk("AUTH") + bulk(user) + bulk(password) + "*3\r\n" + bulk("CLIENT") + bulk("SETNAME") + bulk(name);
  std::string replies = "+OK\r\n+OK\r\n";
  std::vector<Waiter*> waiters;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    const std::string key(key_size_max, letter);
    waiters.push_back(&wire.enter(key));
    expected += subscribe(key);
    replies += subscribed(key);
  }
  TEST_ASSERT_TRUE(expected.size() > subscriber_transmit_size_max);
  wire.subscriber.handle_connected(start);
  wire.transmit(100);  // What is behind moves up.
  TEST_ASSERT_EQUAL(expected, wire.take_sent());
  wire.receive(replies);
  TEST_ASSERT_TRUE(wire.open());
  for (const Waiter* waiter : waiters) TEST_ASSERT_TRUE(wire.confirmed(*waiter));
}

TEST(test_handshake_should_fail_with_the_servers_reason) {
  struct {
    const char* reply;
    Status expected;
  } const rows[] = {
      {"-WRONGPASS invalid username-password pair or user is disabled.\r\n", Status::auth_failed},
      {"-NOAUTH Authentication required.\r\n", Status::auth_required},
      {"-ERR max number of clients reached\r\n", Status::too_many_clients},
      {"-DENIED Redis is running in protected mode\r\n", Status::denied},
      {"-LOADING Redis is loading the dataset in memory\r\n", Status::loading},
      {"-NOPERM this user has no permissions to run the 'auth' command\r\n", Status::no_permission},
      {"+PONG\r\n", Status::protocol_error},
      {":1\r\n", Status::protocol_error},
      {"$2\r\nOK\r\n", Status::protocol_error},
      {"$-1\r\n", Status::protocol_error},
      {"*0\r\n", Status::protocol_error},
      {"HTTP/1.1 400 Bad Request\r\n", Status::protocol_error},
  };
  for (const auto& row : rows) {
    Wire wire({.password = "secret", .client_name = "worker"});
    wire.connect();
    (void)wire.enter("a");
    wire.receive(row.reply);
    TEST_ASSERT_TRUE(wire.failed());
    TEST_ASSERT_EQUAL(row.expected, wire.subscriber.failure());
    TEST_ASSERT_FALSE(wire.subscriber.failure_text().empty());
    wire.subscriber.handle_closed();
    TEST_ASSERT_EQUAL(row.expected, wire.subscriber.failure());
    TEST_ASSERT_TRUE(wire.subscriber.state() == SubscriberState::closed);
  }
}

TEST(test_failure_should_be_told_in_the_servers_own_words) {
  Wire wire({.password = "secret"});
  wire.connect();
  wire.receive("-WRONGPASS invalid username-password pair\r\n");
  TEST_ASSERT_EQUAL(ByteView("WRONGPASS invalid username-password pair"), wire.subscriber.failure_text());
  wire.subscriber.handle_closed();
  TEST_ASSERT_EQUAL(ByteView("WRONGPASS invalid username-password pair"), wire.subscriber.failure_text());
  wire.subscriber.handle_connected(start);
  TEST_ASSERT_TRUE(wire.subscriber.failure_text().empty());
}

TEST(test_name_that_is_refused_should_be_done_without) {
  for (const std::string refusal : {"-NOPERM this user has no permissions to run the 'client|setname' command\r\n",
                                    "-ERR unknown command 'CLIENT'\r\n", "-NOAUTH Authentication required.\r\n"}) {
    Wire wire({.client_name = "worker"});
    const Waiter& waiter = wire.enter("a");
    wire.connect();
    wire.receive(refusal);
    TEST_ASSERT_TRUE(wire.open());
    TEST_ASSERT_FALSE(wire.subscriber.refused(waiter));
    wire.receive(subscribed("a"));
    TEST_ASSERT_TRUE(wire.confirmed(waiter));
  }
}

// A full server says so and closes; by then it may look like the reply to anything.
TEST(test_farewell_of_a_full_server_should_keep_its_reason) {
  struct {
    const char* line;
    Status expected;
  } const rows[] = {{"-ERR max number of clients reached\r\n", Status::too_many_clients},
                    {"-DENIED Redis is running in protected mode\r\n", Status::denied}};
  for (const auto& row : rows) {
    Wire unasked;
    unasked.connect();
    unasked.receive(row.line);
    TEST_ASSERT_EQUAL(row.expected, unasked.subscriber.failure());
    Wire unsent({.password = "secret"});
    unsent.subscriber.handle_connected(start);
    unsent.receive_early(row.line);
    TEST_ASSERT_EQUAL(row.expected, unsent.subscriber.failure());
    Wire naming({.client_name = "worker"});
    naming.connect();
    naming.receive(row.line);
    TEST_ASSERT_EQUAL(row.expected, naming.subscriber.failure());
    Wire waiting;
    (void)waiting.enter("a");
    waiting.connect();
    waiting.receive(row.line);
    TEST_ASSERT_EQUAL(row.expected, waiting.subscriber.failure());
  }
}

// ---- Confirmation ------------------------------------------------------------------------------------------------

TEST(test_waiter_should_be_confirmed_by_the_reply_to_its_own_subscribe) {
  Wire wire;
  wire.connect();
  const Waiter& a = wire.enter("a");
  const Waiter& b = wire.enter("b");
  TEST_ASSERT_FALSE(wire.confirmed(a));
  TEST_ASSERT_EQUAL(subscribe("a") + subscribe("b"), wire.take_sent());
  TEST_ASSERT_FALSE(wire.confirmed(a));
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(a));
  TEST_ASSERT_FALSE(wire.confirmed(b));
  wire.receive(subscribed("b"));
  TEST_ASSERT_TRUE(wire.confirmed(b));
  TEST_ASSERT_FALSE(wire.woken(a));  // The first try comes after the confirmation anyway.
  TEST_ASSERT_FALSE(wire.woken(b));
}

TEST(test_waiters_of_one_channel_should_share_its_subscription) {
  Wire wire;
  wire.connect();
  const Waiter& first = wire.enter("a");
  TEST_ASSERT_EQUAL(subscribe("a"), wire.take_sent());
  const Waiter& second = wire.enter("a");
  TEST_ASSERT_EQUAL("", wire.take_sent());
  TEST_ASSERT_FALSE(wire.confirmed(second));
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(first));
  TEST_ASSERT_TRUE(wire.confirmed(second));
  const Waiter& third = wire.enter("a");
  TEST_ASSERT_EQUAL("", wire.take_sent());
  TEST_ASSERT_TRUE(wire.confirmed(third));
}

TEST(test_last_waiter_of_a_channel_should_unsubscribe_it) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  Waiter& second = wire.enter_confirmed("a");
  Waiter& other = wire.enter_confirmed("b");
  wire.subscriber.leave(first, false);
  TEST_ASSERT_EQUAL("", wire.take_sent());
  TEST_ASSERT_TRUE(wire.confirmed(second));
  wire.subscriber.leave(second, true);
  TEST_ASSERT_EQUAL(unsubscribe("a"), wire.take_sent());
  TEST_ASSERT_TRUE(wire.subscriber.has_waiters());
  wire.receive(unsubscribed("a"));
  wire.subscriber.leave(other, false);
  TEST_ASSERT_FALSE(wire.subscriber.has_waiters());
  TEST_ASSERT_EQUAL(unsubscribe("b"), wire.take_sent());
  wire.receive(unsubscribed("b"));
  TEST_ASSERT_TRUE(wire.open());
  TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == Instant::max());
}

TEST(test_first_of_two_that_leaves_should_leave_the_other_its_subscription) {
  for (const bool first_leaves : {false, true}) {
    Wire wire;
    wire.connect();
    Waiter& first = wire.enter("a");
    Waiter& second = wire.enter("a");
    TEST_ASSERT_EQUAL(subscribe("a"), wire.take_sent());
    Waiter& stays = first_leaves ? second : first;
    wire.subscriber.leave(first_leaves ? first : second, false);
    wire.receive(subscribed("a"));
    TEST_ASSERT_TRUE(wire.confirmed(stays));
    wire.subscriber.leave(stays, false);
    TEST_ASSERT_EQUAL(unsubscribe("a"), wire.take_sent());
  }
}

TEST(test_subscribe_that_was_only_owed_should_be_forgotten_when_its_waiter_leaves) {
  Wire wire;
  wire.connect();
  wire.subscriber.leave(wire.enter("a"), false);
  TEST_ASSERT_EQUAL("", wire.take_sent());
  wire.subscriber.leave(wire.enter("b"), false);
  const Waiter& waiter = wire.enter("c");
  TEST_ASSERT_EQUAL(subscribe("c"), wire.take_sent());
  wire.receive(subscribed("c"));
  TEST_ASSERT_TRUE(wire.confirmed(waiter));
}

// A waiter that leaves before its confirmation has come: the replies keep their places.
TEST(test_waiter_that_leaves_unconfirmed_should_unsubscribe_behind_its_subscribe) {
  Wire wire;
  wire.connect();
  Waiter& a = wire.enter("a");
  TEST_ASSERT_EQUAL(subscribe("a"), wire.take_sent());
  wire.subscriber.leave(a, false);
  const Waiter& b = wire.enter("b");
  TEST_ASSERT_EQUAL(unsubscribe("a") + subscribe("b"), wire.take_sent());
  wire.receive(subscribed("a"));
  TEST_ASSERT_FALSE(wire.confirmed(b));
  wire.receive(unsubscribed("a") + subscribed("b"));
  TEST_ASSERT_TRUE(wire.confirmed(b));
}

TEST(test_waiter_that_enters_behind_an_unsubscribe_should_depend_on_a_new_subscribe) {
  Wire wire;
  wire.connect();
  wire.subscriber.leave(wire.enter_confirmed("a"), false);
  TEST_ASSERT_EQUAL(unsubscribe("a"), wire.take_sent());
  const Waiter& waiter = wire.enter("a");
  TEST_ASSERT_FALSE(wire.confirmed(waiter));
  TEST_ASSERT_EQUAL(subscribe("a"), wire.take_sent());
  wire.receive(unsubscribed("a"));
  TEST_ASSERT_FALSE(wire.confirmed(waiter));
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(waiter));
}

TEST(test_waiter_that_enters_before_the_unsubscribe_was_written_should_take_the_subscription_over) {
  Wire wire;
  wire.connect();
  Waiter& before = wire.enter_confirmed("a");
  wire.receive(message("a"));
  wire.subscriber.leave(before, false);
  const Waiter& waiter = wire.enter("a");
  TEST_ASSERT_TRUE(wire.confirmed(waiter));
  TEST_ASSERT_FALSE(wire.woken(waiter));
  TEST_ASSERT_EQUAL("", wire.take_sent());
  wire.receive(message("a"));
  TEST_ASSERT_TRUE(wire.woken(waiter));
}

TEST(test_waiter_that_takes_an_unconfirmed_subscription_over_should_be_confirmed_by_it) {
  Wire wire;
  wire.connect();
  Waiter& before = wire.enter("a");
  TEST_ASSERT_EQUAL(subscribe("a"), wire.take_sent());
  wire.subscriber.leave(before, false);
  const Waiter& waiter = wire.enter("a");
  TEST_ASSERT_FALSE(wire.confirmed(waiter));
  TEST_ASSERT_EQUAL("", wire.take_sent());
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(waiter));
}

TEST(test_table_should_be_full_at_its_last_place_and_free_again_after_a_leave) {
  Wire wire;
  wire.connect();
  std::vector<Waiter*> waiters;
  for (std::size_t index = 0; index < waiters_max; ++index) waiters.push_back(&wire.enter("a"));
  TEST_ASSERT_TRUE(wire.subscriber.enter(redisson_announcement, Key("a"), start) == nullptr);
  TEST_ASSERT_TRUE(wire.subscriber.enter(redisson_announcement, Key("b"), start) == nullptr);
  TEST_ASSERT_EQUAL(subscribe("a"), wire.take_sent());
  wire.subscriber.leave(*waiters[2], false);
  TEST_ASSERT_EQUAL(waiters[2], wire.subscriber.enter(redisson_announcement, Key("b"), start));
  TEST_ASSERT_EQUAL(subscribe("b"), wire.take_sent());
  wire.receive(subscribed("a") + subscribed("b"));
  TEST_ASSERT_TRUE(wire.confirmed(*waiters[0]));
  TEST_ASSERT_TRUE(wire.confirmed(*waiters[2]));
}

// The whole table changes between two polls of the transmit buffer, with names as long as they may be.
TEST(test_every_waiter_may_leave_and_others_enter_between_two_polls) {
  Wire wire;
  wire.connect();
  std::vector<Waiter*> waiters;
  const std::string letters = "abcd";
  for (const char letter : letters) waiters.push_back(&wire.enter_confirmed(std::string(key_size_max, letter)));
  std::string expected;
  std::string replies;
  for (const char letter : letters) {
    expected += unsubscribe(std::string(key_size_max, letter));
    replies += unsubscribed(std::string(key_size_max, letter));
  }
  for (Waiter* waiter : waiters) wire.subscriber.leave(*waiter, false);
  TEST_ASSERT_TRUE(expected.size() <= subscriber_transmit_size_max);
  for (const char letter : std::string("efgh")) {
    (void)wire.enter(std::string(key_size_max, letter));
    expected += subscribe(std::string(key_size_max, letter));
    replies += subscribed(std::string(key_size_max, letter));
  }
  TEST_ASSERT_EQUAL(expected, wire.take_sent());
  wire.receive(replies);
  TEST_ASSERT_TRUE(wire.open());
  TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == start + max_poll_default);  // Nothing is unanswered.
}

// The transport takes nothing: what is owed keeps its place until it has been written, and is not lost.
TEST(test_unsubscribe_should_stay_owed_while_the_transmit_buffer_is_full) {
  Wire wire;
  wire.connect();
  std::vector<Waiter*> waiters;
  std::string subscribes;
  std::string unsubscribes;
  std::string replies;
  const std::string letters = "abcd";
  for (const char letter : letters) {
    const std::string key(key_size_max, letter);
    waiters.push_back(&wire.enter(key));
    subscribes += subscribe(key);
    if (letter != 'b') unsubscribes += unsubscribe(key);
    replies += subscribed(key);
  }
  TEST_ASSERT_EQUAL(subscribes.size(), wire.subscriber.poll_transmit(start).size());
  for (Waiter* waiter : waiters) wire.subscriber.leave(*waiter, false);
  TEST_ASSERT_EQUAL(subscribes.size(), wire.subscriber.poll_transmit(start).size());
  TEST_ASSERT_TRUE(wire.subscriber.enter(redisson_announcement, Key("more"), start) == nullptr);
  const Waiter& again = wire.enter(std::string(key_size_max, 'b'));
  TEST_ASSERT_TRUE(wire.open());
  TEST_ASSERT_EQUAL(subscribes + unsubscribes, wire.take_sent());
  wire.receive(replies);
  TEST_ASSERT_TRUE(wire.confirmed(again));
  TEST_ASSERT_TRUE(wire.subscriber.enter(redisson_announcement, Key("more"), start) != nullptr);
}

// More commands than the ring of those without a reply can hold: the rest waits for replies.
TEST(test_commands_beyond_the_ring_should_wait_for_replies) {
  Wire wire;
  wire.connect();
  std::string sent;
  std::string replies;
  for (int index = 0; index < 8; ++index) {
    const std::string key(1, static_cast<char>('a' + index));
    Waiter& waiter = wire.enter(key);
    sent += wire.take_sent();
    wire.subscriber.leave(waiter, false);
    sent += wire.take_sent();
    replies += subscribed(key) + unsubscribed(key);
  }
  const Waiter& last = wire.enter("z");
  TEST_ASSERT_EQUAL("", wire.take_sent());
  TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == start + stall_timeout_default);
  wire.receive(subscribed("a"));
  TEST_ASSERT_EQUAL(subscribe("z"), wire.take_sent());
  wire.receive(replies.substr(subscribed("a").size()));
  TEST_ASSERT_FALSE(wire.confirmed(last));
  wire.receive(subscribed("z"));
  TEST_ASSERT_TRUE(wire.confirmed(last));
}

// ---- Messages ----------------------------------------------------------------------------------------------------

TEST(test_message_0_should_wake_who_has_waited_longest_then_the_next) {
  Wire wire;
  wire.connect();
  Waiter& gone = wire.enter_confirmed("a");
  Waiter& first = wire.enter_confirmed("a");
  const Waiter& other = wire.enter_confirmed("b");
  wire.subscriber.leave(gone, false);
  const Waiter& second = wire.enter_confirmed("a");  // In the place of the one that has gone.
  TEST_ASSERT_EQUAL(&gone, &second);
  wire.receive(message("a"));
  TEST_ASSERT_TRUE(wire.woken(first));
  TEST_ASSERT_FALSE(wire.woken(second));
  wire.receive(message("a"));
  TEST_ASSERT_TRUE(wire.woken(second));
  wire.receive(message("a"));  // All are woken: nothing.
  TEST_ASSERT_FALSE(wire.woken(other));
  wire.subscriber.begin_try(first);
  TEST_ASSERT_FALSE(wire.woken(first));
  TEST_ASSERT_TRUE(wire.woken(second));
  wire.receive(message("a"));  // During a try: it may have come too late for it.
  TEST_ASSERT_TRUE(wire.woken(first));
}

TEST(test_message_1_should_wake_all_of_its_channel) {
  Wire wire;
  wire.connect();
  const Waiter& first = wire.enter_confirmed("a");
  const Waiter& second = wire.enter_confirmed("a");
  const Waiter& other = wire.enter_confirmed("b");
  wire.receive(message("a", "1"));
  TEST_ASSERT_TRUE(wire.woken(first));
  TEST_ASSERT_TRUE(wire.woken(second));
  TEST_ASSERT_FALSE(wire.woken(other));
}

// Each by its own announcement: the channels of two kinds may differ, and so may what they publish.
TEST(test_a_waiter_should_hear_what_its_announcement_says) {
  constexpr Announcement other = {.channel = ByteView("other_channel"), .wakes_one = 'x', .wakes_all = 'y'};
  const auto of_other = [](const char* kind, const std::string& rest) {
    return "*3\r\n" + bulk(kind) + bulk("other_channel:{a}") + rest;
  };
  Wire wire;
  wire.connect();
  const Waiter& usual = wire.enter_confirmed("a");
  Waiter* const first = wire.subscriber.enter(other, Key("a"), wire.now);
  Waiter* const second = wire.subscriber.enter(other, Key("a"), wire.now);
  TEST_ASSERT_TRUE(first != nullptr && second != nullptr);
  TEST_ASSERT_EQUAL("*2\r\n" + bulk("SUBSCRIBE") + bulk("other_channel:{a}"), wire.take_sent());
  wire.receive(of_other("subscribe", ":2\r\n"));
  TEST_ASSERT_TRUE(wire.confirmed(*first) && wire.confirmed(*second));

  for (const char* const payload : {"0", "1"}) wire.receive(of_other("message", bulk(payload)));
  for (const char* const payload : {"x", "y"}) wire.receive(message("a", payload));
  TEST_ASSERT_FALSE(wire.woken(*first) || wire.woken(*second) || wire.woken(usual));

  wire.receive(of_other("message", bulk("x")));
  TEST_ASSERT_TRUE(wire.woken(*first) && !wire.woken(*second));
  wire.subscriber.leave(*first, false);  // Passes its wake on.
  TEST_ASSERT_TRUE(wire.woken(*second));
  wire.subscriber.begin_try(*second);
  wire.receive(of_other("message", bulk("y")));
  TEST_ASSERT_TRUE(wire.woken(*second) && !wire.woken(usual));
  wire.receive(message("a"));
  TEST_ASSERT_TRUE(wire.woken(usual) && wire.open());
}

namespace {

constexpr Announcement counting = {.channel = ByteView("permits"), .wakes_one = '1', .wakes_all = '\0', .counts = true};
// A wire with so many confirmed waiters of one channel whose messages count.
struct CountingWire : Wire {
  std::vector<Waiter*> waiters;
  explicit CountingWire(int count) {
    connect();
    for (int index = 0; index < count; ++index) waiters.push_back(subscriber.enter(counting, Key("a"), now));
    (void)take_sent();
    receive(of_channel("subscribe", ":1\r\n"));
  }
  static std::string of_channel(const char* kind, const std::string& rest) {
    return "*3\r\n" + bulk(kind) + bulk("permits:{a}") + rest;
  }
  void publish(const std::string& payload) { receive(of_channel("message", bulk(payload))); }
  // As digits: 1 for each that is woken.
  [[nodiscard]] std::string woken_ones() const {
    std::string digits;
    for (const Waiter* const waiter : waiters) digits += subscriber.woken(*waiter) ? '1' : '0';
    return digits;
  }
};

}  // namespace

TEST(test_a_message_that_counts_one_should_wake_who_has_waited_longest_and_any_other_all) {
  CountingWire wire(4);
  wire.publish("1");
  TEST_ASSERT_EQUAL("1000", wire.woken_ones());
  wire.publish("1");
  TEST_ASSERT_EQUAL("1100", wire.woken_ones());
  for (const std::string payload : {"2", "10", "0", "-1", "", "x"}) {
    CountingWire other(4);
    other.publish(payload);
    TEST_ASSERT_EQUAL("1111", other.woken_ones());
  }
}

// Two permits came free: the message of the second woke the waiter whose try took the first.
TEST(test_who_leaves_with_the_lock_should_pass_on_a_count_that_came_during_its_try) {
  CountingWire wire(2);
  wire.publish("1");
  wire.subscriber.begin_try(*wire.waiters[0]);
  wire.publish("1");
  TEST_ASSERT_EQUAL("10", wire.woken_ones());
  wire.subscriber.leave(*wire.waiters[0], true);
  TEST_ASSERT_TRUE(wire.subscriber.woken(*wire.waiters[1]));
}

TEST(test_who_leaves_with_the_lock_should_keep_the_count_that_woke_it) {
  CountingWire wire(2);
  wire.publish("1");
  wire.subscriber.begin_try(*wire.waiters[0]);
  wire.subscriber.leave(*wire.waiters[0], true);
  TEST_ASSERT_FALSE(wire.subscriber.woken(*wire.waiters[1]));
}

TEST(test_who_leaves_without_the_lock_should_pass_its_count_on) {
  CountingWire wire(3);
  wire.publish("1");
  wire.subscriber.begin_try(*wire.waiters[0]);
  wire.subscriber.leave(*wire.waiters[0], false);
  TEST_ASSERT_EQUAL("010", wire.woken_ones());
}

TEST(test_any_other_payload_should_wake_nobody) {
  Wire wire;
  wire.connect();
  const Waiter& waiter = wire.enter_confirmed("a");
  for (const std::string payload : {"", "2", "00", "01", "10", " 0", "-1", "x"}) wire.receive(message("a", payload));
  wire.receive(message("a", std::string("0\0", 2)));
  TEST_ASSERT_FALSE(wire.woken(waiter));
  TEST_ASSERT_TRUE(wire.open());
}

TEST(test_message_for_a_channel_without_a_waiter_should_be_ignored) {
  Wire wire;
  wire.connect();
  Waiter& waiter = wire.enter_confirmed("a");
  wire.receive(message("b") + message("") + message("aa"));
  TEST_ASSERT_FALSE(wire.woken(waiter));
  wire.subscriber.leave(waiter, false);
  wire.receive(message("a") + message("a", "1"));  // Before the server has read the UNSUBSCRIBE.
  wire.receive(unsubscribed("a"));
  TEST_ASSERT_TRUE(wire.open());
  TEST_ASSERT_FALSE(wire.woken(wire.enter("a")));
}

TEST(test_messages_between_replies_should_leave_the_replies_their_places) {
  Wire wire({.client_name = "worker"});
  const Waiter& a = wire.enter("a");
  const Waiter& b = wire.enter("b");
  wire.connect();
  wire.receive("+OK\r\n" + subscribed("a") + message("a") + message("z") + subscribed("b") + message("b"));
  TEST_ASSERT_TRUE(wire.confirmed(a));
  TEST_ASSERT_TRUE(wire.confirmed(b));
  TEST_ASSERT_TRUE(wire.woken(a));
  TEST_ASSERT_TRUE(wire.woken(b));
}

TEST(test_flood_of_messages_should_be_read_through_the_small_buffer) {
  Wire wire;
  wire.connect();
  const std::string key(key_size_max, 'k');
  const Waiter& waiter = wire.enter_confirmed(key);
  const Waiter& other = wire.enter("b");
  std::string flood;
  for (int index = 0; index < 2000; ++index) flood += message(key, index % 3 == 0 ? "2" : "0");
  wire.receive(flood);
  TEST_ASSERT_TRUE(wire.open());
  TEST_ASSERT_TRUE(wire.woken(waiter));
  wire.receive(subscribed("b"));
  TEST_ASSERT_TRUE(wire.confirmed(other));
}

// It puts the stall off, and no more.
TEST(test_message_should_be_a_sign_of_life_and_no_reply) {
  Wire wire;
  wire.connect();
  (void)wire.enter("a");
  wire.transmit();
  wire.now = start + 1s;
  wire.receive(message("a"));
  TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == start + 1s + stall_timeout_default);
}

// ---- A wake is not lost ------------------------------------------------------------------------------------------

TEST(test_waiter_that_leaves_woken_should_pass_the_wake_to_who_has_waited_longest) {
  Wire wire;
  wire.connect();
  Waiter& gone = wire.enter_confirmed("a");
  Waiter& leaving = wire.enter_confirmed("a");
  Waiter& next = wire.enter_confirmed("a");
  wire.subscriber.leave(gone, false);
  const Waiter& youngest = wire.enter_confirmed("a");  // In a place before that of the next.
  const Waiter& other = wire.enter_confirmed("b");
  wire.receive(message("a"));
  TEST_ASSERT_TRUE(wire.woken(leaving));
  wire.subscriber.leave(leaving, false);
  TEST_ASSERT_TRUE(wire.woken(next));
  TEST_ASSERT_FALSE(wire.woken(youngest));
  TEST_ASSERT_FALSE(wire.woken(other));
}

TEST(test_waiter_that_leaves_woken_should_pass_over_who_is_woken_already) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  const Waiter& second = wire.enter_confirmed("a");
  const Waiter& third = wire.enter_confirmed("a");
  wire.receive(message("a") + message("a"));
  TEST_ASSERT_TRUE(wire.woken(second));
  TEST_ASSERT_FALSE(wire.woken(third));
  wire.subscriber.leave(first, false);
  TEST_ASSERT_TRUE(wire.woken(third));
}

TEST(test_waiter_that_leaves_during_a_try_should_pass_the_wake_on) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  const Waiter& second = wire.enter_confirmed("a");
  wire.receive(message("a"));
  wire.subscriber.begin_try(first);
  wire.subscriber.begin_try(first);  // The next attempt settles nothing either.
  TEST_ASSERT_FALSE(wire.woken(second));
  wire.subscriber.leave(first, false);
  TEST_ASSERT_TRUE(wire.woken(second));
}

TEST(test_waiter_whose_wake_was_settled_should_pass_nothing_on) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  const Waiter& second = wire.enter_confirmed("a");
  wire.receive(message("a"));
  wire.subscriber.begin_try(first);
  wire.subscriber.end_try(first);
  wire.subscriber.leave(first, false);
  TEST_ASSERT_FALSE(wire.woken(second));
}

TEST(test_waiter_woken_again_during_a_settled_try_should_pass_that_on) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  const Waiter& second = wire.enter_confirmed("a");
  wire.receive(message("a"));
  wire.subscriber.begin_try(first);
  wire.receive(message("a"));
  wire.subscriber.end_try(first);
  TEST_ASSERT_TRUE(wire.woken(first));
  wire.subscriber.leave(first, false);
  TEST_ASSERT_TRUE(wire.woken(second));
}

TEST(test_waiter_that_leaves_with_the_lock_should_pass_nothing_on) {
  for (const bool trying : {false, true}) {
    Wire wire;
    wire.connect();
    Waiter& first = wire.enter_confirmed("a");
    const Waiter& second = wire.enter_confirmed("a");
    wire.receive(message("a"));
    if (trying) wire.subscriber.begin_try(first);
    wire.subscriber.leave(first, true);
    TEST_ASSERT_FALSE(wire.woken(second));
  }
}

TEST(test_waiter_that_was_never_woken_should_pass_nothing_on) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  const Waiter& second = wire.enter_confirmed("a");
  wire.subscriber.begin_try(first);
  wire.subscriber.leave(first, false);
  TEST_ASSERT_FALSE(wire.woken(second));
}

TEST(test_place_of_a_woken_waiter_should_be_new_for_the_next) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  wire.receive(message("a"));
  wire.subscriber.begin_try(first);
  wire.receive(message("a"));
  wire.subscriber.leave(first, true);
  TEST_ASSERT_EQUAL(unsubscribe("a"), wire.take_sent());
  wire.receive(unsubscribed("a"));
  Waiter& next = wire.enter_confirmed("a");
  TEST_ASSERT_EQUAL(&first, &next);
  TEST_ASSERT_FALSE(wire.woken(next));
  const Waiter& behind = wire.enter_confirmed("a");
  wire.subscriber.leave(next, false);
  TEST_ASSERT_FALSE(wire.woken(behind));  // It owed nothing.
}

// ---- Reconnection ------------------------------------------------------------------------------------------------

TEST(test_reconnect_should_subscribe_again_and_wake_when_confirmed) {
  Wire wire;
  wire.connect();
  const Waiter& a = wire.enter_confirmed("a");
  const Waiter& a_too = wire.enter_confirmed("a");
  const Waiter& b = wire.enter_confirmed("b");
  wire.subscriber.handle_closed();
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.subscriber.failure());
  TEST_ASSERT_FALSE(wire.confirmed(a));
  TEST_ASSERT_FALSE(wire.woken(a));
  TEST_ASSERT_TRUE(wire.subscriber.has_waiters());
  TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == Instant::max());
  wire.subscriber.handle_connected(start);
  TEST_ASSERT_EQUAL(subscribe("a") + subscribe("b"), wire.take_sent());
  TEST_ASSERT_FALSE(wire.confirmed(a));
  TEST_ASSERT_FALSE(wire.woken(a));
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(a));
  TEST_ASSERT_TRUE(wire.woken(a));
  TEST_ASSERT_TRUE(wire.woken(a_too));
  TEST_ASSERT_FALSE(wire.woken(b));
  wire.receive(subscribed("b"));
  TEST_ASSERT_TRUE(wire.woken(b));
}

TEST(test_reconnect_should_wake_once_and_not_who_entered_since) {
  Wire wire;
  wire.connect();
  Waiter& old = wire.enter_confirmed("a");
  wire.subscriber.handle_closed();
  const Waiter& fresh = wire.enter("a");
  wire.connect();
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.woken(old));
  TEST_ASSERT_TRUE(wire.confirmed(fresh));
  TEST_ASSERT_FALSE(wire.woken(fresh));
  wire.subscriber.begin_try(old);
  wire.subscriber.end_try(old);
  wire.receive(message("z"));
  TEST_ASSERT_FALSE(wire.woken(old));
}

TEST(test_waiter_that_was_never_confirmed_should_not_be_woken_by_a_reconnect) {
  Wire wire;
  wire.connect();
  const Waiter& waiter = wire.enter("a");
  wire.transmit();
  wire.subscriber.handle_closed();
  wire.connect();
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(waiter));
  TEST_ASSERT_FALSE(wire.woken(waiter));
}

TEST(test_place_of_a_waiter_that_missed_messages_should_be_new_for_the_next) {
  Wire wire;
  wire.connect();
  Waiter& before = wire.enter_confirmed("a");
  wire.subscriber.handle_closed();
  wire.subscriber.leave(before, false);
  const Waiter& waiter = wire.enter("a");
  TEST_ASSERT_EQUAL(&before, &waiter);
  wire.connect();
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(waiter));
  TEST_ASSERT_FALSE(wire.woken(waiter));
}

// Two cuts before the new confirmation: what may have been lost on the first is not forgotten.
TEST(test_second_cut_should_not_forget_that_messages_may_be_lost) {
  Wire wire;
  wire.connect();
  const Waiter& waiter = wire.enter_confirmed("a");
  wire.subscriber.handle_closed();
  wire.connect();
  wire.subscriber.handle_closed();
  wire.connect();
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.woken(waiter));
}

TEST(test_wake_and_its_debt_should_outlive_the_connection) {
  Wire wire;
  wire.connect();
  Waiter& woken = wire.enter_confirmed("a");
  Waiter& owing = wire.enter_confirmed("b");
  const Waiter& behind = wire.enter_confirmed("b");
  wire.receive(message("a") + message("b"));
  wire.subscriber.begin_try(owing);
  wire.subscriber.handle_closed();
  TEST_ASSERT_TRUE(wire.woken(woken));
  wire.subscriber.leave(owing, false);
  TEST_ASSERT_TRUE(wire.woken(behind));
}

TEST(test_subscription_of_who_left_should_not_return_with_the_next_connection) {
  Wire wire;
  wire.connect();
  Waiter& a = wire.enter_confirmed("a");
  Waiter& b = wire.enter_confirmed("b");
  wire.subscriber.leave(a, false);  // The UNSUBSCRIBE is only owed.
  wire.subscriber.handle_closed();
  wire.subscriber.leave(b, false);
  wire.subscriber.handle_connected(start);
  TEST_ASSERT_EQUAL("", wire.take_sent());
  for (std::size_t index = 0; index < waiters_max; ++index) (void)wire.enter("c");
}

// Replies of the connection before, and what it was still to send, are no business of the next.
TEST(test_next_connection_should_begin_anew) {
  Wire wire({.password = "secret"});
  const Waiter& waiter = wire.enter("a");
  wire.subscriber.handle_connected(start);
  wire.transmit(7);
  wire.receive_early("*3\r\n$9\r\nsubs");
  TEST_ASSERT_TRUE(wire.open());
  wire.subscriber.handle_closed();
  wire.sent.clear();
  wire.subscriber.handle_connected(start);
  TEST_ASSERT_EQUAL("*2\r\n" + bulk("AUTH") + bulk("secret") + subscribe("a"), wire.take_sent());
  wire.receive("+OK\r\n" + subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(waiter));
}

TEST(test_forget_should_free_every_place_and_say_nothing) {
  Wire wire;
  wire.connect();
  (void)wire.enter_confirmed("a");
  (void)wire.enter("b");
  wire.receive("*3\r\n");
  wire.subscriber.forget();
  TEST_ASSERT_TRUE(wire.subscriber.state() == SubscriberState::closed);
  TEST_ASSERT_EQUAL(Status::not_connected, wire.subscriber.failure());
  TEST_ASSERT_FALSE(wire.subscriber.has_waiters());
  TEST_ASSERT_TRUE(wire.subscriber.poll_transmit(start).empty());
  TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == Instant::max());
  wire.sent.clear();
  wire.connect();
  TEST_ASSERT_EQUAL("", wire.take_sent());
  for (std::size_t index = 0; index < waiters_max; ++index) (void)wire.enter("c");
  TEST_ASSERT_EQUAL(subscribe("c"), wire.take_sent());
  wire.receive(subscribed("c"));
  TEST_ASSERT_TRUE(wire.open());
}

TEST(test_who_enters_behind_a_forgotten_table_should_be_subscribed_and_named) {
  Wire wire;
  for (const char* const key : {"a", "b"}) (void)wire.enter(key);
  wire.subscriber.forget();
  wire.connect();
  Waiter& third = wire.enter("c");
  Waiter& fourth = wire.enter("d");
  TEST_ASSERT_EQUAL(subscribe("c") + subscribe("d"), wire.take_sent());
  wire.receive(subscribed("c") + subscribed("d"));
  TEST_ASSERT_TRUE(wire.subscriber.poll_stirred() == &third);
  TEST_ASSERT_TRUE(wire.subscriber.poll_stirred() == &fourth);
  wire.receive(message("c") + message("d"));
  wire.subscriber.forget();
  wire.connect();
  Waiter& fifth = wire.enter("e");
  Waiter& sixth = wire.enter("f");
  wire.receive(subscribed("e") + subscribed("f"));
  TEST_ASSERT_TRUE(wire.subscriber.poll_stirred() == &fifth);
  TEST_ASSERT_TRUE(wire.subscriber.poll_stirred() == &sixth);
  TEST_ASSERT_TRUE(wire.subscriber.poll_stirred() == nullptr);
}

// ---- Refusals ----------------------------------------------------------------------------------------------------

const std::string no_permission =
    "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n";

TEST(test_subscribe_that_the_acl_refuses_should_mark_the_waiters_of_its_channel) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter("a");
  Waiter& second = wire.enter("a");
  const Waiter& other = wire.enter("b");
  wire.receive(no_permission + subscribed("b"));
  TEST_ASSERT_TRUE(wire.open());
  TEST_ASSERT_TRUE(wire.subscriber.refused(first));
  TEST_ASSERT_TRUE(wire.subscriber.refused(second));
  TEST_ASSERT_FALSE(wire.confirmed(first));
  TEST_ASSERT_FALSE(wire.subscriber.refused(other));
  TEST_ASSERT_TRUE(wire.confirmed(other));
  Waiter& third = wire.enter("a");  // Is not asked again for.
  TEST_ASSERT_TRUE(wire.subscriber.refused(third));
  wire.take_sent();
  for (Waiter* waiter : {&first, &second, &third}) wire.subscriber.leave(*waiter, false);
  TEST_ASSERT_EQUAL("", wire.take_sent());  // Nothing is subscribed.
  const Waiter& again = wire.enter("a");
  TEST_ASSERT_FALSE(wire.subscriber.refused(again));
  TEST_ASSERT_EQUAL(subscribe("a"), wire.take_sent());
}

TEST(test_refusal_should_hold_for_its_connection_alone) {
  Wire wire;
  wire.connect();
  const Waiter& waiter = wire.enter("a");
  wire.receive(no_permission);
  TEST_ASSERT_TRUE(wire.subscriber.refused(waiter));
  wire.subscriber.handle_closed();
  TEST_ASSERT_TRUE(wire.subscriber.refused(waiter));
  wire.connect();
  TEST_ASSERT_FALSE(wire.subscriber.refused(waiter));
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(waiter));
  TEST_ASSERT_TRUE(wire.woken(waiter));  // It has been polling, and may sleep for long now.
}

TEST(test_refusal_of_who_left_should_need_no_unsubscribe) {
  Wire wire;
  wire.connect();
  Waiter& waiter = wire.enter("a");
  wire.transmit();
  wire.subscriber.leave(waiter, false);
  wire.receive_early(no_permission);
  wire.sent.clear();
  TEST_ASSERT_EQUAL("", wire.take_sent());
  TEST_ASSERT_FALSE(wire.subscriber.refused(wire.enter("a")));
}

TEST(test_other_errors_to_a_subscribe_should_fail_with_their_class) {
  struct {
    const char* reply;
    Status expected;
  } const rows[] = {{"-NOAUTH Authentication required.\r\n", Status::auth_required},
                    {"-LOADING Redis is loading the dataset in memory\r\n", Status::loading},
                    {"-ERR unknown command 'SUBSCRIBE'\r\n", Status::unknown_command},
                    {"-ERR something else\r\n", Status::server_error},
                    {"-MASTERDOWN Link with MASTER is down\r\n", Status::stale_replica}};
  for (const auto& row : rows) {
    Wire wire;
    wire.connect();
    const Waiter& waiter = wire.enter("a");
    wire.receive(row.reply);
    TEST_ASSERT_TRUE(wire.failed());
    TEST_ASSERT_EQUAL(row.expected, wire.subscriber.failure());
    TEST_ASSERT_FALSE(wire.subscriber.refused(waiter));
  }
}

// Closing unsubscribes, too.
TEST(test_refused_unsubscribe_should_close_the_connection) {
  Wire wire;
  wire.connect();
  wire.subscriber.leave(wire.enter_confirmed("a"), false);
  wire.receive(no_permission);
  TEST_ASSERT_EQUAL(Status::no_permission, wire.subscriber.failure());
}

// ---- What cannot be ----------------------------------------------------------------------------------------------

TEST(test_reply_that_nobody_asked_for_should_fail_the_connection) {
  for (const std::string& reply :
       {std::string("+OK\r\n"), pong, std::string("+PONG\r\n"), subscribed("a"), unsubscribed("a"),
        std::string("-ERR what\r\n"), std::string("-LOADING Redis is loading\r\n"), std::string(":1\r\n"),
        std::string("$-1\r\n"), std::string("*-1\r\n"), std::string("*0\r\n")}) {
    Wire wire;
    wire.connect();
    (void)wire.enter_confirmed("a");
    wire.receive(reply);
    TEST_MESSAGE(reply);
    TEST_ASSERT_TRUE(wire.failed());
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
    TEST_ASSERT_TRUE(wire.subscriber.poll_transmit(start).empty());
    TEST_ASSERT_EQUAL(0U, wire.subscriber.receive_space().size);
    TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == Instant::max());
  }
}

TEST(test_reply_of_any_other_shape_should_fail_the_connection) {
  const std::string channel = bulk(channel_of("a"));
  const std::string bad[] = {
      subscribed("b"),
      subscribed("aa"),
      unsubscribed("a"),
      pong,
      "+OK\r\n",
      "+PONG\r\n",
      ":1\r\n",
      "$-1\r\n",
      "*-1\r\n",
      "*0\r\n",
      "*3\r\n" + bulk("Subscribe") + channel + ":1\r\n",
      "*3\r\n" + bulk("psubscribe") + channel + ":1\r\n",
      "*3\r\n+subscribe\r\n" + channel + ":1\r\n",
      "*3\r\n" + bulk("subscribe") + channel + bulk("1"),
      "*3\r\n" + bulk("subscribe") + channel + "$-1\r\n",
      "*3\r\n" + bulk("subscribe") + "$-1\r\n:0\r\n",
      "*3\r\n" + bulk("subscribe") + ":1\r\n:0\r\n",
      "*2\r\n" + bulk("subscribe") + channel,
      "*4\r\n" + bulk("subscribe") + channel + ":1\r\n:1\r\n",
      "*1\r\n" + bulk("subscribe"),
      "*3\r\n*1\r\n" + bulk("subscribe") + channel + ":1\r\n",
      "*2\r\n" + bulk("message") + channel,
      "*3\r\n" + bulk("message") + channel + ":0\r\n",
      "*3\r\n" + bulk("message") + "$-1\r\n" + bulk("0"),
      "*3\r\n+message\r\n" + channel + bulk("0"),
      "*3\r\n" + bulk("smessage") + channel + bulk("0"),
      "*4\r\n" + bulk("pmessage") + bulk("*") + channel + bulk("0"),
      ">3\r\n" + bulk("message") + channel + bulk("0"),
      "*3\r\n" + bulk("message") + channel + "$1\r\n0\n",
      "*9\r\n",
      "*3\r\n" + bulk("message") + channel + bulk(std::string(message_size_max, '0')),
      "GET / HTTP/1.1\r\n",
      "\r\n",
  };
  for (const std::string& reply : bad) {
    Wire wire;
    wire.connect();
    const Waiter& waiter = wire.enter("a");
    wire.receive(reply);
    TEST_MESSAGE(reply);
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
    TEST_ASSERT_TRUE(wire.failed());
    TEST_ASSERT_FALSE(wire.confirmed(waiter));
    TEST_ASSERT_FALSE(wire.woken(waiter));
    TEST_ASSERT_FALSE(wire.subscriber.failure_text().empty());
  }
}

TEST(test_reply_of_another_shape_to_an_unsubscribe_or_a_ping_should_fail_the_connection) {
  for (const std::string& reply : {subscribed("a"), unsubscribed("b"), pong, std::string("+OK\r\n")}) {
    Wire wire;
    wire.connect();
    wire.subscriber.leave(wire.enter_confirmed("a"), false);
    wire.receive(reply);
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
  }
  for (const std::string& reply : {"*2\r\n" + bulk("pong") + bulk("x"), "*3\r\n" + bulk("pong") + bulk("") + ":0\r\n",
                                   "*1\r\n" + bulk("pong"), std::string("+OK\r\n"), subscribed("a"), bulk("PONG")}) {
    Wire wire;
    wire.connect();
    (void)wire.enter_confirmed("a");
    wire.now = wire.subscriber.poll_timeout();
    wire.subscriber.handle_timeout(wire.now);
    TEST_ASSERT_EQUAL(ping, wire.take_sent());
    wire.receive(reply);
    TEST_MESSAGE(reply);
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
  }
}

TEST(test_reply_before_its_command_has_left_should_fail_the_connection) {
  for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, subscribe("a").size() - 1}) {
    Wire wire;
    wire.connect();
    const Waiter& waiter = wire.enter("a");
    wire.transmit(sent);
    wire.receive_early(subscribed("a"));
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
    TEST_ASSERT_FALSE(wire.confirmed(waiter));
  }
  Wire wire;
  wire.connect();
  const Waiter& a = wire.enter("a");
  const Waiter& b = wire.enter("b");
  wire.transmit(subscribe("a").size() + 1);
  wire.receive_early(subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(a));
  wire.receive_early(subscribed("b"));
  TEST_ASSERT_FALSE(wire.confirmed(b));
  TEST_ASSERT_TRUE(wire.failed());
}

TEST(test_failed_connection_should_confirm_nobody_and_keep_its_first_reason) {
  Wire wire;
  wire.connect();
  const Waiter& waiter = wire.enter_confirmed("a");
  wire.receive("+OK\r\n" + message("a"));
  TEST_ASSERT_TRUE(wire.failed());
  TEST_ASSERT_FALSE(wire.confirmed(waiter));
  TEST_ASSERT_FALSE(wire.woken(waiter));  // What stands behind is not read any more.
  wire.subscriber.handle_timeout(start + 1h);
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
  wire.subscriber.handle_closed();
  wire.connect();
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.woken(waiter));
}

// Whole, byte by byte and at every split: the same result, against a guard page.
TEST(test_pieces_should_not_matter) {
  const std::string conversations[] = {
      "+OK\r\n-ERR no\r\n" + subscribed("a") + message("a") + no_permission + message("c", "1") + subscribed("c") +
          message("a", "7") + message("a"),
      "+OK\r\n+OK\r\n" + subscribed("a") + subscribed("b") + subscribed("b") + message("a"),
      "+OK\r\n+OK\r\n" + subscribed("a") + message("a") + "*3\r\n$x",
      "-WRONGPASS no\r\n" + message("a"),
  };
  for (const std::string& conversation : conversations) {
    std::string expected;
    for (std::size_t split = 0; split <= conversation.size() + 1; ++split) {
      const testing::GuardPage page(message_size_max);
      SubscriberBuffers buffers;
      Subscriber::Storage storage = buffers.storage();
      storage.receive = page.bytes();
      Subscriber subscriber({.password = "p", .client_name = "n"}, storage);
      std::vector<Waiter*> waiters;
      for (const char* key : {"a", "a", "b", "c"})
        waiters.push_back(subscriber.enter(redisson_announcement, Key(std::string_view(key)), start));
      subscriber.handle_connected(start);
      subscriber.handle_transmitted(subscriber.poll_transmit(start).size());
      for (std::size_t at = 0; at < conversation.size();) {
        const MutableBytes space = subscriber.receive_space();
        if (space.size == 0) break;
        std::size_t count = std::min(space.size, conversation.size() - at);
        if (split > conversation.size()) count = 1;
        if (at < split && split <= conversation.size()) count = std::min(count, split - at);
        std::memcpy(space.data, conversation.data() + at, count);
        subscriber.handle_received(count, start);
        at += count;
      }
      std::string result = to_string(subscriber.failure());
      result += " " + std::string(subscriber.failure_text().string_view());
      for (const Waiter* waiter : waiters) {
        result += subscriber.confirmed(*waiter) ? " confirmed" : " -";
        result += subscriber.woken(*waiter) ? " woken" : " -";
        result += subscriber.refused(*waiter) ? " refused" : " -";
      }
      if (split == 0) expected = result;
      TEST_ASSERT_EQUAL(expected, result);
    }
    TEST_ASSERT_TRUE(expected != " ");
  }
}

// ---- Time --------------------------------------------------------------------------------------------------------

TEST(test_silence_should_be_broken_by_a_ping_while_somebody_waits) {
  for (const std::string& reply : {pong, std::string("+PONG\r\n"), no_permission}) {
    Wire wire({.stall_timeout = 5s, .heartbeat = 10s});
    wire.connect();
    TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == Instant::max());
    Waiter& waiter = wire.enter_confirmed("a");
    TEST_ASSERT_EQUAL(start + 10s, wire.subscriber.poll_timeout());
    wire.now = start + 4s;
    wire.receive(message("b"));
    TEST_ASSERT_EQUAL(start + 14s, wire.subscriber.poll_timeout());
    wire.subscriber.handle_timeout(start + 14s - 1ns);
    TEST_ASSERT_EQUAL("", wire.take_sent());
    wire.now = start + 14s;
    wire.subscriber.handle_timeout(wire.now);
    TEST_ASSERT_EQUAL(start + 19s, wire.subscriber.poll_timeout());
    TEST_ASSERT_EQUAL(ping, wire.take_sent());
    wire.subscriber.handle_timeout(wire.now);  // One is enough.
    TEST_ASSERT_EQUAL("", wire.take_sent());
    wire.now = start + 15s;
    wire.receive(reply);
    TEST_ASSERT_TRUE(wire.open());
    TEST_ASSERT_TRUE(wire.confirmed(waiter));
    TEST_ASSERT_EQUAL(start + 25s, wire.subscriber.poll_timeout());
    wire.subscriber.leave(waiter, false);
    wire.receive(unsubscribed("a"));
    TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() == Instant::max());
    wire.subscriber.handle_timeout(start + 1h);
    TEST_ASSERT_EQUAL("", std::exchange(wire.sent, {}).substr(unsubscribe("a").size()));
  }
}

TEST(test_command_without_a_reply_should_fail_the_connection_after_the_stall_timeout) {
  Wire wire({.stall_timeout = 5s, .heartbeat = 10s});
  wire.connect();
  wire.now = start + 1h;  // Nobody has waited, so nothing was expected.
  (void)wire.enter("a");
  wire.transmit();
  TEST_ASSERT_EQUAL(start + 1h + 5s, wire.subscriber.poll_timeout());
  wire.now = start + 1h + 3s;
  wire.receive(message("a"));
  TEST_ASSERT_EQUAL(start + 1h + 8s, wire.subscriber.poll_timeout());
  wire.subscriber.handle_timeout(start + 1h + 8s - 1ns);
  TEST_ASSERT_TRUE(wire.open());
  wire.subscriber.handle_timeout(start + 1h + 8s);
  TEST_ASSERT_TRUE(wire.failed());
  TEST_ASSERT_EQUAL(Status::timed_out, wire.subscriber.failure());
  TEST_ASSERT_FALSE(wire.subscriber.failure_text().empty());
}

// Each command has its own time: what came before the newest was sent does not excuse it.
TEST(test_stall_should_count_from_the_oldest_command_without_a_reply) {
  Wire wire({.stall_timeout = 5s, .heartbeat = 10s});
  wire.connect();
  (void)wire.enter("a");
  wire.transmit();
  wire.now = start + 3s;
  (void)wire.enter("b");
  wire.transmit();
  TEST_ASSERT_EQUAL(start + 5s, wire.subscriber.poll_timeout());
  wire.now = start + 4s;
  wire.receive(subscribed("a"));
  TEST_ASSERT_EQUAL(start + 9s, wire.subscriber.poll_timeout());
  wire.subscriber.handle_timeout(start + 9s);
  TEST_ASSERT_EQUAL(Status::timed_out, wire.subscriber.failure());
}

TEST(test_unanswered_ping_should_fail_the_connection) {
  Wire wire({.stall_timeout = 5s, .heartbeat = 10s});
  wire.connect();
  (void)wire.enter_confirmed("a");
  wire.subscriber.handle_timeout(start + 10s);
  wire.subscriber.handle_timeout(start + 15s);
  TEST_ASSERT_EQUAL(Status::timed_out, wire.subscriber.failure());
}

TEST(test_timeout_should_never_lie_in_the_past_after_it_was_handled) {
  for (const bool with_waiter : {false, true})
    for (const Duration late : {Duration(0s), Duration(1s), Duration(10s), Duration(1h), Duration(24h * 365)}) {
      Wire wire;
      wire.connect();
      if (with_waiter) (void)wire.enter("a");
      wire.now = start + late;
      wire.subscriber.handle_timeout(wire.now);
      TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() > wire.now);
      (void)wire.subscriber.poll_transmit(wire.now);
      wire.subscriber.handle_timeout(wire.now);
      TEST_ASSERT_TRUE(wire.subscriber.poll_timeout() > wire.now);
    }
}

// ---- Rarely met --------------------------------------------------------------------------------------------------

TEST(test_full_table_should_refuse_a_waiter_with_or_without_a_connection) {
  for (const bool connected : {false, true}) {
    Wire wire({.password = "secret"});
    if (connected) wire.connect();
    std::vector<Waiter*> waiters;
    for (std::size_t index = 0; index < waiters_max; ++index) waiters.push_back(&wire.enter("a"));
    TEST_ASSERT_TRUE(wire.subscriber.enter(redisson_announcement, Key("a"), start) == nullptr);
    TEST_ASSERT_TRUE(wire.subscriber.enter(redisson_announcement, Key("b"), start) == nullptr);
    wire.subscriber.leave(*waiters[1], false);
    TEST_ASSERT_EQUAL(waiters[1], wire.subscriber.enter(redisson_announcement, Key("b"), start));
    if (!connected) wire.connect();
    const std::string sent = wire.take_sent();
    TEST_ASSERT_EQUAL(0U, sent.find("*2\r\n" + bulk("AUTH") + bulk("secret") + subscribe("a")));
  }
}

TEST(test_place_whose_unsubscribe_cannot_leave_should_not_be_had) {
  Wire wire;
  wire.connect();
  std::vector<Waiter*> waiters;
  for (const char* const key : {"a", "b", "c", "d"}) waiters.push_back(&wire.enter_confirmed(key));
  wire.subscriber.leave(*waiters[0], false);
  wire.receive_early("+what is this\r\n");
  TEST_ASSERT_TRUE(wire.failed());
  TEST_ASSERT_TRUE(wire.subscriber.enter(redisson_announcement, Key("e"), start) == nullptr);
  wire.subscriber.handle_closed();
  TEST_ASSERT_TRUE(wire.subscriber.enter(redisson_announcement, Key("e"), start) == waiters[0]);
}

// A second farewell is none: who entered since has missed nothing.
TEST(test_closed_subscriber_should_not_close_again) {
  Wire wire;
  wire.subscriber.handle_closed();
  TEST_ASSERT_EQUAL(Status::not_connected, wire.subscriber.failure());
  wire.connect();
  const Waiter& before = wire.enter("a");
  wire.receive(no_permission);
  wire.subscriber.handle_closed();
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.subscriber.failure());
  const Waiter& since = wire.enter("a");
  wire.subscriber.handle_closed();
  wire.connect();
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(wire.woken(before));
  TEST_ASSERT_TRUE(wire.confirmed(since));
  TEST_ASSERT_FALSE(wire.woken(since));
}

TEST(test_forgotten_connection_should_leave_no_reason) {
  Wire wire({.password = "secret"});
  wire.connect();
  wire.receive("-WRONGPASS invalid username-password pair\r\n");
  wire.subscriber.forget();
  TEST_ASSERT_EQUAL(Status::not_connected, wire.subscriber.failure());
  TEST_ASSERT_TRUE(wire.subscriber.failure_text().empty());
  TEST_ASSERT_TRUE(wire.subscriber.state() == SubscriberState::closed);
}

TEST(test_malformed_bytes_should_fail_with_the_parsers_sentence) {
  Wire wire;
  wire.connect();
  wire.receive("+OK\n");
  TEST_ASSERT_EQUAL(ByteView("LF without CR in a line"), wire.subscriber.failure_text());
}

TEST(test_ping_should_be_answered_by_no_other_array_of_two) {
  for (const std::string kind : {"pang", "Pong", "message", "subscribe", ""}) {
    Wire wire;
    wire.connect();
    (void)wire.enter_confirmed("a");
    wire.subscriber.handle_timeout(wire.subscriber.poll_timeout());
    TEST_ASSERT_EQUAL(ping, wire.take_sent());
    wire.receive("*2\r\n" + bulk(kind) + bulk(""));
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
  }
}

TEST(test_unsubscribe_should_be_answered_by_a_count_alone) {
  const std::string channel = bulk(channel_of("a"));
  for (const std::string& reply :
       {"*2\r\n" + bulk("unsubscribe") + channel, "*3\r\n" + bulk("unsubscribe") + channel + bulk("0"),
        "*3\r\n" + bulk("unsubscribe") + channel + "$-1\r\n"}) {
    Wire wire;
    wire.connect();
    wire.subscriber.leave(wire.enter_confirmed("a"), false);
    wire.receive(reply);
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
  }
}

TEST(test_reply_should_belong_to_its_own_channel_alone) {
  for (char own = 'a'; own <= 'z'; ++own)
    for (char other = 'a'; other <= 'z'; ++other) {
      Wire wire;
      wire.connect();
      const Waiter& waiter = wire.enter({own});
      wire.receive(subscribed({other}));
      TEST_ASSERT_EQUAL(own == other, wire.confirmed(waiter));
    }
}

// Not even its last byte: what is behind it does not count.
TEST(test_reply_before_its_command_has_left_should_fail_with_others_written_behind_it) {
  Wire wire;
  wire.connect();
  const Waiter& a = wire.enter("a");
  (void)wire.enter("b");
  wire.transmit(subscribe("a").size() - 1);
  wire.receive_early(subscribed("a"));
  TEST_ASSERT_FALSE(wire.confirmed(a));
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
}

TEST(test_ring_should_take_as_many_commands_behind_those_that_were_answered) {
  Wire wire;
  wire.connect();
  std::size_t commands = 0;
  wire.subscriber.leave(wire.enter_confirmed("a"), false);
  wire.receive(unsubscribed("a"));
  for (; commands < 100; ++commands) {
    Waiter& waiter = wire.enter({static_cast<char>('A' + commands)});
    const bool written = !wire.take_sent().empty();
    wire.subscriber.leave(waiter, false);
    if (!written || wire.take_sent().empty()) break;
  }
  TEST_ASSERT_EQUAL(8U, commands);
}

// What a short write left moves up, by a single byte, too: the room behind it is exactly that of another command.
TEST(test_short_write_should_make_room_for_what_comes_behind) {
  constexpr std::size_t room = 150;
  const std::string longest(key_size_max - 1, 'k');
  const std::string around = "*2\r\n" + bulk("AUTH") + "$xxx\r\n\r\n";
  const std::string password(subscriber_transmit_size_max - room - around.size() - 3 * subscribe("a" + longest).size(),
                             'p');
  for (const std::size_t taken : {std::size_t{1}, std::size_t{2}, std::size_t{100}}) {
    Wire wire({.password = ByteView(password)});
    wire.subscriber.handle_connected(start);
    for (const char letter : {'a', 'b', 'c'}) (void)wire.enter(letter + longest);
    const std::string before(wire.subscriber.poll_transmit(start).string_view());
    TEST_ASSERT_EQUAL(subscriber_transmit_size_max - room, before.size());
    wire.transmit(taken);
    std::string key = "z";
    while (subscribe(key).size() < room + taken) key += "z";
    TEST_ASSERT_EQUAL(room + taken, subscribe(key).size());
    (void)wire.enter(key);
    TEST_ASSERT_EQUAL(before.substr(taken) + subscribe(key),
                      std::string(wire.subscriber.poll_transmit(start).string_view()));
  }
}

// Before the first byte has left, silence counts from the connection on.
TEST(test_connection_should_be_a_sign_of_life) {
  Wire wire({.stall_timeout = 5s, .heartbeat = 10s});
  (void)wire.enter("a");
  wire.subscriber.handle_connected(start + 1h);
  TEST_ASSERT_EQUAL(start + 1h + 10s, wire.subscriber.poll_timeout());
}

// ---- Who is to be looked at --------------------------------------------------------------------------------------

namespace {

std::vector<const Waiter*> stirred(Wire& wire) {
  std::vector<const Waiter*> found;
  while (const Waiter* const waiter = wire.subscriber.poll_stirred()) found.push_back(waiter);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<const Waiter*> these(std::vector<const Waiter*> waiters) {
  std::sort(waiters.begin(), waiters.end());
  return waiters;
}

}  // namespace

TEST(test_only_those_for_whom_something_came_should_be_named_and_once) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter("a");
  Waiter& second = wire.enter("a");
  Waiter& other = wire.enter("b");
  TEST_ASSERT_TRUE(stirred(wire).empty());
  wire.receive(subscribed("a"));
  TEST_ASSERT_TRUE(stirred(wire) == these({&first, &second}));
  wire.receive(no_permission);
  TEST_ASSERT_TRUE(stirred(wire) == these({&other}));
  wire.receive(message("a"));
  TEST_ASSERT_TRUE(stirred(wire) == these({&first}));
  wire.receive(message("a", "1"));
  TEST_ASSERT_TRUE(stirred(wire) == these({&second}));  // The first is awake.
  wire.receive(message("c"));
  TEST_ASSERT_TRUE(stirred(wire).empty());
  wire.subscriber.begin_try(second);
  wire.subscriber.leave(first, false);  // Its wake goes to the other.
  TEST_ASSERT_TRUE(stirred(wire) == these({&second}));
}

TEST(test_all_waiters_should_be_named_when_the_connection_is_gone_and_none_that_have_left) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  Waiter& second = wire.enter_confirmed("b");
  wire.subscriber.leave(first, false);  // Named already, and gone.
  wire.subscriber.handle_closed();
  TEST_ASSERT_TRUE(stirred(wire) == these({&second}));
  wire.subscriber.forget();
  TEST_ASSERT_TRUE(stirred(wire).empty());
}

TEST(test_waiters_that_were_named_before_should_be_named_again_when_the_connection_is_gone) {
  Wire wire;
  wire.connect();
  Waiter& first = wire.enter_confirmed("a");
  Waiter& second = wire.enter_confirmed("b");
  while (wire.subscriber.poll_stirred() != nullptr) {}
  wire.subscriber.handle_closed();
  TEST_ASSERT_TRUE(wire.subscriber.poll_stirred() == &first);
  TEST_ASSERT_TRUE(wire.subscriber.poll_stirred() == &second);
  TEST_ASSERT_TRUE(wire.subscriber.poll_stirred() == nullptr);
}

TEST(test_who_enters_where_the_server_has_refused_should_be_named) {
  Wire wire;
  wire.connect();
  (void)wire.enter("a");
  wire.receive(no_permission);
  (void)stirred(wire);
  Waiter& later = wire.enter("a");
  TEST_ASSERT_TRUE(wire.subscriber.refused(later));
  TEST_ASSERT_TRUE(stirred(wire) == these({&later}));
}

// ---- Many waiters ------------------------------------------------------------------------------------------------

namespace {

// A table of a thousand, and a list that is looked through for everything.
struct Crowd {
  struct Member {
    Waiter* waiter;
    std::string key;
    bool woken = false;
    bool owes = false;
  };
  std::vector<Waiter> table;
  Wire wire;
  std::vector<Member> members;  // By age.
  std::set<std::string> subscribed_keys;

  explicit Crowd(std::size_t places) : table(places), wire(table) { wire.connect(); }

  // Answers as an honest server does, until nothing more is asked.
  void serve() {
    for (std::string asked = wire.take_sent(); !asked.empty(); asked = wire.take_sent())
      for (std::size_t at = asked.find("*2"); at != std::string::npos; at = asked.find("*2", at + 1)) {
        const std::size_t brace = asked.find('{', at) + 1;
        const std::string key = asked.substr(brace, asked.find('}', brace) - brace);
        const bool unsubscribes = asked.compare(at, 20, unsubscribe(key), 0, 20) == 0;
        if (unsubscribes)
          TEST_ASSERT_TRUE(subscribed_keys.erase(key) == 1);
        else
          TEST_ASSERT_TRUE(subscribed_keys.insert(key).second);
        wire.receive_early(unsubscribes ? unsubscribed(key) : subscribed(key));
      }
  }
  void wake(const std::string& key, bool all) {
    for (Member& member : members) {
      if (member.key != key || member.woken) continue;
      member.woken = true;
      if (!all) return;
    }
  }
  void enter(const std::string& key) {
    Waiter* const waiter = wire.subscriber.enter(redisson_announcement, Key(ByteView(key)), wire.now);
    TEST_ASSERT_EQUAL(members.size() < table.size(), waiter != nullptr);
    if (waiter != nullptr) members.push_back({waiter, key});
  }
  void leave(std::size_t index, bool with_lock) {
    const Member member = members[index];
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(index));
    wire.subscriber.leave(*member.waiter, with_lock);
    if (!with_lock && (member.woken || member.owes)) wake(member.key, false);
  }
  void reconnect() {
    serve();
    wire.subscriber.handle_closed();
    subscribed_keys.clear();
    wire.connect();
    serve();
    for (Member& member : members) member.woken = true;
  }
  void check() {
    serve();
    std::set<std::string> keys;
    for (const Member& member : members) {
      keys.insert(member.key);
      TEST_ASSERT_TRUE(wire.confirmed(*member.waiter));
      TEST_ASSERT_EQUAL(member.woken, wire.woken(*member.waiter));
    }
    TEST_ASSERT_TRUE(keys == subscribed_keys);
    TEST_ASSERT_TRUE(wire.subscriber.invariants());
  }
};

}  // namespace

TEST(test_a_large_table_should_do_what_a_list_of_all_waiters_does) {
  for (const std::size_t key_count : {std::size_t{1}, std::size_t{7}, std::size_t{400}}) {
    Crowd crowd(1000);
    std::minstd_rand random(static_cast<std::uint32_t>(key_count));
    const auto below = [&random](std::size_t limit) { return random() % limit; };
    for (int step = 0; step < 4000; ++step) {
      const std::string key = "key-" + std::to_string(below(key_count));
      const std::size_t place = crowd.members.empty() ? 0 : below(crowd.members.size());
      switch (const std::size_t what = crowd.members.empty() ? 0 : below(16)) {
        case 13: crowd.leave(place, true); break;
        case 14: crowd.leave(place, false); break;
        case 10:
        case 11:
        case 12:
          crowd.serve();
          if (crowd.subscribed_keys.contains(key)) {
            crowd.wire.receive(message(key, what == 12 ? "1" : "0"));
            crowd.wake(key, what == 12);
          }
          break;
        case 15: {
          Crowd::Member& member = crowd.members[place];
          crowd.wire.subscriber.begin_try(*member.waiter);
          member.owes = member.owes || member.woken;
          member.woken = false;
          if (below(2) == 0) break;
          crowd.wire.subscriber.end_try(*member.waiter);
          member.owes = false;
          break;
        }
        default: crowd.enter(key);
      }
      if (step % 1000 == 999) crowd.reconnect();
      if (step % 50 == 0) crowd.check();
    }
    crowd.check();
    while (!crowd.members.empty()) crowd.leave(crowd.members.size() / 2, true);
    crowd.check();
    TEST_ASSERT_FALSE(crowd.wire.subscriber.has_waiters());
  }
}

// With all places taken, what is owed is sent so that a place gets free, and the very channel may be asked for by that.
TEST(test_channel_that_is_asked_for_to_make_room_should_be_left_by_the_last_of_it) {
  std::vector<Waiter> table(2);
  Wire wire(table);
  wire.connect();
  wire.subscriber.leave(wire.enter_confirmed("b"), false);
  Waiter& first = wire.enter("a");
  Waiter& second = wire.enter("a");
  TEST_ASSERT_EQUAL(unsubscribe("b") + subscribe("a"), wire.take_sent());
  wire.receive(unsubscribed("b") + subscribed("a"));
  TEST_ASSERT_TRUE(wire.confirmed(first));
  TEST_ASSERT_TRUE(wire.confirmed(second));
  wire.subscriber.leave(first, false);
  wire.subscriber.leave(second, false);
  TEST_ASSERT_EQUAL(unsubscribe("a"), wire.take_sent());
}

// ---- A channel of the client's own -------------------------------------------------------------------------------

namespace {

constexpr Announcement own_channel = {.channel = "own", .wakes_one = '\0', .wakes_all = '\0', .addressed = true};
const std::string own_name = "own:{me}";
const std::string own_subscribed = "*3\r\n" + bulk("subscribe") + bulk(own_name) + ":1\r\n";
std::string own_message(const std::string& payload) {
  return "*3\r\n" + bulk("message") + bulk(own_name) + bulk(payload);
}

Waiter& enter_own(Wire& wire, const Token& token) {
  Waiter* const waiter = wire.subscriber.enter(own_channel, Key("me"), wire.now);
  TEST_ASSERT_TRUE(waiter != nullptr);
  Subscriber::address(*waiter, token);
  return *waiter;
}

}  // namespace

TEST(test_a_message_over_an_own_channel_should_wake_whom_it_names_and_nobody_else) {
  Wire wire;
  wire.connect();
  Token first_token(ByteView("me:1"));
  const Token second_token(ByteView("me:12"));
  Waiter& first = enter_own(wire, first_token);
  Waiter& second = enter_own(wire, second_token);
  wire.receive(own_subscribed);
  for (const char* const payload : {"0", "1", "", "me:", "me:123", "me:2", "ME:1", "me:1 "})
    wire.receive(own_message(payload));
  TEST_ASSERT_TRUE(!wire.woken(first) && !wire.woken(second));
  wire.receive(own_message("me:12"));
  TEST_ASSERT_TRUE(!wire.woken(first) && wire.woken(second));
  wire.subscriber.leave(second, false);
  TEST_ASSERT_FALSE(wire.woken(first));  // It was not for this one.
  first_token = Token(ByteView("me:3"));
  wire.receive(own_message("me:1"));
  TEST_ASSERT_FALSE(wire.woken(first));
  wire.receive(own_message("me:3"));
  TEST_ASSERT_TRUE(wire.woken(first));
}

TEST(test_an_own_channel_should_stay_subscribed_until_its_place_is_needed) {
  Wire wire;
  wire.connect();
  const Token token(ByteView("me:1"));
  Waiter& waiter = enter_own(wire, token);
  TEST_ASSERT_FALSE(wire.subscriber.stands());
  TEST_ASSERT_EQUAL("*2\r\n" + bulk("SUBSCRIBE") + bulk(own_name), wire.take_sent());
  TEST_ASSERT_FALSE(wire.subscriber.stands());
  wire.receive(own_subscribed);
  TEST_ASSERT_TRUE(wire.subscriber.stands());
  wire.subscriber.leave(waiter, true);
  TEST_ASSERT_EQUAL("", wire.take_sent());
  TEST_ASSERT_TRUE(wire.subscriber.stands());
  wire.receive(own_message("me:1"));  // Nobody is there.

  Waiter& again = enter_own(wire, token);
  TEST_ASSERT_TRUE(wire.confirmed(again));
  TEST_ASSERT_FALSE(wire.woken(again));
  TEST_ASSERT_EQUAL("", wire.take_sent());
  wire.subscriber.leave(again, false);

  for (const char* const key : {"a", "b", "c"}) (void)wire.enter_confirmed(key);
  TEST_ASSERT_TRUE(wire.subscriber.stands());
  Waiter& fourth = wire.enter("d");
  TEST_ASSERT_FALSE(wire.subscriber.stands());
  TEST_ASSERT_EQUAL("*2\r\n" + bulk("UNSUBSCRIBE") + bulk(own_name) + subscribe("d"), wire.take_sent());
  wire.receive("*3\r\n" + bulk("unsubscribe") + bulk(own_name) + ":3\r\n" + subscribed("d"));
  TEST_ASSERT_TRUE(wire.confirmed(fourth));
}

TEST(test_who_waits_over_an_own_channel_should_do_so_while_others_give_up_their_places) {
  Wire wire;
  wire.connect();
  const Token token(ByteView("me:1"));
  Waiter& own = enter_own(wire, token);
  (void)wire.take_sent();
  wire.receive(own_subscribed);
  std::vector<Waiter*> others;
  for (const char* const key : {"a", "b", "c"}) others.push_back(&wire.enter_confirmed(key));
  wire.subscriber.leave(*others[0], true);
  (void)wire.enter("d");  // In the place of "a", once that is unsubscribed.
  TEST_ASSERT_EQUAL(unsubscribe("a") + subscribe("d"), wire.take_sent());
  for (const char* const payload : {"1", "me:2"}) wire.receive(own_message(payload));
  TEST_ASSERT_FALSE(wire.woken(own));
  wire.receive(own_message("me:1"));
  TEST_ASSERT_TRUE(wire.woken(own));
}

TEST(test_no_own_channel_should_stand_after_its_connection_is_gone) {
  Wire wire;
  wire.connect();
  const Token token(ByteView("me:1"));
  Waiter& waiter = enter_own(wire, token);
  (void)wire.take_sent();
  wire.receive(own_subscribed);
  wire.subscriber.leave(waiter, true);
  wire.subscriber.handle_closed();
  TEST_ASSERT_FALSE(wire.subscriber.stands());
  TEST_ASSERT_FALSE(wire.subscriber.has_waiters());
  wire.connect();
  TEST_ASSERT_EQUAL("", wire.take_sent());
  TEST_ASSERT_FALSE(wire.subscriber.stands());
}

// ---- Who is told of it -------------------------------------------------------------------------------------------

TEST(test_a_witness_should_be_told_of_every_byte_of_a_subscription) {
  holdfast::testing::Recorder recorder;
  Wire wire({.witness = &recorder});
  wire.connect();
  (void)wire.enter("k");
  const std::string bytes = subscribed("k") + message("k");
  wire.receive(bytes);
  TEST_ASSERT_TRUE(!wire.sent.empty());
  TEST_ASSERT_EQUAL(static_cast<std::int64_t>(wire.sent.size()), recorder.sent);
  TEST_ASSERT_EQUAL(static_cast<std::int64_t>(bytes.size()), recorder.received);
  TEST_ASSERT_EQUAL("", recorder.take());  // Nor of anything else.
}

// ---- Channels of a slot ------------------------------------------------------------------------------------------

namespace {

// A subscription of a cluster's client whose name is "k": the channels of that slot are the server's that has it.
struct ShardedWire {
  ShardedWire() { cluster.configure({.hosts = "10.0.0.1", .name = "k"}); }
  static std::string change(const char* word, const std::string& key) {
    return "*3\r\n" + bulk(word) + bulk(channel_of(key)) + ":1\r\n";
  }
  Cluster cluster;
  Wire wire{{.shards = &cluster}};
};

}  // namespace

TEST(test_channels_of_the_slot_should_be_subscribed_there_and_others_everywhere) {
  ShardedWire it;
  Wire& wire = it.wire;
  TEST_ASSERT_FALSE(wire.subscriber.established());
  wire.connect();
  TEST_ASSERT_FALSE(wire.subscriber.established());
  Waiter& near = wire.enter("k");
  TEST_ASSERT_EQUAL("*2\r\n" + bulk("SSUBSCRIBE") + bulk(channel_of("k")), wire.take_sent());
  wire.receive(it.change("ssubscribe", "k"));
  TEST_ASSERT_TRUE(wire.subscriber.confirmed(near));
  TEST_ASSERT_TRUE(wire.subscriber.established());
  Waiter& far = wire.enter("l");
  TEST_ASSERT_EQUAL(subscribe("l"), wire.take_sent());
  wire.receive(subscribed("l"));
  TEST_ASSERT_TRUE(wire.subscriber.confirmed(far));
  wire.receive("*3\r\n" + bulk("smessage") + bulk(channel_of("k")) + bulk("0"));
  TEST_ASSERT_TRUE(wire.woken(near));
  TEST_ASSERT_FALSE(wire.woken(far));
  wire.receive(message("l"));
  TEST_ASSERT_TRUE(wire.woken(far));
  TEST_ASSERT_TRUE(wire.open());
}

TEST(test_a_channel_whose_slot_has_left_should_wake_who_waits_and_end_the_connection) {
  ShardedWire it;
  Wire& wire = it.wire;
  wire.connect();
  Waiter& waiter = wire.enter("k");
  wire.receive(it.change("ssubscribe", "k"));
  wire.receive(it.change("sunsubscribe", "k"));  // Nobody asked for that.
  TEST_ASSERT_TRUE(wire.failed());
  TEST_ASSERT_EQUAL(Status::moved, wire.subscriber.failure());
  TEST_ASSERT_FALSE(wire.woken(waiter));
  wire.subscriber.handle_closed();
  TEST_ASSERT_TRUE(wire.woken(waiter));
  TEST_ASSERT_FALSE(wire.subscriber.established());
}

TEST(test_without_a_slot_words_of_shards_should_be_a_protocol_error) {
  Wire wire;
  wire.connect();
  Waiter& waiter = wire.enter_confirmed("k");
  wire.receive("*3\r\n" + bulk("smessage") + bulk(channel_of("k")) + bulk("0"));
  TEST_ASSERT_FALSE(wire.woken(waiter));
  TEST_ASSERT_TRUE(wire.failed());
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.subscriber.failure());
}
