// SPDX-License-Identifier: MIT
//
// The client's life: configuration, randomness, fork, cancellation. Its sockets are in client_transport.cpp.
#include "holdfast/client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "addresses.hpp"
#include "client_hot.hpp"
#include "decimal.hpp"
#include "holdfast/assert.hpp"
#include "holdfast/hold_record.hpp"
#include "holdfast/url.hpp"

namespace holdfast {

namespace {

void close_if_open(int& descriptor) noexcept {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

}  // namespace

Client::Client() noexcept : session_(SessionSettings(), SessionBuffers::storage_of(&buffers_)) {}

Client::Client(MutableBytes transmit) noexcept
    : session_(SessionSettings(), [&] {
        Session::Storage storage = SessionBuffers::storage_of(&buffers_);
        storage.transmit = transmit;
        return storage;
      }()) {}

Client::~Client() {
  // In a child the connection is the parent's: its descriptor is closed, nothing is sent.
  if (!forked()) leave();
  close_if_open(socket_);
  close_if_open(push_socket_);
  close_if_open(wake_);
  close_if_open(wake_write_);
  if (page_ != nullptr) ::munmap(page_, sizeof(WipedPage));
  ::explicit_bzero(&config_.password, sizeof config_.password);
}

// Nobody waits for the answer any more. Only what is there at once is of use: a server on this machine.
void Client::leave() noexcept {
  receive_arrived();  // The connection may have ended.
  if (compensations_pending() != 0 && socket_ < 0 && !dialer_.asks_first()) {
    now_ = now();
    dialer_.hurry();
    dial_on();
    (void)wait_until(now_, -1, 0);
    session_.skip_handshake();
  }
  close();
}

Instant Client::now() noexcept {
#ifdef CLOCK_BOOTTIME
  constexpr clockid_t clock = CLOCK_BOOTTIME;
#else
  constexpr clockid_t clock = CLOCK_MONOTONIC;
#endif
  timespec time;
  if (::clock_gettime(clock, &time) != 0) [[unlikely]]
    return Instant::max();
  return Instant::from_nanoseconds(static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec);
}

// ---- Connecting --------------------------------------------------------------------------------------------------

Status Client::connect(BytesArgument url) noexcept {
  ClientConfig config;
  const char* reason = nullptr;
  if (const Status status = parse_url(url, config, &reason); status != Status::ok) {
    problem_ = {"url", reason};
    return status;
  }
  return connect(config);
}

Status Client::connect(const ClientConfig& config) noexcept {
  if (const Status status = prepare(config); status != Status::ok) return status;
  const Status status = make_ready(Instant::max());
  return conclude(status, status == Status::ok);
}

// All of connect() but the connection.
Status Client::prepare(const ClientConfig& config) noexcept {
  problem_ = validate(config);
  if (problem_.found()) return Status::invalid_argument;
  if (const Status status = ensure_page(); status != Status::ok) return status;
  if (forked()) start_anew_in_child();
  close();
  config_ = config;
  configured_ = true;
  const bool local = !config_.socket_path.empty();
  const bool known = local || literal_address(config_.host.c_str(), config_.port, addresses_[0]);
  dialer_.start(config_.connect_timeout, known ? 1 : 0, !known);
  session_.configure(settings());
  now_ = now();
  return Status::ok;
}

Status Client::prepare_like(const Client& other) noexcept {
  if (const Status status = ensure_page(); status != Status::ok) return status;
  close();
  drain_wakes();
  config_ = other.config_;
  configured_ = true;
  std::memcpy(addresses_, other.addresses_, sizeof addresses_);
  const Dialer& dialer = other.dialer_;
  dialer_.start(config_.connect_timeout, dialer.address_count(), dialer.named(), dialer.address());
  session_.configure(settings());
  return Status::ok;
}

SessionSettings Client::settings() const noexcept {
  return {.user = config_.user.view(),
          .password = config_.password.view(),
          .client_name = config_.client_name.view(),
          .database = config_.database,
          .stall_timeout = config_.stall_timeout,
          .native_delete = config_.native_delete};
}

void Client::close() noexcept {
  close_push(PushState::closed);
  if (socket_ >= 0) {
    now_ = now();
    look_and_transmit();
    close_transport();
    dispatch();
  }
  dialer_.abandon();
}

// The subscriber learns of it when it is needed next.
void Client::close_push(PushState state) noexcept {
  close_if_open(push_socket_);
  if (push_state_ != PushState::absent) push_state_ = state;
}

ByteView Client::error_text() const noexcept { return session_.failure_text(); }

// Not ready, or idle for so long that it may not be any more.
Status Client::make_ready(Instant deadline) noexcept {
  if (now_ == Instant::max()) {
    error_number_ = errno;  // Of the clock, which was read last.
    return Status::system_error;
  }
  if (session_.ready()) probe_idle_connection();
  if (session_.ready()) return Status::ok;
  // The pause before an attempt is part of its time, and the resolver's is not.
  return bring_up(dialer_.named() ? deadline : earlier(deadline, now_ + config_.connect_timeout));
}

Status Client::bring_up(Instant until) noexcept {
  for (;;) {
    work_connection();
    if (session_.ready()) return Status::ok;
    if (!dialer_.hopeful(now_)) return dialer_.failure();  // Nobody hammers a server that is down.
    if (cancelled()) return Status::cancelled;
    if (now_ >= until) {
      error_number_ = ETIMEDOUT;
      return Status::connect_failed;
    }
    wait_until(earlier(until, connection_timeout()));
  }
}

// ---- Randomness and fork -----------------------------------------------------------------------------------------

// The page, and the pipe that cancel() writes to: everything that a client needs from the system but its socket.
Status Client::ensure_page() noexcept {
  if (page_ == nullptr) {
    void* const page = ::mmap(nullptr, sizeof(WipedPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
      error_number_ = errno;
      return Status::system_error;
    }
    page_ = static_cast<WipedPage*>(page);
    page_->alive = 1;
    page_->pool_left = 0;
    page_->owner = ::getpid();
#ifdef MADV_WIPEONFORK
    if (::madvise(page, sizeof(WipedPage), MADV_WIPEONFORK) == 0) page_->owner = 0;
#endif
  }
  if (wake_ < 0) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
      error_number_ = errno;
      return Status::system_error;
    }
    wake_ = ends[0];
    wake_write_ = ends[1];
  }
  return Status::ok;
}

// What the parent knows is not the child's: connection, compensations, holds, random bytes. Closing our copy of a
// descriptor leaves the parent's connection as it is.
void Client::start_anew_in_child() noexcept {
  close_if_open(socket_);
  close_if_open(wake_);
  close_if_open(wake_write_);
  close_push(PushState::inherited);
  session_.forget();
  keeper_ = nullptr;
  query_waiting_ = false;
  ttl_wanted_ = false;
  tending_since_ = Instant();
  cancel_.take();
  dialer_.abandon();
  incarnation_.store(incarnation_.load() + 1);
  const bool wiped = page_->owner == 0;
  page_->pool_left = 0;
  page_->client_id[0] = '\0';
  page_->owner = wiped ? 0 : ::getpid();
  (void)ensure_page();  // Without a pipe cancel() works by its flag alone.
  page_->alive = 1;
}

// `uuid:ordinal`. The uuid (version 4) stands in the page that is wiped in a forked child: a child has one of its own.
Status Client::draw_ordinal(Token& token) noexcept {
  if (page_->client_id[0] == '\0') {
    unsigned char random[token_random_size];
    if (const Status status = draw_random(random, sizeof random); status != Status::ok) return status;
    random[6] = static_cast<unsigned char>((random[6] & 0x0f) | 0x40);
    random[8] = static_cast<unsigned char>((random[8] & 0x3f) | 0x80);
    char* at = page_->client_id;
    for (std::size_t index = 0; index < sizeof random; ++index) {
      if (index == 4 || index == 6 || index == 8 || index == 10) *at++ = '-';
      *at++ = "0123456789abcdef"[random[index] >> 4];
      *at++ = "0123456789abcdef"[random[index] & 0x0f];
    }
  }
  char field[token_size_max];
  std::memcpy(field, page_->client_id, sizeof page_->client_id);
  field[sizeof page_->client_id] = ':';
  char* const digits = field + sizeof page_->client_id + 1;
  const char* const end = write_decimal(digits, ++ordinal_);
  token = Token({field, static_cast<std::size_t>(end - field)});
  return Status::ok;
}

std::uint16_t Client::random() noexcept {
  std::uint16_t number = UINT16_MAX;
  unsigned char bytes[2];
  if (draw_random(bytes, sizeof bytes) == Status::ok) std::memcpy(&number, bytes, sizeof number);
  return number;
}

// Half to all of the delay.
Duration Client::jittered(Duration delay) noexcept { return delay / 2 + delay / 2 * random() / UINT16_MAX; }

Status Client::refill_pool() noexcept {
  ssize_t count = 0;
  do count = ::getrandom(page_->pool, entropy_pool_size, 0);
  while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(entropy_pool_size)) {
    error_number_ = errno;
    return Status::no_entropy;
  }
  page_->pool_left = entropy_pool_size;
  return Status::ok;
}

