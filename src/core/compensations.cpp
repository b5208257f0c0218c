// SPDX-License-Identifier: MIT
#include "holdfast/core/compensations.hpp"

#include <cstring>

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/proto/assert.hpp"

namespace holdfast {

namespace {

// A compensation that the server refuses for the moment (loading, busy, read-only, ...) is tried again so often and
// so long after: about two minutes, more than any default lease.
constexpr std::uint8_t attempts_max = 60;
constexpr Duration retry_delay = 2s;
// What goes from server to server because each names another one does so without a pause this often.
constexpr std::uint8_t hasty_attempts_max = 2;

// Refusals that pass by themselves.
bool transient(Status status) noexcept {
  return status == Status::loading || status == Status::busy_script || status == Status::read_only ||
         status == Status::stale_replica || status == Status::too_few_replicas || status == Status::disk_error ||
         status == Status::out_of_memory || status == Status::try_again || status == Status::cluster_down ||
         status == Status::moved;
}

}  // namespace

// ---- Slots -------------------------------------------------------------------------------------------------------

// The only place where a state changes, and so do the counts of what waits.
void Compensations::move(Slot& slot, State to) noexcept {
  if (slot.state == State::waiting) --waiting_;
  if (slot.state == State::deferred) --deferred_;
  slot.state = to;
  if (to == State::waiting) ++waiting_;
  if (to == State::deferred) ++deferred_;
}

// The keys of the others close up, so that one which waits for long takes no more room than its own.
void Compensations::free_slot(Slot& slot) noexcept {
  move(slot, State::free);
  kept_bytes_ -= slot.key_size;
  if (--kept_ == 0) return;
  char* const gap = keys_.data + slot.key_begin;
  std::memmove(gap, gap + slot.key_size, kept_bytes_ - slot.key_begin);
  for (Slot* other = slots_; other != end(); ++other)
    if (other->state != State::free && other->key_begin > slot.key_begin) other->key_begin -= slot.key_size;
}

// A hold's count is told by the newest alone.
[[gnu::noinline]] void Compensations::supersede_kept(const Compensation& newer) noexcept {
  for (Slot* slot = slots_; slot != end(); ++slot) {
    if (slot->state == State::free || slot->kind != newer.kind || slot->token.bytes() != newer.token->bytes()) continue;
    if (key_of(*slot) != newer.key.bytes()) continue;
    if (slot->state == State::in_flight)
      slot->state = State::superseded;
    else if (slot->state != State::superseded)
      free_slot(*slot);
  }
}

Compensations::Slot& Compensations::keep(const ReplyTag& tag, const Compensation& compensation) noexcept {
  supersede(compensation);
  HOLDFAST_ASSERT(has_room());  // Reserved before the request was sent.
  Slot* free = slots_;
  while (free->state != State::free) ++free;
  Slot& slot = *free;
  slot.kind = compensation.kind;
  slot.count = compensation.count;
  slot.lease_milliseconds = compensation.lease_milliseconds;
  slot.requester = tag.requester;
  slot.generation = tag.generation;
  slot.attempts = 0;
  slot.key_size = static_cast<std::uint16_t>(compensation.key.bytes().size());
  slot.key_begin = kept_bytes_;
  std::memcpy(keys_.data + kept_bytes_, compensation.key.bytes().data(), slot.key_size);
  kept_bytes_ += slot.key_size;
  slot.token = *compensation.token;
  ++kept_;
  move(slot, State::waiting);
  return slot;
}

Status Compensations::add(const ReplyTag& tag, const Compensation& compensation) noexcept {
  HOLDFAST_ASSERT(compensation.kind != nullptr && compensation.key.valid() && compensation.token != nullptr);
  if (!has_room()) return Status::too_many_requests;
  keep(tag, compensation);
  return Status::ok;
}

void Compensations::copy_whole(const Compensations& other) noexcept {
  for (const Slot* slot = other.slots_; slot != other.end(); ++slot) {
    // A hold that goes on by a smaller count is the other's to speak for.
    if (slot->state == State::free || slot->count != 0) continue;
    if (has_room()) keep({}, {slot->kind, Key(other.key_of(*slot)), &slot->token, 0, slot->lease_milliseconds});
  }
}

bool Compensations::carries_for(const void* requester) const noexcept {
  for (const Slot* slot = slots_; slot != end(); ++slot)
    if (slot->carried() && slot->requester == requester) return true;
  return false;
}

Compensations::Slot* Compensations::next_unsent(Slot* after) noexcept {
  if (!unsent()) return nullptr;
  for (Slot* slot = after == nullptr ? slots_ : after + 1; slot != end(); ++slot)
    if (slot->state == State::waiting || slot->state == State::deferred) return slot;
  return nullptr;
}

void Compensations::take_over(Compensations& other, Slot& slot) noexcept {
  if (!has_room()) return;
  Slot& mine = keep(slot.tag(), {slot.kind, Key(other.key_of(slot)), &slot.token, slot.count, slot.lease_milliseconds});
  mine.attempts = slot.attempts;
  if (slot.attempts > hasty_attempts_max) {
    mine.not_before = slot.not_before;
    move(mine, State::deferred);
  }
  other.free_slot(slot);
}

void Compensations::abandon(const void* requester) noexcept {
  for (Slot* slot = slots_; slot != end(); ++slot)
    if (slot->state != State::free && slot->requester == requester) slot->requester = nullptr;
}

void Compensations::clear() noexcept {
  for (Slot* slot = slots_; slot != end(); ++slot) slot->state = State::free;
  kept_ = kept_bytes_ = waiting_ = deferred_ = 0;
}

// ---- Sending -----------------------------------------------------------------------------------------------------

Compensations::Slot* Compensations::poll_transmit(Slot* after, Instant now, CommandLine& line) noexcept {
  if (!unsent()) return nullptr;
  for (Slot* slot = after == nullptr ? slots_ : after + 1; slot != end(); ++slot) {
    // It waits for room from here on, and for no timer.
    if (slot->state == State::deferred && slot->not_before <= now) move(*slot, State::waiting);
    if (slot->state != State::waiting) continue;
    slot->kind->fill(line, *slot->kind, slot->count == 0 ? Operation::release : Operation::step, RequestForm::by_text,
                     {.key = Key(key_of(*slot)),
                      .token = &slot->token,
                      .lease = std::chrono::milliseconds(slot->lease_milliseconds),
                      .count = slot->count});
    return slot;
  }
  return nullptr;
}

void Compensations::handle_reply(Slot& slot, Status outcome, bool by_name, Instant now) noexcept {
  if (slot.state != State::superseded && outcome != Status::ok) {
    // Once more, as a script; or on the next connection, since this server has sent us to another one.
    if (by_name || outcome == Status::not_connected) return move(slot, State::waiting);
    if (transient(outcome) && ++slot.attempts < attempts_max) {
      // Others need not wait for it: the server refuses what they would ask, too.
      slot.not_before = now + retry_delay;
      return move(slot, State::deferred);
    }
    ++dropped_;
  }
  free_slot(slot);
}

void Compensations::handle_lost(Slot& slot) noexcept {
  if (slot.state == State::superseded) return free_slot(slot);
  move(slot, State::waiting);
}

Instant Compensations::poll_timeout() const noexcept {
  Instant next = Instant::max();
  if (deferred_ != 0 && waiting_ == 0)
    for (const Slot* slot = slots_; slot != end(); ++slot)
      if (slot->state == State::deferred) next = earlier(next, slot->not_before);
  return next;
}

// ---- What is always so -------------------------------------------------------------------------------------------

bool Compensations::invariants() const noexcept {
  std::uint32_t kept = 0;
  std::uint32_t bytes = 0;
  std::uint32_t waiting = 0;
  std::uint32_t deferred = 0;
  for (const Slot* slot = slots_; slot != end(); ++slot) {
    if (slot->state == State::free) continue;
    ++kept;
    bytes += slot->key_size;
    if (slot->state == State::waiting) ++waiting;
    if (slot->state == State::deferred) ++deferred;
    if (slot->state == State::deferred && slot->attempts == 0) return false;
    if (slot->kind == nullptr || slot->token.empty() || !Key(key_of(*slot)).valid()) return false;
    if (slot->attempts >= attempts_max || slot->key_begin + slot->key_size > kept_bytes_) return false;
    for (const Slot* other = slots_; other != slot; ++other) {
      if (other->state == State::free) continue;
      // Two keys have no byte in common: with their sum, that leaves no gap.
      if (slot->key_begin < other->key_begin + other->key_size && other->key_begin < slot->key_begin + slot->key_size)
        return false;
      if (slot->state != State::superseded && other->state != State::superseded && slot->kind == other->kind &&
          slot->token.bytes().string_view() == other->token.bytes().string_view() &&
          key_of(*slot).string_view() == key_of(*other).string_view())
        return false;
    }
  }
  return kept == kept_ && bytes == kept_bytes_ && waiting == waiting_ && deferred == deferred_ &&
         kept_ + reserved_ <= slot_count_ && kept_bytes_ + reserved_ * key_size_max <= keys_.size;
}

}  // namespace holdfast
