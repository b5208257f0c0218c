// SPDX-License-Identifier: MIT
#include "holdfast/core/client_config.hpp"

#include "holdfast/core/topology.hpp"

namespace holdfast {

namespace {

constexpr const char* too_long = "it is longer than limits.hpp allows";

constexpr Duration spin_max = std::chrono::milliseconds(10);

bool out_of_range(Duration timeout) noexcept { return timeout < timeout_min || timeout > timeout_max; }

bool contains_nul(ByteView text) noexcept {
  for (const char byte : text)
    if (byte == '\0') return true;
  return false;
}

// CLIENT SETNAME refuses anything else.
bool plain_name(ByteView name) noexcept {
  for (const char byte : name)
    if (byte < '!' || byte > '~') return false;
  return true;
}

}  // namespace

// In the order of the fields.
ConfigProblem validate(const ClientConfig& config) noexcept {
  if (config.host.too_long()) return {"host", too_long};
  if (config.socket_path.too_long()) return {"socket_path", too_long};
  if (config.socket_path.empty()) {
    if (config.host.empty()) return {"host", "it is empty"};
    if (contains_nul(config.host.view())) return {"host", "it contains a NUL byte"};
    if (config.port == 0) return {"port", "it must be 1 to 65535"};
  }
  if (contains_nul(config.socket_path.view())) return {"socket_path", "it contains a NUL byte"};
  if (config.tls != nullptr && !config.socket_path.empty()) return {"tls", "a Unix socket has none"};
  if (config.topology != nullptr) [[unlikely]]
    if (const ConfigProblem problem = config.topology->table().validate(config); problem.found()) return problem;
  if (config.user.too_long()) return {"user", too_long};
  if (config.password.too_long()) return {"password", too_long};
  if (!config.user.empty() && config.password.empty()) return {"user", "it needs a password"};
  if (config.client_name.too_long()) return {"client_name", too_long};
  if (!plain_name(config.client_name.view())) return {"client_name", "it must be visible ASCII"};
  if (config.database < 0 || config.database > database_max) return {"database", "it must be 0 to 65535"};
  if (out_of_range(config.connect_timeout)) return {"connect_timeout", "it must be 1 ms to 1 h"};
  if (out_of_range(config.request_timeout)) return {"request_timeout", "it must be 1 ms to 1 h"};
  if (out_of_range(config.stall_timeout)) return {"stall_timeout", "it must be 1 ms to 1 h"};
  if (config.spin < spin_off || config.spin > spin_max) return {"spin", "it must be at most 10 ms"};
  if (config.max_poll < poll_min || config.max_poll > poll_max) return {"max_poll", "it must be 10 ms to 1 h"};
  if (config.acks > acks_max) return {"acks", "it must be 0 to 15"};
  if (out_of_range(config.acks_timeout)) return {"acks_timeout", "it must be 1 ms to 1 h"};
  if (config.acks != 0 && config.acks_timeout >= config.stall_timeout)
    return {"acks_timeout", "it must be shorter than stall_timeout"};
  return {};
}

}  // namespace holdfast
