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
