// SPDX-License-Identifier: MIT
//
// A lock kind is a table: what to send for each operation, and what each reply means. One file in src/kinds fills one.
#pragma once

#include <chrono>
#include <cstdint>

#include "holdfast/core/announcement.hpp"
#include "holdfast/core/derived_name.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/core/session.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/proto/resp_value.hpp"
#include "holdfast/proto/script.hpp"

namespace holdfast {

class LockMachine;

// In which shape a request goes out.
enum class RequestForm : std::uint8_t {
  by_sha,   // EVALSHA, or the plain command where the kind has one.
  by_text,  // EVAL: cannot meet a NOSCRIPT.
  delex,    // The server's own compare-and-delete: Redis from 8.4,
  delifeq,  // Valkey from 9.0.
};

// What a reply means for the hold. Shapes that a kind does not list are `unexpected`, never a success.
enum class Verdict : std::uint8_t {
  granted,     // Acquired, renewed, released or taken back: what was asked is so.
  busy,        // Somebody else holds the lock.
  not_ours,    // The key is not ours, or not there.
  refused,     // The server refused to extend it, and a script that asks by pcall said so.
  unexpected,  // Default-deny.
};

// What many commands begin or end with.
inline constexpr EncodedArguments one_key("1");
inline constexpr EncodedArguments two_keys("2");

// One command on its way into a send buffer. What does not fit is said by finish().
class CommandLine {
 public:
  // Writes from the start of `space` on.
  explicit CommandLine(MutableBytes space) noexcept : writer_(space) {}
  CommandLine& add(ByteView bytes) noexcept {
    writer_.add(bytes);
    return *this;
  }
  CommandLine& add(std::int64_t integer) noexcept {
    writer_.add(integer);
    return *this;
  }
  template <std::size_t encoded_size>
  CommandLine& add(const EncodedArguments<encoded_size>& arguments) noexcept {
    writer_.add_encoded({arguments.bytes, encoded_size}, arguments.count);
    return *this;
  }
  CommandLine& add_token(const Token& token) noexcept { return add(token.bytes()); }
  // As CommandWriter's.
  [[nodiscard]] char* claim(std::size_t size, std::size_t count) noexcept { return writer_.claim(size, count); }
  // A name beside the key, as DerivedName's.
  CommandLine& add_derived(ByteView prefix, Key key) noexcept;
  // EVALSHA or, by text, EVAL of a script.
  CommandLine& add_script(const Script& script, RequestForm form) noexcept;

  // As CommandWriter's. REQUIRES: at most arguments_max arguments.
  [[nodiscard]] Status finish(std::size_t& size) noexcept {
    HOLDFAST_ASSERT(writer_.count() <= arguments_max);
    return writer_.finish(size);
  }

 private:
  CommandWriter writer_;
};

// One hold, as a request speaks of it.
struct HoldView {
  Key key;
  const Token* token = nullptr;
  std::chrono::milliseconds lease{};
  std::uint32_t count = 1;  // Of a step: how often it is held from then on.
  // Whose hold it is; nullptr: of a compensation, which may come after its machine.
  const LockMachine* machine = nullptr;
};

inline constexpr std::int64_t remaining_unknown = INT64_MIN;
inline constexpr std::uint8_t queue_place = 1;

// What a reply to an acquire says beside its verdict. Untouched where it does not.
struct LockFacts {
  std::int64_t remaining = remaining_unknown;  // Of the hold in the way, in milliseconds; -1: it has no TTL.
  std::uint64_t fence = 0;                     // Of the grant; 0: it has none.
  // Of a kind of several names: of the one in the way, as name_at() counts. Of a kind that queues: queue_place, or 0 where its
  // token is in no queue.
  std::uint8_t place = 0;
  Status refusal = Status::lock_busy;  // What a busy lock is told as.
};

// Where the token of an outermost acquisition comes from. Both are the driver's to draw.
enum class TokenSource : std::uint8_t {
  random,            // token_random_size fresh random bytes.
  client_ordinal,    // `uuid:ordinal`: the client's id, and an ordinal that it uses once.
  negative_ordinal,  // `uuid:-ordinal`, the same otherwise.
};

// PTTL of the key.
void ask_pttl(CommandLine& line, Key key) noexcept;

// Short, so that it fits where the tables have room anyway.
using KindLease = std::chrono::duration<std::uint32_t, std::milli>;

// All that there is to know of a kind. Machines and drivers go by these traits, never by which kind it is.
struct LockKind {
  const char* name;
  // Fills in the command for `operation`: acquire, renew, step (of a reentrant kind) or release. By text, a release and a
  // step must be right at any time after the request that they compensate: they touch nothing but this token's hold.
  void (*fill)(CommandLine& line, const LockKind& kind, Operation operation, RequestForm form,
               const HoldView& hold) noexcept;
  // Decodes a reply that is no error.
  Verdict (*decode)(const LockKind& kind, Operation operation, const RespValue& reply, LockFacts& facts) noexcept;
  // Renews many holds in one call: KEYS the locks, ARGV a token and a lease in milliseconds for each; the reply is an array of
  // 1 (renewed), 0 (not ours) or -1 (refused) for each. Of one hold alone, a refusal may come in the server's own words.
  // Of a kind of several names KEYS are the names of each, and ARGV has behind each lease how many they are.
  const Script* renew_batch;
  // How a release is announced, so that waiters are woken (push); nullptr: it is not, and they ask by themselves (poll).
  const Announcement* announcement;
  TokenSource token;
  bool native_release;   // May release by delex and delifeq.
  bool reentrant;        // Its holder may acquire again while it holds: a step tells the server how often it does.
  bool fenced;           // A grant comes with a fence.
  bool tells_remaining;  // A refusal says how long the hold in the way still has. Otherwise a waiter asks for it.
  // Who waits stands in a queue on the server: its token is the same from attempt to attempt, and who gives up leaves the queue
  // by a release. Between LockMachine::join_queue() and leave_queue(), whose argument() says so.
  bool queues = false;
  // Its holds may stay where they are used: see Linger. Who asks for such a hold recalls it, over the channel of its announcement.
  bool lingers = false;
  // Of a kind of several names, whose key never goes to a server: the name at `index`, empty behind the last one. nullptr:
  // the key is the name.
  ByteView (*name_at)(Key key, std::size_t index) noexcept = nullptr;
  // Asks how many milliseconds the hold in the way has left: an integer, -2 without a hold, -1 without an end, as of PTTL.
  void (*ask_remaining)(CommandLine& line, Key key) noexcept = ask_pttl;
  // The send buffer that its longest request takes, with the longest key.
  std::uint16_t request_size = transmit_size_max;
  // The longest lease that a hold of it may have.
  KindLease lease_max = std::chrono::duration_cast<KindLease>(holdfast::lease_max);
};

// A request with its script's text must find room in an empty send buffer, or it could never go out.
template <std::size_t script_size>
inline constexpr bool text_fits =
    script_size + key_size_max + derived_name_size_max + token_size_max + 256 < transmit_size_max;

}  // namespace holdfast
