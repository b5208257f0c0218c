// SPDX-License-Identifier: MIT
#include "doctor_command.hpp"

#include <poll.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "asker.hpp"
#include "diagnosis.hpp"
#include "failure_text.hpp"
#include "json.hpp"
#include "messages.hpp"
#include "seconds.hpp"
#include "server_questions.hpp"
#include "set_up_questions.hpp"

namespace holdfast::cli {

namespace {

// Between two questions for the time: a hundred a second are nothing to a server.
constexpr int round_pause_milliseconds = 10;

std::string milliseconds(Duration duration) {
  return fixed_text(std::chrono::duration<double, std::milli>(duration).count(), 2);
}

Examination examine(DoctorOptions& options) {
  Examination examination = {
      .kind = options.kind, .name = options.name, .acks = options.acks, .lease = options.lease, .servers = {}};
  std::vector<std::unique_ptr<AskingClient>> clients;
  for (ClientConfig& config : options.servers) {
    ServerFacts facts;
    facts.address = address_text(config);
    facts.set_up = set_up_of(config);
    if (config.topology == nullptr)
      facts.host = config.socket_path.empty() ? std::string(config.host.view().string_view()) : "";
    facts.user = std::string(config.user.view().string_view());
    auto client = std::make_unique<AskingClient>();
    facts.connection = client->connect(config);
    if (facts.connection == Status::ok)
      ask_facts(*client, {.kind = options.kind, .name = options.name, .with_acks = options.acks != 0}, facts);
    else
      facts.no_connection = "no connection: " + failure_text(facts.connection, *client);
    if (facts.set_up.kind == SetUp::cluster && facts.connection == Status::ok)
      ask_server_of_slot(*client, facts.set_up, facts.silent);
    ask_hosts(config, facts.set_up);
    ::explicit_bzero(&config.password, sizeof config.password);
    clients.push_back(std::move(client));
    examination.servers.push_back(std::move(facts));
  }
  // Round by round, so that all are asked over the same time.
  const Instant end = Client::now() + options.duration;
  for (bool asked = true; asked;) {
    asked = false;
    for (std::size_t index = 0; index < clients.size(); ++index) {
      ServerFacts& facts = examination.servers[index];
      if (!facts.no_connection.empty() || facts.silent) continue;
      ask_time(*clients[index], facts);
      asked = true;
    }
    if (asked) (void)::poll(nullptr, 0, round_pause_milliseconds);
    asked = asked && Client::now() < end;
  }
  return examination;
}

std::string version_text_of(const ServerFacts& server) {
  const Version version = server.version();
  if (version.text.empty()) return "of unknown version";
  return (version.valkey ? "Valkey " : "Redis ") + escaped(version.text);
}

// What the version brings beside what all have.
std::string offers_text(const ServerFacts& server) {
  const Version version = server.version();
  const bool delex = version.major > 8 || (version.major == 8 && version.minor >= 4);
  std::string text = version.valkey && version.major >= 9 ? "compare-and-delete by DELIFEQ"
                     : delex && !version.valkey           ? "compare-and-delete by DELEX"
                                                          : "compare-and-delete by script";
  if (version.valkey || version.major >= 7) text += ", channels of a slot, ACL DRYRUN";
  return text;
}

// "5.2 MB".
std::string bytes_text(std::uint64_t bytes) {
  constexpr double thousand = 1000;
  if (bytes < 1'000'000) return fixed_text(static_cast<double>(bytes) / thousand, 1) + " kB";
  return fixed_text(static_cast<double>(bytes) / thousand / thousand, 1) + " MB";
}

std::string persistence_text(const ServerFacts& server) {
  const bool append_only = server.field("aof_enabled") == "1";
  std::string text = append_only ? "append-only file" : "no append-only file";
  if (append_only && server.appendfsync) text += ", appendfsync " + escaped(*server.appendfsync);
  if (!server.save) return text + "; snapshots not known";
  return text + (server.save->empty() ? "; no snapshots" : "; snapshots by " + escaped(*server.save));
}

std::string memory_text(const ServerFacts& server) {
  const std::uint64_t limit = server.number("maxmemory");
  return bytes_text(server.number("used_memory")) + " used, " +
         (limit == 0 ? "no maxmemory" : "maxmemory " + bytes_text(limit)) + ", policy " +
         escaped(server.field("maxmemory_policy"));
}

std::string replicas_text(const ServerFacts& server) {
  std::string text;
  for (const Replica& replica : server.replicas())
    text += "    " + escaped(replica.address) + " " + escaped(replica.state) + ", lags by " +
            std::to_string(replica.lag_seconds) + " seconds and " + std::to_string(replica.behind_bytes) + " bytes\n";
  return text.empty() ? text : "  replicas; a fail-over to one loses what had not reached it:\n" + text;
}

std::string host_text(const HostFacts& host, SetUp kind) {
  if (!host.answers()) return host.stranger ? "something else" : "not reached";
  if (kind == SetUp::cluster)
    return host.fields.empty() ? "does not say"
                               : "state " + escaped(host.field("cluster_state")) + ", the slot is on " +
                                     (host.field("owner").empty() ? "nobody" : escaped(host.field("owner")));
  if (host.unknown || host.master.empty()) return "names nobody";
  if (host.field("quorum").empty()) return "names " + escaped(host.master);
  return "names " + escaped(host.master) + ", quorum " + std::to_string(host.number("quorum")) + ", knows " +
         std::to_string(host.number("num-other-sentinels")) + " others and " +
         std::to_string(host.number("num-slaves")) + " replicas";
}

std::string set_up_text(const SetUpFacts& set_up) {
  if (set_up.kind == SetUp::alone) return "";
  const bool cluster = set_up.kind == SetUp::cluster;
  std::string text = cluster ? "  cluster, slot " + std::to_string(set_up.slot) + ":\n" : "  sentinels:\n";
  if (const HostFacts& view = set_up.server; !view.fields.empty())
    text += "    " + std::to_string(view.number("masters")) + " masters of " +
            std::to_string(view.number("cluster_known_nodes")) +
            " nodes; slots: " + std::to_string(view.number("cluster_slots_assigned")) + " assigned, " +
            std::to_string(view.number("cluster_slots_ok")) + " well, " +
            std::to_string(view.number("cluster_slots_fail")) + " failed\n";
  for (const HostFacts& host : set_up.hosts) text += "    " + host.address + " " + host_text(host, set_up.kind) + "\n";
  return text;
}

// A line for each doubling of the round trip.
std::string chart(const std::vector<Duration>& trips) {
  constexpr int width = 40;
  std::string text;
  const Duration least = std::chrono::microseconds(16);
  std::vector<std::pair<Duration, std::size_t>> bars;
  std::size_t most = 0;
  for (std::size_t at = 0; at < trips.size();) {
    Duration end = least;
    while (end <= trips[at]) end *= 2;
    std::size_t count = 0;
    for (; at < trips.size() && trips[at] < end; ++at) ++count;
    bars.emplace_back(end, count);
    most = std::max(most, count);
  }
  for (const auto& [end, count] : bars) {
    const std::string label = milliseconds(end);
    text += "    < " + std::string(9 - std::min<std::size_t>(label.size(), 9), ' ') + label + " ms  ";
    text += std::string(std::max<std::size_t>(count * width / most, 1), '#') + " " + std::to_string(count) + "\n";
  }
  return text;
}

std::string wrapped_finding(const Finding& finding) {
  std::string text = std::string(to_string(finding.severity)) + ": ";
  if (!finding.server.empty()) text += finding.server + ": ";
  return text + finding.what + "\n    " + finding.advice + "\n";
}

std::string report_text(const Examination& examination, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += wrapped_finding(finding);
  if (findings.empty()) text += "nothing was found\n";
  for (const ServerFacts& server : examination.servers) {
    text += "\nserver " + server.address + "\n" + set_up_text(server.set_up);
    if (!server.no_connection.empty()) continue;
    const std::string role = server.field("role");
    text += "  version: " + version_text_of(server) + "; " + offers_text(server) + "\n";
    if (!role.empty())
      text += "  role: " + (role == "slave" ? "replica" : escaped(role)) + ", " +
              std::to_string(server.number("connected_slaves")) +
              (server.number("connected_slaves") == 1 ? " replica" : " replicas") + ", up for " +
              std::to_string(server.number("uptime_in_seconds")) + " seconds\n";
    if (!server.info.empty())
      text += replicas_text(server) + "  persistence: " + persistence_text(server) +
              "\n  memory: " + memory_text(server) + "\n";
    if (!server.user.empty()) text += "  user: " + escaped(server.user) + "\n";
    if (const std::optional<ClockRate> rate = clock_rate_of(server.times))
      text += "  clock: " + fixed_text(rate->parts_per_million, 0) + " ppm beside ours, give or take " +
              fixed_text(rate->uncertainty, 0) + ", over " + seconds_text(rate->over) + " seconds; " +
              std::to_string(rate->steps) + " steps\n";
    const std::vector<Duration> trips = server.sorted_round_trips();
    if (trips.empty()) continue;
    text += "  round trip in ms: half within " + milliseconds(percentile(trips, 50)) + ", 90 % " +
            milliseconds(percentile(trips, 90)) + ", 99 % " + milliseconds(percentile(trips, 99)) + ", all " +
            milliseconds(trips.back()) + "\n" + chart(trips);
    const Duration margin = renewal_margin(examination.lease);
    text += "  watchdog: of a lease of " + seconds_text(examination.lease) + " seconds " + seconds_text(margin) +
            " are left when a renewal is due, ";
    text += margin < trips.back() ? "which the slowest round trip takes longer than\n"
                                  : "less the slowest round trip " + seconds_text(margin - trips.back()) + "\n";
  }
  return text;
}

std::string list_text(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return "[" + text + "]";
}

std::string set_up_json(const SetUpFacts& set_up) {
  std::vector<std::string> hosts;
  for (const HostFacts& host : set_up.hosts) {
    JsonObject object;
    object.add("address", host.address);
    object.add("reached", host.answers());
    if (set_up.kind == SetUp::sentinels) {
      object.add("master", escaped(host.master));
      if (!host.field("quorum").empty()) {
        object.add("flags", escaped(host.field("flags")));
        object.add_number("quorum", std::to_string(host.number("quorum")));
        object.add_number("other_sentinels", std::to_string(host.number("num-other-sentinels")));
        object.add_number("replicas", std::to_string(host.number("num-slaves")));
      }
    } else if (!host.fields.empty()) {
      object.add("state", escaped(host.field("cluster_state")));
      object.add("owner", escaped(host.field("owner")));
    }
    hosts.push_back(object.text());
  }
  JsonObject report;
  report.add("name", escaped(set_up.name));
  if (set_up.kind == SetUp::cluster) {
    report.add_number("slot", std::to_string(set_up.slot));
    if (const HostFacts& view = set_up.server; !view.fields.empty()) {
      report.add("state", escaped(view.field("cluster_state")));
      report.add_number("masters", std::to_string(view.number("masters")));
      report.add_number("nodes", std::to_string(view.number("cluster_known_nodes")));
      report.add_number("slots_assigned", std::to_string(view.number("cluster_slots_assigned")));
      report.add_number("slots_ok", std::to_string(view.number("cluster_slots_ok")));
      report.add_number("slots_suspect", std::to_string(view.number("cluster_slots_pfail")));
      report.add_number("slots_failed", std::to_string(view.number("cluster_slots_fail")));
    }
  }
  report.add_raw("hosts", list_text(hosts));
  return report.text();
}

void add_said(JsonObject& object, const ServerFacts& server) {
  if (!server.user.empty()) object.add("user", escaped(server.user));
  if (server.info.empty()) return;
  object.add("offers", offers_text(server));
  object.add_number("uptime_seconds", std::to_string(server.number("uptime_in_seconds")));
  object.add("persistence", persistence_text(server));
  object.add_number("maxmemory", std::to_string(server.number("maxmemory")));
  object.add_number("used_memory", std::to_string(server.number("used_memory")));
  object.add("maxmemory_policy", escaped(server.field("maxmemory_policy")));
  std::vector<std::string> replicas;
  for (const Replica& replica : server.replicas()) {
    JsonObject one;
    one.add("address", escaped(replica.address));
    one.add("state", escaped(replica.state));
    one.add_number("lag_seconds", std::to_string(replica.lag_seconds));
    one.add_number("behind_bytes", std::to_string(replica.behind_bytes));
    replicas.push_back(one.text());
  }
  object.add_raw("replicas", list_text(replicas));
}

std::string server_json(const ServerFacts& server, Duration lease) {
  JsonObject object;
  object.add("address", server.address);
  object.add("reached", server.no_connection.empty());
  object.add("version", version_text_of(server));
  object.add("role", escaped(server.field("role")));
  add_said(object, server);
  if (server.set_up.kind != SetUp::alone)
    object.add_raw(server.set_up.kind == SetUp::cluster ? "cluster" : "sentinels", set_up_json(server.set_up));
  if (const std::optional<ClockRate> rate = clock_rate_of(server.times)) {
    object.add_number("clock_ppm", fixed_text(rate->parts_per_million, 1));
    object.add_number("clock_ppm_uncertainty", fixed_text(rate->uncertainty, 1));
    object.add_number("clock_steps", std::to_string(rate->steps));
  }
  const std::vector<Duration> trips = server.sorted_round_trips();
  if (!trips.empty()) {
    object.add_number("round_trips", std::to_string(trips.size()));
    for (const int percent : {50, 90, 99, 100})
      object.add_number("round_trip_ms_p" + std::to_string(percent), milliseconds(percentile(trips, percent)));
    object.add_number("watchdog_margin_ms", milliseconds(renewal_margin(lease) - trips.back()));
  }
  return object.text();
}

std::string report_json(const Examination& examination, const std::vector<Finding>& findings) {
  std::vector<std::string> found;
  for (const Finding& finding : findings) {
    JsonObject object;
    object.add("severity", std::string_view(to_string(finding.severity)));
    object.add("code", finding.code);
    object.add("server", finding.server);
    object.add("what", finding.what);
    object.add("advice", finding.advice);
    found.push_back(object.text());
  }
  std::vector<std::string> servers;
  for (const ServerFacts& server : examination.servers) servers.push_back(server_json(server, examination.lease));
  JsonObject report;
  report.add_raw("findings", list_text(found));
  report.add_raw("servers", list_text(servers));
  return report.text() + "\n";
}

}  // namespace

int doctor(DoctorOptions& options) {
  const Examination examination = examine(options);
  const std::vector<Finding> findings = diagnose(examination);
  if (!print(options.json ? report_json(examination, findings) : report_text(examination, findings)))
    return exit_output;
  const Severity worst = findings.empty() ? Severity::information : findings.front().severity;
  return worst == Severity::danger ? exit_danger : worst == Severity::warning ? exit_warning : exit_ok;
}

}  // namespace holdfast::cli
