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

// TEST_ON_SERVER(name) { ... `server` is a fresh RedisServer ... }
#define TEST_ON_SERVER(name, ...)                         \
  static void name(RedisServer& server);                  \
  TEST(name) {                                            \
    for (const std::string& binary : server_binaries()) { \
      TEST_MESSAGE("server: " << binary);                 \
      RedisServer server(binary, {__VA_ARGS__});          \
      name(server);                                       \
    }                                                     \
  }                                                       \
  static void name([[maybe_unused]] RedisServer& server)
