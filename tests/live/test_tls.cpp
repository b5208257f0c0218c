// SPDX-License-Identifier: MIT
//
// TLS with real servers, over both clients: who is trusted, what is said where nobody is, and that a lock over TLS is a lock.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>

#include "clients.hpp"
#include "holdfast/tls.hpp"
#include "listen_somewhere.hpp"
#include "tls_server.hpp"

using holdfast::Tls;
using holdfast::TlsConfig;
using holdfast::TlsPlaces;
using holdfast::TlsVerify;

namespace {

// Made anew for each test.
std::unique_ptr<CertificateAuthority> authority;

CertificateFiles good_certificate() { return authority->sign("server", "DNS:localhost,IP:127.0.0.1"); }

TlsConfig trusting() {
  TlsConfig config;
  config.ca_file.assign(ByteView(authority->file()));
  return config;
}

const std::string channel = "redisson_lock__channel:{k}";

void await_subscriber(const TlsServer& server) {
  for (int turns = 0; turns < 5000 && server.plain().command("PUBSUB NUMSUB " + channel) != channel + " 1"; ++turns)
    ::poll(nullptr, 0, 1);
  TEST_ASSERT_EQUAL(channel + " 1", server.plain().command("PUBSUB NUMSUB " + channel));
}

// A Tls that is open.
struct Trust {
  explicit Trust(const TlsConfig& config = trusting()) { TEST_ASSERT_EQUAL(Status::ok, tls.open(config)); }
  [[nodiscard]] ClientConfig config_for(const std::string& url) {
    ClientConfig config;
    config.tls = &tls;
    TEST_ASSERT_EQUAL(Status::ok, holdfast::parse_url(ByteView(url), config));
    config.request_timeout = 5s;
    config.connect_timeout = 5s;
    return config;
  }
  TlsPlaces<8> places;
  Tls tls{places.storage()};
};

std::string text_of(Client& client) { return std::string(client.error_text().string_view()); }

// What a client is told that trusts by `config`.
void expect_refused(const std::string& url, const TlsConfig& config, const std::string& words) {
  Trust trust(config);
  Client client;
  TEST_ASSERT_EQUAL(Status::tls_failed, client.connect(trust.config_for(url)));
  TEST_ASSERT_EQUAL(words, text_of(client));
}

// Accepts connections, and does no more than it is told with each.
class Listener {
 public:
  explicit Listener(std::string bytes = {}) : bytes_(std::move(bytes)) {
    listener_ = listen_somewhere(port_);
    thread_ = std::thread([this] { run(); });
  }
  ~Listener() {
    over_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] std::string url() const { return "rediss://127.0.0.1:" + std::to_string(port_); }

 private:
  // A byte at a time, so that each wakes who waits for it.
  void run() {
    for (int connection = 0; (connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      for (const char byte : bytes_) {
        if (over_ || ::send(connection, &byte, 1, MSG_NOSIGNAL) != 1) break;
        ::poll(nullptr, 0, 20);
      }
      pollfd closed = {.fd = connection, .events = POLLRDHUP, .revents = 0};
      while (!over_ && ::poll(&closed, 1, 20) == 0) {}
      ::close(connection);
    }
  }

  std::string bytes_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Stands between one client and a server's port. What the server says goes on whole or, once it is told so, byte by byte.
class Drip {
 public:
  explicit Drip(int to) : to_(to), listener_(listen_somewhere(port_)), thread_([this] { run(); }) {}
  ~Drip() {
    over_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  Drip(const Drip&) = delete;
  Drip& operator=(const Drip&) = delete;
  [[nodiscard]] std::string url() const { return "rediss://127.0.0.1:" + std::to_string(port_); }
  void drip() { drips_ = true; }

 private:
  void run() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(to_));
    ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    pollfd ends[] = {{.fd = client, .events = POLLIN, .revents = 0}, {.fd = server, .events = POLLIN, .revents = 0}};
    char bytes[16384];
    for (ssize_t count = 1; count > 0 && !over_;) {
      if (::poll(ends, 2, 20) <= 0) continue;
      const bool asks = ends[0].revents != 0;
      count = ::recv(asks ? client : server, bytes, sizeof bytes, 0);
      const std::size_t piece = asks || !drips_ ? sizeof bytes : 1;
      for (std::size_t at = 0; count > 0 && at < static_cast<std::size_t>(count) && !over_; at += piece) {
        const std::size_t left = static_cast<std::size_t>(count) - at;
        (void)!::send(asks ? server : client, bytes + at, std::min(piece, left), MSG_NOSIGNAL);
        if (piece == 1) ::poll(nullptr, 0, 20);
      }
    }
    ::close(client);
    ::close(server);
  }

  int to_;
  int port_ = 0;
  int listener_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> drips_ = false;
  std::thread thread_;
};

}  // namespace

static void setUp() { authority = std::make_unique<CertificateAuthority>(); }
static void tearDown() { authority.reset(); }

TEST(test_a_mutex_should_be_taken_and_released_over_tls) {
  TlsServer server(*authority, good_certificate());
  Trust trust;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(trust.config_for(server.url())));
  Mutex lock(client, "k", {.lease = 20s});
  for (int turn = 0; turn < 3; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(std::string(lock.token().bytes().string_view()), server.plain().command("GET k"));
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL("0", server.plain().command("EXISTS k"));
  }
}

