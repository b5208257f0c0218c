// SPDX-License-Identifier: MIT
#include "holdfast/cluster.hpp"

#include "addresses.hpp"
#include "holdfast/core/slot_search.hpp"
#include "url_parts.hpp"

namespace holdfast {

namespace {

const char* read_cluster(ByteView authority, ClusterConfig& cluster, ClientConfig& config) noexcept {
  const bool query = contains(authority, '?') || contains(authority, '#');
  ByteView name = split(authority, '/');
  // Never taken for a name: it may be of a password.
  if (query || contains(name, '@') || contains(name, '/'))
    return "'/', '?', '#' and '@' in a password or a name are %2F, %3F, %23 and %40, and there is no query";
  if (const char* problem = take_credentials(authority, config)) return problem;
  cluster.hosts.assign(authority);
  if (!name.empty() && !decode(name, cluster.name)) return "the name is too long or has a malformed percent escape";
  if (cluster.name.empty())
    return "after the nodes stands a lock's name, whose slot the client serves, as in redis-cluster://10.0.0.1/orders";
  if (validate(cluster).found())
    return "there must be 1 to 9 nodes, as host[:port] with commas between them; IPv6 stands in brackets";
  return nullptr;
}

// Fills in both. A name that the cluster has stays where the URL has none. Returns what is wrong, or nullptr; where something is,
// or where it says the same already, `cluster` is untouched.
const char* parse_cluster_url(ByteView url, Topology& topology, ClientConfig& config) noexcept {
  const bool known_server = skip(url, "redis") || skip(url, "valkey");
  const bool secure = skip(url, "s");
  if (!known_server || !skip(url, "-cluster://"))
    return "there is a Cluster in the configuration, so a URL begins with redis-cluster:// or rediss-cluster://";
  if (secure && config.tls == nullptr) return "TLS needs a Tls in the configuration: see tls.hpp";
  if (!secure && config.tls != nullptr)
    return "there is a Tls in the configuration, so a URL begins with rediss-cluster://";
  auto& cluster = static_cast<Cluster&>(topology);
  ClusterConfig parsed;
  parsed.name = cluster.config().name;
  if (const char* problem = read_cluster(url, parsed, config)) return problem;
  config.socket_path.assign({});
  const ClusterConfig& known = cluster.config();
  if (known.hosts.view() == parsed.hosts.view() && known.name.view() == parsed.name.view()) return nullptr;
  cluster.configure(parsed);
  return nullptr;
}

ByteView seeds_of(const Topology& topology) noexcept {
  return static_cast<const Cluster&>(topology).config().hosts.view();
}
ByteView no_password_of(const Topology& /*topology*/) noexcept { return {}; }

}  // namespace

constinit const Topology::Table Cluster::ways = {
    SlotSearch::start,
    SlotSearch::steer,
    literal_address,
    SlotSearch::validate,
    SlotSearch::number,
    SlotSearch::name_of,
    seeds_of,
    no_password_of,
    parse_cluster_url,
    SlotSearch::has_shards,
    SlotSearch::shards,
    "a quorum is of independent servers, and a cluster has one master for each name: use one client",
    SlotSearch::serves};

}  // namespace holdfast
