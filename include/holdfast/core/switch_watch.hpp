// SPDX-License-Identifier: MIT
//
// SwitchWatch hears of fail-overs for one node that has Sentinels: over a connection to one of them, which is a node, too. It
// does no I/O and reads no clock.
//
//     node: the client's connection, to the master          lane: a node whose server is a sentinel
//       ^                                                         |
//       |  doubt(): closed, asks the sentinels again              |  +switch-master, or an answer that names another host
//       +---------------------------- SwitchWatch <---------------+
//
// The lane finds its sentinel as any node does: a HostSearch over the sentinels, with their shares of the time and their pauses.
// A sentinel that names a master is its server. It is subscribed to +switch-master, and asked for the master in the same send, so
// that no message is lost between the two; so again whenever the connection was lost, and after switch_check_max.
//
// The sentinel that leads a fail-over says +switch-master last of all, when every replica follows the new master, which it names
// long before. So it is heard on one channel more, +failover-state-reconf-slaves: what is said there has it asked at once.
//
// What is heard is news, never an address to go to: the node leaves a master that is not the one of the news, asks the sentinel
// first that has spoken, and believes nobody who does not say himself that he is a master. Each piece of news costs the node one
// connection at most, and all of them together one in switch_pause_min.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/topology.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/resp_value.hpp"

namespace holdfast {

// What the configuration of the lane has for its Topology, so that the lane's search comes back to it.
class SwitchWatch : public Topology {
 public:
  // Of its lane.
  using Buffers = NodeBuffersOf<
      SessionBuffersOf<small_elements, switch_reply_size, switch_transmit_size, small_in_flight, 1, key_size_max>,
      switch_texts_size, small_addresses>;

  SwitchWatch() noexcept : Topology(ways) {}

  // A. Questions.
  // The node has Sentinels, and so there is something to hear.
  [[nodiscard]] static bool wanted_by(const Node& node) noexcept;
  // By the lane's configuration, the sentinels of this node are heard.
  [[nodiscard]] bool follows(const Node& node) const noexcept;
  // A sentinel has granted the subscription, on the connection of now.
  [[nodiscard]] bool hearing() const noexcept { return hearing_; }
  // When to call work() and doubt() again if nothing happens.
  [[nodiscard]] Instant poll_timeout(const Node& lane, const Node& node) const noexcept;

  // B. Commands.
  // How the lane is to be configured, to hear the sentinels of this node. REQUIRES: wanted_by(node).
  [[nodiscard]] ClientConfig follow(const Node& node) noexcept;
  // The lane's handshake is done.
  void handle_ready(Instant now) noexcept;
  // The lane's connection is lost: the next sentinel of the list is asked first.
  void handle_closed(Node& lane) noexcept;
  // Asks for what is due. Send what the lane has then.
  void work(Node& lane, Instant now, std::uint16_t random) noexcept;
  // Fails the session of a node that is at another master than the one that was heard of. True: it has, and the driver must close
  // the transport. A node that is on its way is looked at when it has arrived.
  bool doubt(Node& lane, Node& node, Instant now, std::uint16_t random) noexcept;

  // C. Inputs.
  // What came over the lane while no request was in force. False: it is the reply to the oldest that was given up, or nobody's.
  bool overhear(Session& session, const RespValue& value) noexcept;
  // What a message says of this service: a host and a port. False: it is another's, or malformed, and nothing has changed.
  [[nodiscard]] static bool read_message(ByteView message, ByteView service, ByteView& host,
                                         std::uint16_t& port) noexcept;

  [[nodiscard]] const Topology& sentinels() const noexcept { return *sentinels_; }

 private:
  // The replies to come, in their order.
  enum class Awaited : std::uint8_t { none, farewell, early_farewell, address, subscription, early_subscription };

  static const Table ways;
  static void start(Node& node) noexcept;
  static ConfigProblem accept(const ClientConfig& config) noexcept;
  static std::uint64_t number_of(const Topology& topology) noexcept;
  static ByteView name_of(const Topology& topology) noexcept;
  static ByteView hosts_of(const Topology& topology) noexcept;
  static ByteView password_of(const Topology& topology) noexcept;

  void note(ByteView host, std::uint16_t port) noexcept;
  void take_address(Session& session, const RespValue& value) noexcept;
  void hear(ByteView said_on, ByteView text) noexcept;
  [[nodiscard]] Instant due() const noexcept { return hurried_ ? asked_at_ + switch_check_min : check_; }

  Topology* sentinels_ = nullptr;
  std::uint64_t number_ = 0;  // Of the sentinels when they were followed.
  Instant check_;             // When the sentinel is asked anew.
  Instant asked_at_;          // When it was asked last.
  Instant next_doubt_;        // Not before.
  std::uint16_t port_ = 0;    // Where the service is, as was heard.
  std::uint8_t host_size_ = 0;
  Awaited awaited_ = Awaited::none;
  bool ready_ = false;    // The lane is, as far as we have heard.
  bool hearing_ = false;  // Subscribed to +switch-master,
  bool early_ = false;    // and to the other one.
  bool hurried_ = false;  // Something was said there.
  bool news_ = false;     // The node has not been looked at since that was heard.
  char host_[listed_host_size_max];
};
static_assert(sizeof(SwitchWatch) >= host_search_size, "it is copied to where the search stands");
static_assert(sizeof(SwitchWatch) <= 200, "promised: what is known of a fail-over");
static_assert(sizeof(SwitchWatch::Buffers) <= 4 * 1024, "promised: the buffers of a connection to a sentinel");

}  // namespace holdfast
