// SPDX-License-Identifier: MIT
//
// QuorumWatchdog is a thread that keeps the Redlocks of its quorums alive while their owners work: each is renewed on all nodes
// at once, at a third of its lease.
//
//     #include <holdfast/watchdog.hpp>
//     Quorum<3> quorum;
//     QuorumWatchdog watchdog;
//     Status status = watchdog.start(quorum);
//     RedlockMutex<3> lock(quorum, "orders/42");   // the automatic lease: kept from its grant on
//     if (lock.acquire(2s) == Status::ok) { ... }
//
// Which holds it keeps, for how long, and whom it tells is said by KeepOptions (keep_options.hpp).
//
// It uses the quorum's own connections, whenever their owner is not in a call; a call that waits keeps the holds itself, as
// ever. So it is no second client: a hold has one machine, a node one queue of requests, and what is taken back there goes after
// what was asked, whoever asked for it (proto/redlock.md, rule 7). Its turns are short. A node that is dead, stopped or slow
// costs its vote there and no time.
//
// Thread rule: start(), stop(), attach(), detach() and the destructor belong to the thread that uses the quorum. Several quorums, each
// with its own thread, may share one watchdog. Callbacks come from the watchdog's thread, or at the end of a call of the quorum;
// from the watchdog's they may call what any thread may: held(), tick(), cancel().
// No heap but what libc needs to start a thread. Its memory is sizeof(QuorumWatchdog), however many holds it keeps.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "holdfast/core/instant.hpp"
#include "holdfast/detail/quorum_keeper.hpp"
#include "holdfast/detail/shared_value.hpp"
#include "holdfast/detail/wake_pipe.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class QuorumWatchdog : public QuorumKeeper {
 public:
  QuorumWatchdog() noexcept;
  // Stops, and detaches its quorums: what they hold from then on is kept by tend(). REQUIRES: no hold that it keeps is left: an
  // assertion says so where one is; none of its quorums is in a call.
  ~QuorumWatchdog();

  // Starts the thread and attaches the quorum: what it holds, and will hold, is kept.
  // Errors: not_connected (connect() was not called yet), already_held (it runs, or another watchdog keeps the quorum's holds),
  // too_many_requests (as attach()), system_error (no thread), forked (it is the parent's: make another).
  [[nodiscard]] Status start(QuorumClient& quorum) noexcept;
  // One quorum more, by the thread that uses it. Errors: already_held (another watchdog keeps its holds); too_many_requests: it
  // has quorum_watchdog_quorums_max already; forked.
  [[nodiscard]] Status attach(QuorumClient& quorum) noexcept;
  // The quorum's holds are kept by tend() from here on. Waits for a call of a KeepOptions function in progress.
  void detach(QuorumClient& quorum) noexcept;
  // Ends the thread: holds are kept by tend(), or run out. Waits for a call of a KeepOptions function in progress.
  void stop() noexcept;

  // Any thread.
  [[nodiscard]] bool running() const noexcept { return running_.load(); }

 private:
  struct Lock;
  struct Watch;
  struct News;

  static const Table table;
  static void take(QuorumKeeper& keeper, Attachment& attachment, const QuorumRecord* lock) noexcept;
  static void give(QuorumKeeper& keeper, Attachment& attachment) noexcept;
  static void detach(QuorumKeeper& keeper, Attachment& attachment) noexcept;

  static void* run(void* self) noexcept;
  void loop() noexcept;
  [[nodiscard]] bool visit(Attachment& attachment, Watch& watch) noexcept;
  [[nodiscard]] static bool needed(const QuorumClient& quorum) noexcept;
  [[nodiscard]] static Instant next_of(const QuorumClient& quorum) noexcept;
  [[nodiscard]] static Instant move(QuorumClient& quorum, Watch& watch) noexcept;
  [[nodiscard]] static News news_of(QuorumClient& quorum) noexcept;
  [[nodiscard]] bool inherited() const noexcept;

  // Guards all below, and what its quorums share with it.
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t turned_ = PTHREAD_COND_INITIALIZER;  // A turn of the thread is over, or a call has returned.
  pthread_t thread_{};
  pid_t process_ = 0;
  SharedValue<bool> running_;
  bool stopping_ = false;
  Attachment* attached_ = nullptr;
  const QuorumRecord* telling_ = nullptr;     // Whose function is being called,
  const QuorumClient* telling_of_ = nullptr;  // and whose that is.
  WakePipe wake_;
};
static_assert(sizeof(QuorumWatchdog) <= 256, "promised: a watchdog of quorums, which keeps any number of holds");

}  // namespace holdfast
