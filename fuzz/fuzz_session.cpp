// SPDX-License-Identifier: MIT
//
// Theorem: whatever a server sends, in whatever pieces, and however the connection ends:
//   1. A request that is reported as answered is given the reply that stands at its own place in the stream, and only
//      after its last byte has been sent. (S9)
//   2. Every request is reported exactly once, an abandoned one never; a posted one, which is a compensation from the
//      start, at most once. (S9)
//   3. What was given up after bytes of it had been sent is compensated before any later request is sent, on this
//      connection or the next; a compensation that was not answered goes out again, with its own key and token. (S11)
//   4. A failed or closed session sends nothing, reads nothing and asks for no timer; an open one does not spin. (S10)
//   5. No byte of what may grant, extend or tell leaves unless the driver has looked at its socket since it was submitted,
//      since something was received, and since anything was sent. (S18)
//   6. What Session, Compensations and Handshake say is always so, is so after every step. (S9, S11)
// No assertion of the library fails. The names are those of proto/security.md.
//
// Input: a program. Each step is a letter and a parameter, a digit or any byte:
//   c    connect            t    look, transmit all      q n  submit; n: requester, compensated, posted, native, count
//   k    close              T n  the same, n + 1 bytes   g n  give up requester n      a n  abandon requester n
//   l    look               s    transmit without a look
//   w    judge deadlines    + n  time passes             m n  compensate out of the blue, by the count n
//   O    "+OK"              o    an integer reply        u    nil                      i n  an identity
//   e n  an error reply     h n  a whole handshake, sent and answered, of identity n
//   b n  the next n bytes of the input, raw              F    the driver fails it      Z    forget all, as after a fork
// Spaces and line ends between steps are nothing.
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/core/session.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "resp_oracle.hpp"
#include "resp_tree.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr std::size_t steps_max = 500;
constexpr std::size_t requester_count = 3;
constexpr std::size_t key_sizes[] = {1, 40, key_size_max};

// One command as the server sees it.
struct Command {
  enum class Kind : std::uint8_t { handshake, request, compensation } kind = Kind::handshake;
  std::uint32_t number = 0;  // Of the request, or of the request that is compensated.
};

// One request as its requester sees it.
struct Asked {
  std::size_t requester = 0;
  bool compensated = false;
  bool posted = false;
  bool native = false;
  bool reported = false;
  bool abandoned = false;
  std::string key;
  Token token;
  Compensation compensation;  // Views the key and the token: all stay where they are.
};

class World {
 public:
  World() : session_({.user = "u", .password = "p", .client_name = "n", .database = 1}, buffers_.storage()) {}

  void run(std::string_view program) {
    rest_ = program;
    for (std::size_t step = 0; step < steps_max && !rest_.empty(); ++step) {
      const char letter = next();
      if (letter == ' ' || letter == '\n') continue;
      const auto raw = static_cast<std::uint8_t>(next());
      this->step(letter, raw >= '0' && raw <= '9' ? static_cast<std::size_t>(raw - '0') : raw);
      check();
    }
    close();
    settle();
    for (const auto& [number, asked] : asked_)
      HOLDFAST_THEOREM(asked.reported != asked.abandoned || asked.posted, trace_ + std::to_string(number));
  }

 private:
  // One more connection: what is owed goes out on it.
  void settle() {
    connect();
    transmit(SIZE_MAX);
    receive(handshake(0));
    HOLDFAST_THEOREM(session_.ready(), trace_);
    transmit(SIZE_MAX);
    HOLDFAST_THEOREM(owed_.empty(), trace_ + std::to_string(owed_.empty() ? 0 : owed_.begin()->first));
    close();
  }

  char next() { return next_byte(rest_); }

