// SPDX-License-Identifier: MIT
//
// Theorem S8 of proto/security.md: a URL is understood as a whole or refused, with its reason and without a trace.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "client_config_text.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/detail/stream.hpp"
#include "holdfast/sentinels.hpp"
#include "holdfast/url.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

// A URL only asks whether there is one.
struct SomeSecurity : StreamSecurity {
  SomeSecurity() : StreamSecurity(nothing) {}
  static constexpr Table nothing = {nullptr, nullptr, nullptr, nullptr};
};

ClientConfig parsed(BytesArgument argument) {
  const ByteView url = argument;
  ClientConfig config;
  const char* reason = nullptr;
  const Status status = parse_url(url, config, &reason);
  TEST_MESSAGE(url << ": " << (reason == nullptr ? "no reason" : reason));
  TEST_ASSERT_EQUAL(Status::ok, status);
  TEST_ASSERT_TRUE(reason == nullptr);
  TEST_ASSERT_FALSE(validate(config).found());
  return config;
}

// A config none of whose fields is the default.
ClientConfig filled() {
  ClientConfig config;
  config.host = "before";
  config.port = 1;
  config.socket_path = "/before";
  config.user = "userbefore";
  config.password = "passwordbefore";
  config.client_name = "name";
  config.database = 3;
  config.connect_timeout = 11ms;
  config.request_timeout = 12ms;
  config.stall_timeout = 13ms;
  config.spin = 14us;
  config.native_delete = false;
  return config;
}

void expect_refused(BytesArgument argument) {
  const ByteView url = argument;
  ClientConfig config = filled();
  const char* reason = nullptr;
  TEST_MESSAGE(url);
  TEST_ASSERT_EQUAL(Status::invalid_argument, parse_url(url, config, &reason));
  TEST_ASSERT_EQUAL(to_text(filled()), to_text(config));
  TEST_ASSERT_TRUE(reason != nullptr);
  TEST_ASSERT_TRUE(std::string(reason).size() > 10);
  TEST_ASSERT_TRUE(std::string(reason).back() != '.');
  TEST_ASSERT_EQUAL(Status::invalid_argument, parse_url(url, config));
}

}  // namespace

TEST(test_a_host_alone_should_do) {
  const ClientConfig config = parsed("redis://db.internal");
  TEST_ASSERT_EQUAL(ByteView("db.internal"), config.host.view());
  TEST_ASSERT_EQUAL(6379, int{config.port});
  TEST_ASSERT_EQUAL(0, config.database);
  TEST_ASSERT_TRUE(config.user.empty());
  TEST_ASSERT_TRUE(config.password.empty());
  TEST_ASSERT_TRUE(config.socket_path.empty());
}

TEST(test_every_part_of_a_redis_url_should_be_read) {
  const ClientConfig config = parsed("redis://bob:s3cret@db.internal:7000/12");
  TEST_ASSERT_EQUAL(ByteView("db.internal"), config.host.view());
  TEST_ASSERT_EQUAL(7000, int{config.port});
  TEST_ASSERT_EQUAL(12, config.database);
  TEST_ASSERT_EQUAL(ByteView("bob"), config.user.view());
  TEST_ASSERT_EQUAL(ByteView("s3cret"), config.password.view());
}

TEST(test_a_password_without_a_user_should_be_the_default_users) {
  for (const char* const url : {"redis://:s3cret@h", "unix://:s3cret@/s"}) {
    const ClientConfig config = parsed(std::string_view(url));
    TEST_ASSERT_TRUE(config.user.empty());
    TEST_ASSERT_EQUAL(ByteView("s3cret"), config.password.view());
  }
}

TEST(test_credentials_should_be_percent_decoded) {
  const ClientConfig config = parsed("redis://b%6Fb:p%40ss%2fw%3A%25%20%ff@h");
  TEST_ASSERT_EQUAL(ByteView("bob"), config.user.view());
  TEST_ASSERT_EQUAL(ByteView("p@ss/w:% \xff"), config.password.view());
}

