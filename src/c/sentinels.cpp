// SPDX-License-Identifier: MIT
#include "holdfast/sentinels.hpp"

#include "topology.hpp"

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_sentinels_init(holdfast_sentinels* sentinels,
                                        const holdfast_sentinels_config* config) noexcept {
  if (const holdfast_status status = free_to_make(sentinels); status != HOLDFAST_OK) return status;
  const holdfast_sentinels_config wanted = config == nullptr ? holdfast_sentinels_config{} : *config;
  Sentinels& object =
      make_in(sentinels,
              SentinelConfig{
                  .hosts = wanted.hosts, .service = wanted.service, .user = wanted.user, .password = wanted.password});
  // What a URL will say is missing only later.
  if (wanted.hosts == nullptr && wanted.service == nullptr && wanted.user == nullptr && wanted.password == nullptr)
    return HOLDFAST_OK;
  return validate(object.config()).found() ? HOLDFAST_INVALID_ARGUMENT : HOLDFAST_OK;
}

const char* holdfast_sentinels_problem(const holdfast_sentinels* sentinels, const char** reason) noexcept {
  const Sentinels* const object = object_in(sentinels);
  const ConfigProblem problem = object == nullptr ? ConfigProblem() : validate(object->config());
  if (reason != nullptr) *reason = problem.reason;
  return problem.field;
}

void holdfast_sentinels_destroy(holdfast_sentinels* sentinels) noexcept { destroy_in(sentinels); }
