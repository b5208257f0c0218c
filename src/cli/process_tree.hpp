// SPDX-License-Identifier: MIT
//
// Which processes there are, from /proc. Where that is missing, nothing is found and only process groups can be ended.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::cli {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  bool zombie = false;  // Ended, and not yet waited for.
  bool warden = false;  // By its name, see warden.hpp.
};

// Every process that descends from `root` by living parents. A subreaper's orphans become its children, so none of its
// descendants is missed, but for one whose parent dies during the look: look again. Cost: one file read a process of the
// system.
[[nodiscard]] std::vector<Process> descendants_of(pid_t root);

// Is there nobody else in our process group? False where that cannot be seen.
[[nodiscard]] bool alone_in_group();

// The processes of this user that were executed inside of the run with this token (run_list.hpp), wherever in the tree they
// are.
[[nodiscard]] std::vector<Process> bearers_of(const std::string& token);

}  // namespace holdfast::cli
