// SPDX-License-Identifier: MIT
//
// Quorum is blocking connections to N independent nodes, for any number of Redlocks. All nodes are asked at once, by
// poll(2); connections stay open and reconnect by themselves, so that a node that is dead, stopped or slow costs nothing but
// its vote.
//
//     Quorum<3> quorum;
//     const ByteView urls[] = {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
//     Status status = quorum.connect(urls, 3, {.max_lease = 60s});
//     RedlockMutex<3> lock(quorum, "orders/42", {.lease = 10s});
//
// A restarted node may have forgotten a lock. So it has no vote in grants before max_lease is over, counted from its start
// and from when another run id, or a promotion, was first seen there (RestartGuard); error_text() names the node and the seconds
// left. What was learnt stays when connect() is called again, whatever the order of the nodes then.
// Thread rule, fork, signals: as Client's; node() is not to be asked while a QuorumWatchdog runs. No heap, except by the resolver of
// libc for host names, which is asked in a thread of its own, so that nobody waits for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/quorum_config.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/voter_roll.hpp"
#include "holdfast/detail/cancel_signal.hpp"
#include "holdfast/detail/clock.hpp"
#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/meter.hpp"
#include "holdfast/detail/quorum_keeper.hpp"
#include "holdfast/detail/random_source.hpp"
#include "holdfast/detail/resolver.hpp"
#include "holdfast/detail/subscription.hpp"
#include "holdfast/detail/wake_pipe.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

class QuorumInquiry;
class QuorumLock;
class QuorumRecord;
struct QuorumInfo;
struct QuorumRelease;

class QuorumClient {
 public:
  QuorumClient(const QuorumClient&) = delete;
  QuorumClient& operator=(const QuorumClient&) = delete;

  // Takes the configuration and connects to all nodes at once. ok when a majority is there and may vote; where it is not,
  // the quorum goes on connecting whenever it is used.
  // Errors: invalid_argument (too many nodes; a configuration, see problem() and problem_node(); max_lease outside
  // [lease_min, lease_max]), same_machine, no_quorum, cancelled, already_held while a lock of this quorum exists and the
  // number of nodes would change. Blocks for the longest connect_timeout at most, and
  // for a quarter of a second once a majority is there.
  [[nodiscard]] Status connect(const ClientConfig* configs, std::size_t count,
                               const QuorumConfig& config = {}) noexcept;
  // The same with URLs, see url.hpp.
  [[nodiscard]] Status connect(const ByteView* urls, std::size_t count, const QuorumConfig& config = {}) noexcept;
  void close() noexcept;

  [[nodiscard]] std::size_t nodes() const noexcept { return roll_.size(); }
  [[nodiscard]] std::size_t majority() const noexcept { return roll_.majority(); }
  [[nodiscard]] const QuorumConfig& config() const noexcept { return roll_.config(); }
  [[nodiscard]] const Connection& node(std::size_t index) const noexcept { return nodes_[index].connection; }
  // Nodes that may vote now.
  [[nodiscard]] NodeSet voters() const noexcept {
    const Turn turn(*this);
    return roll_.voters(now_);
  }
  [[nodiscard]] bool connected() const noexcept {  // A majority is.
    const Turn turn(*this);
    return roll_.connected();
  }
  // What keeps this node from voting, or the outcome of its last request. ok: nothing.
  [[nodiscard]] Status node_status(std::size_t index) const noexcept {
    const Turn turn(*this);
    return roll_.status(index, now_);
  }
  // Seconds until the restarted node votes; 0 when it does.
  [[nodiscard]] std::uint64_t seconds_until_vote(std::size_t index) const noexcept {
    const Turn turn(*this);
    return roll_.seconds_until_vote(index, now_);
  }
  // Which nodes did not vote in what failed last, and why: a sentence a node; or that the lease is above max_lease. A view until
  // the next call.
  [[nodiscard]] ByteView error_text() noexcept {
    const Turn turn(*this);
    return roll_.write_text({text_, sizeof text_}, now_);
  }
  [[nodiscard]] ConfigProblem problem() const noexcept { return problem_; }
  // What the meter of the QuorumConfig has counted, as Client::stats(). Any thread, but not during connect().
  [[nodiscard]] Stats stats() const noexcept { return stats_of(config().meter); }
  [[nodiscard]] std::size_t problem_node() const noexcept { return problem_node_; }
  // Compensations and posted releases that a node has not confirmed yet.
  [[nodiscard]] std::size_t compensations_pending() const noexcept;

  // Renews what is due of the holds that are to be kept, calls on_at_risk and on_lost where that is due, keeps the
  // connections alive, and says when to call again. Blocks for a request timeout at most. Calls that wait do it, too, and so does
  // the thread of a QuorumWatchdog.
  Instant tend() noexcept;
  // As Client::cancel(). Any thread; safe in a signal handler.
  void cancel() noexcept {
    cancel_.raise();
    wake_.wake();
  }

