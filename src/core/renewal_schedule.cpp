// SPDX-License-Identifier: MIT
#include "holdfast/core/renewal_schedule.hpp"

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/resp_encoder.hpp"

namespace holdfast {

namespace {

// What falls due so soon is pulled into a call that goes out anyway: at an eighth of the interval, half of the spread,
// a burst of holds becomes few calls, and none is renewed much sooner than it must.
constexpr int pull_divisor = 24;

constexpr Duration interval_of(const KeptHold& hold) noexcept { return hold.lease / renewal_divisor; }
constexpr std::int64_t lease_milliseconds(const KeptHold& hold) noexcept {
  return whole_milliseconds(hold.lease).count();
}

constexpr std::uint8_t bit(RenewalEvent event) noexcept {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(event));
}

// Its keys of a call: one, or its names.
std::uint32_t keys_of(const KeptHold& hold) noexcept {
  if (hold.kind->name_at == nullptr) return 1;
  std::uint32_t count = 0;
  while (!hold.kind->name_at(hold.key, count).empty()) ++count;
  return count;
}
// What one hold takes of a call, at most: three bulks with their headers, of three, two and one digit. A bulk for each
// further name, and one that says how many: the packed key has a byte for each as well.
constexpr std::size_t lease_digits_max = 8;
static_assert(lease_max < 100'000'000ms && key_size_max < 1000 && token_size_max < 100 && names_max < 10);
std::size_t size_of(const KeptHold& hold) noexcept {
  return 8 * std::size_t{keys_of(hold)} + hold.key.bytes().size() + 7 + hold.token->bytes().size() + 6 +
         lease_digits_max + (hold.kind->name_at != nullptr ? 7 : 0);
}
// What a call takes beside its holds, at most: the array, EVALSHA, the script, the number of keys.
static_assert(renewal_batch_max < 1000 && 3 + 4 * renewal_batch_max < 1000 && script_size_max < 10'000 &&
              renewal_batch_max <= UINT8_MAX);
constexpr std::size_t frame_size(ByteView script) noexcept { return 6 + 13 + 9 + script.size() + 9; }
ByteView named(const Script& script, bool by_text) noexcept { return by_text ? script.text : script.sha.bytes(); }

// A number without a pattern in [0, 2^16), for a spread that is the same in every run.
constexpr std::uint32_t scatter(std::uint32_t place, std::uint32_t round) noexcept {
  std::uint32_t mixed = (place + 1) * 0x9e3779b1U + round * 0x85ebca6bU;
  mixed ^= mixed >> 15;
  mixed *= 0xc2b2ae35U;
  mixed ^= mixed >> 13;
  mixed *= 0x27d4eb2fU;
  return mixed >> 16;
}

constexpr std::uint64_t status_bit(Status status) noexcept { return std::uint64_t{1} << static_cast<unsigned>(status); }
static_assert(status_count <= 64, "a set of Status is a word");

// What the server refuses to everybody. To ask key by key would only be more of what it refuses.
constexpr std::uint64_t refusals_of_a_node =
    status_bit(Status::auth_required) | status_bit(Status::read_only) | status_bit(Status::loading) |
    status_bit(Status::busy_script) | status_bit(Status::too_few_replicas) | status_bit(Status::stale_replica) |
    status_bit(Status::disk_error) | status_bit(Status::too_many_clients) | status_bit(Status::denied);
// No reply came.
constexpr std::uint64_t losses = status_bit(Status::timed_out) | status_bit(Status::transport_closed) |
                                 status_bit(Status::cancelled) | status_bit(Status::not_connected);

constexpr bool is_among(Status status, std::uint64_t set) noexcept { return (status_bit(status) & set) != 0; }

}  // namespace

KeptHold kept_hold(const LockMachine& machine, void* holder) noexcept {
  return {.holder = holder,
          .kind = &machine.kind(),
          .key = machine.key(),
          .token = &machine.token(),
          .lease = machine.timing().lease,
          .validity = machine.validity(),
          .confirmed_at = machine.confirmed_at(),
          .valid_until = machine.valid_until()};
}

RenewalSchedule::RenewalSchedule(const Host& host, const Storage& storage, Duration request_timeout) noexcept
    : host_(host), storage_(storage), request_timeout_(request_timeout) {
  HOLDFAST_ASSERT(storage.count < no_place);
  for (std::size_t index = 0; index < renewal_calls_max; ++index)
    calls_[index].generation = static_cast<std::uint32_t>(index);
}

// ---- The heaps ---------------------------------------------------------------------------------------------------

