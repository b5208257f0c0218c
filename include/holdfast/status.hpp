// SPDX-License-Identifier: MIT
//
// Status is the outcome of every operation. Its groups say who is to blame: you, the wire, the peer, the server, the
// world, or nobody. Three-valued outcomes stay three-valued: ok is yes, outcome_unknown and timed_out are neither.
#pragma once

#include <cstdint>

#include "holdfast/proto/language.hpp"

namespace holdfast {

enum class Status : std::uint8_t {
  ok,

  // Somebody else holds the lock. Not an error.
  lock_busy,

  // Yours.
  invalid_argument,  // A key, lease, URL or setting is outside its limits. Nothing was sent.
  not_held,          // Release or renewal of a lock that this object does not hold.
  already_held,  // Not while this object has it: an acquire or keep() of a lock that is held, a set that has taken locks,
                 // a second connect, close or wait for a loss that is in progress, a watchdog that runs.
  upgrade_refused,   // A write lock is asked for while this object's read lock is held. Waiting for it would never end.
  permits_differ,    // A semaphore has another number of permits than was asked for, or none was set.
  buffer_too_small,  // The output does not fit; the buffer is untouched.
  too_many_requests,  // Every place of a fixed table is taken. Nothing was sent.
  cancelled,          // cancel() was called while the call waited.
  forked,             // The client belongs to the parent of this process.

  // The wire's.
  not_connected,      // No connection, or it closed before a byte was sent. Nothing ran.
  connect_failed,     // No address accepted the connection.
  name_not_resolved,  // The resolver knows no address for the host.
  transport_closed,   // The connection ended before the reply.
  timed_out,          // No reply by the deadline. What was asked may have run.
  tls_failed,  // The peer's certificate is not trusted, or the peer speaks TLS otherwise than we do, or not at all.

  // The peer's.
  protocol_error,  // Bytes that are no RESP2, or a reply of a shape that was not asked for.

  // The server's.
  auth_required,     // NOAUTH
  auth_failed,       // WRONGPASS
  no_permission,     // NOPERM, or a script's command that the user may not run
  read_only,         // READONLY: a replica
  loading,           // LOADING
  out_of_memory,     // OOM
  busy_script,       // BUSY
  no_script,         // NOSCRIPT
  wrong_type,        // WRONGTYPE: the key holds something else
  too_few_replicas,  // NOREPLICAS
  stale_replica,     // MASTERDOWN
  disk_error,        // MISCONF
  moved,             // MOVED
  ask,               // ASK
  cluster_down,      // CLUSTERDOWN
  cross_slot,        // CROSSSLOT
  try_again,         // TRYAGAIN
  too_many_clients,  // max number of clients reached
  denied,            // DENIED: protected mode
  unknown_command,   // The server does not know the command.
  unknown_service,   // No sentinel knows a service of this name.
  server_error,      // Any other error reply.

  // The world's.
  lock_lost,     // The hold ended before you released it.
  no_quorum,     // Fewer than a majority of a quorum's nodes answered, or may vote. Nothing is held.
  same_machine,  // Two nodes of a quorum are one server, or one is a replica of the other.
  system_error,  // A system call failed for a reason that has no value of its own.
  no_entropy,    // The system gave no random bytes.

  // Nobody's.
  outcome_unknown,  // The reply was lost: it may have run or not.
};

inline constexpr int status_count = static_cast<int>(Status::outcome_unknown) + 1;

// The enumerator's name, such as "lock_busy". Never nullptr; a value outside the enumeration gives "invalid".
[[nodiscard]] const char* to_string(Status status) noexcept;

// One sentence each: what happened, and what to do about it. These texts are in an object of their own, so that a
// program that does not ask for them does not carry them.
[[nodiscard]] const char* cause(Status status) noexcept;
[[nodiscard]] const char* remedy(Status status) noexcept;

}  // namespace holdfast
