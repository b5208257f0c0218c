// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <sstream>
#include <string>

#include "redis_server.hpp"

namespace bench {

// What the server has done for one command. A script's time has in it that of the commands that it calls.
struct CommandStat {
  double calls = 0;
  double microseconds = 0;
};
using CommandStats = std::map<std::string, CommandStat>;

// Of each command that the server has run, in scripts too, by its name in lower case.
inline CommandStats command_stats(const RedisServer& server) {
  CommandStats stats;
  std::istringstream lines(server.command("INFO commandstats"));
  const std::string start = "cmdstat_";
  const std::string calls = ":calls=";
  const std::string time = ",usec=";
  for (std::string line; std::getline(lines, line);) {
    const std::size_t calls_at = line.find(calls);
    const std::size_t time_at = line.find(time);
    if (line.rfind(start, 0) != 0 || calls_at == std::string::npos || time_at == std::string::npos) continue;
    stats[line.substr(start.size(), calls_at - start.size())] = {std::stod(line.substr(calls_at + calls.size())),
                                                                 std::stod(line.substr(time_at + time.size()))};
  }
  return stats;
}

// All commands that the server has run, in scripts too, but those that ask for it.
inline double calls_of_all(const RedisServer& server) {
  double count = 0;
  for (const auto& [name, stat] : command_stats(server))
    if (name != "info") count += stat.calls;
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
