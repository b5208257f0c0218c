// SPDX-License-Identifier: MIT
//
// AsyncLoop is what the Asio clients share: fixed slots for the handlers that wait, one timer, and turns. Not used by
// itself.
//
//     bytes, time, a posted turn -> work() -> the handlers of what is decided -> work() -> one write a connection
//
// A turn first lets the machines say what they have to say, then calls handlers, then sends what all of them asked for.
// So requests of one turn leave together, and a handler may start, cancel or destroy anything.
//
// Thread rule: everything happens on the executor. Heap: none behind the constructor where the executor is an
// io_context's; a strand may take some from Asio's own recycled blocks.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/system_executor.hpp>
#include <asio/version.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "holdfast/asio/asio_error.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/core/sleeper_heap.hpp"
#include "holdfast/detail/linked_place.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/status.hpp"

#if defined(HOLDFAST_ASIO_VERSION) && HOLDFAST_ASIO_VERSION != ASIO_VERSION
#error "the installed holdfast-asio was compiled with another version of Asio: build it anew"
#endif

namespace holdfast {

class AsyncHold;
class AsyncLoop;
class Completion;

// Whoever waits with a completion.
class OperationOwner {
 public:
  OperationOwner() noexcept = default;
  OperationOwner(const OperationOwner&) = delete;
  OperationOwner& operator=(const OperationOwner&) = delete;
  // The operation is not wanted any more. Its completion is decided from here on, or soon.
  virtual void cancel_operation(Completion& completion) = 0;

 protected:
  virtual ~OperationOwner() = default;
};

// One handler that waits to be called, in place.
class Completion {
 public:
  // A handler with all that it has captured, its executor and its allocator. What is larger does not compile.
  static constexpr std::size_t handler_size_max = 256;

 private:
  friend class AsyncLoop;
  using Function = void (*)(Completion& completion, AsyncLoop& loop);

  Function call_ = nullptr;  // nullptr: free.
  Function destroy_ = nullptr;
  OperationOwner* owner_ = nullptr;  // nullptr: decided.
  Completion* next_ = nullptr;       // Among the free ones, or those that are decided.
  std::uint64_t serial_ = 0;         // Of its operation: a cancellation of an earlier one finds another.
  Status outcome_ = Status::ok;
  alignas(std::max_align_t) unsigned char place_[handler_size_max];
};

class AsyncLoop : public std::enable_shared_from_this<AsyncLoop> {
 public:
  using executor_type = asio::any_io_executor;

  AsyncLoop(const AsyncLoop&) = delete;
  AsyncLoop& operator=(const AsyncLoop&) = delete;

  [[nodiscard]] const executor_type& executor() const noexcept { return executor_; }

  // Takes the handler in, with its cancellation slot, and calls `start(completion)`. Where `operations` of them wait already, or
  // in a forked child, nothing is started: the handler is called soon with too_many_requests or forked.
  template <class Handler, class Start>
  void initiate(Handler&& handler, OperationOwner& owner, Start start);
  // Its handler is called in this turn or the next.
  void complete(Completion& completion, Status outcome) {
    decide(completion, outcome);
    schedule_turn();
  }

  // The time of this turn; outside of one the clock is read.
  [[nodiscard]] Instant begin() {
    if (!in_turn_) read_clock();
    return now_;
  }
  [[nodiscard]] Instant now() const noexcept { return now_; }
  // A turn is to come soon, because there is something to send or to say.
  void schedule_turn() {
    if (!in_turn_ && !turn_follows_ && !turn_posted_ && !dropped_) post_turn();
  }
  void sleep(Sleeper& sleeper, Instant wakes_at) {
    if (sleeper.wakes_at() == wakes_at) return;
    sleepers_.put(sleeper, wakes_at);
    if (wakes_at < timer_at_) schedule_turn();
  }
  // How often all that is in progress was cancelled. What goes through several of the loop's operations compares it: one that
  // was over by then has heard nothing.
  [[nodiscard]] std::uint32_t cancels() const noexcept { return cancels_; }
  // A hold with something to tell is called in this turn or the next.
  void await_telling(LinkedPlace<AsyncHold>& place) {
    untold_.push_back(place);
    turn_again();  // This one may be past its callbacks.
    schedule_turn();
  }
  // The hold whose callbacks run; nullptr when one of them has destroyed it.
  [[nodiscard]] const AsyncHold* telling() const noexcept { return telling_; }
  void set_telling(const AsyncHold* hold) noexcept { telling_ = hold; }
  // The executor is the parent process's.
  [[nodiscard]] virtual bool forked() const noexcept = 0;
  // In a forked child, as soon as it is noticed: what had been waiting is completed with Status::forked, where the child runs
  // its copy of the loop, and from then on nothing of the parent's is touched.
  void leave_to_parent();
  // Bytes came: a deadline is judged only behind all that had arrived.
  void note_heard() noexcept { heard_ = true; }

