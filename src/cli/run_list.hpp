// SPDX-License-Identifier: MIT
//
// RunList is HOLDFAST_RUNS: the runs that a process is inside of, the outermost first. A run adds itself for its command,
// and takes nothing away, so that what a process tree came from can be told however deep runs are nested.
//
//     HOLDFAST_RUNS="TOKEN/NAME/SERVER,SERVER/taken TOKEN/NAME/SERVER"
//
// Everything but letters, digits and "._-:" is percent-encoded. What is not understood is passed on as it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

inline constexpr char run_list_variable[] = "HOLDFAST_RUNS";

struct OuterRun {
  std::string token;                 // What proves its hold, see HOLDFAST_TOKEN.
  std::string name;                  // Of its lock.
  std::vector<std::string> servers;  // Addresses, without user and password.
  bool url_taken = false;            // It took HOLDFAST_URL out of its command's environment.
};

class RunList {
 public:
  RunList() = default;
  // The variable's value.
  explicit RunList(std::string text);
  // Of our own environment; empty where it has none.
  [[nodiscard]] static RunList inherited();

  [[nodiscard]] const std::vector<OuterRun>& runs() const noexcept { return runs_; }
  // nullptr: there is none.
  [[nodiscard]] const OuterRun* find_token(std::string_view token) const noexcept;
  // The variable's value with one more run in it, the innermost.
  [[nodiscard]] std::string text_with(const OuterRun& inner) const;

 private:
  std::string text_;
  std::vector<OuterRun> runs_;
};

}  // namespace holdfast::cli
