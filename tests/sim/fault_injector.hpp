// SPDX-License-Identifier: MIT
//
// FaultInjector lets things go wrong in a world, as its plan weighs them.
#pragma once

#include <string>
#include <vector>

#include "fault.hpp"
#include "model_redis.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Link;
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
  void on_server(Fault fault);
  void refuse(Fault fault, SimTime length);
  void on_data(Fault fault);
  void on_network(Fault fault);
  [[nodiscard]] Process* any_process();
  [[nodiscard]] Link* any_link();

  World& world_;
  std::uint64_t total_ = 0;
  bool ended_ = false;
  std::vector<ModelRedis::ConnectionId> crowd_;
};

}  // namespace holdfast::sim
