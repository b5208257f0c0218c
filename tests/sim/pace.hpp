// SPDX-License-Identifier: MIT
//
// Pace bounds how much a simulated program does, in every world.
//
// no spinning   a thread that waits in a call of the library, or that is the library's own, makes no more system calls than
//               time and what arrives give reason for
// back-off      a client does not dial again and again where that leads to nothing
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Link;
struct Process;
struct Thread;

class Pace {
 public:
  explicit Pace(World& world) : world_(world) {}

  // A call of the library begins: what its thread did before counts no more.
  void begin(Thread& thread) const noexcept;
  // A system call. False: that is one too many.
  [[nodiscard]] bool note_call(Thread& thread) const;
  // Something that a thread of the process has to deal with.
  void note_event(const Process& process) const noexcept;
  // Bytes of the thread's own have left.
  static void note_sent(Thread& thread) noexcept;

  // A connection has shown that it is of use, or is closed by its client.
  void note_useful(const Link& link);
  void note_closed(const Link& link);
  // It was to have one, and there was none: who does not get so far dials nobody, and must not go round for it either.
  void note_no_socket(const Process& process, const Thread& thread);
  // What makes a fresh start of dialling: connect() itself, or close().
  void note_connect_call(const Process& process);

 private:
  // Of what a thread dials at a node: how many attempts may fail now.
  struct Dialling {
    double left = 0;
    SimTime at = 0;
  };
  using Who = std::tuple<std::size_t, std::uint32_t, std::size_t, std::size_t>;  // Process, life, thread, node.

  [[nodiscard]] Dialling& dialling_of(const Link& link);
  [[nodiscard]] Dialling& dialling_of(const Who& who, double dialled);
  // How many clients of the process may dial there by one thread, and each two connections, three with acks, and several addresses.
  [[nodiscard]] double dialled_by(const Process& process, std::size_t node) const;

  World& world_;
  std::map<Who, Dialling> dialling_;
};

}  // namespace holdfast::sim
