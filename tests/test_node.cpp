// SPDX-License-Identifier: MIT
//
// One server's life without a socket: configured, dialled, introduced, lost, dialled again. The rules are those of proto/lock.md.
#include "holdfast/core/node.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "node_desk.hpp"
#include "printers.hpp"
#include "recorder.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using namespace holdfast::testing;
using Desk = NodeDesk;

static void setUp() {}
static void tearDown() {}

TEST(test_a_node_that_was_never_configured_should_want_nothing) {
  auto buffers = std::make_unique<NodeBuffers>();
  Node node(buffers->storage());
  TEST_ASSERT_FALSE(node.configured());
  TEST_ASSERT_FALSE(node.ready());
  TEST_ASSERT_TRUE(node.timeout() == Instant::max());
  TEST_ASSERT_TRUE(node.address() == nullptr);
}

TEST(test_a_literal_address_should_be_dialled_without_a_question) {
  Desk desk;
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL('1', desk.node->address()->bytes[0]);
}

TEST(test_a_name_should_be_asked_for_and_its_addresses_dialled_in_turn) {
  Desk desk("somewhere", false);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  TEST_ASSERT_TRUE(desk.node->address() == nullptr);
  const SocketAddress found[] = {address_of('1'), address_of('2')};
  desk.node->handle_addresses(found, 2, desk.now, least);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL('1', desk.node->address()->bytes[0]);
  desk.node->dialer().handle_dial_failed(Status::connect_failed, desk.now, least);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL('2', desk.node->address()->bytes[0]);
}

// [rule 18] Its answer is not thrown away, and what is connected is not taken away.
TEST(test_addresses_that_come_while_connected_should_change_nothing) {
  Desk desk;
  desk.connect();
  const SocketAddress found[] = {address_of('9')};
  desk.node->handle_addresses(found, 1, desk.now, least);
  TEST_ASSERT_EQUAL('1', desk.node->address()->bytes[0]);
  TEST_ASSERT_TRUE(desk.node->ready());
}

TEST(test_a_path_should_need_no_address) {
  Desk desk;
  ClientConfig config = config_of("somewhere");
  config.socket_path = "/run/redis.sock";
  desk.node->configure(config, nullptr);
  TEST_ASSERT_TRUE(desk.node->local());
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
}

TEST(test_a_copy_should_go_where_the_other_goes) {
  Desk desk("somewhere", false);
  (void)desk.poll();
  const SocketAddress found[] = {address_of('1'), address_of('2')};
  desk.node->handle_addresses(found, 2, desk.now, least);
  (void)desk.poll();
  desk.node->dialer().handle_dial_failed(Status::connect_failed, desk.now, least);
  Desk other;
  other.node->configure_like(*desk.node);
  TEST_ASSERT_EQUAL(DialAction::dial, other.poll());
  TEST_ASSERT_EQUAL('2', other.node->address()->bytes[0]);
  TEST_ASSERT_TRUE(other.node->config().host.view() == ByteView("somewhere"));
}

TEST(test_a_node_should_be_ready_once_the_handshake_is_done_and_said_so_once) {
  Desk desk;
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.node->handle_connected(desk.now);
  TEST_ASSERT_TRUE(desk.node->open());
  TEST_ASSERT_FALSE(desk.node->handle_ready(desk.now));
  desk.introduce();
  TEST_ASSERT_FALSE(desk.node->ready());
  TEST_ASSERT_TRUE(desk.node->handle_ready(desk.now));
  TEST_ASSERT_FALSE(desk.node->handle_ready(desk.now));
  TEST_ASSERT_TRUE(desk.node->ready());
}

TEST(test_a_request_without_a_connection_should_be_refused) {
  Desk desk;
  Locked locked;
  locked.acquire(desk.now);
  desk.node->submit(locked.machine, &locked, desk.now);
  TEST_ASSERT_EQUAL(Status::not_connected, locked.machine.status());
  TEST_ASSERT_EQUAL("", desk.sent);
}

TEST(test_a_request_should_be_sent_and_answered) {
  Desk desk;
  desk.connect();
  desk.sent.clear();
  Locked locked;
  locked.acquire(desk.now);
  desk.node->submit(locked.machine, &locked, desk.now);
  desk.receive("+OK\r\n");
  TEST_ASSERT_TRUE(desk.sent.find("SET") != std::string::npos);
  TEST_ASSERT_EQUAL(1U, desk.heard.size());
  TEST_ASSERT_TRUE(desk.heard[0].tag.requester == &locked);
  locked.machine.handle_reply(desk.heard[0], desk.now);
  TEST_ASSERT_TRUE(locked.machine.held(desk.now));
}

