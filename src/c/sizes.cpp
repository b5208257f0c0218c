// SPDX-License-Identifier: MIT
//
// The sizes of the objects by their names, for languages that do not read holdfast.h.
#include "holdfast/limits.hpp"
#include "holdfast_tls.h"
#include "objects.hpp"

static_assert(HOLDFAST_KEY_SIZE_MAX == holdfast::key_size_max);
static_assert(HOLDFAST_NEVER == holdfast::Instant::max().nanoseconds());
static_assert(holdfast::c::of_milliseconds(HOLDFAST_WAIT_FOREVER) == holdfast::Duration::max());

size_t holdfast_size_of(const char* object) noexcept {
  static constexpr struct {
    const char* name;
    std::size_t size;
  } sizes[] = {
#define HOLDFAST_SIZE(name) {#name, sizeof(name)}
      HOLDFAST_SIZE(holdfast_client),         HOLDFAST_SIZE(holdfast_lock),
      HOLDFAST_SIZE(holdfast_owner),          HOLDFAST_SIZE(holdfast_owner_place),
      HOLDFAST_SIZE(holdfast_watchdog),       HOLDFAST_SIZE(holdfast_watchdog_place),
      HOLDFAST_SIZE(holdfast_quorum),         HOLDFAST_SIZE(holdfast_quorum_node),
      HOLDFAST_SIZE(holdfast_quorum_vote),    HOLDFAST_SIZE(holdfast_quorum_watchdog),
      HOLDFAST_SIZE(holdfast_sentinels),      HOLDFAST_SIZE(holdfast_cluster),
      HOLDFAST_SIZE(holdfast_acks),           HOLDFAST_SIZE(holdfast_tls),
      HOLDFAST_SIZE(holdfast_tls_place),      HOLDFAST_SIZE(holdfast_client_config),
      HOLDFAST_SIZE(holdfast_lock_options),   HOLDFAST_SIZE(holdfast_keep_options),
      HOLDFAST_SIZE(holdfast_quorum_config),  HOLDFAST_SIZE(holdfast_sentinels_config),
      HOLDFAST_SIZE(holdfast_cluster_config), HOLDFAST_SIZE(holdfast_tls_config),
      HOLDFAST_SIZE(holdfast_meter),          HOLDFAST_SIZE(holdfast_stats),
      HOLDFAST_SIZE(holdfast_metric_label),   HOLDFAST_SIZE(holdfast_sentinel_watch),
      HOLDFAST_SIZE(holdfast_branches),       HOLDFAST_SIZE(holdfast_branch_place),
#undef HOLDFAST_SIZE
  };
  const holdfast::ByteView wanted = object;
  for (const auto& each : sizes)
    if (wanted == each.name) return each.size;
  return 0;
}
