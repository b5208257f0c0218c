// SPDX-License-Identifier: MIT
//
// From reset to main(): vectors, memory, constructors. Written so that it needs no start-up files of a library.
#include <cstddef>
#include <cstdint>

#include "board.hpp"

extern "C" {
// Of the linker script.
extern std::uint32_t stack_bottom, stack_top, data_load, data_begin, data_end, bss_begin, bss_end;
using Constructor = void (*)();
extern Constructor constructors_begin, constructors_end;

int main();
void reset();
void tick_handler();
[[noreturn]] void fault();
}

namespace {

// Nobody pushes this by accident as often as it would take.
constexpr std::uint32_t paint = 0xc0dedeadU;

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
  board::start();
  for (Constructor* at = &constructors_begin; at < &constructors_end; ++at) (*at)();
  board::stop(main());
}

extern "C" void fault() {
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
