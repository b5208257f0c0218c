// SPDX-License-Identifier: MIT
//
// How a connection introduces itself, without a session: what it asks, in which order, and whom it kills.
#include "holdfast/core/handshake.hpp"

#include <string>
#include <vector>

#include "heard.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "resp_text.hpp"
#include "scripts.hpp"
#include "written_line.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

// A handshake whose commands go nowhere. Invariants are asserted after every step.
struct Desk {
  explicit Desk(const SessionSettings& settings = {}) {
    handshake.configure(settings);
    check();
  }

  void begin() {
    handshake.begin();
    check();
  }
  HandshakeCommand poll(Words& words) {
    WrittenLine line;
    const HandshakeCommand command = handshake.poll_command(line);
    check();
    words = line.words();
    return command;
  }
  // What goes out until there is no more.
  std::vector<HandshakeCommand> poll_all() {
    std::vector<HandshakeCommand> commands;
    Words words;
    for (;;) {
      const HandshakeCommand command = poll(words);
      if (command == HandshakeCommand::none) return commands;
      commands.push_back(command);
    }
  }
  Status reply(HandshakeCommand command, const std::string& bytes) {
    const Heard heard(bytes);
    const Status status = handshake.handle_reply(command, heard.value);
    check();
    if (status != Status::ok) text = std::string(Handshake::failure_text(heard.value).string_view());
    return status;
  }
  // A whole connection, to the server whose run id is of this letter.
  void connect(int client_id, char server = 'f') {
    begin();
    (void)poll_all();
    TEST_ASSERT_EQUAL(Status::ok, reply(HandshakeCommand::client_id, ":" + std::to_string(client_id) + "\r\n"));
    TEST_ASSERT_EQUAL(Status::ok, reply(HandshakeCommand::identity, identity(server)));
  }
  static std::string identity(char server) {
    const std::string run_id(run_id_size, server);
    return "*6\r\n" + bulk(run_id) + bulk("100") + bulk("8.4.0") + bulk("") + bulk(run_id) + bulk("-1master");
  }
  // Whom CLIENT KILL names.
  std::vector<std::string> killed() {
    std::vector<std::string> ids;
    Words words;
    while (poll(words) == HandshakeCommand::client_kill) {
      TEST_ASSERT_EQUAL(4U, words.size());
      ids.push_back(words[3]);
    }
    TEST_ASSERT_EQUAL(ids.size(), handshake.kills_in_flight());
    return ids;
  }
  void check() const { TEST_ASSERT_TRUE(handshake.invariants()); }

  Handshake handshake;
  std::string text;
};

}  // namespace

// ---- Commands ----------------------------------------------------------------------------------------------------

TEST(test_commands_should_go_out_in_order_and_only_where_they_are_wanted) {
  Desk desk({.user = "joe", .password = "secret", .client_name = "worker", .database = 3});
  desk.begin();
  Words words;
  TEST_ASSERT_TRUE(desk.poll(words) == HandshakeCommand::auth);
  TEST_ASSERT_TRUE(words == Words({"AUTH", "joe", "secret"}));
  TEST_ASSERT_TRUE(desk.poll(words) == HandshakeCommand::select);
  TEST_ASSERT_TRUE(words == Words({"SELECT", "3"}));
  TEST_ASSERT_TRUE(desk.poll(words) == HandshakeCommand::set_name);
  TEST_ASSERT_TRUE(words == Words({"CLIENT", "SETNAME", "worker"}));
  TEST_ASSERT_TRUE(desk.poll(words) == HandshakeCommand::client_id);
  TEST_ASSERT_TRUE(words == Words({"CLIENT", "ID"}));
  TEST_ASSERT_TRUE(desk.poll(words) == HandshakeCommand::identity);
  TEST_ASSERT_TRUE(words == Words({"EVAL", std::string(scripts::server_identity.text.string_view()), "0"}));
  TEST_ASSERT_TRUE(desk.poll(words) == HandshakeCommand::none);
  TEST_ASSERT_TRUE(words.empty());
  // The next connection asks for less.
  desk.handshake.configure({});
  desk.begin();
  TEST_ASSERT_TRUE(desk.poll_all() == std::vector({HandshakeCommand::client_id, HandshakeCommand::identity}));
}

// ---- Replies -----------------------------------------------------------------------------------------------------

