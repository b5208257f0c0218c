// SPDX-License-Identifier: MIT
#include "holdfast/lock_set.hpp"

namespace holdfast {

constinit const LockSetTask::Host LockSetBase::host = {[](const void* set, std::size_t place) noexcept {
                                                         const auto& self = *static_cast<const LockSetBase*>(set);
                                                         return self.table_->valid_until(self.locks_, place);
                                                       },
                                                       [](const void* set, std::size_t place) noexcept {
                                                         const auto& self = *static_cast<const LockSetBase*>(set);
                                                         return self.table_->renewal_due(self.locks_, place);
                                                       }};

LockSetBase::LockSetBase(const Table& table, void* locks, std::size_t count) noexcept
    : table_(&table),
      locks_(locks),
      task_(host, this, count),
      configuration_(arrange(count, locks, table.configuration, table.locate, table.move)) {}

LockSetBase::~LockSetBase() { (void)post_release(); }

void LockSetBase::locate(BlockingLock* const& lock, LockPlace& found) noexcept {
  found.nodes[0] = &lock->client().config();
  found.node_count = 1;
  found.kind = &lock->record_->machine().kind();
  found.key = lock->key();
}

// In a forked child nothing of the parent's cancels counts, as at the beginning of any call.
CancelSignal& LockSetBase::signal_of(BlockingLock* const& lock) noexcept {
  ClientBase& client = lock->client();
  if (client.forked()) client.start_anew_in_child();
  return client.cancel_;
}

// ---- One call ----------------------------------------------------------------------------------------------------

// A lock's call takes a cancel() at its end, as any call, also one that its own outcome stands against. It was meant for the set.
Status LockSetBase::run(bool spared) noexcept {
  const bool acquires = task_.taken() == 0;
  for (;;) {
    if (!spared && cancelled()) task_.cancel();
    const LockSetTask::Act act = task_.step(ClientBase::now());
    if (act == LockSetTask::Act::over) return spared ? task_.status() : conclude(task_.status(), acquires);
    const CancelSignal& signal = table_->signal(locks_, task_.place());
    const std::uint32_t taken = signal.taken();
    const Status outcome = table_->act(locks_, task_.place(), act, task_.wait());
    if (signal.taken() != taken) task_.cancel();
    task_.handle(outcome);
  }
}

bool LockSetBase::cancelled() const noexcept {
  for (std::size_t place = 0; place < task_.count(); ++place)
    if (table_->signal(locks_, place).pending()) return true;
  return false;
}

// Of all clients, so that nothing of it ends another call. An outcome that is known stands: of an acquire that it was granted, of a
// renewal that there is nothing to renew, too.
Status LockSetBase::conclude(Status status, bool acquires) noexcept {
  const bool lost = status == Status::lock_lost || status == Status::not_held;
  const bool final = status == Status::ok || (lost && !acquires);
  for (std::size_t place = 0; place < task_.count(); ++place)
    status = table_->signal(locks_, place).conclude(status, final);
  return status;
}

// ---- Commands ----------------------------------------------------------------------------------------------------

Status LockSetBase::acquire(Duration wait) noexcept {
  if (configuration_ != Status::ok) return configuration_;
  const Status begun = task_.begin_acquire(ClientBase::now(), wait);
  return begun == Status::ok ? run(false) : begun;
}

Status LockSetBase::renew() noexcept {
  const Status begun = task_.begin(LockSetTask::Call::renew);
  return begun == Status::ok ? run(false) : begun;
}

Status LockSetBase::release() noexcept {
  const Status begun = task_.begin(LockSetTask::Call::release);
  return begun == Status::ok ? run(true) : begun;
}

Status LockSetBase::post_release() noexcept {
  if (task_.taken() == 0) return Status::not_held;
  Status first = Status::ok;
  for (std::size_t place = 0; task_.take_back(place);) {
    const Status status = table_->act(locks_, place, LockSetTask::Act::post_release, Duration::zero());
    if (first == Status::ok) first = status;
  }
  return first;
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Duration LockSetBase::remaining() const noexcept {
  const Instant until = valid_until();
  const Instant now = ClientBase::now();
  return now < until ? until - now : Duration::zero();
}

}  // namespace holdfast
