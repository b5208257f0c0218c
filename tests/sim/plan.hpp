// SPDX-License-Identifier: MIT
//
// Plan is what a seed makes of a world before it begins: how many clients, with which clocks, locks and habits, and how
// likely each fault is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fault.hpp"
#include "model_redis.hpp"
#include "random.hpp"
#include "trace.hpp"

namespace holdfast::sim {

// Which worlds to draw. `quorum` has programs of quorums and no others; the rest but `any` narrow the faults.
enum class WorldKind : std::uint8_t { any, calm, network, servers, processes, data, clocks, quorum };
inline constexpr std::array<std::string_view, 8> world_kind_names = {"any",       "calm", "network", "servers",
                                                                     "processes", "data", "clocks",  "quorum"};

enum class KindOfLock : std::uint8_t { mutex, announced, fenced_mutex, announced_fenced, reentrant, fenced };

// One lock object of a client's program.
struct SlotPlan {
  KindOfLock kind = KindOfLock::mutex;
  std::size_t name = 0;
  std::size_t connection = 0;  // Of its program's.
  int owner = 0;               // Of the reentrant kinds.
  SimTime lease = 0;
  bool kept = false;     // By the watchdog or tend().
  SimTime max_hold = 0;  // 0: none.
  SimTime liveness = 0;  // 0: it is not asked for.
  // Of a quorum.
  SimTime node_timeout = 0;  // 0: automatic.
  SimTime min_validity = 0;
};

// One Client of a program: where it goes, and which thread uses it.
struct ConnectionPlan {
  std::size_t node = 0;
  std::size_t thread = 0;
};

// A program. With a watchdog it has one a node, which its clients of that node share. One of a quorum has a single
// connection here, which stands for those to all nodes.
struct ClientPlan {
  std::int64_t rate_ppm = 0;  // How much faster its clock runs than the server's.
  SimTime clock_base = 0;     // What it shows when the world begins.
  bool watchdog = false;
  bool quorum = false;
  bool wrong_password = false;
  bool native_delete = true;
  SimTime request_timeout = 0;
  SimTime connect_timeout = 0;
  SimTime stall_timeout = 0;
  SimTime max_poll = 0;
  SimTime think = 0;           // Between two things that it does, at most.
  SimTime hold = 0;            // How long it works under a lock, at most.
  SimTime wait = 0;            // How long it waits for a lock, at most.
  bool absent = false;         // It never starts: a failure does not need it.
  std::uint32_t careless = 0;  // How often it forgets to release, in a million.
  std::uint32_t hangs = 0;     // How often its application is not alive for a while: it does not tick.
  std::size_t threads = 1;
  std::vector<ConnectionPlan> connections;
  std::vector<SlotPlan> slots;  // Each thread has one at least.
};

// A server, on a machine of its own.
struct NodePlan {
  ServerKind kind = ServerKind::redis_7_0;
  std::int64_t wall_offset = 0;  // How much its clock is ahead of the others', in microseconds.
  std::int64_t age = 0;          // How long it has been up when the world begins, in microseconds.
};

struct Plan {
  std::uint64_t seed = 0;
  std::vector<NodePlan> nodes;
  bool password = false;
  std::vector<std::string> names;
  std::size_t quorum_names = 0;  // From this one on they are of quorums, and the others of single nodes.
  bool restart_guard = true;
  std::vector<ClientPlan> clients;
  std::array<std::uint32_t, fault_count> weights{};  // 0: never.
  SimTime fault_interval = 0;                        // Between two faults, at most.
  std::uint64_t faults_until = UINT64_MAX;           // No fault is injected behind so many events.
  SimTime length = 0;                                // Of the time with faults.
  std::uint64_t events_max = 0;                      // Of that time.
  SimTime latency_min = 0;
  SimTime latency_max = 0;
  std::size_t chunk_max = 0;  // What arrives at once, at most.
  SimTime lease_max = 0;
  std::size_t output_max = 0;
};

// Of the seed, or of the bytes while there are some.
[[nodiscard]] Plan draw_plan(std::uint64_t seed, WorldKind kind, DecisionBytes* bytes = nullptr);

}  // namespace holdfast::sim
