// SPDX-License-Identifier: MIT
//
// What can go wrong in a simulated world, one name each. A world draws how likely each is, and counts how often it was.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace holdfast::sim {

enum class Fault : std::uint8_t {
  // A client's process.
  client_pause,          // SIGSTOP while it waits.
  client_pause_at_call,  // SIGSTOP at its next system call: between any two steps.
  client_crash,          // Killed; the kernel closes its sockets.
  client_power_loss,     // Killed, and nobody says goodbye to the server.
  timer_starvation,      // Its timers come late for a while.
  thread_starvation,     // One thread does not run while the others do.
  signal_interruption,   // A system call is interrupted.
  // What it does by itself: these have no time of their own, and their weight is a switch.
  cancel_at_call,  // cancel() by a signal, before or behind a system call of whatever call is in progress.
  torn_cancel,     // The same by another thread, which is stopped in the middle of it.
  connect_anew,    // Client::connect() with other timeouts, another server or another database.
  wrong_password,  // Started with a password that the server refuses.
  // A server's process.
  server_pause,
  restart,         // With its data.
  restart_empty,   // Without.
  stale_failover,  // A replica that lags takes over.
  server_down,     // Nothing listens for a while.
  script_flush,
  client_kill,  // CLIENT KILL of one of our connections by somebody else.
  max_clients,
  refused_subscriber,  // SUBSCRIBE is answered by an error, or by the end of the connection.
  // A server's refusals.
  loading,
  read_only,
  out_of_memory,
  busy_script,
  too_few_replicas,
  master_down,
  disk_error,
  no_permission,
  // The data, by somebody else's hand.
  eviction,
  flush_all,
  foreign_delete,
  foreign_set,
  foreign_field,
  foreign_type,
  foreign_persist,
  foreign_expire,
  foreign_fence,
  // Time.
  clock_forward,
  clock_back,
  clock_rate,  // A client's clock runs at the bound of the drift.
  // The network.
  reset,
  reset_at_stage,  // After so many bytes of a connection.
  half_open_up,    // What the client sends does not arrive any more.
  half_open_down,  // What the server sends does not.
  stall,
  latency_spike,
  refused_connect,
  black_hole,         // A connect that is not answered.
  second_black_hole,  // The same where the client has a connection already, and its subscriptions are reset.
  slow_connect,
  slow_handshake,  // Each reply to it.
  slow_resolver,
  failing_resolver,
  dead_address,  // A name has another address, at which nobody is.
  dribble,       // One byte at a time.
  short_write,
  full_socket,    // A send takes nothing for a while.
  late_delivery,  // Bytes that were on their way arrive long after the client has closed.
  // What a server must not say.
  hostile_bytes,
  wrong_shape,
  unasked_reply,
  lost_message,
  duplicated_message,
  forged_message,
  output_limit,     // A slow subscriber is closed.
  unasked_between,  // A reply that nobody asked for, while the client waits for none.
  // What the machine of one process has not for a while, so that its connects fail at once.
  no_descriptors,  // There is no socket to be had.
  no_network,      // No way to any server: for who has no connection yet.
  // Where the server of a name is: of worlds with sentinels or a cluster, which have these of their own (shifts.hpp).
  slot_move,  // Key by key.
  move_called_off,
  slot_down,      // Nobody serves it for a while.
  master_change,  // By agreement: the new master has all that the old one had.
  old_news,       // Who is asked names another server than the one that it is, or none.
  losing_change,  // The new master has what the old one had a while ago.
};

inline constexpr int fault_count = static_cast<int>(Fault::losing_change) + 1;
using FaultCounts = std::array<std::uint64_t, fault_count>;

[[nodiscard]] std::string_view to_string(Fault fault) noexcept;
// A fault that the plan switches on, and that happens where the program or the world meets it.
[[nodiscard]] bool is_switch(Fault fault) noexcept;
// One that another than the FaultInjector injects: Shifts.
[[nodiscard]] constexpr bool is_shift(Fault fault) noexcept { return fault >= Fault::slot_move; }
// One that is drawn with what makes the worlds with local connects (plan.cpp).
[[nodiscard]] constexpr bool is_scarcity(Fault fault) noexcept {
  return fault == Fault::no_descriptors || fault == Fault::no_network;
}
// A fault that is drawn by a generator of its own, so that the seeds of before it mean what they meant.
[[nodiscard]] bool drawn_apart(Fault fault) noexcept;
// True if a server that is in reach stays so, for who is connected to it: what is held there can be kept.
[[nodiscard]] bool leaves_reach(Fault fault) noexcept;
// True if exclusion cannot be promised to those who hold a lock while it happens.
[[nodiscard]] bool outside_model(Fault fault) noexcept;

}  // namespace holdfast::sim
