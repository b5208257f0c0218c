// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_loop.hpp"

#include <asio/execution/context.hpp>
#include <asio/execution_context.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>
#include <chrono>
#include <mutex>
#include <typeinfo>

#include "holdfast/asio/async_hold.hpp"
#include "holdfast/detail/clock.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

namespace {

// Asio 1.22 hands out whatever the executor is as what it is asked for.
const asio::io_context::executor_type* io_context_of(const asio::any_io_executor& executor) noexcept {
  using Executor = asio::io_context::executor_type;
  return executor.target_type() == typeid(Executor) ? executor.target<Executor>() : nullptr;
}

}  // namespace

// However a turn ends, be it by an exception of a handler: what is left is another's.
struct AsyncLoop::TurnEnd {
  AsyncLoop& loop;
  // What posting a turn takes is memory of the loop's own. NOLINTNEXTLINE(bugprone-exception-escape)
  ~TurnEnd() {
    loop.in_turn_ = false;
    const bool unfinished = loop.running_ != nullptr;
    if (unfinished) {
      Completion* last = loop.running_;
      while (last->next_ != nullptr) last = last->next_;
      last->next_ = loop.decided_first_;
      if (loop.decided_first_ == nullptr) loop.decided_last_ = last;
      loop.decided_first_ = loop.running_;
      loop.running_ = nullptr;
    }
    if (loop.decided_first_ != nullptr || unfinished || interrupted) loop.schedule_turn();
  }
  bool interrupted = true;
};

// Tells each loop of the end of its context. Handlers wait in the loop, not in the context: one that owns its client, as a
// coroutine with a client in its frame does, would keep it, the loop and itself alive for ever.
class AsyncLoop::Ends final : public asio::execution_context::service {
 public:
  static asio::execution_context::id id;
  explicit Ends(asio::execution_context& context) : service(context) {}

  void enter(AsyncLoop& loop) {
    const std::lock_guard lock(mutex_);  // Loops of one context may be made and destroyed by several threads.
    loops_.push_back(loop.place_);
  }
  void leave(AsyncLoop& loop) {
    const std::lock_guard lock(mutex_);
    loop.place_.unlink();
  }

 private:
  void shutdown() override {
    while (AsyncLoop* const loop = loops_.first()) {
      const auto alive = loop->shared_from_this();
      loop->place_.unlink();
      loop->ends_ = nullptr;
      loop->drop_handlers();
    }
  }

  std::mutex mutex_;
  LinkedPlace<AsyncLoop> loops_;
};
asio::execution_context::id AsyncLoop::Ends::id;

AsyncLoop::AsyncLoop(executor_type executor, std::size_t operations, std::size_t own_operations)
    : executor_(std::move(executor)),
      io_(io_context_of(executor_)),
      memory_(own_operations),
      completions_(new Completion[operations]),
      completion_count_(operations),
      timer_(executor_) {
  for (std::size_t index = operations; index != 0; --index) {
    completions_[index - 1].next_ = free_;
    free_ = &completions_[index - 1];
  }
  now_ = holdfast::read_clock();
  ends_ = &asio::use_service<Ends>(asio::query(executor_, asio::execution::context));
  ends_->enter(*this);
}

// Handlers that were never called go without a word, as those of a loop that is destroyed do.
AsyncLoop::~AsyncLoop() {
  if (ends_ != nullptr) ends_->leave(*this);
  drop_handlers();
}

void AsyncLoop::drop_handlers() {
  dropped_ = true;
  for (std::size_t index = 0; index < completion_count_; ++index) {
    Completion& completion = completions_[index];
    if (completion.call_ == nullptr) continue;
    completion.call_ = nullptr;  // What it owns may complete it, in vain.
    completion.destroy_(completion, *this);
  }
}

// ---- Completions -------------------------------------------------------------------------------------------------

Completion& AsyncLoop::take_free() noexcept {
  Completion& completion = *free_;
  free_ = completion.next_;
  completion.next_ = nullptr;
  completion.serial_ = ++serial_;
  return completion;
}

