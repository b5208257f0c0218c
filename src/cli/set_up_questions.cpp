// SPDX-License-Identifier: MIT
#include "set_up_questions.hpp"

#include <string.h>

#include <memory>
#include <string>
#include <utility>

#include "asker.hpp"
#include "connection.hpp"
#include "failure_text.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/core/host_list.hpp"
#include "holdfast/core/topology.hpp"
#include "holdfast/sentinels.hpp"
#include "kind_rights.hpp"
#include "messages.hpp"

namespace holdfast::cli {

namespace {

constexpr std::uint16_t sentinel_port = 26379;
constexpr std::uint16_t node_port = 6379;

// CLUSTER NODES is as long as the cluster is large. The server looks through it itself, and names the first few of each sort.
constexpr char cluster_script[] = R"(local lines = ''
local function say(name, value) lines = lines .. name .. ':' .. value .. '\n' end
local info = redis.call('CLUSTER', 'INFO')
for _, name in ipairs({'cluster_state', 'cluster_slots_assigned', 'cluster_slots_ok', 'cluster_slots_pfail',
'cluster_slots_fail', 'cluster_known_nodes', 'cluster_size'}) do
local value = info:match(name .. ':(%w+)')
if value then say(name, value) end
end
local slot, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local masters, served, open, shown = {}, {}, 0, {failed = 0, suspect = 0, lonely = 0}
local function show(sort, address)
shown[sort] = shown[sort] + 1
if shown[sort] <= most then say(sort .. shown[sort], address) end
end
for line in redis.call('CLUSTER', 'NODES'):gmatch('[^\n]+') do
local id, address, flags, master, rest = line:match('^(%S+) ([^@%s,]*)%S* (%S+) (%S+) %S+ %S+ %S+ %S+(.*)')
if id then
address = address:sub(1, 54)
local is = {}
for flag in flags:gmatch('[^,]+') do is[flag] = true end
if is.fail then show('failed', address) elseif is['fail?'] then show('suspect', address) end
if is.myself then say('own_id', id:sub(1, 40)) end
if is.master and rest:match(' %d') then masters[#masters + 1] = {id, address, is.fail or is['fail?']} end
if is.slave and not is.fail and not is['fail?'] then served[master] = true end
for first, last in rest:gmatch(' (%d+)%-?(%d*)') do
local from = tonumber(first)
if slot >= from and slot <= (tonumber(last) or from) then say('owner', address) say('owner_id', id:sub(1, 40)) end
end
for number, arrow in rest:gmatch('%[(%d+)%-([<>])%-') do
if tonumber(number) == slot then say(arrow == '>' and 'leaving' or 'coming', '1') else open = open + 1 end
end
end
end
for _, it in ipairs(masters) do
if not it[3] and not served[it[1]] then show('lonely', it[2]) end
end
say('masters', #masters)
say('open', open)
for sort, count in pairs(shown) do say(sort, count) end
return lines)";

bool is_cluster(const Topology& topology) noexcept { return topology.table().has_shards != nullptr; }

HostList hosts_of(const Topology& topology) noexcept {
  return {topology.hosts(), is_cluster(topology) ? node_port : sentinel_port};
}

void read_lines(const std::string& lines, std::map<std::string, std::string>& fields) {
  for (std::size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::size_t colon = lines.find(':', begin);
    if (colon < end) fields[lines.substr(begin, colon - begin)] = lines.substr(colon + 1, end - colon - 1);
  }
}

void ask_node(Asker& ask, const SetUpFacts& set_up, HostFacts& facts) {
  const Answer answer = ask({"EVAL", cluster_script, "0", std::to_string(set_up.slot), std::to_string(named_max)});
  if (answer.is_text()) return read_lines(answer.texts[0], facts.fields);
  facts.stranger = contains(answer.error, "cluster support disabled");
  facts.refused = is_refusal(answer);
  facts.unsaid = answer.error.empty() ? to_string(answer.status) : answer.error;
}

void ask_sentinel(Asker& ask, const SetUpFacts& set_up, HostFacts& facts) {
  const Answer named = ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", set_up.name});
  facts.refused = is_refusal(named);
  if (named.status != Status::ok) {
    facts.stranger = !facts.refused && !facts.silent;
    facts.unsaid = named.error.empty() ? to_string(named.status) : named.error;
    return;
  }
  facts.unknown = named.texts.size() != 2;
  if (facts.unknown) return;
  const bool v6 = named.texts[0].find(':') != std::string::npos;
  facts.master = (v6 ? "[" + named.texts[0] + "]" : named.texts[0]) + ":" + named.texts[1];
  const Answer described = ask({"SENTINEL", "MASTER", set_up.name});
  if (described.status != Status::ok) {
    facts.refused = is_refusal(described);
    facts.unsaid = described.error.empty() ? to_string(described.status) : described.error;
  }
  for (std::size_t index = 0; index + 1 < described.texts.size(); index += 2)
    facts.fields[described.texts[index]] = described.texts[index + 1];
  const Answer able = ask({"SENTINEL", "CKQUORUM", set_up.name});
  if (contains(able.error, "NOQUORUM")) facts.no_quorum = able.error;
  if (is_refusal(able)) {
    facts.refused = true;
    facts.unsaid = able.error;
  }
}

void ask_host(const ClientConfig& config, const SetUpFacts& set_up, HostFacts& facts) {
  const auto client = std::make_unique<AskingClient>();
  const Status status = client->connect(config);
  if (status != Status::ok) {
    facts.no_connection = failure_text(status, *client);
    return;
  }
  Asker ask(*client, facts.silent, Client::now() + host_time_max);
  if (set_up.kind == SetUp::cluster)
    ask_node(ask, set_up, facts);
  else
    ask_sentinel(ask, set_up, facts);
}

}  // namespace

SetUpFacts set_up_of(const ClientConfig& config) {
  SetUpFacts set_up;
  if (config.topology == nullptr) return set_up;
  const Topology& topology = *config.topology;
  set_up.kind = is_cluster(topology) ? SetUp::cluster : SetUp::sentinels;
  set_up.name = std::string(topology.name().string_view());
  const auto& asker =
      set_up.kind == SetUp::cluster ? config.user : static_cast<const Sentinels&>(topology).config().user;
  set_up.user = std::string(asker.view().string_view());
  if (set_up.kind == SetUp::cluster) set_up.slot = static_cast<const Cluster&>(topology).slot();
  const HostList hosts = hosts_of(topology);
  for (std::size_t index = 0; index < hosts.count(); ++index) {
    ByteView host;
    std::uint16_t port = 0;
    if (!hosts.at(index, host, port)) continue;
    HostFacts facts;
    ClientConfig config_of_host;
    config_of_host.host.assign(host);
    config_of_host.port = port;
    facts.host = std::string(host.string_view());
    facts.address = address_text(config_of_host);
    set_up.hosts.push_back(std::move(facts));
  }
  return set_up;
}

void ask_hosts(const ClientConfig& config, SetUpFacts& set_up) {
  if (set_up.hosts.empty()) return;
  std::vector<ClientConfig> configs;
  const HostList hosts = hosts_of(*config.topology);
  for (std::size_t index = 0; index < hosts.count(); ++index) {
    ByteView host;
    std::uint16_t port = 0;
    if (!hosts.at(index, host, port)) continue;
    ClientConfig one = config;
    one.topology = nullptr;
    one.host.assign(host);
    one.port = port;
    one.database = 0;
    if (set_up.kind == SetUp::sentinels) {
      const SentinelConfig& sentinels = static_cast<const Sentinels&>(*config.topology).config();
      one.user.assign(sentinels.user.view());
      one.password.assign(sentinels.password.view());
    }
    configs.push_back(one);
  }
  at_once(configs.size(), [&](std::size_t index) { ask_host(configs[index], set_up, set_up.hosts[index]); });
  for (ClientConfig& one : configs) ::explicit_bzero(&one.password, sizeof one.password);
}

void ask_server_of_slot(ClientBase& client, SetUpFacts& set_up, bool& silent) {
  Asker ask(client, silent, Client::now() + host_time_max);
  ask_node(ask, set_up, set_up.server);
  set_up.server.silent = silent;
}

}  // namespace holdfast::cli
