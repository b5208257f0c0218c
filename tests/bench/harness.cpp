// SPDX-License-Identifier: MIT
#include "harness.hpp"

#include <sys/utsname.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "redis_server.hpp"

namespace bench {

namespace {

constexpr int failed = 1;
constexpr int not_understood = 2;
constexpr int skipped = 77;

struct NoServer {};

}  // namespace

// ---- Options -----------------------------------------------------------------------------------------------------

void Harness::add_seconds(double seconds, const char* text) {
  seconds_ = seconds;
  char line[80];
  (void)std::snprintf(line, sizeof line, "%s (default %g)", text, seconds);
  options_.add("--seconds N", &seconds_, line);
}

void Harness::add_transport() {
  options_.add("--transport WHICH", &transport_, "tcp, unix or both (default)", {"tcp", "unix", "both"});
}

void Harness::add_condition() {
  options_.add("--condition WHICH", &condition_, "plain, no-halt, same-cpu or all (default)",
               {"plain", "no-halt", "same-cpu", "all"});
}

void Harness::add_output(const char* smoke_text) {
  const std::string json = std::string(about_.files) + ".json";
  const std::string files = about_.plotted ? json + " and " + about_.files + ".svg go" : json + " goes";
  options_.add("--out DIR", &out_, "where " + files + " (default .)");
  options_.add("--smoke", &smoke_, smoke_text);
  options_.help_line("--help", "this text");
}

void Harness::add_only(const char* purpose, const char* who, const char* pairs_text, OptionParser::Choices choices) {
  options_.say(purpose);
  options_.add("--only WHO", &only_, who, choices);
  options_.add("--pairs N", &pairs_, pairs_text);
}

void Harness::add_running_server() {
  options_.add("--socket PATH", &socket_path_, "with --transport unix");
  options_.add("--port N", &port_, "with --transport tcp");
}

std::string Harness::help() const {
  return std::string("usage: ") + about_.name + " [OPTION...]\n\n" + about_.purpose + "\n\n" + options_.help();
}

// ---- The program -------------------------------------------------------------------------------------------------

int Harness::main(int argc, char** argv, const std::function<void()>& measure, const std::function<void()>& only) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    (void)std::fputs(help().c_str(), stdout);
    return 0;
  }
  if (!options_.parse(argc, argv)) {
    (void)std::fputs(help().c_str(), stderr);
    return not_understood;
  }
  if (!only_.empty()) return guarded(only);
  return run([&] {
    utsname system{};
    (void)::uname(&system);
    (void)std::printf("%s, %s %s, %zu cores\n", binaries()[0].c_str(), system.sysname, system.release, cpus_.size());
    measure();
  });
}

int Harness::run(const std::function<void()>& measure) {
  if (const int result = guarded(measure); result != 0) return result;
  (void)std::printf("\n%zu promises missed\n", report_.missed());
  const std::string path = out_ + "/" + about_.files;
  return report_.write_json(path + ".json") && (!about_.plotted || report_.write_svg(path + ".svg")) ? 0 : failed;
}

int Harness::guarded(const std::function<void()>& action) const {
  try {
    action();
    return 0;
  } catch (const NoServer&) {
    (void)std::fprintf(stderr, "%s: skipped, there is no redis-server\n", about_.name);
    return skipped;
  } catch (const UsageError& error) {
    (void)std::fprintf(stderr, "%s: %s\n", about_.name, error.what());
    return not_understood;
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "%s: %s\n", about_.name, error.what());
    return failed;
  }
}

// ---- What was asked for ------------------------------------------------------------------------------------------

Address Harness::running_server() const {
  const bool tcp = transport_ == "tcp";
  if (tcp ? port_ == 0 : socket_path_.empty())
    throw UsageError("--only wants --transport tcp --port N, or --transport unix --socket PATH");
  return {tcp ? std::string() : socket_path_, port_};
}

const std::vector<std::string>& Harness::binaries() {
  if (binaries_.empty()) binaries_ = server_binaries();
  if (binaries_.empty()) throw NoServer();
  return binaries_;
}

const std::vector<Condition>& Harness::conditions() {
  if (conditions_.empty()) conditions_ = conditions_of(condition_, cpus_);
  if (conditions_.empty()) throw UsageError("this machine allows --condition same-cpu alone");
  return conditions_;
}

std::vector<Address> Harness::addresses_of(const RedisServer& server) const {
  std::vector<Address> addresses;
  if (over_tcp()) addresses.push_back({{}, server.port()});
  if (transport_ != "tcp") addresses.push_back({server.socket_path(), 0});
  return addresses;
}

Effort Harness::effort(std::size_t group_count, std::size_t samples, std::size_t smoke_samples) const {
  if (smoke_) return {smoke_samples, 2, {}};
  const std::chrono::duration<double> share(seconds_ / static_cast<double>(group_count));
  return {samples, 5, std::chrono::duration_cast<std::chrono::nanoseconds>(share)};
}

}  // namespace bench
