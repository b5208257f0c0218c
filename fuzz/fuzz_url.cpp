// SPDX-License-Identifier: MIT
//
// Theorem: parse_url() either refuses a URL with a reason and leaves the config untouched, or fills in a config that
// validate() finds nothing wrong with, that differs from the one before in address, credentials and database alone,
// and that comes back when it is written as a URL again. (S8 of proto/security.md.)
//
// Input: the URL.
#include <cstring>
#include <string>

#include "client_config_text.hpp"
#include "holdfast/url.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::string percent_encoded(ByteView text) {
  std::string encoded;
  for (const char byte : text) {
    char escape[4];
    std::snprintf(escape, sizeof escape, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    encoded += escape;
  }
  return encoded;
}

std::string as_url(const ClientConfig& config) {
  std::string url = config.socket_path.empty() ? "redis://" : "unix://";
  if (!config.user.empty() || !config.password.empty())
    url += percent_encoded(config.user.view()) + ":" + percent_encoded(config.password.view()) + "@";
  if (!config.socket_path.empty())
    return url + "/" + percent_encoded(config.socket_path.view().slice(1)) + "?db=" + std::to_string(config.database);
  const std::string host(config.host.view().string_view());
  url += host.find(':') == std::string::npos ? host : "[" + host + "]";
  return url + ":" + std::to_string(config.port) + "/" + std::to_string(config.database);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string url(reinterpret_cast<const char*>(data), size);
  ClientConfig before;
  before.host = "before.example";
  before.port = 1;
  before.user = "before";
  before.password = "before";
  before.client_name = "name";
  before.database = 3;
  before.spin = std::chrono::microseconds(5);
  before.native_delete = false;

  ClientConfig config = before;
  const char* reason = nullptr;
  const Status status = parse_url(ByteView(url), config, &reason);
  if (status != Status::ok) {
    HOLDFAST_THEOREM(status == Status::invalid_argument, to_string(status));
    HOLDFAST_THEOREM(to_text(config) == to_text(before), to_text(config));
    HOLDFAST_THEOREM(reason != nullptr && std::strlen(reason) > 10, "no reason");
    return 0;
  }
  HOLDFAST_THEOREM(reason == nullptr, reason);
  const ConfigProblem problem = validate(config);
  HOLDFAST_THEOREM(!problem.found(), std::string(problem.found() ? problem.field : "") + ": " + to_text(config));

  // The rest of the config stays.
  ClientConfig expected = before;
  expected.host = config.host;
  expected.port = config.port;
  expected.socket_path = config.socket_path;
  expected.user = config.user;
  expected.password = config.password;
  expected.database = config.database;
  HOLDFAST_THEOREM(to_text(config) == to_text(expected), to_text(config));

  ClientConfig again = before;
  HOLDFAST_THEOREM(parse_url(ByteView(as_url(config)), again, &reason) == Status::ok, as_url(config) + ": " + reason);
  HOLDFAST_THEOREM(to_text(again) == to_text(config), to_text(again) + "\n" + to_text(config));
  return 0;
}
