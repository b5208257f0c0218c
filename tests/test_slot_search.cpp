// SPDX-License-Identifier: MIT
//
// How a node with a Cluster finds the server of its slot, without a socket: who is asked, whom it follows, what it tells of MOVED.
#include "holdfast/core/slot_search.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/cluster.hpp"
#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/name_list.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/wait_plan.hpp"
#include "host_desk.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr const char* master = "-1clustermaster";

struct SlotDesk : HostDesk {
  explicit SlotDesk(const char* hosts = "10.0.0.1,10.0.0.2,10.0.0.3", const char* name = "k") {
    cluster.configure({.hosts = ByteView(std::string_view(hosts)), .name = ByteView(std::string_view(name))});
    ClientConfig config = config_of("nowhere");
    config.topology = &cluster;
    TEST_ASSERT_FALSE(validate(config).found());
    node->configure(config, nullptr);
  }
  // "MOVED", to whom; of the client's slot unless another is given.
  [[nodiscard]] std::string moved(const std::string& host, int slot = -1) const {
    return "-MOVED " + std::to_string(slot < 0 ? int{cluster.slot()} : slot) + " " + host + "\r\n";
  }
  void prove(const std::string& version = "7.0.15") {
    answer(identity(master, version));
    TEST_ASSERT_TRUE(node->handle_ready(now));
  }
  // The server of the slot is 10.0.0.9, and ready.
  void reach(const std::string& version = "7.0.15") {
    TEST_ASSERT_EQUAL("10.0.0.1:6379", dial());
    answer(moved("10.0.0.9:6380"));
    TEST_ASSERT_EQUAL("10.0.0.9:6380", dial());
    prove(version);
    sent.clear();
  }

  Cluster cluster;
};

bool follows(const std::string& text, int& slot, std::string& host, int& port) {
  std::uint16_t found_slot = 0;
  ByteView found_host;
  std::uint16_t found_port = 0;
  if (!SlotSearch::read_moved(ByteView(text), found_slot, found_host, found_port)) return false;
  slot = found_slot;
  host = std::string(found_host.string_view());
  port = found_port;
  return true;
}

}  // namespace

// ---- What answers mean -------------------------------------------------------------------------------------------

TEST(test_moved_should_be_read_as_slot_host_and_port) {
  int slot = 0;
  std::string host;
  int port = 0;
  TEST_ASSERT_TRUE(follows("MOVED 3999 127.0.0.1:6381", slot, host, port));
  TEST_ASSERT_EQUAL(3999, slot);
  TEST_ASSERT_EQUAL("127.0.0.1", host);
  TEST_ASSERT_EQUAL(6381, port);
  TEST_ASSERT_TRUE(follows("MOVED 0 2001:db8::1:6381", slot, host, port));
  TEST_ASSERT_EQUAL("2001:db8::1", host);
  TEST_ASSERT_TRUE(follows("MOVED 16383 db-1.example.com:1", slot, host, port));
  TEST_ASSERT_TRUE(follows("MOVED 1 :7000", slot, host, port));
  TEST_ASSERT_EQUAL("", host);
}

TEST(test_what_is_no_moved_should_be_followed_nowhere) {
  int slot = 0;
  std::string host;
  int port = 0;
  for (const char* text : {"",
                           "MOVED",
                           "MOVED ",
                           "MOVED 1",
                           "MOVED 1 ",
                           "MOVED 1 h",
                           "MOVED 1 h:",
                           "MOVED 1 h:0",
                           "MOVED 1 h:65536",
                           "MOVED 1 h:6379 ",
                           "MOVED 16384 h:1",
                           "MOVED -1 h:1",
                           "MOVED x h:1",
                           "MOVED  1 h:1",
                           "moved 1 h:1",
                           "ASK 1 h:1",
                           "MOVED 1 h x:1",
                           "MOVED 1 h/x:1",
                           "MOVED 1 ?:1",
                           "MOVED 1 h\xff:1",
                           "MOVED 1 [::1]:1"}) {
    TEST_MESSAGE(text);
    TEST_ASSERT_FALSE(follows(text, slot, host, port));
  }
  TEST_ASSERT_TRUE(follows("MOVED 1 " + std::string(listed_host_size_max, 'h') + ":1", slot, host, port));
  TEST_ASSERT_FALSE(follows("MOVED 1 " + std::string(listed_host_size_max + 1, 'h') + ":1", slot, host, port));
}

// ---- An attempt --------------------------------------------------------------------------------------------------

TEST(test_a_node_should_be_asked_who_it_is_by_the_name_of_the_client) {
  SlotDesk desk;
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.node->handle_connected(desk.now);
  desk.transmit();
  TEST_ASSERT_TRUE(desk.sent.find("\r\n$4\r\nEVAL\r\n") != std::string::npos);
  TEST_ASSERT_EQUAL("$1\r\n1\r\n$1\r\nk\r\n", desk.sent.substr(desk.sent.size() - 14));
}

