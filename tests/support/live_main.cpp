// SPDX-License-Identifier: MIT
//
// The main of live tests: skipped, with a reason, where there is no server to test against.
#include <cstdio>

#include "redis_server.hpp"
#include "run_tests.hpp"

int main(int count, char** arguments) {
  constexpr int skipped = 77;
  if (server_binaries().empty()) {
    std::puts("skipped: neither redis-server nor valkey-server in the path, and HOLDFAST_SERVERS is not set");
    return skipped;
  }
  return run_tests(count, arguments);
}
