// SPDX-License-Identifier: MIT
//
// QuorumMachine is one lock on N independent nodes: Redlock. It asks a LockMachine a node, counts what they are told, and
// decides. It does no I/O, reads no clock and draws no random bytes. proto/redlock.md is its paper, its transitions stand in
// src/core/quorum_transitions.hpp, and what decides a vote in src/core/quorum_tally.hpp.
//
//                                          (fence asked for)
//     idle -> acquiring --- a majority ---> fencing ---> held <-> at_risk -> releasing -> idle
//                 |                            |          \________/
//                 |                            |               |
//               denied (a majority cannot be had any more)    lost        all nodes: released, answered or not
//
// Invariant: held(now) implies that a majority of the configured nodes granted this token and keeps it until valid_until(),
// each counted from before its request left, less drift; and that no two of these votes are one server's.
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/lock_machine.hpp"

namespace holdfast {

// A set of nodes is a bit for each.
using NodeSet = std::uint16_t;
static_assert(nodes_max <= 16);
[[nodiscard]] constexpr NodeSet node_bit(std::size_t node) noexcept { return static_cast<NodeSet>(1U << node); }
[[nodiscard]] constexpr std::size_t count_of(NodeSet nodes) noexcept {
  return static_cast<std::size_t>(__builtin_popcount(nodes));
}
// More than half of all that are configured, whether they can be reached or not.
[[nodiscard]] constexpr std::size_t majority_of(std::size_t nodes) noexcept { return nodes / 2 + 1; }

inline constexpr Duration node_timeout_automatic = Duration::min();  // lease / 20, at least 5 ms

struct QuorumTiming {
  Duration lease = lease_automatic;
  Duration drift = drift_automatic;
  // How long each node has to answer an acquire; all are asked at once. At least timeout_min, below the lease.
  Duration node_timeout = node_timeout_automatic;
  // A grant with less than this left counts as none. At least 0, below the lease.
  Duration min_validity = Duration::zero();
  bool kept = false;  // As LockTiming::kept.

  [[nodiscard]] constexpr LockTiming lock() const noexcept { return {.lease = lease, .drift = drift, .kept = kept}; }
  [[nodiscard]] constexpr Duration effective_node_timeout() const noexcept {
    if (node_timeout != node_timeout_automatic) return node_timeout;
    const Duration share = lock().effective_lease() / node_timeout_divisor;
    return share < node_timeout_min ? node_timeout_min : share;
  }
  [[nodiscard]] constexpr bool valid() const noexcept {
    if (!lock().valid()) return false;
    const Duration length = lock().effective_lease();
    const bool answers = effective_node_timeout() >= timeout_min;
    return answers && (effective_node_timeout() < length || node_timeout == node_timeout_automatic) &&
           min_validity >= Duration::zero() && min_validity < length - lock().effective_drift();
  }
};

enum class QuorumState : std::uint8_t { idle, acquiring, fencing, held, at_risk, releasing, lost };
enum class QuorumInput : std::uint8_t;  // What changes it: src/core/quorum_transitions.hpp.
struct QuorumTally;                     // src/core/quorum_tally.hpp.

enum class QuorumEvent : std::uint8_t {
  granted,   // acquire: ok.
  denied,    // acquire: status() says why; nothing is held, and what single nodes granted is being released.
  renewed,   // renew: a majority has confirmed.
  doubted,   // renew: no majority has. The hold goes on until valid_until().
  at_risk,   // The first doubt of a hold. Once until it is renewed.
  lost,      // Final. Once a hold.
  released,  // release: a majority has nothing of the hold any more, or that cannot be known; status() says which.
};

// Whom a command may ask, and for how long at most: as VoterRoll says.
struct Electorate {
  constexpr Electorate(NodeSet asked, Duration longest = lease_max) noexcept : nodes(asked), max_lease(longest) {}
  NodeSet nodes;
  Duration max_lease;  // The quorum's. A restarted node waits so long, so nothing may be promised for longer.
};

// One node's part of a lock.
struct QuorumVote {
  explicit QuorumVote(const LockKind& kind) noexcept : machine(kind) {}

