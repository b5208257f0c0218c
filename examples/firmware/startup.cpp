// SPDX-License-Identifier: MIT
//
// From reset to main(): vectors, memory, constructors. Written so that it needs no start-up files of a library.
#include <cstddef>
#include <cstdint>

#include "board.hpp"
#include "registers.hpp"

extern "C" {
// Of the linker script.
extern std::uint32_t stack_bottom, stack_top, data_load, data_begin, data_end, bss_begin, bss_end;
using Constructor = void (*)();
extern Constructor constructors_begin, constructors_end;

int main();
void reset();
void tick_handler();
void fault();
[[noreturn]] void tell_fault();
}

namespace {

// A value that no frame is likely to hold.
constexpr std::uint32_t paint = 0xc0dedeadU;

// The memory protection unit (DDI 0403): its region 0 is a guard below the stack, and all else is as it was.
constexpr std::uintptr_t mpu_control = 0xe000ed94, mpu_number = 0xe000ed98, mpu_base = 0xe000ed9c,
                         mpu_form = 0xe000eda0;
constexpr std::uint32_t mpu_on = 1U << 0, mpu_else_default = 1U << 2;
constexpr std::uint32_t region_on = 1U << 0, region_4k = 11U << 1, region_never_executed = 1U << 28;  // And no access.
constexpr std::uintptr_t guard_size = 4096;  // Larger than any frame: none steps over it.

void guard_stack() {
  board::register_at(mpu_number) = 0;
  board::register_at(mpu_base) =
      static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&stack_bottom) - guard_size);
  board::register_at(mpu_form) = region_on | region_4k | region_never_executed;
  board::register_at(mpu_control) = mpu_on | mpu_else_default;
  __asm__ volatile("dsb\n\tisb" ::: "memory");
}

struct Vectors {
  const void* stack;
  void (*reset)();
  void (*handlers[14])();  // Of the core's own exceptions.
};

}  // namespace

// The network chip and the console are polled, so no interrupt but SysTick's is on.
extern "C" const Vectors vectors;
[[gnu::section(".vectors")]] const Vectors vectors = {&stack_top,
                                                      reset,
                                                      {fault, fault, fault, fault, fault, nullptr, nullptr, nullptr,
                                                       nullptr, fault, fault, nullptr, fault, tick_handler}};

// The stack is painted here, where nothing of it is in use but this frame.
extern "C" void reset() {
  std::uint32_t* top = nullptr;
  __asm__ volatile("mov %0, sp" : "=r"(top));
  for (std::uint32_t* at = &stack_bottom; at < top; ++at) *at = paint;
  const std::uint32_t* from = &data_load;
  for (std::uint32_t* at = &data_begin; at < &data_end; ++at) *at = *from++;
  for (std::uint32_t* at = &bss_begin; at < &bss_end; ++at) *at = 0;
  guard_stack();
  board::start();
  for (Constructor* at = &constructors_begin; at < &constructors_end; ++at) (*at)();
  board::stop(main());
}

// The stack may be what is wrong: it begins anew.
extern "C" [[gnu::naked]] void fault() {
  __asm__ volatile(
      "ldr r0, =stack_top\n\t"
      "mov sp, r0\n\t"
      "b tell_fault");
}

extern "C" void tell_fault() {
  board::print("fault\n");
  board::stop(70);
}

// What newlib would do here wants signals, and they want a heap.
extern "C" [[noreturn]] void abort() { board::stop(70); }

namespace board {

std::size_t stack_size() { return static_cast<std::size_t>(&stack_top - &stack_bottom) * sizeof(std::uint32_t); }

std::size_t stack_used() {
  const std::uint32_t* at = &stack_bottom;
  while (at < &stack_top && *at == paint) ++at;
  return static_cast<std::size_t>(&stack_top - at) * sizeof(std::uint32_t);
}

}  // namespace board
