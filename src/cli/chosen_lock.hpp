// SPDX-License-Identifier: MIT
//
// ChosenLock is the one lock of a run, with its connections: of the kind that the command line asked for, on one server or
// on a quorum of several. What differs between them ends here; whoever has one sees a lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "holdfast/acks.hpp"
#include "holdfast/client.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/detail/owner.hpp"
#include "holdfast/fair_lock.hpp"
#include "holdfast/fenced_lock.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/mutex.hpp"
#include "holdfast/read_write_lock.hpp"
#include "holdfast/redlock.hpp"
#include "holdfast/reentrant_lock.hpp"
#include "holdfast/semaphore.hpp"
#include "holdfast/sentinel_watch.hpp"
#include "lock_choice.hpp"
#include "options.hpp"

namespace holdfast::cli {

class ChosenLock {
 public:
  // Connects to nothing yet. The options must outlive the lock.
  explicit ChosenLock(const AcquisitionOptions& options);
  ChosenLock(const ChosenLock&) = delete;
  ChosenLock& operator=(const ChosenLock&) = delete;

  // Connects and makes the lock. Errors: as Client::connect() and QuorumClient::connect(). REQUIRES: called once, before all
  // that follows; where it failed, that connects by itself.
  [[nodiscard]] Status connect();

  // A. As BlockingLock and QuorumLock have them.
  [[nodiscard]] Status try_acquire() noexcept;
  [[nodiscard]] Status acquire(Duration wait) noexcept;
  [[nodiscard]] Status renew(Duration timeout) noexcept;
  [[nodiscard]] Status release() noexcept;
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until(); }
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Duration remaining() const noexcept;
  // When renew() is due. At once where a renewal was cancelled and is still on its way: it is waited for.
  [[nodiscard]] Instant renewal_due() const noexcept;
  [[nodiscard]] const Token& token() const noexcept;
  // Safe in a signal handler.
  void cancel() noexcept;

  // Of the present or last grant; none where the choice has none.
  [[nodiscard]] std::optional<std::uint64_t> fence() const noexcept;
  // Between two calls: connections to nodes that were lost are made anew. Does not wait for them.
  void tend() noexcept;
  // After a grant: nodes of a quorum that came too late for it are waited for so long, and for a quarter of what is left of the
  // hold at most; then they are asked for the lock, too. Nobody would do that later where nobody keeps the lock. Returns what
  // became of that renewal; whether the hold is still one, held() says.
  [[nodiscard]] Status spread(Duration most) noexcept;
  // Nothing that may be ours is still to be taken back where it counts: on the server, or on a majority of the nodes.
  [[nodiscard]] bool settled() const noexcept;
  // Moves on what settled() asks for.
  void move() noexcept;
  // Who has it, as a server says, or most of a quorum's nodes. Takes a second at most. Errors: as inspect().
  [[nodiscard]] Status inspect(LockInfo& info);

  // B. What a failure means.
  // Where no quorum comes together for a reason that waiting cannot heal, that reason.
  [[nodiscard]] Status verdict(Status status) const;
  // Sentences: what happened, and which servers have to do with it; what to do.
  [[nodiscard]] std::string failure_text(Status status) const;
  [[nodiscard]] int exit_code_of(Status status, int not_acquired) const noexcept;
  // Equal texts are no news to who waits: that a server is away shows in several ways.
  [[nodiscard]] std::string reason_of(Status status) const;

 private:
  struct OneServer {
    Client client;
    Acks acks{client};
    SentinelWatch watch{client};
    OwnerOf<2> owner{client};  // Before the lock, which must go first; a read/write lock takes two places.
    std::variant<std::monostate, Mutex, ReentrantLock, FencedLock, FairLock, ReadWriteLock, Semaphore> place;
  };
  struct SeveralServers {
    Quorum<nodes_max> quorum;
    QuorumOwnerOf<nodes_max, 1> owner{quorum};
    std::variant<std::monostate, RedlockMutex<nodes_max>, RedlockReentrantLock<nodes_max>, RedlockFencedLock<nodes_max>>
        place;
  };

  void make_lock(OneServer& one);
  void make_lock(SeveralServers& several);
  // The same call of whichever there is.
  template <class Call>
  auto on_lock(Call&& call) const noexcept {
    return lock_ != nullptr ? call(*lock_) : call(*redlock_);
  }

  const AcquisitionOptions& options_;
  std::unique_ptr<OneServer> one_;  // One of these two,
  std::unique_ptr<SeveralServers> several_;
  BlockingLock* lock_ = nullptr;  // and what is in its place.
  QuorumLock* redlock_ = nullptr;
};

}  // namespace holdfast::cli
