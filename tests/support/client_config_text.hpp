// SPDX-License-Identifier: MIT
//
// All of a ClientConfig as one text: equal texts, equal configs.
#pragma once

#include <string>

#include "holdfast/core/client_config.hpp"
#include "resp_tree.hpp"

namespace holdfast::testing {

template <std::size_t size_max>
std::string to_text(const BoundedText<size_max>& text) {
  return text.too_long() ? "too long" : show_bytes(text.view().string_view());
}

inline std::string to_text(const ClientConfig& config) {
  return "host " + to_text(config.host) + ", port " + std::to_string(config.port) + ", socket_path " +
         to_text(config.socket_path) + ", user " + to_text(config.user) + ", password " + to_text(config.password) +
         ", client_name " + to_text(config.client_name) + ", database " + std::to_string(config.database) +
         ", connect_timeout " + std::to_string(config.connect_timeout.count()) + ", request_timeout " +
         std::to_string(config.request_timeout.count()) + ", stall_timeout " +
         std::to_string(config.stall_timeout.count()) + ", spin " + std::to_string(config.spin.count()) +
         ", max_poll " + std::to_string(config.max_poll.count()) + (config.native_delete ? ", native_delete" : "");
}

}  // namespace holdfast::testing