 protected:
  struct Node {
    Node() noexcept : connection(NodeBuffers::storage_of(&buffers)) {}
    Connection connection;
    Resolver resolver;
    Subscription push{&push_buffers};
    Subscription::Buffers push_buffers;
    NodeBuffers buffers;
  };
  QuorumClient(Node* nodes, VoterRoll::Voter* voters, std::size_t capacity) noexcept
      : nodes_(nodes), roll_(voters, capacity) {}
  ~QuorumClient() = default;
  void leave() noexcept;

 private:
  friend class MixedLockSet;
  friend class QuorumRecord;
  friend class QuorumLock;
  friend class QuorumPushEar;
  friend class QuorumWatchdog;
  friend Status inspect(QuorumClient& quorum, Key key, QuorumInfo& info) noexcept;
  friend Status force_release(QuorumClient& quorum, Key key, QuorumRelease& release) noexcept;

  // Who asks the nodes for something besides locking. A program that does not carries none of it.
  struct Asking {
    using Take = void (*)(Asking& self, std::size_t node, const Reply& reply) noexcept;
    explicit Asking(Take function) noexcept : take(function) {}
    Take take;
  };

  // While one stands the quorum is its owner's, and a watchdog's thread keeps away. With a lock: also from its functions.
  class Turn {
   public:
    explicit Turn(const QuorumClient& quorum, const QuorumRecord* lock = nullptr) noexcept : quorum_(quorum) {
      quorum.take_turn(lock);
    }
    ~Turn() { quorum_.give_turn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const QuorumClient& quorum_;
  };
  void take_turn(const QuorumRecord* lock) const noexcept;
  void give_turn() const noexcept;
  void call_back(void (*call)(void* context) noexcept, void* context) noexcept;

  // Of a waiter by push: descriptors to look at besides.
  struct Extra {
    int descriptor;
    short events;
    bool ready;
  };

  [[nodiscard]] Status begin() noexcept;
  void start_anew_in_child() noexcept;
  void set_now(Instant now) noexcept;
  void read_time() noexcept { set_now(read_clock()); }
  [[nodiscard]] bool cancelled() const noexcept { return cancel_.pending(); }
  [[nodiscard]] Status prepare(std::size_t count, const QuorumConfig& config) noexcept;
  [[nodiscard]] Status prepare_node(std::size_t index, const ClientConfig& config) noexcept;
  [[nodiscard]] Status connect_all() noexcept;
  void close_node(Node& node) noexcept;
  void look_at(std::size_t index) noexcept;
  void move_node(std::size_t index) noexcept;
  void move() noexcept;
  void transmit_all() noexcept;
  void dispatch(Node& node) noexcept;
  void receive(Node& node) noexcept;
  void look_and_transmit(Node& node) noexcept;
  // Until something arrives, until cancel(), or until then; no longer than sleep_max. What has arrived is dealt with.
  // With `cancellable` false cancel() does not end it: for loops that do not end by cancelled().
  void wait_until(Instant then, bool cancellable = true) noexcept;
  [[nodiscard]] Instant next_timeout() const noexcept;
  // Nodes that are on their way.
  [[nodiscard]] NodeSet connecting() const noexcept;
  [[nodiscard]] bool expects_bytes() const noexcept;
  [[nodiscard]] std::size_t index_of(const Node& node) const noexcept {
    return static_cast<std::size_t>(&node - nodes_);
  }
  [[nodiscard]] Instant request_deadline() const noexcept;
  // When an acquire that waits until then is over.
  [[nodiscard]] Instant end_of_wait(Instant deadline) const noexcept {
    return deadline + nodes_[0].connection.config().request_timeout;
  }
  // When a try that begins now is over.
  [[nodiscard]] Instant end_of_try() const noexcept {
    return end_of_wait(now_ + nodes_[0].connection.config().connect_timeout);
  }
  void shorten_pauses() noexcept;
  [[nodiscard]] Instant tend_next() const noexcept;
  void tend_due(const QuorumRecord* but = nullptr) noexcept;
  void tend_holds() noexcept;
  void tell_holds() noexcept;
  // As many requests as it takes, until all nodes have answered or time is up.
  [[nodiscard]] Status inquire(QuorumInquiry& inquiry) noexcept;

  Node* nodes_;
  VoterRoll roll_;
  CancelSignal cancel_;
  WakePipe wake_;
  RandomSource random_;
  Instant now_;
  Instant looked_at_;  // When the sockets were last waited for.
  QuorumRecord* first_ = nullptr;
  mutable QuorumKeeper::Attachment attachment_{.quorum = this};
  Asking* asking_ = nullptr;
  Extra* extra_ = nullptr;
  std::size_t extra_count_ = 0;
  ConfigProblem problem_;
  std::size_t problem_node_ = 0;
  char text_[320];
};

template <std::size_t node_count>
class Quorum : public QuorumClient {
 public:
  static_assert(node_count >= 1 && node_count <= nodes_max, "1 to nodes_max nodes");
  Quorum() noexcept : QuorumClient(places_, voters_, node_count) {}
  // REQUIRES: its locks are destroyed before. Closes without a farewell, and does not block: a server that cannot answer what
  // came before may not read the releases behind it any more, and keeps those grants to the end of their leases.
  ~Quorum() { leave(); }

 private:
  Node places_[node_count];
  VoterRoll::Voter voters_[node_count];
};

}  // namespace holdfast
