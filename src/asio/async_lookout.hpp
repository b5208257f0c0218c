// SPDX-License-Identifier: MIT
//
// AsyncLookout is what a client on a loop knows of who hears news of its server, so that a program without one does not carry it.
// A part of the client: it is called where the client's nodes are.
#pragma once

#include "async_node.hpp"

namespace holdfast {

class AsyncLookout {
 public:
  virtual ~AsyncLookout() = default;
  AsyncLookout(const AsyncLookout&) = delete;
  AsyncLookout& operator=(const AsyncLookout&) = delete;

  // Moves on. True: there were news, and the session of the node has failed for them.
  [[nodiscard]] virtual bool work(AsyncNode& node) = 0;
  // As AsyncNode's.
  virtual void receive() = 0;
  virtual void set_now(Instant now) noexcept = 0;
  [[nodiscard]] virtual Instant next_timeout(const AsyncNode& node) const noexcept = 0;
  virtual void judge_time() = 0;
  virtual void close() = 0;

 protected:
  AsyncLookout() = default;
};

}  // namespace holdfast