  void step(char letter, std::size_t n) {
    static constexpr char letters[] = "ckwotTuqeigab+mFZOhls";
    letter = letter_of(letter, letters);
    trace_ += letter + std::to_string(n) + " ";
    switch (letter) {
      case 'c': connect(); break;
      case 'k': close(); break;
      case 'w': judge(); break;
      case 't': transmit(SIZE_MAX); break;
      case 'T': transmit(n + 1); break;
      case 'l': look(); break;
      case 's': transmit_some(SIZE_MAX); break;
      case '+': now_ = now_ + duration(n); break;
      case 'q': submit(n); break;
      case 'g':
        give_up_marks(n % requester_count);
        session_.give_up(&requesters_[n % requester_count], Status::cancelled, now_);
        break;
      case 'a': abandon(n % requester_count); break;
      case 'm': compensate(n); break;
      case 'o': receive(":" + std::to_string(values_.size()) + "\r\n"); break;
      case 'u': receive("$-1\r\n"); break;
      case 'O': receive("+OK\r\n"); break;
      case 'h':
        connect();
        transmit(SIZE_MAX);
        receive(handshake(n));
        break;
      case 'e': receive("-" + std::string(error(n)) + "\r\n"); break;
      case 'i': receive(identity(n)); break;
      case 'b': {
        const std::string bytes(rest_.substr(0, n));
        rest_.remove_prefix(bytes.size());
        trace_ += show_bytes(bytes) + " ";
        receive(bytes);
        break;
      }
      case 'F': session_.fail(Status::protocol_error, "the driver's doubt"); break;
      case 'Z': forget(); break;
    }
    poll();
  }

  static Duration duration(std::size_t n) {
    static constexpr Duration durations[] = {1ms, 10ms, 100ms, 500ms, 1s, 2s, 3s, 5s, 10s, 60s};
    return durations[n % 10];
  }
  static const char* error(std::size_t n) {
    static const char* const errors[] = {"LOADING Redis is loading the dataset in memory",
                                         "ERR unknown command 'DELEX', with args beginning with: 'k' ",
                                         "NOPERM this user has no permissions",
                                         "ERR max number of clients reached",
                                         "OOM command not allowed when used memory > 'maxmemory'.",
                                         "WRONGPASS invalid username-password pair or user is disabled.",
                                         "NOSCRIPT No matching script. Please use EVAL.",
                                         "ERR",
                                         "READONLY You can't write against a read only replica.",
                                         "BUSY Redis is busy running a script."};
    return errors[n % 10];
  }
  static std::string handshake(std::size_t n) { return "+OK\r\n+OK\r\n+OK\r\n:7\r\n" + identity(n); }
  static std::string identity(std::size_t n) {
    const std::string run_id(40, static_cast<char>('a' + n % 2));
    static const char* const versions[] = {"$6\r\n7.0.15\r\n$0\r\n\r\n", "$5\r\n8.4.0\r\n$0\r\n\r\n",
                                           "$5\r\n7.2.4\r\n$5\r\n9.0.0\r\n", "$3\r\nx.y\r\n$3\r\n...\r\n"};
    return "*6\r\n$40\r\n" + run_id + "\r\n$2\r\n99\r\n" + versions[n / 2 % 4] + "$40\r\n" + run_id +
           "\r\n$8\r\n-1master\r\n";
  }

  // ---- The driver