TEST(test_a_password_may_hold_colons_and_at_signs) {
  TEST_ASSERT_EQUAL(ByteView("a:b"), parsed("redis://u:a:b@h").password.view());
  const ClientConfig config = parsed("redis://u:a@b@h");
  TEST_ASSERT_EQUAL(ByteView("a@b"), config.password.view());
  TEST_ASSERT_EQUAL(ByteView("h"), config.host.view());
  const ClientConfig of_socket = parsed("unix://u:a@b@/run/s");
  TEST_ASSERT_EQUAL(ByteView("a@b"), of_socket.password.view());
  TEST_ASSERT_EQUAL(ByteView("/run/s"), of_socket.socket_path.view());
}

TEST(test_literal_addresses_should_be_read) {
  TEST_ASSERT_EQUAL(ByteView("127.0.0.1"), parsed("redis://127.0.0.1:6380").host.view());
  TEST_ASSERT_EQUAL(ByteView("::1"), parsed("redis://[::1]").host.view());
  TEST_ASSERT_EQUAL(ByteView("fe80::1%eth0"), parsed("redis://[fe80::1%eth0]:6380/1").host.view());
  TEST_ASSERT_EQUAL(6380, int{parsed("redis://u:p@[fe80::1%eth0]:6380/1").port});
}

TEST(test_a_socket_path_should_be_read) {
  const ClientConfig config = parsed("unix:///run/redis/redis.sock");
  TEST_ASSERT_EQUAL(ByteView("/run/redis/redis.sock"), config.socket_path.view());
  TEST_ASSERT_EQUAL(0, config.database);
  TEST_ASSERT_EQUAL(ByteView("/with space?"), parsed("unix:///with%20space%3f").socket_path.view());
  TEST_ASSERT_EQUAL(5, parsed("unix:///s?db=5").database);
  const ClientConfig all = parsed("unix://bob:s3cret@/a@b?db=7");
  TEST_ASSERT_EQUAL(ByteView("/a@b"), all.socket_path.view());
  TEST_ASSERT_EQUAL(ByteView("bob"), all.user.view());
  TEST_ASSERT_EQUAL(ByteView("s3cret"), all.password.view());
  TEST_ASSERT_EQUAL(7, all.database);
}

TEST(test_the_limits_of_numbers_should_be_accepted) {
  TEST_ASSERT_EQUAL(1, int{parsed("redis://h:1").port});
  TEST_ASSERT_EQUAL(65535, int{parsed("redis://h:65535").port});
  TEST_ASSERT_EQUAL(65535, parsed("redis://h/65535").database);
  TEST_ASSERT_EQUAL(0, parsed("redis://h/").database);
}

TEST(test_the_limits_of_texts_should_be_accepted_and_one_byte_more_refused) {
  const auto text = [](std::size_t size) { return std::string(size, 'x'); };
  TEST_ASSERT_EQUAL(host_size_max, parsed("redis://" + text(host_size_max)).host.view().size());
  expect_refused("redis://" + text(host_size_max + 1));
  TEST_ASSERT_EQUAL(user_size_max, parsed("redis://" + text(user_size_max) + ":p@h").user.view().size());
  expect_refused("redis://" + text(user_size_max + 1) + ":p@h");
  TEST_ASSERT_EQUAL(password_size_max, parsed("redis://:" + text(password_size_max) + "@h").password.view().size());
  expect_refused("redis://:" + text(password_size_max + 1) + "@h");
  TEST_ASSERT_EQUAL(socket_path_size_max,
                    parsed("unix:///" + text(socket_path_size_max - 1)).socket_path.view().size());
  expect_refused("unix:///" + text(socket_path_size_max));
  // Escapes count as what they stand for.
  std::string escaped;
  for (std::size_t at = 0; at < password_size_max; ++at) escaped += "%41";
  TEST_ASSERT_EQUAL(password_size_max, parsed("redis://:" + escaped + "@h").password.view().size());
  expect_refused("redis://:" + escaped + "%41@h");
  expect_refused("redis://h/" + std::string(url_size_max, '0'));
}

