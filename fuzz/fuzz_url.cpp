// SPDX-License-Identifier: MIT
//
// Theorem: parse_url() either refuses a URL with a reason and leaves the config and its Sentinels untouched, or fills in a config
// that validate() finds nothing wrong with, that differs from the one before in address, credentials and database alone, and
// that comes back when it is written as a URL again. So it is with and without Sentinels and TLS in the config, and no URL is
// taken with them that is taken without, nor the reverse. (S8 of proto/security.md.)
//
// Input: the URL.
#include <cstring>
#include <string>

#include "client_config_text.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/detail/stream.hpp"
#include "holdfast/sentinels.hpp"
#include "holdfast/url.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// It is named in a config, and secures nothing.
struct NoSecurity : StreamSecurity {
  NoSecurity() : StreamSecurity(none) {}
  static constexpr Table none{};
} no_security;

std::string percent_encoded(ByteView text) {
  std::string encoded;
  for (const char byte : text) {
    char escape[4];
    std::snprintf(escape, sizeof escape, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    encoded += escape;
  }
  return encoded;
}

std::string credentials(ByteView user, ByteView password) {
  return user.empty() && password.empty() ? "" : percent_encoded(user) + ":" + percent_encoded(password) + "@";
}

// The topology of the configurations is a Cluster. Otherwise it is Sentinels.
bool in_cluster = false;

std::string as_url(const ClientConfig& config) {
  const std::string secure = config.tls != nullptr ? "s" : "";
  std::string url = credentials(config.user.view(), config.password.view());
  if (in_cluster) {
    const ClusterConfig& cluster = static_cast<const Cluster*>(config.topology)->config();
    return "redis" + secure + "-cluster://" + url + std::string(cluster.hosts.view().string_view()) + "/" +
           percent_encoded(cluster.name.view());
  }
  if (config.topology != nullptr) {
    const SentinelConfig& sentinels = static_cast<const Sentinels*>(config.topology)->config();
    url = "redis" + secure + "-sentinel://" + url + std::string(sentinels.hosts.view().string_view()) + "/" +
          percent_encoded(sentinels.service.view()) + "/" + std::to_string(config.database);
    if (!sentinels.password.empty()) url += "?sentinel_password=" + percent_encoded(sentinels.password.view());
    if (!sentinels.user.empty()) url += "&sentinel_user=" + percent_encoded(sentinels.user.view());
    return url;
  }
  if (!config.socket_path.empty())
    return "unix://" + url + "/" + percent_encoded(config.socket_path.view().slice(1)) +
           "?db=" + std::to_string(config.database);
  const std::string host(config.host.view().string_view());
  url = "redis" + secure + "://" + url + (host.find(':') == std::string::npos ? host : "[" + host + "]");
  return url + ":" + std::to_string(config.port) + "/" + std::to_string(config.database);
}

std::string all_of(const ClientConfig& config) {
  if (config.topology == nullptr) return to_text(config);
  if (in_cluster) {
    const ClusterConfig& cluster = static_cast<const Cluster*>(config.topology)->config();
    return to_text(config) + ", nodes " + to_text(cluster.hosts) + ", name " + to_text(cluster.name);
  }
  const SentinelConfig& sentinels = static_cast<const Sentinels*>(config.topology)->config();
  return to_text(config) + ", sentinels " + to_text(sentinels.hosts) + ", service " + to_text(sentinels.service) +
         ", their user " + to_text(sentinels.user) + ", their password " + to_text(sentinels.password);
}

// Whether it was taken.
bool check(ByteView url, const ClientConfig& before) {
  ClientConfig config = before;
  const std::string untouched = all_of(before);
  const char* reason = nullptr;
  const Status status = parse_url(url, config, &reason);
  HOLDFAST_THEOREM(config.topology == before.topology && config.tls == before.tls, "other pointers");
  if (status != Status::ok) {
    HOLDFAST_THEOREM(status == Status::invalid_argument, to_string(status));
    HOLDFAST_THEOREM(all_of(config) == untouched, all_of(config));
    HOLDFAST_THEOREM(reason != nullptr && std::strlen(reason) > 10, "no reason");
    return false;
  }
  HOLDFAST_THEOREM(reason == nullptr, reason);
  const ConfigProblem problem = validate(config);
  HOLDFAST_THEOREM(!problem.found(), std::string(problem.found() ? problem.field : "") + ": " + all_of(config));

  // The rest of the config stays.
  ClientConfig expected = before;
  if (config.topology == nullptr) {
    expected.host = config.host;
    expected.port = config.port;
  }
  expected.socket_path = config.socket_path;
  expected.user = config.user;
  expected.password = config.password;
  expected.database = config.database;
  HOLDFAST_THEOREM(to_text(config) == to_text(expected), to_text(config));

  const std::string text = all_of(config);
  const std::string written = as_url(config);
  if (in_cluster)
    static_cast<Cluster*>(config.topology)->configure({});
  else if (config.topology != nullptr)
    static_cast<Sentinels*>(config.topology)->configure({});
  ClientConfig again = before;
  HOLDFAST_THEOREM(parse_url(ByteView(written), again, &reason) == Status::ok, written + ": " + reason);
  HOLDFAST_THEOREM(all_of(again) == text, all_of(again) + "\n" + text);
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string url(reinterpret_cast<const char*>(data), size);
  int taken = 0;
  for (const bool secure : {false, true})
    for (const int guided : {0, 1, 2}) {
      Sentinels sentinels({.hosts = "before", .service = "before", .user = "before", .password = "before"});
      Cluster cluster({.hosts = "before", .name = "before"});
      in_cluster = guided == 2;
      ClientConfig before;
      before.host = "before.example";
      before.port = 1;
      before.user = "before";
      before.password = "before";
      before.client_name = "name";
      before.database = in_cluster ? 0 : 3;
      before.spin = std::chrono::microseconds(5);
      before.native_delete = false;
      if (secure) before.tls = &no_security;
      if (guided == 1) before.topology = &sentinels;
      if (guided == 2) before.topology = &cluster;
      taken += check(ByteView(url), before) ? 1 : 0;
    }
  HOLDFAST_THEOREM(taken <= 1, url);
  return 0;
}
