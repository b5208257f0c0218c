// SPDX-License-Identifier: MIT
//
// A number of a place where a server is asked. Two places have the same one by an accident of 1 in 2^64.
#pragma once

#include <cstdint>

#include "holdfast/proto/bytes.hpp"

namespace holdfast {

class PlaceNumber {
 public:
  PlaceNumber& add(char byte) noexcept {  // FNV-1a
    hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 1099511628211U;
    return *this;
  }
  PlaceNumber& add(ByteView text) noexcept {
    for (const char byte : text) add(byte);
    return *this;
  }
  // For several callers in a program: one of it is enough.
  [[gnu::noinline]] PlaceNumber& add(ByteView host, std::uint16_t port) noexcept {
    return add(host).add('\0').add(static_cast<char>(port >> 8)).add(static_cast<char>(port & 0xff));
  }
  [[nodiscard]] std::uint64_t get() const noexcept { return hash_ != 0 ? hash_ : 1; }

 private:
  std::uint64_t hash_ = 14695981039346656037U;
};

}  // namespace holdfast
