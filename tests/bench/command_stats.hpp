// SPDX-License-Identifier: MIT
#pragma once

#include <sstream>
#include <string>

#include "redis_server.hpp"

namespace bench {

// How often the server has run a command, in scripts too.
inline double calls_of(const RedisServer& server, const std::string& command) {
  std::istringstream lines(server.command("INFO commandstats"));
  const std::string start = "cmdstat_" + command + ":calls=";
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(start, 0) == 0) return std::stod(line.substr(start.size()));
  return 0;
}

// All commands that the server has run, in scripts too, but those that ask for it.
inline double calls_of_all(const RedisServer& server) {
  std::istringstream lines(server.command("INFO commandstats"));
  double count = 0;
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t calls = line.find(":calls="); calls != std::string::npos)
      if (line.rfind("cmdstat_info", 0) != 0) count += std::stod(line.substr(calls + 7));
  return count;
}

// How often the server has read from a client's socket. Of clients that wait for each reply these are the requests that they
// sent; INFO has no count of commands without those that scripts run (total_commands_processed has them as well).
inline double reads_of(const RedisServer& server) {
  const std::string stats = server.command("INFO stats");
  const std::string mark = "total_reads_processed:";
  const std::size_t at = stats.find(mark);
  return at == std::string::npos ? 0 : std::stod(stats.substr(at + mark.size()));
}

}  // namespace bench