TEST(test_a_url_should_replace_the_address_and_leave_the_rest) {
  ClientConfig config = filled();
  TEST_ASSERT_EQUAL(Status::ok, parse_url("redis://h", config));
  ClientConfig expected = filled();
  expected.host = "h";
  expected.port = 6379;
  expected.socket_path = "";
  expected.user = "";
  expected.password = "";
  expected.database = 0;
  TEST_ASSERT_EQUAL(to_text(expected), to_text(config));
}

TEST(test_a_socket_url_should_forget_the_credentials_and_the_database_of_before) {
  ClientConfig config = filled();
  TEST_ASSERT_EQUAL(Status::ok, parse_url("unix:///s", config));
  TEST_ASSERT_EQUAL(ByteView("/s"), config.socket_path.view());
  TEST_ASSERT_TRUE(config.user.empty());
  TEST_ASSERT_TRUE(config.password.empty());
  TEST_ASSERT_EQUAL(0, config.database);
}

TEST(test_valkey_urls_should_be_read_as_redis_urls_are) {
  TEST_ASSERT_EQUAL(to_text(parsed("redis://bob:s3cret@db.internal:7000/12")),
                    to_text(parsed("valkey://bob:s3cret@db.internal:7000/12")));
  TEST_ASSERT_EQUAL(6379, int{parsed("valkey://h").port});
  expect_refused("valkey://");
}

TEST(test_urls_of_tls_should_be_read_where_there_is_a_tls) {
  SomeSecurity security;
  for (const char* const url :
       {"rediss://bob:s3cret@db.internal:7000/12", "valkeys://bob:s3cret@db.internal:7000/12"}) {
    ClientConfig config;
    config.tls = &security;
    TEST_ASSERT_EQUAL(Status::ok, parse_url(url, config));
    TEST_ASSERT_EQUAL(to_text(parsed("redis://bob:s3cret@db.internal:7000/12")), to_text(config));
    TEST_ASSERT_TRUE(config.tls == &security);
  }
  expect_refused("rediss://h");  // Without one nothing is sent in the clear instead.
  expect_refused("valkeys://h");
}

TEST(test_a_url_without_tls_should_be_refused_where_there_is_a_tls) {
  SomeSecurity security;
  for (const char* const url : {"redis://h", "valkey://h", "unix:///s", "rediss:h"}) {
    ClientConfig config;
    config.tls = &security;
    const char* reason = nullptr;
    TEST_ASSERT_EQUAL(Status::invalid_argument, parse_url(url, config, &reason));
    TEST_ASSERT_EQUAL("there is a Tls in the configuration, so a URL begins with rediss:// or valkeys://",
                      std::string(reason));
  }
}

TEST(test_other_schemes_should_be_refused) {
  for (const char* const url : {"",         "redis",      "redis:",     "redis:/",         "redis:h",
                                "redis:/h", "REDIS://h",  "rediss://h", "valkeys://h",     "VALKEY://h",
                                "valkey:h", "REDISS://h", "rediss:h",   "http://h",        "tcp://h:6379",
                                "h:6379",   "localhost",  " redis://h", "redis+unix:///s", "unix:/s",
                                "unix"})
    expect_refused(std::string_view(url));
}

TEST(test_a_malformed_host_should_be_refused) {
  for (const char* const url :
       {"redis://",        "redis://:6379",        "redis:///0",       "redis://u:p@",   "redis://u:p@:6379",
        "redis://::1",     "redis://fe80::1:6379", "redis://[::1",     "redis://[]",     "redis://[::1]6379",
        "redis://[::1]x",  "redis://[h]",          "redis://a b",      "redis://h%41",   "redis://h\n",
        "redis://h,other", "redis://h;x",          "redis://\xc3\xa4", "redis://[::1]:", "redis://h\\x"})
    expect_refused(std::string_view(url));
  expect_refused(ByteView("redis://h\0other", 15));
}

