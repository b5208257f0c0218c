// SPDX-License-Identifier: MIT
//
// What tests with a heap trap share: another thread's hands, and a proof that the trap works.
#pragma once

#include <atomic>
#include <cstdlib>
#include <thread>

#include "heap_trap.hpp"
#include "patience.hpp"
#include "unity_style.hpp"

inline void prove_that_the_trap_works() {
  HeapTrap proof;
  void* volatile block = std::malloc(1);  // Volatile: the pair may not be optimised away.
  std::free(block);
  TEST_ASSERT_TRUE(proof.count() > 0);
}

// Another thread's hands, so that what they allocate is not ours: each numbered step is done when it is asked for.
template <class Step>
class Hands {
 public:
  explicit Hands(Step step) : step_(std::move(step)), thread_([this] { run(); }) {}
  ~Hands() {
    asked_ = -1;
    thread_.join();
  }
  void begin(int number) { asked_ = number; }
  void finish(int number) const {
    while (done_ != number) std::this_thread::yield();
  }
  void perform(int number) {
    begin(number);
    finish(number);
  }

 private:
  void run() {
    for (int last = 0; asked_ != -1; breathe(std::chrono::milliseconds(1)))
      if (const int asked = asked_; asked != last && asked != -1) {
        step_(asked);
        done_ = last = asked;
      }
  }
  Step step_;
  std::atomic<int> asked_ = 0;
  std::atomic<int> done_ = 0;
  std::thread thread_;
};
