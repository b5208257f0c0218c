// SPDX-License-Identifier: MIT
//
// At which of its connections a driver looks for a slot, and which server the words of MOVED name.
#include "holdfast/core/slot_routes.hpp"

#include <string>

#include "holdfast/cluster.hpp"
#include "host_desk.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

TEST(test_each_slot_should_be_looked_for_at_the_first_connection_until_it_is_led_elsewhere) {
  SlotRoutes routes;
  for (std::uint16_t slot = 0; slot < cluster_slots; ++slot) TEST_ASSERT_EQUAL(0, routes.at(slot));
  routes.lead(0, 3);
  routes.lead(cluster_slots - 1, 4);
  TEST_ASSERT_EQUAL(3, routes.at(0));
  TEST_ASSERT_EQUAL(0, routes.at(1));
  TEST_ASSERT_EQUAL(4, routes.at(cluster_slots - 1));
}

TEST(test_slots_of_one_connection_should_be_led_to_another_and_no_others) {
  SlotRoutes routes;
  routes.lead(1, 3);
  routes.lead(2, 4);
  routes.lead(cluster_slots - 1, 3);
  routes.redirect(3, 5);
  TEST_ASSERT_EQUAL(5, routes.at(1));
  TEST_ASSERT_EQUAL(4, routes.at(2));
  TEST_ASSERT_EQUAL(5, routes.at(cluster_slots - 1));
  TEST_ASSERT_EQUAL(0, routes.at(0));
}

TEST(test_slots_of_a_connection_that_goes_elsewhere_should_be_looked_for_at_the_first_again) {
  SlotRoutes routes;
  routes.lead(1, 3);
  routes.lead(2, 4);
  routes.forget(3);
  TEST_ASSERT_EQUAL(0, routes.at(1));
  TEST_ASSERT_EQUAL(4, routes.at(2));
  routes.lead(cluster_slots - 1, 3);
  routes.forget();
  TEST_ASSERT_EQUAL(0, routes.at(2));
  TEST_ASSERT_EQUAL(0, routes.at(cluster_slots - 1));
}

TEST(test_a_named_server_should_be_its_host_and_its_port) {
  NamedServer one;
  NamedServer other;
  TEST_ASSERT_TRUE(one == other);
  one.assign("host", 1);
  TEST_ASSERT_EQUAL(ByteView("host"), one.host());
  TEST_ASSERT_EQUAL(1, one.port());
  TEST_ASSERT_FALSE(one == other);
  other.assign("host", 2);
  TEST_ASSERT_FALSE(one == other);
  other.assign("hose", 1);
  TEST_ASSERT_FALSE(one == other);
  other.assign("host", 1);
  TEST_ASSERT_TRUE(one == other);
}

namespace {

// A node that was told this, of a lock whose slot is any.
struct TellingDesk : HostDesk {
  explicit TellingDesk(const std::string& words) {
    cluster.configure({.hosts = "10.0.0.1", .name = "k"});
    cluster.take_any_slot();
    ClientConfig config = config_of("nowhere");
    config.topology = &cluster;
    node->configure(config, nullptr);
    TEST_ASSERT_EQUAL("10.0.0.1:6379", dial());
    answer(identity("-1clustermaster"));
    TEST_ASSERT_TRUE(node->handle_ready(now));
    submit(locked);
    transmit();
    receive("-" + words + "\r\n");
    TEST_ASSERT_EQUAL(ByteView(words), node->session().failure_text());
  }

  Cluster cluster;
  Locked locked;
};

}  // namespace

TEST(test_the_words_of_moved_should_name_a_server_of_their_own_slot) {
  const TellingDesk desk("MOVED 12 10.0.0.9:6380");
  NamedServer server;
  TEST_ASSERT_TRUE(server.read(*desk.node, 12));
  TEST_ASSERT_EQUAL(ByteView("10.0.0.9"), server.host());
  TEST_ASSERT_EQUAL(6380, server.port());
  TEST_ASSERT_FALSE(server.read(*desk.node, 13));
  TEST_ASSERT_EQUAL(ByteView("10.0.0.9"), server.host());
}

TEST(test_words_of_moved_without_a_host_should_name_that_of_the_server_that_says_them) {
  const TellingDesk desk("MOVED 12 :7000");
  NamedServer server;
  TEST_ASSERT_TRUE(server.read(*desk.node, 12));
  TEST_ASSERT_EQUAL(ByteView("10.0.0.1"), server.host());
  TEST_ASSERT_EQUAL(7000, server.port());
}

TEST(test_other_words_should_name_no_server) {
  const TellingDesk desk("ASK 12 10.0.0.9:6380");
  NamedServer server;
  server.assign("before", 1);
  TEST_ASSERT_FALSE(server.read(*desk.node, 12));
  TEST_ASSERT_EQUAL(ByteView("before"), server.host());
  TEST_ASSERT_EQUAL(1, server.port());
}
