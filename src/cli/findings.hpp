// SPDX-License-Identifier: MIT
//
// What holdfast doctor has found.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

enum class Severity : std::uint8_t { information, warning, danger };
[[nodiscard]] const char* to_string(Severity severity) noexcept;

struct Finding {
  Severity severity = Severity::information;
  std::string server;  // Its address; empty: of all together.
  std::string code;    // A word, the same from release to release: for scripts.
  std::string what;
  std::string advice;
};

// A list to which one server after the other adds.
class Findings {
 public:
  explicit Findings(std::vector<Finding>& all) : all_(all) {}
  void of(const std::string& server) { server_ = server; }
  void add(Severity severity, const char* code, std::string what, std::string advice) {
    all_.push_back({severity, server_, code, std::move(what), std::move(advice)});
  }

 private:
  std::vector<Finding>& all_;
  std::string server_;
};

}  // namespace holdfast::cli
