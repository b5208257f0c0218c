// SPDX-License-Identifier: MIT
//
// SharedValue is a small value that one thread writes and any thread, or a signal handler, reads. std::atomic would do,
// but where _GLIBCXX_ASSERTIONS is on its members check their arguments, and that check is a symbol of libstdc++.
#pragma once

namespace holdfast {

template <class Value>
class SharedValue {
 public:
  static_assert(__atomic_always_lock_free(sizeof(Value), nullptr), "a signal handler must not wait for a lock");

  constexpr SharedValue() noexcept = default;
  SharedValue(const SharedValue&) = delete;
  SharedValue& operator=(const SharedValue&) = delete;

  // What was written before a store is seen after the load that sees it.
  [[nodiscard]] Value load() const noexcept { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
  void store(Value value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  Value exchange(Value value) noexcept { return __atomic_exchange_n(&value_, value, __ATOMIC_ACQ_REL); }

 private:
  Value value_{};
};

}  // namespace holdfast
