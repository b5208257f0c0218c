// SPDX-License-Identifier: MIT
//
// One connection's protocol, without a connection. The rules are those of proto/lock.md, quoted as [rule N].
#include "unity_style.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/core/session.hpp"
#include "printers.hpp"
#include "recorder.hpp"
#include "resp_text.hpp"
#include "scripts.hpp"
#include "wire_pieces.hpp"

using namespace holdfast;
using holdfast::testing::bulk;
using holdfast::testing::receive_piece;
using holdfast::testing::transmit_piece;

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
const std::string run_id(40, 'f');

std::string identity_reply(const std::string& id, const std::string& version, const std::string& valkey = "",
                           const std::string& standing = "-1master") {
  return "*6\r\n" + bulk(id) + bulk("100") + bulk(version) + bulk(valkey) +
         bulk("00000000000000ff" + std::string(24, 'f')) + bulk(standing);
}
std::string good_handshake(int client_id = 7, const std::string& id = run_id) {
  return ":" + std::to_string(client_id) + "\r\n" + identity_reply(id, "7.0.15");
}

// What a driver does, without a socket: bytes out are collected, bytes in are fed. What is always so of a session is asserted
// around every step, and at the end.
struct Wire {
  SessionBuffers buffers;
  Session session;
  Instant now = start;
  std::string sent;
  struct Heard {
    ReplyTag tag;
    Status outcome;
    bool nothing_ran;
    std::string value;
  };
  std::vector<Heard> heard;

  explicit Wire(const SessionSettings& settings = {}) : session(settings, buffers.storage()) {}
  ~Wire() { DOCTEST_CHECK(session.invariants()); }  // A destructor cannot end the test.
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void check() const { TEST_ASSERT_TRUE(session.invariants()); }

  static std::string show(const RespValue& value) {
    switch (value.kind()) {
      case RespKind::simple: return "+" + std::string(value.text().string_view());
      case RespKind::error: return "-" + std::string(value.text().string_view());
      case RespKind::bulk: return "$" + std::string(value.text().string_view());
      case RespKind::integer: return ":" + std::to_string(value.integer());
      case RespKind::null: return "null";
      case RespKind::array: return "*" + std::to_string(value.count());
    }
    return "?";
  }
  // Nothing lies in the socket.
  void look() {
    session.handle_drained();
    check();
  }
  void transmit(std::size_t limit = SIZE_MAX) {
    do {
      check();
      if (session.wants_look()) look();
    } while (transmit_piece(session, now, sent, limit));
    check();
  }
  void poll() {
    Reply reply;
    check();
    while (session.poll_reply(reply, now)) {
      heard.push_back({reply.tag, reply.outcome, reply.nothing_ran, show(reply.value)});
      check();
    }
    check();
  }
  // Everything has been sent before a reply can come.
  void receive(const std::string& bytes) {
    transmit();
    receive_early(bytes);
  }
  void receive_early(std::string_view bytes) {
    while (receive_piece(session, now, bytes)) poll();
  }
  void connect(const std::string& handshake = good_handshake()) {
    check();
    session.handle_connected(now, now + 2s);
    transmit();
    receive(handshake);
    transmit();
  }
  void close() {
    check();
    session.handle_closed();
    poll();
  }
  void submit(const std::string& bytes, const Request& request) {
    const Session::Place place = session.open(request.compensation != nullptr);
    TEST_ASSERT_TRUE(place.request != nullptr);
    TEST_ASSERT_TRUE(place.space.size >= bytes.size());
    std::memcpy(place.space.data, bytes.data(), bytes.size());
    *place.request = request;
    session.commit(*place.request, bytes.size(), now);
    check();
  }
};

int lock_a = 0;
int lock_b = 0;

// A compensation lives as long as its owner promises; here, as long as the test program.
const Compensation& compensation_for(const char* key, char digit) {
  struct Owned {
    Token token;
    Compensation compensation;
  };
  static std::vector<std::unique_ptr<Owned>> all;
  all.push_back(std::make_unique<Owned>());
  Owned& owned = *all.back();
  owned.token = Token(ByteView(std::string(32, digit)));
  owned.compensation = {&mutex_kind, Key(ByteView(std::string_view(key))), &owned.token};
  return owned.compensation;
}
// The same of a reentrant hold: so often is it held.
Compensation& count_for(const char* key, char digit, std::uint32_t count) {
  auto& compensation = const_cast<Compensation&>(compensation_for(key, digit));
  compensation.kind = &reentrant_kind;
  compensation.count = count;
  compensation.lease_milliseconds = 20000;
  return compensation;
}
Request step_of(void* requester, const Compensation& compensation, Instant deadline = start + 1s) {
  Request request;
  request.tag = {requester, 1, Operation::step};
  request.deadline = deadline;
  request.compensation = &compensation;
  return request;
}
Request posted_release_of(void* requester, const char* key, char digit) {
  Request request;
  request.tag = {requester, 1, Operation::release};
  request.compensation = &compensation_for(key, digit);
  request.posted = true;
  return request;
}
Request acquire_of(void* requester, const char* key, char digit, Instant deadline = start + 1s) {
  Request request;
  request.tag = {requester, 1, Operation::acquire};
  request.deadline = deadline;
  request.compensation = &compensation_for(key, digit);
  return request;
}
std::string compensation_of(const std::string& key, char digit) {
  const std::string text(scripts::mutex_release.text.string_view());
  return "*5\r\n" + bulk("EVAL") + bulk(text) + bulk("1") + bulk(key) + bulk(std::string(32, digit));
}
std::string count_of(const std::string& key, char digit, const std::string& count) {
  const std::string text(scripts::reentrant_step.text.string_view());
  return "*7\r\n" + bulk("EVAL") + bulk(text) + bulk("1") + bulk(key) + bulk(std::string(32, digit)) + bulk(count) +
         bulk("20000");
}
std::string hash_release_of(const std::string& key, char digit) {
  const std::string text(scripts::reentrant_release.text.string_view());
  return "*6\r\n" + bulk("EVAL") + bulk(text) + bulk("1") + bulk(key) + bulk(std::string(32, digit)) +
         bulk("redisson_lock__channel:{" + key + "}");
}

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- Handshake ---------------------------------------------------------------------------------------------------

TEST(test_handshake_should_log_in_select_and_ask_who_the_server_is) {
  Wire wire({.user = "joe", .password = "secret", .client_name = "worker", .database = 3});
  wire.session.handle_connected(start, start + 2s);
  wire.transmit();
  const std::string script(scripts::server_identity.text.string_view());
  TEST_ASSERT_EQUAL("*3\r\n" + bulk("AUTH") + bulk("joe") + bulk("secret") + "*2\r\n" + bulk("SELECT") + bulk("3") +
                        "*3\r\n" + bulk("CLIENT") + bulk("SETNAME") + bulk("worker") + "*2\r\n" + bulk("CLIENT") +
                        bulk("ID") + "*3\r\n" + bulk("EVAL") + bulk(script) + bulk("0"),
                    wire.sent);
  TEST_ASSERT_TRUE(wire.session.state() == SessionState::handshaking);
  wire.receive("+OK\r\n+OK\r\n+OK\r\n" + good_handshake(42));
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_EQUAL(42, wire.session.identity().client_id);
  TEST_ASSERT_TRUE(wire.session.identity().run_id_known);
  TEST_ASSERT_EQUAL(70015U, wire.session.identity().version);
  TEST_ASSERT_EQUAL(100U, wire.session.identity().uptime_seconds);
  TEST_ASSERT_EQUAL(0xffU, wire.session.identity().replication_id);
  TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::none);
}

TEST(test_handshake_should_authenticate_without_a_user) {
  Wire wire({.password = "secret"});
  wire.session.handle_connected(start, start + 2s);
  wire.transmit();
  TEST_ASSERT_EQUAL(0U, wire.sent.find("*2\r\n" + bulk("AUTH") + bulk("secret")));
}

TEST(test_handshake_should_find_the_native_compare_and_delete) {
  struct {
    const char* redis;
    const char* valkey;
    NativeDelete expected;
  } const rows[] = {{"8.3.9", "", NativeDelete::none},         {"8.4.0", "", NativeDelete::delex},
                    {"9.0.0", "", NativeDelete::delex},        {"7.2.4", "8.1.1", NativeDelete::none},
                    {"7.2.4", "9.0.0", NativeDelete::delifeq}, {"7.2.4", "10.0", NativeDelete::delifeq},
                    {"x.y", "", NativeDelete::none},           {"", "", NativeDelete::none},
                    {"8.4.91", "", NativeDelete::delex},       {"8.4.100", "", NativeDelete::none},
                    {"8.4-.0", "", NativeDelete::none},        {"99999999999999999999", "", NativeDelete::none}};
  for (const auto& row : rows) {
    Wire wire;
    wire.connect(":1\r\n" + identity_reply(run_id, row.redis, row.valkey));
    TEST_ASSERT_TRUE(wire.session.ready());
    TEST_ASSERT_TRUE(row.expected == wire.session.identity().native_delete);
  }
}

TEST(test_handshake_should_read_no_version_out_of_another_text) {
  const struct {
    const char* text;
    std::uint32_t version;
  } rows[] = {{"7.0.15", 70015}, {"7.2", 70200}, {"7", 70000}, {"255.255.255", 0}, {"7.x.1", 0}, {"", 0}};
  for (const auto& row : rows) {
    Wire wire;
    wire.connect(":1\r\n" + identity_reply(run_id, row.text));
    TEST_ASSERT_EQUAL(row.version, wire.session.identity().version);
  }
}

TEST(test_handshake_should_find_no_native_delete_where_none_is_wanted) {
  for (const std::string& identity : {identity_reply(run_id, "7.2.4", "9.0.1"), identity_reply(run_id, "8.4.0")}) {
    Wire wire({.native_delete = false});
    wire.connect(":1\r\n" + identity);
    TEST_ASSERT_TRUE(wire.session.identity().version >= 80400);
    TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::none);
  }
}

TEST(test_handshake_should_take_no_run_id_of_another_size) {
  for (const std::size_t size : {std::size_t{39}, std::size_t{41}}) {
    Wire wire;
    wire.connect(good_handshake(7, std::string(size, 'f')));
    TEST_ASSERT_TRUE(wire.session.ready());
    TEST_ASSERT_FALSE(wire.session.identity().run_id_known);
  }
}

// What the ACL refuses is done without.
TEST(test_handshake_should_do_without_what_the_acl_refuses) {
  const char* const refusals[] = {
      "-NOPERM this user has no permissions to run the 'client|id' command\r\n",
      "-ERR unknown subcommand 'ID'. Try CLIENT HELP.\r\n",
  };
  for (const std::string refusal : refusals) {
    Wire wire({.client_name = "worker"});
    wire.session.handle_connected(start, start + 2s);
    wire.receive(refusal + refusal + "-NOPERM this user has no permissions to run the 'eval' command\r\n");
    TEST_ASSERT_TRUE(wire.session.ready());
    TEST_ASSERT_FALSE(wire.session.identity().run_id_known);
    TEST_ASSERT_EQUAL(0, wire.session.identity().client_id);
  }
}

TEST(test_handshake_should_do_without_an_identity_of_an_odd_shape) {
  const std::string five = "*5\r\n" + bulk(run_id) + bulk("1") + bulk("7.0.15") + bulk("") + bulk(run_id);
  const char* const odds[] = {"+OK\r\n", "*0\r\n", "*6\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n",
                              "$-1\r\n", ":5\r\n", five.c_str()};
  for (const std::string odd : odds) {
    Wire wire;
    wire.connect(":1\r\n" + odd);
    TEST_ASSERT_TRUE(wire.session.ready());
    TEST_ASSERT_FALSE(wire.session.identity().run_id_known);
    TEST_ASSERT_EQUAL(1, wire.session.identity().client_id);
    TEST_ASSERT_TRUE(wire.sent.find("KILL") == std::string::npos);
  }
}

TEST(test_handshake_should_take_no_odd_text_for_a_replication_id) {
  const struct {
    std::string id;
    std::uint64_t expected;
  } rows[] = {{"0123456789abcdef" + std::string(24, '0'), 0x0123456789abcdefU},
              {"f123456789abcdef" + std::string(24, '0'), 0xf123456789abcdefU},
              {"0123456789abcde/" + std::string(24, '0'), 0},
              {"0123456789abcde:" + std::string(24, '0'), 0},
              {"0123456789abcdeF" + std::string(24, '0'), 0},
              {"0123456789abcdeg" + std::string(24, '0'), 0},
              {"0123456789abcdef", 0}};
  for (const auto& row : rows) {
    Wire wire;
    wire.connect(":1\r\n*6\r\n" + bulk(run_id) + bulk("100") + bulk("7.0.15") + bulk("") + bulk(row.id) + bulk(""));
    TEST_ASSERT_TRUE(wire.session.identity().run_id_known);
    TEST_ASSERT_EQUAL(row.expected, wire.session.identity().replication_id);
  }
}

TEST(test_handshake_should_find_out_whether_the_servers_data_are_its_own) {
  const struct {
    const char* said;
    ServerStanding expected;
  } rows[] = {{"-1master", ServerStanding::master},   {"master", ServerStanding::master},
              {"0master", ServerStanding::successor}, {"4711master", ServerStanding::successor},
              {"-1slave", ServerStanding::replica},   {"4711slave", ServerStanding::replica},
              {"slave", ServerStanding::replica},     {"", ServerStanding::unknown}};
  for (const auto& row : rows) {
    Wire wire;
    wire.connect(":1\r\n" + identity_reply(run_id, "7.0.15", "", row.said));
    TEST_ASSERT_TRUE(wire.session.identity().run_id_known);
    TEST_ASSERT_TRUE(wire.session.identity().standing() == row.expected);
  }
  TEST_ASSERT_TRUE(ServerIdentity().standing() == ServerStanding::unknown);
}

TEST(test_handshake_should_take_no_odd_number_for_a_client_id) {
  for (const std::string odd : {":0\r\n", ":-1\r\n", "$1\r\n7\r\n", "+7\r\n"}) {
    Wire wire;
    wire.connect(odd + identity_reply(run_id, "7.0.15"));
    TEST_ASSERT_TRUE(wire.session.ready());
    TEST_ASSERT_EQUAL(0, wire.session.identity().client_id);
  }
}

