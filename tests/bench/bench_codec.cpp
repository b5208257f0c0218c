// SPDX-License-Identifier: MIT
//
// How fast is the codec? Parsing stands beside a throwaway pull parser (pull_parser.hpp) and hiredis, encoding beside
// the copy of a whole request and hiredis' redisFormatCommandArgv.
//
// Prints Google Benchmark's single figures first, then the figures that count: ratios of one run, as paired_rounds.hpp
// explains, in which `... again` is the A/A control. Writes codec_ratios.json and codec_ratios.svg.
//
//     bench_codec [--out DIR] [--seconds N] [--smoke] [Google Benchmark's options]
//
// How the contenders are fed: all of them find the reply's bytes where a receive would have put them. hiredis' reader
// copies them once more, as redisBufferRead() does. `without objects` is hiredis with functions of nullptr: it then
// checks and counts, and hands out nothing but the reply's type.
#include <benchmark/benchmark.h>
#include <hiredis/hiredis.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/proto/resp_parser.hpp"
#include "paired_rounds.hpp"
#include "pull_parser.hpp"
#include "report.hpp"
#include "scripts.hpp"

namespace {

using bench::Harness;
using bench::PairedRounds;
using std::string_view_literals::operator""sv;

void expect(bool condition, const char* what) {
  if (condition) return;
  (void)std::fprintf(stderr, "bench_codec: %s\n", what);
  std::exit(1);
}

// ---- What is compared --------------------------------------------------------------------------------------------

struct Subject {
  std::string name;
  PairedRounds::Run run;
};

struct Comparison {
  std::string name;
  std::string reference;
  bench::Bound bound;
};

struct Group {
  std::string name;
  std::vector<Subject> subjects;
  std::vector<Comparison> comparisons;
};

// ---- Parsing -----------------------------------------------------------------------------------------------------

struct ReaderDeleter {
  void operator()(redisReader* reader) const { redisReaderFree(reader); }
};
using Reader = std::unique_ptr<redisReader, ReaderDeleter>;

// A parser with its storage, as a session has it.
struct HoldfastParser {
  holdfast::RespParserStorage storage;
  holdfast::RespParser parser{{storage.buffer, sizeof storage.buffer}, storage.nodes, holdfast::elements_max};
};

// The server's bytes lie at the start of the parser's buffer already: the kernel put them there.
void parse_by_holdfast(HoldfastParser& holdfast_parser, std::size_t size, std::size_t count) {
  holdfast::RespParser& parser = holdfast_parser.parser;
  for (std::size_t turn = 0; turn < count; ++turn) {
    holdfast::MutableBytes space = parser.receive_space();
    bench::conceal(space.data);
    parser.handle_received(size);
    holdfast::RespValue value;
    const holdfast::ParseResult result = parser.poll_value(value);
    bench::consume(result);
    bench::consume(value);
    for (std::uint32_t index = 0; index < value.count(); ++index) bench::consume(value.at(index).text());
  }
}

void parse_by_pull_parser(const char* bytes, std::size_t size, std::size_t count) {
  for (std::size_t turn = 0; turn < count; ++turn) {
    const char* cursor = bytes;
    bench::conceal(cursor);
    const char* const end = cursor + size;
    reference::Value value;
    reference::Step step = reference::next(cursor, end, value);
    bench::consume(step);
    bench::consume(value);
    if (value.type != '*') continue;
    for (std::int64_t left = value.number; left > 0; --left) {
      reference::Value element;
      step = reference::next(cursor, end, element);
      bench::consume(step);
      bench::consume(element);
    }
  }
}

void parse_by_hiredis(redisReader* reader, std::string_view bytes, std::size_t count) {
  for (std::size_t turn = 0; turn < count; ++turn) {
    (void)redisReaderFeed(reader, bytes.data(), bytes.size());
    void* reply = nullptr;
    (void)redisReaderGetReply(reader, &reply);
    bench::consume(reply);
    if (reader->fn != nullptr) freeReplyObject(reply);
  }
}

Group parse_group(const std::string& name, std::string_view bytes) {
  auto ours = std::make_shared<HoldfastParser>();
  std::memcpy(ours->storage.buffer, bytes.data(), bytes.size());
  holdfast::RespValue value;
  ours->parser.handle_received(bytes.size());
  expect(ours->parser.poll_value(value) == holdfast::ParseResult::value && ours->parser.idle(), "a reply is refused");
  auto plain = std::make_shared<std::string>(bytes);
  const char* cursor = plain->data();
  reference::Value pulled;
  expect(reference::next(cursor, cursor + bytes.size(), pulled) == reference::Step::value, "a reply is refused");
  const std::shared_ptr<redisReader> reader = Reader(redisReaderCreate());
  const std::shared_ptr<redisReader> bare_reader = Reader(redisReaderCreateWithFunctions(nullptr));

  const PairedRounds::Run pull = [plain](std::size_t count) {
    parse_by_pull_parser(plain->data(), plain->size(), count);
  };
  return {"parse " + name,
          {{"pull parser", pull},
           {"pull parser again", pull},
           {"holdfast", [ours, size = bytes.size()](std::size_t count) { parse_by_holdfast(*ours, size, count); }},
           {"hiredis", [reader, plain](std::size_t count) { parse_by_hiredis(reader.get(), *plain, count); }},
           {"hiredis without objects",
            [bare_reader, plain](std::size_t count) { parse_by_hiredis(bare_reader.get(), *plain, count); }}},
          {{"pull parser again", "pull parser", {}},
           {"holdfast", "pull parser", bench::at_most(2.0)},
           {"hiredis", "holdfast", bench::at_least(4.5)},
           {"hiredis without objects", "holdfast", bench::at_least(2.0)}}};
}

// ---- Parsing byte by byte ----------------------------------------------------------------------------------------

// `count` bytes, one at a time, over and over the same replies.
void parse_bytewise(HoldfastParser& holdfast_parser, std::string_view bytes, std::size_t& at, std::size_t count) {
  holdfast::RespParser& parser = holdfast_parser.parser;
  for (std::size_t turn = 0; turn < count; ++turn) {
    const holdfast::MutableBytes space = parser.receive_space();
    *space.data = bytes[at];
    if (++at == bytes.size()) at = 0;
    parser.handle_received(1);
    holdfast::RespValue value;
    const holdfast::ParseResult result = parser.poll_value(value);
    bench::consume(result);
    bench::consume(value);
  }
}

void parse_bytewise_by_hiredis(redisReader* reader, std::string_view bytes, std::size_t& at, std::size_t count) {
  for (std::size_t turn = 0; turn < count; ++turn) {
    (void)redisReaderFeed(reader, bytes.data() + at, 1);
    if (++at == bytes.size()) at = 0;
    void* reply = nullptr;
    (void)redisReaderGetReply(reader, &reply);
    bench::consume(reply);
  }
}

Group bytewise_group(std::string_view bytes) {
  auto plain = std::make_shared<std::string>(bytes);
  const auto ours = [plain] {
    return [plain, at = std::make_shared<std::size_t>(0), parser = std::make_shared<HoldfastParser>()](
               std::size_t count) { parse_bytewise(*parser, *plain, *at, count); };
  };
  const std::shared_ptr<redisReader> bare_reader = Reader(redisReaderCreateWithFunctions(nullptr));
  return {"parse byte by byte, a byte",
          {{"holdfast", ours()},
           {"holdfast again", ours()},
           {"hiredis without objects",
            [bare_reader, plain, at = std::make_shared<std::size_t>(0)](std::size_t count) {
              parse_bytewise_by_hiredis(bare_reader.get(), *plain, *at, count);
            }}},
          {{"holdfast again", "holdfast", bench::at_most_nanoseconds(9)}, {"hiredis without objects", "holdfast", {}}}};
}

// ---- Encoding ----------------------------------------------------------------------------------------------------

constexpr std::size_t token_count = 16;  // A power of two.
constexpr std::size_t out_size = 1024;

// All that an encoder reads and writes, in less than a page: a load that waits for a store of other bytes, because
// their addresses agree in their lower twelve bits, would cost more than what is measured.
struct EncoderState {
  std::array<std::array<char, holdfast::token_text_size>, token_count> tokens{};
  std::array<char, out_size> prepared{};
  std::array<char, out_size> out{};

