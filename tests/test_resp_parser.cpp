// SPDX-License-Identifier: MIT
//
// proto/resp2.md is the grammar; the theorems are S1 to S5 of proto/security.md.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "guard_page.hpp"
#include "heard.hpp"
#include "holdfast/proto/resp_parser.hpp"
#include "parse_record.hpp"
#include "printers.hpp"
#include "resp_oracle.hpp"
#include "unity_style.hpp"
#include "vectors.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// One guarded buffer for all of a test's parsers: a parser's buffer ends where the buffer ends.
std::unique_ptr<GuardPage> guarded;
RespValue nodes[elements_max];

struct GuardedParser : RespParser {
  explicit GuardedParser(std::size_t buffer_size = reply_size_max, std::size_t node_count = elements_max)
      : RespParser(guarded->last(buffer_size), nodes, node_count) {}
};

constexpr auto whole = [](std::size_t rest) { return rest; };
constexpr auto bytewise = [](std::size_t) { return std::size_t{1}; };

// Two pieces, cut at `place`.
auto cut_at(std::size_t place) {
  return [place, first = true](std::size_t rest) mutable {
    const std::size_t size = first && place != 0 && place < rest ? place : rest;
    first = false;
    return size;
  };
}

// What a vector expects: its values, how it ends, and why.
struct Expectation {
  ParseRecord record;
  std::string why;
};

Expectation expectation_of(const VectorCase& vector) {
  Expectation expected;
  for (const auto& [field, expression] : vector.fields) {
    if (field != "expect") continue;
    VectorReader reader(vector, expression);
    if (reader.take("need_more")) {
      expected.record.idle = false;
    } else if (reader.take("invalid")) {
      expected.record.ending = ParseResult::invalid;
      expected.why = reader.bytes();
    } else {
      expected.record.values.push_back(reader.reply());
    }
    reader.expect_end();
  }
  return expected;
}

void expect_whole(const Expectation& expected, const std::string& input) {
  GuardedParser parser;
  TEST_ASSERT_EQUAL(to_text(expected.record), to_text(record_parse(parser, input, whole)));
  TEST_ASSERT_EQUAL(expected.why, std::string(parser.error()));
}

// The input's last byte is the last byte before the guard: another reply stands before it in one receive.
void expect_flush_against_the_guard(const Expectation& expected, const std::string& input) {
  const std::string before = "+a reply in front\r\n";
  if (before.size() + input.size() > reply_size_max) return;
  GuardedParser parser(before.size() + input.size());
  TEST_ASSERT_EQUAL(before.size() + input.size(), parser.feed(ByteView(before + input)));
  RespValue first;
  TEST_ASSERT_EQUAL(ParseResult::value, parser.poll_value(first));
  ParseRecord record;
  drain(parser, record);
  close_record(parser, record);
  TEST_ASSERT_EQUAL(to_text(expected.record), to_text(record));
  TEST_ASSERT_EQUAL(expected.why, std::string(parser.error()));
}

void expect_bytewise(const Expectation& expected, const std::string& input) {
  GuardedParser parser;
  TEST_ASSERT_EQUAL(to_text(expected.record), to_text(record_parse(parser, input, bytewise)));
  TEST_ASSERT_EQUAL(expected.why, std::string(parser.error()));
}

// At every split point, in a buffer of the usual size and in the smallest that holds what is expected.
void expect_at_every_split(const Expectation& expected, const std::string& input) {
  const std::size_t smallest = std::clamp<std::size_t>(input.size() + 1, 16, reply_size_max);
  for (std::size_t place = 0; place <= input.size(); ++place) {
    for (const std::size_t buffer_size : {reply_size_max, smallest}) {
      GuardedParser parser(buffer_size);
      const ParseRecord record = record_parse(parser, input, cut_at(place));
      if (record == expected.record && expected.why == parser.error()) continue;
      TEST_MESSAGE("split at " << place << ", buffer of " << buffer_size);
      TEST_ASSERT_EQUAL(to_text(expected.record), to_text(record));
      TEST_ASSERT_EQUAL(expected.why, std::string(parser.error()));
    }
  }
}

void expect_of_the_oracle(const Expectation& expected, const std::string& input) {
  TEST_ASSERT_EQUAL(to_text(expected.record), to_text(record_oracle(input, OracleLimits{})));
}

