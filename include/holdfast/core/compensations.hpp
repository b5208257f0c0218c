// SPDX-License-Identifier: MIT
//
// Compensations are what one session has to take back: requests that may have run, and whose replies nobody will hear.
// Each is kept until the server has confirmed it, across connections. A slot is one of them, and is in one state:
//
//     free        -> waiting     keep()
//     waiting     -> in_flight   handle_sent()
//     in_flight   -> free        confirmed, or refused for good
//                 -> deferred    refused for the moment
//                 -> waiting     its connection is gone, or it went by name and that was refused
//                 -> superseded  something newer speaks for its hold
//     deferred    -> waiting     its time has come
//     superseded  -> free        answered, or its connection is gone
//
// What waits or is deferred is freed where something newer speaks for its hold: each hold has one in force at most.
// It knows no queue and no transmit buffer: Session asks for the next one to send, and tells what came of it.
//
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class CommandLine;
struct LockKind;

// A step changes how often a reentrant lock is held, up or down, by the absolute number.
enum class Operation : std::uint8_t { query, acquire, renew, step, release, compensate };

// What only lets go is sent without a look at the socket: whatever is taken for its answer, nobody holds the lock then.
[[nodiscard]] constexpr bool lets_go(Operation operation) noexcept { return operation >= Operation::release; }

// Whom a reply is for. The session hands it back and looks at nothing but `requester`'s identity.
struct ReplyTag {
  void* requester = nullptr;     // Its owner's own pointer; nullptr: nobody wants the reply.
  std::uint32_t generation = 0;  // The hold's generation when the request was made.
  Operation operation = Operation::query;
};

// How to take back what a request may have done: the server is told how often this token holds its lock, which is not
// at all, or as often as before. It goes as EVAL with its text, so that no NOSCRIPT can strand it, and creates nothing.
struct Compensation {
  const LockKind* kind = nullptr;
  Key key;
  const Token* token = nullptr;
  std::uint32_t count = 0;               // 0: a compare-and-delete.
  std::uint32_t lease_milliseconds = 0;  // What a count above 0 may extend the lease to.
};

class Compensations {
 public:
  enum class State : std::uint8_t {
    free,
    waiting,     // For its turn, or for room: nothing that is asked for overtakes it.
    deferred,    // For its next attempt, while the server refuses it. Others need not wait for that.
    in_flight,   // For its reply.
    superseded,  // In flight still, and not to be repeated: something newer speaks for its hold.
  };
  // Storage only; the members are the compensations' business. A copy of the key stands among those of all.
  struct Slot {
    const LockKind* kind;
    void* requester;     // nullptr: nobody wants to hear of the outcome.
    Instant not_before;  // Of a deferred one.
    std::uint32_t generation;
    std::uint32_t count;
    std::uint32_t lease_milliseconds;
    std::uint32_t key_begin;
    std::uint16_t key_size;
    std::uint8_t attempts;
    State state;
    Token token;

    [[nodiscard]] ReplyTag tag() const noexcept { return {requester, generation, Operation::compensate}; }
    // A request in flight carries it.
    [[nodiscard]] bool carried() const noexcept { return state == State::in_flight || state == State::superseded; }
  };

  static_assert(sizeof(Slot) <= 112, "promised: a compensation without its key");

  // The storage need not be initialised.
  Compensations(Slot* slots, std::size_t slot_count, MutableBytes keys) noexcept
      : slot_count_(static_cast<std::uint32_t>(slot_count)), slots_(slots), keys_(keys) {
    for (std::size_t index = 0; index < slot_count; ++index) slots[index].state = State::free;
  }
  Compensations(const Compensations&) = delete;
  Compensations& operator=(const Compensations&) = delete;