  EncoderState() {
    for (std::size_t index = 0; index < token_count; ++index) tokens[index].fill("0123456789abcdef"[index]);
  }
  [[nodiscard]] holdfast::ByteView token(std::size_t turn) const {
    const auto& token = tokens[turn % token_count];
    return {token.data(), token.size()};
  }
};
static_assert(sizeof(EncoderState) < 4096);

// `arguments` with a token's place at index `patched`; `write` turns one more of the same into bytes.
struct Command {
  std::string name;
  std::vector<std::string> arguments;
  std::size_t patched;
  std::size_t key;
  holdfast::Operation operation;  // Of a mutex.
};

std::vector<holdfast::Argument> argument_list(const Command& command) {
  std::vector<holdfast::Argument> arguments;
  for (const std::string& argument : command.arguments) arguments.emplace_back(holdfast::ByteView(argument));
  return arguments;
}

PairedRounds::Run template_memcpy(const Command& command) {
  auto state = std::make_shared<EncoderState>();
  const std::vector<holdfast::Argument> arguments = argument_list(command);
  std::size_t size = 0;
  expect(holdfast::encode_command({state->prepared.data(), out_size}, {arguments.data(), arguments.size()}, size) ==
             holdfast::Status::ok,
         "a command does not fit");
  const std::size_t offset = std::string_view(state->prepared.data(), size).find(command.arguments[command.patched]);
  return [state, offset, size](std::size_t count) {
    std::size_t whole = size;  // A key's size is not known to the compiler, so the request's is not either.
    for (std::size_t turn = 0; turn < count; ++turn) {
      bench::conceal(whole);
      char* const out = state->out.data();
      std::memcpy(out, state->prepared.data(), whole);
      std::memcpy(out + offset, state->token(turn).data(), holdfast::token_text_size);
      bench::consume(*state);
    }
  };
}

// As a lock does it: the kind writes its request to where it is sent from.
PairedRounds::Run kind_request(holdfast::Operation operation, const std::string& key) {
  struct State {
    EncoderState encoder;
    std::vector<holdfast::Token> tokens;
    std::string key;
  };
  auto state = std::make_shared<State>();
  state->key = key;
  for (std::size_t turn = 0; turn < token_count; ++turn) state->tokens.emplace_back(state->encoder.token(turn));
  return [state, operation](std::size_t count) {
    const holdfast::LockKind* kind = &holdfast::mutex_kind;
    std::size_t room = state->encoder.out.size();  // Neither is known to the compiler.
    for (std::size_t turn = 0; turn < count; ++turn) {
      bench::conceal(kind);
      bench::conceal(room);
      holdfast::CommandLine line({state->encoder.out.data(), room});
      kind->fill(line, *kind, operation, holdfast::RequestForm::by_sha,
                 {.key = holdfast::Key(holdfast::ByteView(state->key)),
                  .token = &state->tokens[turn % token_count],
                  .lease = std::chrono::milliseconds(30000)});
      std::size_t size = 0;
      const holdfast::Status status = line.finish(size);
      bench::consume(status);
      bench::consume(size);
      bench::consume(*state);
    }
  };
}

PairedRounds::Run whole_command(const Command& command) {
  auto state = std::make_shared<EncoderState>();
  auto texts = std::make_shared<Command>(command);
  auto arguments = std::make_shared<std::vector<holdfast::Argument>>(argument_list(*texts));
  return [state, texts, arguments](std::size_t count) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      (*arguments)[texts->patched] = state->token(turn);
      std::size_t size = 0;
      const holdfast::Status status = holdfast::encode_command({state->out.data(), state->out.size()},
                                                               {arguments->data(), arguments->size()}, size);
      bench::consume(status);
      bench::consume(size);
    }
  };
}

