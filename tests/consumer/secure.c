/* SPDX-License-Identifier: MIT
 *
 * What a consumer in C with TLS writes first. A file that is none must be refused, which the library with OpenSSL says.
 */
#include <holdfast_tls.h>

static holdfast_tls tls;
static holdfast_tls_place places[1];

int main(void) {
  const holdfast_tls_config trust = {.ca_file = "/nonexistent/ca.pem"};
  if (holdfast_tls_init(&tls, places, 1) != HOLDFAST_OK) return 1;
  const int refused = holdfast_tls_open(&tls, &trust) == HOLDFAST_INVALID_ARGUMENT;
  holdfast_tls_destroy(&tls);
  return refused ? 0 : 1;
}