TEST(test_a_node_that_serves_the_slot_should_be_the_server) {
  SlotDesk desk;
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.prove();
}

TEST(test_a_node_that_names_another_should_be_followed) {
  SlotDesk desk;
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.9:6380"));
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.answer(desk.moved("10.0.0.8:6381"));
  TEST_ASSERT_EQUAL("10.0.0.8:6381", desk.dial());
  desk.prove();
}

TEST(test_a_node_that_does_not_know_its_host_should_mean_the_one_that_is_asked) {
  SlotDesk desk;
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(desk.moved(":6383"));
  TEST_ASSERT_EQUAL("10.0.0.1:6383", desk.dial());
  desk.prove();
}

TEST(test_a_node_that_cannot_name_the_server_yet_should_be_gone_around) {
  SlotDesk desk("10.0.0.1,10.0.0.2");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(desk.moved("?:6380"));
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.9:6380"));
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.prove();
}

TEST(test_where_no_node_can_name_the_server_yet_the_attempt_should_be_worth_another_one) {
  SlotDesk desk("10.0.0.1,10.0.0.2");
  for (const char* node : {"10.0.0.1:6379", "10.0.0.2:6379"}) {
    TEST_ASSERT_EQUAL(node, desk.dial());
    desk.answer(desk.moved("?:6380"));
  }
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::try_again, desk.failure());
  TEST_ASSERT_TRUE(worth_waiting(desk.failure()));
}

TEST(test_nodes_that_name_each_other_should_be_followed_so_often_and_no_more) {
  SlotDesk desk("10.0.0.1");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  int followed = 0;
  desk.answer(desk.moved("10.0.0.8:1"));
  for (std::string host = desk.dial(); host != "none"; host = desk.dial()) {
    ++followed;
    desk.answer(desk.moved(followed % 2 == 0 ? "10.0.0.8:1" : "10.0.0.9:1"));
    TEST_ASSERT_TRUE(followed <= redirections_max);
  }
  TEST_ASSERT_EQUAL(int{redirections_max}, followed);
  TEST_ASSERT_TRUE(desk.node->timeout() > desk.now);
  // Nobody has said that it serves the slot, which may be otherwise soon.
  TEST_ASSERT_EQUAL(Status::cluster_down, desk.failure());
  TEST_ASSERT_TRUE(worth_waiting(desk.failure()));
  TEST_ASSERT_EQUAL("the nodes name one another: 10.0.0.8:1, named by node 10.0.0.1:6379", desk.text());
}

TEST(test_a_server_that_is_no_member_should_not_be_believed) {
  const struct {
    std::string answer;
    Status status;
    const char* words;
  } rows[] = {
      {HostDesk::identity("-1standalonemaster"), Status::server_error,
       "it is no node of a cluster: node 10.0.0.1:6379"},
      {HostDesk::identity("-1master"), Status::server_error, "it is no node of a cluster: node 10.0.0.1:6379"},
      {HostDesk::identity("-1clusterslave"), Status::read_only, "it is a replica: node 10.0.0.1:6379"},
      {HostDesk::identity(""), Status::no_permission,
       "it does not tell its role: may its user run INFO?: node 10.0.0.1:6379"},
      {":1\r\n", Status::protocol_error, "it does not tell who it is, or who serves the slot: node 10.0.0.1:6379"},
      {"-MOVED 1 nowhere\r\n", Status::protocol_error,
       "it does not tell who it is, or who serves the slot: node 10.0.0.1:6379"},
      {"-CLUSTERDOWN Hash slot not served\r\n", Status::cluster_down,
       "CLUSTERDOWN Hash slot not served: node 10.0.0.1:6379"},
  };
  for (const auto& [answer, status, words] : rows) {
    SlotDesk desk("10.0.0.1");
    TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
    desk.answer(answer);
    TEST_ASSERT_EQUAL("none", desk.dial());
    TEST_ASSERT_EQUAL(status, desk.failure());
    TEST_ASSERT_EQUAL(words, desk.text());
  }
}

// The name is no key there. Others of the slot may be, and are held.
TEST(test_a_master_whose_slot_is_on_its_way_should_be_the_server_still) {
  SlotDesk desk;
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer("-ASK 7629 10.0.0.9:1\r\n");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.sent.clear();
  desk.prove();
  TEST_ASSERT_EQUAL("$1\r\n0\r\n", desk.sent.substr(desk.sent.size() - 7));
  // By name again, from the next connection on.
  desk.close();
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.sent.clear();
  desk.prove();
  TEST_ASSERT_EQUAL("$1\r\n1\r\n$1\r\nk\r\n", desk.sent.substr(desk.sent.size() - 14));
}

TEST(test_a_master_that_says_ask_should_have_to_be_a_member) {
  SlotDesk desk("10.0.0.1");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer("-ASK 7629 10.0.0.9:1\r\n");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(HostDesk::identity("-1standalonemaster"));
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::server_error, desk.failure());
}

