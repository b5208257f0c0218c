// SPDX-License-Identifier: MIT
#include "holdfast/status.hpp"

#include "objects.hpp"

// Each number of C is that of C++, and there are as many.
#define HOLDFAST_SAME(upper, lower) static_assert(HOLDFAST_##upper == static_cast<int>(holdfast::Status::lower));
HOLDFAST_SAME(OK, ok)
HOLDFAST_SAME(LOCK_BUSY, lock_busy)
HOLDFAST_SAME(INVALID_ARGUMENT, invalid_argument)
HOLDFAST_SAME(NOT_HELD, not_held)
HOLDFAST_SAME(ALREADY_HELD, already_held)
HOLDFAST_SAME(UPGRADE_REFUSED, upgrade_refused)
HOLDFAST_SAME(PERMITS_DIFFER, permits_differ)
HOLDFAST_SAME(BUFFER_TOO_SMALL, buffer_too_small)
HOLDFAST_SAME(TOO_MANY_REQUESTS, too_many_requests)
HOLDFAST_SAME(CANCELLED, cancelled)
HOLDFAST_SAME(FORKED, forked)
HOLDFAST_SAME(NOT_CONNECTED, not_connected)
HOLDFAST_SAME(CONNECT_FAILED, connect_failed)
HOLDFAST_SAME(NAME_NOT_RESOLVED, name_not_resolved)
HOLDFAST_SAME(TRANSPORT_CLOSED, transport_closed)
HOLDFAST_SAME(TIMED_OUT, timed_out)
HOLDFAST_SAME(TLS_FAILED, tls_failed)
HOLDFAST_SAME(PROTOCOL_ERROR, protocol_error)
HOLDFAST_SAME(AUTH_REQUIRED, auth_required)
HOLDFAST_SAME(AUTH_FAILED, auth_failed)
HOLDFAST_SAME(NO_PERMISSION, no_permission)
HOLDFAST_SAME(READ_ONLY, read_only)
HOLDFAST_SAME(LOADING, loading)
HOLDFAST_SAME(OUT_OF_MEMORY, out_of_memory)
HOLDFAST_SAME(BUSY_SCRIPT, busy_script)
HOLDFAST_SAME(NO_SCRIPT, no_script)
HOLDFAST_SAME(WRONG_TYPE, wrong_type)
HOLDFAST_SAME(TOO_FEW_REPLICAS, too_few_replicas)
HOLDFAST_SAME(STALE_REPLICA, stale_replica)
HOLDFAST_SAME(DISK_ERROR, disk_error)
HOLDFAST_SAME(MOVED, moved)
HOLDFAST_SAME(ASK, ask)
HOLDFAST_SAME(CLUSTER_DOWN, cluster_down)
HOLDFAST_SAME(CROSS_SLOT, cross_slot)
HOLDFAST_SAME(TRY_AGAIN, try_again)
HOLDFAST_SAME(TOO_MANY_CLIENTS, too_many_clients)
HOLDFAST_SAME(DENIED, denied)
HOLDFAST_SAME(UNKNOWN_COMMAND, unknown_command)
HOLDFAST_SAME(UNKNOWN_SERVICE, unknown_service)
HOLDFAST_SAME(SERVER_ERROR, server_error)
HOLDFAST_SAME(LOCK_LOST, lock_lost)
HOLDFAST_SAME(NO_QUORUM, no_quorum)
HOLDFAST_SAME(SAME_MACHINE, same_machine)
HOLDFAST_SAME(SYSTEM_ERROR, system_error)
HOLDFAST_SAME(NO_ENTROPY, no_entropy)
HOLDFAST_SAME(OUTCOME_UNKNOWN, outcome_unknown)
#undef HOLDFAST_SAME
static_assert(HOLDFAST_OUTCOME_UNKNOWN + 1 == holdfast::status_count, "a status is missing in holdfast.h");

using namespace holdfast;

namespace {

// A number of no status has a text, too.
Status of_c(holdfast_status status) noexcept {
  return static_cast<Status>(status >= 0 && status < status_count ? status : UINT8_MAX);
}

}  // namespace

const char* holdfast_status_name(holdfast_status status) noexcept { return to_string(of_c(status)); }
const char* holdfast_status_cause(holdfast_status status) noexcept { return cause(of_c(status)); }
const char* holdfast_status_remedy(holdfast_status status) noexcept { return remedy(of_c(status)); }
