// SPDX-License-Identifier: MIT
//
// Resolver asks libc for the addresses of a name in a thread of its own, for those who may not wait: the watchdog and
// quorums. One question at a time. The thread owns nothing but one page, which it shares with whoever asked; the last of the
// two gives the page back, so that nobody waits for a resolver that takes its time.
#pragma once

#include "holdfast/detail/connection.hpp"

namespace holdfast {

class Resolver : public NameQuestion {
 public:
  Resolver() noexcept : NameQuestion{ask} {}
  ~Resolver() { forget(); }
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Readable when the answer is there; -1: nothing was asked. For poll(2).
  [[nodiscard]] int descriptor() const noexcept { return answered_; }
  // If the answer is there, hands it to the connection and ends the question.
  void poll(Connection& connection) noexcept;
  // The answer is not wanted any more.
  void forget() noexcept;

 private:
  struct Page;

  static bool ask(NameQuestion& question, const char* host, std::uint16_t port) noexcept;
  static void* run(void* argument) noexcept;

  Page* page_ = nullptr;
  int answered_ = -1;  // The end of a pipe, which the thread writes to.
};

}  // namespace holdfast