// Not only AUTH is answered by a server that will not have us.
TEST(test_handshake_without_a_password_should_fail_with_the_servers_reason) {
  const struct {
    const char* reply;
    Status expected;
  } rows[] = {{"-NOAUTH Authentication required.\r\n", Status::auth_required},
              {"-WRONGPASS invalid username-password pair or user is disabled.\r\n", Status::auth_failed},
              {"-DENIED Redis is running in protected mode\r\n", Status::denied},
              {"-ERR max number of clients reached\r\n", Status::too_many_clients},
              {"-LOADING Redis is loading the dataset in memory\r\n", Status::loading}};
  for (const auto& row : rows) {
    Wire wire;
    wire.session.handle_connected(start, start + 2s);
    wire.receive(row.reply);
    TEST_ASSERT_EQUAL(row.expected, wire.session.failure());
  }
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
      {"-ERR AUTH <password> called without any password configured for the default user.\r\n", Status::auth_failed},
      {"+PONG\r\n", Status::protocol_error},
      {":1\r\n", Status::protocol_error},
      {"HTTP/1.1 400 Bad Request\r\n", Status::protocol_error},
  };
  for (const auto& row : rows) {
    Wire wire({.password = "secret"});
    wire.session.handle_connected(start, start + 2s);
    wire.receive(row.reply);
    TEST_ASSERT_TRUE(wire.session.state() == SessionState::failed);
    TEST_ASSERT_EQUAL(row.expected, wire.session.failure());
    TEST_ASSERT_FALSE(wire.session.failure_text().empty());
    wire.close();
    TEST_ASSERT_EQUAL(row.expected, wire.session.failure());
  }
}

// In the server's own words, as far as there is room for them; the first reason is the true one.
TEST(test_failure_should_keep_its_first_text) {
  const std::string reason = "LOADING Redis is loading the dataset in memory";
  for (const std::string& text : {reason, reason + std::string(150, '.')}) {
    Wire wire({.password = "secret"});
    wire.session.handle_connected(start, start + 2s);
    wire.receive("-" + text + "\r\n");
    TEST_ASSERT_EQUAL(Status::loading, wire.session.failure());
    TEST_ASSERT_EQUAL(text.substr(0, 160), std::string(wire.session.failure_text().string_view()));
    wire.session.fail(Status::protocol_error, "another");
    TEST_ASSERT_EQUAL(Status::loading, wire.session.failure());
    TEST_ASSERT_EQUAL(text.substr(0, 160), std::string(wire.session.failure_text().string_view()));
    wire.close();
    wire.session.fail(Status::protocol_error, "another");
    TEST_ASSERT_TRUE(wire.session.state() == SessionState::closed);
    TEST_ASSERT_EQUAL(Status::loading, wire.session.failure());
  }
  Wire wire;
  wire.session.fail(Status::protocol_error, "nothing is open");
  TEST_ASSERT_TRUE(wire.session.state() == SessionState::closed);
  TEST_ASSERT_EQUAL(Status::not_connected, wire.session.failure());
  wire.connect();
  wire.session.fail(Status::protocol_error, "?");
  TEST_ASSERT_EQUAL(ByteView("?"), wire.session.failure_text());
}

// AUTH and SELECT must succeed, each.
TEST(test_handshake_should_need_its_database) {
  const struct {
    const char* reply;
    Status expected;
  } rows[] = {{"-ERR DB index is out of range\r\n", Status::server_error},
              {"-NOPERM this user has no permissions to run the 'select' command\r\n", Status::no_permission},
              {"+QUEUED\r\n", Status::protocol_error},
              {":1\r\n", Status::protocol_error}};
  for (const auto& row : rows) {
    Wire wire({.database = 3});
    wire.session.handle_connected(start, start + 2s);
    wire.receive(row.reply);
    TEST_ASSERT_EQUAL(row.expected, wire.session.failure());
  }
}

// What is known of one connection is not known of the next.
TEST(test_reconnect_should_begin_with_nothing) {
  Wire wire;
  wire.connect(":7\r\n" + identity_reply(run_id, "7.2.4", "9.0.1"));
  wire.session.fail(Status::protocol_error, "why not");
  wire.close();
  wire.session.handle_connected(start, start + 2s);
  TEST_ASSERT_EQUAL(Status::ok, wire.session.failure());
  TEST_ASSERT_TRUE(wire.session.failure_text().empty());
  wire.receive("-NOPERM this user has no permissions to run the 'client|id' command\r\n*0\r\n");
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_FALSE(wire.session.identity().run_id_known);
  TEST_ASSERT_EQUAL(0, wire.session.identity().client_id);
  TEST_ASSERT_EQUAL(0U, wire.session.identity().version);
  TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::none);
}

TEST(test_handshake_should_end_by_its_deadline) {
  Wire wire;
  wire.session.handle_connected(start, start + 2s);
  TEST_ASSERT_EQUAL(start + 2s, wire.session.poll_timeout());
  wire.session.handle_timeout(start + 2s - 1ns);
  TEST_ASSERT_TRUE(wire.session.state() == SessionState::handshaking);
  wire.session.handle_timeout(start + 2s);
  TEST_ASSERT_EQUAL(Status::timed_out, wire.session.failure());
}

TEST(test_requests_should_be_refused_before_the_handshake_is_done) {
  Wire wire;
  TEST_ASSERT_TRUE(wire.session.open(false).request == nullptr);
  wire.session.handle_connected(start, start + 2s);
  TEST_ASSERT_TRUE(wire.session.open(false).request == nullptr);
}

// The connection is cut at every byte of the handshake's replies, and the session is as good as new.
TEST(test_handshake_should_survive_a_cut_at_every_byte) {
  const std::string whole = good_handshake();
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    Wire wire;
    wire.session.handle_connected(start, start + 2s);
    wire.transmit();
    wire.receive(whole.substr(0, cut));
    TEST_ASSERT_FALSE(wire.session.ready());
    wire.close();
    TEST_ASSERT_EQUAL(Status::transport_closed, wire.session.failure());
    wire.connect();
    TEST_ASSERT_TRUE(wire.session.ready());
  }
}

// ---- Replies -----------------------------------------------------------------------------------------------------

TEST(test_each_reply_should_go_to_its_own_request) {
  Wire wire;
  wire.connect();
  for (int index = 0; index < 5; ++index) {
    Request request;
    request.tag = {&lock_a, static_cast<std::uint32_t>(index), Operation::query};
    wire.submit("*1\r\n$4\r\nPING\r\n", request);
  }
  wire.transmit();
  wire.receive(":0\r\n:1\r\n:2\r\n:3\r\n:4\r\n");
  TEST_ASSERT_EQUAL(5U, wire.heard.size());
  for (std::uint32_t index = 0; index < 5; ++index) {
    TEST_ASSERT_EQUAL(index, wire.heard[index].tag.generation);
    TEST_ASSERT_EQUAL(":" + std::to_string(index), wire.heard[index].value);
  }
}

TEST(test_a_session_that_has_answered_all_should_wait_for_nothing) {
  Wire wire;
  wire.connect();
  Request request;
  request.tag = {&lock_a, 1, Operation::query};
  request.deadline = wire.now + 1s;
  wire.submit("*1\r\n$4\r\nPING\r\n", request);
  TEST_ASSERT_TRUE(wire.session.poll_timeout() <= wire.now + 1s);
  wire.transmit();
  wire.receive(":0\r\n");
  TEST_ASSERT_EQUAL(Instant::max(), wire.session.poll_timeout());
}

// [rule 8] A reply that nobody asked for closes the connection.
TEST(test_reply_that_nobody_asked_for_should_fail_the_session) {
  Wire wire;
  wire.connect();
  wire.receive("+OK\r\n");
  TEST_ASSERT_TRUE(wire.session.state() == SessionState::failed);
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
  TEST_ASSERT_TRUE(wire.session.poll_transmit(start).empty());
}

// [rule 8] What comes before its request has left as a whole is no reply to it.
TEST(test_reply_before_its_request_has_left_should_fail_the_session) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit(5);
  wire.receive_early("+OK\r\n");
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
}

// A full server says so and closes before it has read anything.
// What follows it need not have left.
TEST(test_reply_to_what_has_left_should_not_wait_for_the_rest) {
  const std::string request = "*1\r\n$4\r\nPING\r\n";
  for (std::size_t more = 0; more < request.size(); ++more) {
    Wire wire;
    wire.connect();
    wire.submit(request, acquire_of(&lock_a, "a", 'a'));
    wire.submit(request, acquire_of(&lock_b, "b", 'b'));
    wire.transmit(request.size() + more);
    wire.receive_early("+OK\r\n");
    TEST_ASSERT_TRUE(wire.session.ready());
    TEST_ASSERT_EQUAL(1U, wire.heard.size());
    TEST_ASSERT_TRUE(wire.heard[0].tag.requester == &lock_a);
  }
}

// ---- The look before a request -----------------------------------------------------------------------------------

// [rule 8] What lies in the socket before a request leaves is no answer to it: the driver must look, and cannot forget it.
TEST(test_request_that_may_grant_or_extend_should_not_leave_without_a_look) {
  const std::string bytes = "*1\r\n$1\r\na\r\n";
  for (const Operation operation : {Operation::query, Operation::acquire, Operation::renew, Operation::step}) {
    Wire wire;
    wire.connect();
    Request request = acquire_of(&lock_a, "a", 'a');
    request.tag.operation = operation;
    TEST_ASSERT_FALSE(wire.session.wants_look());
    wire.submit(bytes, request);
    TEST_ASSERT_TRUE(wire.session.wants_look());
    TEST_ASSERT_TRUE(wire.session.unsent());
    TEST_ASSERT_TRUE(wire.session.poll_transmit(start).empty());
    wire.look();
    TEST_ASSERT_FALSE(wire.session.wants_look());
    TEST_ASSERT_EQUAL(bytes, wire.session.poll_transmit(start).string_view());
  }
}

// Whatever is taken for the answer to a release, nobody holds the lock then.
TEST(test_release_and_compensation_should_leave_without_a_look) {
  const std::string bytes = "*1\r\n$1\r\na\r\n";
  Wire wire;
  wire.connect();
  Request request = acquire_of(&lock_a, "a", 'a');
  request.tag.operation = Operation::release;
  wire.submit(bytes, request);
  TEST_ASSERT_FALSE(wire.session.wants_look());
  TEST_ASSERT_EQUAL(bytes, wire.session.poll_transmit(start).string_view());
  wire.session.handle_transmitted(bytes.size());
  TEST_ASSERT_EQUAL(Status::ok, wire.session.compensate({}, compensation_for("b", 'b')));
  TEST_ASSERT_EQUAL(compensation_of("b", 'b'), wire.session.poll_transmit(start).string_view());
}

// Nothing overtakes: what stands in the queue with such a request waits for the look, too.
TEST(test_release_behind_an_acquire_should_wait_for_its_look) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  TEST_ASSERT_EQUAL(Status::ok, wire.session.compensate({}, compensation_for("b", 'b')));
  TEST_ASSERT_TRUE(wire.session.poll_transmit(start).empty());
  wire.look();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\na\r\n" + compensation_of("b", 'b'), wire.session.poll_transmit(start).string_view());
}

TEST(test_look_should_be_good_for_what_is_sent_at_once) {
  const std::string bytes = "*1\r\n$1\r\na\r\n";
  Wire wire;
  wire.connect();
  wire.submit(bytes, acquire_of(&lock_a, "a", 'a'));
  wire.look();
  TEST_ASSERT_EQUAL(bytes, wire.session.poll_transmit(start).string_view());
  wire.session.handle_transmitted(4);  // A short write: the rest is sent later.
  TEST_ASSERT_TRUE(wire.session.wants_look());
  TEST_ASSERT_TRUE(wire.session.poll_transmit(start).empty());
  wire.look();
  TEST_ASSERT_EQUAL(bytes.substr(4), wire.session.poll_transmit(start).string_view());
  // The socket took nothing: another time, another look.
  TEST_ASSERT_TRUE(wire.session.poll_transmit(start).empty());
  wire.look();
  wire.session.handle_transmitted(wire.session.poll_transmit(start).size());
  TEST_ASSERT_FALSE(wire.session.wants_look());
}

TEST(test_look_of_before_should_count_for_no_later_request) {
  Wire wire;
  wire.connect();
  wire.look();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  TEST_ASSERT_TRUE(wire.session.wants_look());
  wire.look();
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b'));
  TEST_ASSERT_TRUE(wire.session.wants_look());
}

// It leaves with the next request, perhaps much later.
TEST(test_look_should_be_made_anew_for_what_was_given_up_before_it_left) {
  Wire wire;
  wire.connect();
  Request request = acquire_of(&lock_a, "a", 'a');
  request.tag.operation = Operation::renew;
  wire.submit("*1\r\n$1\r\na\r\n", request);
  wire.look();
  wire.session.give_up(&lock_a, Status::cancelled, wire.now);
  TEST_ASSERT_TRUE(wire.session.wants_look());
  wire.receive_early(":1\r\n");
  wire.look();
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
}

// Where something came, more may have.
TEST(test_look_should_be_made_anew_behind_what_was_received) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b'));
  wire.look();
  wire.receive_early("$-1\r\n");
  TEST_ASSERT_EQUAL(1U, wire.heard.size());  // The answer to the one in flight.
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_TRUE(wire.session.wants_look());
  wire.transmit();
  TEST_ASSERT_FALSE(wire.session.unsent());
}

// [rule 8] [rule 9] Nothing was sent, so it may be asked again on the next connection.
TEST(test_unasked_reply_that_a_look_finds_should_close_the_connection_before_anything_is_sent) {
  for (const std::string unasked : {"+OK\r\n", "$-1\r\n", ":1\r\n", ":0\r\n", "-ERR what\r\n", "*0\r\n"}) {
    Wire wire;
    wire.connect();
    wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
    wire.receive_early(unasked);
    wire.look();
    TEST_ASSERT_EQUAL(SessionState::failed, wire.session.state());
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
    TEST_ASSERT_TRUE(wire.session.poll_transmit(start).empty());
    wire.close();
    TEST_ASSERT_EQUAL(1U, wire.heard.size());
    TEST_ASSERT_EQUAL(Status::not_connected, wire.heard[0].outcome);
    TEST_ASSERT_TRUE(wire.heard[0].nothing_ran);
    TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
    TEST_ASSERT_FALSE(wire.session.wants_look());
  }
}

// Its rest would be taken for the answer.
TEST(test_beginning_of_an_unasked_reply_should_close_the_connection_by_the_look) {
  for (const std::string unasked : {"+", "$-", ":1\r", "*1\r\n", "*1\r\n+OK\r\n:"}) {
    Wire wire;
    wire.connect();
    wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
    wire.receive_early(unasked);
    wire.look();
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
  }
}

// The beginning of the answer to what is in flight is none of that.
TEST(test_beginning_of_an_answer_should_not_be_taken_for_unasked) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  wire.receive_early("$-");
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b'));
  wire.transmit();
  wire.receive("1\r\n+OK\r\n");
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_EQUAL(2U, wire.heard.size());
  TEST_ASSERT_EQUAL("null", wire.heard[0].value);
  TEST_ASSERT_EQUAL("+OK", wire.heard[1].value);
}

