// SPDX-License-Identifier: MIT
//
// KeyEvents hears what a server says of one key, where it says something: keyspace events (notify-keyspace-events with a K). They
// are never switched on from here; where they are off nothing comes, and a watcher is left with its looks. It has a connection of
// its own, which goes where the client's goes:
//
//     closed --> dialling --> open --> closed, after an end: again later
//                              '-----> off: the server refuses it, and is not asked again
//
// No call of it waits.   Not thread-safe: one owner.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/detail/stream.hpp"
#include "holdfast/proto/resp_parser.hpp"
#include "watch_pace.hpp"

namespace holdfast::cli {

// Events of one call: a flood of them must not keep the watcher from its looks.
inline constexpr std::size_t events_at_once_max = 1000;

class KeyEvents {
 public:
  // REQUIRES: the client is connected, and outlives this.
  KeyEvents(ClientBase& client, const std::string& name);
  ~KeyEvents();
  KeyEvents(const KeyEvents&) = delete;
  KeyEvents& operator=(const KeyEvents&) = delete;

  // A. Questions.
  // The socket to poll for poll_events(); -1: there is none.
  [[nodiscard]] int socket() const noexcept { return stream_.socket(); }
  [[nodiscard]] short poll_events() const noexcept;

  // B. Does what is due, and returns the names of the events that came since the last call. `random` is drawn evenly.
  [[nodiscard]] std::vector<std::string> take(Instant now, std::uint32_t random);

 private:
  enum class State : std::uint8_t { closed, dialling, open, off };

  void dial(Instant now, std::uint32_t random);
  void begin();
  [[nodiscard]] bool send();
  [[nodiscard]] bool receive(std::vector<std::string>& events);
  // False: that is no message of the channel, and the server refuses or speaks another language.
  [[nodiscard]] bool take_value(const RespValue& value, std::vector<std::string>& events);
  void close(Instant now, std::uint32_t random) noexcept;

  ClientBase& client_;
  std::string channel_;
  State state_ = State::closed;
  Stream stream_;
  std::string unsent_;
  std::unique_ptr<RespParserStorage> storage_ = std::make_unique<RespParserStorage>();
  RespParser parser_{{storage_->buffer, sizeof storage_->buffer}, storage_->nodes, elements_max};
  BackOff back_off_;
  Instant next_;  // When to dial again.
};

}  // namespace holdfast::cli