TEST(test_several_names_should_all_be_of_the_slot) {
  for (const auto& [names, served] : {std::pair{std::vector<std::string>{"{k}:1", "{k}:2"}, true},
                                      std::pair{std::vector<std::string>{"{k}:1", "{j}:2"}, false},
                                      std::pair{std::vector<std::string>{"{j}:1", "{k}:2"}, false}}) {
    const Cluster cluster({.hosts = "a", .name = "{k}"});
    LockMachine machine(multi_kind);
    const ByteView views[] = {ByteView(names[0]), ByteView(names[1])};
    const NameList list(views, 2);
    TEST_ASSERT_EQUAL(Status::ok, machine.configure(list.key(), {.lease = 10s}));
    TEST_ASSERT_EQUAL(served, cluster.serves(machine));
  }
}

// ---- A node of several -------------------------------------------------------------------------------------------

TEST(test_any_slot_should_still_be_one_slot_for_several_names) {
  for (const auto& [names, served] : {std::pair{std::vector<std::string>{"{j}:1", "{j}:2"}, true},
                                      std::pair{std::vector<std::string>{"{k}:1", "{j}:2"}, false}}) {
    Cluster cluster({.hosts = "a", .name = "{k}"});
    TEST_ASSERT_FALSE(cluster.any_slot());
    cluster.take_any_slot();
    TEST_ASSERT_TRUE(cluster.any_slot());
    LockMachine machine(multi_kind);
    const ByteView views[] = {ByteView(names[0]), ByteView(names[1])};
    const NameList list(views, 2);
    TEST_ASSERT_EQUAL(Status::ok, machine.configure(list.key(), {.lease = 10s}));
    TEST_ASSERT_EQUAL(served, cluster.serves(machine));
    if (served) TEST_ASSERT_EQUAL(slot_of(views[0]), SlotSearch::slot_of_lock(multi_kind, machine.key()));
  }
}

TEST(test_moved_should_be_told_and_change_nothing_where_the_driver_goes_after_slots) {
  SlotDesk desk;
  desk.cluster.take_any_slot();
  desk.reach();
  for (const int slot : {int{desk.cluster.slot()}, 1}) {
    Locked locked;
    desk.heard.clear();
    desk.submit(locked);
    desk.receive(desk.moved("10.0.0.7:1", slot));
    TEST_ASSERT_EQUAL(1U, desk.heard.size());
    TEST_ASSERT_EQUAL(Status::moved, desk.heard[0].outcome);
    TEST_ASSERT_TRUE(desk.heard[0].nothing_ran);
    TEST_ASSERT_TRUE(desk.node->session().ready());
    TEST_ASSERT_EQUAL("MOVED " + std::to_string(slot) + " 10.0.0.7:1", desk.text());  // Where the driver reads it.
  }
}

TEST(test_a_node_that_was_led_should_begin_there_and_go_on_with_the_list) {
  SlotDesk desk;
  SlotSearch::lead(*desk.node, "10.0.0.7", 1);
  TEST_ASSERT_EQUAL("10.0.0.7:1", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.9:2"));
  TEST_ASSERT_EQUAL("10.0.0.9:2", desk.dial());
  desk.prove();
}

TEST(test_channels_of_any_slot_should_be_those_of_names_and_not_a_clients_own) {
  Cluster cluster({.hosts = "a", .name = "k"});
  const Topology& topology = cluster;
  for (const bool any : {false, true}) {
    if (any) cluster.take_any_slot();
    TEST_ASSERT_TRUE(topology.table().shards(topology, "redisson_lock__channel:{k}"));
    TEST_ASSERT_EQUAL(any, topology.table().shards(topology, "redisson_lock__channel:{j}"));
    TEST_ASSERT_FALSE(topology.table().shards(topology, "holdfast_fair:{0123456789abcdef}"));
  }
}

TEST(test_a_channel_should_be_heard_where_it_is_in_the_slot_of_its_name) {
  const Announcement& announcement = redisson_announcement;
  for (const char* name : {"k", "{k}:1", "a{k}b", "{k}}"})
    TEST_ASSERT_TRUE(SlotSearch::may_hear(announcement, Key(ByteView(std::string_view(name)))));
  for (const char* name : {"a}b", "a{b", "a{}b"})
    TEST_ASSERT_FALSE(SlotSearch::may_hear(announcement, Key(ByteView(std::string_view(name)))));
  Announcement own = announcement;
  own.addressed = true;
  TEST_ASSERT_TRUE(SlotSearch::may_hear(own, Key("a}b")));
}

// ---- Following ---------------------------------------------------------------------------------------------------

TEST(test_moved_of_another_slot_than_was_asked_for_should_be_followed_nowhere) {
  SlotDesk desk("10.0.0.1,10.0.0.2");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.9:1", desk.cluster.slot() + 1));
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
}

TEST(test_a_server_that_is_gone_should_not_be_dialled_again_in_the_same_attempt) {
  SlotDesk desk("10.0.0.1,10.0.0.2");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.9:1"));
  TEST_ASSERT_EQUAL("10.0.0.9:1", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.9:1"));
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::connect_failed, desk.failure());
  TEST_ASSERT_TRUE(worth_waiting(desk.failure()));
}

TEST(test_a_lost_connection_should_be_made_anew_to_the_server_of_before_first) {
  SlotDesk desk;
  desk.reach();
  desk.close();
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.refuse();
  // Nobody has named it in this attempt.
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.8:6380"));
  TEST_ASSERT_EQUAL("10.0.0.8:6380", desk.dial());
  desk.prove();
}

TEST(test_the_node_that_led_to_the_server_should_be_asked_first_after_it) {
  SlotDesk desk;
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.9:6380"));
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.prove();
  // Also where the server of before has been the answer meanwhile.
  desk.close();
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.prove();
  desk.now = desk.now + 10s;
  desk.close();
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
}

TEST(test_an_attempt_that_has_failed_should_not_begin_at_the_server_of_before) {
  SlotDesk desk("10.0.0.1");
  desk.reach();
  desk.close();
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("none", desk.dial());
  desk.now = desk.node->timeout();
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
}

// ---- Requests ----------------------------------------------------------------------------------------------------

TEST(test_a_request_that_was_moved_should_have_run_nowhere_and_lead_to_the_server) {
  SlotDesk desk;
  desk.reach();
  Locked locked;
  desk.submit(locked);
  desk.receive(desk.moved("10.0.0.8:6381"));
  TEST_ASSERT_EQUAL(1U, desk.heard.size());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.heard[0].outcome);
  TEST_ASSERT_TRUE(desk.heard[0].nothing_ran);
  TEST_ASSERT_EQUAL(SessionState::failed, desk.node->session().state());
  desk.close();
  TEST_ASSERT_EQUAL("10.0.0.8:6381", desk.dial());
  desk.prove();
}