// What is in front of it, and is still to be sent, is moved together with it.
TEST(test_look_should_be_wanted_as_long_as_any_byte_of_an_acquire_is_unsent) {
  const std::string first = "*1\r\n$1\r\na\r\n";
  const std::string second = "*1\r\n$1\r\nb\r\n";
  for (std::size_t sent = 1; sent < first.size() + second.size(); ++sent) {
    Wire wire;
    wire.connect();
    Request release = acquire_of(&lock_a, "a", 'a');
    release.tag.operation = Operation::release;
    wire.submit(first, release);
    wire.submit(second, acquire_of(&lock_b, "b", 'b'));
    wire.sent.clear();
    wire.look();
    (void)wire.session.poll_transmit(start);
    wire.session.handle_transmitted(sent);
    TEST_ASSERT_TRUE(wire.session.wants_look());
    wire.submit(first, release);  // Which makes room at the front.
    TEST_ASSERT_TRUE(wire.session.wants_look());
    wire.transmit();
    TEST_ASSERT_EQUAL((first + second + first).substr(sent), wire.sent);
  }
  // Behind the last of its bytes none is wanted.
  Wire wire;
  wire.connect();
  wire.submit(second, acquire_of(&lock_b, "b", 'b'));
  Request release = acquire_of(&lock_a, "a", 'a');
  release.tag.operation = Operation::release;
  wire.submit(first, release);
  wire.look();
  (void)wire.session.poll_transmit(start);
  wire.session.handle_transmitted(second.size());
  TEST_ASSERT_FALSE(wire.session.wants_look());
  wire.submit(first, release);
  TEST_ASSERT_FALSE(wire.session.wants_look());
  TEST_ASSERT_EQUAL(first + first, wire.session.poll_transmit(start).string_view());
}

TEST(test_next_connection_should_want_no_look_for_what_the_last_one_had) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.close();
  TEST_ASSERT_FALSE(wire.session.wants_look());
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.session.forget();
  TEST_ASSERT_FALSE(wire.session.wants_look());
}

// ---- Lost and late replies ---------------------------------------------------------------------------------------

TEST(test_late_error_should_not_be_taken_for_one_of_the_handshake) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  wire.session.give_up(&lock_a, Status::timed_out, wire.now);
  wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
  TEST_ASSERT_TRUE(wire.session.ready());
}

TEST(test_failed_session_should_hand_out_no_more_replies) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  const std::string reply = "+OK\r\n";
  std::memcpy(wire.session.receive_space().data, reply.data(), reply.size());
  wire.session.handle_received(reply.size(), wire.now);
  wire.session.fail(Status::protocol_error, "why not");
  wire.poll();
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
  wire.close();
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.heard[0].outcome);
}

TEST(test_refusal_before_the_handshake_has_left_should_keep_its_reason) {
  const struct {
    const char* reply;
    Status expected;
  } rows[] = {{"-ERR max number of clients reached\r\n", Status::too_many_clients},
              {"-DENIED Redis is running in protected mode\r\n", Status::denied},
              {"-LOADING Redis is loading the dataset in memory\r\n", Status::protocol_error}};
  for (const auto& row : rows) {
    Wire wire;
    wire.session.handle_connected(start, start + 2s);
    wire.receive_early(row.reply);
    TEST_ASSERT_EQUAL(row.expected, wire.session.failure());
  }
}

// A kept compensation cannot go out before the handshake is done, and no timer turns for it.
TEST(test_kept_compensation_should_not_wake_the_driver_during_the_handshake) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  wire.close();
  wire.session.handle_connected(wire.now, wire.now + 2s);
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  TEST_ASSERT_EQUAL(wire.now + 2s, wire.session.poll_timeout());
}

TEST(test_farewell_of_a_full_server_should_keep_its_reason) {
  Wire wire;
  wire.connect();
  wire.receive("-ERR max number of clients reached\r\n");
  TEST_ASSERT_EQUAL(Status::too_many_clients, wire.session.failure());
}

// [rule 8] Malformed bytes close it, and everything in flight is unknown.
TEST(test_malformed_bytes_should_make_all_in_flight_unknown) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b'));
  wire.transmit();
  wire.receive("+OK\n");
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
  wire.close();
  TEST_ASSERT_EQUAL(2U, wire.heard.size());
  for (const auto& heard : wire.heard) {
    TEST_ASSERT_EQUAL(Status::transport_closed, heard.outcome);
    TEST_ASSERT_FALSE(heard.nothing_ran);
  }
  TEST_ASSERT_EQUAL(2U, wire.session.compensations_pending());
}

// ---- Deadlines and compensations ---------------------------------------------------------------------------------

// [rule 7] The detached request keeps its place; its compensation is right behind it, before anything else.
TEST(test_passed_deadline_should_detach_and_compensate_behind_on_the_same_connection) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "name", 'a'));
  wire.transmit();
  wire.now = start + 1s;
  TEST_ASSERT_EQUAL(wire.now, wire.session.poll_timeout());
  wire.session.handle_timeout(wire.now);
  wire.poll();
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_EQUAL(Status::timed_out, wire.heard[0].outcome);
  TEST_ASSERT_FALSE(wire.heard[0].nothing_ran);
  wire.submit("*1\r\n$4\r\nNEXT\r\n", acquire_of(&lock_b, "name", 'b', start + 5s));
  wire.transmit();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\na\r\n" + compensation_of("name", 'a') + "*1\r\n$4\r\nNEXT\r\n", wire.sent);
  // The late reply is consumed by nobody; the compensation's goes to its requester, the next one's to the next.
  wire.receive("+OK\r\n:1\r\n$-1\r\n");
  TEST_ASSERT_EQUAL(3U, wire.heard.size());
  TEST_ASSERT_TRUE(wire.heard[1].tag.operation == Operation::compensate);
  TEST_ASSERT_EQUAL(":1", wire.heard[1].value);
  TEST_ASSERT_TRUE(wire.heard[2].tag.requester == &lock_b);
  TEST_ASSERT_EQUAL("null", wire.heard[2].value);
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

// [rule 11] Nobody wants the reply to what was given up; but one that can be none means that every later one is another's.
TEST(test_reply_of_another_shape_to_what_was_given_up_should_close_the_connection) {
  struct {
    Operation operation;
    const char* reply;
    bool fits;
  } const rows[] = {{Operation::acquire, "+OK\r\n", true},  {Operation::acquire, "$-1\r\n", true},
                    {Operation::acquire, ":1\r\n", false},  {Operation::release, ":1\r\n", true},
                    {Operation::release, ":0\r\n", true},   {Operation::release, "$-1\r\n", false},
                    {Operation::release, "+OK\r\n", false}, {Operation::release, "-ERR no\r\n", true}};
  for (const auto& row : rows) {
    TEST_MESSAGE(row.reply);
    Wire wire;
    wire.connect();
    Request request = acquire_of(&lock_a, "a", 'a');
    request.tag.operation = row.operation;
    wire.submit("*1\r\n$1\r\na\r\n", request);
    wire.transmit();
    wire.session.give_up(&lock_a, Status::cancelled, wire.now);
    wire.receive(row.reply);
    TEST_ASSERT_EQUAL(row.fits ? SessionState::ready : SessionState::failed, wire.session.state());
    if (!row.fits) TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
    TEST_ASSERT_EQUAL(1U,
                      wire.session.compensations_pending());  // Kept, for the next connection where this one is closed.
  }
}

// [rule 7] An acquire reserves the slot of its compensation; without one it is not sent.
TEST(test_acquire_should_not_be_sent_without_a_slot_for_its_compensation) {
  Wire wire;
  wire.connect();
  for (std::size_t index = 0; index < compensations_max; ++index) {
    TEST_ASSERT_TRUE(wire.session.may_compensate());
    wire.submit("*1\r\n$1\r\na\r\n", posted_release_of(&lock_a, "a", static_cast<char>('!' + index)));
  }
  TEST_ASSERT_FALSE(wire.session.may_compensate());
  TEST_ASSERT_TRUE(wire.session.open(true).request == nullptr);
  TEST_ASSERT_TRUE(wire.session.open(false).request != nullptr);
  wire.receive(":1\r\n");
  TEST_ASSERT_TRUE(wire.session.may_compensate());
  TEST_ASSERT_TRUE(wire.session.open(true).request != nullptr);
}

// [rule 14] So many locks may be let go of in one breath; and eight, however long their keys are.
TEST(test_posted_releases_should_find_as_many_places_as_their_keys_leave_bytes) {
  const struct {
    std::size_t key_size;
    std::size_t places;
  } rows[] = {
      {1, compensations_max}, {77, compensations_max}, {78, compensations_max - 1}, {200, 9}, {key_size_max, 8}};
  for (const auto& row : rows) {
    Wire wire;
    wire.connect();
    std::size_t places = 0;
    for (; wire.session.open(true).request != nullptr; ++places) {
      const std::string key(row.key_size, 'k');
      wire.submit("*1\r\n$1\r\na\r\n", posted_release_of(&lock_a, key.c_str(), static_cast<char>('!' + places)));
      wire.transmit();
    }
    TEST_ASSERT_EQUAL(row.places, places);
    TEST_ASSERT_EQUAL(places, wire.session.compensations_pending());
    for (std::size_t index = 0; index < places; ++index) wire.receive(":1\r\n");
    TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
    TEST_ASSERT_TRUE(wire.session.may_compensate());
  }
}

// [rule 14] A server that refuses one for minutes answers others: their bytes are free again.
TEST(test_compensation_that_waits_should_take_no_more_room_than_its_own) {
  Wire wire;
  wire.connect();
  const std::string key(key_size_max, 'k');
  wire.submit("*1\r\n$1\r\na\r\n", posted_release_of(&lock_a, "refused", 'r'));
  wire.receive("-BUSY Redis is busy running a script.\r\n");
  for (int post = 0; post < 20; ++post) {
    TEST_ASSERT_TRUE(wire.session.may_compensate());
    wire.submit("*1\r\n$1\r\na\r\n", posted_release_of(&lock_b, key.c_str(), 'p'));
    wire.receive(":1\r\n");
  }
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
}

// Each keeps its own key and token, whichever of the others are done with, and in whatever order.
TEST(test_compensations_should_keep_their_bytes_when_others_are_freed) {
  std::mt19937 random(20);
  for (int round = 0; round < 200; ++round) {
    Wire wire;
    wire.connect();
    struct Posted {
      std::string key;
      char digit;
    };
    std::vector<Posted> waiting;
    for (int turn = 0; turn < 8; ++turn) {
      const std::size_t more = random() % 5;
      for (std::size_t index = 0; index < more && wire.session.open(true).request != nullptr; ++index) {
        const std::string key = std::to_string(turn * 10 + static_cast<int>(index)) + std::string(random() % 100, 'k');
        const char digit = static_cast<char>('!' + random() % 60);
        wire.submit("*1\r\n$1\r\na\r\n", posted_release_of(&lock_a, key.c_str(), digit));
        waiting.push_back({key, digit});
      }
      wire.transmit();
      // All are in flight, in their order, or wait to be sent again.
      const std::size_t answers = wire.session.in_flight();
      std::vector<Posted> left;
      wire.sent.clear();
      for (std::size_t index = 0; index < answers; ++index) {
        const bool refused = random() % 3 == 0;
        wire.receive(refused ? "-BUSY Redis is busy running a script.\r\n" : ":1\r\n");
        const std::size_t place = waiting.size() - answers + index;
        if (refused) left.push_back(waiting[place]);
      }
      waiting = left;
      TEST_ASSERT_EQUAL(waiting.size(), wire.session.compensations_pending());
      wire.close();
      wire.connect();
      wire.now = wire.now + 3s;  // What was refused is sent again.
      wire.transmit();
      for (const Posted& posted : waiting)
        TEST_ASSERT_TRUE(wire.sent.find(compensation_of(posted.key, posted.digit)) != std::string::npos);
      TEST_ASSERT_EQUAL(waiting.size(), wire.session.in_flight());
      // As the queue has them.
      std::sort(waiting.begin(), waiting.end(), [&](const Posted& left_one, const Posted& right_one) {
        return wire.sent.find(compensation_of(left_one.key, left_one.digit)) <
               wire.sent.find(compensation_of(right_one.key, right_one.digit));
      });
    }
  }
}

// More of them than the send buffer takes are due again: what finds no room waits for the socket, and for no timer.
TEST(test_deferred_compensations_without_room_should_ask_for_no_timer) {
  Wire wire;
  wire.connect();
  const std::string key(77, 'k');
  for (std::size_t index = 0; index < compensations_max; ++index) {
    Compensation compensation = compensation_for(key.c_str(), static_cast<char>('!' + index));
    compensation.kind = &reentrant_kind;
    TEST_ASSERT_EQUAL(Status::ok, wire.session.compensate({}, compensation));
  }
  wire.transmit();
  for (std::size_t index = 0; index < compensations_max; ++index)
    wire.receive("-BUSY Redis is busy running a script.\r\n");
  wire.now = wire.now + 3s;
  (void)wire.session.poll_transmit(wire.now);  // The socket takes nothing.
  TEST_ASSERT_TRUE(wire.session.in_flight() < compensations_max);
  TEST_ASSERT_TRUE(wire.session.poll_timeout() > wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL(compensations_max, wire.session.in_flight());
}

// [rule 7] A compensation that finds no room in the send buffer is overtaken by nobody.
TEST(test_nothing_should_overtake_a_compensation_that_waits_for_room) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  const std::string filler = "*2\r\n$4\r\nECHO\r\n" + bulk(std::string(transmit_size_max - 200, 'x'));
  wire.submit(filler, {});
  wire.session.give_up(&lock_a, Status::timed_out, wire.now);
  TEST_ASSERT_TRUE(wire.session.open(false).request == nullptr);
  wire.transmit();
  TEST_ASSERT_TRUE(wire.session.open(false).request != nullptr);
  wire.submit("*1\r\n$4\r\nNEXT\r\n", {});
  wire.transmit();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\na\r\n" + filler + compensation_of("a", 'a') + "*1\r\n$4\r\nNEXT\r\n", wire.sent);
}

// [rule 7] Nor without a place in the queue for the compensation behind it.
TEST(test_acquire_should_not_be_sent_without_a_place_for_its_compensation_in_the_queue) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  for (std::size_t index = 0; index < in_flight_max - 3; ++index) wire.submit("*1\r\n$4\r\nPING\r\n", {});
  TEST_ASSERT_TRUE(wire.session.open(true).request == nullptr);
  wire.submit("*1\r\n$4\r\nPING\r\n", {});
  TEST_ASSERT_TRUE(wire.session.open(false).request == nullptr);
  wire.transmit();
  wire.sent.clear();
  wire.session.give_up(&lock_a, Status::timed_out, wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL(compensation_of("a", 'a'), wire.sent);
}

