// SPDX-License-Identifier: MIT
//
// The theorem of a fuzz target for every program of a bounded length, instead of for those that a fuzzer comes upon:
//
//     every_program_TARGET DEPTH BEGINNING STEP...
//
// A step is a letter and a digit as the head of the target says them, such as `B7`, or several that are one: `B7S0`. All programs
// of up to DEPTH of these steps behind BEGINNING, which may be empty, run, each in a world of its own. What a step does that has no
// sense where it stands (a reply that nobody waits for, a second call of one that is in progress) is the target's to say, and is a
// part of the theorem. A theorem that does not hold ends the process, and tells the steps.
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "theorem.hpp"

namespace {

constexpr std::size_t depth_max = 16;

class EveryProgram {
 public:
  EveryProgram(std::size_t depth, const char* beginning, std::vector<std::string> steps)
      : depth_(depth), steps_(std::move(steps)), program_(beginning) {}

  void run() { follow(0); }
  [[nodiscard]] std::uint64_t programs() const { return programs_; }

 private:
  void follow(std::size_t length) {
    if (length != 0) {
      (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(program_.data()), program_.size());
      ++programs_;
    }
    if (length == depth_) return;
    const std::size_t size = program_.size();
    for (const std::string& step : steps_) {
      program_ += step;
      follow(length + 1);
      program_.resize(size);
    }
  }

  std::size_t depth_;
  std::vector<std::string> steps_;
  std::string program_;
  std::uint64_t programs_ = 0;
};

}  // namespace

int main(int argument_count, char** arguments) {
  char* end = nullptr;
  const unsigned long depth = argument_count > 3 ? std::strtoul(arguments[1], &end, 10) : 0;
  if (depth == 0 || depth > depth_max || *end != '\0') {
    std::fprintf(stderr, "usage: %s DEPTH BEGINNING STEP...; DEPTH is 1 to %zu\n", arguments[0], depth_max);
    return 64;
  }
  const auto begin = std::chrono::steady_clock::now();
  EveryProgram programs(depth, arguments[2], {arguments + 3, arguments + argument_count});
  programs.run();
  std::printf("%" PRIu64 " programs of up to %lu of %d steps, %.0f s\n", programs.programs(), depth, argument_count - 3,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return 0;
}