std::uint32_t RenewalSchedule::index_of(const Place& place) const noexcept {
  return static_cast<std::uint32_t>(&place - storage_.places);
}

std::uint32_t& RenewalSchedule::slot(Side side, std::uint32_t index) noexcept {
  return storage_.heap[side == Side::timers ? index : storage_.count - 1 - index];
}

RenewalSchedule::Side RenewalSchedule::side_of(const Place& place) noexcept {
  return is(place, PlaceState::due) ? Side::urgent : Side::timers;
}

void RenewalSchedule::put(Side side, std::uint32_t index, std::uint32_t place) noexcept {
  slot(side, index) = place;
  storage_.places[place].heap_index = index;
}

// Moves what stands at `index` up or down to where it belongs.
void RenewalSchedule::sift(Side side, std::uint32_t index) noexcept {
  const std::uint32_t moved = slot(side, index);
  const Instant next = storage_.places[moved].next;
  const auto next_at = [&](std::uint32_t at) { return storage_.places[slot(side, at)].next; };
  while (index != 0 && next < next_at((index - 1) / 2)) {
    put(side, index, slot(side, (index - 1) / 2));
    index = (index - 1) / 2;
  }
  for (;;) {
    std::uint32_t child = 2 * index + 1;
    if (child >= heap_size(side)) break;
    if (child + 1 < heap_size(side) && next_at(child + 1) < next_at(child)) ++child;
    if (next <= next_at(child)) break;
    put(side, index, slot(side, child));
    index = child;
  }
  put(side, index, moved);
}

void RenewalSchedule::insert(Place& place) noexcept {
  const Side side = side_of(place);
  const std::uint32_t last = heap_size(side)++;
  put(side, last, index_of(place));
  sift(side, last);
}

// Before its state changes.
void RenewalSchedule::remove(Place& place) noexcept {
  const Side side = side_of(place);
  const std::uint32_t index = place.heap_index;
  const std::uint32_t last = --heap_size(side);
  if (index == last) return;
  put(side, index, slot(side, last));
  sift(side, index);
}

// To the heap of its state, if there is one for it, by what is to be done first.
void RenewalSchedule::become(Place& place, PlaceState state) noexcept {
  const bool was_in = in_heap(place);
  const Side before = side_of(place);
  if (was_in && (state == PlaceState::free || state == PlaceState::lost ||
                 (state == PlaceState::due) != (before == Side::urgent)))
    remove(place);
  place.state = static_cast<std::uint8_t>(state);
  if (!in_heap(place)) return;
  const KeptHold& hold = place.hold;
  place.next = place.doubted ? hold.valid_until : earlier(hold.risky_from(), hold.valid_until);
  if (state == PlaceState::waiting) place.next = earlier(place.next, place.due);
  if (was_in && side_of(place) == before)
    sift(before, place.heap_index);
  else
    insert(place);
}

// ---- Events ------------------------------------------------------------------------------------------------------

void RenewalSchedule::tell(Place& place, RenewalEvent event) noexcept {
  const bool listed = place.events != 0;
  place.events = static_cast<std::uint8_t>(place.events | bit(event));
  if (listed) return;
  const std::uint32_t index = index_of(place);
  place.event_before = last_event_;
  place.event_after = no_place;
  (last_event_ == no_place ? first_event_ : storage_.places[last_event_].event_after) = index;
  last_event_ = index;
}

void RenewalSchedule::untell(Place& place, std::uint8_t events) noexcept {
  if (place.events == 0) return;
  place.events = static_cast<std::uint8_t>(place.events & ~events);
  if (place.events != 0) return;
  const std::uint32_t before = place.event_before;
  const std::uint32_t after = place.event_after;
  (before == no_place ? first_event_ : storage_.places[before].event_after) = after;
  (after == no_place ? last_event_ : storage_.places[after].event_before) = before;
}

RenewalEvent RenewalSchedule::poll_event(void*& holder) noexcept {
  if (first_event_ == no_place) return RenewalEvent::none;
  Place& place = storage_.places[first_event_];
  const RenewalEvent event =
      (place.events & bit(RenewalEvent::at_risk)) != 0 ? RenewalEvent::at_risk : RenewalEvent::lost;
  holder = place.hold.holder;
  untell(place, bit(event));
  return event;
}

// ---- One hold ----------------------------------------------------------------------------------------------------

// Waits for its turn: a third of the lease, less a share that differs from place to place and from round to round.
void RenewalSchedule::plan(Place& place) noexcept {
  const Duration interval = interval_of(place.hold);
  const Duration spread = interval / spread_fraction * scatter(index_of(place), place.round) / (1 << 16);
  place.due = place.hold.confirmed_at + (interval - spread);
  place.delayed = false;
}