// One that no request had a place for waits for the queue.
TEST(test_compensation_should_wait_while_the_queue_is_full) {
  Wire wire;
  wire.connect();
  for (std::size_t index = 0; index < in_flight_max; ++index) wire.submit("*1\r\n$4\r\nPING\r\n", {});
  wire.transmit();
  wire.sent.clear();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
  wire.transmit();
  TEST_ASSERT_EQUAL("", wire.sent);
  wire.receive("+PONG\r\n");
  wire.transmit();
  TEST_ASSERT_EQUAL(compensation_of("name", 'a'), wire.sent);
}

TEST(test_queue_should_be_bounded) {
  Wire wire;
  wire.connect();
  std::size_t submitted = 0;
  for (; wire.session.open(false).request != nullptr && submitted < 1000; ++submitted)
    wire.submit("*1\r\n$4\r\nPING\r\n", {});
  TEST_ASSERT_EQUAL(in_flight_max, submitted);
}

// What a short write left goes to the front, so that none of the room is lost.
TEST(test_request_behind_a_short_write_should_follow_it_in_the_whole_room) {
  const std::string first = "*1\r\n$5\r\nfirst\r\n";
  const std::string second = "*1\r\n$6\r\nsecond\r\n";
  for (std::size_t taken = 1; taken < first.size(); ++taken) {
    Wire wire;
    wire.connect();
    wire.sent.clear();
    wire.submit(first, {});
    wire.transmit(taken);
    TEST_ASSERT_EQUAL(taken, wire.sent.size());
    TEST_ASSERT_EQUAL(transmit_size_max - (first.size() - taken), wire.session.open(false).space.size);
    wire.submit(second, {});
    wire.transmit();
    TEST_ASSERT_EQUAL(first + second, wire.sent);
  }
}

TEST(test_short_write_of_a_full_buffer_should_lose_nothing) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  const std::string filler = "*2\r\n$4\r\nECHO\r\n" + bulk(std::string(transmit_size_max - 200, 'x'));
  const std::string next = "*1\r\n$4\r\nNEXT\r\n";
  wire.submit(filler, acquire_of(&lock_a, "a", 'a'));
  wire.transmit(transmit_size_max / 2);
  wire.submit(next, acquire_of(&lock_b, "b", 'b'));
  wire.receive("+OK\r\n+OK\r\n");
  TEST_ASSERT_EQUAL(filler + next, wire.sent);
  TEST_ASSERT_EQUAL(2U, wire.heard.size());
  TEST_ASSERT_TRUE(wire.heard[0].tag.requester == &lock_a);
  TEST_ASSERT_TRUE(wire.heard[1].tag.requester == &lock_b);
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

// A request that is longer than the send buffer: its bytes are the driver's, its place in the queue is as any other's.
TEST(test_request_that_the_driver_sends_should_keep_its_place_in_the_queue) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  wire.look();
  const Session::Place place = wire.session.open(false);
  *place.request = {.tag = {.requester = &lock_b}, .deadline = start + 1s};
  holdfast::testing::Recorder recorder;
  wire.session.set_witness(&recorder);
  wire.session.commit_apart(*place.request, 5000, wire.now);
  TEST_ASSERT_EQUAL(5000, recorder.sent);
  TEST_ASSERT_EQUAL("", recorder.take());
  wire.session.set_witness(nullptr);
  wire.check();
  TEST_ASSERT_FALSE(wire.session.unsent());
  TEST_ASSERT_EQUAL(2U, wire.session.in_flight());
  wire.submit("*1\r\n$4\r\nNEXT\r\n", acquire_of(&lock_a, "b", 'b'));
  wire.receive("+OK\r\n:1\r\n+PONG\r\n");
  TEST_ASSERT_EQUAL(3U, wire.heard.size());
  TEST_ASSERT_TRUE(wire.heard[1].tag.requester == &lock_b);
  TEST_ASSERT_EQUAL(":1", wire.heard[1].value);
  TEST_ASSERT_EQUAL("+PONG", wire.heard[2].value);
}

// [rule 6] Whatever of it has left, it may have run; and its deadline is one.
TEST(test_request_that_the_driver_sends_should_be_unknown_when_its_reply_does_not_come) {
  for (const bool closes : {true, false}) {
    Wire wire;
    wire.connect();
    wire.look();
    const Session::Place place = wire.session.open(false);
    *place.request = {.tag = {.requester = &lock_b}, .deadline = start + 1s};
    wire.session.commit_apart(*place.request, 20, wire.now);  // However short it is.
    wire.check();
    TEST_ASSERT_EQUAL(start + 1s, wire.session.poll_timeout());
    wire.now = start + 1s;
    if (closes)
      wire.close();
    else
      wire.session.handle_timeout(wire.now);
    wire.poll();
    TEST_ASSERT_EQUAL(1U, wire.heard.size());
    TEST_ASSERT_EQUAL(closes ? Status::transport_closed : Status::timed_out, wire.heard[0].outcome);
    TEST_ASSERT_FALSE(wire.heard[0].nothing_ran);
  }
}

// [rule 8] What does not fit closes the connection with a sentence that says so. What was asked is unknown and taken back, the
// first thing on the next connection.
TEST(test_reply_that_does_not_fit_should_close_the_connection_and_lose_nothing) {
  std::string many = "*" + std::to_string(client_elements_max) + "\r\n";
  for (std::size_t index = 0; index < client_elements_max; ++index) many += ":1\r\n";
  std::string long_one = "*4\r\n";
  for (int index = 0; index < 4; ++index) long_one += bulk(std::string(client_reply_size_max / 4, 'x'));
  for (const std::string& reply : {many, long_one, bulk(std::string(bulk_size_max + 1, 'x'))}) {
    Wire wire;
    wire.connect();
    wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
    wire.receive(reply);
    TEST_ASSERT_TRUE(wire.session.state() == SessionState::failed);
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
    TEST_ASSERT_FALSE(wire.session.failure_text().empty());
    wire.close();
    TEST_ASSERT_EQUAL(1U, wire.heard.size());
    TEST_ASSERT_EQUAL(Status::transport_closed, wire.heard[0].outcome);
    TEST_ASSERT_FALSE(wire.heard[0].nothing_ran);
    wire.sent.clear();
    wire.connect();
    TEST_ASSERT_TRUE(wire.sent.ends_with(compensation_of("a", 'a')));
  }
}

// The longest that is asked for on such a connection does fit.
TEST(test_longest_replies_should_fit) {
  Wire wire;
  wire.connect();
  const std::string info = "*7\r\n" + bulk("string") + ":-1\r\n" + bulk(std::string(128, 'o')) +
                           bulk(std::string(20, '9')) + ":64\r\n" + bulk(std::string(16, 'm')) +
                           bulk(std::string(20, '9'));
  for (const std::string& reply :
       {info, bulk(std::string(bulk_size_max, 'x')), "+" + std::string(line_size_max, 'x') + "\r\n"}) {
    wire.submit("*1\r\n$1\r\na\r\n", {.tag = {.requester = &lock_a}});
    wire.receive(reply);
    TEST_ASSERT_TRUE(wire.session.ready());
  }
  TEST_ASSERT_EQUAL(3U, wire.heard.size());
}

TEST(test_timeout_should_be_that_of_the_first_deadline) {
  for (const bool ascending : {true, false}) {
    Wire wire;
    wire.connect();
    for (const Duration after : {ascending ? 1s : 3s, ascending ? 3s : 1s})
      wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a', start + after));
    TEST_ASSERT_EQUAL(start + 1s, wire.session.poll_timeout());
  }
}

TEST(test_passed_deadline_should_leave_later_ones_and_what_was_posted) {
  Wire wire;
  wire.connect();
  Request posted = acquire_of(&lock_a, "posted", 'p');
  posted.tag.operation = Operation::release;
  posted.posted = true;
  wire.submit("*1\r\n$1\r\np\r\n", posted);
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a', start + 1s));
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b', start + 3s));
  wire.transmit();
  wire.now = start + 1s;
  wire.session.handle_timeout(wire.now);
  wire.poll();
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_TRUE(wire.heard[0].tag.requester == &lock_a);
  TEST_ASSERT_EQUAL(Status::timed_out, wire.heard[0].outcome);
  TEST_ASSERT_EQUAL("null", wire.heard[0].value);
  TEST_ASSERT_EQUAL(start + 3s, wire.session.poll_timeout());
  wire.receive(":1\r\n+OK\r\n+OK\r\n:1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  TEST_ASSERT_EQUAL(0U, wire.session.in_flight());
}

// Of a connection that is gone no byte and no deadline is left.
TEST(test_close_should_leave_nothing_to_wait_for) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(nullptr, "a", 'a', start + 1s));
  wire.transmit(3);
  TEST_ASSERT_TRUE(wire.session.unsent());
  wire.session.handle_closed();
  TEST_ASSERT_FALSE(wire.session.unsent());
  TEST_ASSERT_EQUAL(Instant::max(), wire.session.poll_timeout());
  wire.session.handle_connected(start, start + 2s);
  TEST_ASSERT_EQUAL(start + 2s, wire.session.poll_timeout());
  wire.receive(good_handshake(8));
  wire.receive(":1\r\n:0\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.in_flight());
  TEST_ASSERT_EQUAL(Instant::max(), wire.session.poll_timeout());
}

TEST(test_reply_should_say_nothing_of_the_one_before_it) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  const std::string bytes = "+OK\r\n";
  std::memcpy(wire.session.receive_space().data, bytes.data(), bytes.size());
  wire.session.handle_received(bytes.size(), wire.now);
  Reply reply;
  reply.outcome = Status::not_connected;
  reply.nothing_ran = true;
  TEST_ASSERT_TRUE(wire.session.poll_reply(reply, wire.now));
  TEST_ASSERT_EQUAL(Status::ok, reply.outcome);
  TEST_ASSERT_FALSE(reply.nothing_ran);
}

// Whatever the caller's Reply held before.
TEST(test_lost_reply_should_have_no_value) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.session.handle_closed();
  Reply reply;
  reply.value = RespValue::make_integer(1);
  TEST_ASSERT_TRUE(wire.session.poll_reply(reply, wire.now));
  TEST_ASSERT_EQUAL(Status::not_connected, reply.outcome);
  TEST_ASSERT_TRUE(reply.value.is(RespKind::null));
}

// [rule 9] What failed before its first byte left has not run; what had begun to leave is unknown.
TEST(test_close_should_tell_unsent_from_unknown) {
  Wire wire;
  wire.connect();
  const std::string request = "*1\r\n$4\r\nPING\r\n";
  wire.submit(request, acquire_of(&lock_a, "a", 'a'));
  wire.submit(request, acquire_of(&lock_b, "b", 'b'));
  wire.transmit(request.size() + 1);
  wire.submit(request, acquire_of(&lock_a, "c", 'c'));
  wire.close();
  TEST_ASSERT_EQUAL(3U, wire.heard.size());
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.heard[0].outcome);
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.heard[1].outcome);
  TEST_ASSERT_EQUAL(Status::not_connected, wire.heard[2].outcome);
  TEST_ASSERT_TRUE(wire.heard[2].nothing_ran);
  TEST_ASSERT_EQUAL(2U, wire.session.compensations_pending());
}

// [rule 8] After a reconnect to the same run id: CLIENT KILL of the old connection, the compensations, then the rest.
TEST(test_reconnect_should_kill_the_old_connection_and_compensate_first) {
  Wire wire;
  wire.connect(good_handshake(7));
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "name", 'a'));
  wire.transmit();
  wire.close();
  wire.sent.clear();
  wire.connect(good_handshake(8));
  wire.submit("*1\r\n$4\r\nNEXT\r\n", acquire_of(&lock_b, "name", 'b'));
  wire.transmit();
  const std::string script(scripts::server_identity.text.string_view());
  const std::string handshake =
      "*2\r\n" + bulk("CLIENT") + bulk("ID") + "*3\r\n" + bulk("EVAL") + bulk(script) + bulk("0");
  TEST_ASSERT_EQUAL(handshake + "*4\r\n" + bulk("CLIENT") + bulk("KILL") + bulk("ID") + bulk("7") +
                        compensation_of("name", 'a') + "*1\r\n$4\r\nNEXT\r\n",
                    wire.sent);
  wire.receive(":1\r\n:0\r\n+OK\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  TEST_ASSERT_TRUE(wire.heard.back().tag.requester == &lock_b);
}

// It may be gone already: that is no failure.
TEST(test_refused_kill_should_be_no_failure) {
  Wire wire;
  wire.connect(good_handshake(7));
  wire.close();
  wire.sent.clear();
  wire.connect(good_handshake(8));
  TEST_ASSERT_TRUE(wire.sent.find("KILL") != std::string::npos);
  wire.receive("-ERR No such client\r\n");
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_TRUE(wire.session.failure_text().empty());
  TEST_ASSERT_EQUAL(0U, wire.session.in_flight());
}

TEST(test_kept_compensation_should_stand_in_the_queue_when_the_handshake_is_done) {
  Wire wire;
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
  wire.session.handle_connected(start, start + 2s);
  TEST_ASSERT_TRUE(wire.session.open(false).request == nullptr);
  wire.receive(good_handshake());
  TEST_ASSERT_TRUE(wire.session.open(false).request != nullptr);
  TEST_ASSERT_EQUAL(1U, wire.session.in_flight());
}

// The kill of a connection may be lost with its successor: what the first one left would run after its compensation.
TEST(test_reconnect_should_kill_every_connection_whose_kill_was_not_answered) {
  const auto kill = [](const std::string& id) {
    return "*4\r\n" + bulk("CLIENT") + bulk("KILL") + bulk("ID") + bulk(id);
  };
  Wire wire;
  wire.connect(good_handshake(7));
  wire.close();
  wire.connect(good_handshake(8));
  wire.close();
  wire.sent.clear();
  wire.connect(good_handshake(9));
  TEST_ASSERT_TRUE(wire.sent.ends_with(kill("7") + kill("8")));
  wire.receive(":1\r\n");  // Of 7; 8 is not answered.
  wire.close();
  wire.sent.clear();
  wire.connect(good_handshake(10));
  TEST_ASSERT_TRUE(wire.sent.find(kill("7")) == std::string::npos);
  TEST_ASSERT_TRUE(wire.sent.ends_with(kill("8") + kill("9")));
  wire.receive(":0\r\n-NOPERM no\r\n");
  wire.close();
  wire.sent.clear();
  wire.connect(good_handshake(11));
  TEST_ASSERT_TRUE(wire.sent.ends_with(kill("10")));
  TEST_ASSERT_TRUE(wire.sent.find(kill("9")) == std::string::npos);
}

