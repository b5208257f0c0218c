// SPDX-License-Identifier: MIT
//
// What does a lock cost over TLS? Acquire and release, uncontended, over a private server with a certificate of this program's:
// holdfast beside OpenSSL over a raw socket (the limit) and hiredis with its ssl, in one process, in rounds of random order. All
// verify the server's certificate by the same CA. Debian 12's hiredis has no ssl; then its row is missing, and that is said.
//
// How to read it: as bench_pairs. `raw again` is the A/A control.
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cpu_condition.hpp"
#include "harness.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast/tls.hpp"
#include "holdfast_party.hpp"
#include "pair_requests.hpp"
#include "paired_rounds.hpp"
#include "raw_client.hpp"
#include "report.hpp"
#include "tls_server.hpp"

#ifdef HOLDFAST_BENCH_HIREDIS_SSL
#include <hiredis/hiredis_ssl.h>
#endif

namespace {

using bench::acquired;
using bench::at_most;
using bench::Condition;
using bench::expect;
using bench::Harness;
using bench::PairedRounds;
using bench::Placement;
using bench::released;

constexpr std::size_t pairs_a_sample = 16;

// ---- The limit ---------------------------------------------------------------------------------------------------

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeSession {
  void operator()(SSL* session) const { SSL_free(session); }
};

class RawTls {
 public:
  explicit RawTls(const TlsServer& server, const std::string& key = bench::next_key())
      : socket_({"", server.port()}),
        context_(SSL_CTX_new(TLS_client_method())),
        acquire_(bench::set_arguments(key)),
        release_(bench::release_arguments("script", key)) {
    expect(SSL_CTX_load_verify_file(context_.get(), server.authority().file().c_str()) == 1, "OpenSSL: no CA");
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    session_.reset(SSL_new(context_.get()));
    expect(SSL_set_fd(session_.get(), socket_.descriptor()) == 1 && SSL_connect(session_.get()) == 1,
           "OpenSSL: no handshake");
    send(bench::encoded({"SCRIPT", "LOAD", bench::release_text()}));
    expect_reply("$40\r\n" + bench::release_sha() + "\r\n");
  }

  void run(std::size_t count) {
    for (; count != 0; --count) {
      const char* const token = tokens_.next();
      send(acquire_.with_token(token));
      expect_reply(acquired);
      send(release_.with_token(token));
      expect_reply(released);
    }
  }

 private:
  void send(std::string_view bytes) {
    const int size = static_cast<int>(bytes.size());
    expect(SSL_write(session_.get(), bytes.data(), size) == size, "OpenSSL: a write failed");
  }
  void expect_reply(std::string_view bytes) {
    char received[256];
    std::size_t size = 0;
    while (size < bytes.size()) {
      const int count = SSL_read(session_.get(), received + size, static_cast<int>(sizeof received - size));
      expect(count > 0, "OpenSSL: no reply");
      size += static_cast<std::size_t>(count);
    }
    expect(std::string_view(received, size) == bytes, "OpenSSL: another reply");
  }

  bench::RawSocket socket_;
  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::unique_ptr<SSL, FreeSession> session_;
  bench::PreparedRequest acquire_;
  bench::PreparedRequest release_;
  bench::TokenTable tokens_;
};

// ---- holdfast ----------------------------------------------------------------------------------------------------

class HoldfastTls {
 public:
  explicit HoldfastTls(const TlsServer& server) : lock_(client_, bench::next_key()) {
    holdfast::ClientConfig config;
    config.tls = &tls_;
    expect(tls_.open({.ca_file = server.authority().file()}) == holdfast::Status::ok, "holdfast: no CA");
    expect_ok(holdfast::parse_url(server.url(), config));
    config.native_delete = false;
    expect_ok(client_.connect(config));
  }

  void run(std::size_t count) {
    for (; count != 0; --count) {
      expect_ok(lock_.try_acquire());
      expect_ok(lock_.release());
    }
  }

 private:
  void expect_ok(holdfast::Status status) const { bench::expect_ok(client_, status); }

