/* SPDX-License-Identifier: MIT
 *
 * A program that knows its numbers: a meter counts what its client does, and the numbers are printed as OpenMetrics text, as an
 * HTTP handler for Prometheus would send them.
 *
 *     stats [URL]
 */
#include <holdfast.h>
#include <stdio.h>

#define JOB "an example in C"

static holdfast_meter meter; /* Outlives the client. */
static holdfast_client client;
static holdfast_lock lock;
static char text[HOLDFAST_OPENMETRICS_SIZE_WITH(1, sizeof "job" + sizeof JOB)];

static int work(void) {
  const holdfast_lock_options options = {.lease_ms = 5000};
  if (holdfast_mutex_init(&lock, &client, "holdfast/example", &options) != HOLDFAST_OK) return 1;
  for (int job = 0; job < 3; ++job)
    if (holdfast_lock_acquire(&lock, 2000) != HOLDFAST_OK || holdfast_lock_renew(&lock) != HOLDFAST_OK ||
        holdfast_lock_release(&lock) != HOLDFAST_OK)
      return 1;
  return 0;
}

static int print_numbers(void) {
  const holdfast_metric_label label = {.name = "job", .value = JOB};
  holdfast_stats stats;
  size_t size = 0;
  if (holdfast_meter_stats(&meter, &stats) != HOLDFAST_OK) return 1;
  fprintf(stderr, "%llu grants, %llu failures\n", (unsigned long long)stats.grants, (unsigned long long)stats.failures);
  if (holdfast_write_openmetrics(&stats, &label, 1, text, sizeof text, &size) != HOLDFAST_OK) return 1;
  return fwrite(text, 1, size, stdout) == size ? 0 : 1;
}

int main(int argument_count, char** arguments) {
  const holdfast_client_config config = {.meter = &meter};
  holdfast_meter_init(&meter);
  holdfast_client_init(&client);
  int result = holdfast_client_connect_to(&client, argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379",
                                          &config) != HOLDFAST_OK;
  if (result == 0) result = work();
  if (print_numbers() != 0) result = 1; /* Why nothing was held is a number, too. */
  holdfast_lock_destroy(&lock);
  holdfast_client_destroy(&client);
  holdfast_meter_destroy(&meter);
  return result;
}