  // Fixed memory for what Asio itself keeps of an operation in progress. Its blocks are given back by any thread. How many there
  // are at a time depends on Asio and on who runs the loop: what finds no block takes the heap.
  class OperationMemory {
   public:
    static constexpr std::size_t block_size = 384;
    explicit OperationMemory(std::size_t count) : blocks_(new Block[count]), count_(count) {}
    [[nodiscard]] void* take(std::size_t size) {
      for (std::size_t index = 0; size <= block_size && index < count_; ++index)
        if (!blocks_[index].taken.exchange(true, std::memory_order_acquire)) return blocks_[index].bytes;
      return ::operator new(size);
    }
    void put_back(void* place) noexcept {
      for (std::size_t index = 0; index < count_; ++index)
        if (blocks_[index].bytes == place) return blocks_[index].taken.store(false, std::memory_order_release);
      ::operator delete(place);
    }

   private:
    struct Block {
      alignas(std::max_align_t) unsigned char bytes[block_size];
      std::atomic<bool> taken{false};
    };
    std::unique_ptr<Block[]> blocks_;
    std::size_t count_;
  };

  template <class Type>
  struct OperationAllocator {
    using value_type = Type;
    explicit OperationAllocator(OperationMemory& memory) noexcept : memory_(&memory) {}
    template <class Other>
    OperationAllocator(const OperationAllocator<Other>& other) noexcept : memory_(other.memory_) {}
    [[nodiscard]] Type* allocate(std::size_t count) { return static_cast<Type*>(memory_->take(count * sizeof(Type))); }
    void deallocate(Type* place, std::size_t) noexcept { memory_->put_back(place); }
    template <class Other>
    bool operator==(const OperationAllocator<Other>& other) const noexcept {
      return memory_ == other.memory_;
    }
    OperationMemory* memory_;
  };

  // A handler of the loop's own: keeps the loop alive, and its memory is the loop's.
  template <class Function>
  struct OwnHandler {
    using allocator_type = OperationAllocator<void>;
    std::shared_ptr<AsyncLoop> loop;
    Function function;
    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(loop->memory_); }
    template <class... Arguments>
    void operator()(const Arguments&... arguments) {
      function(arguments...);
    }
  };
  template <class Function>
  [[nodiscard]] OwnHandler<Function> own(Function function) {
    return {shared_from_this(), std::move(function)};
  }

  // Everything that can be done without waiting, between an event and the next.
  void turn() { turn(false); }
  // Another turn follows the one that is going on.
  void turn_again() noexcept { turn_again_ = true; }
  // A turn behind what an event of the loop's own has to say: one turn for both.
  template <class Event>
  void take(Event event) {
    turn_follows_ = true;
    if (!forked()) event();
    turn(false);
  }

 protected:
  AsyncLoop(executor_type executor, std::size_t operations, std::size_t own_operations);
  virtual ~AsyncLoop();

  // Moves what can be moved; decides completions, and calls no handler.
  virtual void work() = 0;
  // The turn is over, and everything has been sent: asks for what comes.
  virtual void await() = 0;
  void note_cancel() noexcept { ++cancels_; }
  // The clock was read.
  virtual void set_now(Instant now) noexcept = 0;
  // When time alone gives work() something to do; and it has come, with everything taken in that had arrived by then.
  [[nodiscard]] virtual Instant next_timeout() const noexcept = 0;
  virtual void judge_time() = 0;
  // In a forked child: copies of the parent's descriptors are closed, and nothing more.
  virtual void leave_connections() = 0;

