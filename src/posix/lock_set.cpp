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

Status LockSetBase::run() noexcept {
  for (;;) {
    const LockSetTask::Act act = task_.step(ClientBase::now());
    if (act == LockSetTask::Act::over) return task_.status();
    task_.handle(table_->act(locks_, task_.place(), act, task_.wait()));
  }
}

// ---- Commands ----------------------------------------------------------------------------------------------------

Status LockSetBase::acquire(Duration wait) noexcept {
  if (configuration_ != Status::ok) return configuration_;
  const Status begun = task_.begin_acquire(ClientBase::now(), wait);
  return begun == Status::ok ? run() : begun;
}

Status LockSetBase::renew() noexcept {
  const Status begun = task_.begin(LockSetTask::Call::renew);
  return begun == Status::ok ? run() : begun;
}

Status LockSetBase::release() noexcept {
  const Status begun = task_.begin(LockSetTask::Call::release);
  return begun == Status::ok ? run() : begun;
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
