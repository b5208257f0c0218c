/* SPDX-License-Identifier: MIT
 *
 * A lock on the server that sentinels name, or that a cluster has for it. It counts once so many replicas have confirmed it.
 *
 *     topology URL [REPLICAS]
 *
 *     topology redis-sentinel://10.0.0.1,10.0.0.2,10.0.0.3/mymaster 1
 *     topology redis-cluster://10.0.0.1,10.0.0.2,10.0.0.3
 */
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "holdfast/topology";

static holdfast_sentinels sentinels;
static holdfast_cluster cluster;
static holdfast_client client;
static holdfast_acks acks;
static holdfast_sentinel_watch watch;
static holdfast_lock lock;

static int told(const char* what, holdfast_status status) {
  char text[256];
  const char* reason = NULL;
  printf("%s: %s\n", what, holdfast_status_name(status));
  if (status == HOLDFAST_OK) return 0;
  if (status == HOLDFAST_INVALID_ARGUMENT && holdfast_client_problem(&client, &reason) != NULL)
    printf("%s: %s\n", holdfast_client_problem(&client, NULL), reason);
  else if (holdfast_client_error_text(&client, text, sizeof text) > 0)
    printf("%s\n", text);
  return 1;
}

/* The URL fills in whichever it needs; of the cluster the name is known, whose slot the client serves. */
static int connect_to(const char* url, int replicas) {
  const holdfast_cluster_config cluster_config = {.name = name};
  holdfast_client_config config = {.acks = replicas};
  if (strncmp(url, "redis-sentinel:", 15) == 0) {
    holdfast_sentinels_init(&sentinels, NULL);
    config.sentinels = &sentinels;
  } else if (strncmp(url, "redis-cluster:", 14) == 0) {
    holdfast_cluster_init(&cluster, &cluster_config);
    config.cluster = &cluster;
  }
  holdfast_client_init(&client);
  if (replicas > 0) holdfast_acks_init(&acks, &client);
  /* A fail-over that an operator orders is heard at once, and not ten seconds later. */
  if (config.sentinels != NULL) holdfast_sentinel_watch_init(&watch, &client);
  return told("connect", holdfast_client_connect_to(&client, url, &config));
}

static int hold(void) {
  const holdfast_lock_options options = {.lease_ms = 10000};
  if (told("the lock", holdfast_mutex_init(&lock, &client, name, &options))) return 1;
  /* It waits through a fail-over, too: the client asks anew where the master is. */
  if (told("acquire", holdfast_lock_acquire(&lock, 10000))) return 1;
  printf("held: %s\n", holdfast_lock_held(&lock) ? "yes" : "no");
  return told("release", holdfast_lock_release(&lock));
}

int main(int argument_count, char** arguments) {
  if (argument_count < 2) {
    printf("usage: topology URL [REPLICAS]\n");
    return 1;
  }
  int result = connect_to(arguments[1], argument_count > 2 ? atoi(arguments[2]) : 0);
  if (result == 0) result = hold();
  /* In this order. What was never made may be destroyed: it is zero. */
  holdfast_lock_destroy(&lock);
  holdfast_acks_destroy(&acks);
  holdfast_sentinel_watch_destroy(&watch);
  holdfast_client_destroy(&client);
  holdfast_cluster_destroy(&cluster);
  holdfast_sentinels_destroy(&sentinels);
  return result;
}
