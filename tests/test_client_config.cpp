// SPDX-License-Identifier: MIT
//
// validate() names the first field that is outside its limits; a config of defaults is inside all of them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "client_config_text.hpp"
#include "holdfast/core/client_config.hpp"
#include "holdfast/detail/stream.hpp"
#include "holdfast/sentinels.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

using Change = std::function<void(ClientConfig&)>;

std::string problem_of(const ClientConfig& config) {
  const ConfigProblem problem = validate(config);
  TEST_ASSERT_EQUAL(problem.found(), problem.reason != nullptr);
  return problem.found() ? problem.field : "";
}

std::string problem_after(const Change& change) {
  ClientConfig config;
  change(config);
  return problem_of(config);
}

}  // namespace

TEST(test_a_config_of_defaults_should_be_valid) { TEST_ASSERT_EQUAL(std::string(), problem_of(ClientConfig())); }

TEST(test_texts_should_be_accepted_at_their_limit_and_named_beyond) {
  const auto text = [](std::size_t size) { return std::string(size, 'x'); };
  const std::string password = "secret";
  struct Field {
    const char* name;
    std::size_t size_max;
    std::function<void(ClientConfig&, const std::string&)> assign;
  };
  const Field fields[] = {
      {"host", host_size_max, [](ClientConfig& config, const std::string& value) { config.host = ByteView(value); }},
      {"socket_path", socket_path_size_max,
       [](ClientConfig& config, const std::string& value) { config.socket_path = ByteView(value); }},
      {"user", user_size_max,
       [&](ClientConfig& config, const std::string& value) {
         config.user = ByteView(value);
         config.password = ByteView(password);
       }},
      {"password", password_size_max,
       [](ClientConfig& config, const std::string& value) { config.password = ByteView(value); }},
      {"client_name", client_name_size_max,
       [](ClientConfig& config, const std::string& value) { config.client_name = ByteView(value); }},
  };
  for (const Field& field : fields) {
    TEST_MESSAGE(field.name);
    TEST_ASSERT_EQUAL(std::string(),
                      problem_after([&](ClientConfig& config) { field.assign(config, text(field.size_max)); }));
    for (const std::size_t size : {field.size_max + 1, field.size_max + 256, std::size_t{65536}, std::size_t{65537}})
      TEST_ASSERT_EQUAL(std::string(field.name),
                        problem_after([&](ClientConfig& config) { field.assign(config, text(size)); }));
  }
}

TEST(test_a_text_that_is_too_long_should_be_empty_and_say_so) {
  BoundedText<4> text = "1234";
  TEST_ASSERT_EQUAL(ByteView("1234"), text.view());
  text.assign("12345");
  TEST_ASSERT_TRUE(text.too_long());
  TEST_ASSERT_TRUE(text.empty());
  text.assign("12");
  TEST_ASSERT_FALSE(text.too_long());
  TEST_ASSERT_EQUAL(std::string("12"), std::string(text.c_str()));
}

TEST(test_a_text_should_be_made_of_whatever_holds_text) {
  char buffer[16];
  std::memset(buffer, 'x', sizeof buffer);
  std::snprintf(buffer, sizeof buffer, "%s", "secret");
  const char* const none = nullptr;
  const std::string text = "secret";
  ClientConfig config = {.host = buffer, .user = &buffer[0], .password = text + "!", .client_name = none};
  TEST_ASSERT_EQUAL(ByteView("secret"), config.host.view());
  TEST_ASSERT_EQUAL(ByteView("secret"), config.user.view());
  TEST_ASSERT_EQUAL(ByteView("secret!"), config.password.view());
  TEST_ASSERT_TRUE(config.client_name.empty());
  config.password.assign(buffer);
  TEST_ASSERT_EQUAL(ByteView("secret"), config.password.view());
  config.password = text;
  TEST_ASSERT_EQUAL(ByteView("secret"), config.password.view());
  config.password = std::string_view(text);
  TEST_ASSERT_EQUAL(ByteView("secret"), config.password.view());
  config.password = std::getenv("HOLDFAST_NO_SUCH_VARIABLE");
  TEST_ASSERT_TRUE(config.password.empty());
}