TEST(test_handshake_should_be_done_by_the_reply_to_the_identity_alone) {
  Desk desk({.password = "secret"});
  desk.begin();
  (void)desk.poll_all();
  TEST_ASSERT_EQUAL(Status::ok, desk.reply(HandshakeCommand::auth, "+OK\r\n"));
  TEST_ASSERT_EQUAL(Status::ok, desk.reply(HandshakeCommand::client_id, ":7\r\n"));
  TEST_ASSERT_FALSE(desk.handshake.done());
  TEST_ASSERT_EQUAL(Status::ok, desk.reply(HandshakeCommand::identity, Desk::identity('f')));
  TEST_ASSERT_TRUE(desk.handshake.done());
  TEST_ASSERT_EQUAL(7, desk.handshake.identity().client_id);
  TEST_ASSERT_TRUE(desk.handshake.identity().native_delete == NativeDelete::delex);
  desk.handshake.handle_native_refused();
  TEST_ASSERT_TRUE(desk.handshake.identity().native_delete == NativeDelete::none);
  desk.begin();
  TEST_ASSERT_FALSE(desk.handshake.done());
  TEST_ASSERT_FALSE(desk.handshake.identity().run_id_known);
}

TEST(test_refused_login_should_fail_in_the_servers_words) {
  Desk desk({.password = "secret"});
  desk.begin();
  (void)desk.poll_all();
  TEST_ASSERT_EQUAL(Status::auth_failed, desk.reply(HandshakeCommand::auth, "-WRONGPASS no\r\n"));
  TEST_ASSERT_EQUAL("WRONGPASS no", desk.text);
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.reply(HandshakeCommand::auth, "+QUEUED\r\n"));
  TEST_ASSERT_EQUAL("AUTH or SELECT was not answered OK", desk.text);
  TEST_ASSERT_FALSE(desk.handshake.done());
}

TEST(test_refused_knowledge_should_be_done_without) {
  Desk desk;
  desk.begin();
  (void)desk.poll_all();
  TEST_ASSERT_EQUAL(Status::ok, desk.reply(HandshakeCommand::client_id, "-NOPERM no\r\n"));
  TEST_ASSERT_EQUAL(Status::ok, desk.reply(HandshakeCommand::identity, "-NOPERM no\r\n"));
  TEST_ASSERT_TRUE(desk.handshake.done());
  TEST_ASSERT_TRUE(desk.killed().empty());
}

// ---- Predecessors ------------------------------------------------------------------------------------------------

TEST(test_predecessors_should_be_killed_the_oldest_first_until_that_is_answered) {
  Desk desk;
  desk.connect(7);
  TEST_ASSERT_TRUE(desk.killed().empty());
  desk.connect(8);
  TEST_ASSERT_TRUE(desk.killed() == Words({"7"}));
  desk.connect(9);  // The answer was lost.
  TEST_ASSERT_TRUE(desk.killed() == Words({"7", "8"}));
  TEST_ASSERT_EQUAL(Status::ok, desk.reply(HandshakeCommand::client_kill, ":1\r\n"));
  desk.connect(10);
  TEST_ASSERT_TRUE(desk.killed() == Words({"8", "9"}));
  for (int count = 0; count < 2; ++count)
    TEST_ASSERT_EQUAL(Status::ok, desk.reply(HandshakeCommand::client_kill, "-ERR No such client ID\r\n"));
  TEST_ASSERT_EQUAL(0U, desk.handshake.kills_in_flight());
}

TEST(test_predecessors_of_another_server_should_be_left_alone) {
  Desk desk;
  desk.connect(7, 'a');
  desk.connect(8, 'b');
  TEST_ASSERT_TRUE(desk.killed().empty());
  // Nor is anything known of the first server's any more.
  desk.connect(9, 'a');
  TEST_ASSERT_TRUE(desk.killed().empty());
}

TEST(test_connection_should_not_kill_itself) {
  Desk desk;
  desk.connect(7);
  desk.connect(7);
  TEST_ASSERT_TRUE(desk.killed().empty());
}

TEST(test_only_the_newest_predecessors_should_be_remembered) {
  Desk desk;
  for (int id = 1; id <= 6; ++id) desk.connect(id);
  TEST_ASSERT_TRUE(desk.killed() == Words({"2", "3", "4", "5"}));
}

TEST(test_connection_that_was_not_introduced_should_be_nobodys_predecessor) {
  Desk desk;
  desk.connect(7);
  desk.begin();
  (void)desk.poll_all();
  TEST_ASSERT_EQUAL(Status::ok, desk.reply(HandshakeCommand::client_id, ":8\r\n"));
  desk.connect(9);
  TEST_ASSERT_TRUE(desk.killed() == Words({"7"}));
}

TEST(test_a_standing_that_was_not_told_should_be_unknown) {
  ServerIdentity identity;
  identity.take_standing(ByteView("1master").slice(1, 0));
  TEST_ASSERT_EQUAL('\0', identity.standing_first);
  TEST_ASSERT_EQUAL('\0', identity.standing_last);
  TEST_ASSERT_TRUE(identity.standing() == ServerStanding::unknown);
}

TEST(test_forked_child_should_kill_none_of_its_parents) {
  Desk desk;
  desk.connect(7);
  desk.connect(8);
  desk.handshake.forget();
  desk.check();
  desk.connect(9);
  TEST_ASSERT_TRUE(desk.killed().empty());
}