  holdfast::TlsPlaces<1> places_;
  holdfast::Tls tls_{places_.storage()};
  holdfast::Client client_;
  holdfast::Mutex lock_;
};

// ---- hiredis -----------------------------------------------------------------------------------------------------

#ifdef HOLDFAST_BENCH_HIREDIS_SSL

struct FreeSslContext {
  void operator()(redisSSLContext* context) const { redisFreeSSLContext(context); }
};

class HiredisTls {
 public:
  explicit HiredisTls(const TlsServer& server, const std::string& key = bench::next_key())
      : ssl_(redisCreateSSLContext(server.authority().file().c_str(), nullptr, nullptr, nullptr, nullptr, nullptr)),
        context_(redisConnect("127.0.0.1", server.port())),
        acquire_(bench::set_arguments(key)),
        release_(bench::release_arguments("script", key)) {
    expect(ssl_ != nullptr && context_ != nullptr && context_->err == 0, "hiredis cannot connect to the server");
    expect(redisInitiateSSLWithContext(context_.get(), ssl_.get()) == REDIS_OK, "hiredis: no handshake");
    (void)redisSetTimeout(context_.get(), {.tv_sec = 1, .tv_usec = 0});
    bench::ArgumentVectors({"SCRIPT", "LOAD", bench::release_text()}).call(context_.get(), nullptr, REDIS_REPLY_STRING);
  }

  void run(std::size_t count) {
    for (; count != 0; --count) {
      const char* const token = tokens_.next();
      acquire_.call(context_.get(), token, REDIS_REPLY_STATUS);
      release_.call(context_.get(), token, REDIS_REPLY_INTEGER);
    }
  }

 private:
  std::unique_ptr<redisSSLContext, FreeSslContext> ssl_;
  std::unique_ptr<redisContext, bench::ContextDeleter> context_;
  bench::ArgumentVectors acquire_;
  bench::ArgumentVectors release_;
  bench::TokenTable tokens_;
};

#endif

// ---- The comparison ----------------------------------------------------------------------------------------------

template <class Pairs>
PairedRounds::Run pairs_of(const TlsServer& server) {
  return [pairs = std::make_shared<Pairs>(server)](std::size_t count) { pairs->run(count); };
}

void run_comparison(Harness& harness) {
  const bench::Effort effort = harness.effort(harness.conditions().size(), 10, 2);
  (void)harness.binaries();
#ifndef HOLDFAST_BENCH_HIREDIS_SSL
  std::fputs("hiredis has no ssl here (hiredis_ssl, from its 1.0 on): its row is missing\n", stderr);
#endif
  const TlsServer server;
  for (const Condition condition : harness.conditions()) {
    const Placement placement(condition, server.plain().pid(), harness.cpus());
    PairedRounds rounds(effort.samples, pairs_a_sample, 1);
    rounds.add("raw", pairs_of<RawTls>(server));
    rounds.add("raw again", pairs_of<RawTls>(server));
    rounds.add("holdfast", pairs_of<HoldfastTls>(server));
#ifdef HOLDFAST_BENCH_HIREDIS_SSL
    rounds.add("hiredis", pairs_of<HiredisTls>(server));
#endif
    rounds.run(effort.share, effort.rounds_min);
    const std::string group = std::string("TLS, ") + bench::to_string(condition);
    harness.report().add(group, rounds, "raw again", "raw");
    harness.report().add(group, rounds, "holdfast", "raw");
#ifdef HOLDFAST_BENCH_HIREDIS_SSL
    harness.report().add(group, rounds, "hiredis", "raw");
    harness.report().add(group, rounds, "holdfast", "hiredis", at_most(1.0));
#endif
    harness.print_new_rows();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_tls",
      .purpose =
          "Measures pairs of acquire and release over TLS against OpenSSL on a raw socket and hiredis with its ssl, "
          "over a\n"
          "private server: the first of HOLDFAST_SERVERS (separated by colons), else redis-server from the path.",
      .title = "holdfast: a pair of acquire and release over TLS, ratios of one run",
      .files = "tls",
  });
  harness.add_seconds(30, "how long, all in all, about");
  harness.add_condition();
  harness.add_output();
  return harness.main(argc, argv, [&] { run_comparison(harness); });
}
