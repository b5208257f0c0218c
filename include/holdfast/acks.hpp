// SPDX-License-Identifier: MIT
//
// Acks is what a blocking client has whose grants count only when replicas have confirmed them: a connection of its own, to the
// server of the client, on which it asks for that.
//
//     Client client;
//     Acks acks(client);
//     Status status = client.connect({.host = "db.internal", .acks = 1, .acks_timeout = 200ms});
//
//   - Every kind of lock, every outermost acquire. One that acquires a held lock once more asks nobody.
//   - An acquire costs one round trip more, and what the replicas take. It ends by its deadline and twice the acks_timeout, with a
//     request timeout for connecting. Meanwhile held() is false, for other threads, too.
//   - Too few replicas: the grant is released again. An acquire that waits tries again until its time is over, and then says
//     too_few_replicas, as one that does not wait does at once. A user who may not WAIT: no_permission.
//   - What is confirmed is the grant. Renewals are not: see proto/topology.md.
//
// It connects when the first grant is to be confirmed, or when an acquire pauses before its next attempt, and stays connected.
// Where names must be resolved anew, a thread does.
// An AsyncClient has all of this in itself: set `acks` in its configuration.
//
// Thread rule: as its client's. No heap. Its whole memory is its own.
#pragma once

#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/core/ack_lane.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/detail/acker.hpp"
#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/resolver.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

class Acks : public Acker {
 public:
  // REQUIRES: the client outlives it, and it the locks of the client; the client has no other, and is not connected.
  explicit Acks(ClientBase& client) noexcept;
  // A client that has `acks` in its configuration is closed, and not connected until connect() is called again.
  ~Acks();

  // Of its own connection, as the client's.
  [[nodiscard]] bool connected() const noexcept { return lane_.connected(); }
  [[nodiscard]] ByteView error_text() const noexcept { return lane_.error_text(); }

 private:
  // One call of a blocking client at a time, and those of whom it tells meanwhile.
  static constexpr std::size_t requests_max = 16;
  using Buffers = NodeBuffersOf<SessionBuffersOf<client_elements_max, client_reply_size_max,
                                                 transmit_size_max + ack_wait_size_max, requests_max, 1, key_size_max>,
                                config_texts_size_max, addresses_max>;

  static const Table table;
  static void enter(Acker& acker, AckRequest& request) noexcept;
  static void leave(Acker& acker, AckRequest& request) noexcept;
  static void work(Acker& acker) noexcept;
  static void sleep(Acker& acker, Instant until) noexcept;
  static void close(Acker& acker, bool inherited) noexcept;

  void follow() noexcept;
  void receive() noexcept;
  void hand_over() noexcept;
  void hang_up() noexcept;

  ClientBase* client_;
  std::uint32_t place_ = 0;  // Where the client was when this was configured.
  bool known_ = false;
  AckLane requests_;
  Resolver resolver_;
  Buffers buffers_;
  Connection lane_;
};
static_assert(sizeof(Acks) <= 10 * 1024,
              "promised: what a client has whose grants are confirmed, its buffers included");

}  // namespace holdfast
