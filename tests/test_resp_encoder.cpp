// SPDX-License-Identifier: MIT
//
// Theorem S6 of proto/security.md: what is encoded is read back as the arguments that were passed, whatever their
// bytes; what does not fit touches nothing.
#include <climits>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "guard_page.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "parse_record.hpp"
#include "printers.hpp"
#include "resp_oracle.hpp"
#include "unity_style.hpp"
#include "vectors.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr char canary = '\x5a';

// Requests are written so that their last byte is the last one before the guard.
std::unique_ptr<GuardPage> guarded;

std::string encode(Arguments arguments) {
  const std::size_t needed = encoded_size(arguments);
  const MutableBytes out = guarded->last(needed);
  std::size_t size = 0;
  TEST_ASSERT_EQUAL(Status::ok, encode_command(out, arguments, size));
  TEST_ASSERT_EQUAL(needed, size);
  return {out.data, size};
}

// What the parser makes of a request: an array of bulk strings.
RespTree parsed(const std::string& request) {
  static RespValue nodes[elements_max];
  static char buffer[16384];
  RespParser parser({buffer, sizeof buffer}, nodes, elements_max);
  const ParseRecord record = record_parse(parser, request, [](std::size_t rest) { return rest; });
  TEST_ASSERT_EQUAL(std::size_t{1}, record.values.size());
  TEST_ASSERT_TRUE(record.idle);
  return record.values[0];
}

RespTree bulks(const std::vector<std::string>& texts) {
  RespTree tree{RespKind::array, "", 0, {}};
  for (const std::string& text : texts) tree.items.push_back({RespKind::bulk, text, 0, {}});
  return tree;
}

}  // namespace

static void setUp() { guarded = std::make_unique<GuardPage>(16384); }
static void tearDown() { guarded.reset(); }

TEST(test_encoder_should_write_every_vector_byte_for_byte) {
  const std::vector<VectorCase> vectors = read_vectors("requests.txt");
  TEST_ASSERT_TRUE(vectors.size() >= 10);
  for (const VectorCase& vector : vectors) {
    TEST_MESSAGE(vector.place() << ": " << vector.field("case"));
    std::vector<std::string> texts;  // One an argument; an integer's is not used.
    std::vector<std::pair<bool, std::int64_t>> integers;
    VectorReader reader(vector, vector.field("command"));
    while (!reader.at_end()) {
      const bool is_integer = reader.take("integer");
      integers.emplace_back(is_integer, is_integer ? reader.number() : 0);
      texts.push_back(is_integer ? "" : reader.item());
    }
    std::vector<Argument> arguments;
    for (std::size_t index = 0; index < texts.size(); ++index) {
      const auto& [is_integer, integer] = integers[index];
      arguments.push_back(is_integer ? Argument(integer) : Argument(ByteView(texts[index])));
    }
    VectorReader expected(vector, vector.field("expect"));
    TEST_ASSERT_EQUAL(show_bytes(expected.bytes()), show_bytes(encode({arguments.data(), arguments.size()})));
  }
}

TEST(test_parser_should_give_back_the_arguments_that_were_encoded) {
  // Sizes on both sides of each change in a length's number of digits.
  for (const std::size_t size : {0U, 1U, 2U, 9U, 10U, 11U, 99U, 100U, 101U, 999U, 1000U, 1001U, 1024U}) {
    std::string argument;
    for (std::size_t at = 0; at < size; ++at) argument += static_cast<char>(at * 37);
    TEST_ASSERT_EQUAL(to_text(bulks({"SET", argument, ""})),
                      to_text(parsed(encode({{"SET", ByteView(argument), ByteView()}}))));
  }
}

TEST(test_parser_should_give_back_every_byte_value) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  TEST_ASSERT_EQUAL(to_text(bulks({"GET", every})), to_text(parsed(encode({{"GET", ByteView(every)}}))));
}