  LockMachine machine;
  void* owner = nullptr;  // The driver's own.
  // Until when this node's grant counts; the epoch: it has none.
  Instant counts_until;
  // Who answers at this node, and who was asked there for the present hold or has confirmed it last: a number of the run id,
  // 0 where that is not known. The two differ where the node's name has moved to another server.
  std::uint32_t server = 0;
  std::uint32_t keeper = 0;
  std::uint8_t node = 0;
  Status status = Status::ok;                       // What became of the last request to it.
  NativeDelete native_delete = NativeDelete::none;  // Of its server.
  // Its connection leads to a machine that has a vote already: what it confirms counts for nothing.
  bool excluded = false;
  bool renewed = false;    // In the present round.
  bool repairing = false;  // Asked for the lock while a majority holds it.
  bool repaired = false;  // It was granted so, and not renewed since: it counts to the end of the hold, and no further.
  bool owed = false;      // What is to be taken back there has found no place yet.
};

class QuorumMachine {
 public:
  // REQUIRES: 1 to nodes_max votes, all of the kind, which outlive the machine.
  QuorumMachine(const LockKind& kind, QuorumVote* const* votes, std::size_t count) noexcept
      : kind_(&kind), votes_(votes), count_(count) {}
  QuorumMachine(const QuorumMachine&) = delete;
  QuorumMachine& operator=(const QuorumMachine&) = delete;

  // Errors: invalid_argument (nothing changed), already_held while state() is not idle.
  [[nodiscard]] Status configure(Key key, const QuorumTiming& timing) noexcept;