  void connect() {
    if (session_.state() != SessionState::closed) return;
    commands_.clear();
    sent_bytes_.clear();
    received_.clear();
    values_.clear();
    answered_ = 0;
    session_.handle_connected(now_, now_ + connect_timeout_default);
  }
  void close() {
    if (session_.state() == SessionState::closed) return;
    // Compensations without an answer are owed again; so is what was asked, sent and not answered.
    for (std::size_t index = answered_; index < commands_.size(); ++index) {
      const Command& command = commands_[index];
      if (command.kind == Command::Kind::compensation) owe(command.number);
      if (command.kind == Command::Kind::request && asked_[command.number].compensated) owe(command.number);
    }
    if (begun_ != 0 && asked_[begun_].compensated) owe(begun_);
    begun_ = 0;
    // What was posted is owed also where nothing of it was sent.
    for (const std::uint32_t number : posted_)
      if (!answered(number)) owe(number);
    posted_.clear();
    session_.handle_closed();
    poll();
  }
  void judge() {
    // Whose deadline passes is the session's business; what it reports is owed from then on.
    session_.handle_timeout(now_);
    poll();
    if (session_.state() != SessionState::ready && session_.state() != SessionState::handshaking) return;
    (void)session_.poll_transmit(now_);
    if (session_.unsent()) return;
    HOLDFAST_THEOREM(session_.poll_timeout() > now_, trace_);
  }
  void transmit(std::size_t limit) {
    while (limit != 0) {
      if (session_.wants_look()) look();
      const std::size_t sent = transmit_some(limit);
      if (sent == 0) return;
      limit -= sent;
    }
  }
  void look() {
    session_.handle_drained();
    looked_ = true;
  }
  std::size_t transmit_some(std::size_t limit) {
    const ByteView all = session_.poll_transmit(now_);
    const ByteView bytes = all.slice(0, limit);
    sent_bytes_.append(bytes.data(), bytes.size());
    if (!bytes.empty()) read_commands(all.slice(bytes.size(), all.size() - bytes.size()));
    looked_ = false;
    session_.handle_transmitted(bytes.size());
    return bytes.size();
  }
  // One byte at a time, so that what the session does belongs to one reply. That pieces do not matter is another
  // target's theorem.
  void receive(const std::string& bytes) {
    for (const char byte : bytes) {
      const MutableBytes space = session_.receive_space();
      if (session_.state() == SessionState::closed || session_.state() == SessionState::failed) {
        HOLDFAST_THEOREM(space.size == 0, trace_);
        return;
      }
      HOLDFAST_THEOREM(space.size != 0, trace_);
      *space.data = byte;
      received_ += byte;
      RespTree value;
      std::size_t size = 0;
      const bool whole = RespOracle::read(received_, OracleLimits{}, value, size) == ParseResult::value;
      looked_ = false;
      if (whole) {
        values_.push_back(value);
        received_.clear();
      }
      session_.handle_received(1, now_);
      poll();
      if (whole) HOLDFAST_THEOREM(session_.invariants(), trace_);
      if (whole && session_.state() != SessionState::failed) settle_answer();
    }
  }

  void submit(std::size_t n) {
    Asked asked;
    asked.requester = n % requester_count;
    asked.compensated = n / 3 % 2 == 1;
    asked.posted = asked.compensated && n / 6 % 2 == 1;
    asked.native = asked.compensated && n / 12 % 2 == 1;
    const Session::Place place = session_.open(asked.compensated);
    if (place.request == nullptr) return;
    HOLDFAST_THEOREM(session_.ready(), trace_);
    const std::uint32_t number = ++numbers_;
    std::size_t size = 0;
    if (encode_command(place.space, {{"ECHO", Argument(std::int64_t{number})}}, size) != Status::ok) return;
    asked.token = token_of(number);
    Asked& kept = asked_[number] = asked;
    // What is posted is a release.
    kept.key = key_of(number);
    kept.compensation = compensation_of(kept.key, kept.token, asked.posted ? 0 : n / 24);
    Request& request = *place.request;
    request = Request();
    request.tag = {&requesters_[asked.requester], number, asked.posted ? Operation::release : Operation::acquire};
    request.deadline = n % 5 == 0 ? Instant::max() : now_ + request_timeout_default;
    request.repeatable = asked.native;
    request.posted = asked.posted;
    if (asked.compensated) request.compensation = &kept.compensation;
    session_.commit(request, size, now_);
    if (!asked.posted) looked_ = false;
    if (asked.posted) posted_.insert(number);
  }
  static Token token_of(std::uint32_t number) { return Token(ByteView("token" + std::to_string(number))); }

  static std::string key_of(std::uint32_t number) {
    return std::string(key_sizes[number % 3], static_cast<char>('a' + number % 26));
  }
  static Compensation compensation_of(const std::string& key, const Token& token, std::size_t count) {
    return {count == 0 ? &mutex_kind : &reentrant_kind, Key(ByteView(key)), &token, static_cast<std::uint32_t>(count),
            30000};
  }
  void compensate(std::size_t count) {
    const std::uint32_t number = ++numbers_;
    const ReplyTag tag = {nullptr, number, Operation::compensate};
    const Token token = token_of(number);
    if (session_.compensate(tag, compensation_of(key_of(number), token, count)) == Status::ok) owe(number);
  }
  void forget() {
    session_.forget();
    asked_.clear();
    owed_.clear();
    commands_.clear();
    posted_.clear();
    begun_ = 0;
  }

