/* SPDX-License-Identifier: MIT
 *
 * The blocking client of holdfast for C11, and for every language that calls C. It is in the library holdfast; a program in C
 * links it with plain gcc: `gcc program.c -lholdfast -pthread`, or what `pkg-config --cflags --libs holdfast` says.
 *
 *     static holdfast_client client;
 *     static holdfast_lock lock;
 *     holdfast_client_init(&client);
 *     if (holdfast_client_connect(&client, "redis://127.0.0.1") != HOLDFAST_OK) ...
 *     const holdfast_lock_options options = {.lease_ms = 5000};
 *     holdfast_mutex_init(&lock, &client, "orders/42", &options);
 *     if (holdfast_lock_acquire(&lock, 2000) == HOLDFAST_OK) {
 *       while (work_is_left() && holdfast_lock_held(&lock)) do_a_step();
 *       if (holdfast_lock_release(&lock) != HOLDFAST_OK) ...
 *     }
 *     holdfast_lock_destroy(&lock);
 *     holdfast_client_destroy(&client);
 *
 * Storage is the caller's: a static object, a local one, or a part of another. Nothing here uses the heap, but the resolver of
 * libc for host names and the start of a watchdog's thread. An object may not be copied or moved.
 *
 * An object lives from its init, whatever that says, to its destroy. An init where one lives changes nothing, and says
 * HOLDFAST_ALREADY_HELD. A call of one that is NULL, zeroed, destroyed, a copy or misaligned does nothing, and says
 * HOLDFAST_INVALID_ARGUMENT, false, NULL or 0, or HOLDFAST_NEVER where it gives an instant at which to call again; of one that was
 * never written to it is undefined.
 * Destroy in this order: locks, owners, acks, branches and sentinel watches, then clients and quorums, whose watchdogs may go before
 * or after them, and at last sentinels, clusters, meters and TLS. An assertion ends the program where a lock outlives its owner, its
 * acks, its branches or its client, where acks or branches outlive their client, or where a sentinel watch outlives its client or its
 * watchdog.
 *
 * In every struct of settings zero means the default, so `{0}` and a NULL pointer are all defaults. Texts end with a NUL, and
 * are copied. Times are counted in milliseconds, or in what the name ends with.
 *
 * Thread rule: a client or a quorum and what is made of it are used by one thread at a time. Functions that say "any thread" are
 * the exception. Errors, costs and promises are those of the C++ interface, whose headers say more (holdfast/).
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HOLDFAST_NOEXCEPT noexcept
#define HOLDFAST_NUMBER : int /* As in C, it may be any number. */
extern "C" {
#else
#define HOLDFAST_NOEXCEPT
#define HOLDFAST_NUMBER
#endif

/* In the type of a function C++ has it from C++17 on. */
#if defined __cplusplus && __cplusplus >= 201703L
#define HOLDFAST_NOEXCEPT_TYPE noexcept
#else
#define HOLDFAST_NOEXCEPT_TYPE
#endif

/* They may be exported from a shared library that is made of the archive. */
#define HOLDFAST_API __attribute__((visibility("default")))
#define HOLDFAST_WARN_UNUSED __attribute__((warn_unused_result))

/* ---- Outcomes ------------------------------------------------------------------------------------------------------------
 * Three-valued outcomes stay three-valued: HOLDFAST_OK is yes; HOLDFAST_OUTCOME_UNKNOWN and HOLDFAST_TIMED_OUT are neither yes
 * nor no. holdfast/status.hpp says what each one means.
 */
typedef enum holdfast_status HOLDFAST_NUMBER {
  HOLDFAST_OK,

  HOLDFAST_LOCK_BUSY, /* Somebody else holds the lock. Not an error. */

  /* Yours. */
  HOLDFAST_INVALID_ARGUMENT,
  HOLDFAST_NOT_HELD,
  HOLDFAST_ALREADY_HELD,
  HOLDFAST_UPGRADE_REFUSED,
  HOLDFAST_PERMITS_DIFFER,
  HOLDFAST_BUFFER_TOO_SMALL,
  HOLDFAST_TOO_MANY_REQUESTS,
  HOLDFAST_CANCELLED,
  HOLDFAST_FORKED,

  /* The wire's. */
  HOLDFAST_NOT_CONNECTED,
  HOLDFAST_CONNECT_FAILED,
  HOLDFAST_NAME_NOT_RESOLVED,
  HOLDFAST_TRANSPORT_CLOSED,
  HOLDFAST_TIMED_OUT,
  HOLDFAST_TLS_FAILED,

  /* The peer's. */
  HOLDFAST_PROTOCOL_ERROR,

  /* The server's. */
  HOLDFAST_AUTH_REQUIRED,
  HOLDFAST_AUTH_FAILED,
  HOLDFAST_NO_PERMISSION,
  HOLDFAST_READ_ONLY,
  HOLDFAST_LOADING,
  HOLDFAST_OUT_OF_MEMORY,
  HOLDFAST_BUSY_SCRIPT,
  HOLDFAST_NO_SCRIPT,
  HOLDFAST_WRONG_TYPE,
  HOLDFAST_TOO_FEW_REPLICAS,
  HOLDFAST_STALE_REPLICA,
  HOLDFAST_DISK_ERROR,
  HOLDFAST_MOVED,
  HOLDFAST_ASK,
  HOLDFAST_CLUSTER_DOWN,
  HOLDFAST_CROSS_SLOT,
  HOLDFAST_TRY_AGAIN,
  HOLDFAST_TOO_MANY_CLIENTS,
  HOLDFAST_DENIED,
  HOLDFAST_UNKNOWN_COMMAND,
  HOLDFAST_UNKNOWN_SERVICE,
  HOLDFAST_SERVER_ERROR,

  /* The world's. */
  HOLDFAST_LOCK_LOST,
  HOLDFAST_NO_QUORUM,
  HOLDFAST_SAME_MACHINE,
  HOLDFAST_SYSTEM_ERROR,
  HOLDFAST_NO_ENTROPY,

  /* Nobody's. */
  HOLDFAST_OUTCOME_UNKNOWN /* The reply was lost: it may have run or not. */
} holdfast_status;
#ifndef __cplusplus
_Static_assert(sizeof(holdfast_status) == sizeof(int), "the library was not compiled with -fshort-enums");
#endif

/* Such as "lock_busy"; "invalid" for a number that is none. Never NULL, and never freed. Any thread. */
HOLDFAST_API const char* holdfast_status_name(holdfast_status status) HOLDFAST_NOEXCEPT;
/* One sentence each: what happened, and what to do about it. Any thread. */
HOLDFAST_API const char* holdfast_status_cause(holdfast_status status) HOLDFAST_NOEXCEPT;
HOLDFAST_API const char* holdfast_status_remedy(holdfast_status status) HOLDFAST_NOEXCEPT;

/* ---- Storage -------------------------------------------------------------------------------------------------------------
 * In bytes, the same on every machine. src/c ties them to the types of C++.
 */
#define HOLDFAST_ALIGNMENT 8
#define HOLDFAST_CLIENT_SIZE 16448        /* Of it 16 KiB for the client, all its buffers included. */
#define HOLDFAST_LOCK_SIZE 768            /* A lock of any kind. */
#define HOLDFAST_OWNER_SIZE 64            /* An owner without its places. */
#define HOLDFAST_OWNER_PLACE_SIZE 640     /* One for each name that an owner has locks of, two for a read/write lock. */
#define HOLDFAST_WATCHDOG_SIZE 32832      /* A watchdog without its places. */
#define HOLDFAST_WATCHDOG_PLACE_SIZE 120  /* One for each hold that is kept at the same time. */
#define HOLDFAST_QUORUM_SIZE 2752         /* A quorum without its nodes. */
#define HOLDFAST_QUORUM_NODE_SIZE 16384   /* One for each server. */
#define HOLDFAST_QUORUM_VOTE_SIZE 544     /* One for each lock on a quorum and server. */
#define HOLDFAST_QUORUM_WATCHDOG_SIZE 320 /* However many holds it keeps. */
#define HOLDFAST_SENTINELS_SIZE 1856
#define HOLDFAST_CLUSTER_SIZE 1344
#define HOLDFAST_ACKS_SIZE 6912           /* All its buffers included. */
#define HOLDFAST_BRANCHES_SIZE 19072      /* Branches without their places. */
#define HOLDFAST_BRANCH_PLACE_SIZE 17816  /* One for each further master of a cluster. */
#define HOLDFAST_SENTINEL_WATCH_SIZE 4416 /* Likewise. */
#define HOLDFAST_METER_SIZE 648
#define HOLDFAST_NODES_MAX 9
#define HOLDFAST_SENTINELS_MAX 9
#define HOLDFAST_CLUSTER_HOSTS_MAX 9
#define HOLDFAST_ACKS_MAX 15
#define HOLDFAST_OWNER_PLACES_MAX 65535
#define HOLDFAST_KEY_SIZE_MAX 256
#define HOLDFAST_NAMES_MAX 8

#ifdef __cplusplus
#define HOLDFAST_STORAGE(name, size)                       \
  typedef struct name {                                    \
    alignas(HOLDFAST_ALIGNMENT) unsigned char bytes[size]; \
  } name
#else
#define HOLDFAST_STORAGE(name, size)                        \
  typedef struct name {                                     \
    _Alignas(HOLDFAST_ALIGNMENT) unsigned char bytes[size]; \
  } name
#endif
HOLDFAST_STORAGE(holdfast_client, HOLDFAST_CLIENT_SIZE);
HOLDFAST_STORAGE(holdfast_lock, HOLDFAST_LOCK_SIZE);
HOLDFAST_STORAGE(holdfast_owner, HOLDFAST_OWNER_SIZE);
HOLDFAST_STORAGE(holdfast_owner_place, HOLDFAST_OWNER_PLACE_SIZE);
HOLDFAST_STORAGE(holdfast_watchdog, HOLDFAST_WATCHDOG_SIZE);
HOLDFAST_STORAGE(holdfast_watchdog_place, HOLDFAST_WATCHDOG_PLACE_SIZE);
HOLDFAST_STORAGE(holdfast_quorum, HOLDFAST_QUORUM_SIZE);
HOLDFAST_STORAGE(holdfast_quorum_node, HOLDFAST_QUORUM_NODE_SIZE);
HOLDFAST_STORAGE(holdfast_quorum_vote, HOLDFAST_QUORUM_VOTE_SIZE);
HOLDFAST_STORAGE(holdfast_quorum_watchdog, HOLDFAST_QUORUM_WATCHDOG_SIZE);
HOLDFAST_STORAGE(holdfast_sentinels, HOLDFAST_SENTINELS_SIZE);
HOLDFAST_STORAGE(holdfast_cluster, HOLDFAST_CLUSTER_SIZE);
HOLDFAST_STORAGE(holdfast_acks, HOLDFAST_ACKS_SIZE);
HOLDFAST_STORAGE(holdfast_branches, HOLDFAST_BRANCHES_SIZE);
HOLDFAST_STORAGE(holdfast_branch_place, HOLDFAST_BRANCH_PLACE_SIZE);
HOLDFAST_STORAGE(holdfast_sentinel_watch, HOLDFAST_SENTINEL_WATCH_SIZE);
HOLDFAST_STORAGE(holdfast_meter, HOLDFAST_METER_SIZE);
typedef struct holdfast_tls holdfast_tls; /* holdfast_tls.h, of the library holdfast-tls. */

/* For languages that do not read this header: the size of the object of that name, such as "holdfast_lock", in bytes; 0 where
 * there is none. Storage is aligned to HOLDFAST_ALIGNMENT bytes. Any thread. */
HOLDFAST_API size_t holdfast_size_of(const char* object) HOLDFAST_NOEXCEPT;

/* ---- Time ----------------------------------------------------------------------------------------------------------------
 * Instants are nanoseconds of CLOCK_BOOTTIME (CLOCK_MONOTONIC where there is none).
 */
#define HOLDFAST_NEVER INT64_MAX        /* An instant that does not come. */
#define HOLDFAST_WAIT_FOREVER INT64_MAX /* A wait without an end. */
#define HOLDFAST_UNLIMITED INT64_MAX    /* The remaining time of a key without a TTL. */

/* Any thread. */
HOLDFAST_API int64_t holdfast_now_ns(void) HOLDFAST_NOEXCEPT;

/* ---- Sentinels and clusters ----------------------------------------------------------------------------------------------
 * They say where the server is. A client that has one asks whenever it connects, and follows the server when it moves. Any
 * number of clients, also of different threads, may have the same one. It must outlive them, and nothing changes it while a
 * client has it. These functions do no I/O. holdfast/sentinels.hpp and holdfast/cluster.hpp say more, and proto/topology.md what
 * a fail-over does to holds.
 */
typedef struct holdfast_sentinels_config {
  const char* hosts; /* "host[:port],host[:port],...", up to HOLDFAST_SENTINELS_MAX. 26379. IPv6 stands in brackets. */
  const char* service; /* What they call the master, such as "mymaster". */
  /* Of the sentinels alone; the server's are in holdfast_client_config. */
  const char* user;     /* The default user. */
  const char* password; /* No AUTH. */
} holdfast_sentinels_config;

/* The settings are copied. `config` may be NULL, or all zero: then a URL has to say them. Errors: HOLDFAST_INVALID_ARGUMENT (a
 * setting: holdfast_sentinels_problem() says which, and it is to be destroyed all the same). */
HOLDFAST_API holdfast_status holdfast_sentinels_init(holdfast_sentinels* sentinels,
                                                     const holdfast_sentinels_config* config) HOLDFAST_NOEXCEPT;
/* The first setting that is wrong or missing, and in `reason`, unless that is NULL, a sentence about it. NULL where nothing is
 * wrong, or where there are no sentinels. */
HOLDFAST_API const char* holdfast_sentinels_problem(const holdfast_sentinels* sentinels,
                                                    const char** reason) HOLDFAST_NOEXCEPT;
/* REQUIRES: no client has them: it is destroyed, or was connected without them since. */
HOLDFAST_API void holdfast_sentinels_destroy(holdfast_sentinels* sentinels) HOLDFAST_NOEXCEPT;

typedef struct holdfast_cluster_config {
  const char* hosts; /* As of sentinels, up to HOLDFAST_CLUSTER_HOSTS_MAX nodes of the cluster. 6379. */
  const char* name;  /* A lock's name, such as "{orders}": a client serves the names of its slot, and no others. */
  size_t name_size;  /* The name has so many bytes, whichever: up to its NUL. */
} holdfast_cluster_config;

/* As the functions of sentinels. Where the name alone is said, a URL has to say the hosts. */
HOLDFAST_API holdfast_status holdfast_cluster_init(holdfast_cluster* cluster,
                                                   const holdfast_cluster_config* config) HOLDFAST_NOEXCEPT;
HOLDFAST_API const char* holdfast_cluster_problem(const holdfast_cluster* cluster,
                                                  const char** reason) HOLDFAST_NOEXCEPT;
HOLDFAST_API void holdfast_cluster_destroy(holdfast_cluster* cluster) HOLDFAST_NOEXCEPT;

/* ---- Client --------------------------------------------------------------------------------------------------------------
 * One connection to one server, for any number of locks. It reconnects by itself.
 */
typedef struct holdfast_client_config {
  const char* host;        /* "127.0.0.1" */
  uint16_t port;           /* 6379 */
  const char* socket_path; /* A Unix socket; where it is set, host and port are not used. */
  const char* user;        /* The default user. */
  const char* password;    /* No AUTH. */
  const char* client_name; /* For CLIENT LIST: "holdfast". An empty text: none. */
  int database;
  int64_t connect_timeout_ms; /* Over all addresses, the handshake included: 2 s. */
  int64_t request_timeout_ms; /* From the send of a request to its reply: 1 s. */
  int64_t stall_timeout_ms;   /* With nothing received for so long, the connection is closed: 5 s. */
  int64_t max_poll_ms;        /* Who waits by push asks again after so long at most. */
  int64_t spin_us;            /* Polls the socket so long before the process sleeps: not at all. At most 10,000. */
  bool no_native_delete;      /* Releases never go by the server's own compare-and-delete. */
  /* Who says where the server is; host and port are not used then. At most one of them. */
  holdfast_sentinels* sentinels;
  holdfast_cluster* cluster;
  /* For host and port, or what says them. It is open, and must outlive the client. NULL: what is sent can be read on its way. */
  holdfast_tls* tls;
  int acks; /* A grant counts only when so many replicas have confirmed it, up to HOLDFAST_ACKS_MAX: holdfast_acks. 0. */
  int64_t acks_timeout_ms; /* They have so long to confirm: 500 ms. Below the stall timeout. */
  holdfast_meter*
      meter; /* Counts what the client does, and its watchdog's connection. It must outlive both. NULL: nobody does. */
} holdfast_client_config;

/* Not connected yet. No I/O. */
HOLDFAST_API holdfast_status holdfast_client_init(holdfast_client* client) HOLDFAST_NOEXCEPT;
/* Closes the connection. Does not block. REQUIRES: its locks and owners are destroyed. */
HOLDFAST_API void holdfast_client_destroy(holdfast_client* client) HOLDFAST_NOEXCEPT;

/* `redis://[[user][:password]@]host[:port][/database]`, or `unix://[[user][:password]@]/path[?db=database]`. Blocks for the
 * connect timeout at most; a resolver may take longer. After a failure the next call of a lock tries again.
 * Errors: HOLDFAST_INVALID_ARGUMENT (holdfast_client_problem() says why); the wire's; the server's; HOLDFAST_CANCELLED. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_client_connect(holdfast_client* client,
                                                                          const char* url) HOLDFAST_NOEXCEPT;
/* The same by settings. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status
holdfast_client_connect_with(holdfast_client* client, const holdfast_client_config* config) HOLDFAST_NOEXCEPT;
/* The same by both: address, user, password and database are as the URL says, all else is as `config` says, which may be NULL.
 * These forms of a URL need an object in `config`, and with that no other form is taken:
 *
 *     redis-sentinel://[[user][:password]@]HOSTS/service[/database][?sentinel_user=u&sentinel_password=p]     `sentinels`
 *     redis-cluster://[[user][:password]@]HOSTS/name                                                          `cluster`
 *     rediss://, rediss-sentinel://, rediss-cluster://                                     the same over TLS: `tls`
 *
 * HOSTS and what follows are written into the sentinels or the cluster, whatever they were told before; a name that the
 * cluster has may be missing in the URL. REQUIRES: no other client has them, or the URL says what they say already. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_client_connect_to(
    holdfast_client* client, const char* url, const holdfast_client_config* config) HOLDFAST_NOEXCEPT;
/* Sends what waits to be sent, where that does not block, and closes. */
HOLDFAST_API void holdfast_client_close(holdfast_client* client) HOLDFAST_NOEXCEPT;
HOLDFAST_API bool holdfast_client_connected(const holdfast_client* client) HOLDFAST_NOEXCEPT;
/* After HOLDFAST_INVALID_ARGUMENT of a connect: the setting that was wrong, and in `reason`, unless that is NULL, a sentence
 * about it. NULL where nothing was wrong. Never contains the password. */
HOLDFAST_API const char* holdfast_client_problem(const holdfast_client* client, const char** reason) HOLDFAST_NOEXCEPT;
/* The server's own words about the last refusal. Fills in `text` as snprintf() does, and gives the size that it has without its
 * NUL: where that is `size` or more, it was cut. */
HOLDFAST_API size_t holdfast_client_error_text(const holdfast_client* client, char* text,
                                               size_t size) HOLDFAST_NOEXCEPT;
/* For programs without a watchdog: renews what is due, tells what is to be told, and gives the instant to call it again, in
 * nanoseconds; HOLDFAST_NEVER where there is nothing to do. Blocks for some request timeouts at most. */
HOLDFAST_API int64_t holdfast_client_tend(holdfast_client* client) HOLDFAST_NOEXCEPT;
/* Ends the call in progress, or the next one, with HOLDFAST_CANCELLED. Any thread; safe in a signal handler. */
HOLDFAST_API void holdfast_client_cancel(holdfast_client* client) HOLDFAST_NOEXCEPT;

/* ---- Names of several masters ---------------------------------------------------------------------------------------------
 * What a client of a cluster has that serves names of any slot: a connection for each further master. There is to be a place for each
 * master beside the first, and two for fail-overs. A name whose master finds no place: HOLDFAST_MOVED. Not beside
 * acks or a sentinel watch. holdfast/detail/branches.hpp says more, proto/topology.md (34 to 42) what it promises.
 *
 *     static holdfast_branches branches;
 *     static holdfast_branch_place masters[4];
 *     holdfast_branches_init(&branches, &client, masters, 4);
 *     status = holdfast_client_connect_to(&client, url, &config);
 */
#define HOLDFAST_BRANCHES_MAX 63

/* Nothing is sent. The client's thread uses them, and the places, from here on. Errors: HOLDFAST_INVALID_ARGUMENT (no place, or too
 * many; the client is none, or is connected, or has acks or a sentinel watch), HOLDFAST_ALREADY_HELD (the client has others). */
HOLDFAST_API holdfast_status holdfast_branches_init(holdfast_branches* branches, holdfast_client* client,
                                                    holdfast_branch_place* places, size_t count) HOLDFAST_NOEXCEPT;
/* Closes their connections, and that of the client of a cluster: calls say HOLDFAST_NOT_CONNECTED until it is connected anew. Does not
 * block. REQUIRES: the client's locks are destroyed, and its watchdog is stopped; the client is destroyed later. */
HOLDFAST_API void holdfast_branches_destroy(holdfast_branches* branches) HOLDFAST_NOEXCEPT;
/* How many are connected at present. */
HOLDFAST_API size_t holdfast_branches_connected(const holdfast_branches* branches) HOLDFAST_NOEXCEPT;

/* ---- Counted replicas ----------------------------------------------------------------------------------------------------
 * What a client has whose grants count only when replicas have confirmed them: a connection of its own to the client's server. A
 * grant that too few have confirmed within the acks_timeout_ms is released again: HOLDFAST_TOO_FEW_REPLICAS, of an acquire that
 * waits only when its time is over. Renewals are not confirmed. holdfast/acks.hpp says more, proto/topology.md what that buys.
 */

/* Nothing is sent. It is called before the connect whose settings have `acks`. They are used by the client's thread from here on.
 * Errors: HOLDFAST_INVALID_ARGUMENT (the client is none, is connected, or has branches), HOLDFAST_ALREADY_HELD (it has others). */
HOLDFAST_API holdfast_status holdfast_acks_init(holdfast_acks* acks, holdfast_client* client) HOLDFAST_NOEXCEPT;
/* Closes their connection. Where the client has `acks`, it is closed, too, and calls of its locks say HOLDFAST_NOT_CONNECTED until
 * it is connected anew. Does not block. REQUIRES: the client's locks are destroyed. */
HOLDFAST_API void holdfast_acks_destroy(holdfast_acks* acks) HOLDFAST_NOEXCEPT;
/* Of their own connection, which is made for the first grant: as the functions of a client. */
HOLDFAST_API bool holdfast_acks_connected(const holdfast_acks* acks) HOLDFAST_NOEXCEPT;
HOLDFAST_API size_t holdfast_acks_error_text(const holdfast_acks* acks, char* text, size_t size) HOLDFAST_NOEXCEPT;

/* ---- Locks ---------------------------------------------------------------------------------------------------------------
 * One object for every kind, on one server and on a quorum. A setting that a kind does not have is refused.
 */
typedef struct holdfast_lock_options {
  int64_t
      lease_ms; /* [5, 86,400,000]. The automatic lease: 30 s, kept alive by the watchdog, or by holdfast_client_tend(). */
  int64_t drift_ms;        /* lease / 100 + 2. Below the lease. */
  bool kept;               /* Kept alive as with the automatic lease, whatever its length. */
  size_t key_size;         /* The key has so many bytes, whichever: up to its NUL. Not of a multi lock. */
  bool announce;           /* A mutex: its release wakes those who wait. */
  bool fence;              /* A mutex, reentrant and fair lock: a grant comes with a number that grows. */
  int64_t node_timeout_ms; /* On a quorum: how long a server has to answer. lease / 20, at least 5. */
  int64_t min_validity_ms; /* On a quorum: a grant with less than this left counts as none. */
} holdfast_lock_options;

/* Each makes a lock; nothing is sent. `options` may be NULL. Errors: HOLDFAST_INVALID_ARGUMENT (a key has 1 to
 * HOLDFAST_KEY_SIZE_MAX bytes; an option; the client or owner is none), HOLDFAST_TOO_MANY_REQUESTS (the owner has no place for
 * one name more). Every call of the lock says so then, too, and it is to be destroyed all the same. */

/* One object at a time, not reentrant; a string on the server. */
HOLDFAST_API holdfast_status holdfast_mutex_init(holdfast_lock* lock, holdfast_client* client, const char* key,
                                                 const holdfast_lock_options* options) HOLDFAST_NOEXCEPT;
/* One permit of the name's; at most `permits` holders have one at a time. 0: as many as somebody else has set. */
HOLDFAST_API holdfast_status holdfast_semaphore_init(holdfast_lock* lock, holdfast_client* client, const char* key,
                                                     uint32_t permits,
                                                     const holdfast_lock_options* options) HOLDFAST_NOEXCEPT;

/* Who may acquire a lock again while it is held. `places` must outlive it; one for each name that it has locks of. Errors:
 * HOLDFAST_INVALID_ARGUMENT (no places, or more than HOLDFAST_OWNER_PLACES_MAX; no client). */
HOLDFAST_API holdfast_status holdfast_owner_init(holdfast_owner* owner, holdfast_client* client,
                                                 holdfast_owner_place* places, size_t count) HOLDFAST_NOEXCEPT;
/* REQUIRES: its locks are destroyed. */
HOLDFAST_API void holdfast_owner_destroy(holdfast_owner* owner) HOLDFAST_NOEXCEPT;

/* Two locks of one owner, kind and name are handles of one hold. With `fence` it is Redisson's fenced lock. */
HOLDFAST_API holdfast_status holdfast_reentrant_init(holdfast_lock* lock, holdfast_owner* owner, const char* key,
                                                     const holdfast_lock_options* options) HOLDFAST_NOEXCEPT;
/* A reentrant lock whose waiters stand in a queue. */
HOLDFAST_API holdfast_status holdfast_fair_init(holdfast_lock* lock, holdfast_owner* owner, const char* key,
                                                const holdfast_lock_options* options) HOLDFAST_NOEXCEPT;
/* Up to HOLDFAST_NAMES_MAX names, all or none. */
HOLDFAST_API holdfast_status holdfast_multi_init(holdfast_lock* lock, holdfast_owner* owner, const char* const* names,
                                                 size_t count, const holdfast_lock_options* options) HOLDFAST_NOEXCEPT;
/* Many readers or one writer: two objects, one for each side, which are one lock. A lease of `read` is 30 s at most. They are
 * destroyed together, by holdfast_lock_destroy() of either: until then both must be there; that of the other does nothing. The
 * key_size is that of `read_options`; `write_options` has none. */
HOLDFAST_API holdfast_status holdfast_read_write_init(holdfast_lock* read, holdfast_lock* write, holdfast_owner* owner,
                                                      const char* key, const holdfast_lock_options* read_options,
                                                      const holdfast_lock_options* write_options) HOLDFAST_NOEXCEPT;

/* Posts the release of a hold that is left. Does not block. */
HOLDFAST_API void holdfast_lock_destroy(holdfast_lock* lock) HOLDFAST_NOEXCEPT;

/* What the init said. */
HOLDFAST_API holdfast_status holdfast_lock_configuration(const holdfast_lock* lock) HOLDFAST_NOEXCEPT;

/* One attempt: one send, one receive. Blocks for the request timeout at most, and for the connect timeout where it must connect
 * first. Errors: HOLDFAST_LOCK_BUSY; HOLDFAST_ALREADY_HELD; HOLDFAST_LOCK_LOST of a reentrant lock whose lost hold was not
 * released as often as it was acquired; unknown outcomes, whose grants are taken back; the wire's; the server's. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_lock_try_acquire(holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* Attempts until it is granted or the wait is over, and a request timeout longer at most. 0: one attempt. It lives through lost
 * connections. Errors: the last attempt's; HOLDFAST_CANCELLED; HOLDFAST_INVALID_ARGUMENT (the wait is below 0). */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_lock_acquire(holdfast_lock* lock,
                                                                        int64_t wait_ms) HOLDFAST_NOEXCEPT;
/* Extends the lease, counted from now. Errors: HOLDFAST_NOT_HELD; HOLDFAST_LOCK_LOST, which is final; others: not extended as
 * far as we know, and the hold goes on until its end. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_lock_renew(holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* Lets go, and waits for the server's word. Whatever it says, this acquisition is over from the call on. Errors:
 * HOLDFAST_NOT_HELD; HOLDFAST_LOCK_LOST (what was done last may not have been protected); unknown outcomes, which are followed
 * by a compensation. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_lock_release(holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* The same without waiting: never blocks. Errors: HOLDFAST_NOT_HELD; HOLDFAST_LOCK_LOST; HOLDFAST_TOO_MANY_REQUESTS: the server
 * is told later. */
HOLDFAST_API holdfast_status holdfast_lock_post_release(holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* You have stopped what needed a lost hold: the next acquire begins a new one. Errors: HOLDFAST_ALREADY_HELD;
 * HOLDFAST_NOT_HELD. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_lock_forget_loss(holdfast_lock* lock) HOLDFAST_NOEXCEPT;

/* Any thread; no I/O. True implies that no other client was told that it holds the lock. */
HOLDFAST_API bool holdfast_lock_held(const holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* Held, but a renewal failed or is overdue. Any thread. */
HOLDFAST_API bool holdfast_lock_at_risk(const holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* Whole milliseconds until the hold ends, rounded down; 0 where nothing is held. Any thread. */
HOLDFAST_API int64_t holdfast_lock_remaining_ms(const holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* The instant when it ends; 0 where nothing is held. Any thread. */
HOLDFAST_API int64_t holdfast_lock_valid_until_ns(const holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* When to renew; HOLDFAST_NEVER where nothing is held. */
HOLDFAST_API int64_t holdfast_lock_renewal_due_ns(const holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* How often it was acquired and not released. */
HOLDFAST_API uint32_t holdfast_lock_hold_count(const holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* Of the last grant; 0 where there was none, and without the option. */
HOLDFAST_API uint64_t holdfast_lock_fence(const holdfast_lock* lock) HOLDFAST_NOEXCEPT;
/* Asks the server how long the lock is held still, whoever holds it: 0 where it is free, HOLDFAST_UNLIMITED without a TTL. On
 * failure the output is untouched. Errors: as an attempt; HOLDFAST_INVALID_ARGUMENT of a lock on a quorum, which is on no one
 * server. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status
holdfast_lock_remaining_on_server_ms(holdfast_lock* lock, int64_t* remaining_ms) HOLDFAST_NOEXCEPT;

/* ---- Keeping -------------------------------------------------------------------------------------------------------------
 * A watchdog is a thread that renews what is held, over a connection of its own.
 */
typedef void (*holdfast_callback)(void* context) HOLDFAST_NOEXCEPT_TYPE;

typedef enum holdfast_keep {
  HOLDFAST_KEEP_AUTOMATIC, /* Holds with the automatic lease, or `kept`. */
  HOLDFAST_KEEP_ALWAYS,
  HOLDFAST_KEEP_NEVER
} holdfast_keep;

typedef struct holdfast_keep_options {
  int keep; /* A holdfast_keep. */
  /* Called once a hold at most: the first doubt, and the end; not after a release has begun. From the watchdog's thread, where
   * only what any thread may call is called; or at the end of a call of the client. It may not throw, longjmp() or block. */
  holdfast_callback on_at_risk;
  holdfast_callback on_lost;
  void* context;
  int64_t max_hold_ms; /* Counted from the grant; an older hold is not renewed any more. Unlimited. */
  int64_t liveness_ms; /* Renewed only while holdfast_lock_tick() was called within so long. Off. */
} holdfast_keep_options;

/* Of holds from the next one on. Errors: HOLDFAST_INVALID_ARGUMENT; HOLDFAST_ALREADY_HELD. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status
holdfast_lock_keep(holdfast_lock* lock, const holdfast_keep_options* options) HOLDFAST_NOEXCEPT;
/* The application is alive. Any thread. */
HOLDFAST_API void holdfast_lock_tick(holdfast_lock* lock) HOLDFAST_NOEXCEPT;

/* `places` must outlive it. Errors: HOLDFAST_INVALID_ARGUMENT (no places). */
HOLDFAST_API holdfast_status holdfast_watchdog_init(holdfast_watchdog* watchdog, holdfast_watchdog_place* places,
                                                    size_t count) HOLDFAST_NOEXCEPT;
/* Stops, and detaches its clients. REQUIRES: nothing is held that it keeps; none of its clients is in a call. */
HOLDFAST_API void holdfast_watchdog_destroy(holdfast_watchdog* watchdog) HOLDFAST_NOEXCEPT;
/* Starts the thread; the client's holds from the next one on are kept. Errors: HOLDFAST_NOT_CONNECTED,
 * HOLDFAST_ALREADY_HELD (it runs), HOLDFAST_SYSTEM_ERROR (no thread), HOLDFAST_FORKED. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_watchdog_start(holdfast_watchdog* watchdog,
                                                                          holdfast_client* client) HOLDFAST_NOEXCEPT;
/* One client more, of the same server; NULL for `watchdog`: its holds are kept by holdfast_client_tend() from the next one on.
 * Errors: HOLDFAST_INVALID_ARGUMENT (the watchdog is none, and not NULL). */
HOLDFAST_API holdfast_status holdfast_client_attach(holdfast_client* client,
                                                    holdfast_watchdog* watchdog) HOLDFAST_NOEXCEPT;
/* Ends the thread, and waits for it: holds run out unless they are renewed otherwise. */
HOLDFAST_API void holdfast_watchdog_stop(holdfast_watchdog* watchdog) HOLDFAST_NOEXCEPT;

/* ---- News of a fail-over -------------------------------------------------------------------------------------------------
 * A client, or a watchdog, with a sentinel watch keeps one connection more, to one of its sentinels, and hears at once that the
 * master was replaced. Its connection to the old one is closed then, and the sentinels are asked; a watchdog renews at once what it
 * keeps. Without it a fail-over that an operator orders is noticed some ten seconds later, when the old master closes its
 * connections. A client hears while a call waits for a lock or a connection, and at the beginning of each call; a watchdog always.
 * Without sentinels it does nothing. holdfast/sentinel_watch.hpp says more, proto/topology.md (28 to 33) what it costs.
 *
 *     static holdfast_sentinel_watch client_watch, watchdog_watch;
 *     holdfast_sentinel_watch_init(&client_watch, &client);
 *     holdfast_sentinel_watch_init_watchdog(&watchdog_watch, &watchdog);
 *     if (holdfast_watchdog_start(&watchdog, &client) != HOLDFAST_OK) ...
 *
 * A `tls` needs a place for each. That of a client is used by the client's thread alone; that of a watchdog is made and destroyed
 * by the thread that starts and stops it.
 */

/* No I/O. Before or after the client's connect. Errors: HOLDFAST_INVALID_ARGUMENT (the client is none, or has branches),
 * HOLDFAST_ALREADY_HELD (the client has another). */
HOLDFAST_API holdfast_status holdfast_sentinel_watch_init(holdfast_sentinel_watch* watch,
                                                          holdfast_client* client) HOLDFAST_NOEXCEPT;
/* The same of a watchdog. Errors: likewise; HOLDFAST_ALREADY_HELD also where the watchdog runs. */
HOLDFAST_API holdfast_status holdfast_sentinel_watch_init_watchdog(holdfast_sentinel_watch* watch,
                                                                   holdfast_watchdog* watchdog) HOLDFAST_NOEXCEPT;
/* Closes its connection. That of a watchdog stops the watchdog first, and waits for it: start it anew where it is to go on without.
 * That of a client does not block. */
HOLDFAST_API void holdfast_sentinel_watch_destroy(holdfast_sentinel_watch* watch) HOLDFAST_NOEXCEPT;
/* A sentinel has granted the subscription, and its connection has not ended as far as is known. False of a watchdog that runs,
 * whose thread alone knows. */
HOLDFAST_API bool holdfast_sentinel_watch_hearing(const holdfast_sentinel_watch* watch) HOLDFAST_NOEXCEPT;
/* Why the connection to the last sentinel failed, as holdfast_client_error_text(); empty of a watchdog that runs. */
HOLDFAST_API size_t holdfast_sentinel_watch_error_text(const holdfast_sentinel_watch* watch, char* text,
                                                       size_t size) HOLDFAST_NOEXCEPT;

/* ---- Several servers -----------------------------------------------------------------------------------------------------
 * A lock on a quorum is held while a majority of independent servers holds it (Redlock). proto/redlock.md says when that is
 * safe.
 */
typedef struct holdfast_quorum_config {
  int64_t max_lease_ms; /* The longest lease of any client of this quorum: 30 s. One setting for all of them. */
  /* A restarted server votes at once. Only where servers keep what they have answered. One that does not tell its run id has no
     vote all the same. */
  bool no_restart_guard;
  holdfast_meter* meter; /* As of a client: a lock that is granted by a majority is one grant. */
} holdfast_quorum_config;

/* `nodes` must outlive it: 1 to HOLDFAST_NODES_MAX. No I/O. */
HOLDFAST_API holdfast_status holdfast_quorum_init(holdfast_quorum* quorum, holdfast_quorum_node* nodes,
                                                  size_t count) HOLDFAST_NOEXCEPT;
/* Closes. Does not block. REQUIRES: its locks are destroyed. */
HOLDFAST_API void holdfast_quorum_destroy(holdfast_quorum* quorum) HOLDFAST_NOEXCEPT;
/* Connects to all at once, with the default timeouts; HOLDFAST_OK when a majority is there and may vote. `config` may be NULL.
 * URLs are such as holdfast_client_connect() takes: without TLS and sentinels. Blocks for the connect timeout at most. Errors:
 * HOLDFAST_INVALID_ARGUMENT (a URL; none, or too many; max_lease; meter; holdfast_quorum_problem() says which),
 * HOLDFAST_SAME_MACHINE, HOLDFAST_NO_QUORUM: it goes on connecting whenever it is used; HOLDFAST_CANCELLED;
 * HOLDFAST_ALREADY_HELD. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status
holdfast_quorum_connect(holdfast_quorum* quorum, const char* const* urls, size_t count,
                        const holdfast_quorum_config* config) HOLDFAST_NOEXCEPT;
HOLDFAST_API void holdfast_quorum_close(holdfast_quorum* quorum) HOLDFAST_NOEXCEPT;
/* A majority is. */
HOLDFAST_API bool holdfast_quorum_connected(const holdfast_quorum* quorum) HOLDFAST_NOEXCEPT;
/* What keeps this server from voting, or the outcome of its last request. */
HOLDFAST_API holdfast_status holdfast_quorum_node_status(const holdfast_quorum* quorum, size_t node) HOLDFAST_NOEXCEPT;
/* As holdfast_client_problem(); `node`, unless it is NULL, is the URL whose it is, counted from 0. */
HOLDFAST_API const char* holdfast_quorum_problem(const holdfast_quorum* quorum, size_t* node,
                                                 const char** reason) HOLDFAST_NOEXCEPT;
/* Which servers did not vote in what failed last, and why. As holdfast_client_error_text(). */
HOLDFAST_API size_t holdfast_quorum_error_text(holdfast_quorum* quorum, char* text, size_t size) HOLDFAST_NOEXCEPT;
/* As the functions of a client. */
HOLDFAST_API int64_t holdfast_quorum_tend(holdfast_quorum* quorum) HOLDFAST_NOEXCEPT;
HOLDFAST_API void holdfast_quorum_cancel(holdfast_quorum* quorum) HOLDFAST_NOEXCEPT;

/* A mutex on all of them. The quorum must have been connected before: else HOLDFAST_NOT_CONNECTED. `votes` must outlive the
 * lock, one for each server. */
HOLDFAST_API holdfast_status holdfast_redlock_init(holdfast_lock* lock, holdfast_quorum* quorum,
                                                   holdfast_quorum_vote* votes, size_t count, const char* key,
                                                   const holdfast_lock_options* options) HOLDFAST_NOEXCEPT;

HOLDFAST_API holdfast_status holdfast_quorum_watchdog_init(holdfast_quorum_watchdog* watchdog) HOLDFAST_NOEXCEPT;
/* As that of a watchdog. */
HOLDFAST_API void holdfast_quorum_watchdog_destroy(holdfast_quorum_watchdog* watchdog) HOLDFAST_NOEXCEPT;
/* Starts the thread; what the quorum holds, and will hold, is kept. Errors: as holdfast_watchdog_start(). */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status
holdfast_quorum_watchdog_start(holdfast_quorum_watchdog* watchdog, holdfast_quorum* quorum) HOLDFAST_NOEXCEPT;
HOLDFAST_API void holdfast_quorum_watchdog_stop(holdfast_quorum_watchdog* watchdog) HOLDFAST_NOEXCEPT;

/* ---- Numbers -------------------------------------------------------------------------------------------------------------
 * A meter counts what clients and quorums do that have it in their settings; without one nothing is counted. Any number of them may
 * have the same one, whose numbers are their sums. holdfast/core/stats.hpp says more of each number, and holdfast/detail/meter.hpp
 * how exact they are. A forked child has what its parent had counted.
 *
 *     static holdfast_meter meter;
 *     static char text[HOLDFAST_OPENMETRICS_SIZE];
 *     holdfast_meter_init(&meter);
 *     const holdfast_client_config config = {.host = "db.internal", .meter = &meter};
 *     if (holdfast_client_connect_with(&client, &config) != HOLDFAST_OK) ...
 *     ...
 *     holdfast_stats stats;
 *     if (holdfast_meter_stats(&meter, &stats) == HOLDFAST_OK &&
 *         holdfast_write_openmetrics(&stats, NULL, 0, text, sizeof text, NULL) == HOLDFAST_OK) ...
 */

/* The last bucket has what is above all bounds. */
#define HOLDFAST_LATENCY_BUCKETS 19

typedef struct holdfast_latencies {
  uint64_t buckets[HOLDFAST_LATENCY_BUCKETS]; /* How many: not above the bound, and not in a bucket before it. */
  uint64_t nanoseconds;                       /* Their sum. */
} holdfast_latencies;

typedef struct holdfast_stats {
  /* Calls that acquire a lock, by how they ended. */
  uint64_t grants;      /* HOLDFAST_OK, also where a hold was acquired once more. */
  uint64_t refusals;    /* The server said no: HOLDFAST_LOCK_BUSY, HOLDFAST_UPGRADE_REFUSED, HOLDFAST_PERMITS_DIFFER. */
  uint64_t failures;    /* Anything else: a connection, a server's error, a cancel. */
  uint64_t waits;       /* Calls that found the lock busy, and began to wait for it. */
  uint64_t waits_ended; /* Those of them that are over. The others wait now. */
  uint64_t losses;      /* Holds that ended before they were released, each once. */
  uint64_t renewals;    /* Each extended one hold. */
  uint64_t renewals_failed;
  uint64_t connects;      /* Connections that came to be of use, the watchdog's own among them, */
  uint64_t reconnects;    /* those of them that followed one which was lost, */
  uint64_t disconnects;   /* and those that have ended. The others are open. */
  uint64_t compensations; /* Sent to take back what nobody may have. */
  uint64_t bytes_sent;    /* Of all connections. Under TLS: before it is encrypted. */
  uint64_t bytes_received;
  holdfast_latencies acquire; /* Of grants: from the call to its end. */
  holdfast_latencies wait;    /* Of waits that are over: likewise. */
  holdfast_latencies renewal; /* Of renewals: from the request to the answer. */
} holdfast_stats;

/* No I/O. Errors: none but what is said above of every init. */
HOLDFAST_API holdfast_status holdfast_meter_init(holdfast_meter* meter) HOLDFAST_NOEXCEPT;
/* REQUIRES: no client or quorum has it: it is destroyed, or was connected without it since. */
HOLDFAST_API void holdfast_meter_destroy(holdfast_meter* meter) HOLDFAST_NOEXCEPT;

/* What was counted until now. No I/O; reads some seventy numbers. On failure the output is untouched. Any thread. Errors:
 * HOLDFAST_INVALID_ARGUMENT (no meter, or no output). */
HOLDFAST_API holdfast_status holdfast_meter_stats(const holdfast_meter* meter, holdfast_stats* stats) HOLDFAST_NOEXCEPT;
/* The same of its meter, all 0 without one. Any thread, but not during a connect. */
HOLDFAST_API holdfast_status holdfast_client_stats(const holdfast_client* client,
                                                   holdfast_stats* stats) HOLDFAST_NOEXCEPT;
HOLDFAST_API holdfast_status holdfast_quorum_stats(const holdfast_quorum* quorum,
                                                   holdfast_stats* stats) HOLDFAST_NOEXCEPT;
/* In nanoseconds; HOLDFAST_NEVER of the last bucket, and of what is none. Any thread. */
HOLDFAST_API int64_t holdfast_latency_bound_ns(size_t bucket) HOLDFAST_NOEXCEPT;

/* Put on every number, to tell apart what comes from several processes. */
typedef struct holdfast_metric_label {
  const char* name;  /* Up to 64 letters, digits and '_', no digit first; not "le", and no "__" first. */
  const char* value; /* Up to 256 bytes of UTF-8. */
} holdfast_metric_label;
#define HOLDFAST_METRIC_LABELS_MAX 4

/* Room for the longest text without labels, its NUL included; and for one with labels whose names and values have so many bytes
 * together. */
#define HOLDFAST_OPENMETRICS_SIZE (8 * 1024 + 1)
#define HOLDFAST_OPENMETRICS_SIZE_WITH(label_count, label_bytes) \
  (HOLDFAST_OPENMETRICS_SIZE + 77 * (2 + 4 * (label_count) + 2 * (label_bytes)))

/* Writes the numbers as OpenMetrics text, which Prometheus and its kin read, with a NUL behind it; or nothing. `written`, unless it
 * is NULL, is its size without the NUL. No I/O; formats some seventy lines. Any thread. Errors: HOLDFAST_BUFFER_TOO_SMALL;
 * HOLDFAST_INVALID_ARGUMENT (no numbers or no text; a label is none, or comes twice, or there are more than
 * HOLDFAST_METRIC_LABELS_MAX). The outputs are untouched then. */
HOLDFAST_API HOLDFAST_WARN_UNUSED holdfast_status holdfast_write_openmetrics(const holdfast_stats* stats,
                                                                             const holdfast_metric_label* labels,
                                                                             size_t label_count, char* text,
                                                                             size_t size,
                                                                             size_t* written) HOLDFAST_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