TEST(test_an_address_should_be_needed_and_a_socket_path_should_do_instead_of_it) {
  TEST_ASSERT_EQUAL(std::string("host"), problem_after([](ClientConfig& config) { config.host = ""; }));
  TEST_ASSERT_EQUAL(std::string("port"), problem_after([](ClientConfig& config) { config.port = 0; }));
  TEST_ASSERT_EQUAL(std::string(), problem_after([](ClientConfig& config) {
                      config.host = "";
                      config.port = 0;
                      config.socket_path = "/run/redis.sock";
                    }));
}

TEST(test_a_nul_byte_in_an_address_should_be_refused) {
  TEST_ASSERT_EQUAL(std::string("host"),
                    problem_after([](ClientConfig& config) { config.host = ByteView("a\0b", 3); }));
  TEST_ASSERT_EQUAL(std::string("socket_path"),
                    problem_after([](ClientConfig& config) { config.socket_path = ByteView("/a\0b", 4); }));
}

TEST(test_a_user_without_a_password_should_be_refused) {
  TEST_ASSERT_EQUAL(std::string("user"), problem_after([](ClientConfig& config) { config.user = "bob"; }));
  TEST_ASSERT_EQUAL(std::string(), problem_after([](ClientConfig& config) { config.password = "secret"; }));
}

TEST(test_a_client_name_should_be_what_the_server_accepts) {
  for (const char* const name : {"", "holdfast", "a-b_c:1", "!~"})
    TEST_ASSERT_EQUAL(std::string(),
                      problem_after([&](ClientConfig& config) { config.client_name = std::string_view(name); }));
  for (const char* const name : {" ", "a b", "a\n", "a\r", "\x7f", "\xc3\xa4", "\x01"})
    TEST_ASSERT_EQUAL(std::string("client_name"),
                      problem_after([&](ClientConfig& config) { config.client_name = std::string_view(name); }));
}

TEST(test_the_database_should_be_in_its_range) {
  for (const int database : {0, 1, database_max})
    TEST_ASSERT_EQUAL(std::string(), problem_after([&](ClientConfig& config) { config.database = database; }));
  for (const int database : {-1, database_max + 1, INT32_MIN, INT32_MAX})
    TEST_ASSERT_EQUAL(std::string("database"),
                      problem_after([&](ClientConfig& config) { config.database = database; }));
}

TEST(test_each_timeout_should_be_in_its_range) {
  struct Timeout {
    const char* name;
    Duration ClientConfig::*field;
  };
  for (const Timeout& timeout : {Timeout{"connect_timeout", &ClientConfig::connect_timeout},
                                 Timeout{"request_timeout", &ClientConfig::request_timeout},
                                 Timeout{"stall_timeout", &ClientConfig::stall_timeout}}) {
    TEST_MESSAGE(timeout.name);
    for (const Duration value : {timeout_min, timeout_max, timeout_min + 1ns, timeout_max - 1ns})
      TEST_ASSERT_EQUAL(std::string(), problem_after([&](ClientConfig& config) { config.*timeout.field = value; }));
    for (const Duration value :
         {timeout_min - 1ns, timeout_max + 1ns, Duration(0), Duration(-1), Duration::min(), Duration::max()})
      TEST_ASSERT_EQUAL(std::string(timeout.name),
                        problem_after([&](ClientConfig& config) { config.*timeout.field = value; }));
  }
}

TEST(test_spin_should_be_off_or_short) {
  for (const Duration spin : {spin_off, Duration(1us), Duration(10ms)})
    TEST_ASSERT_EQUAL(std::string(), problem_after([&](ClientConfig& config) { config.spin = spin; }));
  for (const Duration spin : {Duration(-1), Duration(10ms) + 1ns, Duration::max(), Duration::min()})
    TEST_ASSERT_EQUAL(std::string("spin"), problem_after([&](ClientConfig& config) { config.spin = spin; }));
}

