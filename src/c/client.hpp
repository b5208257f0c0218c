// SPDX-License-Identifier: MIT
//
// A client in the storage of a holdfast_client: that of C++, and what C alone has to say about it.
#pragma once

#include "holdfast/client.hpp"
#include "objects.hpp"

namespace holdfast::c {

struct ClientObject : Client {
  ConfigProblem refused;          // Found before the settings, or the URL, came to the client.
  holdfast_acks* acks = nullptr;  // Those that it has.
  holdfast_sentinel_watch* watch = nullptr;
  holdfast_branches* branches = nullptr;
};

template <>
struct Made<holdfast_client> {
  using Object = ClientObject;
  static constexpr std::uintptr_t number = 1;
};

}  // namespace holdfast::c
