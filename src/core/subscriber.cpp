// SPDX-License-Identifier: MIT
#include "holdfast/core/subscriber.hpp"

#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/proto/server_error.hpp"

namespace holdfast {

namespace {

bool is_farewell(Status status) noexcept { return status == Status::too_many_clients || status == Status::denied; }

}  // namespace

// ---- Construction ------------------------------------------------------------------------------------------------

Subscriber::Subscriber(const SubscriberSettings& settings, const Storage& storage) noexcept
    : storage_(storage), settings_(settings), parser_(storage.receive, storage.nodes, storage.node_count) {
  HOLDFAST_ASSERT(storage.transmit.size >= subscriber_transmit_size_max && storage.waiter_count != 0);
  for (Waiter& waiter : waiters()) {
    waiter.asked = 0;
    waiter.taken = waiter.missed = waiter.refused = waiter.stirred = waiter.addressed = false;
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

// Writes what is owed, as far as there is room.
[[gnu::noinline]] void Subscriber::flush(Instant now) noexcept {
  for (Waiter& waiter : waiters()) {
    const ByteView channel = waiter.channel.bytes();
    if (waiter.taken && waiter.asked == 0 && !waiter.refused) {
      if (!send(Command::subscribe, "SUBSCRIBE", channel, {}, now)) return;
      for (Waiter& peer : waiters())
        if (peer.taken && peer.channel.bytes() == channel) peer.asked = sent_;
    } else if (!waiter.taken && waiter.asked != 0 && !waiter.addressed) {
      if (!send(Command::unsubscribe, "UNSUBSCRIBE", channel, {}, now)) return;
      waiter.asked = 0;
    }
  }
  owing_ = false;
}

// ---- Waiters -----------------------------------------------------------------------------------------------------

// Where a waiter of the channel can stand, nullptr where there is no place, and in `peer` one who stands there already
// or whose subscription does still.
Subscriber::Waiter* Subscriber::find_place(ByteView channel, const Waiter*& peer) const noexcept {
  Waiter* place = nullptr;
  for (Waiter& waiter : waiters()) {
    if (!waiter.taken && waiter.asked == 0) {
      if (place == nullptr) place = &waiter;
    } else if (waiter.channel.bytes() == channel) {
      peer = &waiter;
      if (!waiter.taken) return &waiter;  // Its UNSUBSCRIBE is only owed: forgotten.
    }
  }
  return place;
}

Subscriber::Waiter* Subscriber::enter(const Announcement& announcement, Key key, Instant now) noexcept {
  const DerivedName channel(announcement.channel, key);
  const Waiter* peer = nullptr;
  Waiter* place = find_place(channel.bytes(), peer);
  if (place == nullptr && state_ == SubscriberState::open) {
    // An UNSUBSCRIBE that is owed keeps a place, and so does a subscription that has stayed.
    for (Waiter& waiter : waiters())
      if (!waiter.taken) waiter.addressed = false;
    flush(now);
    place = find_place(channel.bytes(), peer);
  }
  if (place == nullptr) return nullptr;
  if (place != peer) {
    place->channel = channel;
    place->asked = peer == nullptr ? 0 : peer->asked;
    place->refused = peer != nullptr && peer->refused;
  }
  if (place->refused) stir(*place);
  place->order = ++entered_;
  place->taken = true;
  place->woken = false;
  place->owes_wake = false;
  place->missed = false;
  place->wakes_one = announcement.wakes_one;
  place->wakes_all = announcement.wakes_all;
  place->counts = announcement.counts;
  place->addressed = announcement.addressed;
  ++waiting_;
  owing_ = true;
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
  if (passes_on && !waiter.addressed) wake(waiter.channel.bytes(), {&waiter.wakes_one, 1});
  // The last of its channel keeps the subscription, for the UNSUBSCRIBE.
  for (const Waiter& peer : waiters())
    if (peer.taken && peer.channel.bytes() == waiter.channel.bytes()) waiter.asked = 0;
  owing_ = true;
}

// Of those of the channel that are not woken, the one that has waited longest, or all, or none.
void Subscriber::wake(ByteView channel, ByteView payload) noexcept {
  const char letter = payload.size() == 1 ? payload[0] : '\0';
  Waiter* first = nullptr;
  for (Waiter& waiter : waiters()) {
    if (!waiter.taken || waiter.woken || !(waiter.channel.bytes() == channel)) continue;
    if (!waiter.addressed && letter == waiter.wakes_one) {
      if (first == nullptr || waiter.order < first->order) first = &waiter;
    } else if (waiter.addressed ? waiter.token->bytes() == payload : letter == waiter.wakes_all || waiter.counts) {
      waiter.woken = true;
      stir(waiter);
    }
  }
  if (first == nullptr) return;
  first->woken = true;
  stir(*first);
}

void Subscriber::stir(Waiter& waiter) noexcept {
  if (waiter.stirred) return;
  waiter.stirred = true;
  waiter.next_stirred = stirred_;
  stirred_ = &waiter;
}

Subscriber::Waiter* Subscriber::poll_stirred() noexcept {
  while (stirred_ != nullptr) {
    Waiter& waiter = *stirred_;
    stirred_ = waiter.next_stirred;
    waiter.stirred = false;
    if (waiter.taken) return &waiter;
  }
  return nullptr;
}

// ---- What is received --------------------------------------------------------------------------------------------

void Subscriber::handle_received(std::size_t count, Instant now) noexcept {
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
  if (third.is(RespKind::bulk) && kind == "message") {
    return wake(channel, third.text());
  }
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
  fail(Status::protocol_error, "a reply that nobody asked for");
}

void Subscriber::handle_error(ByteView line, Command command) noexcept {
  const Status status = classify_error(line).status;
  // A name is a courtesy. A refused PING is a sign of life, too.
  if ((command == Command::set_name && !is_farewell(status)) ||
      (status == Status::no_permission && (command == Command::subscribe || command == Command::ping)))
    return settle(false);
  fail(status, line);
}

// The oldest command has its reply.
void Subscriber::settle(bool granted) noexcept {
  ++answered_;
  for (Waiter& waiter : waiters()) {
    if (waiter.asked != answered_) continue;
    stir(waiter);
    if (granted) {
      established_ = true;
      waiter.woken |= waiter.missed;
    } else {
      waiter.asked = 0;
      waiter.refused = true;
    }
  }
}

// ---- The life of a connection ------------------------------------------------------------------------------------

// Nothing is subscribed, asked or to be sent.
void Subscriber::clear() noexcept {
  state_ = SubscriberState::closed;
  established_ = false;
  sent_ = answered_ = 0;
  transmit_begin_ = transmit_end_ = 0;
  for (Waiter& waiter : waiters()) waiter.asked = 0;
}

void Subscriber::handle_connected(Instant now) noexcept {
  HOLDFAST_ASSERT(state_ == SubscriberState::closed);
  parser_.reset();
  state_ = SubscriberState::open;
  failure_ = Status::ok;
  failure_text_ = {};
  last_input_ = now;
  owing_ = true;
  for (Waiter& waiter : waiters()) waiter.refused = false;
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
    waiter.missed |= waiter.refused || answered(waiter);
    stir(waiter);
  }
  clear();
}

void Subscriber::forget() noexcept {
  for (Waiter& waiter : waiters()) waiter.taken = false;
  waiting_ = 0;
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
