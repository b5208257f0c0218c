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
// `loops` has programs on event loops, and is like `any` otherwise. `quorum_loops` has programs of quorums on loops and no others.
// `sets` has MultiLocks and sets of locks, in threads and on loops, and is like `any` otherwise. `sentinels` and `clusters` have
// servers that change (shifts.hpp), and lose data by their fail-overs alone. `handles` has programs on loops with several lock objects
// for one hold, and is like `any` otherwise. `acks` has servers with replicas, whose confirmation
// programs of single nodes ask for, and is like `any` otherwise.
enum class WorldKind : std::uint8_t {
  any,
  calm,
  network,
  servers,
  processes,
  data,
  clocks,
  quorum,
  connecting,
  loops,
  quorum_loops,
  sets,
  sentinels,
  clusters,
  acks,
  handles
};
inline constexpr std::array<std::string_view, 16> world_kind_names = {
    "any",        "calm",  "network",      "servers", "processes", "data",     "clocks", "quorum",
    "connecting", "loops", "quorum_loops", "sets",    "sentinels", "clusters", "acks",   "handles"};
[[nodiscard]] constexpr bool of_quorums_alone(WorldKind kind) noexcept {
  return kind == WorldKind::quorum || kind == WorldKind::quorum_loops;
}
[[nodiscard]] constexpr bool needs_loops(WorldKind kind) noexcept {
  return kind == WorldKind::loops || kind == WorldKind::quorum_loops || kind == WorldKind::handles;
}

[[nodiscard]] constexpr bool of_shifts(WorldKind kind) noexcept {
  return kind == WorldKind::sentinels || kind == WorldKind::clusters;
}

// `read` and `write` are the sides of one ReadWriteLock, `semaphore` is a permit, `fair` and `fair_fenced` have a queue, `multi` has
// several names.
enum class KindOfLock : std::uint8_t {
  mutex,
  announced,
  fenced_mutex,
  announced_fenced,
  reentrant,
  fenced,
  read,
  write,
  semaphore,
  fair,
  fair_fenced,
  multi
};

// One lock object of a client's program.
struct SlotPlan {
  KindOfLock kind = KindOfLock::mutex;
  std::size_t name = 0;
  std::size_t connection = 0;  // Of its program's.
  int owner = 0;               // Of the reentrant kinds.
  std::size_t other_side = 0;  // Of a read/write lock: the place of the other side's slot in its program.
  std::uint32_t permits = 0;   // Of a semaphore: how many its name has.
  SimTime lease = 0;
  bool kept = false;     // By the watchdog or tend().
  SimTime max_hold = 0;  // 0: none.
  SimTime liveness = 0;  // 0: it is not asked for.
  SimTime linger = 0;    // Of a fair lock: how long it may stay where it is used; 0: it does not.
  // Of a MultiLock: the places of the slots that stand for its further names. The program takes none of those by itself.
  std::vector<std::size_t> parts;
  bool is_part = false;  // It is one of those.
  // Of a quorum.
  SimTime node_timeout = 0;  // 0: automatic.
  SimTime min_validity = 0;
};

// One Client of a program: where it goes, and which thread uses it.
struct ConnectionPlan {
  std::size_t node = 0;  // In a cluster: which of its hash tags; a client on a loop, or with branches, serves all.
  std::size_t thread = 0;
  bool quorum = false;             // It stands for those to all nodes.
  bool named = false;              // By a host name, for which a resolver is asked.
  std::size_t dead_addresses = 0;  // Of that name, beside the one at which the server is.
  bool silent_addresses = false;   // They do not answer; else they refuse.
};

// Programs on loops are there, since there is Asio. Without it the seeds that have some are of other worlds.
#ifdef HOLDFAST_SIM_ASIO
inline constexpr bool has_loops = true;
#else
inline constexpr bool has_loops = false;
#endif

// A program. With a watchdog it has one a node, which its clients of that node share. One of a quorum has a connection here, the
// first, which stands for those to all nodes.
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
  SimTime think = 0;               // Between two things that it does, at most.
  SimTime hold = 0;                // How long it works under a lock, at most.
  SimTime wait = 0;                // How long it waits for a lock, at most.
  bool absent = false;             // It never starts: a failure does not need it.
  std::uint32_t careless = 0;      // How often it forgets to release, in a million.
  std::uint32_t hangs = 0;         // How often its application is not alive for a while: it does not tick.
  std::uint32_t cancels = 0;       // How often a call is cancelled by a signal, in a million,
  std::uint32_t torn_cancels = 0;  // and how often by a thread that is stopped in the middle of it.
  std::uint32_t connects_anew = 0;
  bool crowd = false;             // It keeps all its locks, and is there for nothing else.
  bool quorum_watchdog = false;   // A thread keeps the holds of its quorum.
  bool inspects = false;          // It looks at who has its locks.
  std::uint32_t quorum_anew = 0;  // How often it connects its quorum anew, in a million: in another order, say.
  bool posts = false;             // It takes many locks, and lets go of all of them at once.
  bool loop = false;              // It runs on an Asio loop, and does many things at the same time.
  bool handles = false;           // There several lock objects may be of one hold.
  bool strands = false;           // There each client has a strand of its own.
  bool hears = false;             // Of fail-overs, from sentinels.
  bool branches = false;          // It blocks, and its clients serve names of any slot.
  std::uint32_t sets = 0;         // How often it takes several of its free locks at once, in a million.
  std::uint8_t acks = 0;          // So many replicas have to confirm a grant of a single node,
  SimTime acks_timeout = 0;       // within this time.
  std::uint32_t rests = 0;        // How often it stops a watchdog and starts it again, in a million.
  bool tls = false;               // It speaks TLS with its servers.
  bool local = false;             // It is connected at once, as over a Unix socket.
  bool wide_sets = false;         // They have sides of read/write locks, too, and it takes one at the end.
  std::size_t threads = 1;
  std::vector<ConnectionPlan> connections;
  std::vector<SlotPlan> slots;  // Each thread has one at least.
};

