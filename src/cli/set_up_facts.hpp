// SPDX-License-Identifier: MIT
//
// What sentinels say of a service, and the nodes of a cluster of the cluster. All texts are the servers' own: they are escaped when
// they are printed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace holdfast::cli {

// How a server is found.
enum class SetUp : std::uint8_t { alone, sentinels, cluster };

// How many nodes of each sort are named, one by one.
inline constexpr std::size_t named_max = 3;

// The number that a server's text begins with, or 0: where it begins with a sign, too, which strtoull() would take.
[[nodiscard]] inline std::uint64_t leading_number(const std::string& text) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' ? std::strtoull(text.c_str(), nullptr, 10) : 0;
}

// What one of the hosts of a URL says, a sentinel or a node. Or what the master of a name says of its cluster.
struct HostFacts {
  std::string address;
  std::string host;
  std::string no_connection;  // Why there is none; empty: there is one.
  bool silent = false;        // A question had no answer.
  bool stranger = false;      // It is no sentinel, or no node of a cluster.
  bool unknown = false;       // It does not know the service.
  std::string master;         // Of a sentinel: whom it names, as HOST:PORT.
  std::string no_quorum;  // Why the sentinels could not fail over, in its words; empty: they could, or it is not known.
  bool refused = false;   // The user may not ask,
  std::string unsaid;     // or why there are no fields.
  // Of SENTINEL MASTER; or what the script has made of CLUSTER INFO and NODES.
  std::map<std::string, std::string> fields;

  [[nodiscard]] std::string field(const std::string& name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second;
  }
  // The number that a field begins with, or 0.
  [[nodiscard]] std::uint64_t number(const std::string& name) const { return leading_number(field(name)); }
  [[nodiscard]] bool answers() const { return no_connection.empty() && !silent && !stranger; }
};

struct SetUpFacts {
  SetUp kind = SetUp::alone;
  std::string name;              // Of the service; or of the lock whose slot is looked for.
  std::string user;              // Who asks the hosts; empty: the default one.
  std::uint16_t slot = 0;        // Of a cluster.
  std::vector<HostFacts> hosts;  // In the order of the URL.
  HostFacts server;              // Of a cluster: what the master of the slot says; no fields: it says nothing.
};

}  // namespace holdfast::cli
