/* SPDX-License-Identifier: MIT
 *
 * A lock that is kept alive by a watchdog while the program works, with a fence for the resource; the watchdog tells when it is
 * lost. Ctrl-C ends a wait.
 *
 *     watchdog [URL [SECONDS]]
 */
#include <holdfast.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static holdfast_client client;
static holdfast_owner owner;
static holdfast_owner_place places[4];
static holdfast_watchdog watchdog;
static holdfast_watchdog_place watchdog_places[4];
static holdfast_lock lock;

static void on_interrupt(int number) {
  (void)number;
  holdfast_client_cancel(&client); /* Safe in a signal handler. */
}

/* Called by the watchdog's thread: it says so, and the work stops by itself. */
static void on_lost(void* context) { atomic_store((atomic_bool*)context, true); }

static int told(const char* what, holdfast_status status) {
  printf("%s: %s\n", what, holdfast_status_name(status));
  return status != HOLDFAST_OK;
}

static int work(double seconds) {
  static atomic_bool lost;
  const holdfast_lock_options options = {.fence = true}; /* The automatic lease: kept. */
  const holdfast_keep_options keep = {.on_lost = on_lost, .context = &lost, .max_hold_ms = 600000};
  if (told("the lock", holdfast_reentrant_init(&lock, &owner, "holdfast/kept", &options))) return 1;
  if (told("keep", holdfast_lock_keep(&lock, &keep))) return 1;
  if (told("acquire", holdfast_lock_acquire(&lock, 10000))) return 1;
  printf("fence: %s\n", holdfast_lock_fence(&lock) > 0 ? "yes" : "no");

  const int64_t end = holdfast_now_ns() + (int64_t)(seconds * 1e9);
  while (holdfast_now_ns() < end && !atomic_load(&lost) && holdfast_lock_held(&lock)) {
    const struct timespec pause = {.tv_nsec = 10000000};
    nanosleep(&pause, NULL); /* A step of work; the resource is given the fence with each. */
  }
  printf("lost: %s\n", atomic_load(&lost) ? "yes" : "no");
  return told("release", holdfast_lock_release(&lock));
}

int main(int argument_count, char** arguments) {
  const char* const url = argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379";
  signal(SIGINT, on_interrupt);
  holdfast_client_init(&client);
  int result = told("connect", holdfast_client_connect(&client, url));
  if (result == 0) {
    holdfast_owner_init(&owner, &client, places, sizeof places / sizeof *places);
    holdfast_watchdog_init(&watchdog, watchdog_places, sizeof watchdog_places / sizeof *watchdog_places);
    result = told("watchdog", holdfast_watchdog_start(&watchdog, &client));
    if (result == 0) result = work(argument_count > 2 ? atof(arguments[2]) : 1.0);
  }
  /* What was never made may be destroyed: it is zero. */
  holdfast_lock_destroy(&lock);
  holdfast_watchdog_destroy(&watchdog);
  holdfast_owner_destroy(&owner);
  holdfast_client_destroy(&client);
  return result;
}
