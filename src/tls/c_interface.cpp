// SPDX-License-Identifier: MIT
//
// The functions of holdfast_tls.h.
#include "c/tls.hpp"

#include "holdfast/proto/assert.hpp"

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_tls_init(holdfast_tls* tls, holdfast_tls_place* places, size_t count) noexcept {
  if (const holdfast_status status = free_to_make(tls); status != HOLDFAST_OK) return status;
  clear(tls);
  if (!usable(places) || count == 0) return HOLDFAST_INVALID_ARGUMENT;
  // One array of C++ at the beginning of one of C, whose places are at least as large.
  auto* const begin = reinterpret_cast<Tls::Place*>(places);
  for (std::size_t index = 0; index < count; ++index) ::new (static_cast<void*>(begin + index)) Tls::Place;
  make_in(tls, Tls::Storage{begin, count});
  return HOLDFAST_OK;
}

holdfast_status holdfast_tls_open(holdfast_tls* tls, const holdfast_tls_config* config) noexcept {
  TlsObject* const object = object_in(tls);
  if (object == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  const holdfast_tls_config wanted = config == nullptr ? holdfast_tls_config{} : *config;
  const Status status = object->tls.open({.ca_file = wanted.ca_file,
                                          .certificate_file = wanted.certificate_file,
                                          .key_file = wanted.key_file,
                                          .server_name = wanted.server_name,
                                          .verify = wanted.insecure ? TlsVerify::nothing : TlsVerify::full});
  if (status == Status::ok) object->open = true;
  return to_c(status);
}

size_t holdfast_tls_error_text(const holdfast_tls* tls, char* text, size_t size) noexcept {
  const TlsObject* const object = object_in(tls);
  return copy_text(object == nullptr ? ByteView() : object->tls.error_text(), text, size);
}

void holdfast_tls_destroy(holdfast_tls* tls) noexcept {
  const TlsObject* const object = object_in(tls);
  if (object == nullptr) return;
  for (std::size_t index = 0; index < object->places.count; ++index)
    HOLDFAST_ASSERT(!object->places.places[index].taken);  // Its clients go first.
  destroy_in(tls);
}