// Waits before it is asked again.
void RenewalSchedule::delay(Place& place, Instant now) noexcept {
  Duration wait = place.hold.lease / renewal_retry_divisor;
  if (wait < retry_delay_min) wait = retry_delay_min;
  place.due = now + wait;
  place.delayed = true;
}

// Its reply, if there is one to come, is no more its own.
void RenewalSchedule::detach(Place& place) noexcept {
  if (is(place, PlaceState::in_flight)) calls_[place.call].places[place.entry] = no_place;
}

void RenewalSchedule::lose(Place& place) noexcept {
  detach(place);
  become(place, PlaceState::lost);
  tell(place, RenewalEvent::lost);
}

void RenewalSchedule::tell_risk(Place& place) noexcept {
  if (place.doubted) return;
  place.doubted = true;
  tell(place, RenewalEvent::at_risk);
}

// To `state`, or to what time has made of it by now.
void RenewalSchedule::settle(Place& place, PlaceState state, Instant now) noexcept {
  if (now >= place.hold.valid_until) {  // Lost is final: what comes after the end revives nothing.
    lose(place);
    return;
  }
  if (now >= place.hold.risky_from()) tell_risk(place);
  become(place, state == PlaceState::waiting && now >= place.due ? PlaceState::due : state);
}

// True if it says something new: the doubt is over.
bool RenewalSchedule::confirmed(Place& place, Instant confirmed_at, Instant now) noexcept {
  KeptHold& hold = place.hold;
  if (now >= hold.valid_until || confirmed_at <= hold.confirmed_at) return false;
  hold.confirmed_at = confirmed_at;
  hold.valid_until = later(hold.valid_until, confirmed_at + hold.validity);
  ++place.round;
  place.doubted = false;
  untell(place, bit(RenewalEvent::at_risk));
  plan(place);
  return true;
}

// A renewal asked at `asked_at` failed. Where somebody has confirmed it since, its turn is planned from there.
void RenewalSchedule::doubt(Place& place, Instant asked_at, Instant now) noexcept {
  if (asked_at <= place.hold.confirmed_at) return;
  tell_risk(place);
  delay(place, now);
}

// ---- Inputs and commands -----------------------------------------------------------------------------------------

RenewalSchedule::Place* RenewalSchedule::enter(const KeptHold& hold, Instant now) noexcept {
  HOLDFAST_ASSERT(hold.kind != nullptr && hold.kind->renew_batch != nullptr && hold.key.valid());
  HOLDFAST_ASSERT(hold.token != nullptr && !hold.token->empty());
  HOLDFAST_ASSERT(hold.lease >= lease_min && hold.lease <= lease_max);
  std::uint32_t index = first_free_;
  if (index != no_place)
    first_free_ = storage_.places[index].heap_index;
  else if (used_ < storage_.count)
    index = used_++;
  else
    return nullptr;
  ++size_;
  Place& place = storage_.places[index];
  place.hold = hold;
  place.doubted = false;
  place.alone = false;
  plan(place);
  settle(place, PlaceState::waiting, now);
  return &place;
}

void RenewalSchedule::confirm(Place& place, Instant confirmed_at, Instant now) noexcept {
  HOLDFAST_ASSERT(!is(place, PlaceState::free));
  if (is(place, PlaceState::lost)) return;
  const bool planned = confirmed(place, confirmed_at, now) && is(place, PlaceState::due);
  settle(place, planned ? PlaceState::waiting : state_of(place), now);
}

void RenewalSchedule::update(Place& place, const KeptHold& hold, Instant now) noexcept {
  if (hold.lease <= place.hold.lease) return confirm(place, hold.confirmed_at, now);
  HOLDFAST_ASSERT(!is(place, PlaceState::free));
  if (is(place, PlaceState::lost)) return;
  detach(place);
  untell(place, bit(RenewalEvent::at_risk));
  const Instant promised = place.hold.valid_until;
  place.hold = hold;
  place.hold.valid_until = later(promised, hold.valid_until);
  place.doubted = false;
  ++place.round;
  plan(place);
  settle(place, PlaceState::waiting, now);
}

void RenewalSchedule::put_off(Place& place, Instant now) noexcept {
  HOLDFAST_ASSERT(!is(place, PlaceState::free) && !is(place, PlaceState::in_flight));
  if (is(place, PlaceState::lost)) return;
  delay(place, now);
  settle(place, PlaceState::waiting, now);
}

