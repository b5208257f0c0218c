// SPDX-License-Identifier: MIT
//
// A Witness is told what happens to locks and connections, as it happens. Whoever configures a client may give it one; without
// one nothing is told and nothing counted. A Meter (detail/meter.hpp) is a witness. Pointers, so that a program without one
// links none.
#pragma once

#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class LockMachine;
class LockTask;
class Node;
struct Reply;
struct Stats;
struct TaskFacts;

// What `status`, `subject` and `amount` are stands beside each; of the others the status is ok and the amount 0. Where nothing else
// is said, the subject is the lock's name. A duration is in nanoseconds.
enum class Seen : std::uint8_t {
  acquired,        // An acquire has ended. status: how. amount: the call's duration.
  acquired_late,   // Likewise, and it had begun to wait.
  wait_began,      // An acquire found the lock busy, and waits. amount: the duration until then.
  renewed,         // A renewal was answered. status: ok, or why the hold was not extended. amount: how long it took.
  lost,            // A hold ended before its release.
  lost_unnoticed,  // Likewise, and its release has found it out: nobody is to be told.
  connected,       // The first connection to a server. subject: its host, or the path of its socket.
  reconnected,     // Another one, after one was lost. subject: likewise.
  disconnected,    // It has ended. status: why. subject: likewise.
  compensated,     // A request to take something back leaves.
  sent,            // amount: bytes. subject: none.
  received,        // amount: bytes. subject: none.
};
inline constexpr int seen_count = static_cast<int>(Seen::received) + 1;

struct Witness {
  struct Table {
    // On the thread that drives the connection or the call. The subject is a view until it returns. It calls nothing of holdfast.
    void (*tell)(Witness& self, Seen what, Status status, ByteView subject, std::int64_t amount) noexcept;
    // Any thread.
    void (*read)(const Witness& self, Stats& stats) noexcept;

    // How what happens is made out, by those to whom it happens, who tell() then. Pointers to their own functions, since a program
    // without a witness has no use for these.
    // NodeTask::tell_reply
    void (*reply)(Witness& self, LockMachine& machine, const Reply& reply, Instant now) noexcept;
    // LockTask::tell_stage
    void (*stage)(Witness& self, LockTask& task, const TaskFacts& facts) noexcept;
    // Node::tell_connection
    void (*connection)(Witness& self, const Node& node, Seen what) noexcept;
  };
  constexpr explicit Witness(const Table& functions) noexcept : table(&functions) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  void tell(Seen what, ByteView subject, Status status = Status::ok, std::int64_t amount = 0) noexcept {
    table->tell(*this, what, status, subject, amount);
  }
  const Table* table;
};

}  // namespace holdfast
