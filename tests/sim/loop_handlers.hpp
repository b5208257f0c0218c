// SPDX-License-Identifier: MIT
//
// LoopHandlers knows each handler that a program on a loop has given away. It is called once, never from inside of what it was
// given to, and soon after its client has gone: the checker is called "handlers".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Process;

class LoopHandlers {
 public:
  LoopHandlers(World& world, const Process& process) noexcept : world_(world), process_(process) {}

  // While holdfast is told of a handler.
  class Giving {
   public:
    explicit Giving(LoopHandlers& handlers) noexcept : handlers_(handlers) { ++handlers_.giving_; }
    ~Giving() { --handlers_.giving_; }
    Giving(const Giving&) = delete;
    Giving& operator=(const Giving&) = delete;

   private:
    LoopHandlers& handlers_;
  };

  // Of this client's or one of its locks' operations. Its number.
  [[nodiscard]] std::uint64_t give(std::size_t connection, const char* what);
  void note_called(std::uint64_t number);
  // What waits is cancelled, and told so.
  void note_gone(std::size_t connection);
  [[nodiscard]] std::size_t left() const noexcept { return given_.size(); }

 private:
  struct Given {
    std::size_t connection;
    const char* what;
  };

  World& world_;
  const Process& process_;
  std::map<std::uint64_t, Given> given_;
  std::uint64_t last_ = 0;
  int giving_ = 0;
};

}  // namespace holdfast::sim