  // A. Questions.
  // Those that have not been confirmed yet.
  [[nodiscard]] std::uint32_t pending() const noexcept { return kept_; }
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return kept_ - waiting_ - deferred_; }
  [[nodiscard]] bool waiting() const noexcept { return waiting_ != 0; }
  // A request in flight carries one whose outcome this one is to hear.
  [[nodiscard]] bool carries_for(const void* requester) const noexcept;
  // Whether poll_transmit() may have something, now or later.
  [[nodiscard]] bool unsent() const noexcept { return waiting_ + deferred_ != 0; }
  [[nodiscard]] std::uint32_t reserved() const noexcept { return reserved_; }
  [[nodiscard]] std::uint32_t dropped() const noexcept { return dropped_; }
  // Whether one more may be reserved or kept, however long its key: beside those that are kept or reserved.
  [[nodiscard]] bool has_room() const noexcept {
    return kept_ + reserved_ < slot_count_ && kept_bytes_ + (reserved_ + 1) * key_size_max <= keys_.size;
  }
  // Its lock's name.
  [[nodiscard]] ByteView key_of(const Slot& slot) const noexcept {
    return {keys_.data + slot.key_begin, slot.key_size};
  }
  // So many of the longest keys find room.
  [[nodiscard]] std::size_t longest_keys() const noexcept { return keys_.size / key_size_max; }
  [[nodiscard]] std::uint16_t index_of(const Slot& slot) const noexcept {
    return static_cast<std::uint16_t>(&slot - slots_);
  }
  [[nodiscard]] Slot& at(std::size_t index) const noexcept { return slots_[index]; }
  // For tests: the counts are those of the slots, the keys stand without a gap, what was reserved has its place, and one
  // slot at most is in force for each hold.
  [[nodiscard]] bool invariants() const noexcept;

  // B. What became of one that poll_transmit() gave.
  void handle_sent(Slot& slot) noexcept { move(slot, State::in_flight); }
  // ok: it is confirmed. `by_name`: it went as a command of the server's own, and is repeated by text where that was refused.
  void handle_reply(Slot& slot, Status outcome, bool by_name, Instant now) noexcept;
  // Its connection is gone, and its reply with it.
  void handle_lost(Slot& slot) noexcept;

  // C. Commands.
  // A place for one, whatever its key, for a request that may have to be taken back. REQUIRES: has_room().
  void reserve() noexcept { ++reserved_; }
  void unreserve() noexcept { --reserved_; }
  // For one whose place was reserved, after unreserve(). REQUIRES: has_room().
  Slot& keep(const ReplyTag& tag, const Compensation& compensation) noexcept;
  // For one whose place was not. Errors: too_many_requests.
  [[nodiscard]] Status add(const ReplyTag& tag, const Compensation& compensation) noexcept;
  // Something newer is about to be asked of the same hold: an older number that waits, or that has to be repeated, must not
  // come behind it.
  void supersede(const Compensation& newer) noexcept {
    if (kept_ != 0) [[unlikely]]
      supersede_kept(newer);
  }
  // What `other` is to take back whole is kept here, too, as far as there is room.
  void copy_whole(const Compensations& other) noexcept;
  // What waits or was put off, one after the other; nullptr is before the first, and behind the last.
  [[nodiscard]] Slot* next_unsent(Slot* after) noexcept;
  // This one of the `other`'s is kept here from now on, where there is room. REQUIRES: it is unsent.
  void take_over(Compensations& other, Slot& slot) noexcept;
  void count_dropped() noexcept { ++dropped_; }
  // Nobody hears of the outcome any more.
  void abandon(const void* requester) noexcept;
  // Drops all. What is reserved stays so.
  void clear() noexcept;
  // Drops all, and what is reserved.
  void forget() noexcept {
    clear();
    reserved_ = 0;
  }

  // D. Outputs.
  // The next one to be sent that stands behind `after`, where nullptr is before the first; nullptr when there is none. The
  // command that takes it back is in `line`, which views the slot until it changes. Then handle_sent(), or it goes on waiting.
  // REQUIRES: `line` is empty, and was never used.
  [[nodiscard]] Slot* poll_transmit(Slot* after, Instant now, CommandLine& line) noexcept;
  // When a deferred one is due. Instant::max() when none is; and while one waits, since what comes behind it waits for no timer.
  [[nodiscard]] Instant poll_timeout() const noexcept;

 private:
  [[nodiscard]] Slot* end() const noexcept { return slots_ + slot_count_; }
  void move(Slot& slot, State to) noexcept;
  void supersede_kept(const Compensation& newer) noexcept;
  void free_slot(Slot& slot) noexcept;

  std::uint32_t kept_ = 0;        // Slots that are not free,
  std::uint32_t kept_bytes_ = 0;  // and the bytes of their keys, which stand without a gap.
  std::uint32_t waiting_ = 0;
  std::uint32_t deferred_ = 0;
  std::uint32_t reserved_ = 0;
  std::uint32_t dropped_ = 0;
  std::uint32_t slot_count_;
  Slot* slots_;
  MutableBytes keys_;
};

}  // namespace holdfast
