// SPDX-License-Identifier: MIT
//
// What a server's CLIENT LIST says about its connections.
#pragma once

#include <cstddef>
#include <sstream>
#include <string>

#include "redis_server.hpp"

// How many connections have this name, those that subscribe aside.
inline std::size_t connections_named(const RedisServer& server, const std::string& name) {
  const std::string list = server.command("CLIENT LIST TYPE normal");
  std::size_t count = 0;
  for (std::size_t at = 0; (at = list.find("name=" + name + " ", at)) != std::string::npos; ++at) ++count;
  return count;
}

// The id of a connection that is blocked in WAIT, or an empty string. `cmd=wait` alone is also true of one whose WAIT is over.
inline std::string blocked_in_wait(const RedisServer& server) {
  std::istringstream list(server.command("CLIENT LIST"));
  for (std::string line; std::getline(list, line);) {
    const std::size_t flags = line.find(" flags=");
    const std::size_t id = line.find("id=");
    if (flags == std::string::npos || id == std::string::npos || line.find(" cmd=wait") == std::string::npos) continue;
    if (line.substr(flags, line.find(' ', flags + 1) - flags).find('b') == std::string::npos) continue;
    return line.substr(id + 3, line.find(' ', id) - id - 3);
  }
  return {};
}
