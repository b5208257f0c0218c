// SPDX-License-Identifier: MIT
//
// Every bound of holdfast, with its reason. They are constants, not build options: two programs that link the same
// release behave the same.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"

namespace holdfast {

using namespace std::chrono_literals;  // NOLINT(google-global-names-in-headers): for the figures below.

// ---- What a lock is made of -------------------------------------------------------------------------------------

// Redisson users put class names and identifiers into lock names; 256 bytes hold every one we have met.
inline constexpr std::size_t key_size_max = 256;
// Names of a MultiLock: few enough to be checked in one step of a server's only thread.
inline constexpr std::size_t names_max = 8;
// Packed into one key, each behind a byte that says its size: eight names of 31 bytes, or one of 255.
inline constexpr std::size_t name_size_max = 255;
static_assert(1 + name_size_max <= key_size_max, "a single name of full length must fit");
// 128 random bits as hexadecimal digits: as many as a UUID has, printable in an environment variable.
inline constexpr std::size_t token_random_size = 16;
inline constexpr std::size_t token_text_size = 2 * token_random_size;
// `uuid:ordinal` of the hash kinds: 36 + 1 + 20 digits of an unsigned 64-bit ordinal, rounded up.
inline constexpr std::size_t token_size_max = 64;
static_assert(token_size_max >= 36 + 1 + 1 + 20, "uuid:-ordinal must fit");
static_assert(token_size_max >= token_text_size, "a random token must fit");
// What stands beside a key: `redisson_lock__channel:{key}`, rounded up.
inline constexpr std::size_t name_prefix_size_max = 28;
inline constexpr std::size_t derived_name_size_max = name_prefix_size_max + key_size_max + 3;

// ---- Leases -----------------------------------------------------------------------------------------------------

// Drift is lease / drift_divisor + drift_base: the clock-rate error that Redlock's page allows, and the two
// milliseconds that expiry by whole milliseconds can cost.
inline constexpr int drift_divisor = 100;
inline constexpr Duration drift_base = 2ms;
inline constexpr Duration lease_min = 5ms;
static_assert(lease_min > lease_min / drift_divisor + drift_base, "the shortest lease must outlive its drift");
// A day: longer work should renew. It also keeps every sum of instants far from overflow.
inline constexpr Duration lease_max = 24h;
// How often a reentrant lock can be held: far beyond what a program nests, and what fits into Redisson's int.
inline constexpr std::uint32_t count_max = 1'000'000'000;
// Of a semaphore: what fits into Redisson's int.
inline constexpr std::uint32_t permits_max = 1'000'000'000;
inline constexpr Duration lease_default = 30s;             // Redisson's watchdog default; peers expect it.
inline constexpr Duration read_lease_max = lease_default;  // Of a reader: see read_write_kind.hpp.

// ---- RESP2 replies ----------------------------------------------------------------------------------------------

// The longest status or error line, CR LF excluded. Redis cuts its own errors well below that, BUSY and script errors
// with a full key among them.
inline constexpr std::size_t line_size_max = 512;
// A bulk string: a key, a token, a field, the run id. Nothing that we ask for is longer than a key.
inline constexpr std::size_t bulk_size_max = 1024;
static_assert(bulk_size_max >= derived_name_size_max, "a channel name of prefix and key must fit");
// Elements of one reply, nested ones and the array itself included: a renewal batch of 100, a hash of 64 holders.
inline constexpr std::size_t elements_max = 160;
// Arrays inside arrays: PUBSUB and scripts nest once; two more for what servers may add.
inline constexpr std::size_t depth_max = 4;
// A receive buffer holds one whole reply. One of this size holds any that is asked for on any connection.
inline constexpr std::size_t reply_size_max = 4096;
static_assert(reply_size_max >= bulk_size_max + 16, "a full bulk and its header must fit");
static_assert(reply_size_max >= line_size_max + 3, "a full line must fit");

// ---- Requests ---------------------------------------------------------------------------------------------------

// The longest script text. Clang 14 gives up on a compile-time SHA-1 above 8 KiB.
inline constexpr std::size_t script_size_max = 8192;
inline constexpr std::size_t arguments_max = 16;
static_assert(3 /* EVALSHA, SHA-1, the number of keys */ + names_max + 3 /* owner, count, lease */ <= arguments_max,
              "a step of a lock with the most names must fit");
// A bulk header: '$', up to ten digits, CR LF; and CR LF behind the bytes.
inline constexpr std::size_t bulk_overhead_max = 15;
// The longest request of a lock that has no text: EVALSHA, SHA-1, its key or names, a name beside it, its token, and numbers.
inline constexpr std::size_t request_size_max = 7 /* EVALSHA */ + 40 /* SHA-1 */ + key_size_max +
                                                derived_name_size_max + token_size_max + 5 * 20 +
                                                (1 + arguments_max) * bulk_overhead_max;

// ---- A session --------------------------------------------------------------------------------------------------

inline constexpr std::size_t user_size_max = 128;
inline constexpr std::size_t password_size_max = 512;  // Tokens of cloud providers are long.
inline constexpr std::size_t client_name_size_max = 64;
inline constexpr std::size_t run_id_size = 40;
// Requests on one blocking connection: one that is waited for, releases that nobody waits for, and compensations.
inline constexpr std::size_t in_flight_max = 32;
// Compensations that wait for a connection, and releases that nobody waits for until the server has confirmed them. Each
// acquire reserves one before it is sent. As many as locks that a program lets go of in one breath.
inline constexpr std::size_t compensations_max = 24;
static_assert(in_flight_max > compensations_max, "beside all of them there must be room for a request");
// The keys of those: of eight of the largest, of all with keys of up to 77 bytes.
inline constexpr std::size_t compensation_keys_size = 8 * key_size_max;
// Connections that were lost in a row and may have something in the server's socket still. What an older one left ends
// by its lease.
inline constexpr std::size_t predecessors_max = 4;
// A value that fenced_set() writes.
inline constexpr std::size_t fenced_value_size_max = 4096;
// One blocking client's send buffer: a whole handshake, or one request with its script's text. More requests and
// compensations go out in turn; a value of fenced_set() that does not fit leaves in pieces.
inline constexpr std::size_t transmit_size_max = 1792;
static_assert(transmit_size_max >= request_size_max + 512, "beside short requests there must be room for the longest");
// One blocking client's receive buffer and elements. Its longest reply is that of inspect(): eight elements, of some 250
// bytes. A bulk and a line of full size fit, too. What does not fit closes the connection with protocol_error.
inline constexpr std::size_t client_reply_size_max = 1072;
static_assert(client_reply_size_max >= bulk_size_max + 16 && client_reply_size_max >= line_size_max + 3);
inline constexpr std::size_t client_elements_max = 12;

// The smallest buffers that serve a Mutex with any key: what does not fit into them is refused by name.
// To send: a whole handshake, or a release or a renewal of a Mutex with its script's text.
inline constexpr std::size_t small_transmit_size = 736;
// To receive: a line of full size, which is an error; what the server says of itself is shorter.
inline constexpr std::size_t small_reply_size = 528;
static_assert(small_reply_size >= line_size_max + 3);
inline constexpr std::size_t small_elements = 8;  // An array of six.
// One compensation for the attempt under way, and one for the attempt before it, unless their keys are long.
inline constexpr std::size_t small_compensations = 2;
inline constexpr std::size_t small_compensation_keys_size = key_size_max + key_size_max / 2;
// Connections before this one to be killed, a request, its compensation, and two for what is given up.
inline constexpr std::size_t small_in_flight = predecessors_max + 4;
// Host, user, password and name of the client, and a NUL behind each: as long as they are together.
inline constexpr std::size_t small_texts_size = 256;
inline constexpr std::size_t small_addresses = 2;

inline constexpr Duration stall_timeout_default = 5s;
inline constexpr Duration request_timeout_default = 1s;
inline constexpr Duration connect_timeout_default = 2s;
// A timeout at least this long, so that a loop over timed-out requests cannot spin.
inline constexpr Duration timeout_min = 1ms;
inline constexpr Duration timeout_max = 1h;

// ---- Renewals ---------------------------------------------------------------------------------------------------

// Keys of one renewal call: Redisson's lockWatchdogBatchSize. It keeps a server's single thread for some 100 us.
inline constexpr std::size_t renewal_batch_max = 100;
static_assert(renewal_batch_max + 1 <= elements_max, "its reply must fit");
// Calls in flight at once: the next is on its way while the server works on the last.
inline constexpr std::size_t renewal_calls_max = 4;

// ---- Quorums ----------------------------------------------------------------------------------------------------

// Nodes of a Redlock. Five survive two failures, and more than nine cost more than they save.
inline constexpr std::size_t nodes_max = 9;
// A hold is to be renewed when this share of its lease has passed, and is at risk after two of them without a confirmation.
inline constexpr int renewal_divisor = 3;
// After a renewal that failed: a thirtieth of the lease, so that about twenty attempts fit before the end.
inline constexpr int renewal_retry_divisor = 30;
// How long one node may take to answer an acquire: far less than the lease, or little of it would be left.
inline constexpr int node_timeout_divisor = 20;
inline constexpr Duration node_timeout_min = 5ms;
// Quorums that share one watchdog: one for each thread of a small service.
inline constexpr std::size_t quorum_watchdog_quorums_max = 8;

// ---- Waiting ----------------------------------------------------------------------------------------------------

inline constexpr Duration retry_delay_min = 2ms;  // The floor: no loop turns faster.
// The bound of a poll, of which half to all is slept. redis-py sleeps 100 ms and redsync 50 to 250: beside them, whoever asks
// less often gets less than its share.
inline constexpr Duration retry_delay_max = 100ms;
// A waiter that was woken in vain so often spreads its tries, up to so much: a release wakes a waiter of every process, and
// each asks. With few waiters it comes to that seldom, and with many of them one is always about to ask.
inline constexpr int vain_wakes_free = 10;
inline constexpr Duration vain_delay_max = 8ms;
// Pauses between attempts to connect double from the first to the second; where connections were of use before they ended,
// to the third.
inline constexpr Duration reconnect_delay_min = 10ms;
inline constexpr Duration reconnect_delay_max = 2s;
inline constexpr Duration reconnect_soon_max = 200ms;
// Whoever keeps holds alive pauses no longer than this: they have seconds.
inline constexpr Duration reconnect_kept_max = 500ms;
// With push, a waiter sleeps this long at most; and a subscription that was silent for so long is asked whether it is
// alive. A lost message costs a waiter no more than this.
inline constexpr Duration max_poll_default = 10s;
inline constexpr Duration poll_min = 10ms;
inline constexpr Duration poll_max = 1h;
// Different names that one blocking client waits for at once. More are polled.
inline constexpr std::size_t waiters_max = 4;
// Of how many names an Owner has places for the holds; OwnerOf says another number.
inline constexpr std::size_t owner_holds_default = 8;
inline constexpr std::size_t owner_holds_max = UINT16_MAX;  // They are counted in 16 bits.
// A subscription's receive buffer: one message of a full channel name, and what belongs to it.
inline constexpr std::size_t message_size_max = 512;
static_assert(message_size_max >= derived_name_size_max + 64, "a message must fit");
// Elements of a message: the array, its kind, the channel, the payload.
inline constexpr std::size_t message_elements_max = 8;
// AUTH, CLIENT SETNAME and a SUBSCRIBE.
inline constexpr std::size_t subscriber_transmit_size_max = 1536;
static_assert(subscriber_transmit_size_max >=
              user_size_max + password_size_max + client_name_size_max + derived_name_size_max + 256);
// How long a hold that nobody wants may stay where it was used last. Who waits without being able to recall it, by Redisson or
// by another kind, waits for so long: no longer than some will.
inline constexpr Duration linger_min = 1ms;
inline constexpr Duration linger_max = 1min;
// A hold does not stay where nobody has listened for recalls for so long; a waiter repeats its recall within that time.
inline constexpr Duration linger_unheard_max = 1s;
// A blocking client wants to listen so often while it has a hold that may stay.
inline constexpr Duration linger_look = 10ms;
static_assert(linger_look < linger_unheard_max);
// Of how many holds of one blocking client: each has a place of waiters_max, and one is left for who waits.
inline constexpr std::size_t lingering_max = waiters_max - 1;
// Timers stand still in suspend while leases run on: no sleep is longer than this.
inline constexpr Duration sleep_max = 1s;

// ---- Replicas ---------------------------------------------------------------------------------------------------

// How many may be asked to confirm a grant: more than anybody has, and each costs the master a stream.
inline constexpr std::uint8_t acks_max = 15;
// Far longer than a replica that is well needs, on any continent.
inline constexpr Duration acks_timeout_default = 500ms;

// ---- Addresses --------------------------------------------------------------------------------------------------

inline constexpr std::size_t host_size_max = 255;         // RFC 1035.
inline constexpr std::size_t socket_path_size_max = 107;  // sockaddr_un on Linux, without its NUL.
inline constexpr std::size_t addresses_max = 8;           // Cached results of one name.
// One of several addresses is given so long at least before the next is tried: a round trip around the world.
inline constexpr Duration address_timeout_min = 100ms;
inline constexpr std::size_t url_size_max = 2048;
// Sentinels of one service, or nodes of a cluster that are asked. One that answers is enough to find the server; each that is
// silent costs an attempt its share of the time.
inline constexpr std::size_t sentinels_max = 9;
inline constexpr std::size_t cluster_hosts_max = sentinels_max;
// Masters of one cluster that an Asio client is connected to at the same time.
inline constexpr std::size_t cluster_masters_max = 64;
inline constexpr std::size_t listed_hosts_size_max = 1023;  // All of them as one text.
// Of each, and of whom it names: it stands where a host does.
inline constexpr std::size_t listed_host_size_max = 112;
static_assert(sentinels_max * (listed_host_size_max + 1) <= listed_hosts_size_max + 1);
static_assert(listed_hosts_size_max >= sentinels_max * (39 + 2 + 6 + 1), "IPv6 addresses with ports must fit");
inline constexpr std::size_t service_size_max = 128;
inline constexpr std::uint16_t sentinel_port_default = 26379;
// What a node knows of its search for the server, and where it goes.
inline constexpr std::size_t host_search_size = 160;
static_assert(host_search_size < host_size_max, "it stands where a host does");
// How often one attempt follows those who name another host.
inline constexpr std::uint8_t redirections_max = 16;
static_assert(redirections_max >= sentinels_max, "each sentinel names a master");
inline constexpr int database_max = 65535;

// ---- News of a fail-over ----------------------------------------------------------------------------------------

// A sentinel that tells of fail-overs is asked anew so often, of which half to all at random passes: as often as a silent
// subscription is. A message that was lost costs no more than this.
inline constexpr Duration switch_check_max = 10s;
// It is not asked more often, however many messages call for it.
inline constexpr Duration switch_check_min = 100ms;
// A client leaves its master for what a sentinel has said once in so long, and as much again at random: whatever sentinels say.
inline constexpr Duration switch_pause_min = 2s;
// To send: a whole handshake with a sentinel, and its question, as a search counts them.
inline constexpr std::size_t switch_transmit_size =
    user_size_max + password_size_max + client_name_size_max + service_size_max + 256;
// To receive: "<service> <host> <port> <host> <port>" as a message, with hosts that could be dialled. What is longer is another's,
// or none: it ends the connection, and the next one begins with the question.
inline constexpr std::size_t switch_reply_size = small_reply_size;
static_assert(switch_reply_size >= service_size_max + 2 * (listed_host_size_max + 7) + 64, "a message must fit");
// The search for a sentinel, the name of the client, and a NUL behind each.
inline constexpr std::size_t switch_texts_size = host_search_size + client_name_size_max + 2;

// Of what failed last on a connection, in words: the server's, or ours. Longer ones are cut.
inline constexpr std::size_t failure_text_size_max = 160;
static_assert(failure_text_size_max <= UINT8_MAX, "its size is kept in a byte");

// ---- Words for what has no limit ----
// The `wait` of an acquire that has no end.
inline constexpr Duration wait_forever = Duration::max();
// What a question for a lock's remaining time gives for a key without a TTL: it is another's, and it is busy for ever.
inline constexpr Duration remaining_unlimited = Duration::max();

}  // namespace holdfast
