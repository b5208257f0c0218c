// SPDX-License-Identifier: MIT
//
// ModelClient is a driver without a socket: it moves bytes between a Session and a connection of a ModelServer when it
// is told to, as few or as many as it is told, and does for its locks what the blocking client does.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/session.hpp"
#include "model_server.hpp"

namespace holdfast::testing {

class ModelClient {
 public:
  struct Lock {
    Lock(ModelClient& client, const LockKind& kind) : owner(client), machine(kind) {}
    ModelClient& owner;
    LockMachine machine;
    bool stepping = false;  // A step is on its way.
  };
  struct Observer {
    virtual ~Observer() = default;
    virtual void on_event(Lock& lock, LockEvent event) = 0;
    virtual void on_dropped_compensation(const Token& token) = 0;
  };

  ModelClient(int number, ModelServer& server, Observer& observer)
      : number_(number), server_(server), observer_(observer), session_(SessionSettings(), buffers_.storage()) {}

  Lock& add_lock(Key key, const LockTiming& timing, const LockKind& kind = mutex_kind) {
    locks_.push_back(std::make_unique<Lock>(*this, kind));
    (void)locks_.back()->machine.configure(key, timing);
    return *locks_.back();
  }
  // As the destructor of a lock object: a hold is posted back, the rest is abandoned.
  void remove_lock(Lock& lock) {
    if (lock.stepping) give_up(lock);
    (void)leave_queue(lock);
    if (lock.machine.state() == LockState::held || lock.machine.state() == LockState::at_risk)
      (void)lock.machine.release(session_.identity().native_delete, true, server_.now, server_.now + request_timeout);
    settle(lock);
    session_.abandon(&lock, server_.now);
    std::erase_if(locks_, [&](const auto& it) { return it.get() == &lock; });
  }
  // Of a kind that queues: nobody waits any more. What is still asked ends unclear, and leaves by itself.
  bool leave_queue(Lock& lock) {
    if (!lock.machine.kind().queues || lock.machine.state() == LockState::acquiring || !lock.machine.leave_queue())
      return false;
    settle(lock);
    return true;
  }
  // ---- Commands of the application

  // How a request goes that is sent and waited for at once. Without one it is queued, and steps move it.
  struct Course {
    std::size_t sent = SIZE_MAX;      // Bytes that the transport takes.
    bool executed = true;             // The server gets to it,
    Duration latency{};               // after so long the receive returns,
    std::size_t received = SIZE_MAX;  // and so many bytes of the reply have come.
  };

  // Once more, where it is held and the kind is reentrant.
  void acquire(Lock& lock, const Course* course = nullptr) {
    if (lock.machine.kind().reentrant && lock.machine.held(server_.now))
      return ask(lock, course, lock.machine.reenter(server_.now, server_.now + request_timeout));
    if (lock.machine.kind().queues) lock.machine.join_queue();
    char text[token_text_size + 1];
    std::snprintf(text, sizeof text, "%08d%024d", number_, ++tokens_drawn_);
    ask(lock, course, lock.machine.acquire(Token(ByteView(text)), server_.now, server_.now + request_timeout));
  }
  void renew(Lock& lock, const Course* course = nullptr) {
    ask(lock, course, lock.machine.renew(server_.now, server_.now + request_timeout));
  }
  // Once, of several times. What is waited for does not return before its answer, so that nothing is released meanwhile.
  void release(Lock& lock, bool posted, const Course* course = nullptr) {
    if (lock.machine.count() > 1)
      return ask(lock, course, lock.machine.step_down(posted, server_.now, server_.now + request_timeout));
    if (lock.stepping) return;
    (void)leave_queue(lock);
    ask(lock, course,
        lock.machine.release(session_.identity().native_delete, posted, server_.now, server_.now + request_timeout));
  }
  // All at once, by post.
  void release_all(Lock& lock) {
    if (lock.stepping || lock.machine.count() == 0) return;
    lock.machine.unwind(lock.machine.count());
    release(lock, true);
  }
  // The hold was confirmed over another connection, or disowned.
  void confirm(Lock& lock, Instant asked_at) {
    lock.machine.confirm(asked_at, asked_at + lock.machine.validity());
    settle(lock);
  }
  void disown(Lock& lock) {
    lock.machine.disown(server_.now);
    settle(lock);
  }
  void give_up(Lock& lock) {
    session_.give_up(&lock, Status::cancelled, server_.now);
    dispatch();
  }

  // ---- The wire

  [[nodiscard]] bool connected() const { return connection_ != nullptr; }
  [[nodiscard]] ModelServer::Connection* connection() const { return connection_; }
  [[nodiscard]] Session& session() { return session_; }

