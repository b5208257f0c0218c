// SPDX-License-Identifier: MIT
//
// All memory that holdfast takes here, sized by what this program does: keys of at most 48 bytes, one call at a time.
#pragma once

#include "holdfast/core/node.hpp"
#include "holdfast/core/subscriber.hpp"

namespace board {

inline constexpr std::size_t program_key_size_max = 48;

// The longest request is that of a FencedLock by its script's text, which has 700 bytes.
inline constexpr std::size_t transmit_size = 1024;
// Four renewals, a call and its compensation, and what is given up.
inline constexpr std::size_t in_flight_count = 10;
// One for the attempt under way, and those of calls before it whose replies were lost.
inline constexpr std::size_t compensation_count = 4;
// An attempt reserves room for the longest key there is; beside it two of ours.
inline constexpr std::size_t compensation_keys_size = holdfast::key_size_max + 2 * program_key_size_max;
inline constexpr std::size_t texts_size = 48;

using FirmwareSessionBuffers =
    holdfast::SessionBuffersOf<holdfast::small_elements, holdfast::small_reply_size, transmit_size, in_flight_count,
                               compensation_count, compensation_keys_size>;
using FirmwareNodeBuffers = holdfast::NodeBuffersOf<FirmwareSessionBuffers, texts_size, 1>;

// Of a subscription with one waiter. Raw bytes, as SubscriberBuffers.
struct FirmwareSubscriberBuffers {
  alignas(holdfast::RespValue) unsigned char nodes[holdfast::message_elements_max * sizeof(holdfast::RespValue)];
  alignas(holdfast::Subscriber::Waiter) unsigned char waiter[sizeof(holdfast::Subscriber::Waiter)];
  char receive[holdfast::message_size_max];
  char transmit[holdfast::subscriber_transmit_size_max];

  [[nodiscard]] holdfast::Subscriber::Storage storage() {
    return {{receive, sizeof receive},
            reinterpret_cast<holdfast::RespValue*>(nodes),
            holdfast::message_elements_max,
            {transmit, sizeof transmit},
            reinterpret_cast<holdfast::Subscriber::Waiter*>(waiter),
            1};
  }
};

}  // namespace board
