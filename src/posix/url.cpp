// SPDX-License-Identifier: MIT
#include "holdfast/url.hpp"

#include "holdfast/proto/decimal.hpp"

namespace holdfast {

namespace {

constexpr std::uint64_t port_max = 65535;
constexpr std::uint16_t port_default = 6379;

int hex_value(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const int letter = (digit | 0x20) - 'a';
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

// Decodes %XX into `out`. Returns the size of the text that comes out, at most that of `text`; SIZE_MAX for a malformed
// escape or a NUL byte.
std::size_t decode(ByteView text, char* out) noexcept {
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    int byte = static_cast<unsigned char>(text[at]);
    if (byte == '%') {
      if (at + 2 >= text.size()) return SIZE_MAX;
      const int high = hex_value(text[at + 1]);
      const int low = hex_value(text[at + 2]);
      if (high < 0 || low < 0) return SIZE_MAX;
      byte = high * 16 + low;
      at += 2;
    }
    if (byte == '\0') return SIZE_MAX;
    out[size++] = static_cast<char>(byte);
  }
  return size;
}

template <std::size_t size_max>
bool decode(ByteView text, BoundedText<size_max>& out) noexcept {
  char decoded[url_size_max];
  const std::size_t size = decode(text, decoded);
  if (size > size_max) return false;
  out.assign({decoded, size});
  return true;
}

bool contains(ByteView text, char wanted) noexcept {
  return !text.empty() && std::memchr(text.data(), wanted, text.size()) != nullptr;
}

// Splits at the first `separator`: what is before it stays in `text`, what is behind it is returned. Without one, `text`
// stays whole, and what is returned has no data().
ByteView split(ByteView& text, char separator) noexcept {
  for (const char& byte : text) {
    if (byte != separator) continue;
    const ByteView rest = {&byte + 1, static_cast<std::size_t>(text.end() - &byte - 1)};
    text = {text.data(), static_cast<std::size_t>(&byte - text.data())};
    return rest;
  }
  return {};
}

// Takes the prefix off `text`, if it is there.
bool skip(ByteView& text, ByteView prefix) noexcept {
  if (!text.begins_with(prefix)) return false;
  text = text.slice(prefix.size());
  return true;
}

// "[user][:password]" in front of the '@'. Returns what is wrong, or nullptr.
const char* read_credentials(ByteView user, ClientConfig& config) noexcept {
  const ByteView password = split(user, ':');
  if (!decode(user, config.user) || !decode(password, config.password))
    return "the user or the password is too long or has a malformed percent escape";
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

// User and password end at the last '@' of what may hold them: what is before it may hold others. Returns what is wrong, or
// nullptr; `text` is what follows.
const char* take_credentials(ByteView& text, ClientConfig& config) noexcept {
  for (std::size_t at = text.size(); at > 0; --at) {
    if (text[at - 1] != '@') continue;
    const ByteView credentials = {text.data(), at - 1};
    text = text.slice(at);
    return read_credentials(credentials, config);
  }
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
  const char* problem = "a URL begins with redis://, rediss://, valkey://, valkeys:// or unix://";
  ClientConfig parsed = config;
  parsed.user.assign({});
  parsed.password.assign({});
  parsed.database = 0;
  if (rest.size() > url_size_max)
    problem = "the URL is longer than 2048 bytes";
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
