// SPDX-License-Identifier: MIT
#include "push.hpp"

namespace board {

using namespace holdfast;

Push::Push(const LockService& service, const Subscriber::Storage& storage)
    : service_(service), subscriber_({}, storage) {}

void Push::listen(const LockMachine& machine, Instant now) {
  if (deaf_) return;
  if (waiter_ != nullptr) return subscriber_.end_try(*waiter_);
  if (!started_) {
    subscriber_.configure(service_.node().subscriber_settings());
    dialer_.start(service_.node().config().connect_timeout, 1, false);
    started_ = true;
  }
  waiter_ = subscriber_.enter(*machine.kind().announcement, machine.awaited(), now);
}

bool Push::take_refusal() {
  if (waiter_ == nullptr || !subscriber_.refused(*waiter_)) return false;
  leave(false);
  deaf_ = true;
  return true;
}

void Push::leave(bool with_lock) {
  if (waiter_ != nullptr) subscriber_.leave(*waiter_, with_lock);
  waiter_ = nullptr;
  deaf_ = false;
}

void Push::work(Instant now) {
  if (!started_) return;
  if (waiter_ != nullptr || dialer_.state() != DialState::waiting) dial(now);
  if (dialer_.state() < DialState::handshaking) return;
  receive(now);
  if (subscriber_.state() == SubscriberState::open) {
    subscriber_.handle_timeout(now);
    transmit(now);
  }
  if (subscriber_.state() == SubscriberState::failed) close(now);
}

void Push::dial(Instant now) {
  if (dialer_.state() == DialState::dialling && link_.state() == TcpLink::State::open) {
    subscriber_.handle_connected(now);
    dialer_.handle_dialled();
    return;
  }
  if (dialer_.state() == DialState::dialling && link_.state() == TcpLink::State::ended) {
    link_.close();
    dialer_.handle_dial_failed(Status::connect_failed, now, RandomSource::number());
  }
  while (now >= dialer_.poll_timeout()) switch (dialer_.poll_action(now, RandomSource::number())) {
      case DialAction::none:
      case DialAction::resolve: return;
      case DialAction::hang_up: link_.close(); break;
      case DialAction::dial:
        if (!link_.dial(service_.server()))
          dialer_.handle_dial_failed(Status::connect_failed, now, RandomSource::number());
        break;
    }
}

void Push::receive(Instant now) {
  while (subscriber_.state() == SubscriberState::open) {
    const std::ptrdiff_t count = link_.receive(subscriber_.receive_space());
    if (count < 0) return close(now);
    if (count == 0) return;
    subscriber_.handle_received(static_cast<std::size_t>(count), now);
    // Only a subscription that was granted is a success: a server that refuses it is left alone for longer and longer.
    if (subscriber_.established() && !dialer_.ready()) dialer_.handle_ready(now);
  }
}

void Push::transmit(Instant now) {
  for (;;) {
    const ByteView bytes = subscriber_.poll_transmit(now);
    if (bytes.empty()) return;
    const std::size_t count = link_.send(bytes);
    if (count == 0) return;
    subscriber_.handle_transmitted(count);
  }
}

void Push::close(Instant now) {
  link_.close();
  subscriber_.handle_closed();
  dialer_.handle_closed(subscriber_.failure(), dialer_.lasted(now), now, RandomSource::number());
}

}  // namespace board