  // ---- What is owed

  // From now on no request that is submitted later may be sent before this one's compensation.
  void owe(std::uint32_t number) { owed_.insert({number, numbers_}); }

  bool sent(std::uint32_t number) const {
    if (begun_ == number) return true;
    for (const Command& command : commands_)
      if (command.kind == Command::Kind::request && command.number == number) return true;
    return false;
  }
  bool answered(std::uint32_t number) const {
    for (std::size_t index = 0; index < answered_; ++index)
      if (commands_[index].kind == Command::Kind::request && commands_[index].number == number) return true;
    return false;
  }
  void give_up_marks(std::size_t requester) {
    if (session_.state() == SessionState::closed) return;
    for (const auto& [number, asked] : asked_) {
      if (asked.requester != requester || asked.reported || asked.abandoned) continue;
      if (asked.compensated && !asked.posted && sent(number)) owe(number);
    }
  }
  void abandon(std::size_t requester) {
    for (auto& [number, asked] : asked_) {
      if (asked.requester != requester || asked.reported || asked.abandoned) continue;
      asked.abandoned = true;
      // What was posted goes on as its own compensation.
      if (asked.compensated && !asked.posted && sent(number)) owe(number);
    }
    session_.abandon(&requesters_[requester], now_);
  }

  // Reads what the server has got of whole commands, and which request it has got the beginning of.
  void read_commands(ByteView unsent) {
    const OracleLimits wide = {.bulk = 1U << 20, .reply = 1U << 20};
    for (;;) {
      RespTree request;
      std::size_t size = 0;
      const ParseResult result = RespOracle::read(sent_bytes_, wide, request, size);
      HOLDFAST_THEOREM(result != ParseResult::invalid, trace_ + show_bytes(sent_bytes_));
      if (result == ParseResult::need_more) break;
      sent_bytes_.erase(0, size);
      Command command;
      if (request.items[0].text == "ECHO") {
        command = {Command::Kind::request, static_cast<std::uint32_t>(std::stoul(request.items[1].text))};
        HOLDFAST_THEOREM(looked_ || asked_[command.number].posted, trace_ + "sent without a look");
        // Theorem 3: nothing that it was submitted behind is still owed.
        for (const auto& [owed, since] : owed_)
          HOLDFAST_THEOREM(command.number <= since, trace_ + "owed " + std::to_string(owed));
      } else if (request.items[0].text == "EVAL" && request.items.size() >= 5) {
        // A release, or a step with the count.
        HOLDFAST_THEOREM(request.items.size() == 5 || (request.items.size() == 7 && request.items[5].text != "0"),
                         trace_);
        const std::string& token = request.items[4].text;
        command = {Command::Kind::compensation, static_cast<std::uint32_t>(std::stoul(token.substr(5)))};
        HOLDFAST_THEOREM(request.items[3].text == key_of(command.number), trace_);
        owed_.erase(command.number);
      }
      commands_.push_back(command);
    }
    begun_ = 0;
    if (sent_bytes_.empty()) return;
    // What has begun is told by what is still to be sent of it.
    RespTree begun;
    std::size_t size = 0;
    const std::string whole = sent_bytes_ + std::string(unsent.string_view());
    HOLDFAST_THEOREM(RespOracle::read(whole, wide, begun, size) == ParseResult::value, trace_ + show_bytes(whole));
    if (begun.items[0].text == "ECHO") begun_ = static_cast<std::uint32_t>(std::stoul(begun.items[1].text));
    HOLDFAST_THEOREM(begun_ == 0 || looked_ || asked_[begun_].posted, trace_ + "begun without a look");
  }

