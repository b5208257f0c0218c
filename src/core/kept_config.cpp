// SPDX-License-Identifier: MIT
#include "holdfast/core/kept_config.hpp"

#include <cstring>
#include <initializer_list>

#include "holdfast/core/topology.hpp"
#include "holdfast/proto/assert.hpp"

namespace holdfast {

namespace {

template <class To, class From>
void copy_the_rest(To& to, const From& from) noexcept {
  to.port = from.port;
  to.tls = from.tls;
  to.topology = from.topology;
  to.database = from.database;
  to.connect_timeout = from.connect_timeout;
  to.request_timeout = from.request_timeout;
  to.stall_timeout = from.stall_timeout;
  to.spin = from.spin;
  to.max_poll = from.max_poll;
  to.acks = from.acks;
  to.acks_timeout = from.acks_timeout;
  to.native_delete = from.native_delete;
  to.meter = from.meter;
}

ByteView host_of(const ClientConfig& config) noexcept {
  if (config.topology != nullptr) [[unlikely]]
    return config.topology->search_place();
  return config.socket_path.empty() ? config.host.view() : ByteView();
}

}  // namespace

// The first that does not fit. Without `into` nothing is copied.
ConfigProblem KeptConfig::take_texts(const ClientConfig& config, MutableBytes space, KeptConfig* into) noexcept {
  const struct {
    const char* field;
    ByteView given;
    KeptBytes KeptConfig::*kept;
  } texts[] = {{"host", host_of(config), &KeptConfig::host},
               {"socket_path", config.socket_path.view(), &KeptConfig::socket_path},
               {"user", config.user.view(), &KeptConfig::user},
               {"password", config.password.view(), &KeptConfig::password},
               {"client_name", config.client_name.view(), &KeptConfig::client_name}};
  for (const auto& [field, given, kept] : texts) {
    const std::size_t size = given.empty() ? 0 : given.size() + 1;
    if (size > space.size) return {field, "it does not fit into the storage that the client was given"};
    if (into != nullptr) {
      into->*kept = {};
      if (size != 0) {
        std::memcpy(space.data, given.data(), given.size());
        space.data[given.size()] = '\0';
        (into->*kept).text_ = {space.data, given.size()};
      }
      space.data += size;
    }
    space.size -= size;
  }
  return {};
}

void KeptConfig::keep(const ClientConfig& config, MutableBytes space) noexcept {
  const bool fits = !take_texts(config, space, this).found();
  HOLDFAST_ASSERT(fits);
  copy_the_rest(*this, config);
}

void KeptConfig::keep_copy(const KeptConfig& other, const char* from, const char* to) noexcept {
  *this = other;
  for (KeptBytes* const kept : {&host, &socket_path, &user, &password, &client_name})
    if (!kept->empty()) kept->text_ = {to + (kept->c_str() - from), kept->view().size()};
}

KeptConfig::operator ClientConfig() const noexcept {
  ClientConfig config;
  if (socket_path.empty()) config.host = host.view();
  config.socket_path = socket_path.view();
  config.user = user.view();
  config.password = password.view();
  config.client_name = client_name.view();
  copy_the_rest(config, *this);
  return config;
}

}  // namespace holdfast
