// SPDX-License-Identifier: MIT
#include "chosen_lock.hpp"

#include "failure_text.hpp"
#include "holdfast/limits.hpp"

namespace holdfast::cli {

ChosenLock::ChosenLock(const RunOptions& options) : options_(options) {
  if (options.servers.size() == 1)
    one_ = std::make_unique<OneServer>();
  else
    several_ = std::make_unique<SeveralServers>();
}

Status ChosenLock::connect() {
  const Status status =
      one_ != nullptr ? one_->client.connect(options_.servers.front())
                      : several_->quorum.connect(options_.servers.data(), options_.servers.size(), options_.quorum);
  if (status != Status::ok) return status;
  if (one_ != nullptr)
    make_lock(*one_);
  else
    make_lock(*several_);
  return Status::ok;
}

void ChosenLock::make_lock(OneServer& one) {
  const ByteView name(options_.name);
  const LockTiming timing = {.lease = options_.lease};
  const MutexOptions mutex_options = {.announce = true, .fence = options_.choice.fence};
  switch (options_.choice.kind) {
    case Kind::mutex: lock_ = &one.place.emplace<Mutex>(one.client, name, timing, mutex_options); break;
    case Kind::reentrant: lock_ = &one.place.emplace<ReentrantLock>(one.owner, name, timing); break;
    case Kind::fenced: lock_ = &one.place.emplace<FencedLock>(one.owner, name, timing); break;
  }
}

void ChosenLock::make_lock(SeveralServers& several) {
  const ByteView name(options_.name);
  const QuorumTiming timing = {.lease = options_.lease};
  const MutexOptions mutex_options = {.announce = true, .fence = options_.choice.fence};
  const bool fence = options_.choice.fence;
  switch (options_.choice.kind) {
    case Kind::mutex:
      redlock_ = &several.place.emplace<RedlockMutex<nodes_max>>(several.quorum, name, timing, mutex_options);
      break;
    case Kind::reentrant:
    case Kind::fenced:
      redlock_ = &several.place.emplace<RedlockReentrantLock<nodes_max>>(several.quorum, name, timing, fence);
      break;
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
    return std::nullopt;
  }
  if (const auto* const fenced = std::get_if<RedlockReentrantLock<nodes_max>>(&several_->place)) return fenced->fence();
  if (const auto* const mutex = std::get_if<RedlockMutex<nodes_max>>(&several_->place)) return mutex->fence();
  return std::nullopt;
}

void ChosenLock::tend() noexcept {
  if (several_ != nullptr) (void)several_->quorum.tend();
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

std::string ChosenLock::failure_text(Status status) {
  return one_ != nullptr ? cli::failure_text(status, one_->client) : cli::failure_text(status, several_->quorum);
}

}  // namespace holdfast::cli