TEST(test_a_host_name_should_be_verified_by_name) {
  TlsServer server(*authority, authority->sign("named", "DNS:localhost"));
  Trust trust;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(trust.config_for(server.url("localhost"))));
  expect_refused(server.url("127.0.0.1"), trusting(), "the server's certificate: IP address mismatch");
}

TEST(test_a_given_server_name_should_stand_for_the_host) {
  TlsServer server(*authority, authority->sign("named", "DNS:locks.example.org"));
  TlsConfig config = trusting();
  config.server_name = "locks.example.org";
  Trust trust(config);
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(trust.config_for(server.url())));
  config.server_name = "other.example.org";
  expect_refused(server.url(), config, "the server's certificate: hostname mismatch");
}

TEST(test_an_expired_certificate_should_be_refused_by_name) {
  TlsServer server(*authority, authority->sign("old", "IP:127.0.0.1", -60));
  expect_refused(server.url(), trusting(), "the server's certificate: certificate has expired");
}

TEST(test_a_certificate_of_an_unknown_authority_should_be_refused_by_name) {
  const CertificateAuthority other("another CA");
  TlsServer server(*authority, other.sign("foreign", "IP:127.0.0.1"));
  expect_refused(server.url(), trusting(), "the server's certificate: unable to get local issuer certificate");
}

TEST(test_nothing_should_be_verified_only_where_that_is_asked_for) {
  const CertificateAuthority other("another CA");
  TlsServer server(*authority, other.sign("foreign", "DNS:elsewhere", -60));
  TlsConfig config = trusting();
  config.verify = TlsVerify::nothing;
  Trust trust(config);
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(trust.config_for(server.url())));
}

TEST(test_a_client_certificate_should_be_shown_where_it_is_wanted) {
  TlsServer server(*authority, good_certificate(), "yes");
  expect_refused(server.url(), trusting(), "the server wants a client certificate");
  const CertificateFiles ours = authority->sign("client", "DNS:client");
  TlsConfig config = trusting();
  config.certificate_file.assign(ByteView(ours.certificate));
  config.key_file.assign(ByteView(ours.key));
  Trust trust(config);
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(trust.config_for(server.url())));
}

TEST(test_a_port_without_tls_should_be_told_so) {
  TlsServer server(*authority, good_certificate());
  const Listener redis("-ERR unknown command\r\n");
  expect_refused(redis.url(), trusting(), "the server's answer is no TLS: this port may be one without");
}

TEST(test_a_plain_client_should_be_told_that_a_port_speaks_tls) {
  TlsServer server(*authority, good_certificate());
  Client client;
  const Status status = client.connect(config_for("redis://127.0.0.1:" + std::to_string(server.port())));
  TEST_ASSERT_EQUAL(Status::transport_closed, status);
  TEST_ASSERT_EQUAL("it ended before the handshake was over: does the server want TLS?", text_of(client));
}