// ---- Cancellation and sleep --------------------------------------------------------------------------------------

void Client::cancel() noexcept {
  const int saved = errno;
  cancel_.raise();
  // A full pipe is readable, too.
  if (wake_write_ >= 0 && ::write(wake_write_, "", 1) < 0) errno = saved;
  errno = saved;
}

void Client::drain_wakes() noexcept {
  char drained[64];
  while (wake_ >= 0 && ::read(wake_, drained, sizeof drained) > 0) {}
}

// What is left to be taken back is the keeper's, too: the next call may never come.
Status Client::conclude(Status status, bool final) noexcept {
  if (keeper_ != nullptr && compensations_pending() != 0) [[unlikely]]
    keeper_->take_back(*this);
  if (!cancelled()) [[likely]]
    return status;
  cancel_.take();
  return final ? status : Status::cancelled;
}

bool Client::sleep_tending(Instant then) noexcept {
  for (;;) {
    work();
    if (cancelled()) return false;
    if (now_ >= then) return true;
    wait_until(earlier(then, next_timeout()));
  }
}

// What is due of the connection and of the holds that are kept. A call that waits comes by here before each of its sleeps.
void Client::work() noexcept {
  work_connection();
  tend_due();
  tell_tended();
}

Instant Client::next_timeout() const noexcept { return earlier(connection_timeout(), tend_next()); }

