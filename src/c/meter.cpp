// SPDX-License-Identifier: MIT
//
// Numbers, and their text.
#include "meter.hpp"

#include <cstddef>

#include "client.hpp"

using namespace holdfast;
using namespace holdfast::c;

namespace {

#define HOLDFAST_SAME_PLACE(name) static_assert(offsetof(holdfast_stats, name) == offsetof(Stats, name))
HOLDFAST_SAME_PLACE(grants);
HOLDFAST_SAME_PLACE(refusals);
HOLDFAST_SAME_PLACE(failures);
HOLDFAST_SAME_PLACE(waits);
HOLDFAST_SAME_PLACE(waits_ended);
HOLDFAST_SAME_PLACE(losses);
HOLDFAST_SAME_PLACE(renewals);
HOLDFAST_SAME_PLACE(renewals_failed);
HOLDFAST_SAME_PLACE(connects);
HOLDFAST_SAME_PLACE(reconnects);
HOLDFAST_SAME_PLACE(disconnects);
HOLDFAST_SAME_PLACE(compensations);
HOLDFAST_SAME_PLACE(bytes_sent);
HOLDFAST_SAME_PLACE(bytes_received);
HOLDFAST_SAME_PLACE(acquire);
HOLDFAST_SAME_PLACE(wait);
HOLDFAST_SAME_PLACE(renewal);
#undef HOLDFAST_SAME_PLACE
static_assert(offsetof(holdfast_latencies, nanoseconds) == offsetof(Latencies, nanoseconds));

static_assert(HOLDFAST_METRIC_LABELS_MAX == metric_labels_max);
static_assert(HOLDFAST_OPENMETRICS_SIZE == openmetrics_size_max + 1, "the text and its NUL");
static_assert(HOLDFAST_OPENMETRICS_SIZE_WITH(3, 70) == openmetrics_size_max_with(3, 70) + 1);

}  // namespace

holdfast_status holdfast_meter_init(holdfast_meter* meter) noexcept {
  if (const holdfast_status status = free_to_make(meter); status != HOLDFAST_OK) return status;
  make_in(meter);
  return HOLDFAST_OK;
}

void holdfast_meter_destroy(holdfast_meter* meter) noexcept { destroy_in(meter); }

holdfast_status holdfast_meter_stats(const holdfast_meter* meter, holdfast_stats* stats) noexcept {
  const Meter* const object = object_in(meter);
  return object == nullptr ? HOLDFAST_INVALID_ARGUMENT : give(object->stats(), stats);
}

holdfast_status holdfast_client_stats(const holdfast_client* client, holdfast_stats* stats) noexcept {
  const Client* const object = object_in(client);
  return object == nullptr ? HOLDFAST_INVALID_ARGUMENT : give(object->stats(), stats);
}

int64_t holdfast_latency_bound_ns(size_t bucket) noexcept {
  return bucket < latency_bounds_count ? latency_bounds[bucket].bound.count() : HOLDFAST_NEVER;
}

holdfast_status holdfast_write_openmetrics(const holdfast_stats* stats, const holdfast_metric_label* labels,
                                           size_t label_count, char* text, size_t size, size_t* written) noexcept {
  if (stats == nullptr || text == nullptr || (labels == nullptr && label_count != 0) || label_count > metric_labels_max)
    return HOLDFAST_INVALID_ARGUMENT;
  MetricLabel views[metric_labels_max];
  for (std::size_t index = 0; index < label_count; ++index) views[index] = {labels[index].name, labels[index].value};
  if (size == 0) return HOLDFAST_BUFFER_TOO_SMALL;
  std::size_t used = 0;
  const Status status = write_openmetrics(std::bit_cast<Stats>(*stats), {text, size - 1}, used, views, label_count);
  if (status != Status::ok) return to_c(status);
  text[used] = '\0';
  if (written != nullptr) *written = used;
  return HOLDFAST_OK;
}
