// SPDX-License-Identifier: MIT
//
// A device's register is a word at an address.
#pragma once

#include <cstdint>

namespace board {

inline volatile std::uint32_t& register_at(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}

}  // namespace board
