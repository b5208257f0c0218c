// SPDX-License-Identifier: MIT
//
// What a proof is written with. `prove()` stands for all its runs at once: any_*() is every number, whatever assume() leaves.
// CBMC shows that no run fails a claim(), breaks an assertion of the library, reads or writes outside an object, divides by zero
// or overflows a signed number. prove.py reads the directives in the comment at the head of a proof:
//
//     BOUND   what it is proved for
//     UNWIND  how often a loop turns at most, and more: CBMC shows that no loop turns oftener
//     BROKEN  FILE: `text` => `other text`   the library with that change must fail the proof; there is at least one
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
std::uint8_t any_u8() noexcept;
std::uint16_t any_u16() noexcept;
std::uint32_t any_u32() noexcept;
std::uint64_t any_u64() noexcept;
void assume(bool condition) noexcept;
void claim(bool condition) noexcept;
char* any_bytes(std::size_t size) noexcept;  // An object of exactly that size, with any content.
void prove() noexcept;
}

namespace holdfast {
inline std::int64_t any_signed() noexcept { return static_cast<std::int64_t>(any_u64()); }
}  // namespace holdfast