void run_vectors(const std::string& file) {
  const std::vector<VectorCase> vectors = read_vectors(file);
  TEST_ASSERT_TRUE(vectors.size() >= 20);
  for (const VectorCase& vector : vectors) {
    TEST_MESSAGE(vector.place() << ": " << vector.field("case"));
    VectorReader reader(vector, vector.field("input"));
    const std::string input = reader.bytes();
    reader.expect_end();
    const Expectation expected = expectation_of(vector);
    expect_of_the_oracle(expected, input);
    expect_whole(expected, input);
    expect_flush_against_the_guard(expected, input);
    expect_bytewise(expected, input);
    expect_at_every_split(expected, input);
  }
}

RespValue sentinel() { return RespValue::make_integer(-5); }

}  // namespace

static void setUp() { guarded = std::make_unique<GuardPage>(65536); }
static void tearDown() { guarded.reset(); }

// ---- The golden vectors ------------------------------------------------------------------------------------------

TEST(test_parser_should_read_every_accepted_vector_however_it_is_cut) { run_vectors("replies.txt"); }

TEST(test_parser_should_refuse_every_malformed_vector_however_it_is_cut) { run_vectors("refused.txt"); }

TEST(test_parser_should_keep_its_limits_however_a_reply_is_cut) { run_vectors("limits.txt"); }

// What stands in the buffer behind the bytes received is the rest of the same reply, as after a receive into a buffer that was
// used before. A parser that reads one byte too many takes it for received.
TEST(test_parser_should_not_read_behind_what_was_received) {
  for (const char* const file : {"replies.txt", "limits.txt"}) {
    for (const VectorCase& vector : read_vectors(file)) {
      VectorReader reader(vector, vector.field("input"));
      const std::string input = reader.bytes();
      if (input.size() > 200) continue;
      for (std::size_t place = 0; place <= input.size(); ++place) {
        GuardedParser parser;
        std::memcpy(parser.receive_space().data, input.data(), input.size());
        parser.handle_received(place);
        ParseRecord record;
        drain(parser, record);
        ParseRecord first = record;
        close_record(parser, first);
        TEST_ASSERT_EQUAL(to_text(record_oracle(input.substr(0, place), OracleLimits{})), to_text(first));
        if (first.ending == ParseResult::invalid) continue;
        parser.handle_received(input.size() - place);
        drain(parser, record);
        close_record(parser, record);
        TEST_ASSERT_EQUAL(to_text(record_oracle(input, OracleLimits{})), to_text(record));
      }
    }
  }
}

// The short cut must refuse what the plain way refuses, where all of it, and something behind it, has come at once.
TEST(test_parser_should_refuse_at_once_what_it_refuses_byte_by_byte) {
  const std::string bulk_over = "$1025\r\n" + std::string(1025, 'b') + "\r\n";
  const std::string line_over = "+" + std::string(line_size_max + 1, 'l') + "\r\n";
  for (const std::string& input :
       {std::string("$\r\n\r\n+OK\r\n"), std::string("$\r\nab"), bulk_over, line_over, "-" + line_over.substr(1)}) {
    for (const auto& record : {record_parse(*std::make_unique<GuardedParser>(), input, whole),
                               record_parse(*std::make_unique<GuardedParser>(), input, bytewise)})
      TEST_ASSERT_EQUAL("invalid", to_text(record));
  }
  const std::string bulk_full = "$1024\r\n" + std::string(bulk_size_max, 'b') + "\r\n";
  const std::string line_full = "+" + std::string(line_size_max, 'l') + "\r\n";
  for (const std::string& input : {bulk_full, line_full}) {
    GuardedParser parser;
    TEST_ASSERT_EQUAL(std::size_t{1}, record_parse(parser, input, whole).values.size());
    TEST_ASSERT_EQUAL(std::size_t{1}, record_parse(parser, input, bytewise).values.size());
  }
}

TEST(test_parser_should_say_what_was_wrong_also_where_its_buffer_is_full) {
  GuardedParser many;
  TEST_ASSERT_EQUAL("invalid", to_text(record_parse(many, "*1025", whole)));
  TEST_ASSERT_EQUAL(std::string("an array has more elements than its limit"), std::string(many.error()));
  GuardedParser full(16);
  TEST_ASSERT_EQUAL("invalid", to_text(record_parse(full, "?0123456789abcde", whole)));
  TEST_ASSERT_EQUAL(std::string("an unknown type byte"), std::string(full.error()));
}