TEST(test_a_malformed_port_should_be_refused) {
  for (const char* const url : {"redis://h:", "redis://h:0", "redis://h:65536", "redis://h:-1", "redis://h:+1",
                                "redis://h: 1", "redis://h:1 ", "redis://h:1x", "redis://h:0x10", "redis://h:port",
                                "redis://h:99999999999999999999999", "redis://h:6379:6379", "redis://[::1]:65536"})
    expect_refused(std::string_view(url));
}

TEST(test_a_malformed_database_should_be_refused) {
  for (const char* const url : {"redis://h/x",        "redis://h/-1",        "redis://h/65536",
                                "redis://h/0/",       "redis://h/0/1",       "redis://h//",
                                "redis://h/ 0",       "redis://h/0 ",        "redis://h/18446744073709551616",
                                "unix:///s?db=",      "unix:///s?db=x",      "unix:///s?db=-1",
                                "unix:///s?db=65536", "unix:///s?db=1&db=2", "unix:///s?",
                                "unix:///s?DB=1",     "unix:///s?timeout=1", "redis://h?db=1",
                                "redis://h/0?db=1",   "redis://h/0#1"})
    expect_refused(std::string_view(url));
}

TEST(test_malformed_credentials_should_be_refused) {
  for (const char* const url :
       {"redis://bob@h", "redis://bob:@h", "unix://bob@/s", "redis://:%@h", "redis://:%4@h", "redis://:%zz@h",
        "redis://%:p@h", "redis://:a%00b@h", "unix:///a%00b", "unix:///a%", "unix://:p@", "unix://:p@s",
        "redis://:pa/ss@h", "redis://:pa?ss@h", "redis://:pa#ss@h", "unix://", "unix://s", "unix://h/s"})
    expect_refused(std::string_view(url));
}

TEST(test_a_url_should_be_taken_from_a_buffer_up_to_its_nul) {
  char buffer[64];
  std::memset(buffer, '9', sizeof buffer);
  std::snprintf(buffer, sizeof buffer, "redis://h:%d", 7000);
  const char* const none = nullptr;
  TEST_ASSERT_EQUAL(std::uint16_t{7000}, parsed(buffer).port);
  TEST_ASSERT_EQUAL(std::uint16_t{7000}, parsed(&buffer[0]).port);
  TEST_ASSERT_EQUAL(ByteView("h"), parsed(&buffer[0]).host.view());
  expect_refused(none);
  expect_refused(nullptr);
}

// What stands in front of an unescaped byte is never taken for a host, nor what follows it for a database.
TEST(test_an_unescaped_byte_in_a_password_should_be_named_with_its_escape) {
  for (const char* const url :
       {"redis://:pa/ss@h", "redis://u:1/2@h", "redis://:pa#ss@h", "redis://:pa?ss@h", "redis://:1#/@h",
        "redis://:a/b#c@h:1/0", "valkey://u:6379/x@h", "unix://:pa/ss@/run/s", "unix://u:p/@/run/s"}) {
    ClientConfig config;
    const char* reason = nullptr;
    TEST_MESSAGE(url);
    TEST_ASSERT_EQUAL(Status::invalid_argument, parse_url(ByteView(std::string_view(url)), config, &reason));
    TEST_ASSERT_TRUE(std::string(reason).find("in a password") != std::string::npos);
    TEST_ASSERT_TRUE(std::string(reason).find("%2F") != std::string::npos);
  }
}

TEST(test_no_reason_should_tell_the_password) {
  for (const char* const url :
       {"redis://bob:hunter2@", "redis://bob:hunter2@h:0", "redis://bob:hunter2@h/x", "redis://bob:hunter2%@h",
        "redis://:hunter2@[::1", "unix://:hunter2@s", "unix://:hunter2@/s?db=x", "redis://:hunter2/@h", "hunter2"}) {
    ClientConfig config;
    const char* reason = nullptr;
    TEST_ASSERT_EQUAL(Status::invalid_argument, parse_url(ByteView(std::string_view(url)), config, &reason));
    TEST_ASSERT_TRUE(std::string(reason).find("hunter2") == std::string::npos);
  }
}

