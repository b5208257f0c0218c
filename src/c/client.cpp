// SPDX-License-Identifier: MIT
#include "client.hpp"

using namespace holdfast;
using namespace holdfast::c;

namespace {

// A text that is there replaces the default.
template <std::size_t size_max>
void choose(BoundedText<size_max>& text, const char* wanted) noexcept {
  if (wanted != nullptr) text = wanted;
}

ClientConfig config_of(const holdfast_client_config& wanted) noexcept {
  ClientConfig config;
  choose(config.host, wanted.host);
  if (wanted.port != 0) config.port = wanted.port;
  choose(config.socket_path, wanted.socket_path);
  choose(config.user, wanted.user);
  choose(config.password, wanted.password);
  choose(config.client_name, wanted.client_name);
  config.database = wanted.database;
  config.connect_timeout = of_milliseconds(wanted.connect_timeout_ms, connect_timeout_default);
  config.request_timeout = of_milliseconds(wanted.request_timeout_ms, request_timeout_default);
  config.stall_timeout = of_milliseconds(wanted.stall_timeout_ms, stall_timeout_default);
  config.max_poll = of_milliseconds(wanted.max_poll_ms, max_poll_default);
  config.spin = of_units(wanted.spin_us, 1'000);
  config.native_delete = !wanted.no_native_delete;
  return config;
}

}  // namespace

int64_t holdfast_now_ns(void) noexcept { return read_clock().nanoseconds(); }

holdfast_status holdfast_client_init(holdfast_client* client) noexcept {
  if (const holdfast_status status = free_to_make(client); status != HOLDFAST_OK) return status;
  make_in(client);
  return HOLDFAST_OK;
}

void holdfast_client_destroy(holdfast_client* client) noexcept { destroy_in(client); }

holdfast_status holdfast_client_connect(holdfast_client* client, const char* url) noexcept {
  Client* const object = object_in(client);
  return object == nullptr ? HOLDFAST_INVALID_ARGUMENT : to_c(object->connect(url));
}

holdfast_status holdfast_client_connect_with(holdfast_client* client, const holdfast_client_config* config) noexcept {
  Client* const object = object_in(client);
  if (object == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  return to_c(object->connect(config_of(config == nullptr ? holdfast_client_config{} : *config)));
}

void holdfast_client_close(holdfast_client* client) noexcept {
  if (Client* const object = object_in(client); object != nullptr) object->close();
}

bool holdfast_client_connected(const holdfast_client* client) noexcept {
  const Client* const object = object_in(client);
  return object != nullptr && object->connected();
}

const char* holdfast_client_problem(const holdfast_client* client, const char** reason) noexcept {
  const Client* const object = object_in(client);
  const ConfigProblem problem = object == nullptr ? ConfigProblem() : object->problem();
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