TEST(test_a_silent_peer_should_end_the_handshake_by_the_connect_timeout) {
  const Listener silent;
  Trust trust;
  ClientConfig config = trust.config_for(silent.url());
  config.connect_timeout = 300ms;
  Client client;
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::timed_out, client.connect(config));
  TEST_ASSERT_TRUE(Client::now() - begin < 3s);
  TEST_ASSERT_EQUAL("the TLS handshake got no answer in time: a port without TLS gives none", text_of(client));
}

TEST(test_a_peer_that_drips_bytes_should_not_keep_a_call_beyond_its_deadline) {
  // A record of a handshake that never becomes whole.
  const Listener dripping(std::string("\x16\x03\x03\x3f\xff", 5) + std::string(2000, 'x'));
  Trust trust;
  ClientConfig config = trust.config_for(dripping.url());
  config.connect_timeout = 500ms;
  Client client;
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::timed_out, client.connect(config));
  TEST_ASSERT_TRUE(Client::now() - begin < 3s);
}

// As send(2) says it of a peer that has gone: 0 would ask for another try, and so for ever.
TEST(test_a_peer_that_ends_in_the_handshake_should_end_the_send) {
  Trust trust;
  int ends[2];
  TEST_ASSERT_EQUAL(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  holdfast::StreamSecurity& security = trust.tls;
  const holdfast::StreamSecurity::Table& table = security.table();
  holdfast::StreamLayer* const layer = table.open(security, ends[0], "localhost");
  TEST_ASSERT_TRUE(layer != nullptr);
  ::shutdown(ends[1], SHUT_WR);  // It still takes what we say.
  errno = 0;
  const std::ptrdiff_t sent = table.send(*layer, "PING", MSG_DONTWAIT);
  const int error = errno;
  table.close(*layer);
  for (const int end : ends) ::close(end);
  TEST_ASSERT_EQUAL(std::ptrdiff_t{-1}, sent);
  TEST_ASSERT_EQUAL(EPIPE, error);
}

TEST(test_a_reply_that_drips_should_not_keep_a_call_beyond_its_deadline) {
  TlsServer server(*authority, good_certificate());
  Drip drip(server.port());
  Trust trust;
  ClientConfig config = trust.config_for(drip.url());
  config.request_timeout = 200ms;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k", {.lease = 20s});
  drip.drip();  // A record has 27 bytes at the least, which then take half a second and more.
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::timed_out, lock.try_acquire());
  TEST_ASSERT_TRUE(Client::now() - begin < 400ms);
}

// Many messages in one record, more than one receive takes, and the last one is the one that counts.
TEST(test_what_was_decrypted_and_not_received_yet_should_wake_who_waits) {
  TlsServer server(*authority, good_certificate());
  Trust trust;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(trust.config_for(server.url())));
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("1", server.plain().command("HSET k somebody 1"));
  TEST_ASSERT_EQUAL("1", server.plain().command("PEXPIRE k 20000"));
  Status outcome = Status::ok;
  std::thread thread([&] { outcome = lock.acquire(10s); });
  await_subscriber(server);
  ::poll(nullptr, 0, 50);  // It has tried once more, and sleeps.
  const Instant released = Client::now();
  server.plain().command({"EVAL",
                          "for i = 1, 250 do redis.call('PUBLISH', ARGV[1], '7') end "
                          "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[1], '0') return 1",
                          "1", "k", channel});
  thread.join();
  TEST_ASSERT_EQUAL(Status::ok, outcome);
  TEST_ASSERT_TRUE(Client::now() - released < 5s);
}

