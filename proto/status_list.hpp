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
        "An argument is outside its limits.",\
        "See limits.hpp: a key has 1 to 256 bytes, a lease whole milliseconds from 5 ms to 24 h.") \
  ENTRY(not_held,\
        "This object does not hold the lock.",\
        "Acquire it first.") \
  ENTRY(already_held,\
        "This object holds the lock, or does what is asked for, already.",\
        "Release it first, or wait until the other call has ended.") \
  ENTRY(upgrade_refused,\
        "The write lock is asked for under the own read lock.",\
        "Release the read lock first, and check again what was read.") \
  ENTRY(permits_differ,\
        "The semaphore has another number of permits than was asked for, or none was set.",\
        "Ask for the number that it has: everybody must name the same.") \
  ENTRY(buffer_too_small,\
        "The output does not fit into its buffer.",\
        "Pass a larger one.") \
  ENTRY(too_many_requests,\
        "Every place is taken: for requests, for the holds of a watchdog, for the names of an owner, or for what may linger.",\
        "Wait for replies or for a connection, or make the watchdog or the owner with more places. Only a client with a Lingering lingers.") \
  ENTRY(cancelled,\
        "cancel() ended the call.",\
        "Nothing to do: what it may have acquired is released.") \
  ENTRY(forked,\
        "The client belongs to the parent process.",\
        "Connect one of its own after fork().") \
  ENTRY(not_connected,\
        "There was no connection.",\
        "Try again: the client reconnects.") \
  ENTRY(connect_failed,\
        "No address accepted a connection.",\
        "Check that the server runs, and its address.") \
  ENTRY(name_not_resolved,\
        "The host has no known address.",\
        "Check its name and the resolver.") \
  ENTRY(transport_closed,\
        "The connection ended before the reply.",\
        "Try again: what may have run is taken back.") \
  ENTRY(timed_out,\
        "No reply came in time.",\
        "Try again: what may have run is taken back.") \
  ENTRY(tls_failed,\
        "TLS failed.",\
        "Check the CA, the server's name, and that the port speaks TLS.") \
  ENTRY(protocol_error,\
        "The peer sent no valid reply.",\
        "Check that it is Redis or Valkey, speaking RESP2.") \
  ENTRY(auth_required,\
        "The server wants a password.",\
        "Set it, and the user if there is one.") \
  ENTRY(auth_failed,\
        "The server refused user or password.",\
        "Check both.") \
  ENTRY(no_permission,\
        "The user may not run a command.",\
        "Grant what proto/interop.md lists for the kind, on its keys and channel.") \
  ENTRY(read_only,\
        "The server is a read-only replica.",\
        "Connect to the master.") \
  ENTRY(loading,\
        "The server is loading its data.",\
        "Try again in a moment.") \
  ENTRY(out_of_memory,\
        "The server has reached maxmemory.",\
        "Give it memory, or a policy that spares locks.") \
  ENTRY(busy_script,\
        "Another client's script blocks the server.",\
        "Wait, or end it by SCRIPT KILL.") \
  ENTRY(no_script,\
        "The server does not know a script.",\
        "Report it: it should not happen.") \
  ENTRY(wrong_type,\
        "The key holds no lock of this kind.",\
        "Use another key, or the other program's kind.") \
  ENTRY(too_few_replicas,\
        "Too few replicas: the server may not write, or they have not confirmed the grant in time.",\
        "Check the replicas, min-replicas-to-write, and how many acks are asked for.") \
  ENTRY(stale_replica,\
        "The replica has lost its master.",\
        "Connect to the master.") \
  ENTRY(disk_error,\
        "The server cannot save and refuses writes.",\
        "Read its log.") \
  ENTRY(moved,\
        "Another node of the cluster has the key.",\
        "Connect by a Cluster: redis-cluster://.") \
  ENTRY(ask,\
        "The key moves to another node of the cluster.",\
        "Connect by a Cluster: redis-cluster://.") \
  ENTRY(cluster_down,\
        "The cluster does not serve the key's slot.",\
        "Repair it.") \
  ENTRY(cross_slot,\
        "The keys belong to different slots, or not to the client's.",\
        "Use one hash tag, or a client for each slot.") \
  ENTRY(try_again,\
        "The key's slot is being moved.",\
        "Try again in a moment.") \
  ENTRY(too_many_clients,\
        "The server has too many clients.",\
        "Raise maxclients, or close idle ones.") \
  ENTRY(denied,\
        "Protected mode denies clients from outside.",\
        "Set a password, or bind a private address.") \
  ENTRY(unknown_command,\
        "The server does not know a command.",\
        "Use Redis 5 or later, or Valkey.") \
  ENTRY(unknown_service,\
        "No sentinel knows a service of this name.",\
        "Correct the name: SENTINEL MASTERS lists them.") \
  ENTRY(server_error,\
        "The server sent an error without a class.",\
        "Read its text.") \
  ENTRY(lock_lost,\
        "The hold ended before it was released.",\
        "Treat the work as unprotected; renew, lease longer, or check a fence.") \
  ENTRY(no_quorum,\
        "Fewer than a majority of the nodes answered, or may vote.",\
        "Ask each node's status; a restarted one votes when max_lease is over.") \
  ENTRY(same_machine,\
        "Two of the nodes are one server, or a master and its replica.",\
        "Give independent masters: a quorum of one machine is none.") \
  ENTRY(system_error,\
        "A system call failed.",\
        "Read errno.") \
  ENTRY(no_entropy,\
        "The system gave no random bytes.",\
        "Check getrandom() and the sandbox's rules.") \
  ENTRY(outcome_unknown,\
        "The reply was lost.",\
        "Try again: what may have run is taken back.")
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
