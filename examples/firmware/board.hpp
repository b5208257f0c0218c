// SPDX-License-Identifier: MIT
//
// The board: MPS2 with the image AN386, a Cortex-M4 at 25 MHz, as QEMU's machine mps2-an386 has it. A clock, a console, random
// bytes, and what the program is told. The network chip is in lan9118.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"

namespace board {

// Before anything else.
void start();

// ---- Time --------------------------------------------------------------------------------------------------------

// By a counter at 1 MHz that starts again every 71 minutes: it must be read more often than that. Not for handlers of interrupts,
// since each reading adds to what was counted.
[[nodiscard]] holdfast::Instant now();
// The same in milliseconds, modulo 2^32.
[[nodiscard]] std::uint32_t milliseconds();
// Sleeps until the next interrupt: SysTick's, which comes every millisecond.
void sleep();
// How many of SysTick's interrupts came.
[[nodiscard]] std::uint32_t ticks();

// Two readings may be so far apart in truth and equal by the counter: a hold could look valid for so much longer than it is.
inline constexpr holdfast::Duration clock_step = std::chrono::microseconds(1);

// ---- Console -----------------------------------------------------------------------------------------------------

void print(const char* text);
void print(const char* bytes, std::size_t size);
void print_number(std::uint64_t number);
// The next byte that was typed; below 0: there is none.
[[nodiscard]] int typed();

// ---- From the debugger: semihosting ------------------------------------------------------------------------------

// The words that the program was started with, separated by spaces. False: there are none, or they do not fit.
[[nodiscard]] bool read_command_line(char* into, std::size_t size);
// Random bytes that nobody can guess, of the host's random source: QEMU's board has none. On a board of your own take its TRNG,
// and nothing less: whoever guesses a token can release the lock. False: there are none, and nothing may be locked.
[[nodiscard]] bool draw_random(void* into, std::size_t size);
// The end. Without a debugger there is nowhere to return to.
[[noreturn]] void stop(int code);

// ---- Memory ------------------------------------------------------------------------------------------------------

[[nodiscard]] std::size_t stack_size();
// How much of it was ever used: what start-up painted and nobody has overwritten is left.
[[nodiscard]] std::size_t stack_used();

}  // namespace board
