// SPDX-License-Identifier: MIT
#include "holdfast/status.hpp"

namespace holdfast {

// A switch without default: the compiler names a value that is missing.
const char* to_string(Status status) noexcept {
  switch (status) {
    case Status::ok: return "ok";
    case Status::lock_busy: return "lock_busy";
    case Status::invalid_argument: return "invalid_argument";
    case Status::not_held: return "not_held";
    case Status::already_held: return "already_held";
    case Status::buffer_too_small: return "buffer_too_small";
    case Status::too_many_requests: return "too_many_requests";
    case Status::cancelled: return "cancelled";
    case Status::forked: return "forked";
    case Status::not_connected: return "not_connected";
    case Status::connect_failed: return "connect_failed";
    case Status::name_not_resolved: return "name_not_resolved";
    case Status::transport_closed: return "transport_closed";
    case Status::timed_out: return "timed_out";
    case Status::protocol_error: return "protocol_error";
    case Status::auth_required: return "auth_required";
    case Status::auth_failed: return "auth_failed";
    case Status::no_permission: return "no_permission";
    case Status::read_only: return "read_only";
    case Status::loading: return "loading";
    case Status::out_of_memory: return "out_of_memory";
    case Status::busy_script: return "busy_script";
    case Status::no_script: return "no_script";
    case Status::wrong_type: return "wrong_type";
    case Status::too_few_replicas: return "too_few_replicas";
    case Status::stale_replica: return "stale_replica";
    case Status::disk_error: return "disk_error";
    case Status::moved: return "moved";
    case Status::ask: return "ask";
    case Status::cluster_down: return "cluster_down";
    case Status::cross_slot: return "cross_slot";
    case Status::try_again: return "try_again";
    case Status::too_many_clients: return "too_many_clients";
    case Status::denied: return "denied";
    case Status::unknown_command: return "unknown_command";
    case Status::server_error: return "server_error";
    case Status::lock_lost: return "lock_lost";
    case Status::system_error: return "system_error";
    case Status::no_entropy: return "no_entropy";
    case Status::outcome_unknown: return "outcome_unknown";
  }
  return "invalid";
}

}  // namespace holdfast
