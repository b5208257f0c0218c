// SPDX-License-Identifier: MIT
#include "holdfast/cluster.hpp"

#include "topology.hpp"

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_cluster_init(holdfast_cluster* cluster, const holdfast_cluster_config* config) noexcept {
  if (const holdfast_status status = free_to_make(cluster); status != HOLDFAST_OK) return status;
  const holdfast_cluster_config wanted = config == nullptr ? holdfast_cluster_config{} : *config;
  ClusterConfig said;
  said.hosts = wanted.hosts;
  if (wanted.name == nullptr || wanted.name_size == 0)
    said.name = wanted.name;
  else
    said.name = ByteView(wanted.name, wanted.name_size);
  Cluster& object = make_in(cluster, said);
  // What a URL will say is missing only later: all of it, or the hosts.
  if (wanted.hosts == nullptr && !said.name.too_long()) return HOLDFAST_OK;
  return validate(object.config()).found() ? HOLDFAST_INVALID_ARGUMENT : HOLDFAST_OK;
}

const char* holdfast_cluster_problem(const holdfast_cluster* cluster, const char** reason) noexcept {
  const Cluster* const object = object_in(cluster);
  const ConfigProblem problem = object == nullptr ? ConfigProblem() : validate(object->config());
  if (reason != nullptr) *reason = problem.reason;
  return problem.field;
}

void holdfast_cluster_destroy(holdfast_cluster* cluster) noexcept { destroy_in(cluster); }