TEST(test_the_longest_poll_should_be_in_its_range) {
  for (const Duration longest : {poll_min, poll_max})
    TEST_ASSERT_EQUAL(std::string(), problem_after([&](ClientConfig& config) { config.max_poll = longest; }));
  for (const Duration longest : {poll_min - 1ns, poll_max + 1ns})
    TEST_ASSERT_EQUAL(std::string("max_poll"), problem_after([&](ClientConfig& config) { config.max_poll = longest; }));
}

TEST(test_confirmations_should_be_of_a_number_of_replicas_that_servers_have) {
  TEST_ASSERT_EQUAL(std::string(), problem_after([](ClientConfig& config) { config.acks = acks_max; }));
  TEST_ASSERT_EQUAL(std::string("acks"), problem_after([](ClientConfig& config) { config.acks = acks_max + 1; }));
}

// Without confirmations nothing is waited for, and only the field's own range counts.
TEST(test_confirmations_should_be_waited_for_within_what_a_connection_may_be_silent) {
  const auto problem_with = [](std::uint8_t acks, Duration time) {
    return problem_after([=](ClientConfig& config) {
      config.acks = acks;
      config.acks_timeout = time;
      config.stall_timeout = 2s;
    });
  };
  TEST_ASSERT_EQUAL(std::string(), problem_with(1, 2s - 1ns));
  TEST_ASSERT_EQUAL(std::string("acks_timeout"), problem_with(1, 2s));
  TEST_ASSERT_EQUAL(std::string("acks_timeout"), problem_with(1, 2s + 1ns));
  TEST_ASSERT_EQUAL(std::string(), problem_with(0, 2s));
  for (const std::uint8_t acks : {std::uint8_t{0}, std::uint8_t{1}}) {
    TEST_ASSERT_EQUAL(std::string(), problem_with(acks, timeout_min));
    TEST_ASSERT_EQUAL(std::string("acks_timeout"), problem_with(acks, timeout_min - 1ns));
    TEST_ASSERT_EQUAL(std::string("acks_timeout"), problem_with(acks, timeout_max + 1ns));
  }
}

TEST(test_tls_should_be_refused_for_a_socket_path_alone) {
  struct Security : StreamSecurity {
    Security() : StreamSecurity(table()) {}
    static const Table& table() {
      static constexpr Table none = {};
      return none;
    }
  } security;
  TEST_ASSERT_EQUAL(std::string(), problem_after([&](ClientConfig& config) { config.tls = &security; }));
  TEST_ASSERT_EQUAL(std::string("tls"), problem_after([&](ClientConfig& config) {
                      config.tls = &security;
                      config.socket_path = "/run/redis.sock";
                    }));
}

TEST(test_what_is_wrong_with_a_topology_should_be_told_and_what_follows_it_otherwise) {
  Sentinels none;
  TEST_ASSERT_EQUAL(std::string("sentinels.hosts"), problem_after([&](ClientConfig& config) {
                      config.topology = &none;
                      config.database = -1;
                    }));
  Sentinels some({.hosts = "s1", .service = "mymaster"});
  TEST_ASSERT_EQUAL(std::string(), problem_after([&](ClientConfig& config) { config.topology = &some; }));
  TEST_ASSERT_EQUAL(std::string("database"), problem_after([&](ClientConfig& config) {
                      config.topology = &some;
                      config.database = -1;
                    }));
}

TEST(test_a_host_that_is_too_long_should_be_named_beside_a_socket_path) {
  const std::string host(host_size_max + 1, 'x');
  TEST_ASSERT_EQUAL(std::string("host"), problem_after([&](ClientConfig& config) {
                      config.host = ByteView(host);
                      config.socket_path = "/run/redis.sock";
                    }));
}

TEST(test_the_first_failing_field_should_be_named) {
  TEST_ASSERT_EQUAL(std::string("host"), problem_after([](ClientConfig& config) {
                      config.spin = Duration(-1);
                      config.database = -1;
                      config.host = "";
                    }));
  TEST_ASSERT_EQUAL(std::string("database"), problem_after([](ClientConfig& config) {
                      config.spin = Duration(-1);
                      config.database = -1;
                    }));
}
