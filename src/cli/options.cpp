// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>

#include "failure_text.hpp"
#include "help_text.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/core/hold_request.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/sentinels.hpp"
#include "holdfast/url.hpp"
#include "messages.hpp"
#include "run_list.hpp"
#include "seconds.hpp"
#include "trust.hpp"

namespace holdfast::cli {

namespace {

// What is wrong with the command line, as a sentence without a full stop.
struct UsageError {
  std::string text;
};

// The words in front of the first "--", and those behind it. CLI11 sees only the former, so that no byte of a command
// is ever taken for an option; and in the place of URLs it sees their numbers, so that it keeps no copy of a password.
struct SplitArguments {
  std::vector<std::string> words;
  std::vector<std::string> rest;
  std::vector<std::string> urls;
  bool marked = false;
};

SplitArguments split_at_mark(int count, char** arguments) {
  constexpr char url_option[] = "--url";
  const std::string url_prefix = std::string(url_option) + "=";
  SplitArguments split;
  for (int index = 1; index < count; ++index) {
    const std::string_view word = arguments[index];
    const bool is_url = index > 1 && !split.marked && arguments[index - 1] == std::string_view(url_option);
    if (split.marked)
      split.rest.emplace_back(word);
    else if (word == "--")
      split.marked = true;
    else if (is_url || word.substr(0, url_prefix.size()) == url_prefix) {
      split.words.push_back((is_url ? "" : url_prefix) + std::to_string(split.urls.size()));
      split.urls.emplace_back(is_url ? word : word.substr(url_prefix.size()));
    } else {
      split.words.emplace_back(word);
    }
  }
  return split;
}

// The texts as they were given. They are judged after CLI11 is done, by our own readers: CLI11's would take "0x10",
// "1e300" and "nan" for numbers.
struct Texts {
  std::optional<std::string> name;
  std::optional<std::string> kind;
  std::optional<std::string> permits;
  std::optional<std::string> wait;
  std::optional<std::string> lease;
  std::optional<std::string> exit_code;
  std::optional<std::string> grace;
  std::optional<std::string> max_lease;
  std::optional<std::string> acks;
  std::optional<std::string> acks_timeout;
  std::optional<std::string> password_file;
  std::optional<std::string> token;
  std::optional<std::string> token_file;
  std::optional<std::string> seconds;
  std::optional<std::string> pattern;
  std::optional<std::string> svg;
  std::optional<std::string> stats;
  std::optional<std::string> stats_interval;
  std::vector<std::string> stats_labels;
  std::optional<std::string> duration;
  TrustOptions trust;
  std::vector<std::size_t> urls;  // By their place in SplitArguments.
  bool fence = false;
  bool force = false;
  bool no_restart_guard = false;
  bool no_wait = false;
  bool verbose = false;
  bool quiet = false;
  bool keep_environment = false;
  bool json = false;
};

void keep_in(CLI::App& app, const std::string& names, const std::function<void(const std::string&)>& keep) {
  // A callback and no variable: where CLI11 fills in variables, some texts have a meaning of their own to it.
  CLI::Option* const option =
      app.add_option_function<std::string>(names, std::function<void(const std::string&)>([](const std::string&) {}));
  option->take_last();
  option->each(keep);
}
// What is given last counts.
void keep_in(CLI::App& app, const std::string& names, std::optional<std::string>& text) {
  keep_in(app, names, [&text](const std::string& given) { text = given; });
}

// What every subcommand has.
void declare_all(CLI::App& app, Texts& texts) {
  keep_in(app, "NAME", texts.name);
  keep_in(app, "--url", [&texts](const std::string& given) { texts.urls.push_back(std::stoul(given)); });
  keep_in(app, "--password-file", texts.password_file);
  keep_in(app, "--tls-ca", texts.trust.ca_file);
  keep_in(app, "--tls-cert", texts.trust.certificate_file);
  keep_in(app, "--tls-key", texts.trust.key_file);
  keep_in(app, "--tls-server-name", texts.trust.server_name);
  app.add_flag("--tls-insecure", texts.trust.insecure);
}

void declare_kind(CLI::App& app, Texts& texts) { keep_in(app, "--kind", texts.kind); }

void declare_quiet(CLI::App& app, Texts& texts) { app.add_flag("-q,--quiet", texts.quiet); }

// What acquires a lock.
void declare_acquisition(CLI::App& app, Texts& texts) {
  declare_kind(app, texts);
  declare_quiet(app, texts);
  keep_in(app, "--permits", texts.permits);
  app.add_flag("--fence", texts.fence);
  keep_in(app, "-w,--wait", texts.wait);
  keep_in(app, "-l,--lease", texts.lease);
  keep_in(app, "-E,--busy-exit-code", texts.exit_code);
  keep_in(app, "--max-lease", texts.max_lease);
  app.add_flag("--no-restart-guard", texts.no_restart_guard);
  keep_in(app, "--acks", texts.acks);
  keep_in(app, "--acks-timeout", texts.acks_timeout);
  app.add_flag("-n,--no-wait", texts.no_wait);
  app.add_flag("-v,--verbose", texts.verbose);
}

void declare_run(CLI::App& app, Texts& texts) {
  declare_acquisition(app, texts);
  keep_in(app, "-k,--grace", texts.grace);
  app.add_flag("--keep-env", texts.keep_environment);
  keep_in(app, "--stats", texts.stats);
  keep_in(app, "--stats-interval", texts.stats_interval);
  keep_in(app, "--stats-label", [&texts](const std::string& given) { texts.stats_labels.push_back(given); });
}

void declare_acquire(CLI::App& app, Texts& texts) {
  declare_acquisition(app, texts);
  app.add_flag("--json", texts.json);
}

// What speaks of a hold by its token.
void declare_token(CLI::App& app, Texts& texts) {
  declare_kind(app, texts);
  declare_quiet(app, texts);
  keep_in(app, "--token", texts.token);
  keep_in(app, "--token-file", texts.token_file);
}

void declare_renew(CLI::App& app, Texts& texts) {
  declare_token(app, texts);
  keep_in(app, "-l,--lease", texts.lease);
  keep_in(app, "--max-lease", texts.max_lease);
}

void declare_doctor(CLI::App& app, Texts& texts) {
  declare_kind(app, texts);
  keep_in(app, "--acks", texts.acks);
  keep_in(app, "-l,--lease", texts.lease);
  keep_in(app, "--seconds", texts.seconds);
  app.add_flag("--json", texts.json);
}

void declare_watch(CLI::App& app, Texts& texts) {
  keep_in(app, "--pattern", texts.pattern);
  keep_in(app, "--svg", texts.svg);
  keep_in(app, "--for", texts.duration);
  app.add_flag("--json", texts.json);
}

void declare_info(CLI::App& /*app*/, Texts& /*texts*/) {}

void declare_release(CLI::App& app, Texts& texts) {
  declare_token(app, texts);
  app.add_flag("-f,--force", texts.force);
}

// Kinds of lock whose order or counts are one server's.
bool needs_one_server(const std::string& kind) {
  constexpr std::string_view names[] = {"fair", "semaphore", "read", "write", "read/write", "read-write"};
  return std::find(std::begin(names), std::end(names), kind) != std::end(names);
}

std::uint32_t permits_from(const std::string& text) {
  std::uint64_t permits = 0;
  if (!read_decimal(ByteView(std::string_view(text)), permits_max, permits) || permits == 0)
    throw UsageError{"--permits: '" + escaped(text) + "' is no number of permits; it takes one from 1 to " +
                     std::to_string(permits_max)};
  return static_cast<std::uint32_t>(permits);
}

LockChoice choice_from(const Texts& texts, std::size_t server_count) {
  LockChoice choice = {.fence = texts.fence};
  if (texts.kind) {
    const std::optional<Kind> kind = kind_named(*texts.kind);
    if (server_count > 1 && needs_one_server(*texts.kind))
      throw UsageError{"--kind: there is no '" + *texts.kind +
                       "' on several servers: its order and its counts are one server's, and several do not agree on " +
                       "them; there are " + quorum_kind_names};
    const char* const names = server_count > 1 ? quorum_kind_names : kind_names;
    if (!kind) throw UsageError{"--kind: '" + escaped(*texts.kind) + "' is no kind of lock; there are " + names};
    choice.kind = *kind;
  }
  if (texts.permits) {
    if (choice.kind != Kind::semaphore) throw UsageError{"--permits is of --kind semaphore"};
    choice.permits = permits_from(*texts.permits);
  }
  const bool may_fence = choice.kind == Kind::mutex || choice.kind == Kind::fenced || choice.kind == Kind::fair;
  if (choice.fence && !may_fence)
    throw UsageError{std::string("--fence: a ") + to_string(choice.kind) +
                     " lock has no fence; --kind fenced is one that has"};
  if (choice.kind == Kind::fenced) choice.fence = true;
  return choice;
}

Duration seconds_of(const char* option, const std::string& text) {
  const std::optional<Duration> duration = parse_seconds(text);
  if (!duration)
    throw UsageError{std::string(option) + ": '" + escaped(text) +
                     "' is no time; it takes seconds such as 30 or 0.25, with up to nine digits on each side"};
  return *duration;
}

int exit_code_from(const std::string& text) {
  int code = 0;
  bool valid = !text.empty() && text.size() <= 3;
  for (const char byte : text) {
    valid = valid && byte >= '0' && byte <= '9';
    if (valid) code = code * 10 + (byte - '0');
  }
  if (!valid || code > exit_code_max)
    throw UsageError{"-E: '" + escaped(text) + "' is no exit code; it takes a number from 0 to 255"};
  return code;
}

Duration lease_from(const char* option, const std::string& text) {
  const Duration lease = seconds_of(option, text);
  if (lease < lease_min || lease > lease_max || lease % std::chrono::milliseconds(1) != Duration::zero())
    throw UsageError{std::string(option) + ": a lease has whole milliseconds, from " + seconds_text(lease_min) +
                     " to " + seconds_text(lease_max) + " seconds; '" + escaped(text) + "' has not"};
  return lease;
}

// What the library would refuse, said while it can still be mended. Of all kinds, a reader alone has a limit of its own.
void check_lease(Kind kind, Duration lease) {
  const Duration most = kind_table(kind).lease_max;
  if (lease > most)
    throw UsageError{std::string("-l: a ") + to_string(kind) + " lock has a lease of at most " + seconds_text(most) +
                     " seconds, and " + seconds_text(lease) +
                     " are more: a Redisson that reads, too, gives the whole lock its own " + seconds_text(most) +
                     " seconds whenever it renews, and would cut ours short"};
}

// Long enough for a command to tidy up, and short beside the lease, so that a renewal may fail a few times first.
Duration default_grace(Duration lease) noexcept {
  constexpr Duration grace_max = std::chrono::seconds(5);
  return lease / 6 < grace_max ? lease / 6 : grace_max;
}

Duration grace_from(const std::string& text, Duration lease) {
  const Duration grace = seconds_of("-k", text);
  if (grace > lease / 2)
    throw UsageError{"-k: " + seconds_text(grace) + " seconds of grace are more than half of the lease of " +
                     seconds_text(lease) + " seconds"};
  return grace;
}

// One request may take half of a short lease: what is granted later is worth little.
Duration request_timeout_for(Duration lease) noexcept {
  const Duration half = lease / 2;
  return half < request_timeout_default ? half : request_timeout_default;
}

// Not every peer of a mutex announces its release (redis-py does not), so a waiter also asks by itself. Twice a second
// costs a server nothing, and a command that starts half a second late is no worse for it.
Duration max_poll_of(Kind kind) noexcept {
  constexpr Duration unannounced = std::chrono::milliseconds(500);
  return kind == Kind::mutex ? unannounced : max_poll_default;
}

// ---- Servers -----------------------------------------------------------------------------------------------------

// URLs have no spaces: in them these are %20.
std::vector<std::string> split_urls(const std::string& text) {
  std::vector<std::string> urls;
  for (std::size_t end = 0, begin = 0; (begin = text.find_first_not_of(' ', end)) != std::string::npos;) {
    end = std::min(text.find(' ', begin), text.size());
    urls.push_back(text.substr(begin, end - begin));
  }
  if (urls.empty()) urls.push_back(text);
  return urls;
}

// What may have been meant, where that can be told. Never the text itself: it may be a password that went astray.
std::string advice_on(const std::string& url) {
  const auto begins_with = [text = ByteView(std::string_view(url))](ByteView prefix) {
    return text.begins_with(prefix);
  };
  constexpr char host_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  if (begins_with("/") || begins_with("unix:")) return "; a socket is written unix:///PATH";
  if (begins_with("redis:") || begins_with("rediss:") || begins_with("valkey") ||
      url.find("://") != std::string::npos || url.empty())
    return "";
  const std::size_t host_end = std::min(url.find_first_not_of(host_bytes), url.size());
  if (host_end == url.size()) return "; a host is written redis://HOST, as redis://localhost";
  if (url[host_end] == ':') return "; a host and its port are written redis://HOST:PORT, as redis://localhost:6379";
  return "";
}

// The one for servers whose URL has none.
std::optional<std::string> password_from(const Texts& texts, const Environment& environment) {
  const char* source = "--password-file";
  const std::optional<std::string>* file = &texts.password_file;
  if (!*file) {
    source = "HOLDFAST_PASSWORD_FILE";
    file = &environment.password_file;
    if (*file && environment.password)
      throw UsageError{"HOLDFAST_PASSWORD and HOLDFAST_PASSWORD_FILE exclude each other"};
    if (!*file && environment.password && environment.password->size() > password_size_max)
      throw UsageError{"HOLDFAST_PASSWORD: a password has at most " + std::to_string(password_size_max) + " bytes"};
    if (!*file && environment.password) return environment.password;
  }
  if (!*file) {
    source = "the credential";
    file = &environment.credential;
    if (!*file) return std::nullopt;
  }
  LineRead read = read_password(**file);
  if (!read.error.empty()) throw UsageError{std::string(source) + ": '" + escaped(**file) + "': " + read.error};
  return std::move(read.line);
}

// A URL with a user waits for the password that comes from elsewhere.
std::string with_place_for_password(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return url;
  const std::size_t begin = scheme + 3;
  const std::size_t end = url.substr(0, url.find('/', begin)).rfind('@');
  if (end == std::string::npos || end <= begin || url.find(':', begin) < end) return url;
  return url.substr(0, end) + ":x" + url.substr(end);
}

bool begins_with_any(const std::string& url, std::initializer_list<ByteView> schemes) noexcept {
  for (const ByteView scheme : schemes)
    if (ByteView(std::string_view(url)).begins_with(scheme)) return true;
  return false;
}
bool has_sentinels(const std::string& url) noexcept {
  return begins_with_any(url, {"redis-sentinel://", "rediss-sentinel://", "valkey-sentinel://", "valkeys-sentinel://"});
}
bool is_cluster(const std::string& url) noexcept {
  return begins_with_any(url, {"redis-cluster://", "rediss-cluster://", "valkey-cluster://", "valkeys-cluster://"});
}

// For as long as the command runs: its clients ask them again and again.
Sentinels& more_sentinels() {
  static std::deque<Sentinels> all;
  return all.emplace_back();
}

// The same of a cluster. Where the URL does not say whose slot is looked for, it is the lock's.
Cluster& more_clusters(const std::string& name) {
  static std::deque<Cluster> all;
  Cluster& cluster = all.emplace_back();
  cluster.configure({.hosts = {}, .name = ByteView(std::string_view(name))});
  return cluster;
}

void read_server(const std::string& url, const std::string& which, const std::optional<std::string>& password,
                 const std::string& name, ClientConfig& server) {
  const bool without = password_in(url).empty();
  if (has_sentinels(url)) server.topology = &more_sentinels();
  if (is_cluster(url)) server.topology = &more_clusters(name);
  std::string completed = without && password ? with_place_for_password(url) : url;
  // Never the URL itself: it may hold a password.
  const char* reason = nullptr;
  if (parse_url(ByteView(std::string_view(completed)), server, &reason) != Status::ok)
    throw UsageError{which + ": " + reason + advice_on(url)};
  wipe(completed);
  if (without && password) server.password.assign(ByteView(std::string_view(*password)));
  if (const ConfigProblem problem = validate(server); problem.found())
    throw UsageError{which + ": " + problem.field + ": " + problem.reason};
}

// Where nobody names a server, it is the default one. But not by accident: the run that we are inside of may have had one by a
// HOLDFAST_URL that it took away.
void expect_default_server() {
  const RunList outer = RunList::inherited();
  if (!outer.runs().empty() && outer.runs().back().url_taken)
    throw UsageError{
        "no server is given: the run that this one is inside of has taken HOLDFAST_URL out of the environment, since "
        "there "
        "is a password in it; give one, or give that run --keep-env"};
}

// `name` is the lock's.
Servers servers_from(const Texts& texts, SplitArguments& split, const Environment& environment,
                     const std::string& name) {
  std::vector<std::string> urls;
  for (const std::size_t place : texts.urls) urls.push_back(split.urls.at(place));
  const std::string source = urls.empty() ? "HOLDFAST_URL" : "--url";
  if (urls.empty() && environment.urls) urls = split_urls(*environment.urls);
  if (urls.empty()) expect_default_server();
  if (urls.size() > nodes_max)
    throw UsageError{source + ": a quorum has at most " + std::to_string(nodes_max) + " nodes, and these are " +
                     std::to_string(urls.size())};
  if (urls.size() > 1 && std::any_of(urls.begin(), urls.end(), is_cluster))
    throw UsageError{
        source +
        ": a quorum is of independent servers, and a cluster has one master for each name: give its URL alone, "
        "with other nodes after commas"};
  std::optional<std::string> password = password_from(texts, environment);
  const auto has_password = [](const std::string& url) { return !password_in(url).empty(); };
  if (texts.password_file && !urls.empty() && std::all_of(urls.begin(), urls.end(), has_password))
    throw UsageError{"--password-file: there is a password in the URL already"};

  StreamSecurity* tls = nullptr;
  if (std::any_of(urls.begin(), urls.end(), is_secure)) {
    std::string error;
    tls = open_trust(texts.trust, error);
    if (tls == nullptr) throw UsageError{error};
  } else if (const char* const given = texts.trust.given(); given != nullptr) {
    throw UsageError{std::string(given) + " is of rediss://, and no URL begins so"};
  }
  Servers servers(std::max<std::size_t>(urls.size(), 1));
  if (urls.empty() && password) servers[0].password.assign(ByteView(std::string_view(*password)));
  for (std::size_t index = 0; index < urls.size(); ++index) {
    const std::string which = urls.size() == 1 ? source : source + ", number " + std::to_string(index + 1);
    if (is_secure(urls[index])) servers[index].tls = tls;
    read_server(urls[index], which, password, name, servers[index]);
    for (std::size_t other = 0; other < index; ++other)
      if (address_text(servers[other]) == address_text(servers[index]))
        throw UsageError{source + ": nodes " + std::to_string(other + 1) + " and " + std::to_string(index + 1) +
                         " are both " + address_text(servers[index]) + "; a quorum needs a server for each"};
  }
  for (std::vector<std::string>* const copies : {&urls, &split.urls})
    for (std::string& url : *copies) wipe(url);
  if (password) wipe(*password);
  return servers;
}

// What only a quorum has.
void read_quorum(QuorumConfig& quorum, const Texts& texts, std::size_t server_count, Duration lease) {
  if (server_count == 1) {
    if (texts.max_lease) throw UsageError{"--max-lease is of a quorum, and there is one server"};
    if (texts.no_restart_guard) throw UsageError{"--no-restart-guard is of a quorum, and there is one server"};
    return;
  }
  if (texts.max_lease) quorum.max_lease = lease_from("--max-lease", *texts.max_lease);
  quorum.restart_guard = !texts.no_restart_guard;
  if (lease > quorum.max_lease)
    throw UsageError{"-l: a lease of " + seconds_text(lease) + " seconds is longer than --max-lease, " +
                     seconds_text(quorum.max_lease) +
                     " seconds, which is to be the same for all who share the "
                     "quorum"};
}

// How many replicas must have a grant; 0: it is not asked. Those of a quorum's servers are not counted.
std::uint8_t acks_from(const Servers& servers, const Texts& texts) {
  std::uint64_t acks = 0;
  if (!texts.acks) return 0;
  if (!read_decimal(ByteView(std::string_view(*texts.acks)), acks_max, acks) || acks == 0)
    throw UsageError{"--acks: '" + escaped(*texts.acks) + "' is no number of replicas; it takes one from 1 to " +
                     std::to_string(acks_max)};
  if (servers.size() > 1)
    throw UsageError{"--acks is of one server with its replicas: a quorum counts its servers, and there are " +
                     std::to_string(servers.size())};
  return static_cast<std::uint8_t>(acks);
}

void read_acks(Servers& servers, const Texts& texts, Duration lease) {
  const std::uint8_t acks = acks_from(servers, texts);
  if (acks == 0) {
    if (texts.acks_timeout) throw UsageError{"--acks-timeout is of --acks, and there is none"};
    return;
  }
  ClientConfig& server = servers.front();
  server.acks = acks;
  // What is confirmed late is worth little.
  server.acks_timeout = std::max<Duration>(std::min<Duration>(acks_timeout_default, lease / 8), timeout_min);
  if (texts.acks_timeout) server.acks_timeout = seconds_of("--acks-timeout", *texts.acks_timeout);
  if (server.acks_timeout < timeout_min || server.acks_timeout > lease / 4)
    throw UsageError{"--acks-timeout: it is from " + seconds_text(timeout_min) +
                     " seconds to a quarter of the lease, " + seconds_text(lease / 4)};
  if (const ConfigProblem problem = validate(server); problem.found())
    throw UsageError{std::string("--acks-timeout: ") + problem.reason};
}

void check_name(const std::string& name) {
  if (name.empty()) throw UsageError{"NAME is empty"};
  if (name.size() > key_size_max)
    throw UsageError{"NAME has " + std::to_string(name.size()) + " bytes; a lock's name has at most " +
                     std::to_string(key_size_max)};
}

// NAME alone: in front of a "--", or behind it, so that it may begin with a dash.
std::string take_name(const Texts& texts, SplitArguments& split) {
  std::vector<std::string> names = std::move(split.rest);
  if (texts.name) names.push_back(*texts.name);
  if (names.empty()) throw UsageError{"NAME is missing"};
  if (names.size() > 1) throw UsageError{"there is more behind the -- than one NAME"};
  check_name(names[0]);
  return names[0];
}

// NAME stands in front of the "--", or, so that it may begin with a dash, behind it and in front of another one.
void take_name_and_command(RunOptions& options, const Texts& texts, SplitArguments& split) {
  auto command = split.rest.begin();
  if (texts.name) {
    options.name = *texts.name;
    if (!split.marked) throw UsageError{"there is no command: NAME must be followed by -- and the command"};
  } else {
    if (split.rest.size() < 2 || split.rest[1] != "--") throw UsageError{"NAME is missing in front of the --"};
    options.name = split.rest[0];
    command += 2;
  }
  options.command.assign(std::make_move_iterator(command), std::make_move_iterator(split.rest.end()));
  check_name(options.name);
  if (options.command.empty()) throw UsageError{"there is no command behind the --"};
}

// What is asked of the lock and of its servers. REQUIRES: the name is known.
void read_acquisition(AcquisitionOptions& options, const Texts& texts, SplitArguments& split,
                      const Environment& environment) {
  options.servers = servers_from(texts, split, environment, options.name);
  options.choice = choice_from(texts, options.servers.size());
  if (texts.no_wait && texts.wait) throw UsageError{"-n and -w exclude each other"};
  if (texts.no_wait) options.wait = no_wait;
  if (texts.wait) options.wait = seconds_of("-w", *texts.wait);
  if (texts.lease) options.lease = lease_from("-l", *texts.lease);
  check_lease(options.choice.kind, options.lease);
  if (texts.exit_code) options.not_acquired = exit_code_from(*texts.exit_code);
  read_quorum(options.quorum, texts, options.servers.size(), options.lease);
  for (ClientConfig& server : options.servers) {
    server.request_timeout = request_timeout_for(options.lease);
    server.max_poll = max_poll_of(options.choice.kind);
  }
  read_acks(options.servers, texts, options.lease);
  if (texts.verbose && texts.quiet) throw UsageError{"-q and -v exclude each other"};
  options.verbose = texts.verbose;
  options.quiet = texts.quiet;
}

void add_label(RunOptions& options, const std::string& text) {
  const std::size_t end = text.find('=');
  const std::string what = "--stats-label: '" + escaped(text) + "': ";
  if (options.stats.empty()) throw UsageError{"--stats-label: there is no --stats"};
  if (end == std::string::npos) throw UsageError{what + "it must be NAME=VALUE"};
  std::pair<std::string, std::string> label(text.substr(0, end), text.substr(end + 1));
  const std::string_view name = label.first;
  const std::string_view value = label.second;
  if (const char* const problem = metric_label_problem({ByteView(name), ByteView(value)}); problem != nullptr)
    throw UsageError{what + problem};
  for (const auto& other : options.stats_labels)
    if (other.first == label.first) throw UsageError{what + "its name is given twice"};
  if (options.stats_labels.size() == metric_labels_max)
    throw UsageError{"--stats-label: there may be " + std::to_string(metric_labels_max) + " at the most"};
  options.stats_labels.push_back(std::move(label));
}

Duration stats_interval_from(const std::string& text, bool has_file) {
  if (!has_file) throw UsageError{"--stats-interval: there is no --stats"};
  const Duration interval = seconds_of("--stats-interval", text);
  if (interval < stats_interval_min || interval > stats_interval_max)
    throw UsageError{"--stats-interval: it takes from " + seconds_text(stats_interval_min) + " to " +
                     seconds_text(stats_interval_max) + " seconds, and not '" + escaped(text) + "'"};
  return interval;
}

Invocation read_run(const Texts& texts, SplitArguments& split, const Environment& environment) {
  RunOptions options;
  take_name_and_command(options, texts, split);
  read_acquisition(options, texts, split, environment);
  options.grace = texts.grace ? grace_from(*texts.grace, options.lease) : default_grace(options.lease);
  options.keep_environment = texts.keep_environment;
  if (texts.stats && texts.stats->empty()) throw UsageError{"--stats: the file has no name"};
  options.stats = texts.stats.value_or("");
  if (texts.stats_interval) options.stats_interval = stats_interval_from(*texts.stats_interval, !options.stats.empty());
  for (const std::string& label : texts.stats_labels) add_label(options, label);
  return options;
}

Invocation read_acquire(const Texts& texts, SplitArguments& split, const Environment& environment) {
  AcquireOptions options;
  options.name = take_name(texts, split);
  if (!texts.lease) throw UsageError{"-l is missing: nobody renews the lock by itself, so say how long it is to last"};
  read_acquisition(options, texts, split, environment);
  options.json = texts.json;
  return options;
}

// ---- A hold by its token -----------------------------------------------------------------------------------------

// The first line of what `holdfast acquire` has printed, without --json.
std::string token_in(const std::string& path) {
  static_assert(token_size_max <= line_size_max);
  LineRead read = read_line(path, token_size_max);
  if (read.error.empty() && read.line.empty()) read.error = "there is no token in its first line";
  if (!read.error.empty()) throw UsageError{"--token-file: '" + escaped(path) + "': " + read.error};
  return std::move(read.line);
}

std::string token_from(const Texts& texts, const Environment& environment, const char* otherwise) {
  if (texts.token && texts.token_file) throw UsageError{"--token and --token-file exclude each other"};
  if (texts.token) return *texts.token;
  if (texts.token_file) return token_in(*texts.token_file);
  if (environment.token) return *environment.token;
  throw UsageError{
      "there is no token: give --token, --token-file or HOLDFAST_TOKEN, with what holdfast acquire printed" +
      std::string(otherwise)};
}

void check_token(Kind kind, const std::string& token) {
  if (is_token_of(kind_table(kind), ByteView(std::string_view(token)))) return;
  const bool random = kind_table(kind).token == TokenSource::random;
  std::string text =
      "'" + escaped(token.substr(0, token_size_max)) + "' is no token of " + to_string(kind) + ": it has ";
  text += random ? "32 hexadecimal digits in lower case" : "the form UUID:NUMBER, in lower case";
  if (is_token_of(kind_table(random ? Kind::fair : Kind::mutex), ByteView(std::string_view(token))))
    text += random ? "; this is one of another --kind: reentrant, fenced, fair, read or write"
                   : "; this is one of another --kind: mutex or semaphore";
  throw UsageError{text};
}

HeldToken hold_from(const Texts& texts, SplitArguments& split, const Environment& environment, const char* otherwise) {
  HeldToken hold;
  hold.name = take_name(texts, split);
  hold.servers = servers_from(texts, split, environment, hold.name);
  hold.token = token_from(texts, environment, otherwise);
  hold.kind = choice_from(texts, hold.servers.size()).kind;
  check_token(hold.kind, hold.token);
  hold.quiet = texts.quiet;
  return hold;
}

Invocation read_renew(const Texts& texts, SplitArguments& split, const Environment& environment) {
  RenewOptions options = {.hold = hold_from(texts, split, environment, "")};
  if (texts.lease) options.lease = lease_from("-l", *texts.lease);
  check_lease(options.hold.kind, options.lease);
  QuorumConfig quorum;
  read_quorum(quorum, texts, options.hold.servers.size(), options.lease);
  Servers& servers = options.hold.servers;
  for (ClientConfig& server : servers) {
    server.request_timeout = request_timeout_for(options.lease);
    // All are waited for before one is asked.
    if (servers.size() > 1)
      server.connect_timeout =
          std::min(server.connect_timeout, std::max<Duration>(options.lease / 2, node_timeout_min));
  }
  return options;
}

Invocation read_release_by_token(const Texts& texts, SplitArguments& split, const Environment& environment) {
  TokenReleaseOptions options = {
      .hold = hold_from(texts, split, environment,
                        "; or --force, which takes the lock from whoever holds it, and does not ask")};
  // HOLDFAST_TOKEN may be a run's own.
  if (RunList::inherited().find_token(options.hold.token) != nullptr)
    throw UsageError{"this is the token of the run that this one is inside of, which releases it by itself"};
  return options;
}

Invocation read_info(const Texts& texts, SplitArguments& split, const Environment& environment) {
  InfoOptions options = {.name = take_name(texts, split), .servers = {}};
  options.servers = servers_from(texts, split, environment, options.name);
  return options;
}

// How long doctor looks at clocks, at the most: nobody means to wait for more.
constexpr Duration look_max = std::chrono::hours(1);

Invocation read_doctor(const Texts& texts, SplitArguments& split, const Environment& environment) {
  DoctorOptions options;
  if (texts.name || !split.rest.empty()) options.name = take_name(texts, split);
  // A name whose right is asked for, where none is given.
  options.servers = servers_from(texts, split, environment, options.name.empty() ? "holdfast_doctor" : options.name);
  options.kind = choice_from(texts, options.servers.size()).kind;
  options.acks = acks_from(options.servers, texts);
  if (texts.lease) options.lease = lease_from("-l", *texts.lease);
  if (texts.seconds) options.duration = seconds_of("--seconds", *texts.seconds);
  if (options.duration > look_max) throw UsageError{"--seconds: an hour is the most"};
  options.json = texts.json;
  return options;
}

Invocation read_watch(const Texts& texts, SplitArguments& split, const Environment& environment) {
  WatchOptions options;
  if (texts.name || !split.rest.empty()) options.name = take_name(texts, split);
  if (texts.pattern) {
    if (!options.name.empty()) throw UsageError{"NAME and --pattern exclude each other"};
    if (texts.pattern->empty() || texts.pattern->size() > key_size_max)
      throw UsageError{"--pattern: it has from 1 to " + std::to_string(key_size_max) + " bytes"};
    options.pattern = *texts.pattern;
  }
  const Servers servers = servers_from(texts, split, environment, options.name.empty() ? "holdfast" : options.name);
  if (options.name.empty() && servers.front().topology != nullptr &&
      servers.front().topology->table().no_voter != nullptr)
    throw UsageError{"in a cluster watch follows one NAME, since each master has other names"};
  if (servers.size() > 1)
    throw UsageError{"watch looks at one server, and these are " + std::to_string(servers.size()) +
                     "; start one for each"};
  options.server = servers.front();
  if (texts.svg && texts.svg->empty()) throw UsageError{"--svg: the file has no name"};
  options.svg = texts.svg.value_or("");
  if (texts.duration) options.duration = seconds_of("--for", *texts.duration);
  options.json = texts.json;
  return options;
}

Invocation read_release(const Texts& texts, SplitArguments& split, const Environment& environment) {
  if (!texts.force) return read_release_by_token(texts, split, environment);
  if (texts.token || texts.token_file || texts.kind)
    throw UsageError{"--force asks for no token: it takes the lock, of whatever kind, from whoever holds it"};
  if (texts.quiet) throw UsageError{"-q is of a release by token: what --force takes from whom is always said"};
  ReleaseOptions options = {.name = take_name(texts, split), .servers = {}};
  options.servers = servers_from(texts, split, environment, options.name);
  return options;
}

struct Subcommand {
  const char* name;
  const char* help;
  void (*declare)(CLI::App& app, Texts& texts);
  // Throws UsageError.
  Invocation (*read)(const Texts& texts, SplitArguments& split, const Environment& environment);
};
constexpr Subcommand subcommands[] = {
    {"run", run_help_text, declare_run, read_run},
    {"acquire", acquire_help_text, declare_acquire, read_acquire},
    {"renew", renew_help_text, declare_renew, read_renew},
    {"info", info_help_text, declare_info, read_info},
    {"doctor", doctor_help_text, declare_doctor, read_doctor},
    {"watch", watch_help_text, declare_watch, read_watch},
    {"release", release_help_text, declare_release, read_release},
};

void declare_command(CLI::App& app, Texts& texts) {
  app.set_help_flag("-h,--help", "");
  app.set_version_flag("--version", std::string(HOLDFAST_VERSION));
  app.require_subcommand(1);
  for (const Subcommand& subcommand : subcommands) {
    CLI::App& declared = *app.add_subcommand(subcommand.name);
    declare_all(declared, texts);
    subcommand.declare(declared, texts);
  }
}

const Subcommand* parsed_of(const CLI::App& app) {
  for (const Subcommand& subcommand : subcommands)
    if (app.got_subcommand(subcommand.name)) return &subcommand;
  return nullptr;
}

// Of words without one of the subcommands.
std::string no_subcommand(const std::vector<std::string>& words) {
  const std::string first = words.empty() ? "" : words.front();
  std::string text;
  if (first.empty())
    text = "a subcommand is required";
  else if (first.front() == '-')
    text = escaped(first.substr(0, first.find('='))) + ": options stand after a subcommand";
  else
    text = "'" + escaped(first) + "' is no subcommand";
  text += "; there are";
  for (const Subcommand& subcommand : subcommands) {
    const bool last = &subcommand == std::end(subcommands) - 1;
    text += std::string(&subcommand == subcommands ? " " : last ? " and " : ", ") + subcommand.name;
  }
  return text;
}

// What CLI11 or we say of words, without those that may have a password.
std::string without_urls(std::string text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.find("://") == std::string::npos) continue;
    const std::string shown = escaped(word);
    for (std::size_t at = text.find(shown); at != std::string::npos; at = text.find(shown))
      text.replace(at, shown.size(), "(a URL stands behind --url)");
  }
  return text;
}

