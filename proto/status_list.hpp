// SPDX-License-Identifier: MIT
//
// Every Status with its sentences, in the order of the enumeration: name, cause, remedy. A macro, so that each of the
// three can be one packed text; a table of pointers would cost more than the pointers' texts.
#pragma once

#include "holdfast/status.hpp"

// clang-format off
#define HOLDFAST_STATUS_LIST(ENTRY) \
  ENTRY(ok,\
        "It worked.",\
        "Nothing to do.") \
  ENTRY(lock_busy,\
        "Another holder has the lock.",\
        "Wait, or try again later.") \
  ENTRY(invalid_argument,\
        "An argument is outside its limits; nothing was sent.",\
        "Compare it with limits.hpp: a key has 1 to 256 bytes, a lease whole milliseconds from 5 ms to 24 h.") \
  ENTRY(not_held,\
        "This object does not hold the lock.",\
        "Acquire it first.") \
  ENTRY(already_held,\
        "This object holds the lock already.",\
        "Release it first; a Mutex cannot be entered twice.") \
  ENTRY(buffer_too_small,\
        "The output does not fit into its buffer, which is untouched.",\
        "Pass a larger buffer.") \
  ENTRY(too_many_requests,\
        "Every place for requests in flight is taken; nothing was sent.",\
        "Wait for replies, or for the connection to come back.") \
  ENTRY(cancelled,\
        "cancel() was called while the call waited.",\
        "Nothing to do: what it may have acquired is released.") \
  ENTRY(forked,\
        "The client belongs to the parent of this process.",\
        "Connect a client of its own after fork().") \
  ENTRY(not_connected,\
        "There was no connection, so nothing was sent.",\
        "Try again: the client reconnects.") \
  ENTRY(connect_failed,\
        "No address of the server accepted a connection.",\
        "Check that the server runs, and its address, port or socket path.") \
  ENTRY(name_not_resolved,\
        "The resolver knows no address for the host.",\
        "Check the host name and the resolver.") \
  ENTRY(transport_closed,\
        "The connection ended before the reply came.",\
        "Try again: the client reconnects and takes back what may have run.") \
  ENTRY(timed_out,\
        "No reply came by the deadline; what was asked may have run.",\
        "Try again: what may have run is taken back first.") \
  ENTRY(protocol_error,\
        "The peer sent bytes that are no reply to what was asked.",\
        "Check that the peer is a Redis or Valkey server that speaks RESP2.") \
  ENTRY(auth_required,\
        "The server wants a password.",\
        "Set the password, and the user where there is one.") \
  ENTRY(auth_failed,\
        "The server refused the user or the password.",\
        "Check both.") \
  ENTRY(no_permission,\
        "The user may not run a command that the lock needs.",\
        "Grant set, eval, evalsha, get, del, pttl and pexpire on the lock's keys.") \
  ENTRY(read_only,\
        "The server is a replica and refuses writes.",\
        "Connect to the master.") \
  ENTRY(loading,\
        "The server is loading its data.",\
        "Try again in a moment.") \
  ENTRY(out_of_memory,\
        "The server has reached maxmemory.",\
        "Give it memory, or an eviction policy that spares locks.") \
  ENTRY(busy_script,\
        "Another client's script blocks the server.",\
        "Wait, or end it by SCRIPT KILL.") \
  ENTRY(no_script,\
        "The server does not know a script that was sent with its text.",\
        "Report it: it should not happen.") \
  ENTRY(wrong_type,\
        "The key holds something that is no lock of this kind.",\
        "Use another key, or the kind that the other program uses.") \
  ENTRY(too_few_replicas,\
        "The server refuses writes while too few replicas follow it.",\
        "Check its replicas and min-replicas-to-write.") \
  ENTRY(stale_replica,\
        "The server is a replica that has lost its master.",\
        "Connect to the master.") \
  ENTRY(disk_error,\
        "The server refuses writes because it cannot save.",\
        "Look into the server's log.") \
  ENTRY(moved,\
        "The key belongs to another node of the cluster.",\
        "Connect to the node that serves it.") \
  ENTRY(ask,\
        "The key is on its way to another node of the cluster.",\
        "Connect to the node that serves it.") \
  ENTRY(cluster_down,\
        "The cluster does not serve this key's slot.",\
        "Repair the cluster.") \
  ENTRY(cross_slot,\
        "The keys of one request belong to different slots.",\
        "Use a key without braces, or one hash tag.") \
  ENTRY(try_again,\
        "The key's slot is being moved between nodes.",\
        "Try again in a moment.") \
  ENTRY(too_many_clients,\
        "The server has as many clients as it allows.",\
        "Raise maxclients, or close idle clients.") \
  ENTRY(denied,\
        "The server is in protected mode and denies clients from outside.",\
        "Give it a password, or bind it to a private address.") \
  ENTRY(unknown_command,\
        "The server does not know a command.",\
        "Check that it is Redis 5 or later, or Valkey.") \
  ENTRY(server_error,\
        "The server sent an error that has no class of its own.",\
        "Read its text.") \
  ENTRY(lock_lost,\
        "The hold ended before it was released.",\
        "Treat the work done under it as unprotected; use a longer lease, renew, or check a fence.") \
  ENTRY(system_error,\
        "A system call failed.",\
        "Read errno.") \
  ENTRY(no_entropy,\
        "The system gave no random bytes.",\
        "Check getrandom() and the sandbox's rules.") \
  ENTRY(outcome_unknown,\
        "The reply was lost: the request may have run or not.",\
        "Try again: what may have run is taken back first.")
// clang-format on

namespace holdfast {

// The entry of `status` in a packed text of NUL-terminated entries.
[[nodiscard]] constexpr const char* packed_entry(const char* text, Status status) noexcept {
  for (int left = static_cast<int>(status); left > 0; ++text)
    if (*text == '\0') --left;
  return text;
}

[[nodiscard]] constexpr bool in_range(Status status) noexcept { return static_cast<int>(status) < status_count; }

}  // namespace holdfast