// ---- Sentinels ---------------------------------------------------------------------------------------------------

namespace {

// What comes of a URL with Sentinels in the configuration; `reason` is empty where it is understood.
struct SentinelUrl {
  explicit SentinelUrl(const std::string& url, StreamSecurity* tls = nullptr) {
    sentinels.configure({.hosts = "before", .service = "servicebefore", .user = "userbefore", .password = "secret"});
    config = filled();
    config.topology = &sentinels;
    config.tls = tls;
    const char* words = nullptr;
    status = parse_url(ByteView(url), config, &words);
    reason = words == nullptr ? "" : words;
  }
  Sentinels sentinels;
  ClientConfig config;
  Status status;
  std::string reason;
};

}  // namespace

TEST(test_a_sentinel_url_should_give_hosts_service_and_credentials) {
  const SentinelUrl plain("redis-sentinel://10.0.0.1,10.0.0.2:26380,[::1]/mymaster");
  TEST_ASSERT_EQUAL("", plain.reason);
  TEST_ASSERT_EQUAL(Status::ok, plain.status);
  TEST_ASSERT_TRUE(plain.sentinels.config().hosts.view() == ByteView("10.0.0.1,10.0.0.2:26380,[::1]"));
  TEST_ASSERT_TRUE(plain.sentinels.config().service.view() == ByteView("mymaster"));
  TEST_ASSERT_TRUE(plain.sentinels.config().user.empty() && plain.sentinels.config().password.empty());
  TEST_ASSERT_TRUE(plain.config.user.empty() && plain.config.password.empty() && plain.config.socket_path.empty());
  TEST_ASSERT_EQUAL(0, plain.config.database);
  TEST_ASSERT_FALSE(validate(plain.config).found());

  const SentinelUrl full(
      "valkey-sentinel://joe:se%2Fcret@h1,h2/my%20master/7?sentinel_user=watch&sentinel_password=a%26b%3D");
  TEST_ASSERT_EQUAL("", full.reason);
  TEST_ASSERT_TRUE(full.config.user.view() == ByteView("joe"));
  TEST_ASSERT_TRUE(full.config.password.view() == ByteView("se/cret"));
  TEST_ASSERT_EQUAL(7, full.config.database);
  TEST_ASSERT_TRUE(full.sentinels.config().hosts.view() == ByteView("h1,h2"));
  TEST_ASSERT_TRUE(full.sentinels.config().service.view() == ByteView("my master"));
  TEST_ASSERT_TRUE(full.sentinels.config().user.view() == ByteView("watch"));
  TEST_ASSERT_TRUE(full.sentinels.config().password.view() == ByteView("a&b="));
}

