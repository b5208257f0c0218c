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

}  // namespace bench
