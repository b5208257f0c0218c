// SPDX-License-Identifier: MIT
//
// RenewalSchedule keeps many holds of one node alive: each is renewed by a third of its lease, up to renewal_batch_max
// keys a call, a few calls in flight, spread over the interval. It does no I/O and reads no clock: the watchdog feeds it
// replies and time. Every step costs a logarithm of the number of holds.
//
//     enter() -> waits for its turn -> in a call -> renewed ...                       leave()
//                     ^                   |
//                     '--- at_risk -------+---> lost (not ours, or valid_until passed): final
//
// An error that may be one key's own is asked again at once, a key a call: a cluster's proxy refuses calls across slots,
// and one foreign key must not keep the others from theirs.
//
// Invariants: a hold's valid_until is never later than what the server promised, counted from before the call left, less
// drift; nothing raises it once it has passed; a place's reply counts only for the hold that was there when it was asked.
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/session.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/key.hpp"

namespace holdfast {

// A hold as the schedule sees it. Key, token and kind are viewed until leave().
struct KeptHold {
  void* holder = nullptr;  // The driver's own pointer.
  const LockKind* kind = nullptr;
  Key key;
  const Token* token = nullptr;
  Duration lease{};      // Whole milliseconds.
  Duration validity{};   // Lease less drift.
  Instant confirmed_at;  // The send of the last confirmed acquire or renewal.
  Instant valid_until;   // confirmed_at + validity.

  [[nodiscard]] constexpr Instant risky_from() const noexcept { return confirmed_at + lease / renewal_divisor * 2; }
};

class LockMachine;
// What the machine says of the hold that it has.
[[nodiscard]] KeptHold kept_hold(const LockMachine& machine, void* holder) noexcept;

enum class RenewalEvent : std::uint8_t {
  none,
  at_risk,  // The first doubt: a renewal failed, or two thirds of the lease have passed. Once until it is renewed.
  lost,     // Final, once. The place stays until leave().
};

class RenewalSchedule {
 public:
  // What the schedule asks of and tells its driver, from within its calls. REQUIRES: they call nothing of the schedule.
  struct Host {
    // May this hold be renewed now? No while its application is not alive, or beyond its max_hold: it then runs out.
    bool (*may_renew)(void* holder, Instant now) noexcept;
    // Confirmed: the server keeps it for its lease from `asked_at` on, and a doubt is over. Not called where a later
    // confirm() has said so already.
    void (*renewed)(const KeptHold& hold) noexcept;
    // May these two go in one call? Of one kind they are. nullptr: always.
    bool (*together)(const KeptHold& one, const KeptHold& other) noexcept = nullptr;
  };
  // One hold's place. Storage only; the members are the schedule's business.
  struct Place {
    KeptHold hold;
    Instant next;                   // When anything is to be done about it: the key of its heap.
    Instant due;                    // When it is to be renewed.
    std::uint32_t heap_index = 0;   // Or the next free place.
    std::uint32_t event_after = 0;  // Its neighbours among those with something to tell.
    std::uint32_t event_before = 0;
    std::uint16_t round = 0;  // Its renewals, for the spread.
    std::uint8_t state = 0;
    std::uint8_t events = 0;  // A bit for each RenewalEvent that is to be told.
    std::uint8_t call = 0;    // While in flight: which call, and which key of it.
    std::uint8_t entry = 0;
    bool doubted = false;  // at_risk was told, or is about to be.
    bool alone = false;    // To be asked in a call of its own.
    bool delayed = false;  // `due` is a delay that must pass, not an interval to be kept.
  };
  struct Storage {
    Place* places;        // Default-initialised; untouched before they are needed.
    std::uint32_t* heap;  // As many.
    std::size_t count;
  };

