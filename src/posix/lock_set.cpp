// SPDX-License-Identifier: MIT
#include "holdfast/lock_set.hpp"

#include "holdfast/core/wait_plan.hpp"

namespace holdfast {

namespace {

// What is taken is renewed between two waits for the next: no wait is shorter, also where a renewal fails at once.
constexpr Duration wait_min = std::chrono::milliseconds(10);
static_assert(wait_min > timeout_min);

int compare(int left, int right) noexcept { return left < right ? -1 : left > right ? 1 : 0; }

// Where a client's locks are.
int compare_nodes(const ClientConfig& left, const ClientConfig& right) noexcept {
  int order = compare(left.socket_path.view(), right.socket_path.view());
  if (order == 0 && left.socket_path.empty()) {
    order = compare(left.host.view(), right.host.view());
    if (order == 0) order = compare(int{left.port}, int{right.port});
  }
  return order != 0 ? order : compare(left.database, right.database);
}

ByteView name_of(const LockMachine& machine, std::size_t index) noexcept {
  if (machine.kind().name_at != nullptr) return machine.kind().name_at(machine.key(), index);
  return index == 0 ? machine.key().bytes() : ByteView();
}

bool share_a_name(const LockMachine& left, const LockMachine& right) noexcept {
  for (std::size_t ours = 0; !name_of(left, ours).empty(); ++ours)
    for (std::size_t theirs = 0; !name_of(right, theirs).empty(); ++theirs)
      if (name_of(left, ours) == name_of(right, theirs)) return true;
  return false;
}

}  // namespace

LockSet::LockSet(BlockingLock** locks, std::size_t count) noexcept : locks_(locks), count_(count) {
  if (count == 0) configuration_ = Status::invalid_argument;
  for (std::size_t sorted = 0; sorted < count; ++sorted) {
    BlockingLock* const lock = locks[sorted];
    if (const Status status = lock->configuration(); status != Status::ok) {
      configuration_ = status;
      return;
    }
    const LockMachine& machine = lock->record_->machine();
    std::size_t place = sorted;
    for (std::size_t index = sorted; index-- != 0;) {
      const LockMachine& other = locks[index]->record_->machine();
      int order = compare_nodes(locks[index]->client().config(), lock->client().config());
      if (order == 0 && share_a_name(other, machine)) configuration_ = Status::invalid_argument;
      if (order == 0) order = compare(name_of(other, 0), name_of(machine, 0));
      if (order > 0) place = index;
    }
    for (std::size_t index = sorted; index > place; --index) locks[index] = locks[index - 1];
    locks[place] = lock;
  }
}

LockSet::~LockSet() { (void)post_release(); }

// ---- Commands ----------------------------------------------------------------------------------------------------

Status LockSet::acquire(Duration wait) noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (wait < Duration::zero()) return Status::invalid_argument;
  if (taken_ != 0) return Status::already_held;
  const Instant deadline = Client::now() + wait;
  blocker_ = nullptr;
  Status status = Status::ok;
  for (; taken_ < count_ && status == Status::ok; taken_ += status == Status::ok ? 1 : 0)
    status = take(taken_, deadline);
  if (status == Status::ok) status = check();
  if (status != Status::ok) (void)post_release();
  return status;
}

// The one behind those that are taken. They are kept meanwhile.
Status LockSet::take(std::size_t place, Instant deadline) noexcept {
  for (;;) {
    const Instant now = Client::now();
    const Instant until = earlier(deadline, later(renewal_due(), now + wait_min));
    blocker_ = locks_[place];
    const Status status = locks_[place]->acquire(until > now ? until - now : Duration::zero());
    if (status == Status::ok) blocker_ = nullptr;
    if (status == Status::ok || until == deadline || !worth_waiting(status)) return status;
    for (std::size_t index = 0; index < taken_; ++index)
      if (locks_[index]->renewal_due() <= Client::now()) (void)locks_[index]->renew();  // check() says what it came to.
    if (const Status lost = check(); lost != Status::ok) return lost;
  }
}

Status LockSet::check() noexcept {
  for (std::size_t index = 0; index < taken_; ++index) {
    if (locks_[index]->held()) continue;
    blocker_ = locks_[index];
    return Status::lock_lost;
  }
  return Status::ok;
}

Status LockSet::renew() noexcept {
  if (taken_ == 0) return Status::not_held;
  Status first = Status::ok;
  for (std::size_t index = 0; index < taken_; ++index) {
    const Status status = locks_[index]->renew();
    if (first == Status::ok) first = status;
  }
  return first;
}

Status LockSet::release() noexcept {
  if (taken_ == 0) return Status::not_held;
  Status first = Status::ok;
  while (taken_ != 0) {
    const Status status = locks_[--taken_]->release();
    if (first == Status::ok) first = status;
  }
  return first;
}

Status LockSet::post_release() noexcept {
  if (taken_ == 0) return Status::not_held;
  Status first = Status::ok;
  while (taken_ != 0) {
    const Status status = locks_[--taken_]->post_release();
    if (first == Status::ok) first = status;
  }
  return first;
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant LockSet::valid_until() const noexcept {
  Instant until = Instant::max();
  for (std::size_t index = 0; index < count_; ++index) until = earlier(until, locks_[index]->valid_until());
  return count_ != 0 ? until : Instant();
}

Duration LockSet::remaining() const noexcept {
  const Instant until = valid_until();
  const Instant now = Client::now();
  return now < until ? until - now : Duration::zero();
}

Instant LockSet::renewal_due() const noexcept {
  Instant due = Instant::max();
  for (std::size_t index = 0; index < taken_; ++index) due = earlier(due, locks_[index]->renewal_due());
  return due;
}

}  // namespace holdfast
