// SPDX-License-Identifier: MIT
#include "holdfast/detail/quorum_watchdog.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "holdfast/detail/clock.hpp"
#include "holdfast/detail/quorum_record.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/quorum.hpp"
#include "poll_sockets.hpp"
#include "start_thread.hpp"
#include "wait_for.hpp"

namespace holdfast {

namespace {

// Of a connection over which nothing is to come, the end alone is of interest. Its owner may be waiting for bytes there.
#ifdef POLLRDHUP
constexpr short end_of_stream = POLLRDHUP;
#else
constexpr short end_of_stream = 0;
#endif

}  // namespace

// Held while the turns are looked at; never while a quorum is used, nor while a KeepOptions function runs.
struct QuorumWatchdog::Lock {
  explicit Lock(QuorumWatchdog& watchdog) noexcept : mutex(&watchdog.mutex_) { ::pthread_mutex_lock(mutex); }
  ~Lock() { ::pthread_mutex_unlock(mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  pthread_mutex_t* mutex;
};

// What the thread sleeps on. A quorum may close a descriptor meanwhile: then it wakes in vain, at worst.
struct QuorumWatchdog::Watch {
  Instant until;
  std::size_t count;
  pollfd entries[1 + quorum_watchdog_quorums_max * 2 * nodes_max];

  void add(const pollfd& entry) noexcept {
    if (entry.fd >= 0 && count != sizeof entries / sizeof entries[0]) entries[count++] = entry;
  }
};

// Whom to call.
struct QuorumWatchdog::News {
  const QuorumRecord* lock = nullptr;
  Keeping::Callback call = nullptr;
  void* context = nullptr;
};

constinit const QuorumKeeper::Table QuorumWatchdog::table = {take, give, detach};

QuorumWatchdog::QuorumWatchdog() noexcept : QuorumKeeper(table) {}

QuorumWatchdog::~QuorumWatchdog() {
  stop();
  if (inherited()) return;
  while (attached_ != nullptr) {
    for (const QuorumRecord* lock = attached_->quorum->first_; lock != nullptr; lock = lock->next_)
      HOLDFAST_ASSERT(!lock->kept() || lock->valid_until() == Instant());  // What it keeps goes first, or is released.
    detach(*this, *attached_);
  }
}

// In a forked child there is no thread of ours, and the lock is as the fork found it.
bool QuorumWatchdog::inherited() const noexcept { return process_ != 0 && process_ != ::getpid(); }

// ---- Starting and stopping ---------------------------------------------------------------------------------------

Status QuorumWatchdog::start(QuorumClient& quorum) noexcept {
  if (inherited()) return Status::forked;
  if (running_.load()) return Status::already_held;
  if (quorum.nodes() == 0) return Status::not_connected;
  if (const Status status = wake_.open(); status != Status::ok) {
    quorum.nodes_[0].connection.set_error_number(errno);
    return status;
  }
  if (const Status status = attach(quorum); status != Status::ok) return status;
  wake_.drain();
  stopping_ = false;
  if (const int error = start_thread(thread_, run, this); error != 0) {
    detach(quorum);
    quorum.nodes_[0].connection.set_error_number(error);
    return Status::system_error;
  }
  running_.store(true);
  return Status::ok;
}

void QuorumWatchdog::stop() noexcept {
  if (!running_.load() || inherited()) return;
  {
    const Lock lock(*this);
    stopping_ = true;
  }
  wake_.wake();
  (void)::pthread_join(thread_, nullptr);
  running_.store(false);
}

Status QuorumWatchdog::attach(QuorumClient& quorum) noexcept {
  if (inherited()) return Status::forked;
  Attachment& attachment = quorum.attachment_;
  if (attachment.keeper != nullptr) return attachment.keeper == this ? Status::ok : Status::already_held;
  quorum.shorten_pauses();
  {
    const Lock lock(*this);
    std::size_t count = 0;
    for (const Attachment* each = attached_; each != nullptr; each = each->next) ++count;
    if (count == quorum_watchdog_quorums_max) return Status::too_many_requests;
    process_ = ::getpid();  // Whose quorums these are.
    attachment = {.quorum = &quorum, .keeper = this, .next = attached_};
    attached_ = &attachment;
  }
  wake_.wake();
  return Status::ok;
}

void QuorumWatchdog::detach(QuorumClient& quorum) noexcept {
  if (quorum.attachment_.keeper == this && !inherited()) detach(*this, quorum.attachment_);
}

// ---- What the owners' threads call -------------------------------------------------------------------------------

void QuorumWatchdog::take(QuorumKeeper& keeper, Attachment& attachment, const QuorumRecord* lock) noexcept {
  auto& self = static_cast<QuorumWatchdog&>(keeper);
  const Lock guard(self);
  while (attachment.used || (lock != nullptr && self.telling_ == lock))
    ::pthread_cond_wait(&self.turned_, &self.mutex_);
  attachment.taken = true;
}

void QuorumWatchdog::give(QuorumKeeper& keeper, Attachment& attachment) noexcept {
  auto& self = static_cast<QuorumWatchdog&>(keeper);
  const QuorumClient& quorum = *attachment.quorum;
  const bool busy = needed(quorum);
  const bool expects = busy && quorum.expects_bytes();
  const Instant next = busy ? next_of(quorum) : Instant::max();
  bool wake = false;
  {
    const Lock lock(self);
    wake = attachment.awaited || expects || next < attachment.planned;
    attachment.awaited = attachment.taken = false;
  }
  if (wake) self.wake_.wake();
}

void QuorumWatchdog::detach(QuorumKeeper& keeper, Attachment& attachment) noexcept {
  auto& self = static_cast<QuorumWatchdog&>(keeper);
  const Lock lock(self);
  while (attachment.used || self.telling_of_ == attachment.quorum) ::pthread_cond_wait(&self.turned_, &self.mutex_);
  Attachment** place = &self.attached_;
  while (*place != &attachment) place = &(*place)->next;
  *place = attachment.next;
  attachment.keeper = nullptr;
}

// ---- The thread --------------------------------------------------------------------------------------------------

void* QuorumWatchdog::run(void* self) noexcept {
  static_cast<QuorumWatchdog*>(self)->loop();
  return nullptr;
}

void QuorumWatchdog::loop() noexcept {
  Watch watch;
  ::pthread_mutex_lock(&mutex_);
  while (!stopping_) {
    watch.until = Instant::max();
    watch.count = 0;
    watch.add(entry_of(wake_.descriptor()));
    bool told = false;
    for (Attachment* each = attached_; each != nullptr && !told; each = told ? nullptr : each->next)
      told = visit(*each, watch);
    if (told) continue;  // The list may be another one by now.
    ::pthread_mutex_unlock(&mutex_);
    const Instant now = read_clock();
    // Without a clock nothing is known to be due, and nothing may spin.
    const timespec limit = to_timespec(now == Instant::max() ? sleep_max : watch.until - now);
    (void)::ppoll(watch.entries, watch.count, &limit, nullptr);
    wake_.drain();
    ::pthread_mutex_lock(&mutex_);
  }
  ::pthread_mutex_unlock(&mutex_);
}

// The lock is let go of meanwhile. True if somebody was told something.
bool QuorumWatchdog::visit(Attachment& attachment, Watch& watch) noexcept {
  if (attachment.taken) {  // The owner is in a call, and wakes us after it.
    attachment.awaited = true;
    return false;
  }
  attachment.used = true;
  ::pthread_mutex_unlock(&mutex_);
  const Instant next = move(*attachment.quorum, watch);
  const News news = news_of(*attachment.quorum);
  ::pthread_mutex_lock(&mutex_);
  attachment.used = false;
  attachment.planned = next;
  watch.until = earlier(watch.until, next);
  telling_ = news.lock;
  telling_of_ = news.lock == nullptr ? nullptr : attachment.quorum;
  ::pthread_cond_broadcast(&turned_);
  if (news.lock == nullptr) return false;
  ::pthread_mutex_unlock(&mutex_);
  news.call(news.context);
  ::pthread_mutex_lock(&mutex_);
  telling_ = nullptr;
  telling_of_ = nullptr;
  ::pthread_cond_broadcast(&turned_);
  return true;
}

// With nothing to keep, to tell or to take back, a quorum is left alone.
bool QuorumWatchdog::needed(const QuorumClient& quorum) noexcept {
  std::size_t pending = quorum.roll_.compensations_pending();
  for (const QuorumRecord* lock = quorum.first_; lock != nullptr && pending == 0; lock = lock->next_)
    if (!lock->orphaned())
      pending += lock->machine_.owed() != 0 || lock->keeping_.has_news() ||
                 (lock->kept() && lock->machine_.valid_until() != Instant());
  return pending != 0;
}

// When there is something to do if nothing comes. What may not be renewed for want of a sign of life is looked at again soon.
Instant QuorumWatchdog::next_of(const QuorumClient& quorum) noexcept {
  const Instant now = quorum.now_;
  Instant next = earlier(quorum.tend_next(), quorum.next_timeout());
  for (const QuorumRecord* lock = quorum.first_; lock != nullptr; lock = lock->next_) {
    if (lock->orphaned()) continue;
    if (lock->keeping_.has_news()) next = earlier(next, now);
    if (lock->kept() && lock->machine_.renewal_due() <= now && !lock->may_renew(now) && !lock->keeping_.too_old(now))
      next = earlier(next, now + lock->machine_.timing().lock().effective_lease() / 30 + retry_delay_min);
  }
  return next;
}

// What has come is dealt with, what is due is asked for; nothing is waited for.
Instant QuorumWatchdog::move(QuorumClient& quorum, Watch& watch) noexcept {
  quorum.read_time();
  if (quorum.now_ == Instant::max() || !needed(quorum)) return Instant::max();
  quorum.wait_until(quorum.now_, false);
  quorum.move();
  quorum.tend_due();
  for (QuorumRecord* lock = quorum.first_; lock != nullptr; lock = lock->next_)
    if (!lock->orphaned()) lock->catch_up();
  quorum.transmit_all();
  Instant next = next_of(quorum);
  for (std::size_t index = 0; index < quorum.nodes(); ++index) {
    const QuorumClient::Node& node = quorum.nodes_[index];
    const Connection& connection = node.connection;
    const Session& session = connection.session();
    pollfd entry = entry_of(connection);
    if (session.ready() && session.in_flight() == 0)
      entry.events = static_cast<short>((entry.events & ~POLLIN) | end_of_stream);
    watch.add(entry);
    watch.add(entry_of(node.resolver.descriptor()));
    if (connection.pending()) next = quorum.now_;  // No poll sees it.
  }
  return next;
}

// The first that there is.
QuorumWatchdog::News QuorumWatchdog::news_of(QuorumClient& quorum) noexcept {
  for (QuorumRecord* lock = quorum.first_; lock != nullptr; lock = lock->next_) {
    if (lock->orphaned() || !lock->keeping_.has_news()) continue;
    News news = {.lock = lock, .context = lock->keeping_.options().context};
    if (lock->keeping_.take_news(news.call) != Keeping::News::none && news.call != nullptr) return news;
  }
  return {};
}

}  // namespace holdfast