TEST(test_a_sentinel_url_that_is_not_understood_should_change_nothing) {
  const std::string long_service(service_size_max + 1, 's');
  for (const std::string& url : {std::string("redis-sentinel://"),
                                 std::string("redis-sentinel:///m"),
                                 std::string("redis-sentinel://h"),
                                 std::string("redis-sentinel://h/"),
                                 std::string("redis-sentinel://h,/m"),
                                 std::string("redis-sentinel://h:0/m"),
                                 std::string("redis-sentinel://h:x/m"),
                                 std::string("redis-sentinel://::1/m"),
                                 std::string("redis-sentinel://1,2,3,4,5,6,7,8,9,10/m"),
                                 std::string("redis-sentinel://h/m/x"),
                                 std::string("redis-sentinel://h/m/65536"),
                                 std::string("redis-sentinel://h/m/1/2"),
                                 std::string("redis-sentinel://h/m%"),
                                 std::string("redis-sentinel://h/m%00"),
                                 std::string("redis-sentinel://user@h/m"),
                                 std::string("redis-sentinel://:pa/ss@h/m"),
                                 std::string("redis-sentinel://:pa?ss@h/m"),
                                 std::string("redis-sentinel://:pa#ss@h/m"),
                                 std::string("redis-sentinel://h/m?db=1"),
                                 std::string("redis-sentinel://h/m?sentinel_user=u"),
                                 std::string("redis-sentinel://h/m?sentinel_password=%zz"),
                                 std::string("redis-sentinel://h/m?sentinel_password"),
                                 std::string("redis-sentinel://h/m?sentinel_password=a@b"),
                                 "redis-sentinel://h/" + long_service,
                                 std::string("redis://h"),
                                 std::string("unix:///run/x"),
                                 std::string("rediss-sentinel://h/m"),
                                 std::string("redis-sentinelx://h/m")}) {
    const SentinelUrl refused(url);
    TEST_MESSAGE(url << ": " << refused.reason);
    TEST_ASSERT_EQUAL(Status::invalid_argument, refused.status);
    TEST_ASSERT_TRUE(refused.reason.size() > 10);
    TEST_ASSERT_TRUE(refused.reason.find("pa") != 0 && refused.reason.find("ss@") == std::string::npos);
    TEST_ASSERT_TRUE(refused.config.host.view() == ByteView("before"));
    TEST_ASSERT_TRUE(refused.config.password.view() == ByteView("passwordbefore"));
    TEST_ASSERT_EQUAL(3, refused.config.database);
    TEST_ASSERT_TRUE(refused.sentinels.config().hosts.view() == ByteView("before"));
    TEST_ASSERT_TRUE(refused.sentinels.config().password.view() == ByteView("secret"));
  }
}

TEST(test_a_sentinel_url_should_need_sentinels_and_over_tls_a_tls) {
  ClientConfig config;
  const char* reason = nullptr;
  TEST_ASSERT_EQUAL(Status::invalid_argument, parse_url("redis-sentinel://h/m", config, &reason));
  TEST_ASSERT_TRUE(std::string(reason).find("redis-sentinel:// and redis-cluster:// need a topology") !=
                   std::string::npos);
  SomeSecurity security;
  TEST_ASSERT_EQUAL(Status::ok, SentinelUrl("rediss-sentinel://h/m", &security).status);
  TEST_ASSERT_EQUAL("there is a Tls in the configuration, so a URL begins with rediss-sentinel://",
                    SentinelUrl("redis-sentinel://h/m", &security).reason);
  TEST_ASSERT_EQUAL("TLS needs a Tls in the configuration: see tls.hpp", SentinelUrl("valkeys-sentinel://h/m").reason);
}

// ---- Clusters ----------------------------------------------------------------------------------------------------

namespace {

// What comes of a URL with a Cluster in the configuration.
struct ClusterUrl {
  explicit ClusterUrl(const std::string& url, const char* name = "", StreamSecurity* tls = nullptr) {
    cluster.configure({.hosts = "before", .name = name});
    config.topology = &cluster;
    config.tls = tls;
    const char* words = nullptr;
    status = parse_url(ByteView(url), config, &words);
    reason = words == nullptr ? "" : words;
  }
  Cluster cluster;
  ClientConfig config;
  Status status;
  std::string reason;
};

}  // namespace

TEST(test_a_cluster_url_should_give_nodes_name_and_credentials) {
  const ClusterUrl url("redis-cluster://joe:se%2Fcret@10.0.0.1,10.0.0.2:6380,[::1]/%7Borders%7D");
  TEST_ASSERT_EQUAL("", url.reason);
  TEST_ASSERT_TRUE(url.config.user.view() == ByteView("joe"));
  TEST_ASSERT_TRUE(url.config.password.view() == ByteView("se/cret"));
  TEST_ASSERT_TRUE(url.cluster.config().hosts.view() == ByteView("10.0.0.1,10.0.0.2:6380,[::1]"));
  TEST_ASSERT_TRUE(url.cluster.config().name.view() == ByteView("{orders}"));
  TEST_ASSERT_EQUAL(slot_of(ByteView("orders")), url.cluster.slot());
  TEST_ASSERT_FALSE(validate(url.config).found());
}