TEST(test_a_question_should_change_nothing_and_be_answered_by_its_number) {
  Desk desk;
  desk.connect();
  desk.sent.clear();
  Locked locked;
  TEST_ASSERT_EQUAL(Status::ok,
                    desk.node->ask_remaining(locked.machine, {.requester = &locked, .generation = 5}, desk.now));
  desk.receive(":1500\r\n");
  TEST_ASSERT_EQUAL("*2\r\n$4\r\nPTTL\r\n$1\r\nk\r\n", desk.sent);
  TEST_ASSERT_EQUAL(1U, desk.heard.size());
  TEST_ASSERT_EQUAL(5U, desk.heard[0].tag.generation);
  TEST_ASSERT_EQUAL(1500, desk.heard[0].value.integer());
  TEST_ASSERT_EQUAL(0U, desk.node->session().compensations_pending());
}

TEST(test_a_question_should_be_over_after_a_request_timeout) {
  Desk desk;
  desk.connect();
  Locked locked;
  TEST_ASSERT_EQUAL(Status::ok, desk.node->ask_remaining(locked.machine, {.requester = &locked}, desk.now));
  desk.transmit();
  TEST_ASSERT_TRUE(desk.node->timeout() <= start + 500ms);
  desk.now = start + 500ms;
  desk.node->session().handle_timeout(desk.now);
  desk.poll_replies();
  TEST_ASSERT_EQUAL(1U, desk.heard.size());
  TEST_ASSERT_EQUAL(Status::timed_out, desk.heard[0].outcome);
}

// A connection that has carried something is made anew at once. One that never has, again and again, is not.
TEST(test_a_lost_connection_should_be_made_anew_at_once_if_it_was_used) {
  Desk desk;
  desk.connect();
  desk.now = desk.now + 1ms;
  Locked locked;
  TEST_ASSERT_EQUAL(Status::ok, desk.node->ask_remaining(locked.machine, {.requester = &locked}, desk.now));
  desk.receive(":0\r\n");
  desk.close();
  TEST_ASSERT_FALSE(desk.node->open());
  TEST_ASSERT_EQUAL(Status::transport_closed, desk.node->dialer().failure());
  TEST_ASSERT_TRUE(desk.node->timeout() <= desk.now);
  desk.connect();
  desk.close();  // Unused, and soon after the last.
  TEST_ASSERT_FALSE(desk.node->dialer().hopeful(desk.now));
  TEST_ASSERT_TRUE(desk.node->timeout() > desk.now);
}

// A server that greets and then says what nobody asked for is not dialled as fast as it ends its connections.
TEST(test_a_connection_that_only_carried_what_nobody_asked_for_should_not_have_been_used) {
  Desk desk;
  desk.connect();
  desk.close();
  desk.connect();
  desk.now = desk.now + 1ms;
  desk.receive(":1\r\n");
  desk.close();
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.node->dialer().failure());
  TEST_ASSERT_FALSE(desk.node->dialer().hopeful(desk.now));
}

// The session is ready by the same bytes that end it: it was a connection all the same.
TEST(test_a_connection_that_fails_with_its_last_handshake_reply_should_have_been_one) {
  Desk desk;
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.node->handle_connected(desk.now);
  desk.introduce();
  desk.close();
  TEST_ASSERT_TRUE(desk.node->dialer().hopeful(desk.now));
}

TEST(test_what_was_in_flight_should_be_unknown_when_the_connection_is_lost) {
  Desk desk;
  desk.connect();
  Locked locked;
  locked.acquire(desk.now);
  desk.node->submit(locked.machine, &locked, desk.now);
  desk.transmit();
  desk.close();
  TEST_ASSERT_EQUAL(1U, desk.heard.size());
  TEST_ASSERT_EQUAL(Status::transport_closed, desk.heard[0].outcome);
  TEST_ASSERT_EQUAL(1U, desk.node->session().compensations_pending());  // Taken back by the next connection.
}

// ---- Who is told of it -------------------------------------------------------------------------------------------

TEST(test_a_witness_should_be_told_of_the_first_connection_of_its_end_and_of_another) {
  Recorder recorder;
  Desk desk;
  desk.node->use_meter(&recorder);
  desk.connect();
  TEST_ASSERT_EQUAL(std::string("connected 127.0.0.1 ok 0"), recorder.take());
  desk.close();
  TEST_ASSERT_EQUAL(std::string("disconnected 127.0.0.1 transport_closed 0"), recorder.take());
  desk.now = desk.now + 10s;
  desk.connect();
  TEST_ASSERT_EQUAL(std::string("reconnected 127.0.0.1 ok 0"), recorder.take());
}

