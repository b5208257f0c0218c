// SPDX-License-Identifier: MIT
#pragma once

#include "holdfast/client.hpp"
#include "objects.hpp"

namespace holdfast::c {

template <>
struct Made<holdfast_client> {
  using Object = Client;
  static constexpr std::uintptr_t number = 1;
};

}  // namespace holdfast::c
