// SPDX-License-Identifier: MIT
//
// MasterSearch is how a node with Sentinels finds its server: a HostSearch whose listed hosts are sentinels. They are asked by
// SENTINEL GET-MASTER-ADDR-BY-NAME, after AUTH with credentials of their own, and are never the server.
//
// A server proves itself by the answer to the identity script, which has its role as INFO says it. ROLE would do, but its
// answer is as long as the list of replicas.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/host_search.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/resp_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class LockMachine;

class MasterSearch : public HostSearch {
 public:
  // A. Questions.
  // What a sentinel's answer means. Not ok: unknown_service; the server's error; protocol_error: it is no host and port.
  [[nodiscard]] static Status read_address(const RespValue& value, ByteView& host, std::uint16_t& port) noexcept;
  // As HostSearch::judge_role().
  [[nodiscard]] static Status read_role(const RespValue& value) noexcept { return judge_role(value); }

  // See Topology::Table.
  [[nodiscard]] static std::uint64_t number(const Topology& topology) noexcept;
  [[nodiscard]] static ByteView name_of(const Topology& topology) noexcept;
  [[nodiscard]] static HostList hosts(const Topology& topology) noexcept;
  // Of a connection to a sentinel: who asks, what is asked, and how many bytes that takes, as HostSearch counts them.
  static void settle_sentinel(const Topology& topology, SessionSettings& settings) noexcept;
  static void write_question(const Topology& topology, CommandLine& line) noexcept;
  [[nodiscard]] static std::size_t question_size_of(const Topology& topology) noexcept;
  // Of a configuration with Sentinels, what is wrong with them.
  [[nodiscard]] static ConfigProblem validate(const ClientConfig& config) noexcept;

  // A master has all names.
  [[nodiscard]] static bool serves(const Topology& /*topology*/, const LockMachine& /*machine*/) noexcept {
    return true;
  }

  // B. Commands. At the node's configuration: places the search.
  static void start(Node& node) noexcept;

 private:
  explicit MasterSearch(Node& node) noexcept : HostSearch(node, plan) {}
  static const Plan plan;
  static bool ask(Interview& self, CommandLine& line) noexcept;
  static Status judge(Interview& self, const RespValue& value) noexcept;
  static Status doubt(Interview& self, Session& session, Status status) noexcept;
  static void settle(const HostSearch& search, SessionSettings& settings) noexcept;
  static std::size_t question_size(const HostSearch& search) noexcept;
  static ByteView words(const HostSearch& search, Status status, Stage at, ByteView& more) noexcept;
};

}  // namespace holdfast
