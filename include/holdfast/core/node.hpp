// SPDX-License-Identifier: MIT
//
// Node is one server without a socket: its configuration, its addresses, the attempts to connect (Dialer) and what is said on
// the connection (Session). It reads no clock and draws no random numbers. A driver gives it bytes, time and what became of
// its sockets.
//
//     off -> waiting -> resolving, dialling -> handshaking -> ready -> waiting ...
//
// Invariant: ready() only while the session is ready or has just failed; requests in flight are answered by poll_reply() after
// handle_closed(). Not thread-safe: one owner. No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/dialer.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/core/kept_config.hpp"
#include "holdfast/core/session.hpp"
#include "holdfast/core/socket_address.hpp"
#include "holdfast/core/subscriber.hpp"
#include "holdfast/core/topology.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class Arguments;
class LockMachine;
class HostSearch;

class Node {
 public:
  struct Storage {
    Session::Storage session;
    MutableBytes texts;          // Of the configuration: config_texts_size_max is right for any.
    SocketAddress* addresses;    // Of a name. What it has more of is not tried.
    std::uint8_t address_count;  // At least 1; addresses_max is usual.
  };

  // The storage need not be initialised.
  explicit Node(const Storage& storage) noexcept
      : session_(storage.session),
        texts_(storage.texts),
        addresses_(storage.addresses),
        addresses_max_(storage.address_count) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // A. Questions.
  [[nodiscard]] const KeptConfig& config() const noexcept { return config_; }
  [[nodiscard]] Session& session() noexcept { return session_; }
  [[nodiscard]] const Session& session() const noexcept { return session_; }
  [[nodiscard]] Dialer& dialer() noexcept { return dialer_; }
  [[nodiscard]] const Dialer& dialer() const noexcept { return dialer_; }
  // configure() was called.
  [[nodiscard]] bool configured() const noexcept { return configured_; }
  // The handshake is done, and handle_ready() has said so.
  [[nodiscard]] bool ready() const noexcept { return dialer_.ready(); }
  // There is a transport that carries the session.
  [[nodiscard]] bool open() const noexcept { return dialer_.state() >= DialState::handshaking; }
  [[nodiscard]] bool dialling() const noexcept { return dialer_.state() == DialState::dialling; }
  // When the node has something to do if nothing happens.
  [[nodiscard]] Instant timeout() const noexcept { return earlier(dialer_.poll_timeout(), session_.poll_timeout()); }
  // Where to dial: the path of a Unix socket; or else the address in use, nullptr where none is known.
  [[nodiscard]] bool local() const noexcept { return !config_.socket_path.empty(); }
  [[nodiscard]] const SocketAddress* address() const noexcept {
    return dialer_.address_count() == 0 ? nullptr : &addresses_[dialer_.address()];
  }
  // address() is the server's, and none of who is asked for it.
  [[nodiscard]] bool placed() const noexcept { return config_.topology == nullptr || ready(); }
  [[nodiscard]] SubscriberSettings subscriber_settings() const noexcept;

  // B. Commands.
  // Connects by this from now on. `literal` is the host's address where it is one, or nullptr: its name is resolved.
  // REQUIRES: the session is closed, and `config` is valid and fits.
  void configure(const ClientConfig& config, const SocketAddress* literal) noexcept;
  // What does not fit into the storage: refuse it.
  [[nodiscard]] ConfigProblem misfit(const ClientConfig& config) const noexcept {
    return KeptConfig::misfit(config, texts_.size);
  }
  // By the configuration and the addresses of another. REQUIRES: as above.
  void configure_like(const Node& other) noexcept;
  // Who counts what crosses the wire, where the configuration names nobody.
  void use_meter(Witness* meter) noexcept {
    if (config_.meter == nullptr) config_.meter = meter;
    session_.set_witness(config_.meter);
  }
  // Hands what the machine wants to the session, or tells the machine why not: too_many_requests, not_connected.
  void submit(LockMachine& machine, void* requester, Instant now) noexcept;
  // As the dialer's. Which host it goes to is decided here, where others say that. Drivers call this one.
  [[nodiscard]] DialAction poll_dial(Instant now, std::uint16_t random) noexcept {
    if (config_.topology != nullptr) [[unlikely]]
      config_.topology->table().steer(*this, now, random);
    return dialer_.poll_action(now, random);
  }
  // A question that changes nothing, answered within a request timeout. Errors: too_many_requests: there is no room.
  [[nodiscard]] Status ask(Arguments arguments, const ReplyTag& tag, Instant now) noexcept;
  // How many milliseconds the hold in the way of this machine has left, as PTTL says it: an integer.
  [[nodiscard]] Status ask_remaining(const LockMachine& machine, const ReplyTag& tag, Instant now) noexcept;

