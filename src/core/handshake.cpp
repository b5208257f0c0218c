// SPDX-License-Identifier: MIT
#include "holdfast/core/handshake.hpp"

#include <cstring>

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/proto/resp_value.hpp"
#include "holdfast/proto/server_error.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

constexpr std::uint32_t delex_since = 80400;    // Redis 8.4
constexpr std::uint32_t delifeq_since = 90000;  // Valkey 9.0

// "8.4.1" as 80401; what is missing counts as 0, what is no version is 0.
std::uint32_t read_version(ByteView text) noexcept {
  std::uint32_t version = 0;
  const char* at = text.begin();
  for (int part = 0; part < 3; ++part) {
    std::uint32_t number = 0;
    for (; at != text.end() && *at != '.'; ++at) {
      if (*at < '0' || *at > '9' || number > 9) return 0;
      number = number * 10 + static_cast<std::uint32_t>(*at - '0');
    }
    if (at != text.end()) ++at;
    version = version * 100 + number;
  }
  return version;
}

// The first 64 bits; 0 of what is no hexadecimal number.
std::uint64_t read_hexadecimal(ByteView text) noexcept {
  std::uint64_t number = 0;
  for (std::size_t index = 0; index < 16; ++index) {
    const char digit = text[index];
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && (digit < 'a' || digit > 'f')) return 0;
    number = number << 4 | static_cast<std::uint64_t>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return number;
}

}  // namespace

// ---- Commands ----------------------------------------------------------------------------------------------------

HandshakeCommand Handshake::poll_command(CommandLine& line) noexcept {
  while (last_ < HandshakeCommand::identity) {
    last_ = static_cast<HandshakeCommand>(static_cast<std::uint8_t>(last_) + 1);
    switch (last_) {
      case HandshakeCommand::auth:
        if (settings_.password.empty()) continue;
        line.add("AUTH");
        if (!settings_.user.empty()) line.add(settings_.user);
        line.add(settings_.password);
        break;
      case HandshakeCommand::select:
        if (settings_.database == 0) continue;
        line.add("SELECT").add(settings_.database);
        break;
      case HandshakeCommand::set_name:
        if (settings_.client_name.empty()) continue;
        line.add("CLIENT").add("SETNAME").add(settings_.client_name);
        break;
      case HandshakeCommand::client_id: line.add("CLIENT").add("ID"); break;
      case HandshakeCommand::identity:  // The last: its reply ends the handshake.
      case HandshakeCommand::none:
      case HandshakeCommand::client_kill:
        if (Interview* const other = settings_.interview; other != nullptr && other->table->ask(*other, line))
            [[unlikely]]
          break;
        line.add_script(scripts::server_identity, RequestForm::by_text).add("0");
    }
    return last_;
  }
  if (!done_ || previous_.asked == previous_.count) return HandshakeCommand::none;
  line.add("CLIENT").add("KILL").add("ID").add(previous_.client_ids[previous_.asked++]);
  return HandshakeCommand::client_kill;
}

// ---- Replies -----------------------------------------------------------------------------------------------------

// AUTH and SELECT must succeed. The rest is knowledge that we can do without where the ACL refuses it.
Status Handshake::handle_reply(HandshakeCommand command, const RespValue& value) noexcept {
  const bool needed = command == HandshakeCommand::auth || command == HandshakeCommand::select;
  if (value.is(RespKind::error)) {
    const Status status = classify_error(value.text()).status;
    if (needed || status == Status::auth_required || status == Status::auth_failed || status == Status::denied ||
        status == Status::too_many_clients || status == Status::loading)
      return status;
  } else if (needed && !value.is_simple("OK")) {
    return Status::protocol_error;
  }
  if (command == HandshakeCommand::client_id && value.is(RespKind::integer) && value.integer() > 0)
    identity_.client_id = value.integer();
  if (command == HandshakeCommand::client_kill) {
    --previous_.asked;
    forget_predecessor();
  }
  if (command != HandshakeCommand::identity) return Status::ok;
  if (Interview* const other = settings_.interview; other != nullptr) [[unlikely]]
    if (const Status status = other->table->judge(*other, value); status != Status::ok) return status;

  read_identity(value);
  done_ = true;
  // Nobody is to be killed on another server than theirs, nor we ourselves.
  if (!identity_.run_id_known || std::memcmp(identity_.run_id, previous_.run_id, run_id_size) != 0 ||
      (previous_.count != 0 && previous_.client_ids[previous_.count - 1] == identity_.client_id))
    previous_.count = 0;
  return Status::ok;
}

