// SPDX-License-Identifier: MIT
//
// Sentinels and clusters in the storage of the caller. A client converts pointers to them, which carries nothing of their code.
#pragma once

#include "holdfast/cluster.hpp"
#include "holdfast/sentinels.hpp"
#include "objects.hpp"

namespace holdfast::c {

template <>
struct Made<holdfast_sentinels> {
  using Object = Sentinels;
  static constexpr std::uintptr_t number = 7;
};

template <>
struct Made<holdfast_cluster> {
  using Object = Cluster;
  static constexpr std::uintptr_t number = 8;
};

static_assert(HOLDFAST_SENTINELS_MAX == sentinels_max && HOLDFAST_CLUSTER_HOSTS_MAX == cluster_hosts_max);

}  // namespace holdfast::c
