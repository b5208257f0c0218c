/* SPDX-License-Identifier: MIT
 *
 * TLS for the clients of holdfast.h. It is in a library of its own, holdfast-tls, which needs OpenSSL from 3.0 on: a program in C
 * links what `pkg-config --cflags --libs holdfast-tls` says.
 *
 *     static holdfast_tls tls;
 *     static holdfast_tls_place places[2];
 *     const holdfast_tls_config trust = {.ca_file = "/etc/redis/ca.pem"};
 *     holdfast_tls_init(&tls, places, 2);
 *     if (holdfast_tls_open(&tls, &trust) != HOLDFAST_OK) ...
 *     const holdfast_client_config config = {.tls = &tls};
 *     if (holdfast_client_connect_to(&client, "rediss://db.internal", &config) != HOLDFAST_OK) ...
 *
 * A client takes one place, and a second one once it waits by push; a watchdog and a client's acks take one each. Without a place
 * connecting fails with HOLDFAST_TOO_MANY_REQUESTS. The peer's certificate is verified: its chain, its time and its name. TLS
 * 1.2 is the least. Where that fails, calls say HOLDFAST_TLS_FAILED, and holdfast_client_error_text() says why.
 *
 * Storage is the caller's, and what holdfast.h says of objects is true of these. OpenSSL takes memory of its own from the heap.
 * holdfast/tls.hpp says more.
 */
#ifndef HOLDFAST_TLS_H
#define HOLDFAST_TLS_H

#include "holdfast.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In bytes, the same on every machine. */
#define HOLDFAST_TLS_SIZE 2112        /* Without its places. */
#define HOLDFAST_TLS_PLACE_SIZE 17600 /* One for each connection. */

HOLDFAST_STORAGE(holdfast_tls, HOLDFAST_TLS_SIZE);
HOLDFAST_STORAGE(holdfast_tls_place, HOLDFAST_TLS_PLACE_SIZE);

typedef struct holdfast_tls_config {
  const char* ca_file;          /* PEM: who is trusted. The system's store. */
  const char* certificate_file; /* PEM, the client's own, with what leads to its CA. None. */
  const char* key_file;         /* PEM, of that certificate, without a pass phrase. */
  const char* server_name;      /* The name that the server has to have. The host. */
  bool insecure; /* Nothing is verified: whoever is on the way can read and change everything. For a test bench. */
} holdfast_tls_config;

/* `places` must outlive it. No I/O. Errors: HOLDFAST_INVALID_ARGUMENT (no places). */
HOLDFAST_API holdfast_status holdfast_tls_init(holdfast_tls* tls, holdfast_tls_place* places,
                                               size_t count) HOLDFAST_NOEXCEPT;
/* Reads the files; `config` may be NULL. Before any client has it, by one thread; after that, clients of different threads may
 * share it. Errors: HOLDFAST_INVALID_ARGUMENT (a text is too long, or a file is none of the kind), HOLDFAST_SYSTEM_ERROR:
 * holdfast_tls_error_text() says which. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status
holdfast_tls_open(holdfast_tls* tls, const holdfast_tls_config* config) HOLDFAST_NOEXCEPT;
/* A sentence on what was wrong with the last open. As holdfast_client_error_text(). */
HOLDFAST_API size_t holdfast_tls_error_text(const holdfast_tls* tls, char* text, size_t size) HOLDFAST_NOEXCEPT;
/* REQUIRES: every client that has it is closed, or destroyed. An assertion says so where a connection is left. */
HOLDFAST_API void holdfast_tls_destroy(holdfast_tls* tls) HOLDFAST_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
