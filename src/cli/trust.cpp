// SPDX-License-Identifier: MIT
#include "trust.hpp"

#include <string_view>

#ifdef HOLDFAST_CLI_TLS
#include "holdfast/tls.hpp"
#endif
#include "messages.hpp"

namespace holdfast::cli {

const char* TrustOptions::given() const noexcept {
  if (ca_file) return "--tls-ca";
  if (certificate_file) return "--tls-cert";
  if (key_file) return "--tls-key";
  if (server_name) return "--tls-server-name";
  return insecure ? "--tls-insecure" : nullptr;
}

bool is_secure(const std::string& url) noexcept {
  for (const std::string_view scheme : {"rediss://", "valkeys://", "rediss-sentinel://", "valkeys-sentinel://",
                                        "rediss-cluster://", "valkeys-cluster://"})
    if (std::string_view(url).substr(0, scheme.size()) == scheme) return true;
  return false;
}

#ifdef HOLDFAST_CLI_TLS

StreamSecurity* open_trust(const TrustOptions& options, std::string& error) {
  // Of each node its connection and its subscription, and one for who keeps the lock alive.
  static TlsPlaces<2 * nodes_max + 1> places;
  static Tls tls(places.storage());
  TlsConfig config;
  const auto take = [](const std::optional<std::string>& text, auto& into) {
    if (text) into.assign(ByteView(std::string_view(*text)));
  };
  take(options.ca_file, config.ca_file);
  take(options.certificate_file, config.certificate_file);
  take(options.key_file, config.key_file);
  take(options.server_name, config.server_name);
  if (options.insecure) config.verify = TlsVerify::nothing;
  if (tls.open(config) == Status::ok) return &tls;
  error = "TLS: " + escaped(tls.error_text());
  return nullptr;
}

#else

StreamSecurity* open_trust(const TrustOptions& /*options*/, std::string& error) {
  error = "this holdfast was built without TLS";
  return nullptr;
}

#endif

}  // namespace holdfast::cli
