// SPDX-License-Identifier: MIT
//
// What a node keeps of its configuration: the texts in storage of its own, and everything else as it was given.
#include "holdfast/core/kept_config.hpp"

#include <cstring>
#include <string>

#include "client_config_text.hpp"
#include "holdfast/detail/meter.hpp"
#include "holdfast/detail/stream.hpp"
#include "holdfast/sentinels.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

struct Security : StreamSecurity {
  static constexpr Table table = {};
  Security() : StreamSecurity(table) {}
} security;

std::string text(std::size_t size) { return std::string(size, 'a'); }

// Every field differs from its default, but the socket path.
ClientConfig changed_config() {
  ClientConfig config;
  config.host = "redis.example";
  config.port = 1234;
  config.tls = &security;
  config.user = "me";
  config.password = ByteView("se\0cret", 7);
  config.client_name = "";
  config.database = 5;
  config.connect_timeout = 11ms;
  config.request_timeout = 12ms;
  config.stall_timeout = 13ms;
  config.spin = 14us;
  config.max_poll = 15ms;
  config.native_delete = false;
  static Meter meter;
  config.meter = &meter;
  return config;
}

// Host, user and password, and a NUL after each.
constexpr std::size_t changed_texts_size = 13 + 1 + 2 + 1 + 7 + 1;

}  // namespace

TEST(test_a_kept_config_should_be_the_one_that_was_given) {
  for (const ClientConfig& given : {ClientConfig(), changed_config()}) {
    char space[config_texts_size_max];
    KeptConfig kept;
    kept.keep(given, {space, sizeof space});
    const ClientConfig again = kept;
    TEST_ASSERT_EQUAL(to_text(given), to_text(again));
    TEST_ASSERT_TRUE(again.tls == given.tls);
    TEST_ASSERT_TRUE(again.meter == given.meter);
  }
}

TEST(test_texts_should_stand_in_the_space_with_a_nul_behind_each) {
  char space[changed_texts_size + 1];
  std::memset(space, 'x', sizeof space);
  KeptConfig kept;
  {
    ClientConfig given = changed_config();
    kept.keep(given, {space, changed_texts_size});
    given.host = "gone";
  }
  TEST_ASSERT_EQUAL(ByteView("redis.example\0me\0se\0cret\0x", changed_texts_size + 1), ByteView(space, sizeof space));
  TEST_ASSERT_TRUE(kept.host.c_str() == space);
  TEST_ASSERT_EQUAL(std::string("redis.example"), std::string(kept.host.c_str()));
  TEST_ASSERT_EQUAL(ByteView("se\0cret", 7), kept.password.view());
  TEST_ASSERT_TRUE(kept.client_name.empty());
  TEST_ASSERT_EQUAL(std::string(), std::string(kept.client_name.c_str()));
}

TEST(test_the_host_of_a_socket_path_should_not_be_kept) {
  ClientConfig given;
  given.host = ByteView(text(host_size_max));
  given.socket_path = ByteView(text(socket_path_size_max));
  given.client_name = "";
  TEST_ASSERT_FALSE(KeptConfig::misfit(given, socket_path_size_max + 1).found());
  char space[socket_path_size_max + 1];
  KeptConfig kept;
  kept.keep(given, {space, sizeof space});
  TEST_ASSERT_EQUAL(given.socket_path.view(), kept.socket_path.view());
  TEST_ASSERT_TRUE(kept.host.empty());
  const ClientConfig again = kept;
  TEST_ASSERT_EQUAL(ClientConfig().host.view(), again.host.view());
}

TEST(test_a_nodes_search_should_stand_where_the_host_would) {
  Sentinels sentinels({.hosts = "s1", .service = "mymaster"});
  ClientConfig given;
  given.topology = &sentinels;
  given.client_name = "";
  TEST_ASSERT_FALSE(KeptConfig::misfit(given, host_search_size + 1).found());
  TEST_ASSERT_EQUAL(std::string("host"), std::string(KeptConfig::misfit(given, host_search_size).field));
  char space[host_search_size + 1];
  KeptConfig kept;
  kept.keep(given, {space, sizeof space});
  TEST_ASSERT_EQUAL(host_search_size, kept.host.view().size());
}

TEST(test_the_first_text_that_does_not_fit_should_be_named) {
  const ClientConfig given = changed_config();
  TEST_ASSERT_FALSE(KeptConfig::misfit(given, changed_texts_size).found());
  const struct {
    std::size_t size;
    const char* field;
  } cases[] = {{changed_texts_size - 1, "password"}, {16, "user"}, {13, "host"}, {0, "host"}};
  for (const auto& [size, field] : cases) {
    const ConfigProblem problem = KeptConfig::misfit(given, size);
    TEST_ASSERT_EQUAL(std::string(field), std::string(problem.field));
    TEST_ASSERT_TRUE(problem.reason != nullptr);
  }
}

TEST(test_the_longest_texts_should_fit_into_what_any_configuration_takes) {
  ClientConfig given;
  given.host = ByteView(text(host_size_max));
  given.user = ByteView(text(user_size_max));
  given.password = ByteView(text(password_size_max));
  given.client_name = ByteView(text(client_name_size_max));
  TEST_ASSERT_FALSE(KeptConfig::misfit(given, config_texts_size_max).found());
  TEST_ASSERT_EQUAL(std::string("client_name"),
                    std::string(KeptConfig::misfit(given, config_texts_size_max - 1).field));
}

TEST(test_a_copy_should_look_at_its_own_texts) {
  char space[config_texts_size_max];
  char own_space[config_texts_size_max];
  KeptConfig kept;
  kept.keep(changed_config(), {space, sizeof space});
  std::memcpy(own_space, space, sizeof space);
  KeptConfig copy;
  copy.keep_copy(kept, space, own_space);
  std::memset(space, 'x', sizeof space);
  TEST_ASSERT_EQUAL(to_text(changed_config()), to_text(ClientConfig(copy)));
  TEST_ASSERT_TRUE(copy.tls == &security);
  TEST_ASSERT_TRUE(copy.password.c_str() == own_space + 17);
}
