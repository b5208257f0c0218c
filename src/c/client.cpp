// SPDX-License-Identifier: MIT
#include "client.hpp"

#include "holdfast/proto/assert.hpp"
#include "holdfast/url.hpp"
#include "meter.hpp"
#include "tls.hpp"
#include "topology.hpp"

using namespace holdfast;
using namespace holdfast::c;

namespace {

// A text that is there replaces the default.
template <std::size_t size_max>
void choose(BoundedText<size_max>& text, const char* wanted) noexcept {
  if (wanted != nullptr) text = wanted;
}

// What a URL says instead, where there is one.
void choose_address(ClientConfig& config, const holdfast_client_config& wanted) noexcept {
  choose(config.host, wanted.host);
  if (wanted.port != 0) config.port = wanted.port;
  choose(config.socket_path, wanted.socket_path);
  choose(config.user, wanted.user);
  choose(config.password, wanted.password);
  config.database = wanted.database;
}

void choose_the_rest(ClientConfig& config, const holdfast_client_config& wanted) noexcept {
  choose(config.client_name, wanted.client_name);
  config.connect_timeout = of_milliseconds(wanted.connect_timeout_ms, connect_timeout_default);
  config.request_timeout = of_milliseconds(wanted.request_timeout_ms, request_timeout_default);
  config.stall_timeout = of_milliseconds(wanted.stall_timeout_ms, stall_timeout_default);
  config.max_poll = of_milliseconds(wanted.max_poll_ms, max_poll_default);
  config.spin = of_units(wanted.spin_us, 1'000);
  config.native_delete = !wanted.no_native_delete;
  config.acks = wanted.acks < 0 || wanted.acks > acks_max ? UINT8_MAX : static_cast<std::uint8_t>(wanted.acks);
  config.acks_timeout = of_milliseconds(wanted.acks_timeout_ms, acks_timeout_default);
}

// The objects that the settings name.
ConfigProblem choose_objects(ClientConfig& config, const holdfast_client_config& wanted,
                             const ClientObject& client) noexcept {
  constexpr const char* none = "it was not initialised, or is gone";
  if (wanted.sentinels != nullptr && wanted.cluster != nullptr)
    return {"cluster", "there are sentinels, too: a client has either of them, or none"};
  if (wanted.sentinels != nullptr) {
    config.topology = object_in(wanted.sentinels);
    if (config.topology == nullptr) return {"sentinels", none};
  }
  if (wanted.cluster != nullptr) {
    config.topology = object_in(wanted.cluster);
    if (config.topology == nullptr) return {"cluster", none};
  }
  if (wanted.tls != nullptr) {
    TlsObject* const object = object_in(wanted.tls);
    if (object == nullptr) return {"tls", none};
    if (!object->open) return {"tls", "it is not open: see holdfast_tls_open()"};
    config.tls = &object->tls;
  }
  if (!choose_meter(wanted.meter, config.meter)) return no_meter;
  if (wanted.acks > 0 && client.acks == nullptr)
    return {"acks", "the client has no holdfast_acks: call holdfast_acks_init() before"};
  return {};
}

// What a URL needs that is not there, in the words of C.
ConfigProblem find_missing(ByteView url, const ClientConfig& config) noexcept {
  const ByteView scheme = url.slice(0, url.find("://"));
  const bool secure = scheme.begins_with("rediss") || scheme.begins_with("valkeys");
  if (config.topology == nullptr && scheme.find("-sentinel") != SIZE_MAX)
    return {"sentinels", "a URL of sentinels needs initialised ones in the configuration"};
  if (config.topology == nullptr && scheme.find("-cluster") != SIZE_MAX)
    return {"cluster", "a URL of a cluster needs an initialised one in the configuration"};
  if (config.tls == nullptr && secure)
    return {"tls", "a URL with TLS needs a holdfast_tls in the configuration: see holdfast_tls.h"};
  return {};
}

}  // namespace

int64_t holdfast_now_ns(void) noexcept { return read_clock().nanoseconds(); }

holdfast_status holdfast_client_init(holdfast_client* client) noexcept {
  if (const holdfast_status status = free_to_make(client); status != HOLDFAST_OK) return status;
  make_in(client);
  return HOLDFAST_OK;
}

void holdfast_client_destroy(holdfast_client* client) noexcept {
  const ClientObject* const object = object_in(client);
  HOLDFAST_ASSERT(object == nullptr || (object->acks == nullptr && object->watch == nullptr &&
                                        object->branches == nullptr));  // They go first.
  destroy_in(client);
}

holdfast_status holdfast_client_connect(holdfast_client* client, const char* url) noexcept {
  return holdfast_client_connect_to(client, url, nullptr);
}

holdfast_status holdfast_client_connect_with(holdfast_client* client, const holdfast_client_config* config) noexcept {
  ClientObject* const object = object_in(client);
  if (object == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  const holdfast_client_config wanted = config == nullptr ? holdfast_client_config{} : *config;
  ClientConfig settings;
  choose_address(settings, wanted);
  choose_the_rest(settings, wanted);
  object->refused = choose_objects(settings, wanted, *object);
  if (!object->refused.found() && settings.topology != nullptr && wanted.socket_path != nullptr)
    object->refused = {"socket_path", "sentinels and a cluster say where the server is"};
  return object->refused.found() ? HOLDFAST_INVALID_ARGUMENT : to_c(object->connect(settings));
}

holdfast_status holdfast_client_connect_to(holdfast_client* client, const char* url,
                                           const holdfast_client_config* config) noexcept {
  ClientObject* const object = object_in(client);
  if (object == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  const holdfast_client_config wanted = config == nullptr ? holdfast_client_config{} : *config;
  ClientConfig settings;
  choose_the_rest(settings, wanted);
  object->refused = choose_objects(settings, wanted, *object);
  if (!object->refused.found()) object->refused = find_missing(url, settings);
  if (!object->refused.found()) {
    const char* reason = nullptr;
    if (parse_url(url, settings, &reason) != Status::ok) object->refused = {"url", reason};
  }
  return object->refused.found() ? HOLDFAST_INVALID_ARGUMENT : to_c(object->connect(settings));
}

void holdfast_client_close(holdfast_client* client) noexcept {
  if (Client* const object = object_in(client); object != nullptr) object->close();
}

bool holdfast_client_connected(const holdfast_client* client) noexcept {
  const Client* const object = object_in(client);
  return object != nullptr && object->connected();
}

const char* holdfast_client_problem(const holdfast_client* client, const char** reason) noexcept {
  const ClientObject* const object = object_in(client);
  const ConfigProblem problem = object == nullptr         ? ConfigProblem()
                                : object->refused.found() ? object->refused
                                                          : object->problem();
  if (reason != nullptr) *reason = problem.reason;
  return problem.field;
}

size_t holdfast_client_error_text(const holdfast_client* client, char* text, size_t size) noexcept {
  const Client* const object = object_in(client);
  return copy_text(object == nullptr ? ByteView() : object->error_text(), text, size);
}

int64_t holdfast_client_tend(holdfast_client* client) noexcept {
  Client* const object = object_in(client);
  return (object == nullptr ? Instant::max() : object->tend()).nanoseconds();
}

void holdfast_client_cancel(holdfast_client* client) noexcept {
  if (Client* const object = object_in(client); object != nullptr) object->cancel();
}