TEST(test_a_witness_should_not_be_told_of_a_connection_that_was_never_ready) {
  Recorder recorder;
  Desk desk;
  desk.node->use_meter(&recorder);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.node->handle_connected(desk.now);
  desk.close();
  TEST_ASSERT_EQUAL(std::string(), recorder.take());
}

TEST(test_a_witness_should_be_told_the_path_of_a_socket) {
  Recorder recorder;
  Desk desk;
  ClientConfig config = config_of("somewhere");
  config.socket_path = "/run/redis.sock";
  config.meter = &recorder;
  desk.node->configure(config, nullptr);
  desk.node->use_meter(nullptr);
  desk.connect();
  TEST_ASSERT_EQUAL(std::string("connected /run/redis.sock ok 0"), recorder.take());
}

TEST(test_a_witness_should_be_told_of_every_byte_and_of_what_is_taken_back) {
  Recorder recorder;
  Desk desk;
  desk.node->use_meter(&recorder);
  desk.connect();
  TEST_ASSERT_EQUAL(static_cast<std::int64_t>(desk.sent.size()), recorder.sent);
  const std::int64_t handshake = recorder.received;
  TEST_ASSERT_TRUE(handshake > 0);
  (void)recorder.take();
  const Token token(ByteView(std::string(32, 't')));
  TEST_ASSERT_EQUAL(Status::ok, desk.node->session().compensate(
                                    {}, {.kind = &mutex_kind, .key = Key("k"), .token = &token, .count = 0}));
  desk.receive(":1\r\n");
  TEST_ASSERT_EQUAL(std::string("compensated k ok 0"), recorder.take());
  TEST_ASSERT_EQUAL(static_cast<std::int64_t>(desk.sent.size()), recorder.sent);
  TEST_ASSERT_EQUAL(handshake + 4, recorder.received);
}

// ---- Room --------------------------------------------------------------------------------------------------------

TEST(test_a_question_without_room_for_it_should_be_refused_and_leave_nothing) {
  Desk desk;
  desk.connect();
  const Argument ping[] = {ByteView("PING")};
  std::size_t asked = 0;
  while (asked < 2 * in_flight_max && desk.node->ask(ping, {}, desk.now) == Status::ok) ++asked;
  TEST_ASSERT_TRUE(asked != 0 && asked <= in_flight_max);
  const std::size_t in_flight = desk.node->session().in_flight();
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.node->ask(ping, {}, desk.now));
  Locked locked;
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.node->ask_remaining(locked.machine, {}, desk.now));
  TEST_ASSERT_EQUAL(in_flight, desk.node->session().in_flight());
}

TEST(test_a_question_longer_than_the_send_buffer_should_be_refused) {
  Desk desk;
  desk.connect();
  const std::string text(transmit_size_max, 'x');
  const Argument words[] = {ByteView("ECHO"), ByteView(text)};
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.node->ask(words, {}, desk.now));
  TEST_ASSERT_EQUAL(0, desk.node->session().in_flight());
}

TEST(test_a_request_without_room_for_it_should_be_refused_as_that) {
  Desk desk;
  desk.connect();
  const Argument ping[] = {ByteView("PING")};
  while (desk.node->ask(ping, {}, desk.now) == Status::ok) {}
  desk.transmit();
  desk.sent.clear();
  Locked locked;
  locked.acquire(desk.now);
  desk.node->submit(locked.machine, &locked, desk.now);
  desk.transmit();
  TEST_ASSERT_EQUAL(Status::too_many_requests, locked.machine.status());
  TEST_ASSERT_EQUAL("", desk.sent);
}

TEST(test_a_question_for_a_remaining_time_should_find_room_in_the_send_buffer_or_be_refused) {
  Desk desk;
  desk.connect();
  Locked locked;
  const std::string text(100, 'x');
  const Argument words[] = {ByteView("ECHO"), ByteView(text)};
  while (desk.node->ask(words, {}, desk.now) == Status::ok) {}
  const Argument ping[] = {ByteView("X")};
  while (desk.node->ask(ping, {}, desk.now) == Status::ok) {}
  const std::size_t in_flight = desk.node->session().in_flight();
  TEST_ASSERT_TRUE(in_flight < in_flight_max);  // There are places, and no bytes.
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.node->ask_remaining(locked.machine, {}, desk.now));
  TEST_ASSERT_EQUAL(in_flight, desk.node->session().in_flight());
}

