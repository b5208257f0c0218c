// SPDX-License-Identifier: MIT
//
// The client's life: configuration, fork, cancellation, keeping. Its waiting is in client_transport.cpp.
#include "holdfast/client.hpp"

#include <cerrno>

#include "addresses.hpp"
#include "client_hot.hpp"
#include "holdfast/core/ack_lane.hpp"
#include "holdfast/detail/hold_record.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/url.hpp"

namespace holdfast {

ClientBase::ClientBase(const Storage& storage) noexcept
    : NameQuestion{look_up_name}, Connection(storage.node), push_(storage.push) {
  use(random_source_, this);
}

ClientBase::~ClientBase() {
  HOLDFAST_ASSERT(records_ == 0);  // Its locks go first.
  if (forked()) return;  // In a child the connection is the parent's: its descriptor is closed, nothing is sent.
  if (keeper_ != nullptr) keeper_->detach(attachment_);
  leave();
}

// Nobody waits for the answer any more. Only what is there at once is of use: a server on this machine.
void ClientBase::leave() noexcept {
  receive_arrived();  // The connection may have ended.
  if (!stream_.is_open()) Connection::leave();
  close();
}

// ---- Connecting --------------------------------------------------------------------------------------------------

Status ClientBase::connect(BytesArgument url) noexcept {
  ClientConfig config;
  const char* reason = nullptr;
  if (const Status status = parse_url(url, config, &reason); status != Status::ok) {
    problem_ = {"url", reason};
    return status;
  }
  return connect(config);
}

Status ClientBase::connect(const ClientConfig& config) noexcept {
  if (const Status status = prepare(config); status != Status::ok) return status;
  const Status status = make_ready(Instant::max());
  return conclude(status);
}

// All of connect() but the connection.
Status ClientBase::prepare(const ClientConfig& config) noexcept {
  problem_ = validate(config);
  if (!problem_.found()) problem_ = misfit(config);
  if (!problem_.found() && config.acks != 0 && acker_ == nullptr)
    problem_ = {"acks", "the client needs an Acks object for it"};
  if (problem_.found()) return Status::invalid_argument;
  if (const Status status = open_sources(); status != Status::ok) return status;
  if (forked()) start_anew_in_child();
  close();
  if (branched_) [[unlikely]]
    brancher().table().configure(brancher(), config);
  else
    configure(config);
  settings_ = {.request_timeout = config.request_timeout,
               // The pause before an attempt is part of its time, and the resolver's is not.
               .connect_timeout = dialer_.named() ? Duration::max() : config.connect_timeout,
               .max_poll = config.max_poll,
               .acks_wait = acks_wait_of(config)};
  now_ = now();
  return Status::ok;
}

// Everything that a client needs from the system but its sockets.
Status ClientBase::open_sources() noexcept {
  Status status = random_source_.open();
  if (status == Status::ok) status = wake_.open();
  if (status != Status::ok) error_number_ = errno;
  return status;
}

bool ClientBase::look_up_name(NameQuestion& self, const char* host, std::uint16_t port) noexcept {
  auto& client = static_cast<ClientBase&>(self);
  SocketAddress found[addresses_max];
  const std::uint8_t count = look_up(host, port, found);
  client.now_ = now();
  client.take_addresses(found, count);
  return true;
}

void ClientBase::close() noexcept {
  if (branched_) [[unlikely]]
    brancher().table().each(*this, Branching::close, nullptr);
  (void)listen(true);
  push_.close(Subscription::State::closed);
  if (acker_ != nullptr) acker_->table().close(*acker_, false);
  if (stream_.is_open()) {
    now_ = now();
    look_and_transmit();
    close_transport();
    dispatch();
  }
  dialer_.abandon();
}

// Not ready, or idle for so long that it may not be any more.
Status ClientBase::make_ready(Instant deadline) noexcept {
  if (now_.never()) {
    error_number_ = errno;  // Of the clock, which was read last.
    return Status::system_error;
  }
  if (session_.ready()) probe_idle_connection();
  if (session_.ready()) return Status::ok;
  // The pause before an attempt is part of its time, and the resolver's is not.
  return bring_up(dialer_.named() ? deadline : earlier(deadline, now_ + config_.connect_timeout));
}

Status ClientBase::bring_up(Instant until) noexcept {
  for (;;) {
    work_connection();
    if (session_.ready()) return Status::ok;
    if (!dialer_.hopeful(now_)) return dialer_.failure();  // Nobody hammers a server that is down.
    if (cancelled()) return Status::cancelled;
    if (now_ >= until) {
      error_number_ = ETIMEDOUT;
      return Status::connect_failed;
    }
    wait_until(earlier(until, timeout()));
  }
}

// ---- Fork --------------------------------------------------------------------------------------------------------

// What the parent knows is not the child's: connection, compensations, holds, random bytes. Closing our copy of a
// descriptor leaves the parent's connection as it is.
void ClientBase::start_anew_in_child() noexcept {
  forget();
  wake_.close();
  push_.close(Subscription::State::inherited);
  if (acker_ != nullptr) acker_->table().close(*acker_, true);
  keeper_ = nullptr;
  task_ = nullptr;
  ear_ = nullptr;
  query_waiting_ = false;
  tending_since_ = Instant();
  cancel_.take();
  if (branched_) [[unlikely]]
    return brancher().table().each(*this, Branching::start_anew, nullptr);
  random_source_.start_anew();
  (void)wake_.open();  // Without a pipe cancel() works by its flag alone.
}

// ---- Cancellation and sleep --------------------------------------------------------------------------------------

std::size_t ClientBase::compensations_pending() const noexcept {
  std::size_t count = session_.compensations_pending();
  if (branched_) [[unlikely]]
    brancher().table().each(*this, Branching::count_pending, &count);
  return count;
}

std::uint32_t ClientBase::releases_dropped() const noexcept {
  std::uint32_t count = session_.compensations_dropped();
  if (branched_) [[unlikely]]
    brancher().table().each(*this, Branching::count_dropped, &count);
  return count;
}

void ClientBase::cancel() noexcept {
  cancel_.raise();
  wake_.wake();
}

void ClientBase::attach(Keeper* keeper) noexcept {
  if (forked()) start_anew_in_child();
  if (branched_) [[unlikely]]
    brancher().table().each(*this, Branching::attach, keeper);
  if (keeper_ != nullptr) keeper_->detach(attachment_);
  keeper_ = keeper;
  if (keeper_ != nullptr) keeper_->attach(attachment_);
}

// What is left to be taken back is the keeper's, too: the next call may never come.
Status ClientBase::conclude(Status status) noexcept {
  if (keeper_ != nullptr && session_.compensations_pending() != 0) [[unlikely]]
    keeper_->take_back(*this);
  const bool final = status == Status::ok || status == Status::lock_lost || status == Status::not_held;
  return signal_->conclude(status, final);
}

// What is due of the connection and of the holds that are kept. A call that waits comes by here before each of its sleeps.
void ClientBase::work() noexcept {
  work_connection();
  (void)tend_due();
  (void)listen();
  tell_tended();
  if (branched_) [[unlikely]]
    brancher().table().each(*this, Branching::tell, nullptr);
}

Instant ClientBase::next_timeout() const noexcept { return earlier(timeout(), tend_next(renewals_leave())); }

// ---- Keeping holds alive without a thread ------------------------------------------------------------------------

Instant ClientBase::tend_next(bool renewals) const noexcept {
  Instant next = Instant::max();
  for (const HoldRecord* record = tended_first_; record != nullptr; record = record->tended_next_) {
    if (record->incarnation_ != random_source_.incarnation()) continue;  // The parent's.
    const LockMachine& machine = record->machine_;
    next = earlier(next, machine.poll_timeout());
    if (renewals && record->may_renew(now_) && !record->calls()) next = earlier(next, machine.renewal_due());
  }
  return next;
}

bool ClientBase::tended_waiting(Instant due) const noexcept {
  for (const HoldRecord* record = tended_first_; record != nullptr; record = record->tended_next_)
    if (record->machine_.renewing(due)) return true;  // Not a release that was posted: that may take what it takes.
  return false;
}

Instant ClientBase::tend() noexcept {
  if (begin() != Status::ok) return Instant::max();
  signal_->begin_spared();
  tend_holds();
  const Instant look = listen();
  signal_->end_spared();
  const bool leave = renewals_leave();
  Instant next = session_.compensations_pending() == 0 ? tend_next(leave) : next_timeout();
  next = earlier(next, look);
  if (branched_) [[unlikely]]
    brancher().table().each(*this, Branching::tend, &next);
  // A renewal that is on its way is due no more. Its answer is to be read in time; and so is what makes room for the others.
  if (tended_waiting(now_)) return earlier(next, now_ + retry_delay_min);
  return leave ? next : earlier(next, later(tend_next(), now_ + retry_delay_min));
}

[[gnu::noinline]] bool ClientBase::renewals_leave() const noexcept {
  return !dialer_.connecting() && (!session_.ready() || session_.has_room(false, request_size_max));
}

// Sends the renewals that were due at `start`, at most so many. Their number.
int ClientBase::send_renewals(Instant start, int most) noexcept {
  int sent = 0;
  for (HoldRecord* record = tended_first_; record != nullptr && sent < most; record = record->tended_next_) {
    if (record->incarnation_ != random_source_.incarnation()) continue;
    record->catch_up();
    LockMachine& machine = record->machine_;
    if (!renewals_leave()) continue;  // Refused now, it would be put off.
    // What is asked for by a call of its own is not asked for besides.
    if (!machine.held(now_) || machine.renewal_due() > start || !record->may_renew(now_) || record->calls()) continue;
    if (machine.renew(now_, record->request_deadline()) != Status::ok) continue;
    record->settle();  // Without a connection, too: the machine is told and tries again.
    ++sent;
  }
  return sent;
}

bool ClientBase::tend_due() noexcept {
  if (tended_first_ == nullptr || tend_next(renewals_leave()) > now_) return false;
  if (send_renewals(now_, in_flight_max / 2) == 0) return false;
  look_and_transmit();  // Or the next sleep would end at once, to do so.
  return true;
}

// What was due at the start, in portions that find room in the session; their replies are waited for together. What falls
// due meanwhile is asked for and not waited for: of many holds, one always is.
void ClientBase::tend_holds() noexcept {
  constexpr int portion = in_flight_max / 2;
  const Instant start = now_;
  // What was to be taken back may have been, or waits for the next connection.
  const bool owes = session_.compensations_pending() != 0;
  if (owes && session_.ready()) probe_idle_connection();
  if (owes || tend_next() <= start) (void)ensure_ready(start + config_.request_timeout);
  int sent = 0;
  do {
    tending_since_ = start;
    sent = send_renewals(start, portion);
    if (sent != 0 || tended_waiting(start)) pump(nullptr);  // Another call may have asked.
    tending_since_ = Instant();
  } while (sent != 0 && !cancelled());
  tell_tended();
}

// A callback may release, acquire or destroy any lock: after each, the list is read anew.
void ClientBase::tell_tended() noexcept {
  for (HoldRecord* record = tended_first_; record != nullptr;) {
    HoldRecord* const next = record->tended_next_;
    const bool told = record->keeping_.has_news();
    record->tell();
    record = told ? tended_first_ : next;
  }
}

}  // namespace holdfast
