// SPDX-License-Identifier: MIT
//
// AsyncNode is one server as the Asio clients see it: a Connection that comes back by itself, and one for subscriptions. It
// moves their sockets into Asio's reactor, and says when they are readable, writable or late.
#pragma once

#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "async_wire.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/subscriber.hpp"
#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/random_source.hpp"
#include "holdfast/detail/stream.hpp"

namespace holdfast {

class AsyncNode final : private AsyncWire::Host {
 public:
  struct Limits {
    // Fewer requests than this, and a session has no room for its handshake; more, and it cannot count its compensations.
    static constexpr std::size_t requests_min = in_flight_max;
    static constexpr std::size_t requests_max = 2 * UINT16_MAX;

    std::size_t requests = 0;  // In flight on the connection.
    std::size_t waiters = 0;
  };
  class Host {
   public:
    virtual void node_reply(AsyncNode& node, const Reply& reply) = 0;
    // The handshake is done, and nothing has been sent since.
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
  // Ends both connections; what is in flight is answered by its Status. Who hears of it waits for the next connection.
  void hang_up() { disconnect(); }
  // Ends both connections; what is in flight is answered by its Status. It connects no more. In a forked child it is forgotten
  // without a word, and the connections stay the parent's.
  void close();
  // The connection is given up, with what has just been found out about it, and made anew.
  void fail(Status why, ByteView text) noexcept { session().fail(why, text); }
  void fail_shape() noexcept { session().fail_shape(); }

  [[nodiscard]] Node& node() noexcept { return connection_; }
  [[nodiscard]] const Node& node() const noexcept { return connection_; }
  [[nodiscard]] Session& session() noexcept { return connection_.session(); }
  [[nodiscard]] const Session& session() const noexcept { return connection_.session(); }
  [[nodiscard]] const KeptConfig& config() const noexcept { return connection_.config(); }
  // What was wrong with it, after invalid_argument of prepare().
  [[nodiscard]] ConfigProblem problem() const noexcept { return problem_; }
  [[nodiscard]] bool ready() const noexcept { return connection_.ready(); }
  // On its way to be ready; also after a loss, as long as no attempt has failed.
  [[nodiscard]] bool connecting() const noexcept { return wanted_ && !ready() && connection_.dialer().hopeful(now()); }
  [[nodiscard]] bool wanted() const noexcept { return wanted_; }
  // prepare() was called; without it there are no random bytes.
  [[nodiscard]] bool configured() const noexcept { return connection_.configured(); }
  [[nodiscard]] Status failure() const noexcept { return connection_.dialer().failure(); }
  // A hold of a short lease does not outlive a long pause.
  void bound_pauses(bool keeps) noexcept {
    connection_.dialer().set_pause_max(keeps ? reconnect_kept_max : reconnect_delay_max);
  }
  [[nodiscard]] int error_number() const noexcept { return connection_.system_error_number(); }
  [[nodiscard]] bool forked() const noexcept { return random_.forked(); }

  // Room for one more request, with its compensation where it has one. Sends what stands in the way of it.
  [[nodiscard]] bool room(bool compensated) {
    if (ready() && session().has_room(compensated, request_size_max)) [[likely]]
      return true;
    return make_room(compensated);
  }
  // Takes in what has arrived by now, ahead of its event: it may be what makes room. Its replies are handed on at once.
  void read_arrived();
  // The machine's request; refused, the machine is told.
  void submit(LockMachine& machine, void* requester) noexcept { connection_.submit(machine, requester, now()); }
  // Gives up what this requester asked for; it hears of it at once.
  void give_up(const void* requester, Status why);
  // Hands on what is answered.
  void dispatch();
  [[nodiscard]] Status draw_token(TokenSource source, Token& token) noexcept {
    if (source == TokenSource::random) return random_.draw_token(token);
    const Status status = random_.draw_ordinal(token);
    if (status == Status::ok && source == TokenSource::negative_ordinal) token = token.negative();
    return status;
  }
  [[nodiscard]] std::uint16_t random() noexcept { return random_.number(); }

  // Something of what was asked has not left yet.
  [[nodiscard]] bool unsent() const noexcept { return connection_.unsent(); }

  // Moves bytes, connects where that is due.
  void set_now(Instant now) noexcept { connection_.set_now(now); }
  void work();
  // Behind a look at the socket where one is wanted, whose replies are told. REQUIRES: no reply is being told.
  void transmit() {
    if (connection_.wants_transmit()) transmit_now();
  }
  // At the end of a turn, when all that it asks for has been sent: waits for what comes.
  void receive();
  [[nodiscard]] Instant next_timeout() const noexcept;
  // Deadlines that have passed.
  void judge_time();
  // Those of requests alone.
  void judge_requests();

  // Waiting for messages. The subscription is connected from the first listen() on.
  [[nodiscard]] Subscriber& subscriber() noexcept { return *subscriber_; }
  // `owner` is whom next_heard() will name.
  [[nodiscard]] Subscriber::Waiter* listen(const Announcement& announcement, Key key, void* owner);
  void leave(Subscriber::Waiter& waiter, bool with_lock);
  // The owner of the next waiter for whom something has come over the subscription; nullptr: there is none.
  [[nodiscard]] void* next_heard() noexcept {
    if (!push_used_) return nullptr;
    const Subscriber::Waiter* const waiter = subscriber_->poll_stirred();
    return waiter == nullptr ? nullptr : waiter->owner;
  }

 private:
  struct Buffers;

  void wire_connected(AsyncWire& wire, int error) override;
  void wire_readable(AsyncWire& wire) override;
  void wire_closed(AsyncWire& wire, int error) override;

  [[nodiscard]] Instant now() const noexcept { return connection_.now(); }
  [[nodiscard]] bool make_room(bool compensated);
  void transmit_now();
  [[nodiscard]] bool open() const noexcept { return connection_.open(); }
  [[nodiscard]] bool push_open() const noexcept { return push_dialer_.state() >= DialState::handshaking; }
  // With `judging` also what has taken too long, which is found out only after all that had arrived was taken in.
  [[nodiscard]] bool due(const Dialer& dialer, bool judging) const noexcept;
  void dial(bool judging);
  void ask_name();
  void open_wire();
  void finish_connect(Status status, int error);
  void disconnect();
  void forget();
  void close_session();
  void take(Connection::Received received);
  void receive_arrived();
  void receive_push();
  void work_push();
  [[nodiscard]] bool push_wanted() const noexcept { return ready() && subscriber_->has_waiters(); }
  void dial_push(bool judging);
  void open_push();
  void finish_push(Status status);
  void close_push();
  void hang_up_push();
  void transmit_push();

  AsyncLoop& loop_;
  Host& host_;
  std::unique_ptr<Buffers> buffers_;
  RandomSource random_;
  Connection connection_;
  Dialer push_dialer_;
  AsyncWire wire_;
  AsyncWire push_wire_;
  Stream push_stream_;  // Over the wire's socket.
  std::optional<Subscriber> subscriber_;
  std::optional<asio::ip::tcp::resolver> resolver_;  // Made for the first host name: Asio's resolver has a thread.
  std::uint64_t resolving_ = 0;
  bool wanted_ = false;
  bool attempted_ = false;  // The host has not heard yet what has become of the attempt.
  bool push_used_ = false;
  std::uint32_t push_place_ = 0;
  ConfigProblem problem_;
};

}  // namespace holdfast
