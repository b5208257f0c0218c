// SPDX-License-Identifier: MIT
#include "fiber.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define HOLDFAST_SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOLDFAST_SIM_ASAN 1
#endif
#endif
#ifdef HOLDFAST_SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace holdfast::sim {

namespace {

constexpr std::size_t stack_size = 256 * 1024;
constexpr std::size_t guard_size = 4096;  // Below the stack: an overflow is a crash and no riddle.

struct Stacks {
  std::vector<void*> free;
  ~Stacks() {
    for (void* const stack : free) {
#ifndef HOLDFAST_SIM_ASAN
      (void)::mprotect(stack, guard_size, PROT_READ | PROT_WRITE);
#endif
      std::free(stack);
    }
  }
};
std::vector<void*>& free_stacks() {
  static Stacks stacks;
  return stacks.free;
}

void* take_stack() {
  std::vector<void*>& stacks = free_stacks();
  if (!stacks.empty()) {
    void* const stack = stacks.back();
    stacks.pop_back();
    return stack;
  }
  void* const stack = std::aligned_alloc(guard_size, stack_size);
  if (stack == nullptr) std::abort();
#ifndef HOLDFAST_SIM_ASAN  // It reads all of the heap when it looks for leaks.
  if (::mprotect(stack, guard_size, PROT_NONE) != 0) std::abort();
#endif
  return stack;
}

void give_stack(void* stack) {
#ifdef HOLDFAST_SIM_ASAN
  // What a dropped fiber left on its stack is poisoned still.
  __asan_unpoison_memory_region(static_cast<char*>(stack) + guard_size, stack_size - guard_size);
#endif
  free_stacks().push_back(stack);
}

// Other threads, a fuzzer's for one, are in none.
constinit thread_local Fiber* running = nullptr;

constinit Fiber::Owns kept_apart{};

}  // namespace

// ---- Switching ---------------------------------------------------------------------------------------------------

// swapcontext() saves the signal mask by two system calls, which would be most of what a simulated event costs.
#if defined(__x86_64__)
#define HOLDFAST_SIM_SWITCH 1
asm(R"(
.text
.p2align 4
.type holdfast_sim_switch,@function
holdfast_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size holdfast_sim_switch,.-holdfast_sim_switch
)");
extern "C" void holdfast_sim_switch(void** save, void* load);
#endif

struct Fiber::Context {
  void* stack = nullptr;
  std::array<void*, Fiber::own_count> kept_apart{};
#ifdef HOLDFAST_SIM_SWITCH
  void* own = nullptr;
  void* caller = nullptr;
#else
  ucontext_t own;
  ucontext_t caller;
#endif
#ifdef HOLDFAST_SIM_ASAN
  const void* caller_stack = nullptr;
  std::size_t caller_size = 0;
  void* caller_fake = nullptr;
  void* own_fake = nullptr;
#endif
};

Fiber::Fiber(Body body, void* argument) : body_(body), argument_(argument), context_(new Context) {
  context_->stack = take_stack();
#ifdef HOLDFAST_SIM_SWITCH
  // As if it had been switched from at the beginning of enter(): six registers and where to return to.
  auto* top = reinterpret_cast<std::uintptr_t*>(static_cast<char*>(context_->stack) + stack_size);
  *--top = 0;
  *--top = reinterpret_cast<std::uintptr_t>(&Fiber::enter);
  for (int registers = 0; registers < 6; ++registers) *--top = 0;
  context_->own = top;
#else
  ::getcontext(&context_->own);
  context_->own.uc_stack.ss_sp = static_cast<char*>(context_->stack) + guard_size;
  context_->own.uc_stack.ss_size = stack_size - guard_size;
  context_->own.uc_link = nullptr;
  ::makecontext(&context_->own, &Fiber::enter, 0);
#endif
}

Fiber::~Fiber() {
  give_stack(context_->stack);
  delete context_;
}

Fiber* Fiber::current() noexcept { return running; }

void Fiber::keep_apart(const Owns& owns) noexcept { kept_apart = owns; }

void Fiber::exchange_own() noexcept {
  if (kept_apart[0].get == nullptr) return;
  for (std::size_t index = 0; index < own_count; ++index) {
    void* const before = kept_apart[index].get();
    kept_apart[index].set(context_->kept_apart[index]);
    context_->kept_apart[index] = before;
  }
}

void Fiber::enter() {
  Fiber* const self = running;
#ifdef HOLDFAST_SIM_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &self->context_->caller_stack, &self->context_->caller_size);
#endif
  self->body_(self->argument_);
  self->done_ = true;
  suspend();
  std::abort();
}

void Fiber::resume() {
  running = this;
  exchange_own();
#ifdef HOLDFAST_SIM_ASAN
  __sanitizer_start_switch_fiber(&context_->caller_fake, static_cast<char*>(context_->stack) + guard_size,
                                 stack_size - guard_size);
#endif
#ifdef HOLDFAST_SIM_SWITCH
  holdfast_sim_switch(&context_->caller, context_->own);
#else
  ::swapcontext(&context_->caller, &context_->own);
#endif
#ifdef HOLDFAST_SIM_ASAN
  __sanitizer_finish_switch_fiber(context_->caller_fake, nullptr, nullptr);
#endif
  exchange_own();
  running = nullptr;
}

void Fiber::suspend() {
  Context& context = *running->context_;
#ifdef HOLDFAST_SIM_ASAN
  __sanitizer_start_switch_fiber(running->done_ ? nullptr : &context.own_fake, context.caller_stack,
                                 context.caller_size);
#endif
#ifdef HOLDFAST_SIM_SWITCH
  holdfast_sim_switch(&context.own, context.caller);
#else
  ::swapcontext(&context.own, &context.caller);
#endif
#ifdef HOLDFAST_SIM_ASAN
  __sanitizer_finish_switch_fiber(context.own_fake, &context.caller_stack, &context.caller_size);
#endif
}

}  // namespace holdfast::sim
