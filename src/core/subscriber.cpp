// SPDX-License-Identifier: MIT
#include "holdfast/core/subscriber.hpp"

#include "holdfast/core/topology.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/proto/server_error.hpp"

namespace holdfast {

namespace {

bool is_farewell(Status status) noexcept { return status == Status::too_many_clients || status == Status::denied; }

}  // namespace

// ---- Construction ------------------------------------------------------------------------------------------------

Subscriber::Subscriber(const SubscriberSettings& settings, const Storage& storage) noexcept
    : storage_(storage), settings_(settings), parser_(storage.receive, storage.nodes, storage.node_count) {
  HOLDFAST_ASSERT(storage.transmit.size >= subscriber_transmit_size_max && storage.waiter_count != 0 &&
                  storage.waiter_count <= UINT32_MAX / sizeof(Waiter));
  empty_table();
}

// Every place is free. The first of the table is taken first.
void Subscriber::empty_table() noexcept {
  waiting_ = free_ = 0;
  queues_[owed] = queues_[stirred] = {};
  for (Waiter* waiter = waiters().end(); waiter-- != waiters().begin();) {
    waiter->first = waiter->queued[owed] = waiter->queued[stirred] = 0;
    waiter->asked = unasked;
    waiter->taken = waiter->addressed = false;
    waiter->next = free_;
    free_ = place_of(*waiter);
  }
}

void Subscriber::configure(const SubscriberSettings& settings) noexcept {
  HOLDFAST_ASSERT(state_ == SubscriberState::closed);
  settings_ = settings;
}

[[gnu::noinline]] void Subscriber::fail(Status why, ByteView text) noexcept {
  state_ = SubscriberState::failed;
  failure_ = why;
  failure_text_ = text;  // In the receive buffer, which is not touched before the next connection.
}

// ---- What is sent ------------------------------------------------------------------------------------------------

std::uint32_t Subscriber::tag_of(Command command, ByteView channel) noexcept {
  std::uint32_t hash = 2166136261U;  // FNV-1a: a mix-up is to be noticed, not an attack.
  for (const char byte : channel) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619U;
  return (hash & ~std::uint32_t{7}) | static_cast<std::uint32_t>(command);
}

// Without its empty arguments. False: there is no room now, and nothing has changed.
bool Subscriber::send(Command command, ByteView name, ByteView first, ByteView second, Instant now) noexcept {
  if (sent_ - answered_ == asked_max) return false;
  if (transmit_begin_ != 0) {  // Only after a short write.
    std::memmove(storage_.transmit.data, storage_.transmit.data + transmit_begin_, unsent());
    transmit_end_ -= transmit_begin_;
    transmit_begin_ = 0;
  }
  Argument arguments[3] = {name};
  std::size_t count = 1;
  if (!first.empty()) arguments[count++] = first;
  if (!second.empty()) arguments[count++] = second;
  std::size_t size = 0;
  const MutableBytes space = {storage_.transmit.data + transmit_end_, storage_.transmit.size - transmit_end_};
  if (encode_command(space, {arguments, count}, size) != Status::ok) return false;
  if (sent_ == answered_) asked_at_ = now;
  transmit_end_ += static_cast<std::uint32_t>(size);
  stream_end_ += static_cast<std::uint32_t>(size);
  asked_[++sent_ % asked_max] = {tag_of(command, first), stream_end_};
  return true;
}

// Writes what is owed, as far as there is room. Who is named here may be owed nothing any more.
[[gnu::noinline]] void Subscriber::flush(Instant now) noexcept {
  for (; queues_[owed].first != 0; (void)pop(owed)) {
    Waiter& waiter = at(queues_[owed].first);
    if (waiter.taken ? waiter.asked != unasked : unused(waiter) || waiter.addressed) continue;
    const ByteView channel = waiter.channel.bytes();
    const Command command = waiter.taken ? Command::subscribe : Command::unsubscribe;
    ByteView name = waiter.taken ? "SSUBSCRIBE" : "SUNSUBSCRIBE";
    if (!sharded(channel)) name = name.slice(1);
    if (!send(command, name, channel, {}, now)) return;
    if (!waiter.taken) {
      release(waiter, chain_of(channel));
      continue;
    }
    for (Waiter* peer = find(channel, chain_of(channel)); peer != nullptr; peer = find(channel, peer->next))
      peer->asked = static_cast<std::uint8_t>(pending + sent_ % asked_max);
  }
}

// ---- The table ---------------------------------------------------------------------------------------------------

[[gnu::noinline]] Subscriber::Waiter* Subscriber::find(ByteView channel, std::uint32_t place) const noexcept {
  for (; place != 0; place = at(place).next)
    if (at(place).channel.bytes() == channel) return &at(place);
  return nullptr;
}

// Out of its chain, which begins with `first`, to those that are free.
[[gnu::noinline]] void Subscriber::release(Waiter& waiter, std::uint32_t& first) noexcept {
  (first == place_of(waiter) ? first : at(waiter.previous).next) = waiter.next;
  if (waiter.next != 0)
    at(waiter.next).previous = waiter.previous;
  else if (first != 0)
    at(first).previous = waiter.previous;
  waiter.asked = unasked;
  waiter.next = free_;
  free_ = place_of(waiter);
}

[[gnu::noinline]] void Subscriber::push(int queue, Waiter& waiter) noexcept {
  if (waiter.queued[queue] != 0) return;
  const std::uint32_t place = place_of(waiter);
  Queue& its = queues_[queue];
  waiter.queued[queue] = place;
  (its.first == 0 ? its.first : at(its.last).queued[queue]) = place;
  its.last = place;
}

Subscriber::Waiter* Subscriber::pop(int queue) noexcept {
  std::uint32_t& first = queues_[queue].first;
  if (first == 0) return nullptr;
  Waiter& waiter = at(first);
  first = waiter.queued[queue] == first ? 0 : waiter.queued[queue];
  waiter.queued[queue] = 0;
  return &waiter;
}

bool Subscriber::invariants() const noexcept {
  std::size_t free = 0;
  std::size_t chained = 0;
  std::size_t taken = 0;
  for (std::uint32_t place = free_; place != 0; place = at(place).next)
    if (!unused(at(place)) || ++free > storage_.waiter_count) return false;
  for (const Waiter& home : waiters()) {
    taken += home.taken ? 1 : 0;
    const std::uint32_t last = home.first == 0 ? 0 : at(home.first).previous;
    std::uint32_t before = last;
    for (std::uint32_t place = home.first; place != 0; place = at(place).next) {
      const Waiter& waiter = at(place);
      if (++chained > storage_.waiter_count || waiter.previous != before || unused(waiter)) return false;
      if (&chain_of(waiter.channel.bytes()) != &home.first) return false;
      before = place;
    }
    if (before != last) return false;
  }
  return taken == waiting_ && free + chained == storage_.waiter_count;
}

// ---- Waiters -----------------------------------------------------------------------------------------------------

Subscriber::Waiter* Subscriber::enter(const Announcement& announcement, Key key, Instant now) noexcept {
  const DerivedName channel(announcement.channel, key);
  std::uint32_t& first = chain_of(channel.bytes());
  // Who waits there already, or whose subscription is there still: its UNSUBSCRIBE is only owed, and forgotten.
  Waiter* place = find(channel.bytes(), first);
  if (place == nullptr || place->taken) {
    if (free_ == 0 && state_ == SubscriberState::open && waiting_ != storage_.waiter_count) {
      // An UNSUBSCRIBE that is owed keeps a place, and so does a subscription that has stayed.
      for (Waiter& waiter : waiters()) {
        if (waiter.taken) continue;
        waiter.addressed = false;
        push(owed, waiter);
      }
      flush(now);
    }
    if (free_ == 0) return nullptr;
    const std::uint8_t asked = place == nullptr ? unasked : place->asked;  // Read here: flush() may have asked.
    place = &at(free_);
    free_ = place->next;
    place->channel = channel;
    place->asked = asked;
    place->next = 0;
    if (first == 0) {
      first = place_of(*place);
    } else {
      place->previous = at(first).previous;
      at(place->previous).next = place_of(*place);
    }
    at(first).previous = place_of(*place);
  }
  if (place->asked == is_refused) push(stirred, *place);
  push(owed, *place);
  place->taken = true;
  place->woken = false;
  place->owes_wake = false;
  place->missed = false;
  place->wakes_one = announcement.wakes_one;
  place->wakes_all = announcement.wakes_all;
  place->counts = announcement.counts;
  place->addressed = announcement.addressed;
  ++waiting_;
  return place;
}

bool Subscriber::stands() const noexcept {
  for (const Waiter& waiter : waiters())
    if (waiter.addressed && confirmed(waiter)) return true;
  return false;
}

void Subscriber::begin_try(Waiter& waiter) noexcept {
  HOLDFAST_ASSERT(waiter.taken);
  waiter.owes_wake |= waiter.woken;
  waiter.woken = false;
}

void Subscriber::end_try(Waiter& waiter) noexcept {
  HOLDFAST_ASSERT(waiter.taken);
  waiter.owes_wake = false;
}

void Subscriber::leave(Waiter& waiter, bool with_lock) noexcept {
  HOLDFAST_ASSERT(waiter.taken);
  waiter.taken = false;
  --waiting_;
  // With the lock the wake is used; its release will say the next. A message that counts and came since its try was made may tell
  // of another grant that can be had.
  const bool passes_on = !with_lock ? waiter.woken || waiter.owes_wake : waiter.woken && waiter.counts;
  const ByteView channel = waiter.channel.bytes();
  if (passes_on && !waiter.addressed) wake(channel, {&waiter.wakes_one, 1});
  // The last of its channel keeps the subscription, for the UNSUBSCRIBE.
  std::uint32_t& first = chain_of(channel);
  const Waiter* peer = find(channel, first);
  if (peer == &waiter) peer = find(channel, waiter.next);
  if (peer != nullptr || unused(waiter)) return release(waiter, first);
  push(owed, waiter);
}

// Of those of the channel that are not woken, the one that has waited longest, or all, or none. They have one announcement.
void Subscriber::wake(ByteView channel, ByteView payload) noexcept {
  const char letter = payload.size() == 1 ? payload[0] : '\0';
  for (Waiter* waiter = find(channel, chain_of(channel)); waiter != nullptr; waiter = find(channel, waiter->next)) {
    if (!waiter->taken || waiter->woken) continue;
    const bool one = !waiter->addressed && letter == waiter->wakes_one;
    if (!one &&
        !(waiter->addressed ? waiter->token->bytes() == payload : letter == waiter->wakes_all || waiter->counts))
      continue;
    waiter->woken = true;
    push(stirred, *waiter);
    if (one) return;
  }
}

Subscriber::Waiter* Subscriber::poll_stirred() noexcept {
  Waiter* waiter = pop(stirred);
  while (waiter != nullptr && !waiter->taken) waiter = pop(stirred);
  return waiter;
}

// ---- What is received --------------------------------------------------------------------------------------------

void Subscriber::handle_received(std::size_t count, Instant now) noexcept {
  tell_bytes(Seen::received, count);
  parser_.handle_received(count);
  last_input_ = now;
  while (state_ == SubscriberState::open) {
    RespValue value;
    const ParseResult result = parser_.poll_value(value);
    if (result == ParseResult::need_more) return;
    if (result == ParseResult::value)
      handle_value(value);
    else
      fail(Status::protocol_error, std::string_view(parser_.error()));
  }
}

void Subscriber::handle_value(const RespValue& value) noexcept {
  // An array of two or three begins with what it is, and of which channel; the third is a payload or a count.
  ByteView kind;
  ByteView channel;
  RespValue third;
  if (value.count() == 2 || value.count() == 3) {
    const RespValue& first = value.at(0);
    const RespValue& second = value.at(1);
    if (value.count() == 3) third = value.at(2);
    if (first.is(RespKind::bulk) && second.is(RespKind::bulk)) {
      kind = first.text();
      channel = second.text();
    }
  }
  if (settings_.shards != nullptr && kind != "subscribe" && kind.begins_with("s")) kind = kind.slice(1);
  if (third.is(RespKind::bulk) && kind == "message") return wake(channel, third.text());
  // Anything else is the reply to the oldest command, which must have left as a whole.
  const Asked& oldest = asked_[(answered_ + 1) % asked_max];
  if (sent_ == answered_ || stream_end_ - oldest.end < unsent()) return handle_unasked(value);
  const auto command = static_cast<Command>(oldest.tag & 7);
  if (value.is(RespKind::error)) return handle_error(value.text(), command);
  bool good = false;
  switch (command) {
    case Command::auth:
    case Command::set_name: good = value.is_simple("OK"); break;
    case Command::subscribe: good = third.is(RespKind::integer) && kind == "subscribe"; break;
    case Command::unsubscribe: good = third.is(RespKind::integer) && kind == "unsubscribe"; break;
    case Command::ping: good = value.is_simple("PONG") || (value.count() == 2 && kind == "pong"); break;
  }
  // A PING has an empty argument where the others have their channel.
  if (command >= Command::subscribe) good &= tag_of(command, channel) == oldest.tag;
  if (!good) return fail(Status::protocol_error, "a reply of a shape that was not asked for");
  settle(true);
}

// A server that is full or protected says so before it is asked anything; it may look like a reply.
void Subscriber::handle_unasked(const RespValue& value) noexcept {
  if (value.is(RespKind::error)) {
    const Status status = classify_error(value.text()).status;
    if (is_farewell(status)) return fail(status, value.text());
  }
  // So a server says that the slot of a channel has left it.
  fail(settings_.shards != nullptr ? Status::moved : Status::protocol_error, "a reply that nobody asked for");
}

void Subscriber::handle_error(ByteView line, Command command) noexcept {
  const Status status = classify_error(line).status;
  // A name is a courtesy. A refused PING is a sign of life, too.
  if ((command == Command::set_name && !is_farewell(status)) ||
      (status == Status::no_permission && (command == Command::subscribe || command == Command::ping)))
    return settle(false);
  fail(status, line);
}

bool Subscriber::sharded(ByteView channel) const noexcept {
  return settings_.shards != nullptr && settings_.shards->table().shards(*settings_.shards, channel);
}

// The oldest command has its reply.
void Subscriber::settle(bool granted) noexcept {
  ++answered_;
  const std::uint64_t number = answered_ % asked_max;
  std::uint32_t& first = chain_of(asked_[number].tag);
  for (std::uint32_t place = first; place != 0;) {
    Waiter& waiter = at(place);
    place = waiter.next;
    if (waiter.asked != pending + number) continue;
    push(stirred, waiter);
    waiter.asked = granted ? is_confirmed : is_refused;
    if (granted) {
      established_ = true;
      waiter.woken |= waiter.missed;
    } else if (!waiter.taken) {
      release(waiter, first);
    }
  }
}

// ---- The life of a connection ------------------------------------------------------------------------------------

// Nothing is asked or to be sent.
void Subscriber::clear() noexcept {
  state_ = SubscriberState::closed;
  established_ = false;
  sent_ = answered_ = 0;
  transmit_begin_ = transmit_end_ = 0;
}

void Subscriber::handle_connected(Instant now) noexcept {
  HOLDFAST_ASSERT(state_ == SubscriberState::closed);
  parser_.reset();
  state_ = SubscriberState::open;
  failure_ = Status::ok;
  failure_text_ = {};
  last_input_ = now;
  for (Waiter& waiter : waiters()) {
    if (!waiter.taken) continue;
    waiter.asked = unasked;
    push(owed, waiter);
  }
  bool written = true;
  if (!settings_.password.empty()) written = send(Command::auth, "AUTH", settings_.user, settings_.password, now);
  if (!settings_.client_name.empty())
    written &= send(Command::set_name, "CLIENT", "SETNAME", settings_.client_name, now);
  HOLDFAST_ASSERT(written);
}

void Subscriber::handle_closed() noexcept {
  if (state_ == SubscriberState::closed) return;
  if (failure_ == Status::ok) failure_ = Status::transport_closed;
  for (Waiter& waiter : waiters()) {
    if (waiter.taken) {
      waiter.missed |= waiter.asked == is_refused || waiter.asked == is_confirmed;
      if (waiter.asked != is_refused) waiter.asked = unasked;  // That is told until the next connection.
      // Who waits tries at once: so the client learns where the slot is, and the next connection goes there.
      waiter.woken |= failure_ == Status::moved;
      push(stirred, waiter);
    } else if (!unused(waiter)) {
      release(waiter, chain_of(waiter.channel.bytes()));
    }
  }
  clear();
}

void Subscriber::forget() noexcept {
  empty_table();
  clear();
  failure_ = Status::not_connected;
  failure_text_ = {};
}

Instant Subscriber::poll_timeout() const noexcept {
  if (state_ != SubscriberState::open) return Instant::max();
  if (sent_ != answered_) return later(asked_at_, last_input_) + settings_.stall_timeout;
  return waiting_ != 0 ? last_input_ + settings_.heartbeat : Instant::max();
}

void Subscriber::handle_timeout(Instant now) noexcept {
  if (state_ != SubscriberState::open || now < poll_timeout()) return;
  if (sent_ != answered_) return fail(Status::timed_out, "nothing was received for too long");
  const bool written = send(Command::ping, "PING", {}, {}, now);
  HOLDFAST_ASSERT(written);  // What was answered has left: the buffer is empty.
}

}  // namespace holdfast