// A place that becomes due leaves the heap of timers, and what stands there instead may be one of those before it: so over the
// places, which stay where they are.
void RenewalSchedule::hasten(Instant now) noexcept {
  for (std::uint32_t index = 0; index < used_; ++index) {
    Place& place = storage_.places[index];
    if (!is(place, PlaceState::waiting)) continue;
    place.due = earlier(place.due, now);
    settle(place, PlaceState::waiting, now);
  }
}

void RenewalSchedule::leave(Place& place) noexcept {
  HOLDFAST_ASSERT(!is(place, PlaceState::free));
  detach(place);
  untell(place, UINT8_MAX);
  become(place, PlaceState::free);
  place.heap_index = first_free_;
  first_free_ = index_of(place);
  --size_;
}

void RenewalSchedule::handle_timeout(Instant now) noexcept {
  for (const Side side : {Side::timers, Side::urgent})
    while (heap_size(side) != 0 && top(side).next <= now) settle(top(side), state_of(top(side)), now);
}

// What became of one hold's renewal.
[[gnu::noinline]] void RenewalSchedule::see(const KeptHold& hold, Status outcome, const Call& call,
                                            Instant now) const noexcept {
  if (witness_ == nullptr) return;
  witness_->tell(Seen::renewed, hold.key.bytes(), outcome, (now - call.asked_at).count());
}

// The server's answer for one key, in time.
void RenewalSchedule::handle_answer(Place& place, std::int64_t answer, bool alone, const Call& call,
                                    Instant now) noexcept {
  if (answer == 0) {
    see(place.hold, Status::lock_lost, call, now);
    lose(place);
    return;
  }
  if (answer == 1) {
    place.alone = false;  // So it was asked alone: marked ones are never asked otherwise.
    if (confirmed(place, call.asked_at, now)) {
      see(place.hold, Status::ok, call, now);
      host_.renewed(place.hold);
    }
  } else {
    see(place.hold, Status::server_error, call, now);
    place.alone = alone;
    doubt(place, call.asked_at, now);
  }
  settle(place, PlaceState::waiting, now);
}

// No answer for one key, in time.
void RenewalSchedule::handle_failure(Place& place, Status outcome, const Call& call, Instant now) noexcept {
  if (outcome == Status::wrong_type && call.count == 1) {  // Somebody put something else in its place.
    see(place.hold, outcome, call, now);
    lose(place);
  } else if (outcome == Status::no_script && !call.by_text) {
    settle(place, PlaceState::due, now);
  } else if (outcome == Status::ok || call.count == 1 || is_among(outcome, refusals_of_a_node | losses)) {
    see(place.hold, outcome == Status::ok ? Status::protocol_error : outcome, call, now);
    doubt(place, call.asked_at, now);
    settle(place, PlaceState::waiting, now);
  } else {  // It may be another key's error, or that of their company.
    place.alone = true;
    settle(place, PlaceState::due, now);
  }
}

bool RenewalSchedule::holder_in_call(const ReplyTag& tag, std::size_t index, void*& holder) const noexcept {
  const Call& call = calls_[tag.generation % renewal_calls_max];
  if (call.generation != tag.generation || index >= call.count) return false;
  const std::uint32_t place = call.places[index];
  holder = place == no_place ? nullptr : storage_.places[place].hold.holder;
  return true;
}

bool RenewalSchedule::handle_reply(const Reply& reply, Instant now) noexcept {
  Call& call = calls_[reply.tag.generation % renewal_calls_max];
  if (call.count == 0 || call.generation != reply.tag.generation) return true;
  const RespValue& value = reply.value;
  // Elements without elements of their own stand one behind the other: as long as all are integers, one step each.
  bool answered = reply.outcome == Status::ok && value.count() == call.count;
  const RespValue* const answers = answered ? &value.at(0) : nullptr;
  bool refused = answered;  // Every key: that is the node's doing, a replica's for one, and no key's.
  for (std::uint32_t index = 0; answered && index < call.count; ++index) {
    answered = answers[index].is(RespKind::integer);
    refused = refused && answers[index].is_integer(-1);
  }
  if (answered && call.by_text) by_text_ = false;
  if (reply.outcome == Status::no_script) by_text_ = true;

  for (std::uint32_t index = 0; index < call.count; ++index) {
    if (call.places[index] == no_place) continue;
    Place& place = storage_.places[call.places[index]];
    if (now >= place.hold.valid_until) {
      see(place.hold, Status::lock_lost, call, now);
      lose(place);
    } else if (answered) {
      handle_answer(place, answers[index].integer(), !refused, call, now);
    } else {
      handle_failure(place, reply.outcome, call, now);
    }
  }
  call.count = 0;
  --busy_;
  return answered || reply.outcome != Status::ok;
}