// What was scanned of one line says nothing of the next.
TEST(test_parser_should_read_a_line_behind_one_that_came_in_pieces) {
  for (const char* const next : {"+\r\n", "+b\r\n", "-\r\n"}) {
    const std::string input = std::string("+a\r\n") + next;
    GuardedParser parser;
    TEST_ASSERT_EQUAL(to_text(record_oracle(input, OracleLimits{})), to_text(record_parse(parser, input, bytewise)));
  }
}

// A driver may receive before it has polled all: what was polled makes room.
TEST(test_parser_should_give_the_room_of_what_was_polled_to_the_next_receive) {
  GuardedParser parser(16);
  TEST_ASSERT_EQUAL(std::size_t{10}, parser.feed("+a\r\n+b\r\n+c"));
  RespValue out;
  TEST_ASSERT_EQUAL(ParseResult::value, parser.poll_value(out));
  TEST_ASSERT_EQUAL(std::size_t{10}, parser.receive_space().size);
  TEST_ASSERT_EQUAL(std::size_t{10}, parser.feed("\r\n+d\r\n+e\r\n"));
  for (const char* const text : {"b", "c", "d", "e"}) {
    TEST_ASSERT_EQUAL(ParseResult::value, parser.poll_value(out));
    TEST_ASSERT_EQUAL(std::string(text), std::string(out.text().string_view()));
  }
  TEST_ASSERT_TRUE(parser.idle());
}

// The nodes of a reply that is whole are free for the next one; none is written behind the last.
TEST(test_parser_should_begin_each_reply_with_all_of_its_nodes) {
  for (const std::size_t node_count : {std::size_t{1}, std::size_t{3}}) {
    GuardedParser parser(reply_size_max, node_count);
    nodes[node_count] = sentinel();
    const std::string array = node_count == 1 ? "*0\r\n" : "*2\r\n:-1\r\n*0\r\n";
    const std::string input = array + ":-7\r\n" + array + array + "*-1\r\n";
    const ParseRecord record = record_parse(parser, input, whole);
    TEST_ASSERT_EQUAL(std::size_t{5}, record.values.size());
    TEST_ASSERT_TRUE(record.ending == ParseResult::need_more && record.idle);
    TEST_ASSERT_TRUE(nodes[node_count].is_integer(-5));
  }
}

// ---- Every short input -------------------------------------------------------------------------------------------

namespace {

// Each type byte, digits that matter, both line ends, the sign (which is a type, too), and three that mean nothing.
constexpr std::string_view alphabet = "+-:$*0129\r\na %";
static_assert(alphabet.size() == 14);

// Calls visit() with every string of `size` symbols behind `prefix`.
template <class Visit>
void for_every_string(const std::string& prefix, std::size_t size, Visit visit) {
  std::string text = prefix + std::string(size, alphabet[0]);
  std::vector<std::size_t> symbols(size, 0);
  for (;;) {
    visit(text);
    std::size_t place = size;
    while (place != 0 && symbols[place - 1] + 1 == alphabet.size()) {
      symbols[--place] = 0;
      text[prefix.size() + place] = alphabet[0];
    }
    if (place == 0) return;
    text[prefix.size() + place - 1] = alphabet[++symbols[place - 1]];
  }
}

// Compares parser and oracle, without a record on the way: most of the strings end at their first byte.
bool agrees(RespParser& parser, std::string_view input, std::size_t piece, const OracleLimits& limits) {
  parser.reset();
  std::string_view oracle_rest = input;
  std::string_view rest = input;
  for (;;) {
    RespValue out = sentinel();
    ParseResult result = parser.poll_value(out);
    while (result == ParseResult::need_more && !rest.empty()) {
      rest.remove_prefix(parser.feed(ByteView(rest.substr(0, piece))));
      result = parser.poll_value(out);
    }
    RespTree expected;
    std::size_t size = 0;
    const ParseResult oracle_result = RespOracle::read(oracle_rest, limits, expected, size);
    if (result != oracle_result) return false;
    if (result != ParseResult::value) return out.is_integer(-5) && (result == ParseResult::invalid || rest.empty());
    if (tree_of(out) != expected) return false;
    oracle_rest.remove_prefix(size);
  }
}

void expect_agreement(RespParser& parser, const std::string& input, std::size_t piece) {
  if (agrees(parser, input, piece, OracleLimits{})) return;
  GuardedParser again;
  TEST_MESSAGE(show_bytes(input) << " in pieces of " << piece);
  TEST_ASSERT_EQUAL(to_text(record_oracle(input, OracleLimits{})),
                    to_text(record_parse(again, input, [piece](std::size_t rest) { return std::min(piece, rest); })));
  TEST_ASSERT_TRUE(false);  // The records agree and the quick comparison does not: one of the two is wrong.
}

}  // namespace

