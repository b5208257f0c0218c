// SPDX-License-Identifier: MIT
#include "chosen_lock.hpp"

#include <poll.h>

#include <algorithm>
#include <vector>

#include "exit_codes.hpp"
#include "failure_text.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/assert.hpp"

namespace holdfast::cli {

ChosenLock::ChosenLock(const AcquisitionOptions& options) : options_(options) {
  if (options.servers.size() == 1)
    one_ = std::make_unique<OneServer>();
  else
    several_ = std::make_unique<SeveralServers>();
}

Status ChosenLock::connect() {
  const Status status =
      one_ != nullptr ? one_->client.connect(options_.servers.front())
                      : several_->quorum.connect(options_.servers.data(), options_.servers.size(), options_.quorum);
  if (one_ != nullptr)
    make_lock(*one_);
  else
    make_lock(*several_);
  return status;
}

void ChosenLock::make_lock(OneServer& one) {
  const ByteView name(options_.name);
  const LockTiming timing = {.lease = options_.lease};
  const MutexOptions mutex_options = {.announce = true, .fence = options_.choice.fence};
  switch (options_.choice.kind) {
    case Kind::mutex: lock_ = &one.place.emplace<Mutex>(one.client, name, timing, mutex_options); break;
    case Kind::reentrant: lock_ = &one.place.emplace<ReentrantLock>(one.owner, name, timing); break;
    case Kind::fenced: lock_ = &one.place.emplace<FencedLock>(one.owner, name, timing); break;
    case Kind::fair:
      lock_ = &one.place.emplace<FairLock>(one.owner, name, timing, FairOptions{.fence = options_.choice.fence});
      break;
    case Kind::read:
      lock_ = &one.place.emplace<ReadWriteLock>(one.owner, name, ReadWriteTiming{.read = timing}).read();
      break;
    case Kind::write:
      lock_ = &one.place.emplace<ReadWriteLock>(one.owner, name, ReadWriteTiming{.write = timing}).write();
      break;
    case Kind::semaphore:
      lock_ = &one.place.emplace<Semaphore>(one.client, name, options_.choice.permits, timing);
      break;
  }
}

void ChosenLock::make_lock(SeveralServers& several) {
  const ByteView name(options_.name);
  const QuorumTiming timing = {.lease = options_.lease};
  const MutexOptions mutex_options = {.announce = true, .fence = options_.choice.fence};
  switch (options_.choice.kind) {
    case Kind::mutex:
      redlock_ = &several.place.emplace<RedlockMutex<nodes_max>>(several.quorum, name, timing, mutex_options);
      break;
    case Kind::reentrant:
      redlock_ = &several.place.emplace<RedlockReentrantLock<nodes_max>>(several.owner, name, timing);
      break;
    case Kind::fenced:
      redlock_ = &several.place.emplace<RedlockFencedLock<nodes_max>>(several.owner, name, timing);
      break;
    case Kind::fair:
    case Kind::read:
    case Kind::write:
    case Kind::semaphore: HOLDFAST_ASSERT(false);  // options.cpp refuses them on several servers.
  }
}

// ---- What every lock has -----------------------------------------------------------------------------------------

Status ChosenLock::try_acquire() noexcept {
  return on_lock([](auto& lock) { return lock.try_acquire(); });
}
Status ChosenLock::acquire(Duration wait) noexcept {
  return on_lock([wait](auto& lock) { return lock.acquire(wait); });
}
Status ChosenLock::renew(Duration timeout) noexcept {
  return on_lock([timeout](auto& lock) { return lock.renew(timeout); });
}
Status ChosenLock::release() noexcept {
  return on_lock([](auto& lock) { return lock.release(); });
}
Instant ChosenLock::valid_until() const noexcept {
  return on_lock([](auto& lock) { return lock.valid_until(); });
}
Duration ChosenLock::remaining() const noexcept {
  return on_lock([](auto& lock) { return lock.remaining(); });
}
const Token& ChosenLock::token() const noexcept {
  return *on_lock([](auto& lock) { return &lock.token(); });
}

// ---- What differs ------------------------------------------------------------------------------------------------

Instant ChosenLock::renewal_due() const noexcept {
  const Instant due = on_lock([](auto& lock) { return lock.renewal_due(); });
  const bool open = redlock_ != nullptr && due == Instant::max() && redlock_->held();
  return open ? Instant() : due;
}

void ChosenLock::cancel() noexcept {
  if (one_ != nullptr)
    one_->client.cancel();
  else
    several_->quorum.cancel();
}

std::optional<std::uint64_t> ChosenLock::fence() const noexcept {
  if (!options_.choice.fence) return std::nullopt;
  if (one_ != nullptr) {
    if (const auto* const fenced = std::get_if<FencedLock>(&one_->place)) return fenced->fence();
    if (const auto* const mutex = std::get_if<Mutex>(&one_->place)) return mutex->fence();
    if (const auto* const fair = std::get_if<FairLock>(&one_->place)) return fair->fence();
    return std::nullopt;
  }
  if (const auto* const fenced = std::get_if<RedlockFencedLock<nodes_max>>(&several_->place)) return fenced->fence();
  if (const auto* const mutex = std::get_if<RedlockMutex<nodes_max>>(&several_->place)) return mutex->fence();
  return std::nullopt;
}

void ChosenLock::tend() noexcept {
  if (several_ != nullptr) (void)several_->quorum.tend();
}

Status ChosenLock::spread(Duration most) noexcept {
  if (several_ == nullptr) return Status::ok;
  const QuorumClient& quorum = several_->quorum;
  const auto all_answered = [&quorum] {
    for (std::size_t node = 0; node < quorum.nodes(); ++node)
      if (quorum.node_status(node) != Status::ok) return false;
    return true;
  };
  // What is left of the lease after that is the renewal's and the holder's.
  const Instant until = Client::now() + std::min(most, remaining() / 4);
  for (; !all_answered() && Client::now() < until; (void)::poll(nullptr, 0, 5)) (void)several_->quorum.tend();
  return redlock_->renew(std::min(options_.request_timeout(), remaining() / 2));
}

bool ChosenLock::settled() const noexcept {
  if (one_ != nullptr) return one_->client.compensations_pending() == 0;
  const QuorumClient& quorum = several_->quorum;
  std::size_t done = 0;
  for (std::size_t node = 0; node < quorum.nodes(); ++node)
    if (quorum.node(node).compensations_pending() == 0) ++done;
  return done >= quorum.majority();
}

void ChosenLock::move() noexcept {
  if (several_ != nullptr) {
    (void)several_->quorum.tend();
    return;
  }
  // Any call moves compensations on, ahead of its own request.
  bool locked = false;
  (void)lock_->is_locked(locked);
}

Status ChosenLock::inspect(LockInfo& info) {
  const Key key{ByteView(options_.name)};
  if (one_ != nullptr) return holdfast::inspect(one_->client, key, info);
  // Connections of their own, which are no part of the quorum and are not waited for long.
  constexpr Duration patience = std::chrono::milliseconds(150);
  const Instant until = Client::now() + std::chrono::seconds(1) - 2 * patience;
  const QuorumClient& quorum = several_->quorum;
  std::vector<LockInfo> answers;
  std::size_t most = 0;
  for (std::size_t node = 0; node < quorum.nodes() && Client::now() < until && most < quorum.majority(); ++node) {
    ClientConfig config = quorum.node(node).config();
    config.connect_timeout = patience;
    config.request_timeout = patience;
    Client client;
    LockInfo answer;
    if (client.connect(config) != Status::ok || holdfast::inspect(client, key, answer) != Status::ok) continue;
    answers.push_back(answer);
    const auto votes = static_cast<std::size_t>(std::count_if(answers.begin(), answers.end(), [&](const LockInfo& it) {
      return it.form == answer.form && it.owner.view() == answer.owner.view();
    }));
    if (votes <= most) continue;
    most = votes;
    info = answer;
  }
  return most == 0 ? Status::no_quorum : Status::ok;
}

// ---- What a failure means ----------------------------------------------------------------------------------------

Status ChosenLock::verdict(Status status) const {
  if (one_ != nullptr || status != Status::no_quorum) return status;
  const QuorumClient& quorum = several_->quorum;
  std::size_t left = quorum.nodes();
  for (std::size_t node = 0; node < quorum.nodes(); ++node) {
    const Status said = quorum.node_status(node);
    if (said != Status::ok && !heals(said) && --left < quorum.majority()) return said;
  }
  return status;
}

std::string ChosenLock::failure_text(Status status) const {
  return one_ != nullptr ? cli::failure_text(status, one_->client) : cli::failure_text(status, several_->quorum);
}

int ChosenLock::exit_code_of(Status status, int not_acquired) const noexcept {
  return one_ != nullptr ? cli::exit_code_of(status, one_->client, not_acquired)
                         : cli::exit_code_of(status, not_acquired);
}

std::string ChosenLock::reason_of(Status status) const {
  const auto named = [](Status it) { return std::string(is_absence(it) ? "absent" : to_string(it)); };
  std::string reason = named(status);
  if (one_ != nullptr || status == Status::lock_busy) return reason;
  const QuorumClient& quorum = several_->quorum;
  for (std::size_t node = 0; node < quorum.nodes(); ++node) reason += " " + named(quorum.node_status(node));
  return reason;
}

}  // namespace holdfast::cli
