// SPDX-License-Identifier: MIT
#include "board.hpp"

#include <cstring>

#include "registers.hpp"

namespace board {

namespace {

// ---- Registers ---------------------------------------------------------------------------------------------------
// Arm DAI 0386 (the image AN386), DDI 0479 (the UART of the CMSDK), DDI 0403 (SysTick of ARMv7-M).

constexpr std::uint32_t clock_hertz = 25'000'000;

constexpr std::uintptr_t systick = 0xe000e010;
constexpr std::uintptr_t systick_control = systick, systick_reload = systick + 4, systick_value = systick + 8;
constexpr std::uint32_t systick_on = 1U << 0, systick_interrupts = 1U << 1, systick_core_clock = 1U << 2;
constexpr std::uint32_t tick_hertz = 1000;

// Of the FPGA: counts up once each `prescale` + 1 cycles, and starts again after 2^32.
constexpr std::uintptr_t counter = 0x40028018, counter_prescale = 0x4002801c;
constexpr std::uint32_t counter_hertz = 1'000'000;

constexpr std::uintptr_t uart = 0x40004000;
constexpr std::uintptr_t uart_data = uart, uart_state = uart + 4, uart_control = uart + 8, uart_divider = uart + 16;
constexpr std::uint32_t uart_send_full = 1U << 0, uart_received = 1U << 1, uart_send = 1U << 0, uart_receive = 1U << 1;
constexpr std::uint32_t baud = 115'200;

// ---- Semihosting -------------------------------------------------------------------------------------------------
// Arm IHI 0098.

enum class Call : std::uint32_t { open = 0x01, close = 0x02, read = 0x06, command_line = 0x15, exit_extended = 0x20 };

std::int32_t ask_debugger(Call call, const void* arguments) {
  register auto r0 __asm__("r0") = static_cast<std::uint32_t>(call);
  register const void* r1 __asm__("r1") = arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return static_cast<std::int32_t>(r0);
}

volatile std::uint32_t tick_count = 0;
std::uint64_t count = 0;
std::uint32_t last_reading = 0;
std::int32_t random_file = -1;

}  // namespace

extern "C" void tick_handler() { tick_count = tick_count + 1; }

void start() {
  register_at(uart_divider) = clock_hertz / baud;
  register_at(uart_control) = uart_send | uart_receive;
  register_at(counter_prescale) = clock_hertz / counter_hertz - 1;
  register_at(systick_reload) = clock_hertz / tick_hertz - 1;
  register_at(systick_value) = 0;
  register_at(systick_control) = systick_on | systick_interrupts | systick_core_clock;
}

// ---- Time --------------------------------------------------------------------------------------------------------

// Time is not what SysTick's interrupts add up to: one that is kept from its turn for a tick is lost, and a clock that loses
// ticks keeps holds valid for longer than they are. The difference of two readings of a counter is right whatever happened
// between them, as long as they are less than 2^32 counts apart.
holdfast::Instant now() {
  const std::uint32_t reading = register_at(counter);
  count += static_cast<std::uint32_t>(reading - last_reading);
  last_reading = reading;
  constexpr std::int64_t count_nanoseconds = 1'000'000'000 / counter_hertz;
  return holdfast::Instant::from_nanoseconds(static_cast<std::int64_t>(count) * count_nanoseconds);
}

std::uint32_t milliseconds() { return static_cast<std::uint32_t>(now().nanoseconds() / 1'000'000); }

void sleep() { __asm__ volatile("wfi" ::: "memory"); }

std::uint32_t ticks() { return tick_count; }

// ---- Console -----------------------------------------------------------------------------------------------------

void print(const char* bytes, std::size_t size) {
  for (std::size_t at = 0; at < size; ++at) {
    while ((register_at(uart_state) & uart_send_full) != 0) {}
    register_at(uart_data) = static_cast<unsigned char>(bytes[at]);
  }
}

void print(const char* text) { print(text, std::strlen(text)); }

// No format run, so no printf() of newlib with its heap.
void print_number(std::uint64_t number) {
  char digits[20];
  char* const end = digits + sizeof digits;
  char* at = end;
  do *--at = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  print(at, static_cast<std::size_t>(end - at));
}

int typed() {
  if ((register_at(uart_state) & uart_received) == 0) return -1;
  return static_cast<int>(register_at(uart_data) & 0xffU);
}

// ---- From the debugger -------------------------------------------------------------------------------------------

bool read_command_line(char* into, std::size_t size) {
  const struct {
    char* into;
    std::size_t size;
  } arguments = {into, size};
  return ask_debugger(Call::command_line, &arguments) == 0;
}

bool draw_random(void* into, std::size_t size) {
  static constexpr char name[] = "/dev/urandom";
  constexpr std::uint32_t binary_read = 1;
  if (random_file < 0) {
    const struct {
      const char* name;
      std::uint32_t mode;
      std::size_t size;
    } arguments = {name, binary_read, sizeof name - 1};
    random_file = ask_debugger(Call::open, &arguments);
    if (random_file < 0) return false;
  }
  const struct {
    std::int32_t file;
    void* into;
    std::size_t size;
  } arguments = {random_file, into, size};
  return ask_debugger(Call::read, &arguments) == 0;  // It says how many bytes are missing.
}

void stop(int code) {
  constexpr std::uint32_t application_exit = 0x20026;
  const struct {
    std::uint32_t reason;
    int code;
  } arguments = {application_exit, code};
  for (;;) (void)ask_debugger(Call::exit_extended, &arguments);
}

}  // namespace board
