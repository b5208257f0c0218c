// SPDX-License-Identifier: MIT
//
// Harness is what every benchmark program is made in: its command line and help, the servers and conditions that were
// asked for, its report and where that is written, and what it exits with. A program adds its options in the order of
// its help, and hands over what it measures:
//
//     0    everything was measured and written, also where a promise was missed: the table says so
//     1    an error, said on stderr
//     2    the arguments are not understood
//     77   skipped: there is no server
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "address.hpp"
#include "cpu_condition.hpp"
#include "options.hpp"
#include "report.hpp"

class RedisServer;

namespace bench {

// What one group of contenders is given.
struct Effort {
  std::size_t samples;
  std::size_t rounds_min;
  std::chrono::nanoseconds share;  // Of the time.
};

// The arguments are understood and do not go together: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Harness {
 public:
  struct About {
    const char* name;     // Of the program.
    const char* purpose;  // What the help begins with.
    const char* title;    // Of the report.
    const char* files;    // The report's: so much and .json, or .svg.
    bool plotted = true;  // There are ratios to be plotted.
  };
  explicit Harness(const About& about) : about_(about), report_(about.title) {}

  // ---- Options ----
  void add_seconds(double seconds, const char* text);
  void add_transport();
  void add_condition();
  // --out, --smoke and --help: the end of the usual options.
  void add_output(const char* smoke_text = "everything once, as fast as it goes: the figures mean nothing");
  // --only and --pairs, for one contender without a report, below a paragraph that says what for.
  void add_only(const char* purpose, const char* who, const char* pairs_text, OptionParser::Choices choices = {});
  // --socket and --port, with which such a contender finds a server that runs already.
  void add_running_server();
  [[nodiscard]] OptionParser& options() { return options_; }

  // ---- The program ----
  // Parses, measures with `measure`, or runs `only` if there is a contender that was asked for, and says how to exit.
  [[nodiscard]] int main(int argc, char** argv, const std::function<void()>& measure,
                         const std::function<void()>& only = {});
  // The same without parsing and without a server.
  [[nodiscard]] int run(const std::function<void()>& measure);

  // ---- What was asked for ----
  [[nodiscard]] bool smoke() const { return smoke_; }
  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] const std::string& only() const { return only_; }
  [[nodiscard]] std::size_t pairs() const { return pairs_; }
  // Where the running server is. Throws UsageError where that was not said.
  [[nodiscard]] Address running_server() const;
  // The servers at hand, at least one: else the program ends as skipped.
  [[nodiscard]] const std::vector<std::string>& binaries();
  [[nodiscard]] const std::vector<int>& cpus() const { return cpus_; }
  // At least one. What this machine does not allow is said on stderr once, and is an error if nothing else was asked for.
  [[nodiscard]] const std::vector<Condition>& conditions();
  [[nodiscard]] std::size_t transport_count() const { return transport_ == "both" ? 2 : 1; }
  [[nodiscard]] bool over_tcp() const { return transport_ != "unix"; }
  // The server's, by the transports that were asked for: TCP first.
  [[nodiscard]] std::vector<Address> addresses_of(const RedisServer& server) const;
  // The usual effort with an equal share of the time, or, for a smoke test, so many samples and two rounds.
  [[nodiscard]] Effort effort(std::size_t group_count, std::size_t samples, std::size_t smoke_samples) const;

  [[nodiscard]] Report& report() { return report_; }
  void print_new_rows() { report_.print_new_rows(stdout); }

 private:
  [[nodiscard]] std::string help() const;
  [[nodiscard]] int guarded(const std::function<void()>& action) const;

  About about_;
  Report report_;
  OptionParser options_;
  double seconds_ = 0;
  std::string transport_ = "both";
  std::string condition_ = "all";
  std::string out_ = ".";
  bool smoke_ = false;
  std::string only_;
  std::size_t pairs_ = 1000;
  std::string socket_path_;
  int port_ = 0;
  std::vector<int> cpus_ = usable_cpus();
  std::vector<std::string> binaries_;
  std::vector<Condition> conditions_;
};

}  // namespace bench
