// SPDX-License-Identifier: MIT
#include "set_up_diagnosis.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "holdfast/proto/slot.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

// With fewer, none may be lost.
constexpr std::size_t voters_min = 3;
// Of what a host may say of how many others there are.
constexpr std::uint64_t told_max = 1'000'000;

std::string numbered(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

bool has_flag(const std::string& flags, const std::string& flag) {
  return ("," + flags + ",").find("," + flag + ",") != std::string::npos;
}

// A hold that is kept has so much left at the worst, when nobody can renew it.
void judge_fail_over(Findings& findings, std::uint64_t noticed_after, const char* setting, Duration lease) {
  if (noticed_after == 0 || noticed_after > static_cast<std::uint64_t>(timeout_max / std::chrono::milliseconds(1)))
    return;
  const Duration notice = std::chrono::milliseconds(noticed_after);
  if (notice >= renewal_margin(lease))
    findings.add(Severity::information, "fail-over-time",
                 "a master's death is noticed after " + seconds_text(notice) + " seconds (" + setting +
                     "), and then a hold with a lease of " + seconds_text(lease) +
                     " seconds may have ended: no fail-over comes in time for it",
                 "a longer lease, or a smaller " + std::string(setting));
}

// ---- Hosts -----------------------------------------------------------------------------------------------------------

std::size_t answering(const SetUpFacts& set_up) {
  return static_cast<std::size_t>(
      std::count_if(set_up.hosts.begin(), set_up.hosts.end(), [](const HostFacts& host) { return host.answers(); }));
}

constexpr char cluster_rules[] = " +eval +cluster|info +cluster|nodes";

std::string set_user(const std::string& user) { return "ACL SETUSER " + (user.empty() ? "USER" : escaped(user)); }

void judge_hosts(Findings& findings, const SetUpFacts& set_up, const std::string& user) {
  const bool cluster = set_up.kind == SetUp::cluster;
  for (const HostFacts& host : set_up.hosts) {
    findings.of(host.address);
    if (!host.no_connection.empty() || host.silent)
      findings.add(Severity::warning, cluster ? "cluster-node-away" : "sentinel-away",
                   std::string(cluster ? "this node is not reached: " : "this sentinel is not reached: ") +
                       (host.silent ? "it does not answer" : host.no_connection),
                   "see that it runs, and that the URL and its password are right");
    else if (host.stranger)
      findings.add(Severity::danger, cluster ? "no-cluster-node" : "no-sentinel",
                   std::string(cluster ? "this is no node of a cluster: it would grant each lock once more ("
                                       : "this is no sentinel (") +
                       escaped(host.unsaid) + ")",
                   cluster ? "take it out of the URL, or give its own address alone"
                           : "see the port: a sentinel has 26379, a server 6379");
    else if (cluster && host.refused && set_up.server.refused)
      continue;  // Told once, of the server.
    else if (host.refused || !host.unsaid.empty())
      // A sentinel that names nobody is of no use.
      findings.add(cluster || !host.master.empty() ? Severity::information : Severity::warning,
                   cluster ? "cluster-unchecked" : "sentinel-unchecked",
                   "this host does not say all: its view is not checked (" + escaped(host.unsaid) + ")",
                   cluster ? set_user(user) + cluster_rules
                           : set_user(set_up.user.empty() ? "default" : set_up.user) +
                                 " +sentinel|get-master-addr-by-name +sentinel|master +sentinel|ckquorum");
  }
}

// ---- Sentinels -------------------------------------------------------------------------------------------------------

// They name one server, if by two of its names.
bool agree(const HostFacts& one, const HostFacts& other) {
  return one.master == other.master || (!one.field("runid").empty() && one.field("runid") == other.field("runid"));
}

// Who names the master that most of them name, the first of the URL where they are as many; nullptr: nobody names one.
const HostFacts* speaker_of(const SetUpFacts& set_up) {
  const HostFacts* best = nullptr;
  std::ptrdiff_t most = 0;
  for (const HostFacts& host : set_up.hosts) {
    const auto count = std::count_if(set_up.hosts.begin(), set_up.hosts.end(),
                                     [&](const HostFacts& other) { return agree(other, host); });
    if (host.master.empty() || count <= most) continue;
    best = &host;
    most = count;
  }
  return best;
}

void judge_sentinel(Findings& findings, const HostFacts& host, const HostFacts* speaker) {
  findings.of(host.address);
  if (host.unknown) {
    findings.add(Severity::warning, "sentinel-unknown-service", "this sentinel does not know the service",
                 "see its name in the URL, and SENTINEL MONITOR");
    return;
  }
  if (!host.master.empty() && speaker != nullptr && !agree(host, *speaker))
    findings.add(Severity::danger, "sentinel-disagrees",
                 "this sentinel names the master " + escaped(host.master) + ", and others name " +
                     escaped(speaker->master) + ": clients may get one lock from both",
                 "see which of the two is the master, and why this sentinel does not hear of it: its network, its log, "
                 "SENTINEL RESET");
  const std::string flags = host.field("flags");
  if (has_flag(flags, "o_down"))
    findings.add(Severity::danger, "sentinel-master-down", "the sentinels agree that the master is down",
                 "see the master, and SENTINEL CKQUORUM");
  else if (has_flag(flags, "s_down") || has_flag(flags, "disconnected"))
    findings.add(Severity::warning, "sentinel-master-down", "this sentinel does not reach the master",
                 "see the network between the two");
  if (has_flag(flags, "failover_in_progress"))
    findings.add(Severity::warning, "sentinel-fail-over", "a fail-over is in progress", "look again when it is over");
}

void judge_sentinels(Findings& findings, const SetUpFacts& set_up, Duration lease) {
  const HostFacts* const speaker = speaker_of(set_up);
  for (const HostFacts& host : set_up.hosts)
    if (host.answers()) judge_sentinel(findings, host, speaker);

  findings.of("");
  const std::string service = escaped(set_up.name);
  std::uint64_t known = 0;  // As many as one of them knows.
  std::uint64_t noticed_after = 0;
  std::size_t described = 0;
  std::size_t lonely = 0;
  bool counts_differ = false;
  std::vector<std::string> quorums;
  for (const HostFacts& host : set_up.hosts) {
    if (!host.answers() || host.field("quorum").empty()) continue;
    ++described;
    const std::uint64_t count = std::min(host.number("num-other-sentinels"), told_max) + 1;
    counts_differ = counts_differ || (known != 0 && known != count);
    known = std::max(known, count);
    noticed_after = std::max(noticed_after, host.number("down-after-milliseconds"));
    if (!host.field("num-slaves").empty() && host.number("num-slaves") == 0) ++lonely;
    if (std::find(quorums.begin(), quorums.end(), host.field("quorum")) == quorums.end())
      quorums.push_back(host.field("quorum"));
  }
  const auto unable = std::count_if(set_up.hosts.begin(), set_up.hosts.end(),
                                    [](const HostFacts& host) { return !host.no_quorum.empty(); });
  if (unable != 0) {
    const auto first = std::find_if(set_up.hosts.begin(), set_up.hosts.end(),
                                    [](const HostFacts& host) { return !host.no_quorum.empty(); });
    findings.add(Severity::danger, "sentinel-quorum",
                 std::to_string(unable) + " of " + std::to_string(set_up.hosts.size()) +
                     " sentinels say that they cannot fail over: nobody takes the place of a master that dies (" +
                     escaped(first->no_quorum) + ")",
                 "start the sentinels that are missing, and see that they reach each other");
  }
  const std::size_t there = answering(set_up);
  const std::size_t listed = set_up.hosts.size();
  if (there * 2 <= listed)
    findings.add(Severity::danger, "sentinels-missing",
                 "of " + std::to_string(listed) + " sentinels " + std::to_string(there) +
                     " are reached: no majority of them, and without one nobody fails over",
                 "start them, or see the network");
  if (described == 0) return;
  if (lonely != 0)
    findings.add(Severity::warning, "sentinel-no-replica",
                 numbered(lonely, "sentinel knows", "sentinels know") + " no replica of " + service +
                     ": nobody can take the master's place",
                 "a replica; see SENTINEL REPLICAS");
  if (known < voters_min)
    findings.add(Severity::warning, "sentinels-few",
                 "there " + std::string(known == 1 ? "is " : "are ") + numbered(known, "sentinel", "sentinels") +
                     ": when one is gone, no majority is left to fail over",
                 "three sentinels, each on a machine of its own");
  else if (listed < std::min<std::uint64_t>(known, voters_min))
    findings.add(Severity::information, "sentinels-unlisted",
                 "the URL has " + std::to_string(listed) + " of " + std::to_string(known) +
                     " sentinels: without these the master is not found",
                 "all of them in the URL");
  if (counts_differ)
    findings.add(Severity::warning, "sentinels-differ",
                 "the sentinels know different numbers of each other: majorities are counted of those",
                 "SENTINEL RESET " + service + " on one after the other, each half a minute after the one before");
  if (quorums.size() > 1)
    findings.add(Severity::warning, "sentinels-differ",
                 "the sentinels have different quorums: " + escaped(quorums[0]) + " and " + escaped(quorums[1]),
                 "SENTINEL SET " + service + " quorum, the same on each");
  judge_fail_over(findings, noticed_after, "down-after-milliseconds", lease);
  const bool one_host = std::all_of(set_up.hosts.begin(), set_up.hosts.end(),
                                    [&](const HostFacts& host) { return host.host == set_up.hosts[0].host; });
  if (listed > 1 && one_host)
    findings.add(Severity::warning, "one-host", "all sentinels are on one host: they fail together",
                 "a machine for each");
}

// ---- A cluster -------------------------------------------------------------------------------------------------------

// "10.0.0.1:6379, 10.0.0.2:6379 and 3 more".
std::string named_list(const HostFacts& view, const std::string& sort) {
  std::string text;
  const std::uint64_t count = view.number(sort);
  for (std::size_t index = 1; index <= std::min<std::uint64_t>(count, named_max); ++index)
    text += (index == 1 ? "" : ", ") + escaped(view.field(sort + std::to_string(index)));
  if (count > named_max) text += " and " + std::to_string(count - named_max) + " more";
  return text;
}

// As one node sees it.
void judge_view(Findings& findings, const SetUpFacts& set_up, const HostFacts& view) {
  const std::string by = "redis-cli --cluster check";
  const std::uint64_t assigned = view.number("cluster_slots_assigned");
  if (!view.field("cluster_slots_assigned").empty() && assigned < cluster_slots)
    findings.add(view.field("owner").empty() ? Severity::danger : Severity::warning, "cluster-slots-unassigned",
                 numbered(cluster_slots - assigned, "slot belongs", "slots belong") +
                     " to nobody: names in them have no lock" +
                     (view.field("owner").empty() ? ", that of " + escaped(set_up.name) + " among them" : ""),
                 by + ", then --cluster fix");
  if (const std::uint64_t failed = view.number("cluster_slots_fail"); failed != 0)
    // Where not all slots are wanted, names in the others go on.
    findings.add(view.field("cluster_state") == "ok" ? Severity::warning : Severity::danger, "cluster-slots-failed",
                 numbered(failed, "slot has", "slots have") + " a master that failed: names in them have no lock",
                 "bring the master back, or CLUSTER FAILOVER TAKEOVER on its replica");
  if (const std::uint64_t suspect = view.number("cluster_slots_pfail"); suspect != 0)
    findings.add(Severity::warning, "cluster-slots-suspect",
                 numbered(suspect, "slot has", "slots have") + " a master that does not answer all others",
                 "see that master and its network");
  if (view.number("failed") != 0)
    findings.add(Severity::warning, "cluster-nodes-failed",
                 numbered(view.number("failed"), "node", "nodes") + " failed: " + named_list(view, "failed"),
                 "bring them back, or CLUSTER FORGET what is gone for good");
  if (view.number("suspect") != 0)
    findings.add(
        Severity::warning, "cluster-nodes-suspect",
        numbered(view.number("suspect"), "node does", "nodes do") + " not answer: " + named_list(view, "suspect"),
        "see that they run, and their network");
  if (view.number("lonely") != 0)
    findings.add(Severity::warning, "cluster-no-replica",
                 numbered(view.number("lonely"), "master has", "masters have") +
                     " no replica that is well: " + named_list(view, "lonely") + "; when one dies, its slots are gone",
                 "a replica for each: CLUSTER REPLICATE");
  if (!view.field("masters").empty() && view.number("masters") < voters_min)
    findings.add(Severity::warning, "cluster-few-masters",
                 numbered(view.number("masters"), "master has", "masters have") +
                     " slots: when one is gone, no majority is left to fail over",
                 "three masters");
}

void judge_cluster(Findings& findings, const ServerFacts& facts, Duration lease) {
  const SetUpFacts& set_up = facts.set_up;
  const HostFacts* view = set_up.server.fields.empty() ? nullptr : &set_up.server;
  for (const HostFacts& host : set_up.hosts)
    if (view == nullptr && !host.fields.empty()) view = &host;
  findings.of("");
  if (view == nullptr) {
    findings.of(facts.address);
    if (set_up.server.refused)
      findings.add(Severity::information, "cluster-unchecked",
                   "this user may not ask what the cluster is: its health is not checked",
                   set_user(facts.user) + cluster_rules + ", on each node");
    return;
  }
  judge_view(findings, set_up, *view);
  judge_fail_over(findings, facts.setting("cluster-node-timeout").value_or(0), "cluster-node-timeout", lease);

  const std::string slot = "slot " + std::to_string(set_up.slot) + ", that of " + escaped(set_up.name) + ",";
  const HostFacts& server = set_up.server;
  if (server.number("leaving") != 0 || server.number("coming") != 0)
    findings.add(Severity::warning, "cluster-slot-moving",
                 slot + " is being moved: locks whose keys are not at its old master are refused until that is over",
                 "end the move: CLUSTER SETSLOT, or redis-cli --cluster fix");
  else if (server.number("open") != 0)
    findings.add(Severity::information, "cluster-slots-open",
                 numbered(server.number("open"), "other slot is", "other slots are") + " being moved at this master",
                 "end the move where nobody works at it: redis-cli --cluster fix");

  for (const HostFacts& host : set_up.hosts) {
    if (host.fields.empty()) continue;
    findings.of(host.address);
    if (host.field("cluster_state") == "fail")
      findings.add(Severity::danger, "cluster-down",
                   "this node says that the cluster is down: it refuses requests" +
                       std::string(host.number("cluster_slots_fail") != 0 ||
                                           host.number("cluster_slots_assigned") < cluster_slots
                                       ? ", those for slots that are well, too, as cluster-require-full-coverage is set"
                                       : ", as it reaches no majority of the masters"),
                   "see the slots and nodes that failed; where some names may go on without others, "
                   "cluster-require-full-coverage no");
    if (!host.field("owner_id").empty() && !view->field("owner_id").empty() &&
        host.field("owner_id") != view->field("owner_id"))
      findings.add(Severity::danger, "cluster-disagrees",
                   "this node says that " + slot + " is on " + escaped(host.field("owner")) +
                       ", and others that it is on " + escaped(view->field("owner")) +
                       ": clients may get one lock from both",
                   "see whether both are of one cluster: CLUSTER NODES on each");
  }
}

}  // namespace

void judge_set_up(Findings& findings, const ServerFacts& server, Duration lease) {
  const SetUpFacts& set_up = server.set_up;
  if (set_up.kind == SetUp::alone) return;
  judge_hosts(findings, set_up, server.user);
  if (set_up.kind == SetUp::sentinels)
    judge_sentinels(findings, set_up, lease);
  else
    judge_cluster(findings, server, lease);
  findings.of(server.address);
}

}  // namespace holdfast::cli
