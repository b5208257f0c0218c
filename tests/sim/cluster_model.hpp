// SPDX-License-Identifier: MIT
//
// ClusterModel is what the nodes of a cluster know of its slots, and what they answer for it: MOVED, ASK, TRYAGAIN, CLUSTERDOWN and
// CROSSSLOT. The nodes' data are those of their models (ModelRedis), whose gate it is. Slots are moved key by key, or given to
// another node together with all data, as a fail-over by agreement does; a node learns late of what it has no part in.
//
// It only knows the slots that it was told of: no key of another one may be asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_redis.hpp"

namespace holdfast::sim {

class ClusterModel {
 public:
  struct Slot {
    std::uint16_t number = 0;
    std::size_t owner = 0;
    std::optional<std::size_t> target;  // It is being moved there.
    std::vector<std::size_t> known;     // Whom each node names, where it does not serve the slot itself.
    bool down = false;                  // Nobody serves it.
  };

  // The nodes are at this host, from this port on. They must outlive it.
  ClusterModel(std::vector<ModelRedis*> nodes, std::string host, std::uint16_t first_port);
  ClusterModel(const ClusterModel&) = delete;
  ClusterModel& operator=(const ClusterModel&) = delete;

  // Known by all nodes. Once for each slot.
  Slot& add_slot(std::uint16_t number, std::size_t owner);
  [[nodiscard]] std::deque<Slot>& slots() noexcept { return slots_; }
  [[nodiscard]] const std::deque<Slot>& slots() const noexcept { return slots_; }
  [[nodiscard]] const Slot* find(std::uint16_t number) const noexcept;
  [[nodiscard]] bool serves_any(std::size_t node) const noexcept;
  // Keys that a node has of the slot, in their order.
  [[nodiscard]] std::vector<std::string> keys_of(const Slot& slot, std::size_t node) const;

  // What a node says to a request instead of running it. False: it runs it.
  [[nodiscard]] bool answer(std::size_t node, std::span<const std::string_view> words, std::string& reply);

  // A slot is moved.
  void begin_move(Slot& slot, std::size_t target) { slot.target = target; }
  // With its time. `arrives`: false is for canaries.
  void move_key(Slot& slot, const std::string& key, bool arrives = true);
  // Its keys that are still there go, and its new node serves it.
  void finish_move(Slot& slot, bool arrives = true);
  // What has gone comes back, and it stays.
  void call_off(Slot& slot);
  // Another node serves it from now on, and the one before knows. The data are left alone.
  void hand_over(Slot& slot, std::size_t after);
  // All slots of a node, with all that it has. Moves of them are over; nothing may have been moved yet.
  void fail_over(std::size_t before, std::size_t after);
  static void learn(Slot& slot, std::size_t node) { slot.known[node] = slot.owner; }

  std::uint64_t moves = 0;  // Slots that have another node.
  std::uint64_t asks = 0;   // Answers ASK.

 private:
  void carry(const std::string& key, std::size_t from, std::size_t to, bool arrives);
  [[nodiscard]] std::string address_of(std::size_t node) const;

  std::vector<ModelRedis*> nodes_;
  std::string host_;
  std::uint16_t first_port_;
  std::deque<Slot> slots_;
};

}  // namespace holdfast::sim