PairedRounds::Run hiredis_format(const Command& command) {
  auto state = std::make_shared<EncoderState>();
  auto texts = std::make_shared<Command>(command);
  auto pointers = std::make_shared<std::vector<const char*>>();
  auto sizes = std::make_shared<std::vector<std::size_t>>();
  for (const std::string& argument : texts->arguments) {
    pointers->push_back(argument.data());
    sizes->push_back(argument.size());
  }
  return [state, texts, pointers, sizes](std::size_t count) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      (*pointers)[texts->patched] = state->token(turn).data();
      char* request = nullptr;
      const int size =
          redisFormatCommandArgv(&request, static_cast<int>(pointers->size()), pointers->data(), sizes->data());
      bench::consume(size);
      bench::consume(request);
      redisFreeCommand(request);
    }
  };
}

Group encode_group(const Command& command) {
  return {"encode " + command.name,
          {{"template memcpy", template_memcpy(command)},
           {"template memcpy again", template_memcpy(command)},
           {"holdfast lock kind", kind_request(command.operation, command.arguments[command.key])},
           {"holdfast encode_command", whole_command(command)},
           {"hiredis", hiredis_format(command)}},
          {{"template memcpy again", "template memcpy", {}},
           {"holdfast lock kind", "template memcpy", {}},
           {"holdfast encode_command", "template memcpy", {}},
           {"hiredis", "holdfast lock kind", bench::at_least(4)}}};
}

