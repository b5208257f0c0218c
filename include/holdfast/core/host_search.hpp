// SPDX-License-Identifier: MIT
//
// HostSearch is how a node finds its server where an address alone does not say it: hosts of a list are asked in turn, and each may
// name another one. MasterSearch asks sentinels, SlotSearch asks the nodes of a cluster: their Plan says what they ask, what an answer
// means and whom to believe. It does no I/O. One attempt of the node's dialer goes like this:
//
//     listed: dialled, asked -> named: closed -> server: dialled, asked, believed -> ready
//        ^                        ^ |                      |
//        |                        | '- named another one --+
//        +--- the next one in turn +-----------------------+   no answer, or none that is believed
//
// Each host of the list is asked once per attempt, at each of its addresses in turn while it does not answer. A server that was
// silent or not there is not dialled again in the same attempt, and no attempt goes to more than redirections_max hosts that were
// named: who names another one then is told as cluster_down. What a wait would end at is told only where all ended so. When all
// have failed, the dialer pauses, longer and longer and at random, as after any attempt. The host that led to the server is the
// first of the list in the next attempt.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/handshake.hpp"
#include "holdfast/core/host_list.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/resp_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class Node;
class Topology;

class HostSearch : public Interview {
 public:
  enum class Stage : std::uint8_t {
    listed,  // The host is one of the list.
    named,   // It has named the server, which is the next host.
    server,  // The host is whom it has named.
  };

  HostSearch(const HostSearch&) = delete;
  HostSearch& operator=(const HostSearch&) = delete;

  // A. Questions.
  [[nodiscard]] Stage stage() const noexcept { return stage_; }
  // The host of the list that is asked, or that has named the server.

  // B. Commands.
  // Before the node's dialer is polled: begins an attempt that is due, or goes on with one that has failed at a host.
  static void steer(Node& node, Instant now, std::uint16_t random) noexcept;
  // The next attempt begins with this host of the list. REQUIRES: the node is no longer on its way, and there is such a host.
  static void prefer(Node& node, std::size_t listed) noexcept;
  // Whom the node has asked last, or who has named its server: a place in the list.
  [[nodiscard]] static std::size_t listed_of(Node& node) noexcept;

 protected:
  // What differs between those who are asked.
  struct Plan : Interview::Table {
    HostList (*hosts)(const Topology& topology) noexcept;
    // Of the session with who is asked at this stage. What is the same for all is there already.
    void (*settle)(const HostSearch& search, SessionSettings& settings) noexcept;
    // How many bytes the question for a host of the list takes, beside the names of the commands and the client's own.
    std::size_t (*question_size)(const HostSearch& search) noexcept;
    // What judge() found, in words; empty: as the status says it. `more` follows them.
    ByteView (*words)(const HostSearch& search, Status status, Stage at, ByteView& more) noexcept;
    ByteView lister;  // What a host of the list is called.
    // An attempt begins at the server of before, or at the one that it has named.
    bool returns;
  };

  HostSearch(Node& node, const Plan& plan) noexcept;
  ~HostSearch() = default;
  [[nodiscard]] static void* place_in(Node& node) noexcept;
  // After the search was placed: the first attempt begins with the first host of the list.
  static void begin_at(Node& node) noexcept;

  [[nodiscard]] const Plan& plan() const noexcept { return static_cast<const Plan&>(*table); }
  [[nodiscard]] const Topology& topology() const noexcept;
  // For the judge of a reply.
  void note_reply(const RespValue& value) noexcept { judged_ = !value.is(RespKind::error); }
  // The reply says so in words of ours.
  void note_judged() noexcept { judged_ = true; }
  // The server is at this host. Its name may be a view of a reply.
  void name(ByteView host, std::uint16_t port) noexcept;
  // SlotSearch's: the host that is asked next has said that it serves the slot.
  void set_owner(bool owner) noexcept { owner_ = owner; }
  [[nodiscard]] bool owner() const noexcept { return owner_; }
  void believe() noexcept { return_ = plan().returns; }
  // The next attempt begins with it, as if it had been the server.
  void begin_with(ByteView host, std::uint16_t port) noexcept {
    take_host(host, port);
    return_ = true;
  }
  // What the answer to the identity script means: ok: a master; read_only: a replica; no_permission: it does not tell; the
  // server's error.
  [[nodiscard]] static Status judge_role(const RespValue& value) noexcept;
  // Of an Interview::Table, for those who are asked nothing but questions.
  static bool overhear_nothing(Interview& /*self*/, Session& /*session*/, const RespValue& /*value*/) noexcept {
    return false;
  }
  static std::size_t complete_nothing(const Interview& /*self*/, const ServerIdentity& /*identity*/,
                                      MutableBytes /*space*/, std::size_t size) noexcept {
    return size;
  }

  Node* node_;

 private:
  void steer(Instant now, std::uint16_t random) noexcept;
  // The end of the attempt.
  [[nodiscard]] Instant begin(Instant now) noexcept;
  void note_failure(Status status) noexcept;
  void fail(Status status) noexcept;
  void go_to_server(Instant now, Instant end) noexcept;
  void ask_next(Instant now, Instant end, std::uint16_t random) noexcept;
  void give_up(Instant now, std::uint16_t random) noexcept;
  void configure_session() noexcept;
  void take_host(ByteView host, std::uint16_t port) noexcept;
  [[nodiscard]] std::uint32_t host_number() const noexcept;
  void go_to(Instant now, Instant end, std::size_t hosts) noexcept;

  static constexpr std::uint8_t nobody = 0xff;

  // Of the attempt, after the deadline of the host. Both move by the resolver's time.
  Duration rest_ = Duration::zero();
  std::uint32_t silent_ = 0;  // A number of the server that was silent in this attempt; 0: none.
  std::uint8_t listed_ = 0;   // In the list; nobody: the server is that of before.
  std::uint8_t next_ = 0;     // Who is asked after it.
  std::uint8_t left_ = 0;     // Of the list, whom this attempt has not asked yet.
  std::uint8_t hops_ = 0;     // Servers that this attempt may still follow to.
  Stage stage_ = Stage::listed;
  bool judged_ : 1 = false;  // The last host's failure was found by judge() in a reply that is no error.
  bool return_ : 1 = false;  // The next attempt begins at the host of now.
  bool owner_ : 1 = false;
  bool failed_judged_ : 1 = false;  // As judged_, of what follows.
  // The failure that is told in words: who answered tells more than who did not.
  Status failure_ = Status::ok;
  Stage failed_at_ = Stage::listed;
  std::uint8_t failed_listed_ = 0;
  Status passing_ = Status::ok;          // The last failure that is worth waiting after; ok: all were final.
  char host_[listed_host_size_max + 1];  // That the node goes to.
};

}  // namespace holdfast
