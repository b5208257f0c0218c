// SPDX-License-Identifier: MIT
//
// The socket of a client's subscription connection: who waits by push moves its bytes.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "client_hot.hpp"

namespace holdfast {

class PushLink {
 public:
  explicit PushLink(Client& client) noexcept : client_(client) {}

  [[nodiscard]] Subscriber& subscriber() const noexcept {
    return std::launder(reinterpret_cast<Client::Push*>(client_.push_place_))->subscriber;
  }
  [[nodiscard]] int socket() const noexcept { return client_.push_socket_; }
  // Where the client went on to another address, releases are announced there.
  [[nodiscard]] bool elsewhere() const noexcept {
    return client_.push_socket_ >= 0 && client_.push_address_ != client_.address_index_;
  }
  [[nodiscard]] Instant connect_at() const noexcept { return client_.push_connect_at_; }

  // The subscriber is there, and knows what has happened to its connection since it was last used.
  void make_current() noexcept {
    switch (client_.push_state_) {
      case Client::PushState::absent: new (client_.push_place_) Client::Push(settings()); break;
      case Client::PushState::inherited:
        subscriber().forget();
        subscriber().configure(settings());
        break;
      case Client::PushState::closed:
        subscriber().handle_closed();
        subscriber().configure(settings());
        break;
      case Client::PushState::current:
        if (elsewhere()) close();
        if (client_.push_socket_ >= 0) receive();  // The end of an idle connection is noticed here.
        break;
    }
    client_.push_state_ = Client::PushState::current;
  }

  // Before each attempt to connect: none follows too soon.
  void begin_attempt() noexcept {
    client_.push_address_ = client_.address_index_;
    Duration& delay = client_.push_delay_;
    delay *= 2;
    if (delay < reconnect_delay_min) delay = reconnect_delay_min;
    if (delay > reconnect_delay_max) delay = reconnect_delay_max;
  }
  void end_attempt() noexcept { client_.push_connect_at_ = now() + client_.jittered(client_.push_delay_); }
  // Blocks until the limit at most.
  void connect(Instant limit) noexcept {
    begin_attempt();
    const Status status = client_.connect_again(limit, client_.push_socket_);
    end_attempt();
    if (status == Status::ok) subscriber().handle_connected(now());
  }
  // The same without blocking. True if it is on its way.
  [[nodiscard]] bool begin_connect() noexcept {
    begin_attempt();
    bool connected = false;
    const Status status = client_.begin_connect(client_.push_socket_, connected);
    end_attempt();
    if (status == Status::ok && connected) finish_connect();
    return status == Status::ok && !connected;
  }
  // The socket is writable.
  void finish_connect() noexcept {
    if (Client::connect_outcome(client_.push_socket_) == Status::ok &&
        client_.set_up_socket(client_.push_socket_) == Status::ok)
      subscriber().handle_connected(now());
    else
      close();
  }

  void close() noexcept {
    if (client_.push_socket_ >= 0) ::close(client_.push_socket_);
    client_.push_socket_ = -1;
    if (subscriber().state() != SubscriberState::closed) subscriber().handle_closed();
  }

  void transmit(int flags = 0) noexcept {
    for (ByteView bytes = subscriber().poll_transmit(now()); !bytes.empty();
         bytes = subscriber().poll_transmit(now())) {
      const ssize_t sent =
          ::send(client_.push_socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL | flags);
      if (sent > 0) {
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
      const ssize_t count = ::recv(client_.push_socket_, space.data, space.size, MSG_DONTWAIT);
      if (count > 0) {
        client_.push_delay_ = Duration::zero();  // It is alive: the next loss is a new one.
        subscriber().handle_received(static_cast<std::size_t>(count), now());
        if (static_cast<std::size_t>(count) < space.size) return;
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
    if (client_.push_socket_ >= 0) transmit(with_lock ? unhurried : 0);
    if (subscriber().state() == SubscriberState::failed) close();
  }

 private:
  [[nodiscard]] Instant now() const noexcept { return client_.now_; }
  [[nodiscard]] SubscriberSettings settings() const noexcept {
    const ClientConfig& config = client_.config_;
    return {.user = config.user.view(),
            .password = config.password.view(),
            .client_name = config.client_name.view(),
            .stall_timeout = config.stall_timeout,
            .heartbeat = config.max_poll};
  }

  Client& client_;
};

}  // namespace holdfast