TEST(test_a_request_that_was_moved_to_nowhere_should_close_the_connection) {
  SlotDesk desk("10.0.0.1");
  desk.reach();
  Locked locked;
  desk.submit(locked);
  desk.receive(desk.moved("h/x:1"));
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.heard[0].outcome);
  TEST_ASSERT_EQUAL(SessionState::failed, desk.node->session().state());
}

// So Valkey does for a moment where nodes are told by their names and one of them was restarted.
TEST(test_a_request_that_was_moved_to_whom_the_node_cannot_name_yet_should_be_waited_for) {
  for (const bool any_slot : {false, true}) {
    SlotDesk desk;
    if (any_slot) desk.cluster.take_any_slot();
    desk.reach();
    for (int tries = 0; tries < 2; ++tries) {
      Locked locked;
      desk.heard.clear();
      desk.submit(locked);
      desk.receive(desk.moved("?:6381"));
      TEST_ASSERT_EQUAL(Status::try_again, desk.heard[0].outcome);
      TEST_ASSERT_TRUE(desk.heard[0].nothing_ran);
      TEST_ASSERT_TRUE(desk.node->ready() && desk.node->session().ready());
    }
    Locked locked;
    desk.heard.clear();
    desk.submit(locked);
    desk.receive(desk.moved("10.0.0.8:6381"));
    TEST_ASSERT_EQUAL(any_slot ? Status::moved : Status::not_connected, desk.heard[0].outcome);
  }
}

TEST(test_a_question_about_another_slot_should_not_move_the_client) {
  SlotDesk desk;
  desk.reach();
  int asker = 0;
  const Argument question[] = {"GET", "elsewhere"};
  TEST_ASSERT_EQUAL(Status::ok, desk.node->ask(question, {.requester = &asker}, desk.now));
  desk.receive(desk.moved("10.0.0.8:6381", desk.cluster.slot() + 1));
  TEST_ASSERT_EQUAL(Status::cross_slot, desk.heard[0].outcome);
  TEST_ASSERT_TRUE(desk.node->ready() && desk.node->session().ready());
}

// Whether the key is on the slot's new server is known there alone: it may have been granted to another here until now.
TEST(test_a_slot_on_its_way_should_be_waited_for_and_not_followed) {
  SlotDesk desk;
  desk.reach();
  Locked locked;
  desk.submit(locked);
  desk.receive("-ASK " + std::to_string(desk.cluster.slot()) + " 10.0.0.8:6381\r\n");
  TEST_ASSERT_EQUAL(Status::try_again, desk.heard[0].outcome);
  TEST_ASSERT_TRUE(worth_waiting(Status::try_again));
  TEST_ASSERT_TRUE(desk.node->ready() && desk.node->session().ready());
}

TEST(test_a_server_that_serves_its_slot_no_more_should_be_left) {
  for (const char* refusal : {"-CLUSTERDOWN The cluster is down\r\n", "-READONLY x\r\n", "-MASTERDOWN x\r\n"}) {
    SlotDesk desk;
    desk.reach();
    Locked locked;
    desk.submit(locked);
    desk.receive(refusal);
    TEST_ASSERT_TRUE(worth_waiting(desk.heard[0].outcome));
    TEST_ASSERT_EQUAL(SessionState::failed, desk.node->session().state());
  }
}

