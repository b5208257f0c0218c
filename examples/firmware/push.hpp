// SPDX-License-Identifier: MIT
//
// Push is a second connection, over which a waiter hears of a release: its dialer, its subscriber, its bytes. It is made when the
// first waiter comes, and stays.
#pragma once

#include "ear.hpp"
#include "holdfast/core/dialer.hpp"
#include "holdfast/core/subscriber.hpp"
#include "lock_service.hpp"
#include "tcp_link.hpp"

namespace board {

class Push final : public Ear {
 public:
  // Goes where the service goes. The storage has a place for each waiter: one, as the service makes one call at a time.
  explicit Push(const LockService& service, const holdfast::Subscriber::Storage& storage);

  [[nodiscard]] bool listening() const override { return waiter_ != nullptr; }
  [[nodiscard]] bool woken() const override { return waiter_ != nullptr && subscriber_.woken(*waiter_); }
  [[nodiscard]] bool confirmed() const override { return waiter_ != nullptr && subscriber_.confirmed(*waiter_); }

  void listen(const holdfast::LockMachine& machine, holdfast::Instant now) override;
  void begin_try() override { subscriber_.begin_try(*waiter_); }
  [[nodiscard]] bool take_refusal() override;
  void leave(bool with_lock) override;
  void work(holdfast::Instant now) override;

 private:
  void dial(holdfast::Instant now);
  void receive(holdfast::Instant now);
  void transmit(holdfast::Instant now);
  void close(holdfast::Instant now);

  const LockService& service_;
  holdfast::Dialer dialer_;
  holdfast::Subscriber subscriber_;
  TcpLink link_;
  holdfast::Subscriber::Waiter* waiter_ = nullptr;
  bool started_ = false;
  bool deaf_ = false;  // For the rest of this call.
};

}  // namespace board
