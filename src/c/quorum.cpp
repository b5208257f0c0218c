// SPDX-License-Identifier: MIT
//
// The quorum, its locks and its watchdog.
#include "holdfast/quorum.hpp"

#include "holdfast/redlock.hpp"
#include "holdfast/watchdog.hpp"
#include "lock.hpp"
#include "meter.hpp"

namespace holdfast::c {
namespace {

// As a Quorum, whose nodes are elsewhere.
class PlacedQuorum : public QuorumClient {
 public:
  using QuorumClient::Node;
  static_assert(sizeof(Node) <= HOLDFAST_QUORUM_NODE_SIZE && alignof(Node) <= HOLDFAST_ALIGNMENT);
  static_assert(nodes_max == HOLDFAST_NODES_MAX);

  PlacedQuorum(Node* nodes, std::size_t count) noexcept
      : QuorumClient(nodes, voters_, count), places_(nodes), count_(count) {
    for (std::size_t index = 0; index < count; ++index) std::construct_at(nodes + index);
  }
  ~PlacedQuorum() {
    leave();
    for (std::size_t index = 0; index < count_; ++index) std::destroy_at(places_ + index);
  }

  ConfigProblem refused;  // Found before the settings came to the quorum.

 private:
  Node* places_;
  std::size_t count_;
  VoterRoll::Voter voters_[nodes_max];
};

// The votes of a lock, in the caller's storage.
class PlacedVotes {
 public:
  static_assert(sizeof(QuorumVote) <= HOLDFAST_QUORUM_VOTE_SIZE && alignof(QuorumVote) <= HOLDFAST_ALIGNMENT);

  PlacedVotes(const LockKind& kind, holdfast_quorum_vote* storage, std::size_t count) noexcept : count_(count) {
    for (std::size_t index = 0; index < count; ++index)
      pointers_[index] = ::new (static_cast<void*>(storage[index].bytes)) QuorumVote(kind);
  }
  ~PlacedVotes() {
    for (std::size_t index = 0; index < count_; ++index) std::destroy_at(pointers_[index]);
  }
  PlacedVotes(const PlacedVotes&) = delete;
  PlacedVotes& operator=(const PlacedVotes&) = delete;

 protected:
  QuorumVote* pointers_[nodes_max];

 private:
  std::size_t count_;
};

// As a RedlockMutex, whose votes are elsewhere.
class PlacedRedlock : private PlacedVotes, public QuorumLock {
 public:
  PlacedRedlock(QuorumClient& quorum, const LockKind& kind, holdfast_quorum_vote* votes, std::size_t count,
                ByteView key, const QuorumTiming& timing) noexcept
      : PlacedVotes(kind, votes, count),
        QuorumLock(record_),
        record_(quorum, kind, pointers_, count, Key(key), timing, ways) {}
  ~PlacedRedlock() = default;

  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  static constexpr QuorumRecord::Ways ways = {.draw_ordinal = nullptr, .run_listening = run_listening};

  QuorumRecord record_;
};

}  // namespace

template <>
struct Made<holdfast_quorum> {
  using Object = PlacedQuorum;
  static constexpr std::uintptr_t number = 5;
};

template <>
struct Made<holdfast_quorum_watchdog> {
  using Object = QuorumWatchdog;
  static constexpr std::uintptr_t number = 6;
};

}  // namespace holdfast::c

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_quorum_init(holdfast_quorum* quorum, holdfast_quorum_node* nodes, size_t count) noexcept {
  if (const holdfast_status status = free_to_make(quorum); status != HOLDFAST_OK) return status;
  clear(quorum);
  if (!usable(nodes) || count == 0 || count > nodes_max) return HOLDFAST_INVALID_ARGUMENT;
  make_in(quorum, reinterpret_cast<PlacedQuorum::Node*>(nodes), count);
  return HOLDFAST_OK;
}

void holdfast_quorum_destroy(holdfast_quorum* quorum) noexcept { destroy_in(quorum); }

holdfast_status holdfast_quorum_connect(holdfast_quorum* quorum, const char* const* urls, size_t count,
                                        const holdfast_quorum_config* config) noexcept {
  PlacedQuorum* const object = object_in(quorum);
  if (object == nullptr || urls == nullptr || count > nodes_max) return HOLDFAST_INVALID_ARGUMENT;
  ByteView views[nodes_max];
  for (std::size_t index = 0; index < count; ++index) views[index] = urls[index];
  const holdfast_quorum_config wanted = config == nullptr ? holdfast_quorum_config{} : *config;
  QuorumConfig settings = {.max_lease = of_milliseconds(wanted.max_lease_ms, QuorumConfig{}.max_lease),
                           .restart_guard = !wanted.no_restart_guard};
  object->refused = choose_meter(wanted.meter, settings.meter) ? ConfigProblem() : no_meter;
  return object->refused.found() ? HOLDFAST_INVALID_ARGUMENT : to_c(object->connect(views, count, settings));
}

