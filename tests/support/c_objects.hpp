// SPDX-License-Identifier: MIT
//
// What tests of the C interface share: a lease that outlives a test, texts of objects, and a program that an assertion ends.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "holdfast.h"
#include "holdfast/proto/assert.hpp"
#include "unity_style.hpp"

inline constexpr holdfast_lock_options long_lease = [] {
  holdfast_lock_options options = {};
  options.lease_ms = 60'000;
  return options;
}();

inline std::string text_of(const holdfast_client& of) {
  char text[256] = "";
  (void)holdfast_client_error_text(&of, text, sizeof text);
  return text;
}

// In a child, whose parent goes on with what it has.
template <class Work>
void expect_assertion(Work&& work) {
  const pid_t child = ::fork();
  TEST_ASSERT_TRUE(child >= 0);
  if (child == 0) {
    holdfast::set_assertion_handler([](const char*, int) noexcept { ::_exit(42); });
    work();
    ::_exit(0);
  }
  int outcome = 0;
  TEST_ASSERT_EQUAL(child, ::waitpid(child, &outcome, 0));
  TEST_ASSERT_TRUE(WIFEXITED(outcome));
  TEST_ASSERT_EQUAL(42, WEXITSTATUS(outcome));
}
