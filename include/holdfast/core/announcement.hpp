// SPDX-License-Identifier: MIT
//
// An Announcement is how a release is told to those who wait for it by push: over which channel, and by which messages. A
// lock kind that has none is waited for by asking.
#pragma once

#include "holdfast/core/derived_name.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

struct Announcement {
  ByteView channel;  // What the channel's DerivedName begins with.
  // The payloads, of one byte each, and not NUL: what a release publishes, which wakes the waiter of the channel that has
  // waited longest; and what wakes all of them. Anything else wakes nobody.
  char wakes_one;
  char wakes_all;
  // The payload says how many may have the lock: what is not `wakes_one`, which is '1', wakes all; `wakes_all` is not used.
  bool counts = false;
  // The channel is the waiting client's own, its name made of the client's id, and a payload is the token of the one that it
  // wakes: nothing else does. Such a channel stays subscribed, since nothing is heard over it while nobody waits.
  bool addressed = false;
};

// Redisson's unlock and read-unlock messages.
inline constexpr Announcement redisson_announcement = {.channel = channel_prefix, .wakes_one = '0', .wakes_all = '1'};

}  // namespace holdfast
