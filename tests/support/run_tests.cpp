// SPDX-License-Identifier: MIT
#include "run_tests.hpp"

#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> names;  // Of all tests, in the order of the source.

// What doctest calls a reporter is here a listener to the answer to --list-test-cases.
struct Names : doctest::IReporter {
  explicit Names(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData& found) override {
    for (unsigned index = 0; index < found.num_data; ++index) names.emplace_back(found.data[index]->m_name);
  }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
DOCTEST_REGISTER_REPORTER("names", 0, Names);

void read_names() {
  const char* const arguments[] = {"", "--list-test-cases", "--reporters=names"};
  doctest::Context(3, arguments).run();
}

// doctest excludes tests by name, so a name must stand for one test, and must mean only itself in a filter.
bool names_are_filters() {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    std::fprintf(stderr, "--part: there are two tests named %s\n", twice->c_str());
    return false;
  }
  for (const std::string& name : names) {
    if (name.find_first_of(",*?\\\"") == std::string::npos) continue;
    std::fprintf(stderr, "--part: the name \"%s\" is no plain word\n", name.c_str());
    return false;
  }
  return true;
}

// False, and a word about it, if `text` is not K/N.
bool choose_part(doctest::Context& context, const char* text) {
  unsigned part = 0;
  unsigned parts = 0;
  char rest = 0;
  read_names();
  if (std::sscanf(text, "%u/%u%c", &part, &parts, &rest) != 2 || part == 0 || part > parts || parts > names.size()) {
    std::fprintf(stderr, "--part=%s: K/N is wanted, K from 1 to N, N at most the %zu tests\n", text, names.size());
    return false;
  }
  if (!names_are_filters()) return false;
  std::string others;
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (index % parts != part - 1) others += (others.empty() ? "" : ",") + names[index];
  }
  context.setOption("case-sensitive", true);
  if (!others.empty()) context.addFilter("test-case-exclude", others.c_str());
  return true;
}

}  // namespace

int run_tests(int count, char** arguments) {
  doctest::Context context(count, arguments);
  constexpr char option[] = "--part=";
  for (int index = 1; index < count; ++index) {
    if (std::strncmp(arguments[index], option, sizeof option - 1) != 0) continue;
    if (!choose_part(context, arguments[index] + sizeof option - 1)) return 1;
  }
  return context.run();
}
