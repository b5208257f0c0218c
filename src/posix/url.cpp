// SPDX-License-Identifier: MIT
#include "holdfast/url.hpp"

#include "decimal.hpp"

namespace holdfast {

namespace {

constexpr std::uint64_t port_max = 65535;
constexpr std::uint16_t port_default = 6379;

int hex_value(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const int letter = (digit | 0x20) - 'a';
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

// Decodes %XX. The text that comes out is at most as long as `text`; false for a malformed escape or a NUL byte.
bool decode(ByteView text, char (&out)[url_size_max], std::size_t& size) noexcept {
  size = 0;
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
    if (byte == '\0') return false;
    out[size++] = byte;
  }
  return true;
}

template <std::size_t size_max>
bool decode(ByteView text, BoundedText<size_max>& out) noexcept {
  char decoded[url_size_max];
  std::size_t size = 0;
  if (!decode(text, decoded, size)) return false;
  out.assign({decoded, size});
  return !out.too_long();
}

[[gnu::noinline]] std::size_t find(ByteView text, char wanted) noexcept {
  const void* const found = text.empty() ? nullptr : std::memchr(text.data(), wanted, text.size());
  return found == nullptr ? SIZE_MAX : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// Splits at the first `separator`: what is before it stays in `text`, what is behind it is returned.
[[gnu::noinline]] ByteView split(ByteView& text, char separator, bool& found) noexcept {
  const std::size_t at = find(text, separator);
  found = at != SIZE_MAX;
  if (!found) return {};
  const ByteView rest = {text.data() + at + 1, text.size() - at - 1};
  text = {text.data(), at};
  return rest;
}

std::size_t find_last(ByteView text, char wanted) noexcept {
  for (std::size_t at = text.size(); at > 0; --at)
    if (text[at - 1] == wanted) return at - 1;
  return SIZE_MAX;
}

// "[user][:password]" in front of the '@'. Returns what is wrong, or nullptr.
const char* read_credentials(ByteView user, ClientConfig& config) noexcept {
  bool has_password = false;
  const ByteView password = split(user, ':', has_password);
  if (!decode(user, config.user)) return "the user is too long or has a malformed percent escape";
  if (!decode(password, config.password)) return "the password is too long or has a malformed percent escape";
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

// Letters, digits and what names and literal addresses are made of; "%" for IPv6 zones.
bool host_byte(char byte, bool bracketed) noexcept {
  const int letter = (byte | 0x20) - 'a';
  if ((letter >= 0 && letter < 26) || (byte >= '0' && byte <= '9')) return true;
  return byte == '.' || byte == '-' || byte == '_' || (bracketed && (byte == ':' || byte == '%'));
}

const char* read_host(ByteView host, ClientConfig& config) noexcept {
  ByteView port;
  bool has_port = false;
  const bool bracketed = !host.empty() && host[0] == '[';
  if (bracketed) {
    bool closed = false;
    host = host.slice(1);
    ByteView rest = split(host, ']', closed);
    if (!closed) return "the bracket of the IPv6 address is not closed";
    if (find(host, ':') == SIZE_MAX) return "brackets are for IPv6 addresses";
    port = split(rest, ':', has_port);
    if (!rest.empty()) return "something other than a port follows the IPv6 address";
  } else {
    port = split(host, ':', has_port);
    if (find(port, ':') != SIZE_MAX) return "an IPv6 address belongs in brackets";
  }
  if (host.empty()) return "the host is empty";
  if (host.size() > host_size_max) return "the host is longer than 255 bytes";
  for (const char byte : host)
    if (!host_byte(byte, bracketed)) return "the host has a byte that no host name has";
  std::uint64_t number = port_default;
  if (has_port && (!read_decimal(port, port_max, number) || number == 0))
    return "the port is no number from 1 to 65535";
  config.host.assign(host);
  config.port = static_cast<std::uint16_t>(number);
  config.socket_path.assign({});
  return nullptr;
}

const char* read_redis(ByteView authority, ClientConfig& config) noexcept {
  if (find(authority, '?') != SIZE_MAX || find(authority, '#') != SIZE_MAX)
    return "a redis URL takes no query and no fragment; write '?' and '#' in a password as %3F and %23";
  bool found = false;
  const ByteView database = split(authority, '/', found);
  const std::size_t at = find_last(authority, '@');
  if (at != SIZE_MAX) {
    if (const char* problem = read_credentials({authority.data(), at}, config)) return problem;
    authority = authority.slice(at + 1);
  }
  if (const char* problem = read_host(authority, config)) return problem;
  return database.empty() ? nullptr : read_database(database, config);
}

const char* read_unix(ByteView path, ClientConfig& config) noexcept {
  if (find(path, '@') < find(path, '/')) {
    bool found = false;
    ByteView credentials = path;
    path = split(credentials, '@', found);
    if (const char* problem = read_credentials(credentials, config)) return problem;
  }
  bool has_query = false;
  const ByteView query = split(path, '?', has_query);
  if (path.empty() || path[0] != '/') return "a unix URL needs an absolute path, as in unix:///run/redis.sock";
  if (!decode(path, config.socket_path))
    return "the socket path is longer than 107 bytes or has a malformed percent escape";
  if (!has_query) return nullptr;
  return query.begins_with("db=") ? read_database(query.slice(3), config) : "a unix URL knows one setting, db";
}

}  // namespace

Status parse_url(ByteView url, ClientConfig& config, const char** reason) noexcept {
  const char* problem = nullptr;
  ClientConfig parsed = config;
  parsed.user.assign({});
  parsed.password.assign({});
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
