/* SPDX-License-Identifier: MIT
 *
 * The smallest honest program in C: it takes a lock, works only while it holds it, and lets it go.
 *
 *     minimal [URL]
 */
#include <holdfast.h>
#include <stdio.h>

enum { steps = 10 };

static int fail(const char* what, holdfast_status status) {
  printf("%s: %s. %s %s\n", what, holdfast_status_name(status), holdfast_status_cause(status),
         holdfast_status_remedy(status));
  return 1;
}

static int work(holdfast_lock* lock) {
  holdfast_status status = holdfast_lock_acquire(lock, 2000);
  if (status != HOLDFAST_OK) return fail("acquire", status);

  /* It is asked before every step that must not happen twice: the lock ends by itself, also while we sleep. */
  for (int step = 1; step <= steps; ++step) {
    if (holdfast_now_ns() >= holdfast_lock_renewal_due_ns(lock)) (void)!holdfast_lock_renew(lock);
    if (!holdfast_lock_held(lock)) return fail("work", HOLDFAST_LOCK_LOST);
    printf("step %d of %d\n", step, steps);
  }

  status = holdfast_lock_release(lock);
  if (status != HOLDFAST_OK) return fail("release", status);
  printf("acquire and release: %s\n", holdfast_status_name(status));
  return 0;
}

int main(int argument_count, char** arguments) {
  static holdfast_client client;
  static holdfast_lock lock;
  const holdfast_lock_options options = {.lease_ms = 5000};

  holdfast_client_init(&client);
  holdfast_status status =
      holdfast_client_connect(&client, argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379");
  int result = 1;
  if (status != HOLDFAST_OK) {
    fail("connect", status);
  } else {
    status = holdfast_mutex_init(&lock, &client, "holdfast/example", &options);
    result = status == HOLDFAST_OK ? work(&lock) : fail("the lock", status);
  }
  holdfast_lock_destroy(&lock);
  holdfast_client_destroy(&client);
  return result;
}