  // The newest value has been taken by the command at its place.
  void settle_answer() {
    const std::size_t index = values_.size() - 1;
    if (session_.state() == SessionState::closed) return;
    HOLDFAST_THEOREM(index < commands_.size(), trace_ + "a reply that nobody asked for was taken");
    answered_ = values_.size();
    const Command& command = commands_[index];
    if (command.kind != Command::Kind::request) return;
    // A native delete that was refused is repeated as a script, at once where it was posted.
    const Asked& asked = asked_[command.number];
    if (asked.posted && asked.native && values_[index].kind == RespKind::error) owe(command.number);
  }

  void poll() {
    Reply reply;
    while (session_.poll_reply(reply, now_)) {
      const std::uint32_t number = reply.tag.generation;
      if (reply.tag.operation == Operation::compensate) continue;
      Asked& asked = asked_[number];
      HOLDFAST_THEOREM(reply.tag.requester == &requesters_[asked.requester], trace_);
      HOLDFAST_THEOREM(!asked.reported && !asked.abandoned, trace_ + std::to_string(number));
      asked.reported = true;
      switch (reply.outcome) {
        case Status::timed_out:
        case Status::cancelled:
          if (asked.compensated && sent(number) && !answered(number)) owe(number);
          HOLDFAST_THEOREM(!reply.nothing_ran, trace_);
          break;
        case Status::transport_closed: HOLDFAST_THEOREM(!reply.nothing_ran, trace_); break;
        case Status::not_connected:
          HOLDFAST_THEOREM(reply.nothing_ran && !sent(number), trace_ + std::to_string(number));
          break;
        default: {
          // Theorem 1.
          const std::size_t index = values_.size() - 1;
          HOLDFAST_THEOREM(index < commands_.size(), trace_ + std::to_string(number));
          HOLDFAST_THEOREM(commands_[index].kind == Command::Kind::request && commands_[index].number == number,
                           trace_ + std::to_string(number));
          HOLDFAST_THEOREM(tree_of(reply.value) == values_[index], trace_);
          HOLDFAST_THEOREM((reply.outcome == Status::ok) == (values_[index].kind != RespKind::error), trace_);
        }
      }
    }
  }

  void check() {
    HOLDFAST_THEOREM(session_.invariants(), trace_);
    const SessionState state = session_.state();
    HOLDFAST_THEOREM(session_.in_flight() <= in_flight_max, trace_);
    HOLDFAST_THEOREM(session_.compensations_pending() <= compensations_max, trace_);
    HOLDFAST_THEOREM(
        (session_.failure() == Status::ok) == (state == SessionState::ready || state == SessionState::handshaking),
        trace_);
    if (state == SessionState::closed || state == SessionState::failed) {
      HOLDFAST_THEOREM(session_.poll_transmit(now_).empty(), trace_);
      HOLDFAST_THEOREM(session_.receive_space().size == 0, trace_);
      HOLDFAST_THEOREM(session_.poll_timeout() == Instant::max(), trace_);
      HOLDFAST_THEOREM(session_.open(false).request == nullptr, trace_);
    }
    if (state == SessionState::closed) HOLDFAST_THEOREM(session_.in_flight() == 0, trace_);
  }

  SessionBuffers buffers_;
  Session session_;
  Instant now_ = Instant::from_nanoseconds(1'000'000'000'000);
  int requesters_[requester_count] = {};
  std::string_view rest_;
  std::uint32_t numbers_ = 0;
  std::map<std::uint32_t, Asked> asked_;
  std::map<std::uint32_t, std::uint32_t> owed_;  // And the newest request when it became so.
  // Of this connection.
  std::string sent_bytes_;   // The beginning of a command.
  std::uint32_t begun_ = 0;  // The request whose beginning that is; 0: none.
  std::vector<Command> commands_;
  std::set<std::uint32_t> posted_;
  std::string received_;
  std::vector<RespTree> values_;
  std::size_t answered_ = 0;
  bool looked_ = false;  // And nothing has happened since.
  std::string trace_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World().run({reinterpret_cast<const char*>(data), size});
  return 0;
}
