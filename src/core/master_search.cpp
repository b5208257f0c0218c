// SPDX-License-Identifier: MIT
#include "holdfast/core/master_search.hpp"

#include <new>

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/proto/server_error.hpp"
#include "holdfast/sentinels.hpp"
#include "place_number.hpp"
#include "text_writer.hpp"

namespace holdfast {

namespace {

const SentinelConfig& config_of(const Topology& topology) noexcept {
  return static_cast<const Sentinels&>(topology).config();
}

}  // namespace

// ---- The configuration -------------------------------------------------------------------------------------------

std::size_t SentinelConfig::count() const noexcept { return HostList{hosts.view(), sentinel_port_default}.count(); }

bool SentinelConfig::at(std::size_t index, ByteView& host, std::uint16_t& port) const noexcept {
  return HostList{hosts.view(), sentinel_port_default}.at(index, host, port);
}

HostList MasterSearch::hosts(const Topology& topology) noexcept {
  return {config_of(topology).hosts.view(), sentinel_port_default};
}

std::uint64_t MasterSearch::number(const Topology& topology) noexcept {
  const std::uint64_t sum = PlaceNumber().add(name_of(topology)).add('\2').get() + hosts(topology).sum();
  return sum != 0 ? sum : 1;
}

ByteView MasterSearch::name_of(const Topology& topology) noexcept { return config_of(topology).service.view(); }

ConfigProblem MasterSearch::validate(const ClientConfig& config) noexcept {
  if (!config.socket_path.empty()) return {"topology", "a Unix socket has no sentinels"};
  return holdfast::validate(config_of(*config.topology));
}

ConfigProblem validate(const SentinelConfig& config) noexcept {
  constexpr const char* too_long = "it is longer than limits.hpp allows";
  if (config.hosts.too_long()) return {"sentinels.hosts", too_long};
  if (const char* const problem = HostList{config.hosts.view(), sentinel_port_default}.problem(); problem != nullptr)
    return {"sentinels.hosts", problem};
  if (config.service.too_long()) return {"sentinels.service", too_long};
  if (config.service.empty()) return {"sentinels.service", "it is empty"};
  if (config.user.too_long()) return {"sentinels.user", too_long};
  if (config.password.too_long()) return {"sentinels.password", too_long};
  if (!config.user.empty() && config.password.empty()) return {"sentinels.user", "it needs a password"};
  return {};
}

// ---- What answers mean -------------------------------------------------------------------------------------------

Status MasterSearch::read_address(const RespValue& value, ByteView& host, std::uint16_t& port) noexcept {
  if (value.is(RespKind::error)) return classify_error(value.text()).status;
  if (value.is_null()) return Status::unknown_service;
  if (!value.is(RespKind::array) || value.count() != 2) return Status::protocol_error;
  const RespValue& name = value.at(0);
  const RespValue& number = value.at(1);
  std::uint64_t read = 0;
  if (!name.is(RespKind::bulk) || !number.is(RespKind::bulk) || !is_host(name.text()) ||
      !read_decimal(number.text(), UINT16_MAX, read) || read == 0)
    return Status::protocol_error;
  host = name.text();
  port = static_cast<std::uint16_t>(read);
  return Status::ok;
}

// ---- The handshake -----------------------------------------------------------------------------------------------

constinit const HostSearch::Plan MasterSearch::plan = {
    {ask, judge, doubt, complete_nothing, overhear_nothing}, hosts, settle, question_size, words, "sentinel ", false};

void MasterSearch::start(Node& node) noexcept {
  new (place_in(node)) MasterSearch(node);
  begin_at(node);
}

void MasterSearch::settle(const HostSearch& search, SessionSettings& settings) noexcept {
  const auto& self = static_cast<const MasterSearch&>(search);
  const KeptConfig& config = self.node_->config();
  if (search.stage() == Stage::listed) {
    settle_sentinel(self.topology(), settings);
  } else {
    settings.user = config.user.view();
    settings.password = config.password.view();
    settings.database = config.database;
    settings.native_delete = config.native_delete;
  }
}

void MasterSearch::settle_sentinel(const Topology& topology, SessionSettings& settings) noexcept {
  settings.user = config_of(topology).user.view();
  settings.password = config_of(topology).password.view();
}

std::size_t MasterSearch::question_size_of(const Topology& topology) noexcept {
  const SentinelConfig& config = config_of(topology);
  return config.user.view().size() + config.password.view().size() + config.service.view().size();
}

std::size_t MasterSearch::question_size(const HostSearch& search) noexcept {
  return question_size_of(static_cast<const MasterSearch&>(search).topology());
}

void MasterSearch::write_question(const Topology& topology, CommandLine& line) noexcept {
  line.add("SENTINEL").add("GET-MASTER-ADDR-BY-NAME").add(name_of(topology));
}

bool MasterSearch::ask(Interview& self, CommandLine& line) noexcept {
  const auto& search = static_cast<const MasterSearch&>(self);
  if (search.stage() != Stage::listed) return false;
  write_question(search.topology(), line);
  return true;
}

// A sentinel's connection ends with its answer.
Status MasterSearch::judge(Interview& self, const RespValue& value) noexcept {
  auto& search = static_cast<MasterSearch&>(self);
  search.note_reply(value);
  if (search.stage() != Stage::listed) return read_role(value);
  ByteView host;
  std::uint16_t port = 0;
  const Status status = read_address(value, host, port);
  if (status != Status::ok) return status;
  search.name(host, port);
  return Status::not_connected;
}

// Who follows a master is none any more. A master that its replicas have left may have been replaced: they follow the new one. Or
// they are just down, so that is not asked all the time.
Status MasterSearch::doubt(Interview& self, Session& session, Status status) noexcept {
  const bool left = status == Status::too_few_replicas &&
                    static_cast<MasterSearch&>(self).node_->dialer().lasted(session.last_input());
  if (status == Status::read_only || status == Status::stale_replica || left) {
    char space[failure_text_size_max];
    session.fail(status, TextWriter({space, sizeof space}).add(session.failure_text()).view());
  }
  return status;
}

ByteView MasterSearch::words(const HostSearch& search, Status status, Stage at, ByteView& more) noexcept {
  switch (status) {
    case Status::unknown_service:
      more = name_of(static_cast<const MasterSearch&>(search).topology());
      return "it does not know the service ";
    case Status::read_only: return "it is a replica";
    case Status::no_permission: return "it does not tell its role: may its user run INFO?";
    default:  // protocol_error: nothing else is judged.
      return at == Stage::server ? "it does not tell who it is" : "its answer is no host and port";
  }
}

}  // namespace holdfast
