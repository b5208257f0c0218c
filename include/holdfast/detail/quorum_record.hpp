// SPDX-License-Identifier: MIT
//
// QuorumRecord drives one QuorumMachine over a QuorumClient: the one place where a hold of a quorum is known. A RedlockMutex has
// one in itself; those of the reentrant kinds are in the owner's storage. Not used by itself: see QuorumLock, whose calls these
// are and where each is described.
#pragma once

#include <cstdint>

#include "holdfast/core/hold_share.hpp"
#include "holdfast/core/keep_options.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/quorum_task.hpp"
#include "holdfast/core/quorum_votes.hpp"
#include "holdfast/detail/keeping.hpp"
#include "holdfast/quorum.hpp"

namespace holdfast {

class QuorumEar;

class QuorumRecord {
 public:
  // What an object has that is a handle of its owner's hold.
  struct Handle {
    QuorumClient* quorum;
    QuorumTiming timing;
    HoldShare share = {};         // What it has acquired.
    Status refusal = Status::ok;  // Why it has no hold.
  };
  // As HoldRecord::Ways.
  struct Ways {
    Status (*draw_ordinal)(RandomSource& random, Token& token) noexcept = nullptr;
    Status (*run_listening)(QuorumRecord& record) noexcept = nullptr;
  };

  // `places` is how many votes there are: one a node at least.
  QuorumRecord(QuorumClient& quorum, const LockKind& kind, QuorumVote* const* votes, std::size_t places, Key key,
               const QuorumTiming& timing, const Ways& ways) noexcept;
  // Posts the release of a hold that is left. Does not block: where a node has no place for it, the lease ends it.
  ~QuorumRecord();
  QuorumRecord(const QuorumRecord&) = delete;
  QuorumRecord& operator=(const QuorumRecord&) = delete;

  // The owner field of a hash kind: see Client.
  static Status draw_ordinal(RandomSource& random, Token& token) noexcept;
  // Why there can be no such lock of this quorum; ok when there can.
  [[nodiscard]] static Status judge(const QuorumClient& quorum, std::size_t places, Key key,
                                    const QuorumTiming& timing) noexcept;

  [[nodiscard]] Status configuration() const noexcept { return configuration_; }
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept;
  void tick() noexcept { keeping_.tick(); }

  // nullptr: of the object that has the record in itself, by the record's own timing. At the end somebody may be called who
  // destroys the handle, and the record: neither is touched after that.
  [[nodiscard]] Status try_acquire(Handle* handle) noexcept;
  [[nodiscard]] Status acquire(Duration wait, Handle* handle) noexcept;
  [[nodiscard]] Status renew(Duration timeout) noexcept;
  [[nodiscard]] Status release() noexcept;
  Status post_release() noexcept { return post_release(1); }
  // As its machine counts. That of a reentrant kind is changed by calls of the quorum's thread only.
  [[nodiscard]] std::uint32_t count() const noexcept { return machine_.count(); }
  // No call of it is in progress.
  [[nodiscard]] bool over() const noexcept { return task_.life().over(); }
  // Posts so many releases. REQUIRES: over(); one at least.
  void post_releases(std::uint32_t count) noexcept;
  [[nodiscard]] Status forget_loss() noexcept;

  [[nodiscard]] bool held() const noexcept;
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Duration remaining() const noexcept;
  [[nodiscard]] bool at_risk() const noexcept;
  [[nodiscard]] bool orphaned() const noexcept;

  [[nodiscard]] const QuorumMachine& machine() const noexcept { return machine_; }
  [[nodiscard]] QuorumClient& quorum() const noexcept { return *quorum_; }

 private:
  friend class QuorumClient;
  friend class QuorumPushEar;
  friend class QuorumWatchdog;
  friend Status run_listening(QuorumRecord& record) noexcept;

  Status post_release(std::uint32_t acquisitions) noexcept;
  [[nodiscard]] Status begin() noexcept;
  void catch_up() noexcept;
  void settle() noexcept;
  void take_reply(std::size_t node, const Reply& reply) noexcept;
  void note(QuorumEvent event) noexcept;
  void publish() noexcept;
  // Runs the task to its end. `ear` hears of releases; nullptr: nobody does.
  [[nodiscard]] Status run(QuorumEar* ear) noexcept;
  [[nodiscard]] TaskFacts facts(const QuorumEar* ear) noexcept;
  void ask() noexcept;
  [[nodiscard]] Status take_grant() noexcept;
  void plan(QuorumEar* ear) noexcept;
  // Sleeps until the task, or something that is kept, has something to do; not at all where that was not looked at before.
  void rest(QuorumEar* ear, bool& looked) noexcept;
  void give_up() noexcept;
  [[nodiscard]] Status run_acquire(Instant deadline, Instant end, Handle* handle) noexcept;
  [[nodiscard]] Status end_acquire(Status status, Handle* handle) noexcept;
  [[nodiscard]] Status start_renewal(Instant deadline) noexcept;
  [[nodiscard]] bool may_renew(Instant now) const noexcept;
  [[nodiscard]] bool kept() const noexcept { return keeping_.kept(machine_.timing().lock().automatic()); }
  void tell() noexcept;

  QuorumClient* quorum_;
  const Ways* ways_;
  QuorumVote* const* votes_;
  QuorumMachine machine_;
  QuorumTask task_;
  Keeping keeping_;
  QuorumRecord* next_ = nullptr;  // The quorum's list of its holds.
  std::uint32_t incarnation_ = 0;
  Status configuration_ = Status::ok;
};

// One of an owner's, and what its handles have in common.
class OwnedQuorumHold : public QuorumRecord {
 public:
  using QuorumRecord::QuorumRecord;

  // A handle goes, and others stay.
  void leave(const HoldShare& share) noexcept {
    tally.leave(share);
    post_due();
  }
  // What handles that are gone have left to release: after the call, where one of its functions has destroyed a handle. Where
  // there is nothing, nobody is waited for.
  void post_due() noexcept {
    if (!over()) return;
    if (const std::uint32_t due = tally.take_due(); due != 0) post_releases(due);
  }

  HoldTally tally;
};

// With its votes, as it is in its owner's storage.
template <std::size_t node_count>
class QuorumHold : private QuorumVotes<node_count>, public OwnedQuorumHold {
 public:
  QuorumHold(QuorumClient& quorum, const LockKind& kind, Key key, const QuorumTiming& timing, const Ways& ways) noexcept
      : QuorumVotes<node_count>(kind), OwnedQuorumHold(quorum, kind, this->pointers_, node_count, key, timing, ways) {}
};

}  // namespace holdfast
