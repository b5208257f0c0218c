// SPDX-License-Identifier: MIT
//
// Waiting by push: one waiter's life, from an attempt that found the lock busy to its end.
#include "holdfast/push_wait.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "client_hot.hpp"

namespace holdfast {

namespace {

// Behind the end of the hold in the way: its server expires it a little late, and those who wait come one by one.
constexpr Duration expiry_jitter = std::chrono::milliseconds(20);

// Receives in a row: a flood of messages must not keep the waiter from its tries.
constexpr int receives_max = 16;

// For what may go out a little later: TCP keeps it back until more is sent, or for 200 ms (tcp(7), TCP_CORK).
#ifdef MSG_MORE
constexpr int unhurried = MSG_MORE;
#else
constexpr int unhurried = 0;
#endif

}  // namespace

class PushWait {
 public:
  PushWait(HoldRecord& record, Instant deadline) noexcept
      : record_(record), client_(*record.client_), deadline_(deadline) {}

  Status run(Status outcome) noexcept {
    make_current();
    waiter_ = subscriber().enter(record_.machine_.key(), now());
    if (waiter_ == nullptr) return record_.poll_until(deadline_, outcome);
    const LockKind& kind = record_.machine_.kind();
    asks_ttl_ = !kind.reentrant && !kind.fenced;  // Those are told with the refusal.
    plan(outcome);
    outcome = wait(outcome);
    leave(outcome == Status::ok);
    if (!refused_) return outcome;
    return record_.poll_until(deadline_, outcome);
  }

