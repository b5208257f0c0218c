// SPDX-License-Identifier: MIT
//
// Stats as OpenMetrics text, which Prometheus and its kin read:
//
//     char text[openmetrics_size_max];
//     std::size_t size = 0;
//     if (write_openmetrics(client.stats(), {text, sizeof text}, size) == Status::ok) send(text, size);
//
// Each family begins with holdfast_, and has its TYPE, UNIT and HELP; the text ends with # EOF. Counters end in _total; latencies
// are histograms in seconds. A lock's name is no label: there may be any number of locks.
#pragma once

#include <cstddef>

#include "holdfast/core/stats.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// Put on every sample, to tell apart what comes from several processes.
struct MetricLabel {
  ByteView name;   // Letters, digits and '_', no digit first; not "le", and no "__" first.
  ByteView value;  // Any UTF-8.
};
inline constexpr std::size_t metric_labels_max = 4;
inline constexpr std::size_t metric_label_name_size_max = 64;
inline constexpr std::size_t metric_label_value_size_max = 256;

// Numbers, one a line.
inline constexpr std::size_t openmetrics_samples = 12 /* counters */ + 2 /* gauges */ + 3 * (latency_buckets_count + 2);
// The longest text without labels,
inline constexpr std::size_t openmetrics_size_max = 8 * 1024;
// and with labels whose names and values have so many bytes together. A byte of a value may be two in the text.
[[nodiscard]] constexpr std::size_t openmetrics_size_max_with(std::size_t label_count,
                                                              std::size_t label_bytes) noexcept {
  return openmetrics_size_max + openmetrics_samples * (2 + 4 * label_count + 2 * label_bytes);
}

// Writes all of it, or nothing. Errors: buffer_too_small: `space` and `size` are as they were; invalid_argument: a label is
// none, or comes twice, or there are more than metric_labels_max.
[[nodiscard]] Status write_openmetrics(const Stats& stats, MutableBytes space, std::size_t& size,
                                       const MetricLabel* labels = nullptr, std::size_t label_count = 0) noexcept;

// Why the label cannot be written, as a sentence without a full stop; nullptr: it can.
[[nodiscard]] const char* metric_label_problem(const MetricLabel& label) noexcept;

}  // namespace holdfast
