// SPDX-License-Identifier: MIT
#include "holdfast/core/lock_set_task.hpp"

#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/topology.hpp"
#include "holdfast/core/wait_plan.hpp"
#include "holdfast/proto/assert.hpp"

namespace holdfast {

namespace {

// What is taken is renewed between two waits for the next: no wait is shorter, also where a renewal fails at once.
constexpr Duration wait_min = std::chrono::milliseconds(10);
static_assert(wait_min > timeout_min);

int compare(int left, int right) noexcept { return left < right ? -1 : left > right ? 1 : 0; }

// 0: its server is the one at its address.
std::uint64_t topology_number(const KeptConfig& node) noexcept {
  return node.topology == nullptr ? 0 : node.topology->number();
}

// With sentinels or a cluster the address changes while locks are held, and what is looked for does not.
int compare_addresses(const KeptConfig& left, const KeptConfig& right) noexcept {
  const std::uint64_t ours = topology_number(left);
  const std::uint64_t theirs = topology_number(right);
  if (ours != theirs) return ours < theirs ? -1 : 1;
  if (ours != 0) return 0;
  int order = compare(left.socket_path.view(), right.socket_path.view());
  if (order != 0 || !left.socket_path.empty()) return order;
  order = compare(left.host.view(), right.host.view());
  return order != 0 ? order : compare(int{left.port}, int{right.port});
}

int compare_nodes(const KeptConfig& left, const KeptConfig& right) noexcept {
  const int order = compare_addresses(left, right);
  return order != 0 ? order : compare(left.database, right.database);
}

ByteView name_of(const LockPlace& lock, std::size_t index) noexcept {
  if (lock.kind->name_at != nullptr) return lock.kind->name_at(lock.key, index);
  return index == 0 ? lock.key.bytes() : ByteView();
}

bool share_a_name(const LockPlace& left, const LockPlace& right) noexcept {
  for (std::size_t ours = 0; !name_of(left, ours).empty(); ++ours)
    for (std::size_t theirs = 0; !name_of(right, theirs).empty(); ++theirs)
      if (name_of(left, ours) == name_of(right, theirs)) return true;
  return false;
}

}  // namespace

// ---- The order ---------------------------------------------------------------------------------------------------

void LockPlace::sort() noexcept {
  for (std::size_t sorted = 1; sorted < node_count; ++sorted) {
    const KeptConfig* const node = nodes[sorted];
    std::size_t place = sorted;
    for (; place != 0 && compare_nodes(*nodes[place - 1], *node) > 0; --place) nodes[place] = nodes[place - 1];
    nodes[place] = node;
  }
}

int compare(const LockPlace& left, const LockPlace& right) noexcept {
  const std::size_t most = left.node_count < right.node_count ? left.node_count : right.node_count;
  int order = 0;
  for (std::size_t node = 0; node < most && order == 0; ++node)
    order = compare_addresses(*left.nodes[node], *right.nodes[node]);
  if (order == 0 && left.node_count != right.node_count) return left.node_count < right.node_count ? -1 : 1;
  for (std::size_t node = 0; node < most && order == 0; ++node)
    order = compare(left.nodes[node]->database, right.nodes[node]->database);
  return order != 0 ? order : compare(name_of(left, 0), name_of(right, 0));
}

bool excludes(const LockPlace& first, const LockPlace& second) noexcept {
  if (!share_a_name(first, second)) return false;
  std::size_t left = 0;  // Of the second's nodes.
  for (std::size_t node = 0; node < second.node_count; ++node) {
    bool shared = false;
    for (std::size_t other = 0; other < first.node_count; ++other)
      shared = shared || compare_nodes(*first.nodes[other], *second.nodes[node]) == 0;
    left += shared ? 0U : 1U;
  }
  return left < majority_of(second.node_count);
}

Status arrange(std::size_t count, void* locks, Status (*configuration)(void* locks, std::size_t place) noexcept,
               void (*locate)(void* locks, std::size_t place, LockPlace& found) noexcept,
               void (*move)(void* locks, std::size_t from, std::size_t to) noexcept) noexcept {
  Status found = count == 0 ? Status::invalid_argument : Status::ok;
  for (std::size_t sorted = 0; sorted < count; ++sorted) {
    if (const Status status = configuration(locks, sorted); status != Status::ok) return status;
    LockPlace lock;
    locate(locks, sorted, lock);
    std::size_t place = sorted;
    for (std::size_t index = sorted; index-- != 0;) {
      LockPlace other;
      locate(locks, index, other);
      const bool before = compare(other, lock) <= 0;
      if (before ? excludes(other, lock) : excludes(lock, other)) found = Status::invalid_argument;
      if (!before) place = index;
    }
    move(locks, sorted, place);
  }
  return found;
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant LockSetTask::valid_until() const noexcept {
  Instant until = Instant::max();
  for (std::size_t place = 0; place < count_; ++place) until = earlier(until, host_->valid_until(set_, place));
  return count_ != 0 ? until : Instant();
}

Instant LockSetTask::renewal_due() const noexcept {
  Instant due = Instant::max();
  for (std::size_t place = 0; place < taken_; ++place) due = earlier(due, host_->renewal_due(set_, place));
  return due;
}

// ---- Commands ----------------------------------------------------------------------------------------------------

Status LockSetTask::begin_acquire(Instant now, Duration wait) noexcept {
  HOLDFAST_ASSERT(over());
  if (wait < Duration::zero()) return Status::invalid_argument;
  if (taken_ != 0) return Status::already_held;
  call_ = Call::acquire;
  stage_ = Stage::take;
  deadline_ = now + wait;
  blocker_ = no_place;
  status_ = Status::ok;
  cancelled_ = false;
  return Status::ok;
}

Status LockSetTask::begin(Call call) noexcept {
  HOLDFAST_ASSERT(over() && (call == Call::renew || call == Call::release));
  if (taken_ == 0) return Status::not_held;
  call_ = call;
  stage_ = Stage::go_through;
  next_ = 0;
  status_ = Status::ok;
  cancelled_ = false;
  return Status::ok;
}

// ---- One call ----------------------------------------------------------------------------------------------------

LockSetTask::Act LockSetTask::step(Instant now) noexcept {
  switch (call_) {
    case Call::none: return Act::over;
    case Call::renew:
      if (next_ == taken_) return end();  // All are answered, which a cancel does not undo.
      if (!cancelled_) return go(Act::renew, next_++);
      handle(Status::cancelled);
      return end();
    case Call::release:
      if (taken_ == 0) return end();
      if (cancelled_) handle(Status::cancelled);
      return go(cancelled_ ? Act::post_release : Act::release, --taken_);
    case Call::acquire:
      if (cancelled_ && stage_ != Stage::undo) fail(Status::cancelled);
      break;
  }
  // A lock that had time left and gave up by itself would do so again at once. An acquire's last attempt is one that leaves no
  // time for another.
  if (stage_ == Stage::keep && status_ != Status::ok && now + timeout_min < until_) fail(status_);
  if (stage_ == Stage::keep) {
    status_ = Status::ok;
    while (next_ < taken_ && host_->renewal_due(set_, next_) > now) ++next_;
    if (next_ < taken_) return go(Act::renew, next_++);
    stage_ = Stage::take;
    if (!all_held(now)) fail(Status::lock_lost);
  }
  if (stage_ == Stage::take) {
    if (taken_ < count_) return take(now);
    if (all_held(now)) return end();
    fail(Status::lock_lost);
  }
  return taken_ != 0 ? go(Act::post_release, --taken_) : end();
}

// The one after those that are taken. They are kept meanwhile.
LockSetTask::Act LockSetTask::take(Instant now) noexcept {
  until_ = earlier(deadline_, later(renewal_due(), now + wait_min));
  wait_ = until_ > now ? until_ - now : Duration::zero();
  blocker_ = taken_;
  return go(Act::acquire, taken_);
}

void LockSetTask::handle(Status outcome) noexcept {
  if (outcome == Status::cancelled) cancel();  // By a lock's client, which knows of no set.
  if (call_ != Call::acquire) {
    if (status_ == Status::ok) status_ = outcome;
    return;
  }
  if (act_ != Act::acquire) return;  // all_held() says what a renewal came to, and what is let go of is over.
  if (outcome == Status::ok) {
    ++taken_;
    blocker_ = no_place;
  } else if (until_ == deadline_ || !worth_waiting(outcome)) {
    fail(outcome);
  } else {
    stage_ = Stage::keep;
    next_ = 0;
    status_ = outcome;
  }
}

bool LockSetTask::all_held(Instant now) noexcept {
  for (std::size_t place = 0; place < taken_; ++place) {
    if (now < host_->valid_until(set_, place)) continue;
    blocker_ = place;
    return false;
  }
  return true;
}

}  // namespace holdfast