void holdfast_quorum_close(holdfast_quorum* quorum) noexcept {
  if (PlacedQuorum* const object = object_in(quorum); object != nullptr) object->close();
}

bool holdfast_quorum_connected(const holdfast_quorum* quorum) noexcept {
  const PlacedQuorum* const object = object_in(quorum);
  return object != nullptr && object->connected();
}

holdfast_status holdfast_quorum_node_status(const holdfast_quorum* quorum, size_t node) noexcept {
  const PlacedQuorum* const object = object_in(quorum);
  if (object == nullptr || node >= object->nodes()) return HOLDFAST_INVALID_ARGUMENT;
  return to_c(object->node_status(node));
}

const char* holdfast_quorum_problem(const holdfast_quorum* quorum, size_t* node, const char** reason) noexcept {
  const PlacedQuorum* const object = object_in(quorum);
  const bool ours = object != nullptr && object->refused.found();
  const ConfigProblem problem = object == nullptr ? ConfigProblem() : ours ? object->refused : object->problem();
  if (node != nullptr) *node = object == nullptr || ours ? 0 : object->problem_node();
  if (reason != nullptr) *reason = problem.reason;
  return problem.field;
}

size_t holdfast_quorum_error_text(holdfast_quorum* quorum, char* text, size_t size) noexcept {
  PlacedQuorum* const object = object_in(quorum);
  return copy_text(object == nullptr ? ByteView() : object->error_text(), text, size);
}

holdfast_status holdfast_quorum_stats(const holdfast_quorum* quorum, holdfast_stats* stats) noexcept {
  const PlacedQuorum* const object = object_in(quorum);
  return object == nullptr ? HOLDFAST_INVALID_ARGUMENT : give(object->stats(), stats);
}

int64_t holdfast_quorum_tend(holdfast_quorum* quorum) noexcept {
  PlacedQuorum* const object = object_in(quorum);
  return (object == nullptr ? Instant::max() : object->tend()).nanoseconds();
}

void holdfast_quorum_cancel(holdfast_quorum* quorum) noexcept {
  if (PlacedQuorum* const object = object_in(quorum); object != nullptr) object->cancel();
}

holdfast_status holdfast_redlock_init(holdfast_lock* lock, holdfast_quorum* quorum, holdfast_quorum_vote* votes,
                                      size_t count, const char* key, const holdfast_lock_options* options) noexcept {
  if (const holdfast_status status = free_to_make(lock); status != HOLDFAST_OK) return status;
  clear(lock);
  if (!usable(votes) || count == 0 || count > nodes_max) return HOLDFAST_INVALID_ARGUMENT;
  const holdfast_lock_options& wanted = options_of(options);
  const LockTiming timing = timing_of(wanted, {.announce = true, .fence = true, .quorum = true});
  const LockKind& kind = quorum_kind_of({.announce = wanted.announce, .fence = wanted.fence});
  return make_lock<PlacedRedlock, QuorumLock>(
      lock, object_in(quorum), kind, votes, count, key_of(key, wanted),
      QuorumTiming{.lease = timing.lease,
                   .drift = timing.drift,
                   .node_timeout = of_milliseconds(wanted.node_timeout_ms, node_timeout_automatic),
                   .min_validity = of_milliseconds(wanted.min_validity_ms),
                   .kept = timing.kept});
}

holdfast_status holdfast_quorum_watchdog_init(holdfast_quorum_watchdog* watchdog) noexcept {
  if (const holdfast_status status = free_to_make(watchdog); status != HOLDFAST_OK) return status;
  make_in(watchdog);
  return HOLDFAST_OK;
}

void holdfast_quorum_watchdog_destroy(holdfast_quorum_watchdog* watchdog) noexcept { destroy_in(watchdog); }

holdfast_status holdfast_quorum_watchdog_start(holdfast_quorum_watchdog* watchdog, holdfast_quorum* quorum) noexcept {
  QuorumWatchdog* const object = object_in(watchdog);
  PlacedQuorum* const kept = object_in(quorum);
  if (object == nullptr || kept == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  return to_c(object->start(*kept));
}

void holdfast_quorum_watchdog_stop(holdfast_quorum_watchdog* watchdog) noexcept {
  if (QuorumWatchdog* const object = object_in(watchdog); object != nullptr) object->stop();
}
