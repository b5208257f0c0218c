// SPDX-License-Identifier: MIT
//
// FaultInjector lets things go wrong in a world, as its plan weighs them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "fault.hpp"
#include "model_redis.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Link;
struct Node;
struct Process;

class FaultInjector {
 public:
  explicit FaultInjector(World& world);

  void begin();
  // Puts right what does not end by itself.
  void end();

 private:
  void next();
  void inject(Fault fault);
  void on_process(Fault fault, Process& process);
  void on_server(Fault fault, Node& node);
  void restart_empty(Node& node, SimTime down);
  void fail_over(Node& node, SimTime lag);
  void crash_any(std::uint64_t number);
  void refuse(Fault fault, Node& node, SimTime length);
  void refuse_subscribers(Node& node, SimTime length);
  void on_data(Fault fault, Node& node);
  void forge_grants(Node& node);
  void on_network(Fault fault);
  void on_node(Fault fault, Node& node);
  [[nodiscard]] bool lasts_for_ever(const Node& node, const Entry& entry) const;
  [[nodiscard]] Node& any_node();
  [[nodiscard]] Process* any_process();
  [[nodiscard]] Link* any_link();

  World& world_;
  std::array<std::uint32_t, fault_count> weights_{};  // Of those that are injected; 0: never.
  std::uint64_t total_ = 0;
  bool ended_ = false;
};

}  // namespace holdfast::sim