  void read_clock() noexcept;
  // No timer, and no turn, from here on, but for the handlers that wait.
  void stop();
  // The executor is not kept busy by a time that has lost its reason. The next turn arms the timer again.
  void disarm_timer();
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  template <class Handler>
  struct KeptHandler;
  template <class Handler>
  struct Refusal;
  struct CancelOperation {
    std::weak_ptr<AsyncLoop> loop;
    Completion* completion;
    std::uint64_t serial;
    void operator()(asio::cancellation_type type) const {
      // A wish for total cancellation is granted as well: nothing of the operation is left behind.
      if ((type & (asio::cancellation_type::terminal | asio::cancellation_type::total)) ==
          asio::cancellation_type::none)
        return;
      if (const auto alive = loop.lock()) alive->cancel(*completion, serial);
    }
  };
  struct TurnEnd;
  class Ends;

  [[nodiscard]] Completion& take_free() noexcept;
  void decide(Completion& completion, Status outcome) noexcept {
    if (dropped_) return;
    completion.owner_ = nullptr;
    completion.outcome_ = outcome;
    completion.next_ = nullptr;
    (decided_first_ == nullptr ? decided_first_ : decided_last_->next_) = &completion;
    decided_last_ = &completion;
  }
  void leave_all();
  template <class Handler>
  void refuse(KeptHandler<Handler>&& kept, Status why);
  void put_back(Completion& completion) noexcept;
  void cancel(Completion& completion, std::uint64_t serial);
  void turn(bool posted);
  void post_turn();
  void run_handlers();
  void arm_timer();
  void timer_fired(std::uint64_t serial);
  void drop_handlers();

  executor_type executor_;
  const asio::io_context::executor_type* io_ = nullptr;  // What executor_ is, if it is a loop's own.
  OperationMemory memory_;
  std::unique_ptr<Completion[]> completions_;
  std::size_t completion_count_;
  LinkedPlace<AsyncHold> untold_;  // Holds with something to tell.
  const AsyncHold* telling_ = nullptr;
  Completion* free_ = nullptr;
  Completion* decided_first_ = nullptr;
  Completion* decided_last_ = nullptr;
  Completion* running_ = nullptr;  // Decided before this turn's handlers began.
  asio::steady_timer timer_;
  std::uint64_t timer_serial_ = 0;
  Instant timer_at_ = Instant::max();  // When it fires; Instant::max(): it is not armed.
  SleeperHeap sleepers_;
  Instant now_;
  std::uint64_t serial_ = 0;
  std::uint32_t cancels_ = 0;
  bool in_turn_ = false;
  bool turn_posted_ = false;
  bool turn_follows_ = false;  // An event is being dealt with.
  bool turn_again_ = false;
  bool heard_ = false;
  bool judging_ = false;   // A timer has fired: a posted turn judges.
  std::uint8_t hops_ = 0;  // Turns that the judgement was put off by.
  bool stopped_ = false;
  bool left_ = false;     // To the parent process.
  bool dropped_ = false;  // The executor's context has ended: no handler is called any more.
  Ends* ends_ = nullptr;
  LinkedPlace<AsyncLoop> place_{this};  // Among all loops of the context.
};

// ---- Implementation ----------------------------------------------------------------------------------------------

