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
};

// Every process that descends from `root` by living parents, but neither `spared` nor what descends from it. A
// subreaper's orphans become its children, so none of its descendants is missed. Cost: one file read a process of the
// system.
[[nodiscard]] std::vector<Process> descendants_of(pid_t root, pid_t spared);

// The processes of this user that were executed with `entry` ("NAME=value") in their environment, wherever in the tree
// they are.
[[nodiscard]] std::vector<pid_t> bearers_of(const std::string& entry);

}  // namespace holdfast::cli