  // C. Inputs. `now` never goes back; `random` is drawn evenly.
  // The answer to the dialer's question for addresses; a count of 0: none was found.
  void handle_addresses(const SocketAddress* addresses, std::uint8_t count, Instant now, std::uint16_t random) noexcept;
  // The transport is up: the handshake begins.
  void handle_connected(Instant now) noexcept;
  // After replies were polled. True if the handshake has been done since the last call.
  bool handle_ready(Instant now) noexcept;
  // Bytes have come.
  void handle_used(Instant now) noexcept {
    last_used_ = now;
    used_ = used_ || session_.in_flight() != 0;  // What nobody asked for is no use of a connection.
  }
  // For Witness::Table: its connection has come about, or has ended.
  static void tell_connection(Witness& witness, const Node& node, Seen what) noexcept;
  // The transport is closed. Poll the replies: all that was in flight is answered.
  void handle_closed(Instant now, std::uint16_t random) noexcept;

 protected:
  // Small and often used first: their offsets fit into one byte.
  Instant last_used_;  // When the connection last carried something.
  // After so many nanoseconds without use the connection is looked at before a call; below 0: always.
  static constexpr std::int32_t idle_default = 1'000'000'000;
  std::int32_t idle_nanoseconds_ = idle_default;
  bool used_ = false;  // It has carried a reply since it was ready.
  bool configured_ = false;
  bool seen_ready_ = false;  // A connection of this configuration has been ready.
  Dialer dialer_;
  Session session_;
  KeptConfig config_;
  MutableBytes texts_;

 private:
  friend class HostSearch;

  Status commit(const Session::Place& place, std::size_t size, const ReplyTag& tag, Instant now) noexcept;
  void start(std::uint8_t address_count, bool named, std::uint8_t first) noexcept;
  void tell(Seen what) const noexcept {
    if (config_.meter != nullptr) [[unlikely]]
      config_.meter->table->connection(*config_.meter, *this, what);
  }

  SocketAddress* addresses_;  // The dialer knows how many there are.
  std::uint8_t addresses_max_;
};

// Storage of one node as one object. Raw bytes, as the session's.
template <class SessionBuffersType, std::size_t texts_size, std::size_t address_count>
struct NodeBuffersOf {
  SessionBuffersType session;
  alignas(SocketAddress) unsigned char addresses[address_count * sizeof(SocketAddress)];
  char texts[texts_size];

  [[nodiscard]] Node::Storage storage() noexcept { return storage_of(this); }
  // The same of buffers that need not be alive yet: their owner may declare them after its node.
  [[nodiscard]] static Node::Storage storage_of(NodeBuffersOf* buffers) noexcept {
    return {SessionBuffersType::storage_of(&buffers->session),
            {buffers->texts, sizeof buffers->texts},
            reinterpret_cast<SocketAddress*>(buffers->addresses),
            address_count};
  }
};

// Of a node with any configuration, that carries the requests of single locks.
using NodeBuffers = NodeBuffersOf<SessionBuffers, config_texts_size_max, addresses_max>;

}  // namespace holdfast