TEST(test_a_foreign_name_should_be_refused_before_anything_is_sent) {
  SlotDesk desk("10.0.0.1", "{other}");
  desk.reach();
  Locked locked;  // "k".
  desk.submit(locked);
  desk.transmit();
  TEST_ASSERT_EQUAL("", desk.sent);
  TEST_ASSERT_EQUAL(Status::cross_slot, locked.machine.status());
}

// ---- Announcements -----------------------------------------------------------------------------------------------

namespace {

// What leaves for this request.
std::string sent_for(const std::string& version, const std::vector<std::string>& words) {
  SlotDesk desk;
  desk.reach(version);
  int asker = 0;
  std::vector<Argument> arguments;
  for (const std::string& word : words) arguments.emplace_back(ByteView(word));
  TEST_ASSERT_EQUAL(Status::ok, desk.node->ask({arguments.data(), arguments.size()}, {.requester = &asker}, desk.now));
  desk.transmit();
  return desk.sent;
}

}  // namespace

TEST(test_a_script_should_be_told_to_publish_within_the_slot) {
  const std::string verb = "$8\r\nSPUBLISH\r\n";
  TEST_ASSERT_EQUAL("*4\r\n$4\r\nEVAL\r\n$1\r\nx\r\n$1\r\n0\r\n" + verb, sent_for("7.0.0", {"EVAL", "x", "0"}));
  TEST_ASSERT_EQUAL("*4\r\n$7\r\nEVALSHA\r\n$1\r\nx\r\n$1\r\n0\r\n" + verb, sent_for("8.0.1", {"EVALSHA", "x", "0"}));
  // One digit more.
  TEST_ASSERT_EQUAL(
      "*10\r\n$4\r\nEVAL\r\n$1\r\nx\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n" +
          verb,
      sent_for("7.0.0", {"EVAL", "x", "0", "1", "2", "3", "4", "5", "6"}));
}

TEST(test_what_does_not_publish_or_cannot_should_stay_as_it_is) {
  TEST_ASSERT_EQUAL("*2\r\n$4\r\nPTTL\r\n$1\r\nk\r\n", sent_for("7.0.0", {"PTTL", "k"}));
  TEST_ASSERT_EQUAL("*3\r\n$4\r\nEVAL\r\n$1\r\nx\r\n$1\r\n0\r\n", sent_for("6.2.7", {"EVAL", "x", "0"}));
  TEST_ASSERT_EQUAL("*2\r\n$5\r\nEVALX\r\n$1\r\nx\r\n", sent_for("7.0.0", {"EVALX", "x"}));
}

// ---- The configuration -------------------------------------------------------------------------------------------

TEST(test_what_is_wrong_with_a_cluster_should_be_named) {
  const std::string long_name(key_size_max + 1, 'n');
  TEST_ASSERT_EQUAL("cluster.hosts", std::string(validate(ClusterConfig{.hosts = "", .name = "n"}).field));
  TEST_ASSERT_EQUAL("cluster.hosts", std::string(validate(ClusterConfig{.hosts = "a,", .name = "n"}).field));
  TEST_ASSERT_EQUAL("cluster.name", std::string(validate(ClusterConfig{.hosts = "a", .name = ""}).field));
  TEST_ASSERT_EQUAL("cluster.name",
                    std::string(validate(ClusterConfig{.hosts = "a", .name = ByteView(long_name)}).field));
  Cluster cluster({.hosts = "a", .name = "n"});
  ClientConfig config;
  config.topology = &cluster;
  TEST_ASSERT_FALSE(validate(config).found());
  config.database = 1;
  TEST_ASSERT_EQUAL("database", std::string(validate(config).field));
  config.database = 0;
  config.socket_path = "/run/redis.sock";
  TEST_ASSERT_EQUAL("topology", std::string(validate(config).field));
}

TEST(test_names_of_one_slot_should_be_at_one_place) {
  const Cluster one({.hosts = "a,b", .name = "{t}:1"});
  const Cluster same({.hosts = "b,a", .name = "{t}:2"});
  const Cluster other({.hosts = "a,b", .name = "{u}:1"});
  TEST_ASSERT_EQUAL(one.number(), same.number());
  TEST_ASSERT_FALSE(one.number() == other.number());
}

TEST(test_the_slots_of_the_specification_should_be_found) {
  TEST_ASSERT_EQUAL(0x31c3, crc16(ByteView("123456789")));
  TEST_ASSERT_EQUAL(12182, slot_of(ByteView("foo")));
  TEST_ASSERT_EQUAL(slot_of(ByteView("user1000")), slot_of(ByteView("{user1000}.following")));
  TEST_ASSERT_EQUAL(slot_of(ByteView("bar")), slot_of(ByteView("foo{bar}{zap}")));
  TEST_ASSERT_EQUAL(slot_of(ByteView("{bar")), slot_of(ByteView("foo{{bar}}zap")));
  TEST_ASSERT_EQUAL(crc16(ByteView("foo{}{bar}")) % cluster_slots, slot_of(ByteView("foo{}{bar}")));
  TEST_ASSERT_EQUAL(0, slot_of(ByteView("")));
}

