// SPDX-License-Identifier: MIT
//
// Fiber is a thread of a simulated process: it runs until it waits, and then the world goes on. So the blocking client
// runs as it is, one thread for all. A fiber that is dropped while it waits is gone as a killed process is: nothing on
// its stack is destroyed.
#pragma once

#include <array>
#include <cstddef>

namespace holdfast::sim {

class Fiber {
 public:
  using Body = void (*)(void* argument);

  Fiber(Body body, void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it waits or ends. Not from within a fiber.
  void resume();
  [[nodiscard]] bool done() const noexcept { return done_; }
  // Back to who resumed it. From within a fiber.
  static void suspend();
  // nullptr outside.
  [[nodiscard]] static Fiber* current() noexcept;
  // Pointers that each thread has for itself: fibers share the thread, so they are exchanged with every switch.
  struct Own {
    void* (*get)() noexcept;
    void (*set)(void* value) noexcept;
  };
  static constexpr std::size_t own_count = 2;
  using Owns = std::array<Own, own_count>;
  static void keep_apart(const Owns& owns) noexcept;

 private:
  struct Context;
  void exchange_own() noexcept;
  [[noreturn]] static void enter();

  Body body_;
  void* argument_;
  Context* context_;
  bool done_ = false;
};

}  // namespace holdfast::sim
