// SPDX-License-Identifier: MIT
#include "diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/limits.hpp"
#include "kind_rights.hpp"
#include "messages.hpp"
#include "seconds.hpp"
#include "set_up_diagnosis.hpp"

namespace holdfast::cli {

namespace {

constexpr double million = 1e6;
// What the promise allows, and of that what is no news.
constexpr double rate_max = million / drift_divisor;
constexpr double rate_usual = rate_max / 10;
// Beside what round trips and rates explain of two readings of a clock, in microseconds: it was set.
constexpr double step_min = 1000;
// A clock that is so far off by its rate and goes evenly, over so many readings, was not set.
constexpr double even_rate_max = 0.5;
constexpr std::size_t even_pairs_min = 5;
// Of two readings in whole microseconds.
constexpr double reading_error = 2;
// Where round trips take all of the time between two readings, nothing is known; and no division is by zero.
constexpr double sure_min = 1e-3;
// What a replica lags by, and nobody need be told.
constexpr std::uint64_t lag_usual = 5;             // Seconds.
constexpr std::uint64_t behind_usual = 1'000'000;  // Bytes.
constexpr std::uint64_t young_uptime = 60;         // Seconds.

bool nearly_all(std::uint64_t used, std::uint64_t limit) { return limit != 0 && used > limit / 10 * 9; }

double seconds_in(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string milliseconds_text(Duration duration) {
  const std::int64_t microseconds = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  std::string fraction = std::to_string(microseconds % 1000);
  fraction.insert(0, 3 - std::min<std::size_t>(fraction.size(), 3), '0');
  return std::to_string(microseconds / 1000) + "." + fraction.substr(0, 2) + " ms";
}

// Of its round trip.
Instant middle_of(const TimePair& pair) { return pair.sent + pair.round_trip() / 2; }

// The server's time less ours, at the middle of the round trip.
std::int64_t offset_of(const TimePair& pair) {
  const Duration middle = middle_of(pair) - Instant();
  return pair.server_microseconds - std::chrono::duration_cast<std::chrono::microseconds>(middle).count();
}

// Times that a clock did not go on as one of this rate beside ours, which is known up to so much: both as parts of one. More than
// round trips and the worst rate that is allowed explain.
void count_steps(const std::vector<TimePair>& pairs, double rate, double unsure, ClockRate& found) {
  found.steps = 0;
  found.largest_step = Duration::zero();
  const TimePair* before = &pairs.front();
  for (const TimePair& pair : pairs) {
    const double between = seconds_in(middle_of(pair) - middle_of(*before)) * million;
    const double slack = seconds_in(before->round_trip() + pair.round_trip()) / 2 * million * (1 + std::abs(rate)) +
                         between * (1.0 / drift_divisor + unsure) + step_min;
    const double moved = std::abs(static_cast<double>(offset_of(pair) - offset_of(*before)) - between * rate);
    if (moved > slack) {
      ++found.steps;
      found.largest_step = std::max(found.largest_step, Duration(static_cast<std::int64_t>(moved) * 1000));
    }
    before = &pair;
  }
}

void judge_no_connection(Findings& findings, const ServerFacts& server) {
  switch (server.connection) {
    case Status::loading:
      findings.add(Severity::danger, "loading", server.no_connection,
                   "wait until it has; a long load is a reason for smaller data");
      break;
    case Status::busy_script:
      findings.add(Severity::danger, "busy", server.no_connection,
                   "SCRIPT KILL, or FUNCTION KILL; see which program sends such scripts");
      break;
    case Status::too_many_clients:
      findings.add(Severity::danger, "clients", server.no_connection,
                   "raise maxclients, or find out who holds the connections");
      break;
    case Status::cluster_down:
      findings.add(Severity::danger, "cluster-down", server.no_connection,
                   "CLUSTER INFO and CLUSTER NODES say which slots and masters are missing");
      break;
    case Status::read_only:
      findings.add(Severity::danger, "replica", server.no_connection, "see why the sentinels name a replica");
      break;
    case Status::no_permission:
      findings.add(
          Severity::danger, "rights", server.no_connection,
          "who is found by others must say what it is: ACL SETUSER USER +eval +info" +
              std::string(server.set_up.kind == SetUp::cluster ? " " + named("~NAME", server.set_up.name).rule : ""));
      break;
    default:
      findings.add(Severity::danger, "no-connection", server.no_connection,
                   "see that the server runs, and that the URL is right");
  }
}

// ---- What one server is ----------------------------------------------------------------------------------------------

void judge_memory(Findings& findings, const ServerFacts& server) {
  const std::uint64_t limit = server.number("maxmemory");
  const std::string policy = escaped(server.field("maxmemory_policy"));
  const ByteView words{std::string_view(policy)};
  const bool evicts = words.begins_with("allkeys") || words.begins_with("volatile");
  const char* const advice = "CONFIG SET maxmemory-policy noeviction, or give locks a server of their own";
  if (evicts && limit != 0)
    findings.add(
        Severity::danger, "eviction",
        "maxmemory is set and its policy is " + policy + ": when memory is full, locks that are held are evicted",
        advice);
  else if (evicts)
    findings.add(Severity::information, "eviction-later",
                 "the policy is " + policy + ", and would evict locks if maxmemory were ever set", advice);
  if (server.refusal == Status::out_of_memory)
    findings.add(Severity::danger, "memory-full",
                 "the server has reached maxmemory and refuses writes: no lock can be acquired (" +
                     escaped(server.refusal_words) + ")",
                 "raise maxmemory, or find out what fills the server");
  else if (!evicts && nearly_all(server.number("used_memory"), limit))
    findings.add(Severity::warning, "memory-full",
                 "more than nine tenths of maxmemory are used: soon no lock can be acquired",
                 "raise maxmemory, or find out what fills the server");
}

// What it refuses whoever asks, beside what is found elsewhere.
void judge_refusal(Findings& findings, const ServerFacts& server) {
  const std::string words = " (" + escaped(server.refusal_words) + ")";
  if (server.refusal == Status::too_few_replicas)
    findings.add(
        Severity::danger, "few-replicas",
        "fewer replicas are well than min-replicas-to-write wants: no lock can be acquired or released" + words,
        "see why they are away or lag; or a smaller min-replicas-to-write");
  if (server.refusal == Status::busy_script)
    findings.add(Severity::danger, "busy",
                 "a script of another client blocks the server: no lock can be acquired, renewed or released" + words,
                 "SCRIPT KILL, or FUNCTION KILL; see which program sends such scripts");
  if (server.refusal == Status::loading)
    findings.add(Severity::danger, "loading", "the server is loading its data, and serves nothing meanwhile" + words,
                 "wait until it has; a long load is a reason for smaller data");
  if (server.refusal == Status::cluster_down)
    findings.add(Severity::danger, "cluster-down", "the server refuses requests: its cluster is down" + words,
                 "CLUSTER INFO and CLUSTER NODES say which slots and masters are missing");
}

void judge_persistence(Findings& findings, const ServerFacts& server, Kind kind, bool quorum) {
  if (server.refusal == Status::disk_error)
    findings.add(
        Severity::danger, "disk",
        "the server refuses writes, since it could not write to its disk: no lock can be acquired or released (" +
            escaped(server.refusal_words) + ")",
        "see the server's log; free the disk or repair it");
  if (server.info.empty()) return;
  if (server.refusal != Status::disk_error &&
      (server.field("aof_last_write_status") == "err" || server.field("rdb_last_bgsave_status") == "err"))
    findings.add(Severity::danger, "disk",
                 "the server could not write to its disk: what it has granted may be forgotten by a restart",
                 "see the server's log; free the disk or repair it");
  const Severity forgets = quorum ? Severity::information : Severity::warning;
  const char* const guard = quorum ? "Of a quorum the restart guard makes up for that; " : "";
  const std::string advice =
      std::string(guard) + "CONFIG SET appendonly yes, with appendfsync always where no grant may be forgotten";
  const char* const fences = kind == Kind::fenced ? "; fences go on growing only if its clock is not set back" : "";
  if (server.field("aof_enabled") == "1") {
    if (server.appendfsync && *server.appendfsync == "no")
      findings.add(
          forgets, "fsync",
          "appendfsync is no: a crash of the machine forgets the grants of about half a minute" + std::string(fences),
          std::string(guard) + "appendfsync always, or everysec");
    else if (server.appendfsync && *server.appendfsync != "always")
      findings.add(Severity::information, "fsync",
                   "appendfsync is " + escaped(*server.appendfsync) +
                       ": a crash of the machine forgets the grants of about a second" + fences,
                   "appendfsync always, or a fence, where that matters");
  } else if (!server.save) {
    findings.add(forgets, "no-aof", std::string("there is no append-only file: a restart forgets grants") + fences,
                 advice);
  } else if (server.save->empty()) {
    findings.add(forgets, "no-persistence",
                 std::string("nothing is kept on disk: a restart forgets every lock, and lets others in") + fences,
                 advice);
  } else {
    findings.add(forgets, "snapshots",
                 std::string("only snapshots are kept: a restart forgets the grants since the last one") + fences,
                 advice);
  }
}

// Of INFO: "ip=..,port=..,state=online,offset=5,lag=0".
std::string value_in(const std::string& line, const std::string& name) {
  const std::size_t at = ("," + line).find("," + name + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 1;
  return line.substr(begin, line.find(',', begin) - begin);
}

void judge_replication(Findings& findings, const ServerFacts& server) {
  if (server.field("role") == "slave") {
    findings.add(Severity::danger, "replica",
                 "this is a replica of " + escaped(server.field("master_host")) + ":" +
                     escaped(server.field("master_port")) + ": it grants no locks",
                 "give the address of the master");
    return;
  }
  const std::uint64_t count = server.number("connected_slaves");
  if (count == 0) return;
  std::string text = std::to_string(count) + (count == 1 ? " replica" : " replicas");
  if (count > replicas_max) text += ", of which " + std::to_string(count - replicas_max) + " were not looked at";
  const bool bounded = server.setting("min-replicas-to-write").value_or(0) > 0;
  if (!bounded || count > replicas_max)
    findings.add(Severity::information, "replicas", text + ": a fail-over to one loses what had not reached it",
                 bounded
                     ? "a fence, or a quorum of independent servers, where that matters"
                     : "min-replicas-to-write bounds for how long a master that is cut off goes on granting; a fence, "
                       "or a quorum of independent servers, where more matters");
  for (const Replica& replica : server.replicas()) {
    const std::string who = escaped(replica.address);
    if (replica.state != "online")
      findings.add(Severity::warning, "replica-away",
                   "the replica " + who + " is not online: " + escaped(replica.state),
                   "see its log; no fail-over to it before that");
    else if (replica.lag_seconds > lag_usual || replica.behind_bytes > behind_usual)
      findings.add(Severity::warning, "replica-lag",
                   "the replica " + who + " lags by " + std::to_string(replica.lag_seconds) + " seconds and " +
                       std::to_string(replica.behind_bytes) + " bytes",
                   "a fail-over to it would lose grants; see its load and its network");
  }
}

// What says ok, and nothing of itself, is no server that was checked.
void judge_identity(Findings& findings, const ServerFacts& server, bool quorum) {
  if (server.silent || is_standstill(server.refusal)) return;
  const std::string advice =
      server.info_refused ? "ACL SETUSER " + (server.user.empty() ? "USER" : escaped(server.user)) + " +info +eval"
                          : "EVAL and INFO are needed for that";
  if (!server.no_info.empty() || server.version().text.empty())
    findings.add(Severity::information, "no-info",
                 server.info_refused
                     ? "this user may not ask what the server is: much is not checked"
                     : "the server did not say what it is: much is not checked (" +
                           (server.no_info.empty() ? "INFO names no version" : escaped(server.no_info)) + ")",
                 advice);
  if (quorum && server.field("run_id").empty())
    findings.add(Severity::danger, "no-vote", "the server did not say which one it is: in a quorum it has no vote",
                 advice);
}

void judge_service(Findings& findings, const ServerFacts& server, Duration lease) {
  // Whoever keeps a lock says something at each third of its lease.
  const std::uint64_t idle = server.setting("timeout").value_or(0);
  if (idle != 0 && static_cast<double>(idle) <= seconds_in(lease / renewal_divisor))
    findings.add(Severity::warning, "idle-timeout",
                 "the server closes a connection that says nothing for " + std::to_string(idle) +
                     " seconds: with a lease of " + seconds_text(lease) +
                     " seconds each renewal has to connect anew, and a connection that is refused then costs the lock",
                 "CONFIG SET timeout 0, or more than a third of the lease");
  if (server.setting("tcp-keepalive") == 0)
    findings.add(Severity::information, "keepalive",
                 "tcp-keepalive is 0: connections of clients that vanished stay, until maxclients are there",
                 "CONFIG SET tcp-keepalive 300");
  if (server.info.empty()) return;
  const Version version = server.version();
  if (version.major > 0 && version.major < 6)
    findings.add(Severity::warning, "old-version",
                 "version " + escaped(version.text) + " is no longer maintained, and has no ACL",
                 "Redis from 6.2 on, or Valkey");
  if (nearly_all(server.number("connected_clients"), server.number("maxclients")))
    findings.add(Severity::warning, "clients", "more than nine tenths of maxclients are connected",
                 "raise maxclients, or find out who holds the connections");
  // One that keeps each write has forgotten nothing.
  const bool keeps = server.field("aof_enabled") == "1" && server.appendfsync == "always";
  if (server.number("uptime_in_seconds") < young_uptime && !keeps)
    findings.add(Severity::information, "young",
                 "the server was started less than a minute ago, and may have forgotten locks",
                 "if that was no plan of yours, see its log");
}

// ---- Rights ----------------------------------------------------------------------------------------------------------

// Those of one kind, each with a space before it.
std::string list_of(const std::vector<Right>& rights, Kind kind, bool needed) {
  std::string list;
  for (const Right& right : rights)
    if (right.kind == kind && right.needed == needed) list += " " + right.rule;
  return list;
}
std::string list_of(const std::vector<std::string>& rules) {
  std::string list;
  for (const std::string& rule : rules) list += " " + escaped(rule);
  return list;
}

void judge_rights(Findings& findings, const ServerFacts& server, const Examination& examination) {
  const std::string set_user = "ACL SETUSER " + (server.user.empty() ? "USER" : escaped(server.user));
  if (!server.keys_refused.empty())
    findings.add(Severity::danger, "key",
                 "this user may not use all keys of " + escaped(examination.name) + ", a lock of kind " +
                     to_string(examination.kind),
                 set_user + list_of(server.keys_refused));
  if (!server.channels_refused.empty())
    findings.add(Severity::information, "channel",
                 "this user may not use all channels of " + escaped(examination.name) + ": waiters poll",
                 set_user + list_of(server.channels_refused));
  constexpr char no_command[] = "the server has no command for";
  for (const Kind kind :
       {Kind::mutex, Kind::reentrant, Kind::fenced, Kind::fair, Kind::read, Kind::write, Kind::semaphore}) {
    const bool asked_for = kind == examination.kind;
    const Severity severity = asked_for ? Severity::danger : Severity::information;
    const std::string locks = std::string("locks of kind ") + to_string(kind);
    if (const std::string rules = list_of(server.absent, kind, true); !rules.empty())
      findings.add(severity, "missing-command", std::string(no_command).append(rules).append(": no ").append(locks),
                   "see rename-command in its configuration; a service may not offer them");
    if (const std::string rules = list_of(server.missing, kind, true); !rules.empty())
      findings.add(severity, "rights", "this user cannot use " + locks, set_user + rules);
    if (!asked_for) continue;
    const std::string less = locks + " do with less than they could: waiters poll, or a lost connection is not ended";
    if (const std::string rules = list_of(server.absent, kind, false); !rules.empty())
      findings.add(Severity::information, "missing-command",
                   std::string(no_command).append(rules).append(": ").append(less),
                   "see rename-command in its configuration; a service may not offer them");
    if (const std::string rules = list_of(server.missing, kind, false); !rules.empty())
      findings.add(Severity::information, "optional-rights", less, set_user + rules);
  }
  if (!server.unchecked.empty() && !server.silent && !is_standstill(server.refusal))
    findings.add(Severity::information, "unchecked-rights",
                 "not to be asked for without harm:" + list_of(server.unchecked),
                 set_user + " +acl|whoami +acl|dryrun, for who runs holdfast doctor");
}

// ---- Acks ------------------------------------------------------------------------------------------------------------

// What stands in the way of grants that replicas are to confirm.
void judge_acks(Findings& findings, const ServerFacts& server, std::uint64_t acks) {
  if (acks == 0) return;
  const std::string in_vain = ": no grant with --acks counts, each is released again";
  if (server.wait_refused)
    findings.add(Severity::danger, "rights", "this user may not WAIT" + in_vain,
                 "ACL SETUSER " + (server.user.empty() ? "USER" : escaped(server.user)) + " " + wait_right);
  if (server.wait_absent)
    findings.add(Severity::danger, "missing-command", "the server has no command for WAIT" + in_vain,
                 "see rename-command in its configuration; a service may not offer it");
  if (server.field("role") != "master") return;
  std::uint64_t online = 0;
  for (const Replica& replica : server.replicas()) online += replica.state == "online" ? 1U : 0U;
  if (online < acks)
    findings.add(Severity::danger, "few-replicas",
                 "--acks " + std::to_string(acks) + ", and of the server's replicas " + std::to_string(online) +
                     (online == 1 ? " is" : " are") + " online" + in_vain,
                 "see why others are away, add some, or ask for fewer");
}

// ---- Time ------------------------------------------------------------------------------------------------------------

void judge_time(Findings& findings, const ServerFacts& server, const Examination& examination) {
  // Most kinds do without it.
  if (server.time_refused)
    findings.add(Severity::information, "no-time", "this user may not ask what time it is: the clock is not checked",
                 "ACL SETUSER " + (server.user.empty() ? "USER" : escaped(server.user)) + " +time");
  else if (server.silent || (server.times.empty() && !is_standstill(server.refusal)))
    findings.add(Severity::danger, "no-answer",
                 server.silent ? "the server did not answer in time: it was asked nothing more, and much is not checked"
                               : "the server did not say what time it is",
                 "see what keeps it: its log, SLOWLOG GET, its load, the network");
  if (server.times.empty()) return;
  if (const std::optional<ClockRate> rate = clock_rate_of(server.times)) {
    const double off = std::abs(rate->parts_per_million);
    const std::string text = std::to_string(std::lround(rate->parts_per_million)) + " ppm, give or take " +
                             std::to_string(std::lround(rate->uncertainty)) + ", over " + seconds_text(rate->over) +
                             " seconds";
    if (rate->steps != 0)
      findings.add(Severity::danger, "clock-step",
                   "the server's clock was set " + std::to_string(rate->steps) + " times meanwhile, by up to " +
                       milliseconds_text(rate->largest_step) + ": leases end early, or late",
                   "let chrony or ntpd slew the clock; see who sets it");
    else if (off - rate->uncertainty > rate_max)
      findings.add(Severity::danger, "clock-rate", "the server's clock runs at another rate than ours: " + text,
                   "one of the two clocks is broken, or is being corrected; the drift allows a hundredth");
    else if (off - rate->uncertainty > rate_usual)
      findings.add(Severity::warning, "clock-rate", "the server's clock runs at another rate than ours: " + text,
                   "see what corrects these clocks");
    else if (rate->uncertainty > rate_max)
      findings.add(Severity::information, "clock-unsure", "the rate of the server's clock cannot be told: " + text,
                   "measure for longer, with --seconds");
  }
  const Duration slow = percentile(server.sorted_round_trips(), 99);
  const Duration lease = examination.lease;
  const bool quorum = examination.servers.size() > 1;
  const Duration node_timeout = std::max<Duration>(lease / node_timeout_divisor, node_timeout_min);
  const std::string slow_text = "of the round trips one in a hundred takes " + milliseconds_text(slow) + " or more";
  // It must do for several attempts.
  const Duration margin = renewal_margin(lease);
  if (slow * 2 > margin)
    findings.add(Severity::danger, "round-trip",
                 slow_text + ": a watchdog has no second attempt within a lease of " + seconds_text(lease) + " seconds",
                 "a longer lease, or a nearer server");
  else if (slow * 10 > margin)
    findings.add(Severity::warning, "round-trip",
                 slow_text + ": few attempts of a watchdog fit into a lease of " + seconds_text(lease) + " seconds",
                 "a longer lease, or a nearer server");
  else if (quorum && slow > node_timeout)
    findings.add(Severity::warning, "node-timeout",
                 slow_text + ", and a node of a quorum has " + milliseconds_text(node_timeout) +
                     " to answer: its vote is often missed",
                 "a longer lease, or a nearer server");
}

// ---- Several servers -------------------------------------------------------------------------------------------------

void judge_independence(Findings& findings, const std::vector<ServerFacts>& servers) {
  findings.of("");
  for (std::size_t one = 0; one < servers.size(); ++one)
    for (std::size_t other = one + 1; other < servers.size(); ++other) {
      const auto both = [&](const char* name) {
        return !servers[one].field(name).empty() && servers[one].field(name) == servers[other].field(name);
      };
      const std::string pair = servers[one].address + " and " + servers[other].address;
      if (both("run_id"))
        findings.add(Severity::danger, "one-server", pair + " are one server: a quorum of it is none",
                     "a server for each address");
      else if (both("master_replid"))
        findings.add(Severity::danger, "one-data", pair + " replicate each other, or one master: they fail together",
                     "servers that know nothing of each other");
      else if (servers[one].host && servers[one].host == servers[other].host)
        findings.add(Severity::warning, "one-host", pair + " are on one host: they fail together",
                     "a machine for each");
    }
  if (servers.size() == 2)
    findings.add(Severity::information, "two-nodes", "a quorum of two needs both: it survives no failure",
                 "three servers");
}

}  // namespace

const char* to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::information: return "information";
    case Severity::warning: return "warning";
    case Severity::danger: return "danger";
  }
  return "invalid";
}

std::string ServerFacts::field(const std::string& name) const {
  const auto found = info.find(name);
  return found == info.end() ? "" : found->second;
}

std::optional<std::uint64_t> ServerFacts::setting(const std::string& name) const {
  const auto found = settings.find(name);
  if (found == settings.end()) return std::nullopt;
  return leading_number(found->second);
}

std::vector<Replica> ServerFacts::replicas() const {
  std::vector<Replica> all;
  const std::uint64_t end = number("master_repl_offset");
  for (std::uint64_t index = 0; index < std::min(number("connected_slaves"), replicas_max); ++index) {
    const std::string line = field("slave" + std::to_string(index));
    if (line.empty()) continue;
    const std::uint64_t offset = leading_number(value_in(line, "offset"));
    // It may have got on between the two numbers.
    all.push_back({value_in(line, "ip") + ":" + value_in(line, "port"), value_in(line, "state"),
                   leading_number(value_in(line, "lag")), end > offset ? end - offset : 0});
  }
  return all;
}

std::uint64_t ServerFacts::number(const std::string& name) const { return leading_number(field(name)); }

Version ServerFacts::version() const {
  Version version;
  version.text = field("valkey_version");
  version.valkey = !version.text.empty();
  if (!version.valkey) version.text = field("redis_version");
  version.major = leading_number(version.text);
  if (const std::size_t point = version.text.find('.'); point != std::string::npos)
    version.minor = leading_number(version.text.substr(point + 1));
  return version;
}

std::vector<Duration> ServerFacts::sorted_round_trips() const {
  std::vector<Duration> trips;
  for (const TimePair& pair : times) trips.push_back(pair.round_trip());
  std::sort(trips.begin(), trips.end());
  return trips;
}

Duration renewal_margin(Duration lease) noexcept { return lease - drift_of(lease) - lease / renewal_divisor; }

std::optional<ClockRate> clock_rate_of(const std::vector<TimePair>& pairs) {
  if (pairs.size() < 2) return std::nullopt;
  // The quickest of each end: its error is the least.
  const auto quickest = [&pairs](std::size_t begin, std::size_t end) {
    return *std::min_element(
        pairs.begin() + static_cast<std::ptrdiff_t>(begin), pairs.begin() + static_cast<std::ptrdiff_t>(end),
        [](const TimePair& one, const TimePair& other) { return one.round_trip() < other.round_trip(); });
  };
  const std::size_t part = std::max<std::size_t>(pairs.size() / 4, 1);
  const TimePair first = quickest(0, part);
  const TimePair last = quickest(pairs.size() - part, pairs.size());
  ClockRate rate;
  rate.over = middle_of(last) - middle_of(first);
  if (rate.over <= Duration::zero()) return std::nullopt;
  const double span = seconds_in(rate.over) * million;
  rate.parts_per_million = static_cast<double>(offset_of(last) - offset_of(first)) / span * million;
  // The server read its clock somewhere within each round trip, and by a clock of that rate.
  const double unsure = (seconds_in(first.round_trip() + last.round_trip()) / 2 * million + reading_error) / span;
  const double sure = std::max(1 - unsure, sure_min);
  rate.uncertainty = unsure / sure * (million + std::abs(rate.parts_per_million));
  count_steps(pairs, 0, 0, rate);
  // One that runs evenly, if much too fast, was not set again and again.
  const double even = rate.parts_per_million / million;
  if (rate.steps > 1 && pairs.size() >= even_pairs_min && std::abs(even) <= even_rate_max) {
    ClockRate other = rate;
    count_steps(pairs, even, rate.uncertainty / million, other);
    if (other.steps == 0) rate = other;
  }
  return rate;
}

Duration percentile(const std::vector<Duration>& sorted, int percent) {
  const std::size_t rank = (sorted.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

std::vector<Finding> diagnose(const Examination& examination) {
  std::vector<Finding> all;
  Findings findings(all);
  const bool quorum = examination.servers.size() > 1;
  for (const ServerFacts& server : examination.servers) {
    findings.of(server.address);
    if (!server.no_connection.empty()) {
      judge_no_connection(findings, server);
      judge_set_up(findings, server, examination.lease);
      continue;
    }
    judge_set_up(findings, server, examination.lease);
    judge_refusal(findings, server);
    judge_replication(findings, server);
    judge_memory(findings, server);
    judge_persistence(findings, server, examination.kind, quorum);
    judge_identity(findings, server, quorum);
    judge_service(findings, server, examination.lease);
    judge_rights(findings, server, examination);
    judge_acks(findings, server, examination.acks);
    judge_time(findings, server, examination);
  }
  judge_independence(findings, examination.servers);
  std::stable_sort(all.begin(), all.end(),
                   [](const Finding& one, const Finding& other) { return one.severity > other.severity; });
  return all;
}

}  // namespace holdfast::cli