TEST(test_a_channel_should_be_the_clients_where_its_slot_is) {
  const SlotDesk desk;
  const Topology& topology = desk.cluster;
  TEST_ASSERT_TRUE(topology.table().shards(topology, "redisson_lock__channel:{k}"));
  TEST_ASSERT_FALSE(topology.table().shards(topology, "redisson_lock__channel:{l}"));
  TEST_ASSERT_FALSE(topology.table().shards(topology, ""));
}

TEST(test_a_server_should_have_channels_of_a_slot_from_its_version_on) {
  const SlotDesk desk;
  ServerIdentity identity;
  identity.version = 60299;
  TEST_ASSERT_TRUE(desk.cluster.sharded_by(identity) == nullptr);
  identity.version = 70000;
  TEST_ASSERT_TRUE(desk.cluster.sharded_by(identity) == &desk.cluster);
  identity = ServerIdentity();
  identity.is_valkey = true;
  TEST_ASSERT_TRUE(desk.cluster.sharded_by(identity) == &desk.cluster);
}

TEST(test_a_cluster_should_be_told_by_its_hosts_and_its_name) {
  const SlotDesk desk;
  TEST_ASSERT_TRUE(desk.cluster.has_slots());
  TEST_ASSERT_EQUAL(ByteView("10.0.0.1,10.0.0.2,10.0.0.3"), desk.cluster.hosts());
  TEST_ASSERT_EQUAL(ByteView("k"), desk.cluster.name());
}

TEST(test_texts_of_a_cluster_that_are_too_long_should_be_named_as_that) {
  const std::string hosts(listed_hosts_size_max + 1, 'h');
  const std::string name(key_size_max + 1, 'n');
  const std::string words = "it is longer than limits.hpp allows";
  TEST_ASSERT_EQUAL(words, std::string(validate(ClusterConfig{.hosts = ByteView(hosts), .name = "n"}).reason));
  TEST_ASSERT_EQUAL(words, std::string(validate(ClusterConfig{.hosts = "a", .name = ByteView(name)}).reason));
}

// ---- Whom it speaks to, and as whom ------------------------------------------------------------------------------

TEST(test_every_node_of_a_cluster_should_be_spoken_to_as_the_clients_user) {
  SlotDesk desk;
  ClientConfig config = config_of("nowhere");
  config.topology = &desk.cluster;
  config.user = "worker";
  config.password = "secret";
  desk.node->configure(config, nullptr);
  for (const char* const where : {"10.0.0.1:6379", "10.0.0.9:6380"}) {
    desk.sent.clear();
    TEST_ASSERT_EQUAL(std::string(where), desk.dial());
    desk.node->handle_connected(desk.now);
    desk.transmit();
    TEST_ASSERT_TRUE(desk.sent.find(command_of({"AUTH", "worker", "secret"})) != std::string::npos);
    desk.receive("+OK\r\n+OK\r\n:7\r\n" + desk.moved("10.0.0.9:6380"));
    desk.close();
  }
}

TEST(test_a_cluster_nodes_own_compare_and_delete_should_be_used_unless_it_is_not_wanted) {
  for (const bool wanted : {true, false}) {
    SlotDesk desk;
    ClientConfig config = config_of("nowhere");
    config.topology = &desk.cluster;
    config.native_delete = wanted;
    desk.node->configure(config, nullptr);
    desk.reach("8.4.0");
    TEST_ASSERT_TRUE(desk.node->session().identity().native_delete ==
                     (wanted ? NativeDelete::delex : NativeDelete::none));
  }
}

TEST(test_the_server_of_before_should_be_told_where_the_others_say_less) {
  SlotDesk desk;
  desk.reach();
  desk.close();
  desk.now = desk.now + 10s;
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.answer("-LOADING Redis is loading the dataset in memory\r\n");
  for (int host = 0; host < 3; ++host) {
    TEST_ASSERT_TRUE(desk.dial().find("10.0.0.") == 0);
    desk.refuse();
  }
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("loading: the server of before", desk.text());
}

TEST(test_a_clusters_question_that_does_not_fit_into_the_send_buffer_should_be_refused) {
  const std::string name(key_size_max, 'n');
  Cluster cluster;
  cluster.configure({.hosts = "10.0.0.1", .name = ByteView(name)});
  ClientConfig config = config_of("nowhere");
  config.topology = &cluster;
  NodeBuffersOf<SmallSessionBuffers, small_texts_size, small_addresses> buffers{};
  Node node{buffers.storage()};
  node.configure(config, nullptr);
  TEST_ASSERT_EQUAL(DialAction::none, node.poll_dial(start, least));
  TEST_ASSERT_EQUAL(Status::buffer_too_small, node.dialer().failure());
  TEST_ASSERT_TRUE(std::string(node.session().failure_text().string_view()).find("do not fit") != std::string::npos);
}

