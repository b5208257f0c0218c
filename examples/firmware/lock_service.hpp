// SPDX-License-Identifier: MIT
//
// LockService is the driver of this firmware: one connection to one server, the locks on it, and one call at a time. It moves
// bytes and time between lwIP and the machines of holdfast's core, which decide everything. Nothing of it waits: call turn() in
// every turn of the loop.
//
// What is held is kept alive: a turn renews what is due.
#pragma once

#include <optional>

#include "ear.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/node_task.hpp"
#include "network.hpp"
#include "tcp_link.hpp"

namespace board {

// Fresh tokens, and numbers for pauses.
class RandomSource {
 public:
  // Errors: no_entropy.
  [[nodiscard]] holdfast::Status draw_token(holdfast::TokenSource source, holdfast::Token& token);
  [[nodiscard]] static std::uint16_t number();

 private:
  char client_id_[36];
  std::uint64_t ordinal_ = 0;
};

class LockService {
 public:
  // Whom to tell what: pointers, called from turn(). They call nothing of the service but questions.
  struct Listener {
    void (*hear)(const holdfast::LockMachine& machine, holdfast::LockEvent event);
    void (*hear_connection)(bool up, holdfast::Status why, holdfast::ByteView text);
  };
  struct Storage {
    holdfast::Node::Storage node;
    holdfast::LockMachine* const* machines;
    std::size_t machine_count;
  };

  // `ear` may be nullptr: who waits asks again and again.
  LockService(const Storage& storage, Network& network, const Listener& listener, Ear* ear);
  LockService(const LockService&) = delete;
  LockService& operator=(const LockService&) = delete;

  // A. Questions.
  [[nodiscard]] const holdfast::Node& node() const { return node_; }
  [[nodiscard]] const Endpoint& server() const { return server_; }
  [[nodiscard]] RandomSource& random() { return random_; }
  [[nodiscard]] holdfast::Instant now() const { return now_; }
  // No call is in progress.
  [[nodiscard]] bool over() const { return !task_.has_value(); }
  // Of the last call.
  [[nodiscard]] holdfast::Status status() const { return status_; }

  // B. Commands.
  // Connects from the next turn() on, and again whenever the connection is lost.
  void connect(const Endpoint& server, const holdfast::ClientConfig& config);
  // The way to the server is there again: no pause is worth it.
  void hurry() { node_.dialer().hurry(); }
  // Each begins a call. REQUIRES: over(), and the machine is one of the service's.
  void acquire(holdfast::LockMachine& machine, holdfast::Duration wait);
  void release(holdfast::LockMachine& machine);

  // C. One turn.
  void turn();

 private:
  void dial();
  void receive();
  void look_and_transmit();
  void dispatch();
  void close();
  void take(const holdfast::Reply& reply);
  void settle(holdfast::LockMachine& machine);
  void renew_due();
  void step();
  void ask();
  [[nodiscard]] holdfast::TaskFacts facts() const;
  [[nodiscard]] holdfast::ListenSet confirmed() const { return ear_ != nullptr && ear_->confirmed() ? 1 : 0; }
  [[nodiscard]] holdfast::LockMachine& machine() const { return *machine_; }

  holdfast::Node node_;
  TcpLink link_;
  holdfast::LockMachine* const* machines_;
  std::size_t machine_count_;
  Network& network_;
  Listener listener_;
  Ear* ear_;
  RandomSource random_;
  Endpoint server_{};
  holdfast::TaskSettings settings_;
  holdfast::Instant now_;
  std::optional<holdfast::NodeTask> task_;
  holdfast::LockMachine* machine_ = nullptr;  // The task's.
  holdfast::Status status_ = holdfast::Status::ok;
};

}  // namespace board
