// SPDX-License-Identifier: MIT
//
// Observer is a table of functions, for tracing to hang on. A Meter that was given one calls it beside counting:
//
//     void span(void* context, const Observation& seen) noexcept { ... }
//     const Observer observer = {.context = &tracer, .on_grant = span, .on_loss = span};
//     Meter meter(observer);
//
// Thread rule: a function is called on the thread that does what is observed: of a call, that of its caller; of a renewal or a
// loss by a watchdog, the watchdog's, while it holds its lock; on a loop, the loop's. Several may call at once. So a function
// returns soon, calls nothing of holdfast, and waits for nobody.
// Of a hold whose release has begun nothing is told any more: no renewal, and no loss. A compensation or the end of a connection
// may come later. No heap.
#pragma once

#include "holdfast/core/instant.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// A view: valid until the function returns.
struct Observation {
  ByteView name;               // Of the lock; of a connection: the host, or the path of the socket.
  Status status = Status::ok;  // What came of it.
  Duration duration{};         // How long it took: of a call, from its beginning.
  bool again = false;          // on_connect: after a connection that was lost.
};

struct Observer {
  using Function = void (*)(void* context, const Observation& observation) noexcept;

  void* context = nullptr;
  // nullptr: not called.
  Function on_grant = nullptr;
  Function on_refusal = nullptr;  // An acquire ended without the lock, whatever the reason: `status`.
  Function on_wait_begin = nullptr;
  Function on_wait_end = nullptr;  // Before on_grant or on_refusal of the same call.
  Function on_renewal = nullptr;   // `status` is ok, or why the hold was not extended.
  Function on_loss = nullptr;
  Function on_connect = nullptr;
  Function on_disconnect = nullptr;
  Function on_compensation = nullptr;
};

}  // namespace holdfast