// Work is counted on another executor than the loop's, which has work as long as it is connected.
template <class Handler>
struct AsyncLoop::KeptHandler {
  using Executor = asio::associated_executor_t<Handler, asio::any_io_executor>;
  using Allocator = asio::associated_allocator_t<Handler>;
  struct Call {
    using allocator_type = Allocator;
    Handler handler;
    Allocator allocator;
    std::error_code error;
    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator; }
    void operator()() { std::move(handler)(error); }
  };

  // Of a handler without an executor of its own, which takes whatever is the default, nothing has to be kept or compared.
  static constexpr bool has_executor =
      !std::is_same_v<Executor, asio::any_io_executor> ||
      !std::is_same_v<asio::associated_executor_t<Handler, asio::system_executor>, asio::system_executor>;
  struct NoWork {};
  using Work = std::conditional_t<has_executor, std::optional<asio::executor_work_guard<Executor>>, NoWork>;

  Handler handler;
  [[no_unique_address]] Work work;

  KeptHandler(Handler&& given, const AsyncLoop& loop) : handler(std::move(given)) {
    if constexpr (has_executor) {
      Executor executor = asio::get_associated_executor(handler, loop.executor_);
      if constexpr (std::is_same_v<Executor, asio::any_io_executor>) {
        if (executor == loop.executor_) return;
      } else if constexpr (std::is_same_v<Executor, asio::io_context::executor_type>) {
        if (loop.io_ != nullptr && executor == *loop.io_) return;
      }
      work.emplace(std::move(executor));
    }
  }

  static KeptHandler& of(Completion& completion) noexcept {
    return *std::launder(reinterpret_cast<KeptHandler*>(completion.place_));
  }
  static void destroy(Completion& completion, AsyncLoop&) { of(completion).~KeptHandler(); }
  static void call(Completion& completion, AsyncLoop& loop) {
    KeptHandler kept(std::move(of(completion)));
    destroy(completion, loop);
    const std::error_code error = make_error_code(completion.outcome_);
    loop.put_back(completion);  // The handler may start the next operation.
    invoke(kept, error);
  }
  static void invoke(KeptHandler& kept, std::error_code error) {
    if constexpr (has_executor) {
      if (kept.work) {
        const Executor executor = kept.work->get_executor();
        Allocator allocator = asio::get_associated_allocator(kept.handler);
        asio::dispatch(executor, Call{std::move(kept.handler), std::move(allocator), error});
        return;
      }
    }
    std::move(kept.handler)(error);
  }
};

// On its way to a handler that has no place. Its memory is that of the handler's own allocator.
template <class Handler>
struct AsyncLoop::Refusal {
  using allocator_type = typename KeptHandler<Handler>::Allocator;
  KeptHandler<Handler> kept;
  allocator_type allocator;
  std::error_code error;
  [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator; }
  void operator()() { KeptHandler<Handler>::invoke(kept, error); }
};

template <class Handler>
void AsyncLoop::refuse(KeptHandler<Handler>&& kept, Status why) {
  if (dropped_) return;
  auto allocator = asio::get_associated_allocator(kept.handler);
  const std::error_code error = make_error_code(why);
  if constexpr (KeptHandler<Handler>::has_executor) {
    if (why == Status::forked && kept.work) {  // The loop's executor is the parent's: the child may never run it.
      const auto executor = kept.work->get_executor();
      asio::post(executor, Refusal<Handler>{std::move(kept), std::move(allocator), error});
      return;
    }
  }
  Refusal<Handler> refusal{std::move(kept), std::move(allocator), error};
  if (io_ != nullptr)
    asio::post(*io_, std::move(refusal));
  else
    asio::post(executor_, std::move(refusal));
}

template <class Handler, class Start>
void AsyncLoop::initiate(Handler&& handler, OperationOwner& owner, Start start) {
  using Kept = KeptHandler<std::decay_t<Handler>>;
  static_assert(sizeof(Kept) <= Completion::handler_size_max, "this handler captures more than fits into its slot");
  static_assert(alignof(Kept) <= alignof(std::max_align_t));
  auto slot = asio::get_associated_cancellation_slot(handler);
  std::decay_t<Handler> given(std::forward<Handler>(handler));
  if (forked()) return refuse(Kept(std::move(given), *this), Status::forked);
  if (free_ == nullptr) return refuse(Kept(std::move(given), *this), Status::too_many_requests);
  Completion& completion = take_free();
  new (completion.place_) Kept(std::move(given), *this);
  completion.call_ = Kept::call;
  completion.destroy_ = Kept::destroy;
  completion.owner_ = &owner;
  if (slot.is_connected()) slot.assign(CancelOperation{weak_from_this(), &completion, completion.serial_});
  start(completion);
}

}  // namespace holdfast
