// SPDX-License-Identifier: MIT
#include "holdfast/url.hpp"

#include "decimal.hpp"

namespace holdfast {

namespace {

constexpr std::uint64_t port_max = 65535;

int hex_value(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// Decodes %XX into `out`. False for a malformed escape, a NUL byte, or a text that does not fit.
template <std::size_t size_max>
bool decode(ByteView text, BoundedText<size_max>& out) noexcept {
  char decoded[size_max];
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char byte = text[at];
    if (byte == '%') {
      if (at + 2 >= text.size()) return false;
      const int high = hex_value(text[at + 1]);
      const int low = hex_value(text[at + 2]);
      if (high < 0 || low < 0) return false;
      byte = static_cast<char>(high * 16 + low);
      at += 2;
    }
    if (byte == '\0' || size == size_max) return false;
    decoded[size++] = byte;
  }
  out.assign({decoded, size});
  return true;
}

std::size_t find(ByteView text, char wanted) noexcept { return text.find({&wanted, 1}); }

std::size_t find_last(ByteView text, char wanted) noexcept {
  for (std::size_t at = text.size(); at > 0; --at)
    if (text[at - 1] == wanted) return at - 1;
  return SIZE_MAX;
}

// "[user][:password]" in front of the '@'. Returns what is wrong, or nullptr.
const char* read_credentials(ByteView text, ClientConfig& config) noexcept {
  const std::size_t colon = find(text, ':');
  if (!decode(text.slice(0, colon == SIZE_MAX ? text.size() : colon), config.user))
    return "the user is too long or has a malformed percent escape";
  config.password = {};
  if (colon != SIZE_MAX && !decode(text.slice(colon + 1), config.password))
    return "the password is too long or has a malformed percent escape";
  if (!config.user.empty() && config.password.empty()) return "a user without a password cannot log in";
  return nullptr;
}

const char* read_database(ByteView text, ClientConfig& config) noexcept {
  std::uint64_t database = 0;
  if (!read_decimal(text, static_cast<std::uint64_t>(database_max), database))
    return "the database is no number from 0 to 65535";
  config.database = static_cast<int>(database);
  return nullptr;
}

const char* read_port(ByteView text, ClientConfig& config) noexcept {
  std::uint64_t port = 0;
  if (!read_decimal(text, port_max, port) || port == 0) return "the port is no number from 1 to 65535";
  config.port = static_cast<std::uint16_t>(port);
  return nullptr;
}

// Letters, digits and what names and literal addresses are made of; "%" for IPv6 zones.
bool host_byte(char byte) noexcept {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
         byte == '.' || byte == '-' || byte == '_' || byte == ':' || byte == '%';
}

const char* read_host(ByteView text, ClientConfig& config) noexcept {
  ByteView host = text;
  ByteView port;
  bool has_port = false;
  if (!text.empty() && text[0] == '[') {
    const std::size_t bracket = find(text, ']');
    if (bracket == SIZE_MAX) return "the bracket of the IPv6 address is not closed";
    host = text.slice(1, bracket - 1);
    if (find(host, ':') == SIZE_MAX) return "brackets are for IPv6 addresses";
    const ByteView rest = text.slice(bracket + 1);
    if (!rest.empty() && rest[0] != ':') return "something other than a port follows the IPv6 address";
    has_port = !rest.empty();
    port = rest.slice(1);
  } else {
    const std::size_t colon = find(text, ':');
    if (colon != SIZE_MAX) {
      if (find(text.slice(colon + 1), ':') != SIZE_MAX) return "an IPv6 address belongs in brackets";
      has_port = true;
      host = text.slice(0, colon);
      port = text.slice(colon + 1);
    }
    if (find(host, '%') != SIZE_MAX) return "the host has a byte that no host name has";
  }
  if (host.empty()) return "the host is empty";
  if (host.size() > host_size_max) return "the host is longer than 255 bytes";
  for (const char byte : host)
    if (!host_byte(byte)) return "the host has a byte that no host name has";
  config.host.assign(host);
  config.port = ClientConfig().port;
  return has_port ? read_port(port, config) : nullptr;
}

const char* read_redis(ByteView text, ClientConfig& config) noexcept {
  if (find(text, '?') != SIZE_MAX || find(text, '#') != SIZE_MAX)
    return "a redis URL takes no query and no fragment; write '?' and '#' in a password as %3F and %23";
  const std::size_t slash = find(text, '/');
  ByteView authority = text.slice(0, slash == SIZE_MAX ? text.size() : slash);
  const std::size_t at = find_last(authority, '@');
  if (at != SIZE_MAX) {
    if (const char* problem = read_credentials(authority.slice(0, at), config)) return problem;
    authority = authority.slice(at + 1);
  }
  if (const char* problem = read_host(authority, config)) return problem;
  config.socket_path = {};
  const ByteView database = slash == SIZE_MAX ? ByteView() : text.slice(slash + 1);
  return database.empty() ? nullptr : read_database(database, config);
}

const char* read_unix(ByteView text, ClientConfig& config) noexcept {
  const std::size_t slash = find(text, '/');
  const std::size_t at = find(text, '@');
  if (at != SIZE_MAX && (slash == SIZE_MAX || at < slash)) {
    if (const char* problem = read_credentials(text.slice(0, at), config)) return problem;
    text = text.slice(at + 1);
  }
  if (text.empty() || text[0] != '/') return "a unix URL needs an absolute path, as in unix:///run/redis.sock";
  const std::size_t question = find(text, '?');
  if (!decode(text.slice(0, question == SIZE_MAX ? text.size() : question), config.socket_path))
    return "the socket path is longer than 107 bytes or has a malformed percent escape";
  if (question == SIZE_MAX) return nullptr;
  const ByteView query = text.slice(question + 1);
  if (!query.begins_with("db=")) return "a unix URL knows one setting, db";
  return read_database(query.slice(3), config);
}

}  // namespace

Status parse_url(ByteView url, ClientConfig& config, const char** reason) noexcept {
  const char* problem = nullptr;
  ClientConfig parsed = config;
  parsed.user = {};
  parsed.password = {};
  parsed.database = 0;
  if (url.size() > url_size_max) problem = "the URL is longer than 2048 bytes";
  else if (url.begins_with("redis://")) problem = read_redis(url.slice(8), parsed);
  else if (url.begins_with("unix://")) problem = read_unix(url.slice(7), parsed);
  else if (url.begins_with("rediss://")) problem = "TLS is not supported; use a tunnel, or redis:// on a trusted network";
  else problem = "the URL begins neither with redis:// nor with unix://";
  if (problem != nullptr) {
    if (reason != nullptr) *reason = problem;
    return Status::invalid_argument;
  }
  config = parsed;
  return Status::ok;
}

}  // namespace holdfast