// ---- The run -----------------------------------------------------------------------------------------------------

std::vector<Group> all_groups() {
  constexpr auto simple = "+OK\r\n"sv;
  constexpr auto integer = ":1\r\n"sv;
  constexpr auto bulk = "$32\r\n0123456789abcdef0123456789abcdef\r\n"sv;
  constexpr auto nil = "$-1\r\n"sv;
  constexpr auto message = "*3\r\n$7\r\nmessage\r\n$21\r\nholdfast:{orders/42}:\r\n$1\r\n0\r\n"sv;
  const std::string token(holdfast::token_text_size, 'f');
  const holdfast::Sha1Hex& sha = holdfast::scripts::mutex_release.sha;
  return {
      parse_group("simple (+OK)", simple),
      parse_group("integer (:1)", integer),
      parse_group("bulk (a token)", bulk),
      parse_group("nil ($-1)", nil),
      parse_group("pub/sub message", message),
      bytewise_group(std::string().append(simple).append(integer).append(bulk).append(nil).append(message)),
      encode_group({"SET", {"SET", "orders/42", token, "NX", "PX", "30000"}, 2, 1, holdfast::Operation::acquire}),
      encode_group({"release",
                    {"EVALSHA", {sha.digits, sizeof sha.digits}, "1", "orders/42", token},
                    4,
                    3,
                    holdfast::Operation::release}),
  };
}

// Google Benchmark's single figures of all subjects.
void run_singly(const std::vector<Group>& groups) {
  for (const Group& group : groups)
    for (const Subject& subject : group.subjects)
      benchmark::RegisterBenchmark((group.name + ": " + subject.name).c_str(), [&](benchmark::State& state) {
        constexpr benchmark::IterationCount batch = 1024;
        while (state.KeepRunningBatch(batch)) subject.run(batch);
      })->MinTime(0.1);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}

void compare(Harness& harness, const std::vector<Group>& groups) {
  const std::chrono::nanoseconds share =
      harness.smoke() ? std::chrono::milliseconds(20) : harness.effort(groups.size(), 0, 0).share;
  for (const Group& group : groups) {
    PairedRounds rounds(9, 1, 1);
    for (const Subject& subject : group.subjects) rounds.add(subject.name, subject.run);
    rounds.calibrate(std::chrono::microseconds(20));
    rounds.run(share, 3);
    for (const Comparison& comparison : group.comparisons)
      harness.report().add(group.name, rounds, comparison.name, comparison.reference, comparison.bound);
    harness.print_new_rows();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_codec",
      .purpose = "Measures the codec beside a throwaway parser, a copy of bytes, and hiredis.",
      .title = "holdfast codec: ratios of one run",
      .files = "codec_ratios",
  });
  harness.add_seconds(16, "how long, all in all, about");
  harness.add_output();
  harness.options().take(argc, argv);  // Google Benchmark gets the rest, --help too.
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;

  const std::vector<Group> groups = all_groups();
  if (!harness.smoke()) run_singly(groups);
  return harness.run([&] { compare(harness, groups); });
}
