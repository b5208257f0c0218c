// SPDX-License-Identifier: MIT
//
// Logbook is what a watcher knows of locks. It is fed with what single looks say and when they were taken, and tells what has
// changed between them:
//
//                      found                handed_over
//     (not known) ------------> held ------------------------> held
//                                |  ^
//        released, ran_out, ended|  |acquired
//                                v  |
//                               free ------> forgotten after free_kept
//
// What happens between two looks is not seen, but for what the server says by itself (handle_event()). So the end of a hold has
// three outcomes: it was gone before its lease was over (released, by its holder or by force); its lease ran out, with no renewal
// in sight; or that cannot be told (ended).
//
// It does no I/O and reads no clock.   Not thread-safe: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "holdfast/core/inquiry.hpp"
#include "holdfast/core/instant.hpp"
#include "lock_sight.hpp"

namespace holdfast::cli {

// Locks that are followed at once. More of them are counted.
inline constexpr std::size_t locks_max = 16'384;
// A lock that is free stays in the table for so long.
inline constexpr Duration free_kept = std::chrono::seconds(60);
// Hand-offs per second are those of the last seconds.
inline constexpr Duration rate_window = std::chrono::seconds(10);
// So many of them per lock are remembered: a watcher looks twenty times per second at the most.
inline constexpr std::size_t hand_offs_kept = 200;
// Changes that wait to be polled. More of them are counted.
inline constexpr std::size_t changes_max = 65'536;

enum class ChangeKind : std::uint8_t {
  found,        // It was held when all keys were looked at first.
  acquired,     // It was free, or shared, or not there before.
  handed_over,  // Another one has it, who got it before the lease of the first was over, or when that cannot be told.
  released,     // Gone before its lease was over.
  ran_out,      // Its lease ended, and no renewal had come: its holder has lost it.
  ended,        // Released or run out.
  stolen,       // A second holder where there can be one only, or the first one was written over.
  cut_short,    // It will end earlier than its holder was promised.
  waiting,      // Other ones wait, or another number of them.
  no_expiry,    // It has no TTL: if its holder goes, it stays for ever.
  no_lock,      // The key is there, and is none.
  free,         // Nobody holds it, when it is looked at first.
  silent,       // The server does not answer.
  answers,      // It does again.
};
[[nodiscard]] const char* to_string(ChangeKind kind) noexcept;

struct Change {
  ChangeKind kind = ChangeKind::found;
  Instant at{};        // When it was seen.
  std::string lock{};  // Of `silent` and `answers` empty.
  LockForm form = LockForm::free;
  std::string holder{};                   // Who it is about.
  std::string before{};                   // Who had it, or has it, too.
  Duration remaining = Duration::zero();  // Duration::max(): no TTL.
  Duration held = Duration::zero();       // Of a hold that is over, as far as it was seen.
  std::uint64_t renewals = 0;             // Of the same.
  std::uint64_t waiting = 0;
  std::vector<std::string> waiters{};  // Of `waiting`: the first of them.
  std::string text{};                  // Of `silent`: why.
  bool over = false;                   // Of `stolen`: the one before has it no more.
};

// One hold that is seen.
struct Hold {
  std::string holder{};
  Instant since{};                        // When it was seen first.
  Instant ends_from{};                    // Between these it ends if nobody renews it.
  Instant ends_until{};                   // Instant::max(): never.
  Duration remaining = Duration::zero();  // At the last look,
  Duration lease = Duration::zero();      // and the longest that was seen.
  std::uint64_t count = 1;
  std::uint64_t renewals = 0;
};

struct LockEntry {
  LockForm form = LockForm::free;  // Of a free lock: what it was, or free where that is not known.
  std::vector<Hold> holds{};       // Those that are told.
  std::uint64_t owners = 0;
  std::uint64_t permits = 0;
  std::uint64_t waiting = 0;
  std::vector<std::string> waiters{};
  std::uint64_t renewals = 0;    // Since it was free last, or in other hands.
  std::uint64_t hand_offs = 0;   // All that were seen.
  std::deque<Instant> recent{};  // The last ones.
  Instant seen{};                // When it was looked at last.
  bool no_expiry = false;
  bool two_holders = false;
  // What the server has said of the key since that look.
  bool was_set = false;
  bool was_deleted = false;
  bool has_expired = false;

  [[nodiscard]] bool held() const noexcept { return owners != 0; }
  [[nodiscard]] bool in_danger() const noexcept { return no_expiry || two_holders; }
};

class Logbook {
 public:
  explicit Logbook(Instant start) noexcept : start_(start) {}

  // A. Questions. Never change state.
  [[nodiscard]] const std::map<std::string, LockEntry>& locks() const noexcept { return locks_; }
  [[nodiscard]] double hand_offs_per_second(const LockEntry& entry, Instant now) const noexcept;
  // Of all locks.
  [[nodiscard]] double hand_offs_per_second(Instant now) const noexcept;
  // The next names in their order after this one, from the beginning where the end is reached: at most `count`, none twice.
  [[nodiscard]] std::vector<std::string> names_after(const std::string& name, std::size_t count) const;
  // Why the server does not answer; empty: it does.
  [[nodiscard]] const std::string& silence() const noexcept { return silence_; }
  [[nodiscard]] Instant silent_since() const noexcept { return silent_since_; }
  [[nodiscard]] std::uint64_t not_followed() const noexcept { return not_followed_; }
  [[nodiscard]] std::uint64_t changes_dropped() const noexcept { return changes_dropped_; }

  // B. Inputs. Instants never go back.
  // A look that was asked for, and answered, then: the server looked in between.
  void handle_sight(const LockSight& sight, Instant asked, Instant answered);
  // The server says that this has happened to the key: a keyspace event, such as `set`, `del` or `expired`. It tells the end of a
  // hold that the next look finds gone: written over, deleted, or run out.
  void handle_event(const std::string& name, const std::string& event);
  // The server does not answer, for this reason.
  void handle_silence(const std::string& why, Instant now);
  void handle_answer(Instant now);
  // All keys were looked at once more, and so many locks were beyond locks_max.
  void handle_sweep() noexcept;
  // Forgets what has been free for long.
  void handle_timeout(Instant now);

  // D. Outputs. After any of B, until it is false.
  [[nodiscard]] bool poll_change(Change& change);

 private:
  void tell(Change change);
  void end(const std::string& name, LockEntry& entry, const Hold& hold, Instant answered);
  void judge_holds(const LockSight& sight, LockEntry& entry, bool first, Instant asked, Instant answered);
  [[nodiscard]] static ChangeKind end_of(const LockEntry& entry, const Hold& hold, Instant answered) noexcept;

  Instant start_;
  std::map<std::string, LockEntry> locks_;
  std::deque<Change> changes_;
  std::deque<Instant> recent_;
  std::string silence_;
  Instant silent_since_;
  std::uint64_t not_followed_ = 0;
  std::uint64_t not_followed_now_ = 0;  // In the sweep under way.
  std::uint64_t changes_dropped_ = 0;
  bool swept_ = false;  // Once: what comes from then on was not there before.
};

}  // namespace holdfast::cli
