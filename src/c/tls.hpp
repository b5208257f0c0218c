// SPDX-License-Identifier: MIT
//
// A Tls in the storage of a holdfast_tls. The library holdfast knows where it is, and nothing more: its code is in holdfast-tls.
#pragma once

#include "holdfast/tls.hpp"
#include "holdfast_tls.h"
#include "objects.hpp"

namespace holdfast::c {

struct TlsObject {
  explicit TlsObject(const Tls::Storage& storage) noexcept : places(storage), tls(storage) {}

  Tls::Storage places;
  Tls tls;
  bool open = false;  // Once it was.
};

template <>
struct Made<holdfast_tls> {
  using Object = TlsObject;
  static constexpr std::uintptr_t number = 10;
};

static_assert(sizeof(Tls::Place) <= HOLDFAST_TLS_PLACE_SIZE && alignof(Tls::Place) <= HOLDFAST_ALIGNMENT);

}  // namespace holdfast::c
