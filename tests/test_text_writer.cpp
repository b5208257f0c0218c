// SPDX-License-Identifier: MIT
//
// Texts for people, put together in a space that may be too small for them.
#include "text_writer.hpp"

#include <cstring>
#include <string>

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

char space[128];

std::string text_of(const TextWriter& writer) { return std::string(writer.view().string_view()); }
std::string node_text(std::size_t index, const Node& node) {
  return text_of(TextWriter({space, sizeof space}).add_node(index, node));
}

}  // namespace

TEST(test_a_text_should_be_cut_where_its_space_ends) {
  for (std::size_t room = 0; room <= 10; ++room) {
    std::memset(space, '#', sizeof space);
    const std::string text = text_of(TextWriter({space, room}).add("abc").add(45U).add("").add("defgh"));
    TEST_ASSERT_EQUAL(std::string("abc45defgh").substr(0, room), text);
    TEST_ASSERT_EQUAL('#', space[room]);
  }
}

TEST(test_an_address_should_be_written_as_it_is_read) {
  const auto address = [](ByteView host, std::uint16_t port) {
    return text_of(TextWriter({space, sizeof space}).add_address(host, port));
  };
  TEST_ASSERT_EQUAL("redis.example:6379", address("redis.example", 6379));
  TEST_ASSERT_EQUAL("[fe80::2%eth0]:65535", address("fe80::2%eth0", 65535));
}

TEST(test_a_time_should_be_written_in_whole_milliseconds) {
  const auto time = [](Duration duration) {
    return text_of(TextWriter({space, sizeof space}).add_milliseconds(duration));
  };
  TEST_ASSERT_EQUAL("0 ms", time(999'999ns));
  TEST_ASSERT_EQUAL("3600000 ms", time(1h));
}

TEST(test_a_node_should_be_called_by_its_number_and_by_where_it_is) {
  const NodeDesk plain("redis.example", false);
  TEST_ASSERT_EQUAL("node 1 (redis.example:6379)", node_text(0, *plain.node));
  const NodeDesk local;
  ClientConfig config;
  config.socket_path = "/run/redis.sock";
  local.node->configure(config, nullptr);
  TEST_ASSERT_EQUAL("node 9 (/run/redis.sock)", node_text(8, *local.node));
}

// Before its server is found it has a service alone.
TEST(test_a_node_with_sentinels_should_be_called_by_its_service_and_by_the_master) {
  Sentinels sentinels({.hosts = "s1", .service = "mymaster"});
  HostDesk desk;
  ClientConfig config = config_of("nowhere");
  config.topology = &sentinels;
  desk.node->configure(config, nullptr);
  TEST_ASSERT_EQUAL("node 2 (mymaster)", node_text(1, *desk.node));
  TEST_ASSERT_EQUAL("s1:26379", desk.dial());
  TEST_ASSERT_EQUAL("node 2 (mymaster)", node_text(1, *desk.node));
  desk.answer("*2\r\n" + bulk("10.0.0.1") + bulk("6379"));
  TEST_ASSERT_EQUAL("10.0.0.1:6379", desk.dial());
  desk.answer(HostDesk::identity("-1master"));
  TEST_ASSERT_TRUE(desk.node->handle_ready(desk.now));
  TEST_ASSERT_EQUAL("node 2 (mymaster at 10.0.0.1:6379)", node_text(1, *desk.node));
}
