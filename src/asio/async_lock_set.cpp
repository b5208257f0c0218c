// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_lock_set.hpp"

#include "holdfast/asio/asio_error.hpp"
#include "holdfast/proto/assert.hpp"

namespace holdfast {

constinit const LockSetTask::Host AsyncLockSet::host = {
    [](const void* set, std::size_t place) noexcept {
      return static_cast<const AsyncLockSet*>(set)->locks_[place]->valid_until();
    },
    [](const void* set, std::size_t place) noexcept {
      const AsyncHandle& lock = *static_cast<const AsyncLockSet*>(set)->locks_[place];
      return lock.refused() ? Instant::max() : lock.hold().renewal_due();
    }};

AsyncLockSet::AsyncLockSet(AsyncHandle** locks, std::size_t count)
    : locks_(locks), task_(host, this, count), link_(std::make_shared<Link>(Link{this})) {
  HOLDFAST_ASSERT(count != 0);
  configuration_ = arrange(
      count, locks,
      [](void* array, std::size_t place) noexcept { return static_cast<AsyncHandle**>(array)[place]->configuration(); },
      [](void* array, std::size_t place, LockPlace& found) noexcept {
        static_cast<AsyncHandle**>(array)[place]->hold().locate(found);
      },
      [](void* array, std::size_t from, std::size_t to) noexcept {
        move_down(static_cast<AsyncHandle**>(array), from, to);
      });
}

AsyncLockSet::~AsyncLockSet() {
  link_->set = nullptr;
  cancel_asked();
  if (completion_ != nullptr) loop().complete(*completion_, Status::cancelled);
  for (std::size_t place = 0; task_.take_back(place);) (void)locks_[place]->post_release();
}

void AsyncLockSet::start(LockSetTask::Call call, Duration wait, Completion& completion) {
  Status refused = configuration_;
  if (refused == Status::ok && completion_ != nullptr) refused = Status::too_many_requests;
  if (refused == Status::ok)
    refused = call == LockSetTask::Call::acquire ? task_.begin_acquire(read_clock(), wait) : task_.begin(call);
  if (refused != Status::ok) return loop().complete(completion, refused);
  completion_ = &completion;
  cancels_ = cancels();
  proceed();
}

void AsyncLockSet::answered(std::error_code error) {
  asked_ = false;
  if (cancels() != cancels_) task_.cancel();
  task_.handle(to_status(error));
  proceed();
}

// As far as it goes. A lock's handler is never called from inside of what it is given to: there is no recursion, though the
// calls look so. A pointer says it to those who look.
void AsyncLockSet::proceed() {
  const auto handler = [link = link_, answer = &AsyncLockSet::answered](std::error_code error) {
    if (link->set != nullptr) (link->set->*answer)(error);
  };
  for (;;) {
    const LockSetTask::Act act = task_.step(read_clock());
    if (act == LockSetTask::Act::over) break;
    AsyncHandle& lock = *locks_[task_.place()];
    if (act == LockSetTask::Act::post_release) {
      task_.handle(lock.post_release());
      continue;
    }
    asked_ = true;
    if (act == LockSetTask::Act::acquire) return lock.async_acquire(task_.wait(), handler);
    if (act == LockSetTask::Act::renew) return lock.async_renew(handler);
    return lock.async_release(handler);
  }
  Completion& completion = *completion_;
  completion_ = nullptr;
  loop().complete(completion, task_.status());
}

Status AsyncLockSet::post_release() {
  if (completion_ != nullptr) return Status::too_many_requests;
  if (task_.taken() == 0) return Status::not_held;
  Status first = Status::ok;
  for (std::size_t place = 0; task_.take_back(place);) {
    const Status status = locks_[place]->post_release();
    if (first == Status::ok) first = status;
  }
  return first;
}

// Of a client or a quorum: with all that it has in progress, this set.
std::uint32_t AsyncLockSet::cancels() const noexcept {
  std::uint32_t sum = 0;
  for (std::size_t place = 0; place < task_.count(); ++place) sum += locks_[place]->loop().cancels();
  return sum;
}

// What it waits for by itself is not ours to cancel.
void AsyncLockSet::cancel_asked() {
  if (asked_) locks_[task_.place()]->hold().cancel_doing();
}

void AsyncLockSet::cancel() {
  if (completion_ != nullptr) cancel_operation(*completion_);
}

// What the lock in progress is told of it brings the end.
void AsyncLockSet::cancel_operation(Completion& completion) {
  if (&completion != completion_) return;
  task_.cancel();
  cancel_asked();
}

Duration AsyncLockSet::remaining() const noexcept {
  const Instant until = valid_until();
  const Instant now = read_clock();
  return now < until ? until - now : Duration::zero();
}

}  // namespace holdfast
