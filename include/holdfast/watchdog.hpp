// SPDX-License-Identifier: MIT
//
// Watchdog is a thread that keeps holds alive while their owners work: each is renewed at a third of its lease, over a
// connection of its own, many holds in one call.
//
//     WatchdogPlaces<64> places;            // one a hold that is kept at the same time
//     Watchdog watchdog(places.storage());
//     Status status = watchdog.start(client);
//     Mutex lock(client, "orders/42");      // the automatic lease: kept from its grant on
//     if (lock.acquire(2s) == Status::ok) { ... }
//
// Which holds it keeps, for how long, and whom it tells is said by KeepOptions (keep_options.hpp). A QuorumWatchdog does the same for
// Redlocks (detail/quorum_watchdog.hpp).
//
// It has one connection, which goes to the server of the client that it was started with. With WatchdogBranchesOf
// (detail/watchdog_branches.hpp) it has one more for each further master of a cluster, and keeps holds in any slot:
//
//     WatchdogBranchesOf<2, 64> branches(watchdog);  // two masters beside the first, and 64 holds at each
//
// Thread rule: start(), stop() and the destructor belong to the thread that uses the client; several clients of one server, or
// with branches of one cluster, each with its own thread, may share one watchdog. Callbacks come from the watchdog's thread, and may
// call there what any thread may: held(), tick(), cancel().
// No heap but what libc needs to start a thread. Its memory is sizeof(Watchdog) and the places.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/core/renewal_schedule.hpp"
#include "holdfast/detail/keeper.hpp"
#include "holdfast/detail/quorum_watchdog.hpp"
#include "holdfast/detail/watchdog_branches.hpp"
#include "holdfast/detail/watchdog_lane.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

template <std::size_t count>
struct WatchdogPlaces {
  RenewalSchedule::Place places[count];
  std::uint32_t heap[count];

  [[nodiscard]] RenewalSchedule::Storage storage() noexcept { return {places, heap, count}; }
};

class Watchdog : public Keeper {
 public:
  // The storage must outlive the watchdog.
  explicit Watchdog(const RenewalSchedule::Storage& storage) noexcept;
  // Stops, and detaches its clients: what they acquire from then on is kept by tend(). REQUIRES: every hold that it keeps has
  // been released, or its lock destroyed: an assertion says so where one is left; none of its clients is in a call.
  ~Watchdog();

  // Starts the thread and attaches the client: its holds from the next one on are kept. The connection goes where the
  // client's goes; where it fails, it is tried again. A second client is attached with Client::attach().
  // Errors: not_connected (the client has not connected yet), already_held (it runs), system_error (no thread),
  // forked (it is the parent's: make another).
  [[nodiscard]] Status start(ClientBase& client) noexcept;
  // Ends the thread: holds run out unless they are renewed otherwise, also those that its clients acquire later, unless they
  // are detached by attach(nullptr). Waits for it: for a call of a KeepOptions function in progress.
  void stop() noexcept;

  // Any thread.
  [[nodiscard]] bool running() const noexcept { return running_.load(); }
  // Holds that are kept at present.
  [[nodiscard]] std::size_t size() noexcept;
  // Calls sent so far; a call renews up to renewal_batch_max holds.
  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_.load(); }

 private:
  friend class SentinelWatch;
  friend class WatchdogBranches;

  static const Table table;
  static void attach(Keeper& keeper, Attachment& attachment) noexcept;
  static void detach(Keeper& keeper, Attachment& attachment) noexcept;
  static Status enter(Keeper& keeper, HoldRecord& record) noexcept;
  static void sync(Keeper& keeper, HoldRecord& record) noexcept;
  static void leave(Keeper& keeper, HoldRecord& record) noexcept;
  static void take_back(Keeper& keeper, ClientBase& client) noexcept;
  static bool may_renew(void* holder, Instant now) noexcept;
  static void renewed(const KeptHold& hold) noexcept;

  static void* run(void* self) noexcept;
  void loop() noexcept;
  void give_up_place(HoldRecord& record) noexcept;
  // A hold that is at another server than thought is kept there, after a pause. With no place there it stays where it is.
  static void keep_on(HoldRecord& record, WatchdogLane& from, WatchdogLane& to) noexcept;
  [[nodiscard]] WatchdogLane* lane_for(ClientBase& client, const HoldRecord* record) noexcept;
  [[nodiscard]] WatchdogLane& lane_of(const RenewalSchedule::Place& place) noexcept;
  [[nodiscard]] bool tell_one() noexcept;
  [[nodiscard]] bool tell_one_of(WatchdogLane& lane) noexcept;
  void sleep() noexcept;
  [[nodiscard]] bool inherited() const noexcept;

  struct Lock;

  // Guards all below, but what the thread looks at as it falls asleep: the descriptors, and what is to be transmitted.
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t told_ = PTHREAD_COND_INITIALIZER;  // A call has returned.
  pthread_t thread_{};
  pid_t process_ = 0;
  SharedValue<bool> running_;
  SharedValue<std::uint64_t> calls_;
  bool stopping_ = false;
  Attachment* attached_ = nullptr;       // Its clients.
  const HoldRecord* telling_ = nullptr;  // Whose function is being called.
  Instant sleeping_until_;
  RandomSource random_;
  WakePipe wake_;
  WatchdogLane home_;  // The first of the lanes.
  WatchdogBranches* branches_ = nullptr;
};
static_assert(sizeof(Watchdog) <= 32 * 1024, "promised: a watchdog without its places");

}  // namespace holdfast
