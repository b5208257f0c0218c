// SPDX-License-Identifier: MIT
//
// Two words as one value: on every machine, also where the library has no need of it.
#include "holdfast/detail/split_value.hpp"

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <thread>

#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// A mixture of two of them is none of them.
constexpr std::uint64_t both(std::uint32_t half) { return std::uint64_t{half} << 32 | half; }

}  // namespace

TEST(test_a_split_value_should_be_what_was_stored_last) {
  SplitValue<std::int64_t> value;
  TEST_ASSERT_EQUAL(std::int64_t{0}, value.load());
  for (const std::int64_t number : {INT64_MAX, std::int64_t{1}, std::int64_t{1} << 32, std::int64_t{-1}, INT64_MIN}) {
    value.store(number);
    TEST_ASSERT_EQUAL(number, value.load());
    TEST_ASSERT_EQUAL(number, value.load());
  }
}

TEST(test_a_load_beside_stores_should_never_be_a_mixture_nor_go_back) {
  constexpr std::uint32_t stores = 200'000;
  SplitValue<std::uint64_t> value;
  std::atomic<bool> mixed = false;
  std::atomic<bool> backward = false;
  std::atomic<int> ready = 0;
  const auto read = [&] {
    ++ready;
    std::uint32_t last = 0;
    while (last != stores) {
      const std::uint64_t seen = value.load();
      const auto half = static_cast<std::uint32_t>(seen);
      if (seen != both(half)) mixed = true;
      if (half < last) backward = true;
      last = half;
    }
  };
  std::thread first(read);
  std::thread second(read);
  while (ready != 2) std::this_thread::yield();
  for (std::uint32_t number = 1; number <= stores; ++number) value.store(both(number));
  first.join();
  second.join();
  TEST_ASSERT_FALSE(mixed);
  TEST_ASSERT_FALSE(backward);
}