void AsyncLoop::put_back(Completion& completion) noexcept {
  completion.call_ = nullptr;
  completion.next_ = free_;
  free_ = &completion;
}

void AsyncLoop::cancel(Completion& completion, std::uint64_t serial) {
  if (forked()) return leave_to_parent();
  if (completion.serial_ != serial || completion.call_ == nullptr || completion.owner_ == nullptr) return;
  (void)begin();
  completion.owner_->cancel_operation(completion);
  schedule_turn();
}

// A child that never runs its copy of the loop never comes so far: what waits there goes with the child.
void AsyncLoop::leave_to_parent() {
  leave_all();
  schedule_turn();
}

void AsyncLoop::leave_all() {
  if (left_) return;
  left_ = true;
  for (std::size_t index = 0; index < completion_count_; ++index) {
    Completion& completion = completions_[index];
    if (completion.call_ != nullptr && completion.owner_ != nullptr) decide(completion, Status::forked);
  }
  leave_connections();
  stop();
}

// ---- Turns -------------------------------------------------------------------------------------------------------

void AsyncLoop::read_clock() noexcept {
  now_ = holdfast::read_clock();
  set_now(now_);
}

void AsyncLoop::post_turn() {
  turn_posted_ = true;
  auto handler = own([this] {
    turn_posted_ = false;
    turn(true);
  });
  if (io_ != nullptr)
    asio::post(*io_, std::move(handler));
  else
    asio::post(executor_, std::move(handler));
}

void AsyncLoop::turn(bool posted) {
  constexpr std::uint8_t hops_max = 8;  // A connection that is never silent must not keep deadlines from being judged.
  const auto self = shared_from_this();
  HOLDFAST_ASSERT(!in_turn_);
  TurnEnd end{*this};
  in_turn_ = true;
  turn_follows_ = turn_again_ = false;
  if (forked()) leave_all();
  read_clock();
  if (judging_ && posted && !stopped_) {
    if (heard_ && ++hops_ < hops_max) {
      heard_ = false;  // Once more, behind what is on its way to us.
    } else {
      judging_ = false;
      judge_time();
      while (Sleeper* const due = sleepers_.take_due(now_)) due->wake(now_);
    }
  }
  if (!stopped_) work();
  run_handlers();
  if (!stopped_) {
    work();
    if (!stopped_) await();
    arm_timer();
  }
  end.interrupted = (judging_ || turn_again_) && !stopped_;
}

// Those that are decided by now; what they decide in their turn comes with the next one.
void AsyncLoop::run_handlers() {
  for (AsyncHold* hold = untold_.first(); hold != nullptr && !stopped_; hold = untold_.first()) hold->tell();
  running_ = decided_first_;
  decided_first_ = decided_last_ = nullptr;
  while (running_ != nullptr) {
    Completion& completion = *running_;
    running_ = completion.next_;
    completion.call_(completion, *this);
  }
}

// ---- Time --------------------------------------------------------------------------------------------------------

// Moved only to an earlier time: what turns out to be too early costs one turn.
void AsyncLoop::arm_timer() {
  if (judging_) return;
  Instant next = earlier(next_timeout(), sleepers_.next());
  if (next == Instant::max()) return;
  next = earlier(next, now_ + sleep_max);  // Timers stand still in suspend while leases run on.
  if (timer_at_ <= next) return;
  timer_at_ = next;
  const std::uint64_t serial = ++timer_serial_;
  timer_.expires_after(next > now_ ? std::chrono::nanoseconds(next - now_) : std::chrono::nanoseconds(0));
  timer_.async_wait(own([this, serial](const auto&) { timer_fired(serial); }));
}

void AsyncLoop::timer_fired(std::uint64_t serial) {
  if (serial != timer_serial_ || stopped_) return;
  timer_at_ = Instant::max();
  judging_ = true;
  heard_ = false;
  hops_ = 0;
  schedule_turn();
}

void AsyncLoop::disarm_timer() {
  ++timer_serial_;
  timer_at_ = Instant::max();
  timer_.cancel();
}

void AsyncLoop::stop() {
  stopped_ = true;
  disarm_timer();
}

}  // namespace holdfast