// Who waits for a channel of the slot finds out by time then.
TEST(test_a_script_should_be_sent_as_it_is_where_there_is_no_room_for_more) {
  SlotDesk desk;
  desk.reach();
  const std::size_t room = desk.node->session().request_size();
  const std::string verb = "$8\r\nSPUBLISH\r\n";
  for (const std::size_t arguments : {3U, 9U}) {  // With ten, the number of arguments is a digit longer.
    int told = 0;
    int untold = 0;
    for (std::size_t length = room - 200; length < room; ++length) {
      const std::string text(length, 'x');
      std::vector<Argument> words = {"EVAL", ByteView(text), "0"};
      std::string rest = "\r\n$4\r\nEVAL\r\n$" + std::to_string(length) + "\r\n" + text + "\r\n$1\r\n0\r\n";
      for (; words.size() < arguments; rest += "$1\r\na\r\n") words.emplace_back("a");
      const std::string plain = "*" + std::to_string(arguments) + rest;
      const std::string more = "*" + std::to_string(arguments + 1) + rest + verb;
      int asker = 0;
      desk.sent.clear();
      const Status status = desk.node->ask({words.data(), words.size()}, {.requester = &asker}, desk.now);
      TEST_ASSERT_EQUAL(plain.size() <= room ? Status::ok : Status::too_many_requests, status);
      if (status != Status::ok) continue;
      desk.receive(":1\r\n");
      TEST_ASSERT_TRUE(desk.sent == more || desk.sent == plain);
      // There may be a byte to spare.
      if (more.size() < room) TEST_ASSERT_TRUE(desk.sent == more);
      if (more.size() > room) TEST_ASSERT_TRUE(desk.sent == plain);
      ++(desk.sent == more ? told : untold);
    }
    TEST_ASSERT_TRUE(told > 10 && untold > 10);
  }
}

TEST(test_the_time_of_an_attempt_should_be_shared_by_the_server_of_before_and_the_nodes_of_the_list) {
  SlotDesk desk;
  desk.reach();
  desk.now = desk.now + 10s;
  desk.close();
  const Instant begun = desk.now;
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  TEST_ASSERT_EQUAL(begun + 500ms, desk.node->timeout());  // It, and three of the list.
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  TEST_ASSERT_EQUAL(begun + 500ms, desk.node->timeout());  // The three, and whom they name.
}

TEST(test_the_server_of_before_should_be_told_as_one_that_nobody_named) {
  SlotDesk desk("10.0.0.1");
  desk.reach();
  desk.now = desk.now + 10s;
  desk.close();
  TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
  desk.now = desk.now + 1s;
  TEST_ASSERT_EQUAL("hang_up", desk.dial());
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.9:6380"));
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("connect_failed: 10.0.0.9:6380", desk.text());
}

TEST(test_redirections_should_be_counted_anew_in_each_attempt) {
  SlotDesk desk("10.0.0.1");
  for (int attempt = 0; attempt < 2; ++attempt) {
    TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
    desk.answer(desk.moved("10.0.0.8:1"));
    int followed = 0;
    for (std::string host = desk.dial(); host != "none"; host = desk.dial(), ++followed)
      desk.answer(desk.moved(followed % 2 == 0 ? "10.0.0.9:1" : "10.0.0.8:1"));
    TEST_ASSERT_EQUAL(int{redirections_max}, followed);
    TEST_ASSERT_EQUAL(DialState::waiting, desk.node->dialer().state());
    desk.now = desk.node->timeout();
  }
}

TEST(test_a_lock_should_be_in_the_slot_of_its_first_name) {
  TEST_ASSERT_EQUAL(slot_of("foo"), SlotSearch::slot_of_lock(mutex_kind, Key("foo")));
  const ByteView names[] = {"foo"};
  const NameList list(names, 1);
  TEST_ASSERT_EQUAL(slot_of("foo"), SlotSearch::slot_of_lock(multi_kind, list.key()));
}

TEST(test_any_lock_of_one_name_should_be_served_where_any_slot_is) {
  Cluster cluster({.hosts = "a", .name = "k"});
  LockMachine machine(mutex_kind);
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("elsewhere"), {.lease = 10s}));
  TEST_ASSERT_FALSE(SlotSearch::serves(cluster, machine));
  LockMachine several(multi_kind);
  const ByteView names[] = {"{j}:1", "{j}:2"};
  const NameList list(names, 2);
  TEST_ASSERT_EQUAL(Status::ok, several.configure(list.key(), {.lease = 10s}));
  TEST_ASSERT_FALSE(SlotSearch::serves(cluster, several));
  cluster.take_any_slot();
  TEST_ASSERT_TRUE(SlotSearch::serves(cluster, machine));
  TEST_ASSERT_TRUE(SlotSearch::serves(cluster, several));
}

