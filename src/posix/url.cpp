// SPDX-License-Identifier: MIT
#include "holdfast/url.hpp"

#include "holdfast/core/topology.hpp"
#include "holdfast/proto/decimal.hpp"
#include "url_parts.hpp"

namespace holdfast {

namespace {

constexpr std::uint64_t port_max = 65535;
constexpr std::uint16_t port_default = 6379;

// Letters, digits and what names and literal addresses are made of; "%" for IPv6 zones.
bool host_byte(char byte, bool bracketed) noexcept {
  const int letter = (byte | 0x20) - 'a';
  if ((letter >= 0 && letter < 26) || (byte >= '0' && byte <= '9')) return true;
  return byte == '.' || byte == '-' || byte == '_' || (bracketed && (byte == ':' || byte == '%'));
}

const char* read_host(ByteView host, ClientConfig& config) noexcept {
  const bool bracketed = skip(host, "[");
  ByteView behind = bracketed ? split(host, ']') : host;
  const ByteView port = split(behind, ':');
  if (!bracketed)
    host = behind;
  else if (behind.data() == nullptr || !behind.empty())
    host = {};
  if (contains(port, ':') || contains(host, ':') != bracketed)
    return "an IPv6 address stands in brackets, and nothing but a port follows";
  if (host.empty() || host.size() > host_size_max) return "the host must have 1 to 255 bytes";
  for (const char byte : host)
    if (!host_byte(byte, bracketed)) return "the host has a byte that no host name has";
  std::uint64_t number = port_default;
  if (port.data() != nullptr && (!read_decimal(port, port_max, number) || number == 0))
    return "the port is no number from 1 to 65535";
  config.host.assign(host);
  config.port = static_cast<std::uint16_t>(number);
  config.socket_path.assign({});
  return nullptr;
}

const char* read_redis(ByteView authority, ClientConfig& config) noexcept {
  const bool query = contains(authority, '?') || contains(authority, '#');
  const ByteView database = split(authority, '/');
  // Never taken for a host or a database: it may be of a password.
  if (query || contains(database, '@'))
    return "'/', '?' and '#' in a password are %2F, %3F and %23, and there is no query";
  if (const char* problem = take_credentials(authority, config)) return problem;
  if (const char* problem = read_host(authority, config)) return problem;
  return database.empty() ? nullptr : read_database(database, config);
}

const char* read_unix(ByteView path, ClientConfig& config) noexcept {
  ByteView authority = path;
  path = split(authority, '/');
  if (const char* problem = take_credentials(authority, config)) return problem;
  if (!authority.empty() || path.data() == nullptr)
    return "a unix URL has an absolute path, as unix:///run/x, and '/' in a password is %2F";
  path = {path.data() - 1, path.size() + 1};
  ByteView query = split(path, '?');
  if (!decode(path, config.socket_path)) return "the socket path is too long or has a malformed percent escape";
  if (query.data() == nullptr) return nullptr;
  return skip(query, "db=") ? read_database(query, config) : "a unix URL knows one setting, db";
}

}  // namespace

Status parse_url(BytesArgument url, ClientConfig& config, const char** reason) noexcept {
  ByteView rest = url;
  const char* problem =
      "a URL begins with redis[s]://, valkey[s]:// or unix://; redis-sentinel:// and redis-cluster:// need a topology";
  ClientConfig parsed = config;
  parsed.user.assign({});
  parsed.password.assign({});
  parsed.database = 0;
  if (rest.size() > url_size_max)
    problem = "the URL is longer than 2048 bytes";
  else if (config.topology != nullptr)
    problem = config.topology->table().parse(rest, *config.topology, parsed);
  else if (skip(rest, "rediss://") || skip(rest, "valkeys://"))
    problem = config.tls != nullptr ? read_redis(rest, parsed) : "TLS needs a Tls in the configuration: see tls.hpp";
  else if (config.tls != nullptr)
    problem = "there is a Tls in the configuration, so a URL begins with rediss:// or valkeys://";
  else if (skip(rest, "redis://") || skip(rest, "valkey://"))
    problem = read_redis(rest, parsed);
  else if (skip(rest, "unix://"))
    problem = read_unix(rest, parsed);
  if (problem == nullptr) {
    config = parsed;
    return Status::ok;
  }
  if (reason != nullptr) *reason = problem;
  return Status::invalid_argument;
}

}  // namespace holdfast