TEST(test_a_cluster_url_should_leave_a_name_that_is_known) {
  const ClusterUrl known("valkey-cluster://h1", "orders");
  TEST_ASSERT_EQUAL("", known.reason);
  TEST_ASSERT_TRUE(known.cluster.config().name.view() == ByteView("orders"));
  TEST_ASSERT_EQUAL(slot_of(ByteView("orders")), known.cluster.slot());
  const ClusterUrl given("valkey-cluster://h1/other", "orders");
  TEST_ASSERT_TRUE(given.cluster.config().name.view() == ByteView("other"));
}

TEST(test_a_malformed_cluster_url_should_be_refused_and_change_nothing) {
  for (const char* url : {"redis-cluster://h1", "redis-cluster://h1/", "redis-cluster:///n", "redis-cluster://h1,,h2/n",
                          "redis-cluster://h1:0/n", "redis-cluster://::1/n", "redis-cluster://1,2,3,4,5,6,7,8,9,10/n",
                          "redis-cluster://u@h1/n", "redis-cluster://h1/n/1", "redis-cluster://h1/n?db=1",
                          "redis-cluster://h1/n@m", "redis-cluster://:a/b@h1/n", "redis-cluster://h1/%zz", "redis://h1",
                          "redis-sentinel://h1/m", "rediss-cluster://h1/n", "redis-cluster://h1/n#1"}) {
    TEST_MESSAGE(url);
    const ClusterUrl refused(url);
    TEST_ASSERT_EQUAL(Status::invalid_argument, refused.status);
    TEST_ASSERT_TRUE(refused.reason.size() > 10);
    TEST_ASSERT_TRUE(refused.cluster.config().hosts.view() == ByteView("before"));
    TEST_ASSERT_TRUE(refused.cluster.config().name.empty());
  }
  SomeSecurity security;
  TEST_ASSERT_EQUAL(Status::ok, ClusterUrl("rediss-cluster://h/n", "", &security).status);
  TEST_ASSERT_EQUAL("there is a Tls in the configuration, so a URL begins with rediss-cluster://",
                    ClusterUrl("redis-cluster://h/n", "", &security).reason);
}

namespace {

// In a page that is only read from here on: a write is a crash.
template <class Object, class Config>
class ReadOnly {
 public:
  explicit ReadOnly(const Config& config) {
    mapped_ = ::mmap(nullptr, sizeof(Object), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(mapped_ != MAP_FAILED);
    object_ = ::new (mapped_) Object(config);
    TEST_ASSERT_EQUAL(0, ::mprotect(mapped_, sizeof(Object), PROT_READ));
  }
  ~ReadOnly() { ::munmap(mapped_, sizeof(Object)); }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;

  [[nodiscard]] Status parse(const char* url) {
    ClientConfig config;
    config.topology = object_;
    return parse_url(url, config);
  }

 private:
  void* mapped_;
  Object* object_;
};

}  // namespace

// Another client may have them, and a thread of its watchdog read them.
TEST(test_a_url_that_says_what_is_known_should_not_write_it_again) {
  ReadOnly<Sentinels, SentinelConfig> sentinels(
      {.hosts = "h1,h2:5", .service = "mymaster", .user = "u", .password = "p"});
  TEST_ASSERT_EQUAL(Status::ok,
                    sentinels.parse("redis-sentinel://h1,h2:5/mymaster?sentinel_user=u&sentinel_password=p"));
  ReadOnly<Cluster, ClusterConfig> cluster({.hosts = "h1,h2:5", .name = "orders"});
  TEST_ASSERT_EQUAL(Status::ok, cluster.parse("redis-cluster://h1,h2:5/orders"));
  TEST_ASSERT_EQUAL(Status::ok, cluster.parse("redis-cluster://:secret@h1,h2:5"));
}
