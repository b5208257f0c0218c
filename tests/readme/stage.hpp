// SPDX-License-Identifier: MIT
//
// What the programs around README.md's examples share: where the servers are, and how a failure ends the program.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"

// A hold that nobody renews is over by then.
inline constexpr std::chrono::seconds longer_than_a_lease =
    std::chrono::duration_cast<std::chrono::seconds>(holdfast::lease_default) + std::chrono::seconds(1);

// Each line goes out at once: the test sees how far the program is.
inline void say(holdfast::ByteView words) {
  std::printf("%.*s\n", static_cast<int>(words.size()), words.data());
  std::fflush(stdout);
}

inline void expect(bool condition, holdfast::ByteView words) {
  if (condition) return;
  say("FAILED:");
  say(words);
  ::_exit(1);
}

// Where the URL of an example leads in this test: extract.py has put the variable's name in its place.
inline const char* server(const char* variable) {
  const char* const url = std::getenv(variable);
  expect(url != nullptr, variable);
  return url;
}
