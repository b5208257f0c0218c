// SPDX-License-Identifier: MIT
#include "exit_codes.hpp"

namespace holdfast::cli {

int exit_code_of(Status status, int not_acquired) noexcept {
  switch (status) {
    case Status::lock_busy: return not_acquired;
    case Status::invalid_argument:
    case Status::permits_differ:
    case Status::same_machine: return exit_usage;
    case Status::lock_lost: return exit_lost;
    case Status::wrong_type: return exit_no_lock;

    case Status::not_connected:
    case Status::connect_failed:
    case Status::name_not_resolved:
    case Status::transport_closed:
    case Status::timed_out:
    case Status::read_only:
    case Status::loading:
    case Status::out_of_memory:
    case Status::busy_script:
    case Status::too_few_replicas:
    case Status::stale_replica:
    case Status::disk_error:
    case Status::moved:
    case Status::ask:
    case Status::cluster_down:
    case Status::cross_slot:
    case Status::try_again:
    case Status::too_many_clients:
    case Status::no_quorum:
    case Status::denied:
    case Status::unknown_command:
    case Status::unknown_service:
    case Status::outcome_unknown: return exit_no_server;

    case Status::protocol_error:
    case Status::no_script:
    case Status::server_error: return exit_protocol;

    case Status::tls_failed:
    case Status::auth_required:
    case Status::auth_failed:
    case Status::no_permission: return exit_no_permission;

    case Status::system_error:
    case Status::no_entropy: return exit_system;

    case Status::ok:
    case Status::not_held:
    case Status::already_held:
    case Status::upgrade_refused:
    case Status::buffer_too_small:
    case Status::too_many_requests:
    case Status::cancelled:
    case Status::forked: return exit_software;
  }
  return exit_software;
}

int exit_code_of(Status status, const ClientBase& client, int not_acquired) noexcept {
  return is_wrong_database(status, client) ? exit_usage : exit_code_of(status, not_acquired);
}

bool heals(Status status) noexcept {
  switch (status) {
    case Status::lock_busy:
    case Status::too_many_requests:
    case Status::cancelled:
    case Status::not_connected:
    case Status::connect_failed:
    case Status::name_not_resolved:
    case Status::transport_closed:
    case Status::timed_out:
    case Status::read_only:
    case Status::loading:
    case Status::out_of_memory:
    case Status::busy_script:
    case Status::no_script:
    case Status::too_few_replicas:
    case Status::stale_replica:
    case Status::disk_error:
    case Status::cluster_down:
    case Status::try_again:
    case Status::too_many_clients:
    case Status::no_quorum:
    case Status::outcome_unknown: return true;
    case Status::ok:
    case Status::invalid_argument:
    case Status::not_held:
    case Status::already_held:
    case Status::upgrade_refused:
    case Status::permits_differ:
    case Status::buffer_too_small:
    case Status::forked:
    case Status::tls_failed:
    case Status::protocol_error:
    case Status::auth_required:
    case Status::auth_failed:
    case Status::no_permission:
    case Status::wrong_type:
    case Status::moved:
    case Status::ask:
    case Status::cross_slot:
    case Status::denied:
    case Status::unknown_command:
    case Status::unknown_service:
    case Status::server_error:
    case Status::lock_lost:
    case Status::same_machine:
    case Status::system_error:
    case Status::no_entropy: return false;
  }
  return false;
}

bool is_absence(Status status) noexcept {
  return status == Status::not_connected || status == Status::connect_failed || status == Status::name_not_resolved ||
         status == Status::transport_closed || status == Status::timed_out || status == Status::outcome_unknown ||
         status == Status::no_quorum;
}

bool is_wrong_database(Status status, const ClientBase& client) noexcept {
  return status == Status::server_error && !client.connected() && client.config().database != 0;
}

}  // namespace holdfast::cli
