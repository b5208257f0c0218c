// SPDX-License-Identifier: MIT
//
// A canary is a wrong client, as somebody would write it: what a simulated world must find. The sin is in the simulated
// application, in a table of its own that stands for a lock kind, or in the way it moves bytes; never in holdfast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/detail/hold_record.hpp"
#include "plan.hpp"

namespace holdfast::sim {

class Random;
class World;
struct Epoll;
struct Link;

enum class Sin : std::uint8_t {
  none,
  // What it believes.
  validity_from_reply,
  drift_added,
  no_drift,
  held_is_a_flag,
  held_until_released,
  unknown_is_yes,
  clock_stands_still,
  loss_not_told,
  // How it keeps.
  feed_ignored,
  max_hold_ignored,
  // What it asks.
  release_without_compare,
  blind_renewal,
  set_without_nx,
  no_lease,
  lease_in_seconds,
  renewal_shortens,
  renewal_revives,
  reentry_without_owner,
  reentry_creates,
  step_deletes,
  fence_stands_still,
  fence_is_a_counter,
  key_as_token,
  no_announcement_but_push,
  // How it reads the answer.
  busy_is_granted,
  not_ours_is_renewed,
  not_ours_is_released,
  reply_twice,
  look_forgotten,
  // Its tokens.
  token_used_again,
  token_of_the_lock,
  // How it waits.
  wake_is_a_grant,
  no_floor,
  sleeps_on,
  deadline_ignored,
  timeout_too_much,
  tending_forgotten,
  back_off_forgotten,
  // How it moves bytes.
  connects_cut_short,
  resolves_in_line,
  wake_byte_left,
  sleeps_in_slivers,
  // Its cancelling, and its configuration.
  cancel_lost,
  cancel_kept,
  settings_kept,
  // Its names.
  name_of_the_whole_buffer,
  deaf_after_reconnect,
  // Its resource.
  fence_not_compared,
  // Its loop.
  validity_from_turn,
  cancelled_is_forgotten,
  debts_forgotten_on_close,
  handler_called_twice,
  set_of_some,
  set_keeps_first,
  set_in_any_order,
  set_cancelled_in_vain,
  edge_lost,
  timers_without_bytes,
  // Its readers.
  reader_not_counted,
  writer_beside_reader,
  // Its permits.
  permit_not_counted,
  permit_too_many,
  permits_all_taken_back,
  // Its several names.
  multi_releases_one,
  multi_takes_beside,
  multi_renews_one,
  // Its queue.
  queue_ignored,
  live_waiter_skipped,
  last_comes_first,
  place_lost_by_beat,
  leaver_stays,
  gift_without_end,
  gift_too_long,
  // Its idle holds.
  idle_hold_taken_late,
  idle_hold_not_renewed,
  // Its quorum.
  quorum_of_reachable,
  half_is_enough,
  no_quorum_is_yes,
  quorum_validity_from_reply,
  minority_extends,
  unanswered_not_released,
  guard_ignored,
  fence_of_one_node,
  fence_not_written,
  lease_above_max_lease,
  forgets_on_connect,
  promotion_unseen,
  post_dropped,
  // Its replicas.
  acks_ignored,
  // Where its server is.
  moved_ignored,
  ask_followed,
  replica_believed,
  failover_loses,
};

struct Canary {
  std::string_view name;
  std::string_view what;  // A sentence.
  Sin sin = Sin::none;
  std::string_view checkers;         // Those that may find it, separated by a comma.
  WorldKind world = WorldKind::any;  // Where it is looked for.
};

[[nodiscard]] std::span<const Canary> canaries() noexcept;
[[nodiscard]] const Canary* find_canary(std::string_view name) noexcept;

[[nodiscard]] Sin sin_of(const World& world) noexcept;
// The kind as the sinner has it; `kind` itself where it does nothing wrong.
[[nodiscard]] const LockKind& kind_as_canary(Sin sin, const LockKind& kind) noexcept;
[[nodiscard]] const LockKind& quorum_kind_as_canary(Sin sin, const LockKind& kind) noexcept;
// Of a mutex on one node, whatever its kind.
[[nodiscard]] HoldRecord::Ways ways_as_canary(Sin sin) noexcept;
// What of `bytes` is sent; `bytes` itself where nothing is wrong. A view until the next call.
[[nodiscard]] std::string_view sent_as_canary(const World& world, std::string_view bytes);
// Nodes that the sinner does without.
void drop_nodes_as_canary(Sin sin, Random& random, std::vector<ClientConfig>& nodes);
// What one node has offered last to this client.
[[nodiscard]] std::uint64_t fence_as_canary(std::size_t process);
// True if cancel() does nothing.
[[nodiscard]] bool cancel_lost_as_canary(const World& world) noexcept;
// True if what was received is left to be received again.
[[nodiscard]] bool reads_twice(World& world);
// True if what has come to a socket is not told to who waits for it on a loop,
[[nodiscard]] bool edge_lost_as_canary(World& world);
// and if a loop's timer does not wake it by itself.
[[nodiscard]] bool timer_overslept_as_canary(const World& world, const Epoll& epoll) noexcept;
// True if what lies in the socket is not seen by who does not wait for it.
[[nodiscard]] bool overlooked(const World& world, const Link& link);

}  // namespace holdfast::sim
