// SPDX-License-Identifier: MIT
//
// What live tests share: every test body runs once for each server binary that is found.
#pragma once

#include <functional>
#include <string>

#include "holdfast/holdfast.hpp"
#include "printers.hpp"
#include "redis_server.hpp"
#include "unity_style.hpp"

// Where `url` says. The deadlines are long: a machine that stands still for a moment fails no test.
inline holdfast::ClientConfig config_for(const std::string& url) {
  holdfast::ClientConfig config;
  TEST_ASSERT_EQUAL(holdfast::Status::ok, holdfast::parse_url(holdfast::ByteView(url), config));
  config.request_timeout = std::chrono::seconds(5);
  config.connect_timeout = std::chrono::seconds(5);
  return config;
}

// The same for a test that waits until a request's time is over.
inline holdfast::ClientConfig hasty_config_for(const std::string& url) {
  holdfast::ClientConfig config = config_for(url);
  config.request_timeout = std::chrono::milliseconds(300);
  return config;
}

// What a wait that ends in vain takes: what is tried within its last millisecond is its last attempt.
constexpr holdfast::Duration at_least(holdfast::Duration wait) { return wait - holdfast::timeout_min; }

// A test over another server is another test.
#define TEST_NEXT_SERVER() (tearDown(), setUp())

// TEST_ON(Setup, setup, name) { ... `setup` is a fresh Setup of each server's binary ... }
#define TEST_ON(Setup, setup, name, ...)                  \
  static void name(Setup& setup);                         \
  TEST(name) {                                            \
    bool again = false;                                   \
    for (const std::string& binary : server_binaries()) { \
      if (again) TEST_NEXT_SERVER();                      \
      again = true;                                       \
      TEST_MESSAGE("server: " << binary);                 \
      Setup setup{binary __VA_OPT__(, ) __VA_ARGS__};     \
      name(setup);                                        \
    }                                                     \
  }                                                       \
  static void name([[maybe_unused]] Setup& setup)

// TEST_ON_SERVER(name) { ... `server` is a fresh RedisServer ... }
#define TEST_ON_SERVER(name, ...) TEST_ON(RedisServer, server, name, {__VA_ARGS__})
