// SPDX-License-Identifier: MIT
#include "holdfast/server_error.hpp"

#include <cstdint>

namespace holdfast {

namespace {

struct Prefix {
  const char* text;
  std::uint8_t size;
  Status status;
};

template <std::size_t array_size>
constexpr Prefix prefix(const char (&text)[array_size], Status status) {
  return {text, static_cast<std::uint8_t>(array_size - 1), status};
}

// The first words of error lines. A word ends at a space or at the end of the line.
constexpr Prefix words[] = {
    prefix("OOM", Status::out_of_memory),          prefix("READONLY", Status::read_only),
    prefix("NOREPLICAS", Status::too_few_replicas), prefix("MASTERDOWN", Status::stale_replica),
    prefix("LOADING", Status::loading),            prefix("MISCONF", Status::disk_error),
    prefix("NOAUTH", Status::auth_required),       prefix("WRONGPASS", Status::auth_failed),
    prefix("NOPERM", Status::no_permission),       prefix("BUSY", Status::busy_script),
    prefix("NOSCRIPT", Status::no_script),         prefix("WRONGTYPE", Status::wrong_type),
    prefix("MOVED", Status::moved),                prefix("ASK", Status::ask),
    prefix("CLUSTERDOWN", Status::cluster_down),   prefix("CROSSSLOT", Status::cross_slot),
    prefix("TRYAGAIN", Status::try_again),         prefix("DENIED", Status::denied),
};

// What follows "ERR ".
constexpr Prefix generic[] = {
    prefix("max number of clients", Status::too_many_clients),
    prefix("unknown command", Status::unknown_command),
    prefix("Unknown Redis command", Status::unknown_command),  // Out of a script.
    prefix("Unknown Valkey command", Status::unknown_command),
    prefix("unknown subcommand", Status::unknown_command),
    prefix("The user executing the script can't", Status::no_permission),
    prefix("invalid password", Status::auth_failed),  // Before 6.0.
    prefix("Client sent AUTH, but no password is set", Status::auth_failed),
    prefix("AUTH <password> called without any password", Status::auth_failed),
};

// Texts before 7.0 that scripts wrap without an error class.
constexpr Prefix embedded[] = {
    prefix("The user executing the script can't", Status::no_permission),
    prefix("Unknown Redis command called from", Status::unknown_command),
    prefix("command not allowed when used memory", Status::out_of_memory),
    prefix("You can't write against a read only", Status::read_only),
    prefix("Write commands are not allowed after", Status::server_error),
};

constexpr ByteView view(const Prefix& entry) noexcept { return {entry.text, entry.size}; }

Status first_word(ByteView line) noexcept {
  for (const Prefix& word : words) {
    if (line.begins_with(view(word)) && (line.size() == word.size || line[word.size] == ' ')) return word.status;
  }
  return Status::server_error;
}

// A plain error line: its first word, or what stands behind "ERR ".
Status plain(ByteView line) noexcept {
  const Status status = first_word(line);
  if (status != Status::server_error || !line.begins_with("ERR ")) return status;
  const ByteView rest = line.slice(4);
  for (const Prefix& entry : generic)
    if (rest.begins_with(view(entry))) return entry.status;
  return Status::server_error;
}

// "...: @user_script:6: @user_script: 6: -OOM command not allowed ..." or the same without a class.
Status wrapped(ByteView line) noexcept {
  for (std::size_t at = 0; at + 1 < line.size(); ++at) {
    if (line[at] != '-' || at == 0 || line[at - 1] != ' ') continue;
    const Status status = plain(line.slice(at + 1));
    if (status != Status::server_error) return status;
  }
  for (const Prefix& entry : embedded)
    if (line.find(view(entry)) != SIZE_MAX) return entry.status;
  for (std::size_t at = 0; at < line.size(); ++at) {  // "@user_script: 6: WRONGTYPE Operation ..."
    if (line[at] != ' ') continue;
    const Status status = first_word(line.slice(at + 1));
    if (status != Status::server_error) return status;
  }
  return Status::server_error;
}

}  // namespace

ServerError classify_error(ByteView line) noexcept {
  if (line.begins_with("ERR Error running script") || line.begins_with("ERR Error compiling script"))
    return {wrapped(line), false};
  const Status status = plain(line);
  const bool in_script = line.find(" script: ") != SIZE_MAX || line.find("@user_script") != SIZE_MAX ||
                         line.begins_with("ERR The user executing the script can't") ||
                         line.find("called from script") != SIZE_MAX || line.find("called from Lua") != SIZE_MAX;
  return {status, status != Status::server_error && !in_script};
}

}  // namespace holdfast