TEST(test_encoder_should_write_integers_as_the_c_library_would) {
  for (const std::int64_t integer :
       {INT64_MIN, INT64_MIN + 1, INT64_C(-1000000000000000000), INT64_C(-10), INT64_C(-9), INT64_C(-1), INT64_C(0),
        INT64_C(1), INT64_C(9), INT64_C(10), INT64_C(99), INT64_C(100), INT64_C(999999999999999999),
        INT64_C(1000000000000000000), INT64_MAX - 1, INT64_MAX}) {
    TEST_ASSERT_EQUAL(to_text(bulks({"X", std::to_string(integer)})),
                      to_text(parsed(encode({{"X", Argument(integer)}}))));
  }
  // Each power of ten and its neighbours, where the number of digits changes.
  for (std::int64_t power = 1; power <= INT64_MAX / 10; power *= 10)
    for (const std::int64_t integer : {power - 1, power, power + 1, -power + 1, -power, -power - 1})
      TEST_ASSERT_EQUAL(to_text(bulks({"X", std::to_string(integer)})),
                        to_text(parsed(encode({{"X", Argument(integer)}}))));
}

TEST(test_encoder_should_touch_nothing_when_the_request_does_not_fit) {
  const Argument arguments[] = {"SET", "key", Argument(std::int64_t{-42})};
  const std::size_t needed = encoded_size(arguments);
  for (std::size_t room = 0; room < needed; ++room) {
    char buffer[64];
    std::memset(buffer, canary, sizeof buffer);
    std::size_t size = 4711;
    TEST_ASSERT_EQUAL(Status::buffer_too_small, encode_command({buffer, room}, arguments, size));
    TEST_ASSERT_EQUAL(std::size_t{4711}, size);
    for (const char byte : buffer) TEST_ASSERT_EQUAL(canary, byte);
  }
}

TEST(test_encoder_should_write_no_byte_behind_the_request) {
  char buffer[64];
  std::memset(buffer, canary, sizeof buffer);
  std::size_t size = 0;
  TEST_ASSERT_EQUAL(Status::ok, encode_command({buffer, sizeof buffer}, {{"GET", "key"}}, size));
  TEST_ASSERT_EQUAL(std::size_t{22}, size);
  for (std::size_t at = size; at < sizeof buffer; ++at) TEST_ASSERT_EQUAL(canary, buffer[at]);
}

TEST(test_encoder_should_refuse_a_command_without_a_name) {
  char buffer[64];
  std::memset(buffer, canary, sizeof buffer);
  std::size_t size = 4711;
  TEST_ASSERT_EQUAL(Status::invalid_argument, encode_command({buffer, sizeof buffer}, {nullptr, 0}, size));
  TEST_ASSERT_EQUAL(std::size_t{4711}, size);
  TEST_ASSERT_EQUAL(canary, buffer[0]);
}

// ---- Argument by argument ----------------------------------------------------------------------------------------

TEST(test_writer_should_write_what_encode_command_would) {
  std::string argument;
  for (const std::size_t size : {0U, 1U, 9U, 10U, 99U, 100U, 1000U}) {
    argument.assign(size, '\r');
    const Argument arguments[] = {"EVALSHA", ByteView(argument), Argument(std::int64_t{-42}), Argument(INT64_MIN)};
    const std::string expected = encode(arguments);
    const MutableBytes out = guarded->last(expected.size());
    std::size_t written = 0;
    CommandWriter writer(out, 4);
    writer.add("EVALSHA").add(ByteView(argument)).add(-42).add(INT64_MIN);
    TEST_ASSERT_EQUAL(Status::ok, writer.finish(written));
    TEST_ASSERT_EQUAL(show_bytes(expected), show_bytes({out.data, written}));
  }
}

TEST(test_writer_should_write_more_arguments_than_a_table_would_hold) {
  constexpr std::size_t count = 1001;
  static char buffer[16384];
  std::size_t size = 0;
  CommandWriter writer({buffer, sizeof buffer}, count);
  for (std::size_t index = 0; index < count; ++index) writer.add(static_cast<std::int64_t>(index));
  TEST_ASSERT_EQUAL(Status::ok, writer.finish(size));
  RespTree tree;
  std::size_t read = 0;
  const OracleLimits wide = {.bulk = 1U << 20, .elements = 1U << 20, .reply = 1U << 24};
  TEST_ASSERT_EQUAL(ParseResult::value, RespOracle::read({buffer, size}, wide, tree, read));
  TEST_ASSERT_EQUAL(size, read);
  TEST_ASSERT_EQUAL(count, tree.items.size());
  for (std::size_t index = 0; index < count; ++index) TEST_ASSERT_EQUAL(std::to_string(index), tree.items[index].text);
}

