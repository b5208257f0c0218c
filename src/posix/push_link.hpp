// SPDX-License-Identifier: MIT
//
// Moves the bytes of a Subscription to where its Connection goes. No call of it waits.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>

#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/subscription.hpp"
#include "stream.hpp"
#include "wait_for.hpp"

namespace holdfast {

class PushLink {
 public:
  PushLink(Connection& connection, Subscription& push) noexcept : connection_(connection), push_(push) {}

  [[nodiscard]] Subscriber& subscriber() const noexcept { return place().subscriber; }
  [[nodiscard]] int socket() const noexcept { return push_.stream_.socket(); }
  // Where the client went on to another address, releases are announced there.
  [[nodiscard]] bool elsewhere() const noexcept {
    return push_.stream_.is_open() && push_.where_ != connection_.dialer().place();
  }
  [[nodiscard]] bool dialling() const noexcept { return dialer().state() == DialState::dialling; }
  // When to call work() again if nothing happens.
  [[nodiscard]] Instant timeout(bool wanted) const noexcept {
    if (socket() < 0 && !(wanted && connection_.placed())) return Instant::max();
    if (push_.stream_.pending()) return Instant();
    return earlier(dialer().poll_timeout(), dialling() ? Instant::max() : subscriber().poll_timeout());
  }
  // What to look at the socket for.
  [[nodiscard]] short events() noexcept {
    const bool dials = dialling();
    const bool unsent = !dials && !subscriber().poll_transmit(now()).empty();
    return events_of(dials, push_.stream_.waits_to_send(unsent));
  }

  // The subscriber is there, and knows what has happened to its connection since it was last used.
  void make_current() noexcept {
    if (push_.state_ == Subscription::State::current) {
      if (socket() >= 0 && !dialling()) receive();  // The end of an idle connection is noticed here.
      return;
    }
    if (push_.state_ == Subscription::State::absent)
      new (push_.place_) Subscription::Place({});
    else if (push_.state_ == Subscription::State::inherited)
      subscriber().forget();
    else
      subscriber().handle_closed();
    dialer().start(connection_.config().connect_timeout, 1, false);
    push_.state_ = Subscription::State::current;
  }

  // What is due: connects if that is `wanted`, judges deadlines after what has arrived, sends.
  void work(bool wanted) noexcept {
    if (elsewhere() || subscriber().state() == SubscriberState::failed) close();
    if ((wanted && connection_.placed()) || dialling()) dial();
    if (socket() < 0 || dialling()) return;
    if (push_.stream_.pending()) receive();
    if (now() >= subscriber().poll_timeout()) {
      receive();
      subscriber().handle_timeout(now());
    }
    if (socket() >= 0) transmit();
    if (subscriber().state() == SubscriberState::failed) close();
  }
  // The socket has something for us.
  void take() noexcept {
    if (socket() < 0) return;
    if (dialling())
      finish_dial(Connection::connect_outcome(socket()));
    else
      receive();
  }

  void close() noexcept {
    push_.stream_.close();
    if (subscriber().state() != SubscriberState::closed) subscriber().handle_closed();
    if (dialer().state() >= DialState::handshaking)
      dialer().handle_closed(subscriber().failure(), dialer().lasted(now()), now(), connection_.random().number());
    else
      dialer().abandon();
  }

  void transmit(int flags = 0) noexcept {
    for (ByteView bytes = subscriber().poll_transmit(now()); !bytes.empty() || push_.stream_.unsent();
         bytes = subscriber().poll_transmit(now())) {
      const std::ptrdiff_t sent = push_.stream_.send(bytes, MSG_DONTWAIT | flags);
      if (sent >= 0) {
        subscriber().handle_transmitted(static_cast<std::size_t>(sent));
        continue;
      }
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      close();
      return;
    }
  }

  // All that has arrived, up to a bound: a flood of messages must not keep the waiter from its tries.
  void receive() noexcept {
    constexpr int receives_max = 16;
    for (int turns = 0; turns < receives_max && subscriber().state() == SubscriberState::open; ++turns) {
      const MutableBytes space = subscriber().receive_space();
      const std::ptrdiff_t count = push_.stream_.receive(space, MSG_DONTWAIT);
      if (count > 0) {
        subscriber().handle_received(static_cast<std::size_t>(count), now());
        // Only a subscription that was granted is a success: a server that refuses it is left alone for longer and longer.
        if (subscriber().established() && !dialer().ready()) dialer().handle_ready(now());
        if (static_cast<std::size_t>(count) < space.size && !push_.stream_.pending()) return;
        continue;
      }
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      close();
      return;
    }
    if (subscriber().state() == SubscriberState::failed) close();
  }

  // Who has got the lock does not wait for the UNSUBSCRIBE to make its way to the server: TCP keeps it back until more is
  // sent, or for 200 ms (tcp(7), TCP_CORK).
  void leave(Subscriber::Waiter& waiter, bool with_lock) noexcept {
#ifdef MSG_MORE
    constexpr int unhurried = MSG_MORE;
#else
    constexpr int unhurried = 0;
#endif
    subscriber().leave(waiter, with_lock);
    if (socket() >= 0 && !dialling()) transmit(with_lock ? unhurried : 0);
    if (subscriber().state() == SubscriberState::failed) close();
  }

 private:
  [[nodiscard]] Subscription::Place& place() const noexcept {
    return *std::launder(reinterpret_cast<Subscription::Place*>(push_.place_));
  }
  [[nodiscard]] Dialer& dialer() const noexcept { return place().dialer; }
  [[nodiscard]] Instant now() const noexcept { return connection_.now(); }

  void dial() noexcept {
    while (now() >= dialer().poll_timeout()) switch (dialer().poll_action(now(), connection_.random().number())) {
        case DialAction::none:
        case DialAction::resolve: return;  // It goes where the client goes, and asks for no name.
        case DialAction::hang_up: push_.stream_.close(); break;
        case DialAction::dial: {
          // Which channels the server has is known by now.
          subscriber().configure(connection_.subscriber_settings());
          push_.where_ = connection_.dialer().place();
          bool connected = false;
          int socket = -1;
          const Status status = connection_.begin_connect(socket, connected);
          push_.stream_.adopt(socket);
          if (status != Status::ok || connected) finish_dial(status);
          break;
        }
      }
  }
  void finish_dial(Status outcome) noexcept {
    // The client may have gone on to another host, whose address is not known yet, while this one was slow to accept.
    if (outcome == Status::ok && elsewhere()) outcome = Status::not_connected;
    if (outcome == Status::ok) outcome = connection_.set_up(push_.stream_);
    if (outcome == Status::ok) {
      subscriber().handle_connected(now());
      dialer().handle_dialled();
      return;
    }
    push_.stream_.close();
    dialer().handle_dial_failed(outcome, now(), connection_.random().number());
  }
  Connection& connection_;
  Subscription& push_;
};

}  // namespace holdfast
