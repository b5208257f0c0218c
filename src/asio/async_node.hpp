// SPDX-License-Identifier: MIT
//
// AsyncNode is one server as the Asio clients see it: a connection that comes back by itself, and one for
// subscriptions. It holds a Client, of whose members it uses all that do not wait: configuration, addresses, random
// bytes, session, back-off.
#pragma once

#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "async_wire.hpp"
#include "client_hot.hpp"
#include "holdfast/client.hpp"

namespace holdfast {

class AsyncNode final : private AsyncWire::Host {
 public:
  struct Limits {
    std::size_t requests = 0;  // In flight on the connection.
    std::size_t waiters = 0;
  };
  class Host {
   public:
    virtual void node_reply(AsyncNode& node, const Reply& reply) = 0;
    virtual void node_ready(AsyncNode& node) = 0;
    // An attempt to connect has failed, or the connection has ended: failure() says why.
    virtual void node_down(AsyncNode& node) = 0;

   protected:
    ~Host() = default;
  };

  AsyncNode(AsyncLoop& loop, Host& host, const Limits& limits);
  ~AsyncNode();
  AsyncNode(const AsyncNode&) = delete;
  AsyncNode& operator=(const AsyncNode&) = delete;

  // Takes the configuration; the next work() connects. What was connected is closed.
  [[nodiscard]] Status prepare(const ClientConfig& config, Instant now);
  // Ends both connections; what is in flight is answered by its Status. It connects no more.
  void close();
  // The connection is given up, with what has just been found out about it, and made anew.
  void fail(Status why, ByteView text) noexcept { session().fail(why, text); }

  [[nodiscard]] Session& session() noexcept { return client_.session_; }
  [[nodiscard]] const Session& session() const noexcept { return client_.session_; }
  [[nodiscard]] Client& client() noexcept { return client_; }
  [[nodiscard]] const ClientConfig& config() const noexcept { return client_.config_; }
  [[nodiscard]] bool ready() const noexcept { return introduced_; }
  // On its way to be ready.
  // Also behind a loss, as long as no attempt has failed.
  [[nodiscard]] bool connecting() const noexcept {
    return wanted_ && !introduced_ && (state_ != State::closed || client_.reconnect_delay_ == Duration::zero());
  }
  [[nodiscard]] bool wanted() const noexcept { return wanted_; }
  // prepare() was called; without it there are no random bytes.
  [[nodiscard]] bool configured() const noexcept { return client_.configured_; }
  [[nodiscard]] Status failure() const noexcept { return client_.failure_; }
  [[nodiscard]] int error_number() const noexcept { return client_.error_number_; }
  [[nodiscard]] bool forked() const noexcept { return client_.forked(); }

  // Room for one more request, with its compensation where it has one. Sends what stands in the way of it.
  [[nodiscard]] bool room(bool compensated) {
    if (introduced_ && session().has_room(compensated, template_size_max)) [[likely]]
      return true;
    return make_room(compensated);
  }
  // The machine's request; refused, the machine is told.
  void submit(LockMachine& machine, void* requester) noexcept { client_.submit(machine, requester); }
  // Asks for the remaining time of what is in the machine's way; the reply is a query's, to the requester.
  [[nodiscard]] Status ask_remaining(const LockMachine& machine, void* requester);
  // Gives up what this requester asked for; it hears of it at once.
  void give_up(const void* requester, Status why);
  [[nodiscard]] Status draw_token(Token& token) noexcept { return client_.draw_token(token); }
  [[nodiscard]] Status draw_ordinal(Token& token) noexcept;
  [[nodiscard]] std::uint16_t random() noexcept;

  // Moves bytes, connects where that is due.
  void set_now(Instant now) noexcept { client_.now_ = now; }
  void work();
  void transmit();
  // At the end of a turn, when all that it asks for has been sent: waits for what comes.
  void receive();
  [[nodiscard]] Instant next_timeout() const noexcept;
  // Deadlines that have passed.
  void judge_time();

  // Waiting for messages. The subscription is connected from the first listen() on.
  [[nodiscard]] Subscriber& subscriber() noexcept { return *subscriber_; }
  [[nodiscard]] Subscriber::Waiter* listen(Key key);
  void leave(Subscriber::Waiter& waiter, bool with_lock);
  // Its waiters may have been woken since this was asked last.
  [[nodiscard]] bool take_heard() noexcept {
    const bool heard = push_heard_;
    push_heard_ = false;
    return heard;
  }

 private:
  enum class State : std::uint8_t { closed, resolving, next_address, connecting, open };
  struct Buffers;

  void wire_connected(AsyncWire& wire, int error) override;
  void wire_received(AsyncWire& wire, std::size_t count) override;
  void wire_closed(AsyncWire& wire, int error) override;

  [[nodiscard]] Instant now() const noexcept { return client_.now_; }
  [[nodiscard]] bool make_room(bool compensated);
  void start_connect();
  void start_resolve();
  void open_first();
  void open_wire();
  void finish_connect(Status status, int error);
  void disconnect();
  void close_session();
  void dispatch();
  void work_push();
  void connect_push();
  void finish_push(bool good);
  void close_push();
  void transmit_push();
  [[nodiscard]] SubscriberSettings push_settings() const noexcept;

  AsyncLoop& loop_;
  Host& host_;
  std::unique_ptr<Buffers> buffers_;
  Client client_;
  AsyncWire wire_;
  AsyncWire push_wire_;
  std::optional<Subscriber> subscriber_;
  std::optional<asio::ip::tcp::resolver> resolver_;  // Made for the first host name: Asio's resolver has a thread.
  std::uint64_t resolving_ = 0;
  State state_ = State::closed;
  State push_state_ = State::closed;
  bool wanted_ = false;
  bool introduced_ = false;
  bool exhausted_ = false;  // Every address has failed.
  bool push_used_ = false;
  bool push_heard_ = false;
  std::uint8_t push_address_ = 0;
  std::uint8_t untried_ = 0;  // Addresses that this attempt to connect may still go on to.
  Instant connect_deadline_;
  Instant push_deadline_;
  Instant push_connect_at_;
  Duration push_delay_ = Duration::zero();
};

}  // namespace holdfast