TEST(test_reconnect_should_kill_no_more_than_its_last_predecessors) {
  Wire wire;
  for (int id = 7; id < 20; ++id) {
    wire.sent.clear();
    wire.connect(good_handshake(id));
    wire.close();
  }
  std::size_t kills = 0;
  for (std::size_t at = wire.sent.find("KILL"); at != std::string::npos; at = wire.sent.find("KILL", at + 1)) ++kills;
  TEST_ASSERT_EQUAL(predecessors_max, kills);
  TEST_ASSERT_TRUE(wire.sent.ends_with(bulk("KILL") + bulk("ID") + bulk("18")));
}

// A client id of one server means somebody else on another.
TEST(test_reconnect_to_another_server_should_kill_nobody) {
  Wire wire;
  wire.connect(good_handshake(7));
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "name", 'a'));
  wire.transmit();
  wire.close();
  wire.sent.clear();
  wire.connect(good_handshake(8, std::string(40, 'e')));
  TEST_ASSERT_TRUE(wire.sent.find("KILL") == std::string::npos);
  TEST_ASSERT_TRUE(wire.sent.find(compensation_of("name", 'a')) != std::string::npos);
}

// Nor where it was never told how the server calls it.
TEST(test_reconnect_without_a_client_id_should_kill_nobody) {
  Wire wire;
  wire.connect("-NOPERM this user has no permissions to run the 'client|id' command\r\n" +
               identity_reply(run_id, "7.0.15"));
  TEST_ASSERT_TRUE(wire.session.identity().run_id_known);
  wire.close();
  wire.sent.clear();
  wire.connect(good_handshake(8));
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_TRUE(wire.sent.find("KILL") == std::string::npos);
}

TEST(test_compensation_that_was_lost_should_be_sent_again) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "name", 'a'));
  wire.transmit();
  for (int round = 0; round < 3; ++round) {
    wire.close();
    wire.sent.clear();
    wire.connect();
    TEST_ASSERT_TRUE(wire.sent.find(compensation_of("name", 'a')) != std::string::npos);
    TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  }
  wire.receive(":1\r\n");  // CLIENT KILL is not sent for the same client id.
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

TEST(test_compensation_refused_for_the_moment_should_be_tried_again_later) {
  Wire wire;
  wire.connect();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
  wire.transmit();
  wire.sent.clear();
  wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  wire.transmit();
  TEST_ASSERT_EQUAL("", wire.sent);                              // Not at once,
  TEST_ASSERT_TRUE(wire.session.open(true).request != nullptr);  // and nobody waits for it.
  wire.now = wire.session.poll_timeout();
  wire.session.handle_timeout(wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL(compensation_of("name", 'a'), wire.sent);
  wire.receive(":1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

TEST(test_only_refusals_that_pass_by_themselves_should_be_tried_again) {
  const struct {
    const char* refusal;
    bool passes;
  } rows[] = {{"LOADING Redis is loading the dataset in memory", true},
              {"BUSY Redis is busy running a script.", true},
              {"READONLY You can't write against a read only replica.", true},
              {"MASTERDOWN Link with MASTER is down", true},
              {"NOREPLICAS Not enough good replicas to write.", true},
              {"MISCONF Errors writing to the AOF file", true},
              {"OOM command not allowed when used memory > 'maxmemory'.", true},
              {"TRYAGAIN Multiple keys request during rehashing of slot", true},
              {"CLUSTERDOWN The cluster is down", true},
              {"NOPERM this user has no permissions to run the 'eval' command", false},
              {"WRONGTYPE Operation against a key holding the wrong kind of value", false},
              {"MOVED 1 127.0.0.1:7000", true},
              {"NOAUTH Authentication required.", false},
              {"ERR unknown command 'EVAL'", false}};
  for (const auto& row : rows) {
    Wire wire;
    wire.connect();
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
    wire.receive("-" + std::string(row.refusal) + "\r\n");
    TEST_ASSERT_EQUAL(row.passes ? 1U : 0U, wire.session.compensations_pending());
    TEST_ASSERT_EQUAL(row.passes ? start + 2s : Instant::max(), wire.session.poll_timeout());
  }
}

// Two seconds apart, for two minutes.
TEST(test_compensation_should_be_tried_sixty_times) {
  Wire wire;
  for (int round = 0; round < 2; ++round) {
    wire.connect();
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
    wire.transmit();
    int attempts = 0;
    while (wire.session.compensations_pending() != 0) {
      wire.sent.clear();
      wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
      ++attempts;
      if (wire.session.compensations_pending() == 0) break;
      TEST_ASSERT_EQUAL(wire.now + 2s, wire.session.poll_timeout());
      wire.now = wire.now + 2s;
      wire.session.handle_timeout(wire.now);
      wire.transmit();
      TEST_ASSERT_EQUAL(compensation_of("name", 'a'), wire.sent);
    }
    TEST_ASSERT_EQUAL(60, attempts);
    wire.close();
  }
}

TEST(test_compensation_without_a_place_should_be_refused) {
  Wire wire;
  for (std::size_t index = 0; index < compensations_max; ++index)
    TEST_ASSERT_EQUAL(Status::ok, wire.session.compensate({&lock_a, 1, Operation::compensate},
                                                          compensation_for("name", static_cast<char>('a' + index))));
  TEST_ASSERT_EQUAL(Status::too_many_requests,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'z')));
  TEST_ASSERT_EQUAL(compensations_max, wire.session.compensations_pending());
}

// In whatever place of the queue it stands, and whatever stood there before.
TEST(test_compensation_should_not_be_taken_for_the_native_release_before_it) {
  Wire wire;
  wire.connect(":1\r\n" + identity_reply(run_id, "7.2.4", "9.0.1"));
  for (std::size_t index = 0; index < in_flight_max; ++index) {
    Request request = acquire_of(&lock_a, "a", 'a');
    request.tag.operation = Operation::release;
    request.repeatable = true;
    wire.submit("*1\r\n$1\r\nr\r\n", request);
    wire.receive(":1\r\n");
  }
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
  wire.receive("-NOPERM this user has no permissions to run the 'eval' command\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::delifeq);
}

TEST(test_compensation_refused_for_good_should_be_dropped) {
  Wire wire;
  wire.connect();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
  wire.transmit();
  wire.receive("-NOPERM this user has no permissions to run the 'eval' command\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  // That it did nothing says nothing of what it was to take back.
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_EQUAL(Status::no_permission, wire.heard[0].outcome);
  TEST_ASSERT_FALSE(wire.heard[0].nothing_ran);
}

// [rule 11] Default-deny holds for compensations, too, and they are kept.
TEST(test_compensation_answered_by_an_odd_shape_should_fail_and_be_kept) {
  for (const std::string odd : {"+OK\r\n", ":-77\r\n", ":2\r\n", "$1\r\n1\r\n", "*1\r\n:1\r\n"}) {
    Wire wire;
    wire.connect();
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
    wire.transmit();
    wire.receive(odd);
    TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
    TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  }
}

TEST(test_native_posted_release_that_is_refused_should_be_followed_by_its_compensation) {
  Wire wire;
  wire.connect(":1\r\n" + identity_reply(run_id, "7.2.4", "9.0.1"));
  wire.sent.clear();
  Request request = acquire_of(&lock_a, "name", 'a');
  request.tag.operation = Operation::release;
  request.posted = true;
  request.repeatable = true;
  wire.submit("*1\r\n$1\r\nr\r\n", request);
  wire.transmit();
  wire.receive("-NOPERM this user has no permissions to run the 'delifeq' command\r\n");
  wire.transmit();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\nr\r\n" + compensation_of("name", 'a'), wire.sent);
  TEST_ASSERT_EQUAL(ByteView("NOPERM this user has no permissions to run the 'delifeq' command"),
                    wire.session.failure_text());
  TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::none);
}

TEST(test_native_posted_release_that_is_answered_should_be_over) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  Request request = acquire_of(&lock_a, "name", 'a');
  request.tag.operation = Operation::release;
  request.posted = true;
  request.repeatable = true;
  wire.submit("*1\r\n$1\r\nr\r\n", request);
  wire.receive(":1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  wire.transmit();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\nr\r\n", wire.sent);
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_EQUAL(Status::ok, wire.heard[0].outcome);
}

// The owner of a posted release may go: its release goes on, and is repeated if the connection goes, too.
TEST(test_posted_release_should_outlive_its_requester) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  Request request = acquire_of(&lock_a, "name", 'a');
  request.tag.operation = Operation::release;
  request.posted = true;
  wire.submit("*1\r\n$1\r\nr\r\n", request);
  wire.transmit();
  wire.session.abandon(&lock_a, wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\nr\r\n", wire.sent);
  wire.close();
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
  wire.sent.clear();
  wire.connect(good_handshake(8));
  TEST_ASSERT_TRUE(wire.sent.find(compensation_of("name", 'a')) != std::string::npos);
  wire.receive(":1\r\n:1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

TEST(test_abandoned_acquire_should_be_compensated_and_told_to_nobody) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "name", 'a'));
  wire.transmit();
  wire.session.abandon(&lock_a, wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\na\r\n" + compensation_of("name", 'a'), wire.sent);
  wire.receive("+OK\r\n:1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

// A request that nobody waits for is told to nobody, however it ends.
TEST(test_request_without_a_requester_should_be_told_to_nobody) {
  Wire wire;
  wire.connect();
  for (int round = 0; round < 2; ++round) wire.submit("*1\r\n$1\r\na\r\n", acquire_of(nullptr, "a", 'a'));
  wire.receive("+OK\r\n");
  wire.now = start + 1s;
  wire.session.handle_timeout(wire.now);
  wire.poll();
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(nullptr, "b", 'b'));
  wire.close();
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
}

TEST(test_requester_that_goes_between_close_and_poll_should_hear_nothing) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b'));
  wire.transmit();
  wire.session.handle_closed();
  wire.session.abandon(&lock_a, wire.now);
  wire.poll();
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_TRUE(wire.heard[0].tag.requester == &lock_b);
  wire.connect(good_handshake(8));
  TEST_ASSERT_TRUE(wire.session.ready());
}

TEST(test_requester_that_goes_should_silence_only_its_own_compensations) {
  Wire wire;
  wire.connect();
  for (int* const lock : {&lock_a, &lock_b})
    TEST_ASSERT_EQUAL(Status::ok, wire.session.compensate({lock, 1, Operation::compensate},
                                                          compensation_for("name", lock == &lock_a ? 'a' : 'b')));
  wire.session.abandon(&lock_a, wire.now);
  TEST_ASSERT_TRUE(wire.session.open(false).request != nullptr);  // They stand in the queue already.
  wire.receive(":1\r\n:1\r\n");
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_TRUE(wire.heard[0].tag.requester == &lock_b);
}

TEST(test_cancel_should_give_up_only_its_own_requests) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b'));
  wire.transmit();
  wire.session.give_up(&lock_a, Status::cancelled, wire.now);
  TEST_ASSERT_TRUE(wire.session.open(false).request != nullptr);  // The compensation stands behind them already.
  wire.poll();
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_EQUAL(Status::cancelled, wire.heard[0].outcome);
  wire.receive("+OK\r\n+OK\r\n");
  TEST_ASSERT_EQUAL(2U, wire.heard.size());
  TEST_ASSERT_TRUE(wire.heard[1].tag.requester == &lock_b);
}

// [rule 8] A stall closes the connection.
TEST(test_stall_should_close_the_connection) {
  Wire wire({.stall_timeout = 5s});
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  wire.now = start + 1s;
  wire.session.handle_timeout(wire.now);
  wire.poll();
  TEST_ASSERT_TRUE(wire.session.ready());
  wire.now = start + 5s;
  wire.session.handle_timeout(wire.now);
  TEST_ASSERT_EQUAL(Status::timed_out, wire.session.failure());
}

TEST(test_an_idle_connection_should_not_count_as_stalled) {
  Wire wire({.stall_timeout = 5s});
  wire.connect();
  TEST_ASSERT_EQUAL(Instant::max(), wire.session.poll_timeout());
  wire.now = start + 1h;
  wire.session.handle_timeout(wire.now);
  TEST_ASSERT_TRUE(wire.session.ready());
}

// Nor does what was quiet before a request count against it.
TEST(test_stall_should_count_from_the_request_that_waits) {
  Wire wire({.stall_timeout = 5s});
  wire.connect();
  wire.now = start + 1h;
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a', Instant::max()));
  wire.transmit();
  TEST_ASSERT_EQUAL(start + 1h + 5s, wire.session.poll_timeout());
  wire.now = start + 1h + 4s;
  wire.session.handle_timeout(wire.now);
  TEST_ASSERT_TRUE(wire.session.ready());
}

TEST(test_stall_should_count_from_the_last_sign_of_life) {
  Wire wire({.stall_timeout = 5s});
  wire.connect();
  for (int round = 0; round < 2; ++round)
    wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a', Instant::max()));
  wire.now = start + 3s;
  wire.receive("+OK\r\n");
  TEST_ASSERT_EQUAL(start + 8s, wire.session.poll_timeout());
}

TEST(test_refused_native_delete_should_not_be_used_again) {
  for (const std::string refusal : {"NOPERM this user has no permissions to run the 'delifeq' command",
                                    "ERR unknown command 'DELIFEQ', with args beginning with: "}) {
    Wire wire;
    wire.connect(":1\r\n" + identity_reply(run_id, "7.2.4", "9.0.1"));
    for (const bool native : {false, true}) {
      TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::delifeq);
      Request request = acquire_of(&lock_a, "a", 'a');
      request.repeatable = native;
      wire.submit("*1\r\n$1\r\na\r\n", request);
      wire.receive("-" + refusal + "\r\n");
    }
    TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::none);
  }
}

// With the server's own words, and whether anything ran.
TEST(test_error_should_be_told_with_what_it_proves) {
  const struct {
    const char* text;
    Status outcome;
    bool nothing_ran;
  } rows[] = {{"LOADING Redis is loading the dataset in memory", Status::loading, true},
              {"ERR something else", Status::server_error, false}};
  Wire wire;
  wire.connect();
  for (const auto& row : rows) {
    wire.heard.clear();
    wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
    wire.receive("-" + std::string(row.text) + "\r\n");
    TEST_ASSERT_EQUAL(1U, wire.heard.size());
    TEST_ASSERT_EQUAL(row.outcome, wire.heard[0].outcome);
    TEST_ASSERT_EQUAL(row.nothing_ran, wire.heard[0].nothing_ran);
    TEST_ASSERT_EQUAL("-" + std::string(row.text), wire.heard[0].value);
    TEST_ASSERT_EQUAL(ByteView(std::string_view(row.text)), wire.session.failure_text());
    TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  }
}