  // A. Questions. Never change state.
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until_; }
  [[nodiscard]] QuorumState state() const noexcept { return state_; }
  // Until a majority's grants run out, by the reckoning of each; the epoch when nothing is held. A node that joined later
  // never makes it later before its first renewal.
  [[nodiscard]] Instant valid_until() const noexcept { return valid_until_; }
  // From when on a hold is at risk; the epoch when it is already.
  [[nodiscard]] Instant risky_from() const noexcept {
    return state_ == QuorumState::at_risk ? Instant() : confirmed_at_ + lease() / renewal_divisor * 2;
  }
  // When the next renewal should be asked for, or an open round's be asked for once more; Instant::max() when nothing is held.
  [[nodiscard]] Instant renewal_due() const noexcept;
  // The last outcome, as events report it.
  [[nodiscard]] Status status() const noexcept { return status_; }
  // True while the answer to an acquire, a renewal or a release is to come.
  [[nodiscard]] bool waiting() const noexcept {
    return state_ == QuorumState::acquiring || state_ == QuorumState::fencing || state_ == QuorumState::releasing ||
           round_open_;
  }
  // How often it was acquired and not released. Reentrant kinds: also behind a loss, until it is unwound.
  [[nodiscard]] std::uint32_t count() const noexcept { return depth_; }
  // Of the last acquire: the largest of a majority's, which a majority has written back. 0 without one.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_; }
  [[nodiscard]] Instant confirmed_at() const noexcept { return confirmed_at_; }
  // When the last acquire, or the last round of renewals, was asked for.
  [[nodiscard]] Instant asked_at() const noexcept { return asked_at_; }
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }
  [[nodiscard]] const Token& token() const noexcept { return token_; }
  [[nodiscard]] const QuorumTiming& timing() const noexcept { return timing_; }
  [[nodiscard]] const LockKind& kind() const noexcept { return *kind_; }
  [[nodiscard]] Key key() const noexcept { return votes_[0]->machine.key(); }
  [[nodiscard]] std::size_t nodes() const noexcept { return count_; }
  [[nodiscard]] std::size_t majority() const noexcept { return majority_of(count_); }
  [[nodiscard]] NodeSet all() const noexcept { return static_cast<NodeSet>(node_bit(count_) - 1U); }
  [[nodiscard]] const QuorumVote& vote(std::size_t node) const noexcept { return *votes_[node]; }
  // The least of what the nodes in the way have told of the other's remaining time, as LockMachine::busy_for().
  [[nodiscard]] std::int64_t busy_for() const noexcept;
  // Whether a lock may be held for so long: acquire() and renew() refuse what is longer, so they hold for every grant, re-entry,
  // renewal and repair.
  [[nodiscard]] bool permitted(Duration max_lease) const noexcept {
    return timing_.lock().effective_lease() <= max_lease;
  }
  // Nodes on which something is still to be taken back that has found no place,
  [[nodiscard]] NodeSet owed() const noexcept;
  // and those of them that belong to the last hold or attempt.
  [[nodiscard]] NodeSet release_owed() const noexcept { return static_cast<NodeSet>(owed() & (released_ | missed_)); }

  // For tests: what is always so after settle() and what calls it, and after any command. The hold is what the votes make it,
  // each vote counts for it alone, and what is to be told belongs to the state.
  [[nodiscard]] bool invariants() const noexcept;

  // B. Inputs. `now` never goes back.
  // Whatever was done with these nodes' requests is followed by:
  void settle(NodeSet nodes, Instant now) noexcept;
  void settle(Instant now) noexcept { settle(all(), now); }  // Also after time has passed.
  // The node's connection leads to this server, which was introduced there: before anything is asked over it. With `excluded`
  // that machine has a vote already, at another node. Then this node's grant counts no longer, and is not taken back: that
  // would take back the other's.
  void meet(std::size_t node, std::uint32_t server, bool excluded) noexcept {
    strayed_ = strayed_ || (votes_[node]->keeper != 0 && votes_[node]->keeper != server);
    votes_[node]->server = server;
    votes_[node]->excluded = excluded;
    if (excluded) votes_[node]->counts_until = Instant();
  }
  // A reply to this node's vote, and settle().
  void handle_reply(std::size_t node, const Reply& reply, Instant now) noexcept;
  // What found no place may have one by now: poll_compensation() offers it again.
  void retry_owed() noexcept;
  // The release has been waited for long enough: it goes on, and nobody waits.
  void end_release(Status why) noexcept;

  // C. Commands. Each answers ok when the votes' requests are ready to be sent.
  // Asks the voters, and no other node: those that are connected and may vote. `token` is fresh for every call. It is over by
  // the deadline, the fence's round included, even where the node timeout is longer.
  // Errors: already_held; too_many_requests while a release is waited for; lock_lost while a lost reentrant hold is not
  // unwound; invalid_argument when the lease is above max_lease; no_quorum when the voters are no majority: nothing is asked
  // then. `timing`, if there is one, is the machine's from here on. REQUIRES: it is valid.
  [[nodiscard]] Status acquire(const Token& token, Instant now, Electorate electorate,
                               Instant deadline = Instant::max(), const QuorumTiming* timing = nullptr) noexcept;
  // Renews where it is held, and asks the repairers that lost it, or never had it, for it anew: one that answers "not yours", as
  // soon as a majority has confirmed. In an open round it asks once more those that have not confirmed, and of which no answer is
  // to come. A server is asked for a hold at one node only: where a name has moved to another node's server, that vote is not
  // asked for.
  // REQUIRES of a repairer: it may vote, and nothing of this token is still to be taken back on its connection.
  // Errors: not_held, lock_lost; invalid_argument when the lease is above max_lease, and the hold goes on until valid_until();
  // too_many_requests while a round is open, before renewal_due(). With a `timing` the hold's lease is raised by it, if a majority
  // confirms this round: see LockTiming::raised_by(). An open round keeps the lease that it was opened with.
  [[nodiscard]] Status renew(Instant now, Instant deadline, Electorate repairers,
                             const QuorumTiming* timing = nullptr) noexcept;
  // One acquisition more, of a hold that a majority has just confirmed. Errors: invalid_argument beyond count_max.
  [[nodiscard]] Status reenter() noexcept;
  // Lets go of so many acquisitions, or of all where there are fewer; of the last one on every node: those that never answered,
  // too. From there on the lock is not held. Errors: not_held, lock_lost, which takes as many off the count of a lost reentrant
  // hold.
  [[nodiscard]] Status release(Instant now, std::uint32_t acquisitions = 1) noexcept;
  // As LockMachine::forget_loss(). Errors: as there.
  [[nodiscard]] Status forget_loss(Instant now) noexcept;
  // The acquire is not wanted any more: denied, with this status.
  void cancel(Instant now) noexcept {
    if (state_ == QuorumState::acquiring || state_ == QuorumState::fencing) deny(Status::cancelled, now);
  }
  // Everything is over without a word to the servers: the hold is another process's.
  void forget() noexcept;

  // D. Outputs. After any call of B or C: the votes' requests and compensations, then these.
  // What is to be taken back on this node, by the server that was asked there and by no other: where the name has moved, the
  // lease ends it. False where there is nothing. Without room in the node's session it is kept: owed().
  [[nodiscard]] bool poll_compensation(std::size_t node, bool room, ReplyTag& tag, Compensation& compensation) noexcept;
  // Nodes whose machines may have something to say.
  [[nodiscard]] NodeSet poll_nodes() noexcept {
    const NodeSet nodes = changed_;
    changed_ = 0;
    return nodes;
  }
  // False if nothing below has anything to say.
  [[nodiscard]] bool has_output() const noexcept { return (changed_ | give_up_ | doubted_ | demoted_ | events_) != 0; }
  // Nodes whose replies to this lock are to be given up: Session::give_up(). Replies that come of it are inputs.
  [[nodiscard]] NodeSet poll_give_up() noexcept {
    const NodeSet nodes = give_up_;
    give_up_ = 0;
    return nodes;
  }
  // Nodes that have sent a reply of a shape that no server sends: Session::fail().
  [[nodiscard]] NodeSet poll_protocol_doubt() noexcept {
    const NodeSet nodes = doubted_;
    doubted_ = 0;
    return nodes;
  }
  // Nodes that have said that they are replicas: VoterRoll::demote().
  [[nodiscard]] NodeSet poll_demoted() noexcept {
    const NodeSet nodes = demoted_;
    demoted_ = 0;
    return nodes;
  }
  // Those that came since the last poll, in their order. False when there is none.
  [[nodiscard]] bool poll_event(QuorumEvent& event) noexcept {
    if (events_ == 0) return false;
    event = static_cast<QuorumEvent>(__builtin_ctz(events_));
    events_ = static_cast<std::uint8_t>(events_ & (events_ - 1));
    return true;
  }
  [[nodiscard]] Instant poll_timeout() const noexcept;  // Instant::max() when idle.

 private:
  [[nodiscard]] static constexpr std::uint8_t event_bit(QuorumEvent event) noexcept {
    return static_cast<std::uint8_t>(1U << static_cast<int>(event));
  }
  void push_event(QuorumEvent event) noexcept { events_ = static_cast<std::uint8_t>(events_ | event_bit(event)); }
  void move(QuorumInput input) noexcept;
  [[nodiscard]] QuorumTally round_tally(Instant now) const noexcept;
  [[nodiscard]] QuorumTally release_tally() const noexcept;
  [[nodiscard]] bool holding() const noexcept { return state_ == QuorumState::held || state_ == QuorumState::at_risk; }
  // What they come to.
  [[nodiscard]] Duration lease() const noexcept { return timing_.lock().effective_lease(); }
  [[nodiscard]] Duration validity() const noexcept { return lease() - timing_.lock().effective_drift(); }
  [[nodiscard]] Duration retry_delay() const noexcept;
  [[nodiscard]] Instant majority_until() const noexcept;
  [[nodiscard]] bool take_events(std::size_t node, Instant now) noexcept;
  void repair(NodeSet nodes, Instant now) noexcept;
  void take_grant(QuorumVote& vote, Instant now) noexcept;
  void judge_attempt(Instant now) noexcept;
  [[nodiscard]] bool lacks_room(Instant now) const noexcept;
  void judge_hold(Instant now) noexcept;
  void judge_release() noexcept;
  void write_fence(Instant now) noexcept;
  void grant(Instant now) noexcept;
  void deny(Status why, Instant now) noexcept;
  void lose(Instant now) noexcept;
  void doubt(Instant now) noexcept;
  void let_go_everywhere(Instant now) noexcept;
  [[nodiscard]] bool asked_elsewhere(std::size_t node) const noexcept;
  // Another server answers there than the one that was asked.
  [[nodiscard]] static bool moved(const QuorumVote& vote) noexcept {
    return vote.excluded || vote.server != vote.keeper;
  }
  [[nodiscard]] Instant node_deadline(Instant now) const noexcept {
    return earlier(now + timing_.effective_node_timeout(), deadline_);
  }

  const LockKind* kind_;
  QuorumVote* const* votes_;
  std::size_t count_;
  QuorumTiming timing_;
  LockTiming asked_;  // What the votes are asked for by the last request: the hold's once a majority has granted it.
  Instant valid_until_;
  Instant confirmed_at_;
  Instant asked_at_;                   // Of the acquire, or of the open round.
  Instant deadline_ = Instant::max();  // Of the acquire.
  Instant retry_renewal_at_;           // After a doubt, and in an open round. The epoch: as the interval says.
  std::uint64_t fence_ = 0;
  std::uint32_t generation_ = 0;
  std::uint32_t depth_ = 0;
  QuorumState state_ = QuorumState::idle;
  Status status_ = Status::ok;
  bool round_open_ = false;
  bool loss_untold_ = false;
  bool strayed_ =
      false;  // A name has moved under the hold: not every server that was asked for it can be asked any more.
  std::uint8_t events_ = 0;
  NodeSet repairers_ = 0;  // Of the last round; none once it has failed.
  NodeSet missing_ = 0;    // Nodes that have said "not yours" in it: nothing is taken back there before it is decided.
  NodeSet released_ = 0;   // Nodes that were asked to release the last hold or attempt,
  NodeSet missed_ = 0;     // and those whose answer was given up then.
  NodeSet repeated_ = 0;   // Nodes that have answered a repeat of that release: the first one may have run.
  NodeSet changed_ = 0;
  NodeSet give_up_ = 0;
  NodeSet doubted_ = 0;
  NodeSet demoted_ = 0;
  Token token_;
};
static_assert(sizeof(QuorumMachine) <= 256, "promised: a quorum without its votes");
static_assert(sizeof(QuorumVote) <= 512, "promised: one node's part of a lock");

}  // namespace holdfast