  void connect() {
    if (connection_ != nullptr) return;
    connection_ = &server_.accept(number_);
    session_.handle_connected(server_.now, server_.now + connect_timeout);
    dispatch();
  }
  // The client's end closes. What has been sent may still be executed, or is lost.
  void cut(bool sent_survives) {
    if (connection_ == nullptr) return;
    connection_->open = false;
    connection_->outbound.clear();
    if (!sent_survives) connection_->inbound.clear();
    connection_ = nullptr;
    unasked_.clear();
    session_.handle_closed();
    dispatch();
  }
  // The server says something that nobody asked for: it lies in the socket before the next request. REQUIRES: nothing is in
  // flight.
  void hear_unasked(const std::string& text) { unasked_ += text; }
  // A release was sent while such a reply lay there: it does not look first, and takes that reply for its own.
  [[nodiscard]] bool misled() const { return misled_; }
  // What has arrived and was not asked for; replies on their way arrive when receive() says so.
  void look() {
    while (connection_ != nullptr && !unasked_.empty()) {
      const MutableBytes space = session_.receive_space();
      if (space.size == 0) break;
      const std::size_t count = std::min(space.size, unasked_.size());
      std::memcpy(space.data, unasked_.data(), count);
      unasked_.erase(0, count);
      session_.handle_received(count, server_.now);
      dispatch();
    }
    session_.handle_drained();
    dispatch();
  }
  void transmit(std::size_t limit) {
    while (connection_ != nullptr && limit != 0) {
      if (session_.wants_look()) look();
      if (connection_ == nullptr) return;
      const ByteView bytes = session_.poll_transmit(server_.now).slice(0, limit);
      if (bytes.empty()) return;
      misled_ |= !unasked_.empty();
      connection_->inbound.append(bytes.data(), bytes.size());
      session_.handle_transmitted(bytes.size());
      limit -= bytes.size();
    }
  }
  void receive(std::size_t limit) {
    if (connection_ == nullptr) return;
    if (!connection_->open) return cut(false);  // The server has closed it.
    if (!unasked_.empty()) look();
    while (connection_ != nullptr && limit != 0 && !connection_->outbound.empty()) {
      const MutableBytes space = session_.receive_space();
      const std::size_t count = std::min({limit, space.size, connection_->outbound.size()});
      if (count == 0) return;
      std::memcpy(space.data, connection_->outbound.data(), count);
      connection_->outbound.erase(0, count);
      limit -= count;
      session_.handle_received(count, server_.now);
      dispatch();
    }
  }
  void handle_timeout() {
    session_.handle_timeout(server_.now);
    for (const auto& lock : locks_) lock->machine.handle_timeout(server_.now);
    dispatch();
    for (const auto& lock : locks_) settle(*lock);
  }

  [[nodiscard]] const std::vector<std::unique_ptr<Lock>>& locks() const { return locks_; }

  static constexpr Duration request_timeout = request_timeout_default;
  static constexpr Duration connect_timeout = connect_timeout_default;

 private:
  void ask(Lock& lock, const Course* course, Status started) {
    settle(lock);
    if (course != nullptr && started == Status::ok) wait_for_reply(*course);
  }
  // As the blocking client asks: the request is sent and waited for at once.
  void wait_for_reply(const Course& course) {
    transmit(course.sent);
    if (!connected() || session_.unsent()) return;
    if (course.executed) (void)server_.execute_one(*connection_);
    server_.now = server_.now + course.latency;
    receive(course.received);
  }
  void submit(Lock& lock) {
    const Session::Place place = session_.open(lock.machine.request_compensated());
    std::size_t size = 0;
    if (place.request == nullptr || lock.machine.poll_request(place.space, *place.request, size) != Status::ok) {
      lock.machine.refuse_request(session_.ready() ? Status::too_many_requests : Status::not_connected, server_.now);
      return;
    }
    lock.stepping = lock.stepping || place.request->tag.operation == Operation::step;
    place.request->tag.requester = &lock;
    session_.commit(*place.request, size, server_.now);
  }
  void settle(Lock& lock) {
    if (lock.machine.wants_request()) submit(lock);
    ReplyTag tag;
    Compensation compensation;
    if (lock.machine.poll_compensation(tag, compensation)) {
      tag.requester = &lock;
      if (session_.compensate(tag, compensation) != Status::ok) observer_.on_dropped_compensation(*compensation.token);
    }
    for (LockEvent event = lock.machine.poll_event(); event != LockEvent::none; event = lock.machine.poll_event()) {
      if (event == LockEvent::protocol_doubt) session_.fail(Status::protocol_error, "protocol doubt");
      observer_.on_event(lock, event);
    }
  }
  void dispatch() {
    for (;;) {
      Reply reply;
      while (session_.poll_reply(reply, server_.now)) {
        Lock& lock = *static_cast<Lock*>(reply.tag.requester);
        if (reply.tag.operation == Operation::step) lock.stepping = false;
        lock.machine.handle_reply(reply, server_.now);
        settle(lock);
      }
      if (session_.state() != SessionState::failed) return;
      cut(true);
    }
  }

  int number_;
  std::string unasked_;
  bool misled_ = false;
  ModelServer& server_;
  Observer& observer_;
  SessionBuffers buffers_;
  Session session_;
  std::vector<std::unique_ptr<Lock>> locks_;
  ModelServer::Connection* connection_ = nullptr;
  int tokens_drawn_ = 0;
};

}  // namespace holdfast::testing