TEST(test_only_a_server_that_was_believed_should_be_the_first_of_the_next_attempt) {
  SlotDesk desk("10.0.0.1");
  for (int attempt = 0; attempt < 2; ++attempt) {
    TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
    desk.answer(desk.moved("10.0.0.9:6380"));
    TEST_ASSERT_EQUAL(Status::not_connected, desk.failure());  // It is no failure, but the end of a connection.
    TEST_ASSERT_EQUAL("10.0.0.9:6380", desk.dial());
    desk.answer(HostDesk::identity("-1clusterslave"));
    TEST_ASSERT_EQUAL("none", desk.dial());
    TEST_ASSERT_EQUAL("it is a replica: 10.0.0.9:6380, named by node 10.0.0.1:6379", desk.text());
    desk.now = desk.node->timeout();
  }
  desk.reach();
  TEST_ASSERT_TRUE(desk.node->ready());
}

TEST(test_a_slot_on_its_way_should_be_no_failure) {
  SlotDesk desk;
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer("-ASK 7629 10.0.0.9:1\r\n");
  TEST_ASSERT_EQUAL(Status::not_connected, desk.failure());
}

// It may be back.
TEST(test_a_node_of_the_list_that_was_away_should_be_dialled_where_another_names_it) {
  SlotDesk desk("10.0.0.1,10.0.0.2");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.1:6379"));
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.prove();
}

TEST(test_a_silent_server_should_not_be_told_by_the_address_of_one_that_was_not_dialled) {
  SlotDesk desk("10.0.0.1,10.0.0.2");
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  for (int hop = 1; hop <= int{redirections_max}; ++hop) {
    desk.answer(desk.moved("10.0.1." + std::to_string(hop) + ":1"));
    TEST_ASSERT_EQUAL("10.0.1." + std::to_string(hop) + ":1", desk.dial());
  }
  desk.answer("-LOADING Redis is loading\r\n");
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
  desk.answer("-NOAUTH Authentication required.\r\n");
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL(Status::loading, desk.failure());
  TEST_ASSERT_EQUAL("NOAUTH Authentication required.: node 10.0.0.2:6379", desk.text());
  desk.now = desk.node->timeout();
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  for (int hop = 1; hop <= int{redirections_max}; ++hop) {
    desk.answer(desk.moved("10.0.1." + std::to_string(hop) + ":1"));
    TEST_ASSERT_EQUAL("10.0.1." + std::to_string(hop) + ":1", desk.dial());
  }
  desk.refuse();
  TEST_ASSERT_EQUAL("10.0.0.2:6379", desk.dial());
  desk.answer(desk.moved("10.0.0.77:1"));  // One redirection too many.
  TEST_ASSERT_EQUAL("none", desk.dial());
  TEST_ASSERT_EQUAL("the nodes name one another: 10.0.0.77:1, named by node 10.0.0.2:6379", desk.text());
}

TEST(test_a_copy_should_know_no_address_of_its_slots_server) {
  SlotDesk desk;
  (void)desk.dial();
  NodeDesk other;
  other.node->configure_like(*desk.node);
  TEST_ASSERT_EQUAL(0U, other.node->dialer().address_count());
  TEST_ASSERT_TRUE(other.node->dialer().named());
}

// The question is sent as a whole, or not at all: whatever the name is.
TEST(test_a_clusters_question_should_be_refused_or_fit) {
  int refused = 0;
  int asked = 0;
  const std::string user(user_size_max, 'u');
  const std::string password(password_size_max, 'p');
  for (std::size_t size = 1; size <= key_size_max; ++size) {
    const std::string name(size, 'k');
    Cluster cluster({.hosts = "10.0.0.1", .name = ByteView(name)});
    ClientConfig config = config_of("nowhere");
    config.topology = &cluster;
    config.user = ByteView(user);
    config.password = ByteView(password);
    using Buffers = SessionBuffersOf<client_elements_max, client_reply_size_max, 1280>;
    const auto buffers = std::make_unique<NodeBuffersOf<Buffers, config_texts_size_max, addresses_max>>();
    Node node{buffers->storage()};
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
    TEST_ASSERT_TRUE(sent.find(command_of({"AUTH", user.c_str(), password.c_str()})) != std::string::npos);
    TEST_ASSERT_TRUE(sent.find("$1\r\n1\r\n" + bulk(name)) != std::string::npos);
  }
  TEST_ASSERT_TRUE(refused > 0 && asked > 0);
}

TEST(test_a_subscriber_should_hear_the_channels_of_the_slot_where_the_server_has_such) {
  SlotDesk desk;
  desk.reach("7.0.0");
  TEST_ASSERT_TRUE(desk.node->subscriber_settings().shards == &desk.cluster);
  SlotDesk older;
  older.reach("6.2.7");
  TEST_ASSERT_TRUE(older.node->subscriber_settings().shards == nullptr);
}
