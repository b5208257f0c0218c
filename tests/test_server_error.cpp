// SPDX-License-Identifier: MIT
//
// Theorem S7 of proto/security.md: only an error line that proves that nothing ran says so.
#include <string>
#include <vector>

#include "holdfast/proto/server_error.hpp"
#include "printers.hpp"
#include "unity_style.hpp"
#include "vectors.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

const char* effect_of(const ServerError& error) { return error.nothing_ran ? "nothing_ran" : "may_have_run"; }

// Calls visit() with every line of the vectors.
template <class Visit>
void for_every_line(Visit visit) {
  const std::vector<VectorCase> vectors = read_vectors("errors.txt");
  TEST_ASSERT_TRUE(vectors.size() >= 80);
  for (const VectorCase& vector : vectors) {
    TEST_MESSAGE(vector.place() << ": " << vector.field("case"));
    VectorReader line(vector, vector.field("line"));
    VectorReader expected(vector, vector.field("expect"));
    const std::string status = expected.word();
    visit(line.bytes(), status, expected.word());
    line.expect_end();
    expected.expect_end();
  }
}

}  // namespace

TEST(test_every_error_line_should_have_the_class_and_the_effect_that_its_vector_says) {
  for_every_line([](const std::string& line, const std::string& status, const std::string& effect) {
    const ServerError error = classify_error(ByteView(line));
    TEST_ASSERT_EQUAL(status, std::string(to_string(error.status)));
    TEST_ASSERT_EQUAL(effect, std::string(effect_of(error)));
  });
}

TEST(test_every_line_should_keep_its_class_and_prove_nothing_when_it_comes_out_of_a_script_of_redis_7) {
  for_every_line([](const std::string& line, const std::string& status, const std::string&) {
    const std::string scripted = line + " script: bd6f3018b28bbdb36260f19d3c44afed740db987, on @user_script:1.";
    const ServerError error = classify_error(ByteView(scripted));
    // A bare class word is followed by the script's place as it would be by a text; nothing at all stays unknown.
    if (!line.empty() && line != "ERR") TEST_ASSERT_EQUAL(status, std::string(to_string(error.status)));
    TEST_ASSERT_FALSE(error.nothing_ran);
  });
}

TEST(test_every_line_should_prove_nothing_when_a_script_before_redis_7_wraps_it) {
  for_every_line([](const std::string& line, const std::string&, const std::string&) {
    for (const char* const wrapping :
         {"ERR Error running script (call to f_bd6f3018b28bbdb36260f19d3c44afed740db987): @user_script:6: "
          "@user_script: 6: -",
          "ERR Error running script (call to f_bd6f3018b28bbdb36260f19d3c44afed740db987): @user_script:1: ",
          "ERR Error compiling script (new function): "}) {
      TEST_ASSERT_FALSE(classify_error(ByteView(wrapping + line)).nothing_ran);
    }
  });
}

TEST(test_no_proof_should_survive_a_byte_in_front_of_it) {
  for_every_line([](const std::string& line, const std::string&, const std::string&) {
    for (int byte = 0; byte < 256; ++byte) {
      const ServerError error = classify_error(ByteView(static_cast<char>(byte) + line));
      TEST_ASSERT_FALSE(error.nothing_ran);
    }
  });
}

TEST(test_a_proof_that_was_cut_short_should_prove_the_same_or_nothing) {
  for_every_line([](const std::string& line, const std::string& status, const std::string& effect) {
    if (effect != "nothing_ran") return;
    for (std::size_t size = 0; size < line.size(); ++size) {
      const ServerError error = classify_error(ByteView(line).slice(0, size));
      if (error.nothing_ran) TEST_ASSERT_EQUAL(status, std::string(to_string(error.status)));
    }
  });
}

TEST(test_an_error_without_a_class_should_never_prove_anything) {
  for (const char* const line : {"", "ERR", "ERR ", "E", "-", " ", "WHATEVER it is", "OOMPH", "MOVE 1 a:1"}) {
    const ServerError error = classify_error(ByteView(std::string_view(line)));
    TEST_ASSERT_EQUAL(Status::server_error, error.status);
    TEST_ASSERT_FALSE(error.nothing_ran);
  }
}
