// SPDX-License-Identifier: MIT
//
// WorkerWays is how a worker of the soak finds its servers, by what its URLs say: it has the Sentinels, the Cluster and the Tls of
// all its clients, and outlives them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "holdfast/cluster.hpp"
#include "holdfast/sentinels.hpp"
#include "holdfast/url.hpp"
#include "worker_options.hpp"
#if SOAK_TLS
#include "holdfast/tls.hpp"
#endif

namespace soak {

class WorkerWays {
 public:
  // Exits with 2 where the authority's file is none.
  explicit WorkerWays(const WorkerOptions& options) : options_(options) {
    if (options.ca_file.empty()) return;
#if SOAK_TLS
    holdfast::TlsConfig config;
    config.ca_file = options.ca_file.c_str();
    if (tls_.open(config) == holdfast::Status::ok) return;
    std::fprintf(stderr, "%.*s\n", static_cast<int>(tls_.error_text().size()),
                 reinterpret_cast<const char*>(tls_.error_text().data()));
    std::exit(2);
#endif
  }
  WorkerWays(const WorkerWays&) = delete;
  WorkerWays& operator=(const WorkerWays&) = delete;

  // Exits with 2 where the URL is none.
  [[nodiscard]] holdfast::ClientConfig config_of(std::size_t node) {
    holdfast::ClientConfig config = options_.timeouts();
    const std::string& url = options_.urls[node];
    const std::string_view scheme = std::string_view(url).substr(0, url.find("://"));
    if (scheme.find("-cluster") != scheme.npos) config.topology = &cluster_;
    if (scheme.find("-sentinel") != scheme.npos) config.topology = &sentinels_;
#if SOAK_TLS
    if (scheme.starts_with("rediss")) config.tls = &tls_;
#endif
    const char* reason = nullptr;
    if (holdfast::parse_url(url.c_str(), config, &reason) != holdfast::Status::ok) {
      std::fprintf(stderr, "%s: %s\n", url.c_str(), reason);
      std::exit(2);
    }
    return config;
  }

 private:
  const WorkerOptions& options_;
  holdfast::Cluster cluster_;
  holdfast::Sentinels sentinels_;
#if SOAK_TLS
  // Six servers, each with a client's connection, a watchdog's and one for subscriptions, and as many that are about to close.
  holdfast::TlsPlaces<36> places_;
  holdfast::Tls tls_{places_.storage()};
#endif
};

}  // namespace soak
