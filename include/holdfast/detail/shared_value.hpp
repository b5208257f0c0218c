// SPDX-License-Identifier: MIT
//
// SharedValue is a small value that one thread writes and any thread, or a signal handler, reads. std::atomic would do,
// but where _GLIBCXX_ASSERTIONS is on its members check their arguments, and that check is a symbol of libstdc++.
//
// No machine waits for a lock in here: what its instructions cannot move at once stands in whole words instead.
//   a byte, on RISC-V before GCC 13                    a word
//   64 bits, on 32-bit PowerPC, MIPS and RISC-V        SplitValue
// A word, or what an instruction moves, may be written by several threads. A SplitValue may not: see there.
#pragma once

#include <type_traits>

#include "holdfast/detail/split_value.hpp"

namespace holdfast {

template <class Value>
inline constexpr bool moves_at_once = __atomic_always_lock_free(sizeof(Value), nullptr);

template <class Value>
class SharedValue {
 public:
  using Stored = std::conditional_t<moves_at_once<Value>, Value, unsigned>;
  static_assert(sizeof(Value) <= sizeof(Stored) && moves_at_once<Stored>, "a signal handler must not wait for a lock");

  constexpr SharedValue() noexcept = default;
  SharedValue(const SharedValue&) = delete;
  SharedValue& operator=(const SharedValue&) = delete;

  // What was written before a store is seen after the load that sees it.
  [[nodiscard, gnu::always_inline]] Value load() const noexcept {  // A call would cost more bytes.
    return static_cast<Value>(__atomic_load_n(&stored_, __ATOMIC_ACQUIRE));
  }
  void store(Value value) noexcept { __atomic_store_n(&stored_, static_cast<Stored>(value), __ATOMIC_RELEASE); }
  Value exchange(Value value) noexcept {
    return static_cast<Value>(__atomic_exchange_n(&stored_, static_cast<Stored>(value), __ATOMIC_ACQ_REL));
  }
  // Sets this bit. True for the first who does.
  bool raise(unsigned bit) noexcept {
    const auto mask = static_cast<Stored>(Stored{1} << bit);
    return (__atomic_fetch_or(&stored_, mask, __ATOMIC_ACQ_REL) & mask) == 0;
  }

 private:
  Stored stored_{};
};

template <class Value>
requires(sizeof(Value) == 8 && !moves_at_once<Value>) class SharedValue<Value> : public SplitValue<Value> {
};

}  // namespace holdfast