// It changes nothing, so that nothing would have to be taken back.
TEST(test_a_question_should_need_no_place_for_what_is_taken_back) {
  Desk desk;
  desk.connect();
  Locked locked;
  Session& session = desk.node->session();
  for (int taken = 0; session.may_compensate(); ++taken) {
    const Token token(ByteView(std::to_string(taken)));
    TEST_ASSERT_EQUAL(Status::ok,
                      session.compensate({}, {.kind = &mutex_kind, .key = Key("o"), .token = &token, .count = 0}));
  }
  desk.transmit();
  TEST_ASSERT_FALSE(session.may_compensate());
  TEST_ASSERT_EQUAL(Status::ok, desk.node->ask_remaining(locked.machine, {}, desk.now));
  const Argument ping[] = {ByteView("PING")};
  TEST_ASSERT_EQUAL(Status::ok, desk.node->ask(ping, {}, desk.now));
}

TEST(test_any_question_should_have_its_request_timeout_and_not_less) {
  Desk desk;
  desk.connect();
  const Argument ping[] = {ByteView("PING")};
  TEST_ASSERT_EQUAL(Status::ok, desk.node->ask(ping, {.requester = &desk}, desk.now));
  desk.transmit();
  desk.now = start + 500ms - 1ns;
  desk.node->session().handle_timeout(desk.now);
  desk.poll_replies();
  TEST_ASSERT_TRUE(desk.heard.empty());
  desk.now = start + 500ms;
  desk.node->session().handle_timeout(desk.now);
  desk.poll_replies();
  TEST_ASSERT_EQUAL(1U, desk.heard.size());
  TEST_ASSERT_EQUAL(Status::timed_out, desk.heard[0].outcome);
}

// ---- Addresses ---------------------------------------------------------------------------------------------------

namespace {

// A node that has room for two addresses.
struct TwoAddresses {
  NodeBuffersOf<SessionBuffers, config_texts_size_max, 2> buffers;
  Node node{buffers.storage()};
};

}  // namespace

TEST(test_addresses_beyond_the_storage_should_not_be_tried) {
  const SocketAddress found[] = {address_of('1'), address_of('2'), address_of('3')};
  for (const std::uint8_t count : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{3}}) {
    auto desk = std::make_unique<TwoAddresses>();
    desk->node.configure(config_of("somewhere"), nullptr);
    TEST_ASSERT_EQUAL(DialAction::resolve, desk->node.poll_dial(start, least));
    desk->node.handle_addresses(found, count, start, least);
    TEST_ASSERT_EQUAL(count < 2 ? 1 : 2, int{desk->node.dialer().address_count()});
    TEST_ASSERT_EQUAL('1', desk->node.address()->bytes[0]);
  }
}

TEST(test_a_copy_should_take_as_many_addresses_as_it_has_room_for_and_begin_with_the_one_in_use) {
  Desk desk("somewhere", false);
  (void)desk.poll();
  const SocketAddress found[] = {address_of('1'), address_of('2'), address_of('3')};
  desk.node->handle_addresses(found, 3, desk.now, least);
  for (const char first : {'1', '2', '1'}) {  // The third one finds no room.
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    auto copy = std::make_unique<TwoAddresses>();
    copy->node.configure_like(*desk.node);
    TEST_ASSERT_EQUAL(2, int{copy->node.dialer().address_count()});
    TEST_ASSERT_EQUAL(first, static_cast<char>(copy->node.address()->bytes[0]));
    Desk whole;
    whole.node->configure_like(*desk.node);
    TEST_ASSERT_EQUAL(3, int{whole.node->dialer().address_count()});
    TEST_ASSERT_EQUAL(desk.node->address()->bytes[0], whole.node->address()->bytes[0]);
    desk.node->dialer().handle_dial_failed(Status::connect_failed, desk.now, least);
  }
}

TEST(test_addresses_that_were_not_found_should_leave_those_of_before) {
  Desk desk("somewhere", false);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  const SocketAddress found[] = {address_of('1')};
  desk.node->handle_addresses(found, 1, desk.now, least);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_TRUE(desk.node->dialling());
  desk.node->dialer().handle_dial_failed(Status::connect_failed, desk.now, least);
  TEST_ASSERT_FALSE(desk.node->dialling());
  desk.now = desk.node->timeout();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.node->handle_addresses(nullptr, 0, desk.now, least);
  TEST_ASSERT_EQUAL('1', desk.node->address()->bytes[0]);
  TEST_ASSERT_EQUAL(1, int{desk.node->dialer().address_count()});
}

