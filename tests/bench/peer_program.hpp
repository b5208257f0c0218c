// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace bench {

// A client in another language, as a program of its own that speaks lines: it says "ready NAME VERSION" or "skip REASON"
// and then answers one line to each. It goes with its object. What fails throws std::runtime_error.
class PeerProgram {
 public:
  // The program is looked up in the path. Where there is none, or it skips, missing() says why.
  explicit PeerProgram(const std::vector<std::string>& command);
  ~PeerProgram();
  PeerProgram(const PeerProgram&) = delete;
  PeerProgram& operator=(const PeerProgram&) = delete;

  [[nodiscard]] const std::string& missing() const { return missing_; }  // Empty: it is there.
  [[nodiscard]] const std::string& name() const { return name_; }        // With its version.

  void tell(const std::string& line);
  // What stands behind `word` in the line that must begin with it.
  std::string hear(const std::string& word);
  std::string ask(const std::string& line, const std::string& word) {
    tell(line);
    return hear(word);
  }

 private:
  std::string read_line();

  pid_t pid_ = -1;
  int descriptor_ = -1;
  std::string received_;
  std::string name_;
  std::string missing_;
};

}  // namespace bench
