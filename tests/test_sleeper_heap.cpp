// SPDX-License-Identifier: MIT
//
// The heap of sleepers against a plain list of them: whoever is woken is one of those that sleep shortest.
#include "holdfast/core/sleeper_heap.hpp"

#include <algorithm>
#include <csetjmp>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr Instant at(std::int64_t nanoseconds) { return Instant::from_nanoseconds(nanoseconds); }
Instant drawn(std::mt19937& random, unsigned bound) { return at(static_cast<std::int64_t>(random() % bound)); }

class Napper final : public Sleeper {
 public:
  void wake(Instant now) override { woken_at = now; }
  Instant woken_at;
};

// Everybody out of bed: a sleeper must not go while it sleeps.
void empty(SleeperHeap& heap) {
  while (heap.take_due(at(INT64_MAX - 1)) != nullptr) {}
}

sigjmp_buf behind;
void leave(const char*, int) noexcept { siglongjmp(behind, 1); }

}  // namespace

static void setUp() {}
static void tearDown() { set_assertion_handler(nullptr); }

TEST(test_an_empty_heap_should_have_nobody_to_wake) {
  SleeperHeap heap;
  TEST_ASSERT_EQUAL(Instant::max(), heap.next());
  TEST_ASSERT_TRUE(heap.take_due(Instant::max()) == nullptr);
}

TEST(test_a_sleeper_should_be_due_at_its_time_and_not_before) {
  SleeperHeap heap;
  Napper napper;
  heap.put(napper, at(100));
  TEST_ASSERT_EQUAL(at(100), napper.wakes_at());
  TEST_ASSERT_EQUAL(at(100), heap.next());
  TEST_ASSERT_TRUE(heap.take_due(at(99)) == nullptr);
  TEST_ASSERT_TRUE(heap.take_due(at(100)) == &napper);
  TEST_ASSERT_EQUAL(Instant::max(), napper.wakes_at());
  TEST_ASSERT_TRUE(heap.take_due(at(100)) == nullptr);
  TEST_ASSERT_EQUAL(Instant(), napper.woken_at);  // It is its taker who wakes it.
}

TEST(test_a_sleeper_that_is_put_again_should_wake_at_the_new_time_only) {
  SleeperHeap heap;
  Napper napper;
  heap.put(napper, at(100));
  heap.put(napper, at(100));
  heap.put(napper, at(50));
  TEST_ASSERT_EQUAL(at(50), heap.next());
  heap.put(napper, at(200));
  TEST_ASSERT_TRUE(heap.take_due(at(199)) == nullptr);
  TEST_ASSERT_TRUE(heap.take_due(at(200)) == &napper);
  TEST_ASSERT_EQUAL(Instant::max(), heap.next());
}

TEST(test_for_ever_should_take_a_sleeper_out) {
  SleeperHeap heap;
  Napper napper;
  heap.put(napper, Instant::max());
  TEST_ASSERT_TRUE(heap.take_due(Instant::max()) == nullptr);
  heap.put(napper, at(1));
  heap.put(napper, Instant::max());
  TEST_ASSERT_EQUAL(Instant::max(), heap.next());
  TEST_ASSERT_EQUAL(Instant::max(), napper.wakes_at());
}

TEST(test_sleepers_should_be_woken_in_the_order_of_their_times) {
  std::mt19937 random(6);
  SleeperHeap heap;
  std::vector<Napper> nappers(1000);
  std::vector<std::int64_t> times;
  for (Napper& napper : nappers) {
    times.push_back(static_cast<std::int64_t>(random() % 500));
    heap.put(napper, at(times.back()));
  }
  std::sort(times.begin(), times.end());
  for (const std::int64_t time : times) {
    TEST_ASSERT_EQUAL(at(time), heap.next());
    if (time != 0) TEST_ASSERT_TRUE(heap.take_due(at(time - 1)) == nullptr);
    TEST_ASSERT_TRUE(heap.take_due(at(time)) != nullptr);
  }
  TEST_ASSERT_EQUAL(Instant::max(), heap.next());
}

TEST(test_any_member_should_be_removable) {
  constexpr std::size_t count = 40;
  // The shape depends on what was taken before: each member leaves heaps of three shapes.
  for (std::size_t leaver = 0; leaver < 3 * count; ++leaver) {
    SleeperHeap heap;
    std::vector<Napper> nappers(count + 3);
    for (std::size_t index = 0; index < nappers.size(); ++index)
      heap.put(nappers[index], at(static_cast<std::int64_t>(index * 7919 % 101 + 1)));
    for (std::size_t taken = 0; taken < leaver / count; ++taken) TEST_ASSERT_TRUE(heap.take_due(at(1000)) != nullptr);
    heap.put(nappers[leaver % count], Instant::max());
    std::size_t left = 0;
    for (const Napper& napper : nappers) left += napper.wakes_at() != Instant::max() ? 1U : 0U;
    Instant last;
    for (Instant next = heap.next(); next != Instant::max(); next = heap.next(), --left) {
      TEST_ASSERT_TRUE(last <= next);
      last = next;
      TEST_ASSERT_TRUE(heap.take_due(next) != &nappers[leaver % count]);
    }
    TEST_ASSERT_EQUAL(0U, left);
  }
}

TEST(test_random_operations_should_agree_with_a_sorted_list) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    TEST_MESSAGE("seed " << seed);
    std::mt19937 random(seed);
    SleeperHeap heap;
    std::vector<Napper> nappers(1 + random() % 60);
    std::vector<Instant> model(nappers.size(), Instant::max());
    for (int step = 0; step < 2000; ++step) {
      const std::size_t index = random() % nappers.size();
      switch (random() % 4) {
        case 0:
        case 1:
          model[index] = drawn(random, 200);
          heap.put(nappers[index], model[index]);
          break;
        case 2:
          model[index] = Instant::max();
          heap.put(nappers[index], Instant::max());
          break;
        default: {
          const Instant now = drawn(random, 200);
          const Instant first = *std::min_element(model.begin(), model.end());
          Sleeper* const due = heap.take_due(now);
          TEST_ASSERT_EQUAL(first <= now, due != nullptr);
          if (due == nullptr) break;
          const auto who = static_cast<std::size_t>(static_cast<Napper*>(due) - nappers.data());
          TEST_ASSERT_EQUAL(first, model[who]);
          model[who] = Instant::max();
        }
      }
      TEST_ASSERT_EQUAL(*std::min_element(model.begin(), model.end()), heap.next());
      TEST_ASSERT_EQUAL(model[index], nappers[index].wakes_at());
    }
    empty(heap);
  }
}

// It would leave its neighbours with a link to nothing.
TEST(test_a_sleeper_that_goes_while_it_sleeps_should_be_an_assertion) {
  set_assertion_handler(leave);
  SleeperHeap heap;
  alignas(Napper) unsigned char place[sizeof(Napper)];
  auto* const napper = new (place) Napper();
  heap.put(*napper, at(1));
  const bool returned = sigsetjmp(behind, 1) == 0;
  if (returned) napper->~Napper();
  TEST_ASSERT_FALSE(returned);
}

TEST(test_a_sleeper_that_is_awake_should_go_without_a_word) {
  SleeperHeap heap;
  const auto napper = std::make_unique<Napper>();
  heap.put(*napper, at(1));
  TEST_ASSERT_TRUE(heap.take_due(at(1)) == napper.get());
}
