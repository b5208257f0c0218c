// SPDX-License-Identifier: MIT
//
// Handshake is how a connection introduces itself, and learns whom it has reached: which commands go out first, what
// their replies mean, and which connections before it are to be killed.
//
//     AUTH -> SELECT -> CLIENT SETNAME -> CLIENT ID -> the identity script    ...done...    CLIENT KILL of each predecessor
//
// The first three go out where they are asked for, all five without waiting for each other. What an older connection left
// in the server's socket must not run behind its compensations: so it is killed first, where the node is the same.
//
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/resp_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class CommandLine;
class Session;

enum class NativeDelete : std::uint8_t { none, delex, delifeq };

// What a server has been. `successor`: its data are those of another life, another server's from which it was promoted, or its
// own from which it was started; it does not tell since when it has them, and they may lack the last writes.
enum class ServerStanding : std::uint8_t { unknown, master, successor, replica };

// What the handshake found out. Empty fields where the server or its ACL did not tell.
struct ServerIdentity {
  char run_id[run_id_size] = {};  // All NUL when unknown.
  bool run_id_known = false;
  std::uint64_t uptime_seconds = 0;  // At the handshake.
  std::uint64_t replication_id = 0;  // Its first 64 bits, which a master and its replicas share; 0 when unknown.
  std::int64_t client_id = 0;        // Of this connection; 0 when unknown.
  std::uint32_t version = 0;         // Major * 10000 + minor * 100 + patch; of Valkey where it is one. 0: unknown.
  bool is_valkey = false;
  NativeDelete native_delete = NativeDelete::none;
  // Of what the identity script says of its standing, the ends; NUL when unknown. Judged by standing(), where that is asked.
  char standing_first = '\0';
  char standing_last = '\0';

  void take_standing(ByteView text) noexcept {
    if (text.empty()) return;
    standing_first = text[0];
    standing_last = text.end()[-1];
  }
  [[nodiscard]] constexpr ServerStanding standing() const noexcept {
    if (standing_last == 'e') return ServerStanding::replica;  // `slave`, after whatever offset.
    if (standing_last != 'r') return ServerStanding::unknown;  // `master`, likewise.
    return standing_first >= '0' && standing_first <= '9' ? ServerStanding::successor : ServerStanding::master;
  }
};

// Who asks another question than that for the identity, or has a word in its answer. Pointers, so that a program links what it
// asks: see MasterSearch.
struct Interview {
  struct Table {
    // Writes its question to `line`. False: it has none, and the identity is asked for.
    bool (*ask)(Interview& self, CommandLine& line) noexcept;
    // The answer to either, also an error. Not ok: the connection must be closed.
    Status (*judge)(Interview& self, const RespValue& value) noexcept;
    // A request was refused so; failure_text() has the server's words. May fail the session. What to tell whoever has asked.
    Status (*doubt)(Interview& self, Session& session, Status status) noexcept;
    // A request of `size` bytes stands in `space`, and leaves next. It may get more arguments. How large it is then.
    std::size_t (*complete)(const Interview& self, const ServerIdentity& identity, MutableBytes space,
                            std::size_t size) noexcept;
    // Something has come that is no reply to a request in force. True: it is nobody's reply, and taken. May fail the session.
    bool (*overhear)(Interview& self, Session& session, const RespValue& value) noexcept;
  };
  const Table* table = nullptr;
};

// What a session needs from its owner. Views must outlive the session.
struct SessionSettings {
  ByteView user{};         // Empty: AUTH with the password alone.
  ByteView password{};     // Empty: no AUTH.
  ByteView client_name{};  // Empty: no CLIENT SETNAME.
  // With requests in flight and nothing received for this long, the connection is closed.
  Duration stall_timeout = stall_timeout_default;
  int database = 0;           // 0: no SELECT.
  bool native_delete = true;  // Use the server's own compare-and-delete where there is one.
  Interview* interview = nullptr;
};

// In the order in which they go out.
enum class HandshakeCommand : std::uint8_t { none, auth, select, set_name, client_id, identity, client_kill };

class Handshake {
 public:
  Handshake() noexcept = default;
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // A. Questions.
  [[nodiscard]] const SessionSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] const ServerIdentity& identity() const noexcept { return identity_; }
  // The server has been asked who it is, and has answered.
  [[nodiscard]] bool done() const noexcept { return done_; }
  // Connections that are being killed: as many replies to client_kill are to come.
  [[nodiscard]] std::size_t kills_in_flight() const noexcept { return previous_.asked; }
  // For tests: nothing is known of a server that has not answered yet, nobody but predecessors is killed, none of them before
  // that, and never this connection itself.
  [[nodiscard]] bool invariants() const noexcept;

  // B. Inputs.
  // A new connection. The one before becomes a predecessor where it is known who it was.
  void begin() noexcept;
  // `command` is one that poll_command() gave; replies come in the same order.
  // Errors: the server's, or protocol_error: the connection must be closed, and failure_text() says why.
  [[nodiscard]] Status handle_reply(HandshakeCommand command, const RespValue& value) noexcept;
  // Views the reply where it is an error.
  [[nodiscard]] static ByteView failure_text(const RespValue& value) noexcept {
    return value.is(RespKind::error) ? value.text() : ByteView("AUTH or SELECT was not answered OK");
  }
  // The server refused its own compare-and-delete: it is not used again on this connection.
  void handle_native_refused() noexcept { identity_.native_delete = NativeDelete::none; }

  // C. Commands.
  // For the next connection.
  void configure(const SessionSettings& settings) noexcept { settings_ = settings; }
  // Of the connections before, too.
  void forget() noexcept;

  // D. Outputs. After begin(), and when it is done, poll it until it is none.
  // Writes the next command to `line`, where it views the settings.
  [[nodiscard]] HandshakeCommand poll_command(CommandLine& line) noexcept;

 private:
  // The connections before this one, to be killed if the node is the same, until the server has answered that. One that
  // was lost before may have taken the kill of its own predecessor with it.
  struct Predecessors {
    char run_id[run_id_size] = {};
    std::int64_t client_ids[predecessors_max] = {};  // The oldest first.
    std::uint8_t count = 0;
    std::uint8_t asked = 0;  // Of the oldest ones, on this connection.
  };

  void forget_predecessor() noexcept;
  void read_identity(const RespValue& value) noexcept;

  ServerIdentity identity_;
  HandshakeCommand last_ = HandshakeCommand::none;  // Whose turn it was.
  bool done_ = false;
  SessionSettings settings_;
  Predecessors previous_;
};

}  // namespace holdfast
