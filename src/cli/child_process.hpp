// SPDX-License-Identifier: MIT
//
// The command's own process, up to its first instruction: the leader of a process group of its own, with the signals and the
// descriptors that we were started with.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "signal_relay.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

// Forks and executes. The kernel kills the command should this process die. Where it cannot be executed, errno is written to
// `error_pipe`, which an execution closes, and the process ends as shells have it. -1, with errno, if there is no new
// process.
// `terminal` is what the command gets from the start; nullptr: none.
// REQUIRES: all signals are blocked; `words` is not empty; this process has no other thread.
[[nodiscard]] pid_t start_child(const std::vector<std::string>& words, const SignalRelay& relay, Terminal* terminal,
                                int error_pipe);

}  // namespace holdfast::cli
