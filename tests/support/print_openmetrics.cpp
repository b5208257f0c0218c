// SPDX-License-Identifier: MIT
//
// Prints numbers as OpenMetrics text, with labels that are hard to write, for a parser that is not ours.
#include <cstdio>
#include <cstring>

#include "holdfast/core/openmetrics.hpp"

using namespace holdfast;

int main() {
  Stats stats;
  stats.grants = 1;
  stats.bytes_sent = UINT64_C(1) << 40;
  stats.waits = 3;
  stats.waits_ended = 1;
  stats.renewals = 4;
  stats.renewal.buckets[2] = 3;
  stats.renewal.buckets[latency_buckets_count - 1] = 1;
  stats.renewal.nanoseconds = 61'500'000'001;
  const MetricLabel labels[] = {{"job", "a\"b\\c\nd"}, {"_2", "\xc3\xa4 {x}"}};
  char text[openmetrics_size_max_with(2, 32)];
  std::size_t size = 0;
  if (write_openmetrics(stats, {text, sizeof text}, size, labels, 2) != Status::ok) return 1;
  return std::fwrite(text, 1, size, stdout) == size ? 0 : 1;
}
