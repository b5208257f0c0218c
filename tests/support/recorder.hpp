// SPDX-License-Identifier: MIT
//
// A witness that writes down what it is told, and adds up bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/lock_task.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/core/witness.hpp"

namespace holdfast::testing {

struct Recorder : Witness {
  Recorder() noexcept : Witness(functions) {}
  // What was told since the last call, one after another: what, of whom, how, and the amount. Bytes only where they are told as
  // a failure, which they never are.
  std::string take() { return std::exchange(lines, {}); }

  std::string lines;
  std::int64_t sent = 0;
  std::int64_t received = 0;

 private:
  static void note(Witness& self, Seen what, Status status, ByteView subject, std::int64_t amount) noexcept {
    static const char* const names[] = {"acquired",     "acquired_late",  "wait_began", "renewed",
                                        "lost",         "lost_unnoticed", "connected",  "reconnected",
                                        "disconnected", "compensated",    "sent",       "received"};
    auto& recorder = static_cast<Recorder&>(self);
    if (what == Seen::sent) recorder.sent += amount;
    if (what == Seen::received) recorder.received += amount;
    if ((what == Seen::sent || what == Seen::received) && status == Status::ok) return;
    if (!recorder.lines.empty()) recorder.lines += ", ";
    recorder.lines += std::string(names[static_cast<int>(what)]) + " " + std::string(subject.string_view()) + " " +
                      to_string(status) + " " + std::to_string(amount);
  }
  static void read(const Witness&, Stats&) noexcept {}
  static constexpr Table functions = {note, read, NodeTask::tell_reply, LockTask::tell_stage, Node::tell_connection};
};

}  // namespace holdfast::testing