TEST(test_writer_should_report_what_does_not_fit_and_write_no_byte_behind_its_room) {
  const std::size_t needed = encoded_size({{"SET", "key", Argument(std::int64_t{-42})}});
  for (std::size_t room = 0; room <= needed; ++room) {
    char buffer[64];
    std::memset(buffer, canary, sizeof buffer);
    std::size_t size = 4711;
    CommandWriter writer({buffer, room}, 3);
    writer.add("SET").add("key").add(-42);
    TEST_ASSERT_EQUAL(room < needed ? Status::buffer_too_small : Status::ok, writer.finish(size));
    TEST_ASSERT_EQUAL(room < needed ? std::size_t{4711} : needed, size);
    for (std::size_t at = room; at < sizeof buffer; ++at) TEST_ASSERT_EQUAL(canary, buffer[at]);
  }
}

// A short argument must not slip into the room that a longer one before it did not find.
TEST(test_writer_should_write_nothing_behind_what_did_not_fit) {
  char buffer[40];
  std::size_t size = 4711;
  CommandWriter writer({buffer, sizeof buffer}, 3);
  writer.add("SET").add(ByteView(std::string(60, 'k'))).add("v");
  TEST_ASSERT_EQUAL(Status::buffer_too_small, writer.finish(size));
  TEST_ASSERT_EQUAL(std::size_t{4711}, size);
}

// ---- Counted as they come ----------------------------------------------------------------------------------------

TEST(test_writer_should_count_arguments_that_were_not_announced) {
  for (std::size_t count = 1; count < 100; ++count) {
    std::vector<Argument> arguments(count, Argument("v"));
    const std::string expected = encode({arguments.data(), arguments.size()});
    for (std::size_t less = 0; less <= expected.size(); ++less) {
      if (less > 3 && less + 8 < expected.size()) continue;
      const MutableBytes out = guarded->last(expected.size() - less);
      std::size_t size = 4711;
      CommandWriter writer(out);
      for (std::size_t index = 0; index < count; ++index) writer.add("v");
      TEST_ASSERT_EQUAL(less == 0 ? Status::ok : Status::buffer_too_small, writer.finish(size));
      TEST_ASSERT_EQUAL(less == 0 ? expected.size() : std::size_t{4711}, size);
      if (less == 0) TEST_ASSERT_EQUAL(show_bytes(expected), show_bytes({out.data, size}));
      TEST_ASSERT_EQUAL(count, writer.count());
    }
  }
}

TEST(test_writer_should_refuse_a_command_without_a_name) {
  char buffer[16];
  std::size_t size = 4711;
  TEST_ASSERT_EQUAL(Status::invalid_argument, CommandWriter({buffer, sizeof buffer}).finish(size));
  TEST_ASSERT_EQUAL(std::size_t{4711}, size);
}

TEST(test_writer_should_say_the_same_size_again) {
  char buffer[128];
  CommandWriter writer({buffer, sizeof buffer});
  for (int index = 0; index < 12; ++index) writer.add(index);
  for (int round = 0; round < 2; ++round) {
    std::size_t size = 0;
    TEST_ASSERT_EQUAL(Status::ok, writer.finish(size));
    TEST_ASSERT_EQUAL(std::string("*12\r\n$1\r\n0\r\n"), std::string(buffer, 12));
    TEST_ASSERT_EQUAL(std::size_t{5 + 10 * 7 + 2 * 8}, size);
  }
}

// ---- What the compiler encodes -----------------------------------------------------------------------------------

TEST(test_literals_should_be_encoded_as_arguments_are) {
  static constexpr EncodedArguments literals("SET", "", "0123456789", "a\r\nb");
  TEST_ASSERT_EQUAL(std::size_t{4}, literals.count);
  const std::string expected = encode({{"SET", "", "0123456789", "a\r\nb"}});
  for (std::size_t room = 0; room <= expected.size(); ++room) {
    const MutableBytes out = guarded->last(room);
    std::size_t size = 4711;
    CommandWriter writer(out);
    writer.add_encoded({literals.bytes, sizeof literals.bytes}, literals.count);
    TEST_ASSERT_EQUAL(room < expected.size() ? Status::buffer_too_small : Status::ok, writer.finish(size));
    if (room == expected.size()) TEST_ASSERT_EQUAL(show_bytes(expected), show_bytes({out.data, size}));
  }
}
