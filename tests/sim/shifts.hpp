// SPDX-License-Identifier: MIT
//
// Shifts moves the server of a name about while a world runs, and has those who are asked for it answer by what they know: the nodes
// of a cluster (ClusterModel), or sentinels. What it does is by agreement: no data are lost, so nothing that is promised of a lock is
// excused. Only Fault::losing_change loses data; the checkers are told whose. Worlds whose set-up is fixed have none of it.
//
//     cluster:    node 0 1 2, masters with slots ---- moves, key by key; fail-overs to the one without ---- node 3
//     sentinels:  node 0, the master ---- fail-overs ---- node 1, 2        node 3, 4, 5 name it, late and wrongly
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster_model.hpp"
#include "fault.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/sentinels.hpp"
#include "plan.hpp"
#include "random.hpp"

namespace holdfast::sim {

class World;
struct Node;

// What a client is configured with, so that it finds its server.
struct Guide {
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<Sentinels> sentinels;

  [[nodiscard]] Topology* get() const noexcept {
    return cluster != nullptr ? static_cast<Topology*>(cluster.get()) : sentinels.get();
  }
};

class Shifts {
 public:
  explicit Shifts(World& world);
  Shifts(const Shifts&) = delete;
  Shifts& operator=(const Shifts&) = delete;

  void begin();
  // What is under way is done, and everybody knows it.
  void end();
  // `tag`: of a cluster, that of a blocking client's names.
  [[nodiscard]] Guide make_guide(std::size_t tag) const;

 private:
  [[nodiscard]] bool in_cluster() const noexcept { return cluster_ != nullptr; }
  [[nodiscard]] bool answer(std::size_t node, ModelRedis::ConnectionId from, std::span<const std::string_view> words,
                            std::string& reply);
  [[nodiscard]] bool answer_as_sentinel(std::size_t node, std::span<const std::string_view> words, std::string& reply);
  [[nodiscard]] bool answer_as_canary(std::size_t node, std::span<const std::string_view> words, std::string& reply);
  void next();
  void shift(Fault fault);
  void move_slot();
  void step_move(std::size_t slot);
  void end_move(std::size_t slot, bool called_off);
  void take_slot_down();
  [[nodiscard]] SimTime lag();
  void lose(const Node& before, Node& after, const Databases& old_data,
            const std::function<bool(std::size_t name)>& which);
  void change_master_of_slots(bool loses);
  void fail_over(Node& before, Node& after, const Databases* old_data);
  [[nodiscard]] std::vector<std::size_t> slots_of(std::size_t node) const;
  void change_master(std::shared_ptr<const Databases> old_data);
  void change_lagging_master();
  void promote(const Databases* old_data);
  void tell_sentinels(SimTime within);
  void tell_sentinel(std::size_t sentinel);
  void spread_old_news();
  void carry_roles();
  void look_at_clocks();
  void spread(std::size_t from, std::string_view channel, std::string_view payload);
  [[nodiscard]] SimTime length();
  [[nodiscard]] bool moves(std::size_t node) const;

  World& world_;
  Random random_;
  Random bus_random_;
  std::unique_ptr<ClusterModel> cluster_;
  std::vector<std::uint32_t> weights_;
  std::uint64_t total_ = 0;
  bool ended_ = false;
  std::vector<std::uint64_t> move_numbers_;  // By slot: what was planned for a move that is over tells nothing.
  // Of sentinels.
  std::size_t master_ = 0;  // The node that is it, or was it last,
  bool demoted_ = false;    // where none is just now.
  static constexpr std::size_t nobody = SIZE_MAX;
  std::vector<std::size_t> named_;  // By each.
  bool asking_ = false;             // For a canary.
};

}  // namespace holdfast::sim
