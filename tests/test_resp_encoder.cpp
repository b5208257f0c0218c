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
#include "holdfast/resp_encoder.hpp"
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

// ---- Templates ---------------------------------------------------------------------------------------------------

TEST(test_patched_template_should_equal_the_request_encoded_anew) {
  const ByteView tokens[] = {"00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100",
                             "\r\n$32\r\n*1\r\n\0\xff 0123456789abcdefgh"};
  for (std::size_t patched = 0; patched < 3; ++patched) {  // The last argument is an integer: it cannot be patched.
    Argument arguments[] = {"SET", "key", "PX", Argument(std::int64_t{30000})};
    RequestTemplate prepared;
    TEST_ASSERT_FALSE(prepared.prepared());
    arguments[patched] = tokens[0];
    TEST_ASSERT_EQUAL(Status::ok, prepared.prepare(arguments, patched));
    TEST_ASSERT_TRUE(prepared.prepared());
    for (const ByteView token : tokens) {
      TEST_ASSERT_EQUAL(std::size_t{32}, token.size());
      prepared.patch(token);
      arguments[patched] = token;
      TEST_ASSERT_EQUAL(show_bytes(encode(arguments)), show_bytes(prepared.bytes().string_view()));
      TEST_ASSERT_EQUAL(token, prepared.patched());
    }
  }
}

TEST(test_template_should_stay_as_it_was_when_a_request_does_not_fit) {
  RequestTemplate prepared;
  TEST_ASSERT_EQUAL(Status::ok, prepared.prepare({{"GET", "token"}}, 1));
  const std::string before(prepared.bytes().string_view());
  const std::string too_long(template_size_max, 'k');
  TEST_ASSERT_EQUAL(Status::buffer_too_small, prepared.prepare({{"GET", ByteView(too_long)}}, 1));
  TEST_ASSERT_EQUAL(show_bytes(before), show_bytes(prepared.bytes().string_view()));
  prepared.patch("other");
  TEST_ASSERT_EQUAL(ByteView("*2\r\n$3\r\nGET\r\n$5\r\nother\r\n"), prepared.bytes());
}

TEST(test_template_should_hold_a_request_of_exactly_its_size) {
  // "*2\r\n$3\r\nGET\r\n$512\r\n" and "\r\n" stand around the argument.
  const std::size_t around = encoded_size({{"GET", ByteView(std::string(100, 'k'))}}) - 100;
  const std::string longest(template_size_max - around, 'k');
  RequestTemplate prepared;
  TEST_ASSERT_EQUAL(Status::ok, prepared.prepare({{"GET", ByteView(longest)}}, 1));
  TEST_ASSERT_EQUAL(template_size_max, prepared.bytes().size());
  const std::string too_long = longest + "k";
  TEST_ASSERT_EQUAL(Status::buffer_too_small, prepared.prepare({{"GET", ByteView(too_long)}}, 1));
}

TEST(test_template_should_be_empty_again_when_it_is_cleared) {
  RequestTemplate prepared;
  TEST_ASSERT_EQUAL(Status::ok, prepared.prepare({{"GET", "token"}}, 1));
  prepared.clear();
  TEST_ASSERT_FALSE(prepared.prepared());
  TEST_ASSERT_TRUE(prepared.bytes().empty());
}

TEST(test_template_should_patch_an_empty_argument) {
  RequestTemplate prepared;
  TEST_ASSERT_EQUAL(Status::ok, prepared.prepare({{"GET", ByteView()}}, 1));
  prepared.patch(ByteView());
  TEST_ASSERT_EQUAL(ByteView("*2\r\n$3\r\nGET\r\n$0\r\n\r\n"), prepared.bytes());
}

TEST(test_template_should_be_written_with_another_token_and_stay_as_it_is) {
  RequestTemplate prepared;
  const Argument arguments[] = {"SET", "key", "aaaa", "NX"};
  TEST_ASSERT_EQUAL(Status::ok, prepared.prepare(arguments, 2));
  const std::string before(prepared.bytes().string_view());
  char out[64];
  std::memset(out, '#', sizeof out);
  std::size_t size = 99;
  TEST_ASSERT_EQUAL(Status::buffer_too_small, prepared.write({out, before.size() - 1}, "bbbb", size));
  TEST_ASSERT_EQUAL(std::size_t(99), size);
  TEST_ASSERT_EQUAL('#', out[0]);
  TEST_ASSERT_EQUAL(Status::ok, prepared.write({out, before.size()}, "bbbb", size));
  TEST_ASSERT_EQUAL(before.size(), size);
  std::string expected = before;
  expected.replace(expected.find("aaaa"), 4, "bbbb");
  TEST_ASSERT_EQUAL(expected, std::string(out, size));
  TEST_ASSERT_EQUAL('#', out[size]);
  TEST_ASSERT_EQUAL(before, std::string(prepared.bytes().string_view()));
}

// A token of the usual size and an empty argument take ways of their own.
TEST(test_template_should_be_written_with_an_argument_of_any_size) {
  for (const std::size_t argument_size : {std::size_t{0}, std::size_t{1}, token_text_size, token_text_size + 1}) {
    RequestTemplate prepared;
    const std::string before(argument_size, 'a');
    const std::string after(argument_size, 'b');
    TEST_ASSERT_EQUAL(Status::ok, prepared.prepare({{"SET", "key", ByteView(before), "NX"}}, 2));
    const std::string expected = encode({{"SET", "key", ByteView(after), "NX"}});
    const MutableBytes out = guarded->last(expected.size());
    std::memset(out.data, canary, out.size);
    std::size_t size = 0;
    TEST_ASSERT_EQUAL(Status::ok, prepared.write(out, ByteView(after), size));
    TEST_ASSERT_EQUAL(show_bytes(expected), show_bytes({out.data, size}));
    TEST_ASSERT_EQUAL(ByteView(before), prepared.patched());
  }
}