TEST(test_parser_should_agree_with_the_oracle_on_all_strings_of_up_to_six_bytes) {
  GuardedParser parser;
  for (std::size_t size = 0; size <= 6; ++size)
    for_every_string("", size, [&](const std::string& input) { expect_agreement(parser, input, input.size() + 1); });
}

TEST(test_parser_should_agree_with_the_oracle_on_all_strings_of_up_to_five_bytes_fed_byte_by_byte) {
  GuardedParser parser;
  for (std::size_t size = 0; size <= 5; ++size)
    for_every_string("", size, [&](const std::string& input) { expect_agreement(parser, input, 1); });
}

// Six bytes hold no array with an element and no bulk string with two bytes, so the beginnings are given.
TEST(test_parser_should_agree_with_the_oracle_on_all_strings_of_up_to_four_bytes_behind_the_beginning_of_a_reply) {
  GuardedParser parser;
  for (const char* const prefix :
       {"$1\r\n", "$2\r\n", "*1\r\n", "*2\r\n", "*2\r\n:1\r\n", "*2\r\n*1\r\n", "*1\r\n*2\r\n$1\r\n", "*2\r\n$-1\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n", ":922337203685477580", ":-922337203685477580", "$102", "*15", "+OK\r\n"}) {
    for (std::size_t size = 0; size <= 4; ++size) {
      for_every_string(prefix, size, [&](const std::string& input) {
        expect_agreement(parser, input, input.size());
        expect_agreement(parser, input, 1);
      });
    }
  }
}

// ---- Limits that issue and paper promise -------------------------------------------------------------------------

TEST(test_parser_should_refuse_64_kib_without_a_line_end_whatever_the_pieces) {
  const std::string endless = "+" + std::string(65536, 'x');
  for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, std::size_t{1460}, endless.size()}) {
    GuardedParser parser;
    const ParseRecord record =
        record_parse(parser, endless, [piece](std::size_t rest) { return std::min(piece, rest); });
    TEST_ASSERT_EQUAL("invalid", to_text(record));
  }
}

TEST(test_parser_should_refuse_a_length_at_its_header_before_any_of_its_bytes_came) {
  for (const char* const header :
       {"$1048577", "$1048576", "$1025", "*1000001", "*1000000", "*160", "$2147483648", "*4294967295", "$9999999999"}) {
    TEST_MESSAGE(header);
    GuardedParser parser;
    TEST_ASSERT_EQUAL("invalid", to_text(record_parse(parser, header, bytewise)));
  }
}

TEST(test_parser_should_read_a_reply_that_fills_its_buffer_to_the_last_byte) {
  for (std::size_t size = 10; size <= 64; ++size) {
    const std::string reply = "$" + std::to_string(size) + "\r\n" + std::string(size, 'b') + "\r\n";
    const std::size_t buffer_size = reply.size();
    GuardedParser parser(buffer_size);
    const ParseRecord record = record_parse(parser, reply + reply + "+OK\r\n", whole);
    TEST_ASSERT_EQUAL(std::size_t{3}, record.values.size());
    TEST_ASSERT_EQUAL("simple \"OK\"", to_text(record.values[2]));
    GuardedParser smaller(buffer_size - 1);
    TEST_ASSERT_EQUAL("invalid", to_text(record_parse(smaller, reply, bytewise)));
  }
}