// ---- Outputs -----------------------------------------------------------------------------------------------------

// Takes what may go with the call out of one heap, as long as there is room: all that is due, or what will be soon. What
// may not go is set aside meanwhile, at the end of the table that the call fills from its start: so one call looks at no
// more holds than it could take.
void RenewalSchedule::gather(Call& call, Side side, std::size_t& room, Instant now) noexcept {
  std::uint32_t aside = renewal_batch_max;
  const KeptHold* first = call.count == 0 ? nullptr : &storage_.places[call.places[0]].hold;
  while (call.count < aside && heap_size(side) != 0) {
    Place& place = top(side);
    const KeptHold& hold = place.hold;
    if (side == Side::timers && place.next > now + first->lease / pull_divisor) break;
    const std::uint32_t index = index_of(place);
    const bool in_turn = side == Side::urgent || (is(place, PlaceState::waiting) && !place.delayed);
    const bool alike = first == nullptr || (hold.kind == first->kind && !place.alone &&
                                            (host_.together == nullptr || host_.together(hold, *first)));
    if (!in_turn || !alike) {
      remove(place);
      call.places[--aside] = index;
      continue;
    }
    const std::size_t needed =
        size_of(hold) + (first == nullptr ? frame_size(named(*hold.kind->renew_batch, by_text_)) : 0);
    if (needed > room || call.keys + keys_of(hold) > renewal_batch_max) break;
    if (!host_.may_renew(hold.holder, now)) {
      delay(place, now);
      become(place, PlaceState::waiting);
      continue;
    }
    room -= needed;
    place.call = static_cast<std::uint8_t>(&call - calls_);
    place.entry = static_cast<std::uint8_t>(call.count);
    become(place, PlaceState::in_flight);
    call.keys = static_cast<std::uint8_t>(call.keys + keys_of(hold));
    call.places[call.count++] = index;
    if (first == nullptr) first = &hold;
    if (place.alone) break;
  }
  while (aside != renewal_batch_max) insert(storage_.places[call.places[aside++]]);
}

void RenewalSchedule::write(const Call& call, MutableBytes space, std::size_t& size) const noexcept {
  const auto hold_at = [this, &call](std::uint32_t index) -> const KeptHold& {
    return storage_.places[call.places[index]].hold;
  };
  const LockKind& kind = *hold_at(0).kind;
  const std::size_t arguments = kind.name_at == nullptr ? 2 : 3;  // Of each hold.
  CommandWriter writer(space, 3 + call.keys + arguments * call.count);
  writer.add(call.by_text ? ByteView("EVAL") : ByteView("EVALSHA"));
  writer.add(named(*kind.renew_batch, call.by_text)).add(call.keys);
  for (std::uint32_t index = 0; index < call.count; ++index)
    for (std::uint32_t key = 0; key < keys_of(hold_at(index)); ++key)
      writer.add(kind.name_at == nullptr ? hold_at(index).key.bytes() : kind.name_at(hold_at(index).key, key));
  for (std::uint32_t index = 0; index < call.count; ++index) {
    writer.add(hold_at(index).token->bytes()).add(lease_milliseconds(hold_at(index)));
    if (kind.name_at != nullptr) writer.add(keys_of(hold_at(index)));
  }
  const Status status = writer.finish(size);
  HOLDFAST_ASSERT(status == Status::ok);  // The sum of gather().
}

bool RenewalSchedule::poll_request(MutableBytes space, Request& request, std::size_t& size, Instant now) noexcept {
  handle_timeout(now);
  if (busy_ == renewal_calls_max) return false;
  Call* call = calls_;
  while (call->count != 0) ++call;
  call->keys = 0;
  std::size_t room = space.size;
  gather(*call, Side::urgent, room, now);
  if (call->count == 0) return false;
  if (!storage_.places[call->places[0]].alone) gather(*call, Side::timers, room, now);
  call->generation += renewal_calls_max;
  call->asked_at = now;
  call->by_text = by_text_;
  write(*call, space, size);
  ++busy_;
  request.tag.generation = call->generation;
  request.tag.operation = Operation::renew;
  request.deadline = now + request_timeout_;
  request.compensation = nullptr;
  request.repeatable = false;
  request.posted = false;
  return true;
}

Instant RenewalSchedule::poll_timeout() const noexcept {
  Instant next = Instant::max();
  if (heap_sizes_[0] != 0) next = storage_.places[storage_.heap[0]].next;
  if (heap_sizes_[1] != 0) next = earlier(next, storage_.places[storage_.heap[storage_.count - 1]].next);
  return next;
}

}  // namespace holdfast
