// SPDX-License-Identifier: MIT
//
// doctest's main for live tests: skipped, with a reason, where there is no server to test against.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "redis_server.hpp"

int main(int count, char** arguments) {
  constexpr int skipped = 77;
  if (server_binaries().empty()) {
    std::puts("skipped: neither redis-server nor valkey-server in the path, and HOLDFAST_SERVERS is not set");
    return skipped;
  }
  doctest::Context context(count, arguments);
  return context.run();
}