TEST(test_parser_should_count_elements_against_the_nodes_it_was_given) {
  const std::string four = "*3\r\n:1\r\n:2\r\n:3\r\n";
  GuardedParser enough(reply_size_max, 4);
  TEST_ASSERT_EQUAL("array [integer 1, integer 2, integer 3]; nothing more",
                    to_text(record_parse(enough, four, whole)));
  GuardedParser too_few(reply_size_max, 3);
  TEST_ASSERT_EQUAL("invalid", to_text(record_parse(too_few, four, whole)));
  GuardedParser one(reply_size_max, 1);
  TEST_ASSERT_EQUAL("array []; integer 1; null; invalid",
                    to_text(record_parse(one, "*0\r\n:1\r\n*-1\r\n*1\r\n", whole)));
}

// ---- Errors stick, outputs stay ----------------------------------------------------------------------------------

TEST(test_parser_should_stay_invalid_until_it_is_reset) {
  GuardedParser parser;
  TEST_ASSERT_EQUAL(std::size_t{7}, parser.feed(":x+OK\r\n"));
  for (int time = 0; time < 3; ++time) {
    RespValue out = sentinel();
    TEST_ASSERT_EQUAL(ParseResult::invalid, parser.poll_value(out));
    TEST_ASSERT_TRUE(out.is_integer(-5));
    TEST_ASSERT_EQUAL(ByteView("a number without digits"), ByteView(std::string_view(parser.error())));
    TEST_ASSERT_EQUAL(std::size_t{0}, parser.receive_space().size);
    TEST_ASSERT_EQUAL(std::size_t{0}, parser.feed("+OK\r\n"));
  }
  parser.reset();
  TEST_ASSERT_TRUE(parser.idle());
  TEST_ASSERT_EQUAL("simple \"OK\"; nothing more", to_text(record_parse(parser, "+OK\r\n", whole)));
}

TEST(test_parser_should_forget_half_a_reply_when_it_is_reset) {
  for (const char* const half : {"+O", "*2\r\n:1\r\n", "$5\r\nab", "*1\r\n*1\r\n", ":12", "$3\r\nfoo\r"}) {
    TEST_MESSAGE(half);
    GuardedParser parser;
    TEST_ASSERT_EQUAL("need_more", to_text(record_parse(parser, half, whole)));
    parser.reset();
    TEST_ASSERT_TRUE(parser.idle());
    TEST_ASSERT_EQUAL("integer 7; nothing more", to_text(record_parse(parser, ":7\r\n", bytewise)));
  }
}

TEST(test_parser_should_not_be_idle_while_it_holds_bytes_that_nobody_polled) {
  GuardedParser parser;
  TEST_ASSERT_TRUE(parser.idle());
  TEST_ASSERT_EQUAL(std::size_t{10}, parser.feed("+OK\r\n+OK\r\n"));
  TEST_ASSERT_FALSE(parser.idle());
  RespValue out;
  TEST_ASSERT_EQUAL(ParseResult::value, parser.poll_value(out));
  TEST_ASSERT_FALSE(parser.idle());
  TEST_ASSERT_EQUAL(ParseResult::value, parser.poll_value(out));
  TEST_ASSERT_TRUE(parser.idle());
}

// ---- In place ----------------------------------------------------------------------------------------------------

TEST(test_values_should_view_the_receive_buffer_and_own_nothing) {
  GuardedParser parser;
  const MutableBytes space = parser.receive_space();
  TEST_ASSERT_EQUAL(reply_size_max, space.size);
  std::memcpy(space.data, "*2\r\n$3\r\nfoo\r\n+b\r\n", 17);
  parser.handle_received(17);
  RespValue out;
  TEST_ASSERT_EQUAL(ParseResult::value, parser.poll_value(out));
  TEST_ASSERT_TRUE(out.at(0).text().data() == space.data + 8);
  TEST_ASSERT_TRUE(out.at(1).text().data() == space.data + 14);
}

TEST(test_finished_elements_should_move_along_when_an_unfinished_reply_is_compacted) {
  // The array stands behind a reply that is polled, so that receive_space() moves it to the front while its second
  // element is half there. The first one must be read where it went.
  for (std::size_t first = 0; first < 40; ++first) {
    const std::string in_front = "+" + std::string(first, 'f') + "\r\n";
    const std::string array = "*4\r\n$5\r\nhello\r\n*2\r\n+inner\r\n:7\r\n-E text\r\n$3\r\nend\r\n";
    for (std::size_t place = 1; place < array.size(); ++place) {
      GuardedParser parser(96);
      ParseRecord record;
      TEST_ASSERT_EQUAL(in_front.size() + place, parser.feed(ByteView(in_front + array.substr(0, place))));
      drain(parser, record);
      const MutableBytes space = parser.receive_space();
      std::memset(space.data, '#', space.size);  // What is behind the kept bytes belongs to the receiver.
      TEST_ASSERT_EQUAL(array.size() - place, parser.feed(ByteView(array.substr(place))));
      drain(parser, record);
      TEST_ASSERT_EQUAL(std::size_t{2}, record.values.size());
      TEST_ASSERT_EQUAL("array [bulk \"hello\", array [simple \"inner\", integer 7], error \"E text\", bulk \"end\"]",
                        to_text(record.values[1]));
    }
  }
}

