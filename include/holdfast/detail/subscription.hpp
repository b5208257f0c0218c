// SPDX-License-Identifier: MIT
//
// Subscription is the second connection of a client, which waiters listen on, and its buffers. Made in place when the first
// waiter comes, so that a program that does not wait by push does not carry its code. Storage only: PushLink moves its bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/dialer.hpp"
#include "holdfast/core/subscriber.hpp"
#include "holdfast/detail/stream.hpp"

namespace holdfast {

class Subscription {
 public:
  // In this place, of place_size bytes; nullptr: there is none, and waiters poll.
  explicit Subscription(void* place) noexcept : place_(place) {}
  ~Subscription() { close(State::closed); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // absent: no waiter has come yet. What happened to the connection since the subscriber was used last: nothing, it was closed,
  // or it is the parent's of this forked child.
  enum class State : std::uint8_t { absent, current, closed, inherited };

  [[nodiscard]] bool possible() const noexcept { return place_ != nullptr; }
  // The subscriber learns of it when it is needed next.
  void close(State state) noexcept;

  struct Buffers;

 private:
  friend class PushLink;

  struct Place {
    explicit Place(const SubscriberSettings& settings) noexcept
        : subscriber(settings, SubscriberBuffers::storage_of(&buffers)) {}
    Dialer dialer;
    Subscriber subscriber;
    SubscriberBuffers buffers;
  };

  State state_ = State::absent;
  std::uint32_t where_ = 0;  // The place of the node's dialer that it goes to.
  Stream stream_;
  void* place_;
};

struct Subscription::Buffers {
  alignas(Place) unsigned char bytes[sizeof(Place)];
};

}  // namespace holdfast
