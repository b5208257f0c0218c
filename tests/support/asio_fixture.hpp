// SPDX-License-Identifier: MIT
//
// What live tests of the Asio client share: a loop with a client on it, and outcomes that are waited for by running the
// loop. No handler of theirs may be called from inside the function that it is given to: each outcome looks for that.
#pragma once

#include <asio/io_context.hpp>
#include <string>
#include <utility>

#include "holdfast/asio.hpp"
#include "live_fixture.hpp"
#include "patience.hpp"
#include "proxy.hpp"

// Runs the loop until the condition is true. False: it has not become so in time.
template <class Condition>
[[nodiscard]] bool runs_until(asio::io_context& loop, Condition&& condition, holdfast::Duration limit = patience) {
  const holdfast::Instant until = holdfast::Client::now() + limit;
  while (!condition()) {
    if (holdfast::Client::now() >= until) return false;
    if (loop.stopped()) loop.restart();
    // Without work it returns at once.
    if (loop.run_one_for(std::chrono::milliseconds(5)) == 0) breathe(std::chrono::milliseconds(1));
  }
  return true;
}

inline void run_for(asio::io_context& loop, holdfast::Duration duration) {
  (void)runs_until(
      loop, [] { return false; }, duration);
}

// What one handler was told.
struct Outcome {
  int calls = 0;
  holdfast::Status status = holdfast::Status::ok;

  [[nodiscard]] auto handler() {
    return [this](std::error_code error) {
      ++calls;
      status = holdfast::to_status(error);
    };
  }
  [[nodiscard]] bool done() const { return calls != 0; }
};

// Starts an operation, runs the loop until its handler has been called, and returns what it was told.
template <class Start>
holdfast::Status outcome_of(asio::io_context& loop, Start&& start) {
  Outcome outcome;
  start(outcome.handler());
  TEST_ASSERT_EQUAL(0, outcome.calls);
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(1, outcome.calls);
  return outcome.status;
}

inline holdfast::Status connect(asio::io_context& loop, holdfast::AsyncClient& client,
                                const holdfast::ClientConfig& config) {
  return outcome_of(loop, [&](auto handler) { client.async_connect(config, handler); });
}
inline holdfast::Status connect(asio::io_context& loop, holdfast::AsyncClient& client, const std::string& url) {
  return outcome_of(loop, [&](auto handler) { client.async_connect(holdfast::ByteView(url), handler); });
}
inline holdfast::Status acquire(asio::io_context& loop, holdfast::AsyncLock& lock,
                                holdfast::Duration wait = holdfast::Duration::zero()) {
  return outcome_of(loop, [&](auto handler) { lock.async_acquire(wait, handler); });
}
inline holdfast::Status renew(asio::io_context& loop, holdfast::AsyncLock& lock) {
  return outcome_of(loop, [&](auto handler) { lock.async_renew(handler); });
}
inline holdfast::Status release(asio::io_context& loop, holdfast::AsyncLock& lock) {
  return outcome_of(loop, [&](auto handler) { lock.async_release(handler); });
}

// A lock that is its owner's only one.
struct SoleOwner {
  holdfast::AsyncOwnerOf<1> owner;
  explicit SoleOwner(holdfast::AsyncClient& client) : owner(client) {}
};
template <class Lock>
class Sole : private SoleOwner, public Lock {
 public:
  Sole(holdfast::AsyncClient& client, holdfast::BytesArgument key, const holdfast::LockTiming& timing = {})
      : SoleOwner(client), Lock(SoleOwner::owner, key, timing) {}
  template <std::size_t count>
  Sole(holdfast::AsyncClient& client, const holdfast::BytesArgument (&names)[count],
       const holdfast::LockTiming& timing = {})
      : SoleOwner(client), Lock(SoleOwner::owner, names, timing) {}
  template <holdfast::BytesElement Text, std::size_t count>
  Sole(holdfast::AsyncClient& client, Text (&names)[count], const holdfast::LockTiming& timing = {})
      : SoleOwner(client), Lock(SoleOwner::owner, names, timing) {}
};

// A loop, and a client on it that is connected.
struct AsioWorld {
  asio::io_context loop{1};
  holdfast::AsyncClient client;

  explicit AsioWorld(const std::string& url, const holdfast::AsyncLimits& limits = {})
      : AsioWorld(patient_config(url), limits) {}
  explicit AsioWorld(const holdfast::ClientConfig& config, const holdfast::AsyncLimits& limits = {})
      : client(loop.get_executor(), limits) {
    TEST_ASSERT_EQUAL(holdfast::Status::ok, connect(loop, client, config));
  }

  // Deadlines that a slow machine keeps.
  static holdfast::ClientConfig patient_config(const std::string& url) {
    holdfast::ClientConfig config = config_for(url);
    config.request_timeout = std::chrono::seconds(5);
    config.connect_timeout = std::chrono::seconds(5);
    return config;
  }
  template <class Condition>
  [[nodiscard]] bool runs_until(Condition&& condition) {
    return ::runs_until(loop, std::forward<Condition>(condition));
  }
  void run_for(holdfast::Duration duration) { ::run_for(loop, duration); }
  holdfast::Status acquire(holdfast::AsyncLock& lock, holdfast::Duration wait = holdfast::Duration::zero()) {
    return ::acquire(loop, lock, wait);
  }
  holdfast::Status renew(holdfast::AsyncLock& lock) { return ::renew(loop, lock); }
  holdfast::Status release(holdfast::AsyncLock& lock) { return ::release(loop, lock); }
};

// Cuts the client off: it cannot come back before the proxy lets go.
inline void cut_off(AsioWorld& world, Proxy& proxy, RedisServer& server) {
  proxy.hold_requests_of(Proxy::all);
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_TRUE(world.runs_until([&] { return !world.client.connected(); }));
}
