// SPDX-License-Identifier: MIT
//
// MasterSearch is how a node with Sentinels finds its server: whom it asks next, what the answer means, and whether the server that
// was named is a master. It does no I/O. One attempt of the node's dialer goes like this:
//
//     sentinel: dialled, AUTH, SENTINEL GET-MASTER-ADDR-BY-NAME -> named: closed -> master: dialled, introduced, a master -> ready
//        ^                                  |                                          |
//        +--- the next one in turn ---------+------------------------------------------+   no answer, no address, no master
//
// Each sentinel is asked once per attempt, at each of its addresses in turn while it does not name a master. A master that was
// silent or not there is not dialled again in the same attempt. What a wait would end at is told only where all ended so. When
// all have failed, the dialer pauses, longer and longer and at random, as after any attempt. The sentinel that led to the master
// is the first of the next attempt.
//
// A server proves itself by the answer to the identity script, which has its role as INFO says it. ROLE would do, but its
// answer is as long as the list of replicas.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstdint>

#include "holdfast/client_config.hpp"
#include "holdfast/core/handshake.hpp"
#include "holdfast/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/resp_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class Node;
class Session;
struct SentinelConfig;

class MasterSearch : public Interview {
 public:
  enum class Stage : std::uint8_t {
    sentinel,  // The host is a sentinel.
    named,     // It has named the master, which is the next host.
    master,    // The host is whom it has named.
  };

  MasterSearch(const MasterSearch&) = delete;
  MasterSearch& operator=(const MasterSearch&) = delete;

  // A. Questions.
  [[nodiscard]] Stage stage() const noexcept { return stage_; }
  // The sentinel that is asked, or that has named the master.
  [[nodiscard]] std::uint8_t sentinel() const noexcept { return sentinel_; }

  // What a sentinel's answer means. Not ok: unknown_service; the server's error; protocol_error: it is no host and port.
  [[nodiscard]] static Status read_address(const RespValue& value, ByteView& host, std::uint16_t& port) noexcept;
  // What the answer to the identity script means: ok: a master; read_only: a replica; no_permission: it does not tell; the
  // server's error.
  [[nodiscard]] static Status read_role(const RespValue& value) noexcept;

  // See Sentinels::Table.
  [[nodiscard]] static std::uint64_t number(const SentinelConfig& config) noexcept;
  // Of a configuration with Sentinels, what is wrong with them.
  [[nodiscard]] static ConfigProblem validate(const ClientConfig& config) noexcept;

  // B. Commands. At the node's configuration: places the search, and the first attempt begins with the first sentinel.
  static void start(Node& node) noexcept;
  // Before the node's dialer is polled: begins an attempt that is due, or goes on with one that has failed at a host.
  static void steer(Node& node, Instant now, std::uint16_t random) noexcept;

 private:
  explicit MasterSearch(Node& node) noexcept;
  [[nodiscard]] static void* place_in(Node& node) noexcept;
  static const Table interview;
  static bool ask(Interview& self, CommandLine& line) noexcept;
  static Status judge(Interview& self, const RespValue& value) noexcept;
  static void doubt(Session& session, Status status) noexcept;

  void steer(Instant now, std::uint16_t random) noexcept;
  // The end of the attempt.
  [[nodiscard]] Instant begin(Instant now) noexcept;
  void note_failure() noexcept;
  void fail(Status status) noexcept;
  void ask_next(Instant now, Instant end, std::uint16_t random) noexcept;
  void give_up(Instant now, std::uint16_t random) noexcept;
  void configure_session() noexcept;
  void take_host(ByteView host, std::uint16_t port) noexcept;
  [[nodiscard]] std::uint32_t host_number() const noexcept;
  void go_to(Instant now, Instant end, std::size_t hosts) noexcept;

  Node* node_;
  // Of the attempt, after the deadline of the host. Both move by the resolver's time.
  Duration rest_ = Duration::zero();
  std::uint32_t silent_master_ = 0;  // A number of the master that was silent in this attempt; 0: none.
  std::uint8_t sentinel_ = 0;        // In the list.
  std::uint8_t next_ = 0;            // Who is asked after it.
  std::uint8_t left_ = 0;            // Sentinels that this attempt has not asked yet.
  Stage stage_ = Stage::sentinel;
  bool judged_ = false;  // The last host's failure was found by judge() in a reply that is no error.
  // The failure that is told in words: who answered tells more than who did not.
  Status failure_ = Status::ok;
  Stage failed_at_ = Stage::sentinel;
  std::uint8_t failed_sentinel_ = 0;
  bool failed_judged_ = false;
  Status passing_ = Status::ok;            // The last failure that is worth waiting after; ok: all were final.
  char host_[sentinel_host_size_max + 1];  // That the node goes to.
};

}  // namespace holdfast