inline constexpr int other_database = 3;

// A server, on a machine of its own.
struct NodePlan {
  ServerKind kind = ServerKind::redis_7_0;
  std::int64_t wall_offset = 0;  // How much its clock is ahead of the others', in microseconds.
  std::int64_t age = 0;          // How long it has been up when the world begins, in microseconds.
};

// How a client finds the server of a name.
enum class SetUp : std::uint8_t { fixed, sentinels, cluster };

struct Plan {
  std::uint64_t seed = 0;
  SetUp set_up = SetUp::fixed;
  std::size_t servers = 0;     // Of a set-up that is not fixed: the first so many nodes. Behind them are sentinels.
  std::size_t masters = 0;     // Of those, so many have slots when the world begins.
  std::size_t tags = 0;        // Of a cluster: its names have so many different hash tags, in turn.
  SimTime shift_interval = 0;  // Between two changes, at most.
  std::vector<NodePlan> nodes;
  bool password = false;
  // First those of single nodes, then those of quorums, then each of the first once more in another database, then those
  // of crowds and of posters, which are nobody else's, then those of semaphores, and each of them once more in another database.
  std::vector<std::string> names;
  std::size_t quorum_names = 0;            // From this one on they are of quorums,
  std::size_t quorum_end = 0;              // up to here.
  std::size_t crowd_names = 0;             // From this one on they are of crowds.
  bool read_write = false;                 // Some slots are sides of read/write locks.
  std::size_t semaphore_names = SIZE_MAX;  // From this one on they are of semaphores,
  std::vector<std::uint32_t> permits;      // each of which has so many, in either database.
  bool fair = false;                       // Some slots of single nodes are fair locks.
  std::uint8_t replicas = 0;               // Of each node.
  std::uint32_t late_replicas = 0;         // How often one of them confirms late, in a million,
  std::uint32_t lost_replicas = 0;         // and how often not at all.
  bool restart_guard = true;
  bool one_room =
      false;  // All nodes are restarted, or replaced by their replicas, at once, and a program goes with them.
  // Of quorums: where it is not 0, each program goes to and fro between this max_lease and lease_max, and has names of its own,
  // since others would have to do so with it.
  SimTime max_lease_small = 0;
  std::vector<ClientPlan> clients;
  std::array<std::uint32_t, fault_count> weights{};  // 0: never.
  SimTime fault_interval = 0;                        // Between two faults, at most.
  std::uint64_t faults_until = UINT64_MAX;           // No fault is injected behind so many events.
  SimTime length = 0;                                // Of the time with faults.
  std::uint64_t events_max = 0;                      // Of that time.
  SimTime latency_min = 0;
  SimTime latency_max = 0;
  std::size_t chunk_max = 0;  // What arrives at once, at most.
  bool tls_1_2 = false;       // Over TLS servers know no newer version.
  SimTime lease_max = 0;
  std::size_t output_max = 0;

  [[nodiscard]] bool of_quorum(std::size_t name) const noexcept { return name >= quorum_names && name < quorum_end; }
  [[nodiscard]] int database_of(std::size_t name) const noexcept {
    const bool again =
        of_semaphore(name) ? name >= semaphore_names + permits.size() : name >= quorum_end && name < crowd_names;
    return again ? other_database : 0;
  }
  [[nodiscard]] bool of_semaphore(std::size_t name) const noexcept { return name >= semaphore_names; }
  [[nodiscard]] std::uint32_t permits_of(std::size_t name) const noexcept {
    return of_semaphore(name) ? permits[(name - semaphore_names) % permits.size()] : 0;
  }
  // The same name in the database.
  [[nodiscard]] std::size_t name_in(std::size_t name, int database) const noexcept {
    return database == 0 ? name : name + (of_semaphore(name) ? permits.size() : quorum_end);
  }
  // Of a cluster's name: which of its hash tags.
  [[nodiscard]] std::size_t tag_of(std::size_t name) const noexcept { return tags == 0 ? 0 : name % tags; }
  // All nodes have one lock of a name between them.
  [[nodiscard]] bool one_place() const noexcept { return set_up != SetUp::fixed; }
  [[nodiscard]] bool is_sentinel(std::size_t node) const noexcept { return one_place() && node >= servers; }
  [[nodiscard]] bool enabled(Fault fault) const noexcept { return weights[static_cast<std::size_t>(fault)] != 0; }
};
inline constexpr std::size_t crowd_max = 300;

// The key beside a semaphore's name, with the permits that somebody has.
[[nodiscard]] std::string taken_permits_of(const std::string& name);
// The keys beside a fair lock's name: who waits, and that a waiter lives.
[[nodiscard]] std::string queue_of(const std::string& name);
[[nodiscard]] std::string beat_of(const std::string& name, std::string_view token);
// What stands in a cluster's names, of their hash tag.
[[nodiscard]] std::string tag_text(std::size_t tag);
// Of the seed, or of the bytes while there are some.
[[nodiscard]] Plan draw_plan(std::uint64_t seed, WorldKind kind, DecisionBytes* bytes = nullptr);

}  // namespace holdfast::sim