Answered answer(const char* text) { return {print(text) ? exit_ok : exit_output}; }

Answered complain(const std::string& text, const Subcommand* about) {
  say(text);
  say(std::string("see holdfast ") + (about == nullptr ? "" : std::string(about->name) + " ") + "--help");
  return {exit_usage};
}

void list_options(const CLI::App& app, const std::string& subcommand, std::vector<DeclaredOption>& all) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_positional()) continue;
    DeclaredOption declared = {.subcommand = subcommand, .names = {}, .takes_value = option->get_expected_max() > 0};
    for (const std::string& name : option->get_snames()) declared.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) declared.names.push_back("--" + name);
    all.push_back(std::move(declared));
  }
}

}  // namespace

std::vector<DeclaredOption> declared_options() {
  CLI::App app("", "holdfast");
  Texts texts;
  declare_command(app, texts);
  std::vector<DeclaredOption> all;
  list_options(app, "", all);
  for (const Subcommand& subcommand : subcommands)
    list_options(*app.get_subcommand(subcommand.name), subcommand.name, all);
  return all;
}

Invocation read_command_line(int argument_count, char** arguments, const Environment& environment) {
  SplitArguments split = split_at_mark(argument_count, arguments);
  CLI::App app("", "holdfast");
  Texts texts;
  declare_command(app, texts);
  const Subcommand* chosen = nullptr;
  try {
    // CLI11 takes the words from the back.
    app.parse(std::vector<std::string>(split.words.rbegin(), split.words.rend()));
    chosen = parsed_of(app);
    return chosen->read(texts, split, environment);
  } catch (const CLI::CallForHelp&) {
    chosen = parsed_of(app);
    return answer(chosen == nullptr ? help_text : chosen->help);
  } catch (const CLI::CallForVersion&) {
    return answer(version_text);
  } catch (const CLI::ParseError& error) {
    chosen = parsed_of(app);
    const bool in_front = chosen == nullptr || split.words.front().starts_with('-');
    const std::string text = in_front ? no_subcommand(split.words) : escaped(std::string(error.what()));
    return complain(without_urls(text, split.words), chosen);
  } catch (const UsageError& error) {
    return complain(error.text, chosen);
  }
}

}  // namespace holdfast::cli