// The server will be asked with the script's text: nothing has failed.
TEST(test_unknown_script_should_leave_no_words_of_a_failure) {
  Wire wire;
  wire.connect();
  for (const bool compensated : {false, true}) {
    Request request = acquire_of(&lock_a, "a", 'a');
    if (!compensated) request.compensation = nullptr;
    wire.submit("*1\r\n$1\r\na\r\n", request);
    wire.receive("-NOSCRIPT No matching script.\r\n");
    TEST_ASSERT_EQUAL(Status::no_script, wire.heard.back().outcome);
    TEST_ASSERT_TRUE(wire.heard.back().nothing_ran);
    TEST_ASSERT_TRUE(wire.session.failure_text().empty());
  }
}

// Other errors say nothing about the command: the next release may use it.
TEST(test_native_delete_should_be_used_on_after_an_error_that_is_no_refusal) {
  Wire wire;
  wire.connect(":1\r\n" + identity_reply(run_id, "7.2.4", "9.0.1"));
  for (const bool posted : {false, true}) {
    Request request = acquire_of(&lock_a, "a", 'a');
    request.tag.operation = Operation::release;
    request.repeatable = true;
    request.posted = posted;
    wire.submit("*1\r\n$1\r\na\r\n", request);
    wire.receive("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::delifeq);
  }
}

// The connection is cut at every byte of every reply of a conversation: each request is answered or unknown, never
// both, and every hold that may be left is taken back on the next connection.
TEST(test_conversation_should_survive_a_cut_at_every_byte) {
  const std::string replies = "+OK\r\n:1\r\n$-1\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n";
  const std::size_t ends[] = {5, 9, 14, replies.size()};
  for (std::size_t cut = 0; cut <= replies.size(); ++cut) {
    Wire wire;
    wire.connect(good_handshake(7));
    for (std::uint32_t index = 0; index < 4; ++index) {
      Request request = acquire_of(&lock_a, "name", static_cast<char>('a' + index));
      request.tag.generation = index;
      wire.submit("*1\r\n$1\r\na\r\n", request);
    }
    wire.transmit();
    wire.receive(replies.substr(0, cut));
    wire.close();
    TEST_ASSERT_EQUAL(4U, wire.heard.size());
    std::size_t lost = 0;
    for (std::uint32_t index = 0; index < 4; ++index) {
      TEST_ASSERT_EQUAL(index, wire.heard[index].tag.generation);
      const bool came = cut >= ends[index];
      TEST_ASSERT_EQUAL(came, wire.heard[index].outcome != Status::transport_closed);
      if (!came) ++lost;
    }
    TEST_ASSERT_EQUAL(lost, wire.session.compensations_pending());
    wire.sent.clear();
    wire.connect(good_handshake(8));
    for (std::uint32_t index = 0; index < 4; ++index) {
      const bool compensated =
          wire.sent.find(compensation_of("name", static_cast<char>('a' + index))) != std::string::npos;
      TEST_ASSERT_EQUAL(cut < ends[index], compensated);
    }
  }
}

TEST(test_forget_should_leave_nothing_to_send) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.session.fail(Status::protocol_error, "why not");
  wire.session.forget();
  TEST_ASSERT_TRUE(wire.session.state() == SessionState::closed);
  TEST_ASSERT_EQUAL(Status::not_connected, wire.session.failure());
  TEST_ASSERT_TRUE(wire.session.failure_text().empty());
  TEST_ASSERT_FALSE(wire.session.unsent());
  wire.poll();
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  wire.sent.clear();
  wire.session.handle_connected(start, start + 2s);
  TEST_ASSERT_EQUAL(start + 2s, wire.session.poll_timeout());  // Not the deadline of what was forgotten.
  wire.receive(good_handshake(9));
  wire.transmit();
  TEST_ASSERT_TRUE(wire.sent.find("KILL") == std::string::npos);
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_EQUAL(Instant::max(), wire.session.poll_timeout());
}

// The places of what was forgotten are free.
TEST(test_forgotten_compensation_should_not_be_sent_with_the_next) {
  Wire wire;
  wire.connect();
  for (const char digit : {'a', 'b'})
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", digit)));
  wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
  wire.session.forget();
  wire.connect();
  wire.sent.clear();
  for (std::size_t index = 0; index < compensations_max; ++index)
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'c')));
  wire.now = start + 1h;
  wire.transmit();
  for (const char digit : {'a', 'b'})
    TEST_ASSERT_TRUE(wire.sent.find(compensation_of("name", digit)) == std::string::npos);
  TEST_ASSERT_TRUE(wire.sent.find(compensation_of("name", 'c')) != std::string::npos);
}

// ---- Given up, and taken back by another ----------------------------------------------------------------------------

// What found no place when its owner went away, and what the server refuses for good.
TEST(test_compensations_that_are_given_up_should_be_counted) {
  Wire wire;
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_dropped());
  wire.session.count_dropped();
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_dropped());
  wire.connect();
  TEST_ASSERT_EQUAL(Status::ok, wire.session.compensate({}, compensation_for("name", 'c')));
  wire.transmit();
  wire.receive("-BUSY Redis is busy running a script.\r\n");  // It is tried again.
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_dropped());
  wire.now = wire.now + 3s;
  wire.transmit();
  wire.receive("-NOPERM this user has no permissions to run the 'eval' command\r\n");
  TEST_ASSERT_EQUAL(2U, wire.session.compensations_dropped());
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

// A lost acquire is taken back over another connection, and is still the first on the next one of its own.
TEST(test_compensations_should_be_taken_back_by_another_session_too) {
  for (const bool connected : {true, false}) {
    Wire lost;
    lost.connect(good_handshake(8));
    lost.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
    lost.transmit();
    lost.close();
    Wire other;
    if (connected) other.connect(good_handshake(9));
    other.sent.clear();
    other.session.take_back_for(lost.session);
    TEST_ASSERT_TRUE(!other.session.unsent());
    TEST_ASSERT_EQUAL(1U, other.session.compensations_pending());
    if (!connected) {
      other.connect(good_handshake(9));
      other.sent.clear();
    }
    other.transmit();
    if (connected) TEST_ASSERT_EQUAL(compensation_of("a", 'a'), other.sent);
    other.receive(":1\r\n");
    TEST_ASSERT_EQUAL(0U, other.session.compensations_pending());
    TEST_ASSERT_EQUAL(0U, other.heard.size());
    TEST_ASSERT_EQUAL(1U, lost.session.compensations_pending());
    lost.sent.clear();
    lost.connect(good_handshake(10));
    lost.transmit();
    TEST_ASSERT_TRUE(lost.sent.find(compensation_of("a", 'a')) != std::string::npos);
    lost.receive(":0\r\n:0\r\n");  // CLIENT KILL, and what is gone.
    TEST_ASSERT_EQUAL(0U, lost.session.compensations_pending());
  }
}

// Twice handed over, it is repeated once; and what finds no room is left to its own.
TEST(test_session_should_take_back_what_it_has_room_for) {
  Wire lost;
  lost.connect(good_handshake(7));
  for (int index = 0; index < 4; ++index)
    TEST_ASSERT_EQUAL(Status::ok, lost.session.compensate({}, compensation_for("a", static_cast<char>('a' + index))));
  lost.close();
  Wire other;
  for (std::size_t index = 0; index < compensations_max - 3; ++index)
    TEST_ASSERT_EQUAL(Status::ok, other.session.compensate({}, compensation_for("h", static_cast<char>('!' + index))));
  other.session.take_back_for(lost.session);
  TEST_ASSERT_EQUAL(4U, lost.session.compensations_pending());
  TEST_ASSERT_EQUAL(compensations_max, other.session.compensations_pending());
  other.session.take_back_for(lost.session);
  TEST_ASSERT_EQUAL(compensations_max, other.session.compensations_pending());
}

// [rule 6] A hold that goes on by a smaller count may have another count by the time that a second connection says so.
TEST(test_session_should_not_speak_for_the_count_of_another_session) {
  Wire lost;
  Compensation compensation = compensation_for("a", 'a');
  compensation.kind = &reentrant_kind;
  compensation.count = 1;
  compensation.lease_milliseconds = 1000;
  TEST_ASSERT_EQUAL(Status::ok, lost.session.compensate({}, compensation));
  Wire other;
  other.session.take_back_for(lost.session);
  TEST_ASSERT_EQUAL(0U, other.session.compensations_pending());
}

TEST(test_a_session_without_a_connection_should_have_room_for_nothing_received) {
  Wire wire;
  TEST_ASSERT_EQUAL(std::size_t{0}, wire.session.receive_space().size);
  wire.connect();
  TEST_ASSERT_TRUE(wire.session.receive_space().size != 0);
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  TEST_ASSERT_TRUE(wire.session.wants_look());
  wire.session.fail(Status::protocol_error, "as the driver found");
  TEST_ASSERT_EQUAL(std::size_t{0}, wire.session.receive_space().size);
  TEST_ASSERT_FALSE(wire.session.wants_look());
  wire.close();
  TEST_ASSERT_EQUAL(std::size_t{0}, wire.session.receive_space().size);
  // And no handshake to leave out.
  wire.session.skip_handshake();
  TEST_ASSERT_TRUE(wire.session.state() == SessionState::closed);
}

TEST(test_room_should_be_told_for_what_fits_beside_what_waits_to_be_sent) {
  Wire wire;
  TEST_ASSERT_FALSE(wire.session.has_room(false, 1));
  wire.connect();
  // One that is too long finds its own refusal, and does not wait.
  TEST_ASSERT_TRUE(wire.session.has_room(false, wire.session.request_size() + 1));
  Request request;
  request.tag = {&lock_a, 1, Operation::query};
  const std::string ping = "*1\r\n$4\r\nPING\r\n";
  wire.submit(ping, request);
  wire.look();
  TEST_ASSERT_EQUAL(ping.size(), wire.session.poll_transmit(wire.now).size());
  wire.session.handle_transmitted(4);
  const std::size_t left = wire.session.request_size() - (ping.size() - 4);
  TEST_ASSERT_TRUE(wire.session.has_room(false, left));
  TEST_ASSERT_FALSE(wire.session.has_room(false, left + 1));
}

TEST(test_crowd_should_be_as_many_requests_as_longest_keys_find_room) {
  Wire wire;
  TEST_ASSERT_EQUAL(compensation_keys_size / key_size_max, wire.session.crowd());
}

TEST(test_what_is_to_be_taken_back_should_be_told_with_the_name_of_its_lock) {
  Wire wire;
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("one", 'a')));
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("other", 'b')));
  Session::CompensationSlot* slot = wire.session.next_unsent(nullptr);
  TEST_ASSERT_EQUAL(ByteView("one"), wire.session.key_of(*slot).bytes());
  slot = wire.session.next_unsent(slot);
  TEST_ASSERT_EQUAL(ByteView("other"), wire.session.key_of(*slot).bytes());
}

TEST(test_what_has_no_room_should_not_be_taken_along) {
  Wire other;
  TEST_ASSERT_EQUAL(Status::ok,
                    other.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("one", 'a')));
  Wire wire;
  for (char digit = 'b'; wire.session.may_compensate(); ++digit)
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_b, 1, Operation::compensate}, compensation_for("other", digit)));
  const std::size_t kept = wire.session.compensations_pending();
  TEST_ASSERT_FALSE(wire.session.take_along(other.session, &lock_a));
  TEST_ASSERT_TRUE(wire.session.take_along(other.session, &lock_b));
  TEST_ASSERT_EQUAL(kept, wire.session.compensations_pending());
  TEST_ASSERT_EQUAL(1U, other.session.compensations_pending());
}

TEST(test_a_session_should_want_to_send_for_either_of_its_reasons) {
  Wire wire;
  wire.connect();
  TEST_ASSERT_FALSE(wire.session.wants_transmit());
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("n", 'a')));
  TEST_ASSERT_FALSE(wire.session.unsent());
  TEST_ASSERT_TRUE(wire.session.wants_transmit());
  wire.transmit();
  TEST_ASSERT_FALSE(wire.session.wants_transmit());
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  TEST_ASSERT_TRUE(wire.session.wants_transmit());
}

TEST(test_other_words_should_replace_those_of_a_failure) {
  Wire wire;
  wire.connect();
  wire.session.fail(Status::protocol_error, "the first ones");
  wire.session.explain("better ones");
  TEST_ASSERT_EQUAL(std::string("better ones"), std::string(wire.session.failure_text().string_view()));
}

TEST(test_what_one_lock_has_to_take_back_should_be_taken_along_unless_it_is_on_its_way) {
  const auto owe = [](Wire& wire, int& lock, char digit) {
    return wire.session.compensate({&lock, 1, Operation::compensate}, compensation_for("name", digit));
  };
  Wire other;
  TEST_ASSERT_EQUAL(Status::ok, owe(other, lock_a, 'a'));
  TEST_ASSERT_EQUAL(Status::ok, owe(other, lock_b, 'b'));
  TEST_ASSERT_EQUAL(Status::ok, owe(other, lock_a, 'c'));
  Wire wire;
  wire.connect();
  TEST_ASSERT_TRUE(wire.session.take_along(other.session, &lock_a));
  TEST_ASSERT_EQUAL(2U, wire.session.compensations_pending());
  TEST_ASSERT_EQUAL(1U, other.session.compensations_pending());
  // On its way there.
  other.connect();
  TEST_ASSERT_TRUE(other.session.takes_back_for(&lock_b));
  TEST_ASSERT_FALSE(other.session.takes_back_for(&lock_a));
  TEST_ASSERT_FALSE(wire.session.take_along(other.session, &lock_b));
  TEST_ASSERT_EQUAL(2U, wire.session.compensations_pending());
}

// Whoever goes away waits for no answer to its handshake.
TEST(test_compensations_should_leave_behind_an_unanswered_handshake_when_nobody_waits) {
  Wire wire;
  TEST_ASSERT_EQUAL(Status::ok, wire.session.compensate({}, compensation_for("a", 'a')));
  wire.session.handle_connected(wire.now, wire.now + 1s);
  wire.transmit();
  TEST_ASSERT_TRUE(wire.sent.find(compensation_of("a", 'a')) == std::string::npos);
  wire.session.skip_handshake();
  wire.transmit();
  TEST_ASSERT_TRUE(wire.sent.find(compensation_of("a", 'a')) != std::string::npos);
}

