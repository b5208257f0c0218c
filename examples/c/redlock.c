/* SPDX-License-Identifier: MIT
 *
 * A lock on several servers, held while a majority of them holds it.
 *
 *     redlock URL...
 *
 * Servers that were started within max_lease have no vote yet: --no-restart-guard, as the first argument, lets them.
 */
#include <holdfast.h>
#include <stdio.h>
#include <string.h>

static holdfast_quorum quorum;
static holdfast_quorum_node nodes[HOLDFAST_NODES_MAX];
static holdfast_quorum_vote votes[HOLDFAST_NODES_MAX];
static holdfast_lock lock;

static int told(const char* what, holdfast_status status) {
  char text[320];
  printf("%s: %s\n", what, holdfast_status_name(status));
  if (status != HOLDFAST_OK && holdfast_quorum_error_text(&quorum, text, sizeof text) > 0) printf("%s\n", text);
  return status != HOLDFAST_OK;
}

static int hold(size_t count) {
  const holdfast_lock_options options = {.lease_ms = 10000};
  if (told("the lock", holdfast_redlock_init(&lock, &quorum, votes, count, "holdfast/redlock", &options))) return 1;
  if (told("acquire", holdfast_lock_acquire(&lock, 5000))) return 1;
  printf("held for: %s\n", holdfast_lock_remaining_ms(&lock) > 5000 ? "more than 5 s" : "less than 5 s");
  return told("release", holdfast_lock_release(&lock));
}

int main(int argument_count, char** arguments) {
  holdfast_quorum_config config = {0};
  const char* const* urls = (const char* const*)arguments + 1;
  size_t count = (size_t)(argument_count - 1);
  if (count > 0 && strcmp(*urls, "--no-restart-guard") == 0) {
    config.no_restart_guard = true;
    ++urls;
    --count;
  }
  int result = told("the quorum", holdfast_quorum_init(&quorum, nodes, count));
  if (result == 0) result = told("connect", holdfast_quorum_connect(&quorum, urls, count, &config));
  size_t node = 0;
  const char* reason = NULL;
  const char* const field = holdfast_quorum_problem(&quorum, &node, &reason);
  if (field != NULL) printf("URL %zu: %s: %s\n", node + 1, field, reason);
  if (result == 0) result = hold(count);
  holdfast_lock_destroy(&lock);
  holdfast_quorum_destroy(&quorum);
  return result;
}
