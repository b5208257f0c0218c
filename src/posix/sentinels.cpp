// SPDX-License-Identifier: MIT
#include "holdfast/sentinels.hpp"

#include "addresses.hpp"
#include "holdfast/core/master_search.hpp"
#include "url_parts.hpp"

namespace holdfast {

namespace {

// Their own credentials. Returns what is wrong, or nullptr.
const char* read_sentinel_settings(ByteView query, BoundedText<user_size_max>& user,
                                   BoundedText<password_size_max>& password) noexcept {
  while (!query.empty()) {
    const ByteView rest = split(query, '&');
    const bool understood = skip(query, "sentinel_user=")       ? decode(query, user)
                            : skip(query, "sentinel_password=") ? decode(query, password)
                                                                : false;
    if (!understood)
      return "after '?' stand sentinel_user=USER and sentinel_password=PASSWORD, with '&' between them, "
             "percent-encoded";
    query = rest;
  }
  return nullptr;
}

const char* read_sentinels(ByteView authority, SentinelConfig& sentinels, ClientConfig& config) noexcept {
  const ByteView query = split(authority, '?');
  ByteView service = split(authority, '/');
  const ByteView database = split(service, '/');
  // Never taken for a service or a setting: it may be of a password.
  if (contains(authority, '#') || contains(service, '@') || contains(database, '@') || contains(query, '@') ||
      contains(query, '/'))
    return "'/', '?', '#' and '@' in a password are %2F, %3F, %23 and %40";
  if (const char* problem = take_credentials(authority, config)) return problem;
  if (!decode(service, sentinels.service) || sentinels.service.empty())
    return "after the sentinels stands the name of the service, as in redis-sentinel://10.0.0.1,10.0.0.2/mymaster";
  sentinels.hosts.assign(authority);
  if (const char* problem = read_sentinel_settings(query, sentinels.user, sentinels.password)) return problem;
  if (!sentinels.user.empty() && sentinels.password.empty())
    return "sentinel_user without sentinel_password cannot log in";
  if (validate(sentinels).found())
    return "there must be 1 to 9 sentinels, as host[:port] with commas between them; IPv6 addresses stand in brackets";
  return database.empty() ? nullptr : read_database(database, config);
}

bool same(const SentinelConfig& left, const SentinelConfig& right) noexcept {
  return left.hosts.view() == right.hosts.view() && left.service.view() == right.service.view() &&
         left.user.view() == right.user.view() && left.user.too_long() == right.user.too_long() &&
         left.password.view() == right.password.view() && left.password.too_long() == right.password.too_long();
}

// Fills in both. Returns what is wrong, or nullptr; where something is, or where it says the same already, `sentinels` is
// untouched: others may read it.
const char* parse_sentinel_url(ByteView url, Topology& sentinels, ClientConfig& config) noexcept {
  if (skip(url, "rediss-sentinel://") || skip(url, "valkeys-sentinel://")) {
    if (config.tls == nullptr) return "TLS needs a Tls in the configuration: see tls.hpp";
  } else if (!skip(url, "redis-sentinel://") && !skip(url, "valkey-sentinel://")) {
    return "there are Sentinels in the configuration, so a URL begins with redis-sentinel:// or rediss-sentinel://";
  } else if (config.tls != nullptr) {
    return "there is a Tls in the configuration, so a URL begins with rediss-sentinel://";
  }
  SentinelConfig parsed;
  if (const char* problem = read_sentinels(url, parsed, config)) return problem;
  config.socket_path.assign({});
  auto& known = static_cast<Sentinels&>(sentinels);
  if (!same(known.config(), parsed)) known.configure(parsed);
  return nullptr;
}

ByteView hosts_of(const Topology& topology) noexcept {
  return static_cast<const Sentinels&>(topology).config().hosts.view();
}
ByteView password_of(const Topology& topology) noexcept {
  return static_cast<const Sentinels&>(topology).config().password.view();
}

}  // namespace

constinit const Topology::Table Sentinels::ways = {MasterSearch::start,
                                                   MasterSearch::steer,
                                                   literal_address,
                                                   MasterSearch::validate,
                                                   MasterSearch::number,
                                                   MasterSearch::name_of,
                                                   hosts_of,
                                                   password_of,
                                                   parse_sentinel_url,
                                                   nullptr,
                                                   nullptr,
                                                   nullptr,
                                                   MasterSearch::serves};

}  // namespace holdfast