  // The storage must outlive the schedule. A call is given up `request_timeout` after it was made.
  RenewalSchedule(const Host& host, const Storage& storage, Duration request_timeout) noexcept;
  void set_request_timeout(Duration timeout) noexcept { request_timeout_ = timeout; }
  // Who is told of renewals; nullptr: nobody. REQUIRES: it outlives the schedule.
  void set_witness(Witness* witness) noexcept { witness_ = witness; }
  // As Host's. REQUIRES: no call is in flight.
  void set_together(bool (*together)(const KeptHold& one, const KeptHold& other) noexcept) noexcept {
    host_.together = together;
  }
  RenewalSchedule(const RenewalSchedule&) = delete;
  RenewalSchedule& operator=(const RenewalSchedule&) = delete;

  // A. Questions.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }             // Holds entered and not left.
  [[nodiscard]] std::size_t calls_in_flight() const noexcept { return busy_; }  // Whose replies are to come.

  // It is one of this schedule's places.
  [[nodiscard]] bool has(const Place& place) const noexcept {
    return reinterpret_cast<std::uintptr_t>(&place) - reinterpret_cast<std::uintptr_t>(storage_.places) <
           storage_.count * sizeof(Place);
  }
  // Final: nothing is renewed for it any more.
  [[nodiscard]] bool lost(const Place& place) const noexcept { return is(place, PlaceState::lost); }

  // Its renewal is on its way.
  [[nodiscard]] bool asks_for(const Place& place) const noexcept { return is(place, PlaceState::in_flight); }

  // Of the call that this reply is to, whose hold is the one at `index`; nullptr: it is gone. False: it has no such hold.
  [[nodiscard]] bool holder_in_call(const ReplyTag& tag, std::size_t index, void*& holder) const noexcept;

  // B. Inputs from the wire and the clock. `now` never goes back.
  // The reply to a request of poll_request(). Every request must be answered, be it by a Status of the session's own.
  // False: no server answers so, and the session must fail(protocol_error). The holds of the call are in doubt.
  [[nodiscard]] bool handle_reply(const Reply& reply, Instant now) noexcept;
  // Judges what time has done. Receive what has arrived and handle the replies first.
  void handle_timeout(Instant now) noexcept;

  // C. Commands.
  // nullptr when every place is taken. A hold whose renewal is due already goes out with the next poll_request().
  // REQUIRES: a valid key, a token, a kind with renew_batch, and a lease within its limits.
  [[nodiscard]] Place* enter(const KeptHold& hold, Instant now) noexcept;
  // The hold was confirmed otherwise (its own client renewed it). What is no later than the last confirmation says
  // nothing new; what comes after valid_until revives nothing.
  void confirm(Place& place, Instant confirmed_at, Instant now) noexcept;
  // As confirm(), and its lease may have been raised: what is on its way for the lease before counts for nothing then.
  void update(Place& place, const KeptHold& hold, Instant now) noexcept;
  // It is not renewed before the pause after a renewal that failed is over.
  void put_off(Place& place, Instant now) noexcept;
  // All holds that wait for their turn are renewed now: another server may not have them.
  void hasten(Instant now) noexcept;
  // Nothing is renewed for it, and nothing told of it, from here on.
  void leave(Place& place) noexcept;

  // D. Outputs. After any call of B or C, poll each until it is empty.
  // False: poll_request() has nothing to do.
  [[nodiscard]] bool wants_request(Instant now) const noexcept {
    return heap_sizes_[static_cast<int>(Side::urgent)] != 0 || poll_timeout() <= now;
  }
  // Writes the next call into `space` (of Session::open(false)) and describes it; the requester is left to the caller.
  // False when nothing is due, renewal_calls_max calls are in flight, or not even one key fits into `space`.
  [[nodiscard]] bool poll_request(MutableBytes space, Request& request, std::size_t& size, Instant now) noexcept;
  // What to tell, one at a time; `holder` is whose.
  [[nodiscard]] RenewalEvent poll_event(void*& holder) noexcept;
  // Instant::max() when nothing is to come. What is due and waits for a call, for room or for a connection waits for no
  // timer: those who bring one poll again.
  [[nodiscard]] Instant poll_timeout() const noexcept;