void Handshake::read_identity(const RespValue& value) noexcept {
  if (!value.is(RespKind::array) || value.count() != 6) return;
  ByteView fields[6];
  for (std::uint32_t index = 0; index < 6; ++index) {
    const RespValue& field = value.at(index);
    if (!field.is(RespKind::bulk)) return;
    fields[index] = field.text();
  }
  const auto& [run_id, uptime, redis_version, valkey_version, replication_id, standing] = fields;
  if (run_id.size() == run_id_size) {
    std::memcpy(identity_.run_id, run_id.data(), run_id_size);
    identity_.run_id_known = true;
  }
  (void)read_decimal(uptime, UINT64_MAX / 2, identity_.uptime_seconds);
  if (replication_id.size() == run_id_size) identity_.replication_id = read_hexadecimal(replication_id);
  identity_.take_standing(standing);
  identity_.is_valkey = !valkey_version.empty();
  identity_.version = read_version(identity_.is_valkey ? valkey_version : redis_version);
  if (!settings_.native_delete) return;
  if (identity_.is_valkey && identity_.version >= delifeq_since) identity_.native_delete = NativeDelete::delifeq;
  if (!identity_.is_valkey && identity_.version >= delex_since) identity_.native_delete = NativeDelete::delex;
}

// ---- The life of a connection ------------------------------------------------------------------------------------

void Handshake::begin() noexcept {
  if (identity_.client_id != 0 && identity_.run_id_known) {
    // Those before it were on the same server, or there are none: handle_reply() has seen to that.
    std::memcpy(previous_.run_id, identity_.run_id, run_id_size);
    if (previous_.count == predecessors_max) forget_predecessor();
    previous_.client_ids[previous_.count++] = identity_.client_id;
  }
  previous_.asked = 0;
  identity_ = {};
  last_ = HandshakeCommand::none;
  done_ = false;
}

void Handshake::forget_predecessor() noexcept {
  --previous_.count;
  std::memmove(previous_.client_ids, previous_.client_ids + 1, previous_.count * sizeof previous_.client_ids[0]);
}

void Handshake::forget() noexcept {
  identity_ = {};
  previous_.count = previous_.asked = 0;
}

// ---- What is always so -------------------------------------------------------------------------------------------

bool Handshake::invariants() const noexcept {
  if (previous_.count > predecessors_max || previous_.asked > previous_.count) return false;
  for (std::size_t index = 0; index < previous_.count; ++index) {
    if (previous_.client_ids[index] <= 0) return false;
    if (index != 0 && previous_.client_ids[index] == previous_.client_ids[index - 1]) return false;
  }
  if (!done_) {
    const ServerIdentity unknown;
    return previous_.asked == 0 && !identity_.run_id_known && identity_.version == unknown.version &&
           identity_.native_delete == NativeDelete::none &&
           (identity_.client_id == 0 || last_ >= HandshakeCommand::client_id);
  }
  if (last_ != HandshakeCommand::identity) return false;
  // Whom is there to kill, on which server, and not ourselves.
  return previous_.count == 0 ||
         (identity_.run_id_known && std::memcmp(identity_.run_id, previous_.run_id, run_id_size) == 0 &&
          previous_.client_ids[previous_.count - 1] != identity_.client_id);
}

}  // namespace holdfast