TEST(test_a_waiter_should_be_woken_over_tls) {
  TlsServer server(*authority, good_certificate());
  Trust trust;
  Client holding;
  Client waiting;
  TEST_ASSERT_EQUAL(Status::ok, holding.connect(trust.config_for(server.url())));
  TEST_ASSERT_EQUAL(Status::ok, waiting.connect(trust.config_for(server.url())));
  Owner holder(holding);
  Owner waiter(waiting);
  ReentrantLock ours(holder, "k", {.lease = 20s});
  ReentrantLock theirs(waiter, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  std::thread thread([&] { TEST_ASSERT_EQUAL(Status::ok, theirs.acquire(20s)); });
  await_subscriber(server);
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  thread.join();
  TEST_ASSERT_TRUE(Client::now() - released < 5s);
}

TEST(test_a_watchdog_should_keep_a_lock_alive_over_tls) {
  TlsServer server(*authority, good_certificate());
  Trust trust;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(trust.config_for(server.url())));
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Mutex lock(client, "k", {.lease = 900ms, .kept = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  for (int turns = 0; turns < 20; ++turns) {
    ::poll(nullptr, 0, 100);
    TEST_ASSERT_TRUE(lock.held());
  }
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// What it asks for the hold has to leave at once: nothing wakes it when the socket takes bytes.
TEST(test_a_call_that_waits_should_keep_another_hold_over_tls) {
  TlsServer server(*authority, good_certificate());
  Trust trust;
  Client client;
  ClientConfig config = trust.config_for(server.url());
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex kept(client, "kept", {.lease = 4s, .kept = true});
  Owner owner(client);
  ReentrantLock busy(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("1", server.plain().command("HSET k somebody 1"));
  TEST_ASSERT_EQUAL("1", server.plain().command("PEXPIRE k 20000"));
  TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
  config.request_timeout = 500ms;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  TEST_ASSERT_TRUE(busy.acquire(5s) != Status::ok);
  TEST_ASSERT_TRUE(kept.held());
}

TEST(test_a_lost_connection_should_be_made_anew_over_tls) {
  TlsServer server(*authority, good_certificate());
  Trust trust;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(trust.config_for(server.url())));
  Mutex lock(client, "k", {.lease = 20s});
  for (int turn = 0; turn < 20; ++turn) {  // More connections than there are places.
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
    server.plain().command("CLIENT KILL TYPE normal");
    const Status released = lock.release();
    TEST_ASSERT_TRUE(released == Status::ok || released == Status::transport_closed ||
                     released == Status::not_connected);
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

TEST(test_without_a_place_connecting_should_say_so) {
  TlsServer server(*authority, good_certificate());
  TlsPlaces<1> places;
  Tls tls(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, tls.open(trusting()));
  ClientConfig config;
  config.tls = &tls;
  const std::string url = server.url();
  TEST_ASSERT_EQUAL(Status::ok, holdfast::parse_url(ByteView(url), config));
  config.connect_timeout = 1s;
  Client first;
  TEST_ASSERT_EQUAL(Status::ok, first.connect(config));
  Client second;
  TEST_ASSERT_EQUAL(Status::too_many_requests, second.connect(config));
  Mutex lock(first, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST(test_open_should_name_the_file_that_is_wrong) {
  TlsPlaces<1> places;
  Tls tls(places.storage());
  TlsConfig config;
  config.ca_file = "/nowhere/ca.pem";
  TEST_ASSERT_EQUAL(Status::invalid_argument, tls.open(config));
  TEST_ASSERT_TRUE(tls.error_text().begins_with("ca_file: "));
  const CertificateFiles ours = authority->sign("client", "DNS:client");
  const CertificateFiles theirs = authority->sign("other", "DNS:other");
  config = trusting();
  config.certificate_file.assign(ByteView(ours.certificate));
  TEST_ASSERT_EQUAL(Status::invalid_argument, tls.open(config));
  TEST_ASSERT_TRUE(tls.error_text().begins_with("certificate_file and key_file: "));
  config.key_file.assign(ByteView(theirs.key));
  TEST_ASSERT_EQUAL(Status::invalid_argument, tls.open(config));
  TEST_ASSERT_TRUE(tls.error_text().begins_with("key_file: "));
  config.key_file.assign(ByteView(ours.key));
  TEST_ASSERT_EQUAL(Status::ok, tls.open(config));
  TEST_ASSERT_TRUE(tls.error_text().empty());
}
