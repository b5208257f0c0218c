// SPDX-License-Identifier: MIT
//
// What the command knows of TLS: the --tls options, and the one Tls for all of its connections. A build without OpenSSL has
// the options, too, and says what is missing.
#pragma once

#include <optional>
#include <string>

#include "holdfast/core/client_config.hpp"

namespace holdfast::cli {

// As they were given.
struct TrustOptions {
  std::optional<std::string> ca_file;
  std::optional<std::string> certificate_file;
  std::optional<std::string> key_file;
  std::optional<std::string> server_name;
  bool insecure = false;

  // The first that was given; nullptr: none was.
  [[nodiscard]] const char* given() const noexcept;
};

// A scheme that wants TLS.
[[nodiscard]] bool is_secure(const std::string& url) noexcept;

// Opens it by the options, and says where it is; it lives as long as the process. Where that fails, `error` is a sentence without a
// full stop, and what is returned is nullptr.
[[nodiscard]] StreamSecurity* open_trust(const TrustOptions& options, std::string& error);

}  // namespace holdfast::cli
