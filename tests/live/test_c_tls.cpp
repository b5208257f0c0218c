// SPDX-License-Identifier: MIT
//
// TLS from C, with real servers: who is trusted, what is said where nobody is, and what is no TLS.
#include <string>

#include "c_objects.hpp"
#include "holdfast_tls.h"
#include "live_fixture.hpp"
#include "tls_server.hpp"

using namespace holdfast;

namespace {

holdfast_tls tls;
holdfast_tls_place places[3];
holdfast_client client;
holdfast_client other_client;
holdfast_lock lock;
holdfast_lock other;

holdfast_client_config config() {
  holdfast_client_config config = {};
  config.connect_timeout_ms = 5000;
  config.request_timeout_ms = 5000;
  config.tls = &tls;
  return config;
}

holdfast_status open_trusting(const std::string& ca_file) {
  holdfast_tls_config trust = {};
  trust.ca_file = ca_file.c_str();
  return holdfast_tls_open(&tls, &trust);
}

holdfast_status connect(const std::string& url) {
  const holdfast_client_config settings = config();
  return holdfast_client_connect_to(&client, url.c_str(), &settings);
}

std::string text_of(const holdfast_tls& of) {
  char text[256] = "";
  const std::size_t size = holdfast_tls_error_text(&of, text, sizeof text);
  TEST_ASSERT_EQUAL(std::string(text).size(), size);
  return text;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

static void setUp() {
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_tls_init(&tls, places, 3));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
}
static void tearDown() {
  for (holdfast_lock* const each : {&lock, &other}) holdfast_lock_destroy(each);
  for (holdfast_client* const each : {&client, &other_client}) holdfast_client_destroy(each);
  holdfast_tls_destroy(&tls);
}

TEST(test_c_a_lock_over_tls_should_be_a_lock) {
  const TlsServer server;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, open_trusting(server.authority().file()));
  TEST_ASSERT_EQUAL(std::string(), text_of(tls));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, connect(server.url()));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL("1", server.plain().command("EXISTS k"));
  // By settings.
  holdfast_client_config settings = config();
  settings.host = "localhost";
  settings.port = static_cast<std::uint16_t>(server.port());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&other_client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_with(&other_client, &settings));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &other_client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&other));
}

TEST(test_c_nobody_should_be_trusted_whose_certificate_is_not) {
  const CertificateAuthority stranger("somebody else");
  const TlsServer server;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, open_trusting(stranger.file()));
  TEST_ASSERT_EQUAL(HOLDFAST_TLS_FAILED, connect(server.url()));
  TEST_ASSERT_TRUE(contains(text_of(client), "the server's certificate: "));
  // On purpose only.
  holdfast_tls_config trust = {};
  trust.insecure = true;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_tls_open(&tls, &trust));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, connect(server.url()));
  // The name counts, or the one that is wanted.
  const std::string ca_file = server.authority().file();
  trust = {};
  trust.ca_file = ca_file.c_str();
  trust.server_name = "another.name";
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_tls_open(&tls, &trust));
  TEST_ASSERT_EQUAL(HOLDFAST_TLS_FAILED, connect(server.url()));
  trust.server_name = "localhost";
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_tls_open(&tls, &trust));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, connect(server.url()));
  // The system's store does not know it.
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_tls_open(&tls, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_TLS_FAILED, connect(server.url()));
}

TEST(test_c_a_server_that_wants_a_certificate_should_be_shown_one) {
  const CertificateAuthority authority;
  const TlsServer server(authority, authority.sign("server", "IP:127.0.0.1"), "yes");
  TEST_ASSERT_EQUAL(HOLDFAST_OK, open_trusting(authority.file()));
  TEST_ASSERT_EQUAL(HOLDFAST_TLS_FAILED, connect(server.url()));
  const CertificateFiles ours = authority.sign("ours", "DNS:client");
  const std::string ca_file = authority.file();
  holdfast_tls_config trust = {};
  trust.ca_file = ca_file.c_str();
  trust.certificate_file = ours.certificate.c_str();
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_tls_open(&tls, &trust));
  TEST_ASSERT_TRUE(contains(text_of(tls), "key_file"));
  trust.key_file = ours.key.c_str();
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_tls_open(&tls, &trust));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, connect(server.url()));
}

TEST(test_c_files_that_are_none_should_be_refused_in_words) {
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, open_trusting("/nowhere/ca.pem"));
  TEST_ASSERT_TRUE(contains(text_of(tls), "ca_file"));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, open_trusting(std::string(1000, 'a')));
  TEST_ASSERT_TRUE(contains(text_of(tls), "ca_file"));
  char text[4] = "";
  TEST_ASSERT_TRUE(holdfast_tls_error_text(&tls, text, sizeof text) > 3);
  TEST_ASSERT_EQUAL(std::string("ca_"), std::string(text));
}

TEST(test_c_what_is_no_tls_or_is_not_open_should_connect_nobody) {
  const TlsServer server;
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_tls_init(&tls, places, 3));
  // Not open.
  for (int turn = 0; turn < 2; ++turn) {
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, connect(server.url()));
    TEST_ASSERT_EQUAL(std::string("tls"), std::string(holdfast_client_problem(&client, nullptr)));
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, open_trusting("/nowhere/ca.pem"));
  }
  TEST_ASSERT_FALSE(holdfast_client_connected(&client));
  // A URL without TLS, and a Unix socket.
  TEST_ASSERT_EQUAL(HOLDFAST_OK, open_trusting(server.authority().file()));
  for (const std::string& url : {server.plain().tcp_url(), server.plain().unix_url()}) {
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, connect(url));
    TEST_ASSERT_EQUAL(std::string("url"), std::string(holdfast_client_problem(&client, nullptr)));
  }
  const std::string path = server.plain().socket_path();
  holdfast_client_config settings = config();
  settings.socket_path = path.c_str();
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_with(&client, &settings));
  TEST_ASSERT_EQUAL(std::string("tls"), std::string(holdfast_client_problem(&client, nullptr)));

  holdfast_tls none = {};
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_tls_init(nullptr, places, 3));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_tls_init(&none, nullptr, 3));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_tls_init(&none, places, 0));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_tls_open(&none, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_tls_open(nullptr, nullptr));
  TEST_ASSERT_EQUAL(std::string(), text_of(none));
  holdfast_tls_destroy(&none);
  holdfast_tls_destroy(nullptr);
}

TEST(test_c_each_connection_should_take_a_place_and_give_it_back) {
  const TlsServer server;
  holdfast_client_destroy(&client);
  holdfast_tls_destroy(&tls);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_tls_init(&tls, places, 1));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, open_trusting(server.authority().file()));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&other_client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, connect(server.url()));
  const holdfast_client_config settings = config();
  const std::string url = server.url();
  TEST_ASSERT_EQUAL(HOLDFAST_TOO_MANY_REQUESTS, holdfast_client_connect_to(&other_client, url.c_str(), &settings));
  holdfast_client_close(&client);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&other_client, url.c_str(), &settings));
}

// Sessions would be taken from under clients.
TEST(test_c_tls_that_goes_before_its_clients_should_be_an_assertion) {
  const TlsServer server;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, open_trusting(server.authority().file()));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, connect(server.url()));
  expect_assertion([] { holdfast_tls_destroy(&tls); });
}
