// SPDX-License-Identifier: MIT
//
// SentinelWatch is what a blocking client or a Watchdog has that is to hear at once that its master was replaced: a connection to
// one of its Sentinels, subscribed to +switch-master. proto/topology.md has its rules (topology 28 to 33), and what it wins.
//
//     Client client;
//     SentinelWatch client_watch(client);
//     Watchdog watchdog(places.storage());
//     SentinelWatch watchdog_watch(watchdog);
//
// When a sentinel says that the master is another one than that of the connection, the connection is closed, and the sentinels
// are asked, as after a request that was refused since the server is a replica: what was in flight is unknown, and taken back
// behind. A Watchdog renews all that it keeps at once, so that a hold that the new master does not know is told as lost.
//
//   - It is heard while a call waits for a lock or for a connection, by the Watchdog always, and at the beginning of every call.
//     A request that is on its way waits for its answer.
//   - What a sentinel says is never taken for an address: who is named must say of itself that it is a master. A sentinel that is
//     mistaken, or lies, costs a connection in 2 s at most.
//   - A sentinel that is lost, or silent, is left for the next one of the list. Its user needs the channels +switch-master and
//     +failover-state-reconf-slaves, and the commands SUBSCRIBE and UNSUBSCRIBE beside the question. Whose SUBSCRIBE
//     is refused asks every 5 to 10 s.
//   - TLS as for the questions to sentinels: a place in the Tls for each.
//
// Without Sentinels it does nothing. Its connection is made when that to the master has been made, and stays until the object
// goes. Where names must be resolved, a thread does. An AsyncClient has it by watch_sentinels().
//
// Thread rule: as its client's. One of a Watchdog is made and destroyed by the thread that starts and stops that. No heap. Its
// whole memory is its own.
#pragma once

#include <cstdint>

#include "holdfast/core/switch_watch.hpp"
#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/lookout.hpp"
#include "holdfast/detail/resolver.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

class ClientBase;
class Watchdog;

class SentinelWatch : public Lookout {
 public:
  // REQUIRES: the client outlives it, and has no other.
  explicit SentinelWatch(ClientBase& client) noexcept;
  // REQUIRES: the watchdog outlives it, has no other, and does not run.
  explicit SentinelWatch(Watchdog& watchdog) noexcept;
  // Stops the Watchdog: start it anew where it is to go on without.
  ~SentinelWatch();

  // A sentinel has granted the subscription, and its connection has not ended as far as we know. Of a Watchdog that runs: not to be
  // asked.
  [[nodiscard]] bool hearing() const noexcept { return news_.hearing(); }
  // Words for why the connection to the last sentinel failed; likewise.
  [[nodiscard]] ByteView error_text() const noexcept { return lane_.error_text(); }

 private:
  static Ready sleep_until_news(Connection& connection, WakePipe& wake, Instant then, int extra,
                                int extra_events) noexcept;

  SentinelWatch(Connection& connection, Watchdog* watchdog) noexcept;
  [[nodiscard]] bool follow() noexcept;
  [[nodiscard]] bool wants_lane() const noexcept {
    return lane_.open() || lane_.dialer().connecting() || connection_.ready();
  }
  void work() noexcept;
  void receive() noexcept;
  void hang_up() noexcept;
  bool doubt() noexcept;
  [[nodiscard]] Instant timeout() const noexcept;

  Connection& connection_;
  Watchdog* watchdog_;
  std::uint32_t incarnation_ = 0;  // Of the process whose sockets these are.
  bool follows_ = false;
  SwitchWatch news_;
  Resolver resolver_;
  SwitchWatch::Buffers buffers_;
  Connection lane_;
};
static_assert(sizeof(SentinelWatch) <= 6 * 1024, "promised: what hears of a fail-over, its buffers included");

}  // namespace holdfast
