// SPDX-License-Identifier: MIT
//
// LoopProgram is the program of a simulated client on an event loop, beside Application, which has threads that wait: what
// it was told stands in the same slots, and the same checkers judge it. Asio's is in asio_program.cpp.
#pragma once

#include <memory>

#include "application.hpp"

namespace holdfast::sim {

class LoopProgram {
 public:
  LoopProgram() noexcept = default;
  virtual ~LoopProgram() = default;
  LoopProgram(const LoopProgram&) = delete;
  LoopProgram& operator=(const LoopProgram&) = delete;

  // The whole life of its process.
  virtual void run() = 0;
  // The process was killed: the loop ends. From within the loop.
  virtual void stop() noexcept = 0;
  // The time of faults is over. From outside of the process.
  virtual void hurry() noexcept = 0;
  [[nodiscard]] virtual bool may_ask(const Application::Slot& slot) const noexcept = 0;
};

// REQUIRES: has_loops.
[[nodiscard]] std::unique_ptr<LoopProgram> make_loop_program(Application& application, World& world, Process& process);

}  // namespace holdfast::sim