// Another server answers than the one that was asked: nothing of it is sent, and its places are free.
TEST(test_compensations_that_are_forgotten_after_the_handshake_should_not_be_sent) {
  for (const int deferred : {0, 1}) {
    Wire wire;
    wire.connect(good_handshake(7));
    for (const char digit : {'a', 'b'})
      TEST_ASSERT_EQUAL(Status::ok,
                        wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", digit)));
    wire.transmit();
    if (deferred != 0) wire.receive(":0\r\n-LOADING Redis is loading the dataset in memory\r\n");
    wire.close();
    wire.sent.clear();
    wire.session.handle_connected(wire.now, wire.now + 2s);
    wire.receive(good_handshake(8));  // Of the same run id: the kill is a request of its own, and stays.
    wire.session.forget_compensations();
    TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
    wire.submit("*1\r\n$4\r\nNEXT\r\n", acquire_of(&lock_b, "name", 'c'));
    wire.transmit();
    const std::string kill = "*4\r\n" + bulk("CLIENT") + bulk("KILL") + bulk("ID") + bulk("7");
    TEST_ASSERT_TRUE(wire.sent.ends_with(kill + "*1\r\n$4\r\nNEXT\r\n"));
    wire.heard.clear();
    wire.receive(":1\r\n+OK\r\n");
    TEST_ASSERT_EQUAL(1U, wire.heard.size());
    TEST_ASSERT_TRUE(wire.heard[0].tag.requester == &lock_b);
    for (std::size_t index = 0; index < compensations_max; ++index) {
      TEST_ASSERT_TRUE(wire.session.may_compensate());
      TEST_ASSERT_EQUAL(Status::ok, wire.session.compensate({&lock_a, 1, Operation::compensate},
                                                            compensation_for("name", static_cast<char>('d' + index))));
    }
    TEST_ASSERT_FALSE(wire.session.may_compensate());
  }
}

// The parent's connection is the parent's, also where the child comes in the middle of a handshake.
TEST(test_forget_during_a_handshake_should_kill_nobody) {
  Wire wire;
  wire.connect(good_handshake(7));
  wire.close();
  wire.session.handle_connected(start, start + 2s);
  wire.transmit();
  wire.session.forget();
  wire.sent.clear();
  wire.connect(good_handshake(8));
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_TRUE(wire.sent.find("KILL") == std::string::npos);
}

// ---- Compensations with a count ----------------------------------------------------------------------------------

// [rule 10] A hold that goes on is told as a step by text, with its count and its lease.
TEST(test_compensation_with_a_count_should_be_a_step_by_text) {
  for (const char* const count : {"1", "2", "1000000000"}) {
    Wire wire;
    wire.connect();
    wire.sent.clear();
    const auto number = static_cast<std::uint32_t>(std::stoul(count));
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::step}, count_for("name", 'a', number)));
    wire.transmit();
    TEST_ASSERT_EQUAL(count_of("name", 'a', count), wire.sent);
    wire.receive(":1\r\n");
    TEST_ASSERT_EQUAL(1U, wire.heard.size());
    TEST_ASSERT_TRUE(Operation::compensate == wire.heard[0].tag.operation);
    TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  }
}

TEST(test_compensation_without_a_count_should_be_a_release_by_text) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', 0)));
  wire.transmit();
  TEST_ASSERT_EQUAL(hash_release_of("name", 'a'), wire.sent);
}

// [rule 7] A step that is given up is followed by the count that its hold had, before anything else.
TEST(test_step_that_is_given_up_should_be_followed_by_its_count) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  wire.submit("*1\r\n$1\r\ns\r\n", step_of(&lock_a, count_for("name", 'a', 2)));
  wire.transmit();
  wire.now = start + 1s;
  wire.session.handle_timeout(wire.now);
  wire.poll();
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_EQUAL(Status::timed_out, wire.heard[0].outcome);
  wire.submit("*1\r\n$4\r\nNEXT\r\n", acquire_of(&lock_b, "name", 'b', start + 5s));
  wire.transmit();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\ns\r\n" + count_of("name", 'a', "2") + "*1\r\n$4\r\nNEXT\r\n", wire.sent);
}

// Its owner may change it up to then: what is lost meanwhile is deleted.
TEST(test_step_should_be_compensated_as_its_owner_says_when_it_is_given_up) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  Compensation& compensation = count_for("name", 'a', 2);
  wire.submit("*1\r\n$1\r\ns\r\n", step_of(&lock_a, compensation));
  wire.transmit();
  compensation.count = 0;
  wire.session.give_up(&lock_a, Status::cancelled, wire.now);
  compensation.count = 5;  // From here on the copy counts.
  wire.transmit();
  TEST_ASSERT_EQUAL("*1\r\n$1\r\ns\r\n" + hash_release_of("name", 'a'), wire.sent);
}

TEST(test_step_that_was_lost_with_its_connection_should_be_counted_first_on_the_next) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\ns\r\n", step_of(&lock_a, count_for("name", 'a', 3)));
  wire.transmit();
  wire.close();
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.heard[0].outcome);
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  wire.sent.clear();
  wire.connect(good_handshake(8));
  const std::string kill = "*4\r\n" + bulk("CLIENT") + bulk("KILL") + bulk("ID") + bulk("7");
  TEST_ASSERT_TRUE(ByteView(wire.sent).find(ByteView(kill + count_of("name", 'a', "3"))) != SIZE_MAX);
}

TEST(test_step_that_was_never_sent_should_not_be_counted) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\ns\r\n", step_of(&lock_a, count_for("name", 'a', 3)));
  wire.close();
  TEST_ASSERT_EQUAL(Status::not_connected, wire.heard[0].outcome);
  TEST_ASSERT_TRUE(wire.heard[0].nothing_ran);
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

TEST(test_count_refused_for_the_moment_should_be_told_again_later) {
  Wire wire;
  wire.connect();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', 2)));
  wire.transmit();
  wire.sent.clear();
  wire.receive("-READONLY You can't write against a read only replica.\r\n");
  wire.transmit();
  TEST_ASSERT_EQUAL("", wire.sent);
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  TEST_ASSERT_TRUE(wire.session.open(true).request != nullptr);
  wire.now = wire.session.poll_timeout();
  wire.session.handle_timeout(wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL(count_of("name", 'a', "2"), wire.sent);
}

// A hold's count is told by the newest alone. An older number that waits must not come behind it.
TEST(test_newer_count_should_replace_one_that_waits_for_a_connection) {
  Wire wire;
  for (const std::uint32_t count : {4U, 3U, 2U})
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', count)));
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_b, 1, Operation::compensate}, count_for("name", 'b', 9)));
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_b, 1, Operation::compensate}, count_for("other", 'a', 8)));
  TEST_ASSERT_EQUAL(3U, wire.session.compensations_pending());
  wire.connect();
  for (const char* const older : {"4", "3"})
    TEST_ASSERT_TRUE(wire.sent.find(count_of("name", 'a', older)) == std::string::npos);
  TEST_ASSERT_TRUE(wire.sent.find(count_of("name", 'a', "2")) != std::string::npos);
  TEST_ASSERT_TRUE(wire.sent.find(count_of("name", 'b', "9")) != std::string::npos);
  TEST_ASSERT_TRUE(wire.sent.find(count_of("other", 'a', "8")) != std::string::npos);
}

// At once, not when the older one would have been told again.
TEST(test_newer_count_should_not_wait_in_the_place_of_a_refused_one) {
  Wire wire;
  wire.connect();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', 2)));
  wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
  wire.sent.clear();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', 1)));
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  wire.transmit();
  TEST_ASSERT_EQUAL(count_of("name", 'a', "1"), wire.sent);
  wire.receive(":1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

TEST(test_later_step_should_replace_a_count_that_waits_to_be_told_again) {
  for (const std::uint32_t count : {1U, 2U}) {
    Wire wire;
    wire.connect();
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', 2)));
    wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
    wire.submit("*1\r\n$1\r\ns\r\n", step_of(&lock_a, count_for("name", 'a', count)));
    wire.receive(":1\r\n");
    wire.sent.clear();
    wire.now = start + 1h;
    wire.session.handle_timeout(wire.now);
    wire.transmit();
    TEST_ASSERT_EQUAL("", wire.sent);
    TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  }
}

// Also where it is on its way, and is refused or lost behind the newer one.
TEST(test_count_that_a_newer_one_follows_should_not_be_told_again) {
  const auto two_on_their_way = [](Wire& wire) {
    wire.connect();
    for (const std::uint32_t count : {3U, 2U}) {
      TEST_ASSERT_EQUAL(Status::ok,
                        wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', count)));
      wire.transmit();
    }
    TEST_ASSERT_TRUE(wire.sent.find(count_of("name", 'a', "3") + count_of("name", 'a', "2")) != std::string::npos);
    wire.sent.clear();
  };
  Wire refused;
  two_on_their_way(refused);
  refused.receive("-LOADING Redis is loading the dataset in memory\r\n:1\r\n");
  TEST_ASSERT_EQUAL(0U, refused.session.compensations_pending());
  Wire lost;
  two_on_their_way(lost);
  lost.close();
  TEST_ASSERT_EQUAL(1U, lost.session.compensations_pending());
  lost.connect(good_handshake(8));
  TEST_ASSERT_TRUE(lost.sent.find(count_of("name", 'a', "3")) == std::string::npos);
  TEST_ASSERT_TRUE(lost.sent.find(count_of("name", 'a', "2")) != std::string::npos);
}

// The order of the places is not the order of the counts.
TEST(test_newest_count_should_be_the_last_that_the_server_hears) {
  Wire wire;
  wire.connect();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_b, 1, Operation::compensate}, count_for("other", 'b', 0)));
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', 2)));
  wire.receive(":1\r\n");  // The first place is free again.
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, count_for("name", 'a', 1)));
  wire.close();
  wire.sent.clear();
  wire.connect(good_handshake(8));
  const std::size_t newest = wire.sent.rfind(count_of("name", 'a', "1"));
  const std::size_t older = wire.sent.rfind(count_of("name", 'a', "2"));
  TEST_ASSERT_TRUE(newest != std::string::npos);
  TEST_ASSERT_TRUE(older == std::string::npos || older < newest);
}

// ---- Rarely met --------------------------------------------------------------------------------------------------

TEST(test_configured_session_should_log_in_by_its_new_settings) {
  Wire wire;
  wire.session.configure({.password = "secret", .native_delete = false});
  wire.session.handle_connected(start, start + 2s);
  wire.transmit();
  TEST_ASSERT_EQUAL(0U, wire.sent.find("*2\r\n" + bulk("AUTH") + bulk("secret")));
  wire.receive("+OK\r\n:1\r\n" + identity_reply(run_id, "8.4.0"));
  TEST_ASSERT_EQUAL(80400U, wire.session.identity().version);
  TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::none);
}

// Without a password, too: a server that wants one, that is full or that still loads is of no use.
TEST(test_handshake_without_a_login_should_fail_with_the_servers_reason) {
  struct {
    const char* reply;
    Status expected;
  } const rows[] = {{"-NOAUTH Authentication required.\r\n", Status::auth_required},
                    {"-WRONGPASS invalid username-password pair or user is disabled.\r\n", Status::auth_failed},
                    {"-DENIED Redis is running in protected mode\r\n", Status::denied},
                    {"-ERR max number of clients reached\r\n", Status::too_many_clients},
                    {"-LOADING Redis is loading the dataset in memory\r\n", Status::loading}};
  for (const auto& row : rows) {
    Wire wire;
    wire.connect(row.reply);
    TEST_ASSERT_TRUE(wire.session.state() == SessionState::failed);
    TEST_ASSERT_EQUAL(row.expected, wire.session.failure());
    TEST_ASSERT_EQUAL(std::string(row.reply + 1, std::strlen(row.reply) - 3),
                      std::string(wire.session.failure_text().string_view()));
  }
}

TEST(test_protected_server_that_speaks_first_should_keep_its_reason) {
  Wire wire;
  wire.session.handle_connected(start, start + 2s);
  wire.receive_early("-DENIED Redis is running in protected mode\r\n");
  TEST_ASSERT_EQUAL(Status::denied, wire.session.failure());
}

TEST(test_version_that_is_none_should_promise_no_native_delete) {
  for (const std::string version : {"8,4.0", "8.4-rc1", " 8.4.0", "8./.0", "8:4"}) {
    Wire wire;
    wire.connect(":1\r\n" + identity_reply(run_id, version));
    TEST_ASSERT_TRUE(wire.session.ready());
    TEST_ASSERT_EQUAL(0U, wire.session.identity().version);
    TEST_ASSERT_TRUE(wire.session.identity().native_delete == NativeDelete::none);
  }
}

TEST(test_run_id_of_another_size_should_be_none) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{39}, std::size_t{41}}) {
    Wire wire;
    wire.connect(good_handshake(7, std::string(size, 'f')));
    TEST_ASSERT_FALSE(wire.session.identity().run_id_known);
    TEST_ASSERT_EQUAL(70015U, wire.session.identity().version);
    wire.close();
    wire.sent.clear();
    wire.connect(good_handshake(8, std::string(size, 'f')));
    TEST_ASSERT_EQUAL(std::string::npos, wire.sent.find("KILL"));
  }
}

TEST(test_client_id_that_is_no_positive_number_should_be_none) {
  for (const std::string reply : {":0\r\n", ":-7\r\n", "$1\r\n7\r\n", "$-1\r\n"}) {
    Wire wire;
    wire.connect(reply + identity_reply(run_id, "7.0.15"));
    TEST_ASSERT_TRUE(wire.session.ready());
    TEST_ASSERT_EQUAL(0, wire.session.identity().client_id);
    wire.close();
    wire.sent.clear();
    wire.connect(good_handshake(8));
    TEST_ASSERT_EQUAL(std::string::npos, wire.sent.find("KILL"));
  }
}

// The first reason is the true one.
TEST(test_failed_session_should_keep_its_first_reason) {
  Wire wire({.stall_timeout = 5s});
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", {});
  wire.receive("+OK\n");
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
  const std::string text(wire.session.failure_text().string_view());
  wire.session.handle_timeout(start + 1h);
  wire.session.fail(Status::timed_out, "later");
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
  TEST_ASSERT_EQUAL(text, std::string(wire.session.failure_text().string_view()));
  wire.session.handle_closed();
  TEST_ASSERT_EQUAL(Status::protocol_error, wire.session.failure());
}

TEST(test_closed_session_should_neither_fail_nor_close_again) {
  Wire wire({.stall_timeout = 5s});
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  wire.session.handle_closed();
  wire.session.handle_timeout(start + 1h);
  wire.session.fail(Status::protocol_error, "too late");
  wire.session.handle_closed();
  TEST_ASSERT_TRUE(wire.session.state() == SessionState::closed);
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.session.failure());
  TEST_ASSERT_TRUE(wire.session.failure_text().empty());
  TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
  wire.poll();
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
}