 private:
  enum class PlaceState : std::uint8_t {
    free,
    waiting,    // For its turn.
    due,        // For a call.
    in_flight,  // For a reply.
    lost,       // For leave().
  };
  // Two heaps of places by Place::next share the storage, the one from its start and the other from its end.
  enum class Side : std::uint8_t {
    timers,  // Waiting and in flight.
    urgent,  // Due, the soonest endangered first.
  };
  struct Call {
    Instant asked_at;
    std::uint32_t generation = 0;  // Its slot's number in its lowest bits.
    std::uint16_t count = 0;       // Holds; 0: the slot is free.
    bool by_text = false;
    std::uint8_t keys = 0;                    // One each, or its names.
    std::uint32_t places[renewal_batch_max];  // In the order of the answers; no_place where the hold is gone.
  };
  static constexpr std::uint32_t no_place = UINT32_MAX;
  static constexpr std::uint16_t spread_fraction = 4;  // Of the interval.

  [[nodiscard]] std::uint32_t index_of(const Place& place) const noexcept;
  [[nodiscard]] std::uint32_t& heap_size(Side side) noexcept { return heap_sizes_[static_cast<int>(side)]; }
  [[nodiscard]] std::uint32_t& slot(Side side, std::uint32_t index) noexcept;
  void put(Side side, std::uint32_t index, std::uint32_t place) noexcept;
  void sift(Side side, std::uint32_t index) noexcept;
  void insert(Place& place) noexcept;
  void remove(Place& place) noexcept;
  [[nodiscard]] Place& top(Side side) noexcept { return storage_.places[slot(side, 0)]; }
  [[nodiscard]] static Side side_of(const Place& place) noexcept;
  [[nodiscard]] static bool is(const Place& place, PlaceState state) noexcept {
    return place.state == static_cast<std::uint8_t>(state);
  }
  [[nodiscard]] static PlaceState state_of(const Place& place) noexcept { return static_cast<PlaceState>(place.state); }
  [[nodiscard]] static bool in_heap(const Place& place) noexcept {
    return !is(place, PlaceState::free) && !is(place, PlaceState::lost);
  }
  void become(Place& place, PlaceState state) noexcept;

  void tell(Place& place, RenewalEvent event) noexcept;
  void untell(Place& place, std::uint8_t events) noexcept;
  void plan(Place& place) noexcept;
  void delay(Place& place, Instant now) noexcept;
  void tell_risk(Place& place) noexcept;
  void settle(Place& place, PlaceState state, Instant now) noexcept;
  void lose(Place& place) noexcept;
  bool confirmed(Place& place, Instant confirmed_at, Instant now) noexcept;
  void doubt(Place& place, Instant asked_at, Instant now) noexcept;
  void see(const KeptHold& hold, Status outcome, const Call& call, Instant now) const noexcept;
  void handle_answer(Place& place, std::int64_t answer, bool alone, const Call& call, Instant now) noexcept;
  void handle_failure(Place& place, Status outcome, const Call& call, Instant now) noexcept;
  void detach(Place& place) noexcept;
  void gather(Call& call, Side side, std::size_t& room, Instant now) noexcept;
  void write(const Call& call, MutableBytes space, std::size_t& size) const noexcept;

  Host host_;
  Storage storage_;
  Duration request_timeout_;
  Witness* witness_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t used_ = 0;  // Places that have ever been taken: the ones behind are as they came.
  std::uint32_t first_free_ = no_place;
  std::uint32_t heap_sizes_[2] = {};
  std::uint32_t first_event_ = no_place;
  std::uint32_t last_event_ = no_place;
  std::uint8_t busy_ = 0;
  bool by_text_ = false;  // The server does not know the script: by its text, until that has succeeded.
  Call calls_[renewal_calls_max];
};

static_assert(sizeof(RenewalSchedule) <= 1792, "promised: the schedule without its places");
static_assert(sizeof(RenewalSchedule::Place) <= 112, "promised: what a hold costs, but for four bytes of the heap");

}  // namespace holdfast
