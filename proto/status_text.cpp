// SPDX-License-Identifier: MIT
//
// The sentences behind a Status, apart from to_string() so that they are linked only where they are used.
#include "holdfast/status.hpp"

namespace holdfast {

const char* cause(Status status) noexcept {
  switch (status) {
    case Status::ok: return "It worked.";
    case Status::lock_busy: return "Another holder has the lock.";
    case Status::invalid_argument: return "An argument is outside its limits; nothing was sent.";
    case Status::not_held: return "This object does not hold the lock.";
    case Status::already_held: return "This object holds the lock already.";
    case Status::buffer_too_small: return "The output does not fit into its buffer, which is untouched.";
    case Status::too_many_requests: return "Every place for requests in flight is taken; nothing was sent.";
    case Status::cancelled: return "cancel() was called while the call waited.";
    case Status::forked: return "The client belongs to the parent of this process.";
    case Status::not_connected: return "There was no connection, so nothing was sent.";
    case Status::connect_failed: return "No address of the server accepted a connection.";
    case Status::name_not_resolved: return "The resolver knows no address for the host.";
    case Status::transport_closed: return "The connection ended before the reply came.";
    case Status::timed_out: return "No reply came by the deadline; what was asked may have run.";
    case Status::protocol_error: return "The peer sent bytes that are no reply to what was asked.";
    case Status::auth_required: return "The server wants a password.";
    case Status::auth_failed: return "The server refused the user or the password.";
    case Status::no_permission: return "The user may not run a command that the lock needs.";
    case Status::read_only: return "The server is a replica and refuses writes.";
    case Status::loading: return "The server is loading its data.";
    case Status::out_of_memory: return "The server has reached maxmemory.";
    case Status::busy_script: return "Another client's script blocks the server.";
    case Status::no_script: return "The server does not know a script that was sent with its text.";
    case Status::wrong_type: return "The key holds something that is no lock of this kind.";
    case Status::too_few_replicas: return "The server refuses writes while too few replicas follow it.";
    case Status::stale_replica: return "The server is a replica that has lost its master.";
    case Status::disk_error: return "The server refuses writes because it cannot save.";
    case Status::moved: return "The key belongs to another node of the cluster.";
    case Status::ask: return "The key is on its way to another node of the cluster.";
    case Status::cluster_down: return "The cluster does not serve this key's slot.";
    case Status::cross_slot: return "The keys of one request belong to different slots.";
    case Status::try_again: return "The key's slot is being moved between nodes.";
    case Status::too_many_clients: return "The server has as many clients as it allows.";
    case Status::denied: return "The server is in protected mode and denies clients from outside.";
    case Status::unknown_command: return "The server does not know a command.";
    case Status::server_error: return "The server sent an error that has no class of its own.";
    case Status::lock_lost: return "The hold ended before it was released.";
    case Status::system_error: return "A system call failed.";
    case Status::no_entropy: return "The system gave no random bytes.";
    case Status::outcome_unknown: return "The reply was lost: the request may have run or not.";
  }
  return "The value is no Status.";
}

const char* remedy(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "Nothing to do.";
    case Status::lock_busy:
      return "Wait, or try again later.";
    case Status::invalid_argument:
      return "Compare it with limits.hpp: a key has 1 to 256 bytes, a lease whole milliseconds from 5 ms to 24 h.";
    case Status::not_held:
      return "Acquire it first.";
    case Status::already_held:
      return "Release it first; a Mutex cannot be entered twice.";
    case Status::buffer_too_small:
      return "Pass a larger buffer.";
    case Status::too_many_requests:
      return "Wait for replies, or for the connection to come back.";
    case Status::cancelled:
      return "Nothing to do: what it may have acquired is released.";
    case Status::forked:
      return "Connect a client of its own after fork().";
    case Status::not_connected:
      return "Try again: the client reconnects.";
    case Status::connect_failed:
      return "Check that the server runs, and its address, port or socket path.";
    case Status::name_not_resolved:
      return "Check the host name and the resolver.";
    case Status::transport_closed:
      return "Try again: the client reconnects and takes back what may have run.";
    case Status::timed_out:
      return "Try again: what may have run is taken back first.";
    case Status::protocol_error:
      return "Check that the peer is a Redis or Valkey server that speaks RESP2.";
    case Status::auth_required:
      return "Set the password, and the user where there is one.";
    case Status::auth_failed:
      return "Check both.";
    case Status::no_permission:
      return "Grant set, eval, evalsha, get, del, pttl and pexpire on the lock's keys.";
    case Status::read_only:
      return "Connect to the master.";
    case Status::loading:
      return "Try again in a moment.";
    case Status::out_of_memory:
      return "Give it memory, or an eviction policy that spares locks.";
    case Status::busy_script:
      return "Wait, or end it by SCRIPT KILL.";
    case Status::no_script:
      return "Report it: it should not happen.";
    case Status::wrong_type:
      return "Use another key, or the kind that the other program uses.";
    case Status::too_few_replicas:
      return "Check its replicas and min-replicas-to-write.";
    case Status::stale_replica:
      return "Connect to the master.";
    case Status::disk_error:
      return "Look into the server's log.";
    case Status::moved:
      return "Connect to the node that serves it.";
    case Status::ask:
      return "Connect to the node that serves it.";
    case Status::cluster_down:
      return "Repair the cluster.";
    case Status::cross_slot:
      return "Use a key without braces, or one hash tag.";
    case Status::try_again:
      return "Try again in a moment.";
    case Status::too_many_clients:
      return "Raise maxclients, or close idle clients.";
    case Status::denied:
      return "Give it a password, or bind it to a private address.";
    case Status::unknown_command:
      return "Check that it is Redis 5 or later, or Valkey.";
    case Status::server_error:
      return "Read its text.";
    case Status::lock_lost:
      return "Treat the work done under it as unprotected; use a longer lease, renew, or check a fence.";
    case Status::system_error:
      return "Read errno.";
    case Status::no_entropy:
      return "Check getrandom() and the sandbox's rules.";
    case Status::outcome_unknown:
      return "Try again: what may have run is taken back first.";
  }
  return "Report it: it should not happen.";
}

}  // namespace holdfast