TEST(test_failure_text_should_be_the_start_of_a_long_one_and_empty_of_an_empty_one) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", {});
  const std::string longest = "ERR " + std::string(line_size_max - 4, 'x');
  wire.receive("-" + longest + "\r\n");
  const std::string text(wire.session.failure_text().string_view());
  TEST_ASSERT_TRUE(text.size() >= 64 && text.size() < longest.size());
  TEST_ASSERT_EQUAL(longest.substr(0, text.size()), text);
  wire.session.clear_failure_text();
  TEST_ASSERT_TRUE(wire.session.failure_text().empty());
  wire.submit("*1\r\n$1\r\nb\r\n", {});
  wire.receive("-ERR no\r\n");
  TEST_ASSERT_EQUAL(ByteView("ERR no"), wire.session.failure_text());
  wire.session.fail(Status::protocol_error, {});
  TEST_ASSERT_TRUE(wire.session.failure_text().empty());
}

// Others are judged by deadlines of their own.
TEST(test_passed_deadline_should_leave_those_that_have_time) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a', start + 1s));
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b', start + 3s));
  wire.submit("*1\r\n$1\r\nc\r\n", acquire_of(&lock_b, "c", 'c', start + 2s));
  wire.transmit();
  for (std::size_t passed = 1; passed <= 3; ++passed) {
    wire.now = start + passed * 1s;
    TEST_ASSERT_EQUAL(wire.now, wire.session.poll_timeout());
    wire.session.handle_timeout(wire.now - 1ns);
    wire.poll();
    TEST_ASSERT_EQUAL(passed - 1, wire.heard.size());
    wire.session.handle_timeout(wire.now);
    wire.poll();
    TEST_ASSERT_EQUAL(passed, wire.heard.size());
    TEST_ASSERT_EQUAL(Status::timed_out, wire.heard.back().outcome);
  }
  TEST_ASSERT_TRUE(wire.heard[0].tag.requester == &lock_a);
}

// Nobody waits for it: its end is told to nobody, and taken back all the same.
TEST(test_request_of_nobody_that_is_given_up_should_be_compensated_in_silence) {
  Wire wire;
  wire.connect();
  wire.sent.clear();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(nullptr, "a", 'a'));
  wire.now = start + 1s;
  wire.session.handle_timeout(wire.now);
  wire.transmit();
  wire.receive("+OK\r\n:1\r\n");
  TEST_ASSERT_EQUAL("*1\r\n$1\r\na\r\n" + compensation_of("a", 'a'), wire.sent);
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

TEST(test_reply_to_a_request_of_nobody_should_be_told_to_nobody) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", {});
  wire.submit("*1\r\n$1\r\na\r\n", {});
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b'));
  wire.receive("+OK\r\n-ERR no\r\n$-1\r\n");
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_EQUAL("null", wire.heard[0].value);
}

// [rule 7] The queue may be full of what has no compensation of its own.
TEST(test_compensation_should_wait_for_a_place_in_the_queue_and_go_before_all_else) {
  Wire wire;
  wire.connect();
  while (wire.session.open(false).request != nullptr) wire.submit("*1\r\n$4\r\nPING\r\n", {});
  wire.transmit();
  wire.sent.clear();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("a", 'a')));
  wire.session.handle_timeout(wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL("", wire.sent);
  TEST_ASSERT_EQUAL(in_flight_max, wire.session.in_flight());
  wire.receive("+PONG\r\n");
  TEST_ASSERT_TRUE(wire.session.open(false).request == nullptr);
  wire.transmit();
  TEST_ASSERT_EQUAL(compensation_of("a", 'a'), wire.sent);
  TEST_ASSERT_EQUAL(in_flight_max, wire.session.in_flight());
}

TEST(test_compensation_should_survive_every_refusal_that_passes) {
  for (const std::string refusal :
       {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script",
        "READONLY You can't write against a read only replica.", "MASTERDOWN Link with MASTER is down",
        "NOREPLICAS Not enough good replicas to write.", "MISCONF Errors writing to the AOF file",
        "OOM command not allowed when used memory > 'maxmemory'.", "TRYAGAIN Multiple keys request during rehashing",
        "CLUSTERDOWN The cluster is down"}) {
    TEST_MESSAGE(refusal);
    Wire wire;
    wire.connect();
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("a", 'a')));
    wire.receive("-" + refusal + "\r\n");
    TEST_ASSERT_EQUAL(1U, wire.session.compensations_pending());
    wire.sent.clear();
    wire.session.handle_timeout(wire.session.poll_timeout());
    wire.transmit();
    TEST_ASSERT_EQUAL(compensation_of("a", 'a'), wire.sent);
  }
}

// About two minutes, and the lease has ended it.
TEST(test_compensation_that_is_refused_for_too_long_should_be_dropped) {
  Wire wire;
  wire.connect();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("a", 'a')));
  int refusals = 0;
  while (wire.session.compensations_pending() != 0) {
    TEST_ASSERT_TRUE(refusals < 1000);
    wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
    ++refusals;
    if (wire.session.poll_timeout() != Instant::max()) wire.now = wire.session.poll_timeout();
    wire.session.handle_timeout(wire.now);
  }
  TEST_ASSERT_TRUE(wire.now - start > Duration(90s));
  TEST_ASSERT_TRUE(wire.now - start < Duration(3min));
  TEST_ASSERT_TRUE(wire.session.ready());
  TEST_ASSERT_EQUAL(Instant::max(), wire.session.poll_timeout());
  wire.sent.clear();
  wire.transmit();
  TEST_ASSERT_EQUAL("", wire.sent);
}

// What waits to be tried again turns no timer while there is no connection to try it on.
TEST(test_deferred_compensation_should_wait_for_its_time_on_a_connection) {
  Wire wire;
  wire.connect();
  for (const char* const key : {"a", "b"})
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for(key, 'a')));
  wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
  const Instant again = wire.session.poll_timeout();
  TEST_ASSERT_TRUE(again > wire.now);
  wire.receive(":1\r\n");
  TEST_ASSERT_EQUAL(again, wire.session.poll_timeout());
  wire.close();
  TEST_ASSERT_EQUAL(Instant::max(), wire.session.poll_timeout());
  wire.session.handle_connected(wire.now, wire.now + 1h);
  TEST_ASSERT_TRUE(wire.session.poll_timeout() > again);
  wire.receive(good_handshake(8));
  wire.transmit();
  wire.receive(":1\r\n");
  TEST_ASSERT_EQUAL(again, wire.session.poll_timeout());
}

// What is due again and finds no room waits for room: a timer that stays due would let its driver spin.
TEST(test_compensations_that_are_due_again_should_wait_for_room_without_a_timer) {
  Wire wire({.stall_timeout = 1h});
  wire.connect();
  for (const char* const key : {"a", "b", "c"})
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for(key, 'a')));
  for (int refusals = 0; refusals < 3; ++refusals) wire.receive("-LOADING Redis is loading the dataset in memory\r\n");
  const Instant again = wire.session.poll_timeout();
  Request request;
  request.tag = {&lock_b, 1, Operation::renew};
  request.deadline = start + 30min;
  while (wire.session.open(false).request != nullptr) wire.submit("*1\r\n$4\r\nPING\r\n", request);
  wire.transmit();
  wire.now = again;
  wire.session.handle_timeout(wire.now);
  TEST_ASSERT_TRUE(wire.session.poll_timeout() > wire.now);
  TEST_ASSERT_EQUAL(3U, wire.session.compensations_pending());
  // And goes out as soon as there is some.
  wire.sent.clear();
  for (int replies = 0; replies < 3; ++replies) wire.receive("+PONG\r\n");
  wire.transmit();
  TEST_ASSERT_EQUAL(compensation_of("a", 'a') + compensation_of("b", 'a') + compensation_of("c", 'a'), wire.sent);
}

// ---- What one use of a place leaves to the next ------------------------------------------------------------------

TEST(test_place_in_the_queue_should_remember_nothing_of_what_stood_there) {
  Wire wire;
  wire.connect();
  // Each place has carried a compensation of the same generation, which is over.
  for (std::size_t index = 0; index < in_flight_max; ++index) {
    wire.submit("*1\r\n$1\r\na\r\n", posted_release_of(&lock_a, "a", 'a'));
    wire.receive(":1\r\n");
  }
  for (std::size_t index = 0; index < in_flight_max; ++index) {
    Request request;
    request.tag = {&lock_b, 1, Operation::acquire};
    wire.submit("*1\r\n$1\r\nb\r\n", request);
    wire.transmit();
    wire.session.give_up(&lock_b, Status::cancelled, wire.now);
    wire.receive("*0\r\n");  // Of a shape that a Mutex does not know, but it is no Mutex that has asked.
    TEST_ASSERT_TRUE(wire.session.ready());
  }
}

TEST(test_requester_that_goes_should_take_nothing_back_that_was_answered) {
  Wire wire;
  wire.connect();
  // So often that what it asked stands all around the queue still.
  for (std::size_t index = 0; index < in_flight_max; ++index) {
    wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
    wire.receive("+OK\r\n");
  }
  wire.sent.clear();
  wire.session.abandon(&lock_a, wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL("", wire.sent);
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

TEST(test_requester_that_goes_should_not_hear_of_its_compensation_that_has_left) {
  Wire wire;
  wire.connect();
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", 'a')));
  wire.transmit();
  wire.session.abandon(&lock_a, wire.now);
  wire.receive(":1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.heard.size());
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
}

TEST(test_reply_to_what_was_given_up_should_not_be_judged_by_the_compensation_of_another) {
  Wire wire;
  Wire other;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.transmit();
  const std::string filler = "*2\r\n$4\r\nECHO\r\n" + bulk(std::string(transmit_size_max - 100, 'x'));
  wire.submit(filler, {});
  wire.session.give_up(&lock_a, Status::cancelled, wire.now);
  // It has no room, goes another way, and its place is taken.
  Session::CompensationSlot* const slot = wire.session.next_unsent(nullptr);
  TEST_ASSERT_TRUE(slot != nullptr);
  other.session.take_over(wire.session, *slot);
  TEST_ASSERT_EQUAL(Status::ok,
                    wire.session.compensate({&lock_b, 2, Operation::compensate}, compensation_for("b", 'b')));
  wire.receive("*0\r\n");
  TEST_ASSERT_TRUE(wire.session.ready());
  wire.receive("+x\r\n:1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.compensations_pending());
  TEST_ASSERT_EQUAL(1U, other.session.compensations_pending());
}

// Without a connection before there is no kill that would stand in front of them.
TEST(test_compensations_that_are_forgotten_should_leave_an_empty_queue) {
  Wire wire;
  for (const char digit : {'a', 'b'})
    TEST_ASSERT_EQUAL(Status::ok,
                      wire.session.compensate({&lock_a, 1, Operation::compensate}, compensation_for("name", digit)));
  wire.session.handle_connected(wire.now, wire.now + 2s);
  wire.receive(good_handshake());
  TEST_ASSERT_EQUAL(2U, wire.session.in_flight());
  for (int round = 0; round < 2; ++round) {
    wire.session.forget_compensations();
    wire.check();
    TEST_ASSERT_EQUAL(0U, wire.session.in_flight());
    TEST_ASSERT_FALSE(wire.session.unsent());
  }
  wire.submit("*1\r\n$4\r\nNEXT\r\n", acquire_of(&lock_b, "name", 'c'));
  wire.receive("+OK\r\n");
  TEST_ASSERT_EQUAL(1U, wire.heard.size());
  TEST_ASSERT_TRUE(wire.heard[0].tag.requester == &lock_b);
}

TEST(test_rest_of_a_release_should_want_no_look_when_the_acquire_before_it_has_left) {
  const std::string release = "*1\r\n$7\r\nrelease\r\n";
  Wire wire;
  wire.connect();
  wire.sent.clear();
  const std::string acquire = "*1\r\n$7\r\nacquire\r\n";
  wire.submit(acquire, acquire_of(&lock_a, "a", 'a'));
  wire.submit(release, posted_release_of(&lock_b, "b", 'b'));
  wire.transmit(acquire.size() + 3);
  TEST_ASSERT_EQUAL(acquire.size() + 3, wire.sent.size());
  wire.submit(release, posted_release_of(&lock_b, "c", 'c'));
  TEST_ASSERT_FALSE(wire.session.wants_look());
  wire.transmit();
  TEST_ASSERT_EQUAL(acquire + release + release, wire.sent);
}

// A server that speaks TLS only closes what does not.
TEST(test_end_of_a_handshake_should_ask_for_tls_and_a_later_one_should_not) {
  Wire wire;
  wire.session.handle_connected(start, start + 2s);
  wire.transmit();
  wire.close();
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.session.failure());
  TEST_ASSERT_TRUE(wire.session.failure_text().find("TLS") != SIZE_MAX);
  wire.connect();
  wire.close();
  TEST_ASSERT_EQUAL(Status::transport_closed, wire.session.failure());
  TEST_ASSERT_TRUE(wire.session.failure_text().empty());
}

TEST(test_what_was_answered_should_not_be_counted_when_its_place_comes_round_again) {
  Wire wire;
  wire.connect();
  for (std::size_t count = 0; count < in_flight_max; ++count) {
    Request request;
    request.tag = {&lock_a, 1, Operation::query};
    wire.submit("*1\r\n$1\r\na\r\n", request);
    wire.transmit();
    TEST_ASSERT_EQUAL(1U, wire.session.in_flight_of(&lock_a));
    wire.receive("+OK\r\n");
    TEST_ASSERT_EQUAL(0U, wire.session.in_flight_of(&lock_a));
  }
}

TEST(test_what_is_in_flight_for_a_requester_should_be_counted_until_it_is_answered_given_up_or_not) {
  Wire wire;
  wire.connect();
  wire.submit("*1\r\n$1\r\na\r\n", acquire_of(&lock_a, "a", 'a'));
  wire.submit("*1\r\n$1\r\nb\r\n", acquire_of(&lock_b, "b", 'b'));
  wire.transmit();
  TEST_ASSERT_EQUAL(1U, wire.session.in_flight_of(&lock_a));
  wire.session.give_up(&lock_a, Status::cancelled, wire.now);
  wire.transmit();
  TEST_ASSERT_EQUAL(2U, wire.session.in_flight_of(&lock_a));  // And what takes it back.
  TEST_ASSERT_EQUAL(1U, wire.session.in_flight_of(&lock_b));
  wire.receive("+OK\r\n+OK\r\n");
  TEST_ASSERT_EQUAL(1U, wire.session.in_flight_of(&lock_a));
  TEST_ASSERT_EQUAL(0U, wire.session.in_flight_of(&lock_b));
  wire.receive(":1\r\n");
  TEST_ASSERT_EQUAL(0U, wire.session.in_flight_of(&lock_a));
}