// ---- Keeping holds alive without a thread ------------------------------------------------------------------------

Instant Client::tend_next() const noexcept {
  Instant next = Instant::max();
  for (const HoldRecord* record = tended_first_; record != nullptr; record = record->tended_next_) {
    if (record->incarnation_ != incarnation_.load()) continue;  // The parent's.
    const LockMachine& machine = record->machine_;
    next = earlier(next, machine.poll_timeout());
    if (record->may_renew(now_)) next = earlier(next, machine.renewal_due());
  }
  return next;
}

bool Client::tended_waiting(Instant due) const noexcept {
  for (const HoldRecord* record = tended_first_; record != nullptr; record = record->tended_next_)
    if (record->machine_.renewing(due)) return true;  // Not a release that was posted: that may take what it takes.
  return false;
}

Instant Client::tend() noexcept {
  if (begin() != Status::ok) return Instant::max();
  cancel_.begin_spared();
  tend_holds();
  cancel_.end_spared();
  const Instant next = compensations_pending() == 0 ? tend_next() : next_timeout();
  // A renewal that is on its way is due no more. Its answer is to be read in time.
  return tended_waiting(now_) ? earlier(next, now_ + retry_delay_min) : next;
}

// Sends the renewals that were due at `start`, at most so many. Their number.
int Client::send_renewals(Instant start, int most) noexcept {
  int sent = 0;
  for (HoldRecord* record = tended_first_; record != nullptr && sent < most; record = record->tended_next_) {
    if (record->incarnation_ != incarnation_.load()) continue;
    record->catch_up();
    LockMachine& machine = record->machine_;
    if (!machine.held(now_) || machine.renewal_due() > start || !record->may_renew(now_)) continue;
    if (machine.renew(now_, record->request_deadline()) != Status::ok) continue;
    record->settle();  // Without a connection, too: the machine is told and tries again.
    ++sent;
  }
  return sent;
}

// What was due at the start, in portions that find room in the session; their replies are waited for together. What falls
// due meanwhile is asked for and not waited for: of many holds, one always is.
void Client::tend_holds() noexcept {
  constexpr int portion = in_flight_max / 2;
  const Instant start = now_;
  // What was to be taken back may have been, or waits for the next connection.
  const bool owes = compensations_pending() != 0;
  if (owes && session_.ready()) probe_idle_connection();
  if (owes || tend_next() <= start) (void)ensure_ready(start + config_.request_timeout);
  do {
    tending_since_ = start;
    const int sent = send_renewals(start, portion);
    if (sent != 0 || tended_waiting(start)) pump(nullptr);  // Another call may have asked.
    tending_since_ = Instant();
    if (sent != portion || cancelled()) break;
  } while (true);
  tell_tended();
}

// A callback may release, acquire or destroy any lock: after each, the list is read anew.
void Client::tell_tended() noexcept {
  for (HoldRecord* record = tended_first_; record != nullptr;) {
    HoldRecord* const next = record->tended_next_;
    const bool told = record->untold_ != HoldRecord::Told::nothing;
    record->tell();
    record = told ? tended_first_ : next;
  }
}

}  // namespace holdfast