TEST(test_parser_should_read_many_replies_of_odd_sizes_through_a_small_buffer) {
  // Sizes that share no divisor with the buffer's, so that replies begin and end at each of its places.
  std::string stream;
  ParseRecord expected;
  for (int turn = 0; turn < 400; ++turn) {
    const std::string text(static_cast<std::size_t>(turn * 7 % 31), static_cast<char>('a' + turn % 26));
    stream += "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    expected.values.push_back({RespKind::bulk, text, 0, {}});
    stream += "*3\r\n:" + std::to_string(turn) + "\r\n+" + text.substr(0, 9) + "\r\n*1\r\n$-1\r\n";
    expected.values.push_back({RespKind::array,
                               "",
                               0,
                               {{RespKind::integer, "", turn, {}},
                                {RespKind::simple, text.substr(0, 9), 0, {}},
                                {RespKind::array, "", 0, {{}}}}});
  }
  for (const std::size_t buffer_size : {std::size_t{37}, std::size_t{41}, std::size_t{64}, std::size_t{97}}) {
    for (std::size_t piece = 1; piece <= buffer_size + 3; ++piece) {
      TEST_MESSAGE("buffer of " << buffer_size << ", pieces of " << piece);
      GuardedParser parser(buffer_size);
      const ParseRecord record =
          record_parse(parser, stream, [piece](std::size_t rest) { return std::min(piece, rest); });
      TEST_ASSERT_TRUE(record == expected);
    }
  }
}

TEST(test_parser_should_read_the_same_when_replies_are_polled_one_a_feed) {
  // A driver may feed before it has polled all that is there.
  std::string stream;
  for (int turn = 0; turn < 50; ++turn) stream += "*2\r\n:" + std::to_string(turn) + "\r\n$4\r\nabcd\r\n";
  GuardedParser parser(64);
  std::string_view rest = stream;
  int seen = 0;
  while (seen < 50) {
    rest.remove_prefix(parser.feed(ByteView(rest.substr(0, 11))));
    RespValue out;
    if (parser.poll_value(out) != ParseResult::value) continue;
    TEST_ASSERT_EQUAL("array [integer " + std::to_string(seen) + ", bulk \"abcd\"]", to_text(tree_of(out)));
    ++seen;
  }
  TEST_ASSERT_TRUE(rest.empty());
  TEST_ASSERT_TRUE(parser.idle());
}

TEST(test_a_value_should_be_nothing_but_what_it_is) {
  const Heard line("+OK\r\n");
  TEST_ASSERT_TRUE(line.value.is_simple("OK"));
  for (const char* const other : {"", "O", "OX", "XK", "OK2"}) TEST_ASSERT_FALSE(line.value.is_simple(other));
  for (const char* const other : {"-OK\r\n", "$2\r\nOK\r\n", ":0\r\n", "$-1\r\n", "*0\r\n"}) {
    const Heard heard(other);
    TEST_ASSERT_FALSE(heard.value.is_simple("OK"));
    TEST_ASSERT_FALSE(heard.value.is_simple(""));
    TEST_ASSERT_EQUAL(0U, heard.value.count());
    TEST_ASSERT_EQUAL(std::string(other) == "$-1\r\n", heard.value.is_null());
    TEST_ASSERT_EQUAL(std::string(other) == ":0\r\n", heard.value.is_integer(0));
  }
  const Heard number(":7\r\n");
  TEST_ASSERT_TRUE(number.value.is_integer(7));
  TEST_ASSERT_FALSE(number.value.is_integer(-7));
  TEST_ASSERT_FALSE(RespValue().is_integer(0));
  TEST_ASSERT_TRUE(RespValue().is_null());
}
