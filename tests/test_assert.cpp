// SPDX-License-Identifier: MIT
//
// A broken assertion ends the program, by way of a handler where there is one.
#include "unity_style.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <string>

#include "holdfast/proto/assert.hpp"

using namespace holdfast;

namespace {

// Where a test goes on behind a call that does not return.
sigjmp_buf behind;
volatile std::sig_atomic_t aborts = 0;
std::string told_file;
int told_line = 0;

void note(const char* file, int line) noexcept {
  told_file = file;
  told_line = line;
}
void note_and_leave(const char* file, int line) noexcept {
  note(file, line);
  siglongjmp(behind, 1);
}
void leave_abort(int) {
  aborts = aborts + 1;
  siglongjmp(behind, 1);
}

constexpr int broken_line = __LINE__ + 1;
void break_assertion() { HOLDFAST_ASSERT(told_line == 4711); }
void keep_assertion() { HOLDFAST_ASSERT(told_line == 0); }

// What is written to standard error while the call runs.
std::string told_by(void (*call)()) {
  int ends[2];
  TEST_ASSERT_EQUAL(0, ::pipe(ends));
  TEST_ASSERT_EQUAL(0, ::fcntl(ends[0], F_SETFL, O_NONBLOCK));
  const int before = ::dup(2);
  ::dup2(ends[1], 2);
  const bool returned = sigsetjmp(behind, 1) == 0 && (call(), true);
  ::dup2(before, 2);
  char text[4096];
  const ssize_t size = ::read(ends[0], text, sizeof text);
  for (const int descriptor : {before, ends[0], ends[1]}) ::close(descriptor);
  TEST_ASSERT_FALSE(returned);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

// False if it was left by a handler.
bool returns(void (*call)()) {
  if (sigsetjmp(behind, 1) != 0) return false;
  call();
  return true;
}

}  // namespace

static void setUp() {
  aborts = 0;
  told_file.clear();
  told_line = 0;
  std::signal(SIGABRT, leave_abort);
}
static void tearDown() {
  set_assertion_handler(nullptr);
  std::signal(SIGABRT, SIG_DFL);
}

TEST(test_broken_assertion_should_tell_the_handler_its_place) {
  set_assertion_handler(note_and_leave);
  TEST_ASSERT_FALSE(returns(break_assertion));
  TEST_ASSERT_EQUAL("test_assert.cpp", told_file);
  TEST_ASSERT_EQUAL(broken_line, told_line);
  TEST_ASSERT_EQUAL(0, aborts);
}

TEST(test_assertion_that_holds_should_tell_nobody) {
  set_assertion_handler(note_and_leave);
  TEST_ASSERT_TRUE(returns(keep_assertion));
  TEST_ASSERT_EQUAL("", told_file);
}

TEST(test_broken_assertion_should_abort_without_a_handler) {
  set_assertion_handler(note);
  set_assertion_handler(nullptr);
  TEST_ASSERT_FALSE(returns(break_assertion));
  TEST_ASSERT_EQUAL(1, aborts);
  TEST_ASSERT_EQUAL("", told_file);
}

// Issue 10, point 20: in a release build, too.
TEST(test_broken_assertion_should_say_where_on_standard_error_before_it_aborts) {
  const std::string place = "holdfast: test_assert.cpp:" + std::to_string(broken_line) + ": ";
  const std::string text = told_by(break_assertion);
  TEST_ASSERT_EQUAL(place, text.substr(0, place.size()));
  TEST_ASSERT_TRUE(text.find("REQUIRES") != std::string::npos);
  TEST_ASSERT_EQUAL('\n', text.back());
  TEST_ASSERT_EQUAL(1, static_cast<int>(std::count(text.begin(), text.end(), '\n')));
  TEST_ASSERT_EQUAL(1, aborts);
}

TEST(test_a_place_should_be_told_whole_however_long_its_file_is_called) {
  static const std::string file(1000, 'f');
  for (const int line : {0, 1, 2'147'483'647}) {
    static int number = 0;
    number = line;
    const std::string text = told_by([] { assertion_failed(file.c_str(), number); });
    const std::string place = "holdfast: " + file + ":" + std::to_string(line) + ": ";
    TEST_ASSERT_EQUAL(place, text.substr(0, place.size()));
  }
}

TEST(test_a_handler_should_have_the_word_instead) {
  set_assertion_handler(note);
  TEST_ASSERT_EQUAL("", told_by(break_assertion));
  TEST_ASSERT_EQUAL("test_assert.cpp", told_file);
  TEST_ASSERT_EQUAL(1, aborts);
}

TEST(test_broken_assertion_should_abort_behind_a_handler_that_returns) {
  set_assertion_handler(note);
  TEST_ASSERT_FALSE(returns([] { assertion_failed("file.cpp", 7); }));
  TEST_ASSERT_EQUAL(1, aborts);
  TEST_ASSERT_EQUAL("file.cpp", told_file);
  TEST_ASSERT_EQUAL(7, told_line);
}
