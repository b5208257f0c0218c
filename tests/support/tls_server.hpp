// SPDX-License-Identifier: MIT
//
// TlsServer is a private server that has a port for TLS beside its other one.
#pragma once

#include <memory>
#include <string>

#include "certificates.hpp"
#include "redis_server.hpp"

class TlsServer {
 public:
  // It asks its clients for no certificate, unless `clients` is "yes".
  TlsServer(const CertificateAuthority& authority, const CertificateFiles& files, const std::string& clients = "no")
      : authority_(&authority),
        port_(RedisServer::free_port()),
        server_(server_binaries().front(),
                {"--tls-port", std::to_string(port_), "--tls-cert-file", files.certificate, "--tls-key-file", files.key,
                 "--tls-ca-cert-file", authority.file(), "--tls-auth-clients", clients}) {}
  // With an authority of its own, for this machine.
  TlsServer() : TlsServer(std::make_unique<CertificateAuthority>()) {}

  [[nodiscard]] std::string url(const std::string& host = "127.0.0.1") const {
    return "rediss://" + host + ":" + std::to_string(port_);
  }
  [[nodiscard]] const RedisServer& plain() const { return server_; }
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] const CertificateAuthority& authority() const { return *authority_; }

 private:
  explicit TlsServer(std::unique_ptr<CertificateAuthority> own)
      : TlsServer(*own, own->sign("server", "DNS:localhost,IP:127.0.0.1")) {
    own_ = std::move(own);
  }

  std::unique_ptr<CertificateAuthority> own_;
  const CertificateAuthority* authority_;
  int port_;
  RedisServer server_;
};