// ---- Its end -----------------------------------------------------------------------------------------------------

TEST(test_a_transport_that_was_never_up_should_be_closed_without_a_word) {
  Recorder recorder;
  Desk desk;
  desk.node->use_meter(&recorder);
  desk.close();
  TEST_ASSERT_EQUAL(DialState::waiting, desk.node->dialer().state());
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.close();
  TEST_ASSERT_TRUE(desk.node->dialling());
  TEST_ASSERT_EQUAL(std::string(), recorder.take());
}

TEST(test_a_node_that_is_configured_anew_should_be_connected_for_the_first_time) {
  Recorder recorder;
  Desk desk;
  ClientConfig config = config_of("127.0.0.1");
  config.meter = &recorder;
  const SocketAddress address = address_of('1');
  for (int turn = 0; turn < 2; ++turn) {
    desk.node->configure(config, &address);
    recorder.sent = 0;
    desk.sent.clear();
    desk.connect();
    TEST_ASSERT_EQUAL(std::string("connected 127.0.0.1 ok 0"), recorder.take());
    TEST_ASSERT_TRUE(recorder.sent > 0);
    TEST_ASSERT_EQUAL(static_cast<std::int64_t>(desk.sent.size()), recorder.sent);
    desk.close();
    (void)recorder.take();
  }
}

TEST(test_a_connection_should_be_used_by_the_answer_that_was_asked_for_also_if_more_comes_after_it) {
  for (const bool asked : {true, false}) {
    Desk desk;
    desk.connect();
    desk.close();
    desk.connect();  // The second one that ends soon.
    if (asked) {
      Locked locked;
      TEST_ASSERT_EQUAL(Status::ok, desk.node->ask_remaining(locked.machine, {.requester = &locked}, desk.now));
      desk.receive(":0\r\n");
    }
    desk.node->handle_used(desk.now);
    desk.close();
    TEST_ASSERT_EQUAL(asked, desk.node->dialer().hopeful(desk.now));
  }
}

TEST(test_a_subscriber_should_speak_as_the_nodes_user) {
  Desk desk;
  ClientConfig config = config_of("127.0.0.1");
  config.user = "worker";
  config.password = "secret";
  config.client_name = "me";
  config.stall_timeout = 7s;
  config.max_poll = 9s;
  Recorder recorder;
  config.meter = &recorder;
  const SocketAddress address = address_of('1');
  desk.node->configure(config, &address);
  const SubscriberSettings settings = desk.node->subscriber_settings();
  TEST_ASSERT_EQUAL(ByteView("worker"), settings.user);
  TEST_ASSERT_EQUAL(ByteView("secret"), settings.password);
  TEST_ASSERT_EQUAL(ByteView("me"), settings.client_name);
  TEST_ASSERT_TRUE(settings.stall_timeout == 7s);
  TEST_ASSERT_TRUE(settings.heartbeat == 9s);
  TEST_ASSERT_TRUE(settings.witness == &recorder);
  TEST_ASSERT_TRUE(settings.shards == nullptr);
}

namespace {

// A driver that asks when its connection was used last.
struct AttentiveNode : Node {
  using Node::Node;
  [[nodiscard]] Instant last_used() const { return last_used_; }
};

}  // namespace

TEST(test_a_driver_should_know_when_its_connection_was_used_last) {
  auto buffers = std::make_unique<NodeBuffers>();
  AttentiveNode node(buffers->storage());
  const SocketAddress address = address_of('1');
  node.configure(config_of("127.0.0.1"), &address);
  TEST_ASSERT_EQUAL(DialAction::dial, node.poll_dial(start, least));
  node.handle_connected(start);
  node.handle_used(start + 1ms);
  TEST_ASSERT_EQUAL(start + 1ms, node.last_used());
  std::string sent;
  std::size_t limit = SIZE_MAX;
  while (transmit_piece(node.session(), start, sent, limit)) {}
  std::string_view bytes = "+OK\r\n:7\r\n-NOPERM no\r\n";
  while (receive_piece(node.session(), start + 2ms, bytes)) {}
  Reply reply;
  while (node.session().poll_reply(reply, start + 2ms)) {}
  TEST_ASSERT_TRUE(node.handle_ready(start + 2ms));
  TEST_ASSERT_EQUAL(start + 2ms, node.last_used());
}
