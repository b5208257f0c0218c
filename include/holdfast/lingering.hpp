// SPDX-License-Identifier: MIT
//
// Lingering is what a client has whose fair locks may stay where they are used: places for their holds, and an ear for who else
// wants one. A release of such a lock sends nothing and leaves it on the server; to acquire it again costs no system call. The
// first waiter of another client recalls it.
//
//     Client client;
//     Lingering lingering(client);
//     Owner owner(client);
//     FairLock lock(owner, "orders/42", {}, {.linger = 1s});
//
// Client::tend() listens, and every call that waits does, at least once a second. So a program calls tend() when the tend()
// before it said, as for any hold that is kept: every linger_look, while there is something to be recalled. A watchdog renews
// such a hold as any other, but does not listen. Where nobody has listened for linger_unheard_max, and as long as the
// subscription is not there, a release tells the server, as that of any other lock does.
//
// An idle hold is nobody's: held() is false, hold_count() is 0, and no callback tells of it. It is renewed as if it were held. It
// ends by a recall, after its time, when it is lost or in doubt, by close(), and with the last lock object of its name. A process
// that dies leaves it for its lease.
//
// Thread rule: as its client's. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/core/linger.hpp"
#include "holdfast/core/subscriber.hpp"
#include "holdfast/detail/lingerer.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// Has places for the holds of lingering_max names.
class Lingering : public Lingerer {
 public:
  // REQUIRES: the client outlives it, and it the locks that use it; the client has no other.
  explicit Lingering(ClientBase& client) noexcept;
  // An assertion says where one of its locks is left.
  ~Lingering();

  // Of the holds that nobody has at present, but the server thinks that somebody does.
  [[nodiscard]] std::size_t idle() const noexcept;

 private:
  struct Place {
    OwnedHold* hold = nullptr;
    std::uint32_t handles = 0;
    std::uint32_t incarnation = 0;  // Of the process that it is in.
    Subscriber::Waiter* waiter =
        nullptr;  // It is woken by a recall, and by the message of a grant: others wait then, too.
    Linger linger;
  };

  static const Table table;
  static int enter(Lingerer& lingerer, OwnedHold& hold, Duration linger) noexcept;
  static void leave(Lingerer& lingerer, int index) noexcept;
  static Status acquire(Lingerer& lingerer, BlockingLock& lock, Duration wait, bool once) noexcept;
  static Status release(Lingerer& lingerer, BlockingLock& lock, bool posted) noexcept;
  static bool is_idle(const Lingerer& lingerer, int index) noexcept;
  static Instant look(Lingerer& lingerer, bool closing) noexcept;

  [[nodiscard]] Status acquire_anew(Place& place, BlockingLock& lock, Duration wait, bool once) noexcept;
  [[nodiscard]] bool inherited(const Place& place) const noexcept;
  void forget_parent(Place& place) noexcept;
  void listen(Place& place) noexcept;
  [[nodiscard]] static bool let_lie(Place& place) noexcept;
  static void pick_up(Place& place, Instant now) noexcept;
  static void let_go(Place& place) noexcept;
  [[nodiscard]] Status refuse(Place& place) noexcept;
  [[nodiscard]] Instant serve(Place& place, bool closing) noexcept;

  ClientBase* client_;
  Place places_[lingering_max];
};
static_assert(sizeof(Lingering) <= 16 + lingering_max * 64, "promised: what a client has whose locks linger");

}  // namespace holdfast