 private:
  [[nodiscard]] Instant now() const noexcept { return client_.now_; }
  [[nodiscard]] Subscriber& subscriber() noexcept {
    return std::launder(reinterpret_cast<Client::Push*>(client_.push_place_))->subscriber;
  }
  [[nodiscard]] SubscriberSettings settings() const noexcept {
    const ClientConfig& config = client_.config_;
    return {.user = config.user.view(),
            .password = config.password.view(),
            .client_name = config.client_name.view(),
            .stall_timeout = config.stall_timeout,
            .heartbeat = config.max_poll};
  }

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
        // Where the client went on to another address, releases are announced there.
        if (client_.push_socket_ >= 0 && client_.push_address_ != client_.address_index_) close();
        if (client_.push_socket_ >= 0) receive();  // The end of an idle connection is noticed here.
        break;
    }
    client_.push_state_ = Client::PushState::current;
  }

  Status wait(Status outcome) noexcept {
    bool listened = false;  // A try was made since the subscription was confirmed.
    for (;;) {
      drive();
      client_.tend_due();
      record_.catch_up();
      if (client_.take_cancel()) return Status::cancelled;
      if (subscriber().refused(*waiter_)) {
        refused_ = true;
        return outcome;
      }
      const bool confirmed = subscriber().confirmed(*waiter_);
      listened = listened && confirmed;
      if (client_.push_address_ != client_.address_index_) close();
      const bool due =
          subscriber().woken(*waiter_) || (confirmed && !listened) || now() >= next_try_ || now() >= deadline_;
      if (due && now() >= floor_) {
        const bool last = now() + timeout_min > deadline_;
        listened = confirmed;
        const bool woken = subscriber().woken(*waiter_);
        subscriber().begin_try(*waiter_);
        floor_ = now() + retry_delay_min;
        // The first try behind a wake-up is likely to be granted, and asks for nothing else.
        client_.ttl_wanted_ = asks_ttl_ && !woken;
        outcome = record_.attempt(last ? record_.request_deadline() : deadline_);
        asked_along_ = client_.ttl_wanted_;
        client_.ttl_wanted_ = false;
        if (outcome == Status::lock_busy) subscriber().end_try(*waiter_);
        if (last || !HoldRecord::worth_waiting(outcome)) return outcome;
        plan(outcome);
        continue;
      }
      // A deadline that has passed waits for the floor, too.
      Instant until = due ? floor_ : earlier(next_try_, deadline_);
      until = earlier(until, earlier(client_.tend_next(), subscriber().poll_timeout()));
      if (client_.push_socket_ < 0) until = earlier(until, later(client_.push_connect_at_, floor_));
      sleep_until(until);
    }
  }

  // When to try again if nobody wakes us.
  void plan(Status outcome) noexcept {
    const Duration max_poll = client_.config_.max_poll;
    if (outcome != Status::lock_busy || !subscriber().confirmed(*waiter_)) {
      delay_ = delay_ * 2 < retry_delay_max ? delay_ * 2 : retry_delay_max;
      next_try_ = now() + client_.jittered(delay_);
      return;
    }
    delay_ = retry_delay_min;
    const std::int64_t remaining = asks_ttl_ ? remaining_of_other() : record_.machine_.busy_for();
    Duration length = max_poll;
    constexpr std::int64_t milliseconds_max = poll_max.count() / 1'000'000;
    if (remaining >= 0 && remaining < milliseconds_max)
      length = std::chrono::milliseconds(remaining) + client_.jittered(expiry_jitter);
    else if (remaining == -2)  // It was released between the try and the question.
      length = retry_delay_min;
    next_try_ = now() + (length < max_poll ? length : max_poll);
  }

  // Of the hold in the way, in milliseconds, as PTTL says it. Mostly it was asked along with the try.
  std::int64_t remaining_of_other() noexcept {
    if (!client_.query_waiting_ && !asked_along_) {
      if (client_.ask_ttl(record_.machine_.key(), client_.ttl_) != Status::ok) return remaining_unknown;
    }
    client_.pump(nullptr);
    if (client_.query_outcome_ == Status::cancelled) client_.cancel();  // It was meant for the wait.
    return client_.query_outcome_ == Status::ok ? client_.ttl_ : remaining_unknown;
  }

  // Connects where that is due, and sends what is to be sent.
  void drive() noexcept {
    if (subscriber().state() == SubscriberState::failed) close();
    if (client_.push_socket_ < 0 && now() >= client_.push_connect_at_) connect();
    subscriber().handle_timeout(now());
    transmit();
    if (subscriber().state() == SubscriberState::failed) close();
  }

  void connect() noexcept {
    const Instant limit = earlier(now() + client_.config_.connect_timeout, deadline_);
    client_.push_address_ = client_.address_index_;
    const Status status = client_.connect_again(limit, client_.push_socket_);
    Duration& delay = client_.push_delay_;
    delay = later_delay(delay);
    client_.push_connect_at_ = now() + client_.jittered(delay);
    if (status == Status::ok) subscriber().handle_connected(now());
  }
  [[nodiscard]] static Duration later_delay(Duration delay) noexcept {
    delay *= 2;
    if (delay < reconnect_delay_min) return reconnect_delay_min;
    return delay < reconnect_delay_max ? delay : reconnect_delay_max;
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

  // All that has arrived, up to a bound.
  void receive() noexcept {
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

  // Until then, until something arrives, or until cancel(); no longer than sleep_max.
  void sleep_until(Instant until) noexcept {
    client_.now_ = Client::now();
    Duration left = until - now();
    if (left < Duration::zero()) left = Duration::zero();
    if (left > sleep_max) left = sleep_max;
    const timespec limit = {.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                            .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    const bool unsent = !subscriber().poll_transmit(now()).empty();
    pollfd entries[] = {
        {.fd = client_.wake_, .events = POLLIN, .revents = 0},
        {.fd = client_.push_socket_, .events = static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), .revents = 0}};
    const int ready = ::ppoll(entries, 2, &limit, nullptr);  // A descriptor below zero is passed over.
    client_.now_ = Client::now();
    if (ready > 0 && entries[1].revents != 0 && client_.push_socket_ >= 0) receive();
  }

  // Who has got the lock does not wait for the UNSUBSCRIBE to make its way to the server.
  void leave(bool with_lock) noexcept {
    subscriber().leave(*waiter_, with_lock);
    if (client_.push_socket_ >= 0) transmit(with_lock ? unhurried : 0);
    if (subscriber().state() == SubscriberState::failed) close();
  }

  HoldRecord& record_;
  Client& client_;
  Instant deadline_;
  Subscriber::Waiter* waiter_ = nullptr;
  Instant next_try_;
  Instant floor_;  // No try before this: no loop turns faster.
  Duration delay_ = retry_delay_min;
  bool asks_ttl_ = false;     // A refusal of this kind does not tell the remaining time.
  bool asked_along_ = false;  // The last try asked for it.
  bool refused_ = false;
};

Status wait_by_push(HoldRecord& record, Instant deadline, Status outcome) noexcept {
  return PushWait(record, deadline).run(outcome);
}

}  // namespace holdfast
