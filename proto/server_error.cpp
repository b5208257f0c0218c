// SPDX-License-Identifier: MIT
#include "holdfast/proto/server_error.hpp"

#include <cstdint>

namespace holdfast {

namespace {

// Texts and what they mean. Packed, a Status and a size before each text: a table of pointers would cost more than the
// texts.
template <std::size_t array_size>
struct Entry {
  const char (&text)[array_size];
  Status status;
};
template <std::size_t array_size>
Entry(const char (&)[array_size], Status) -> Entry<array_size>;

template <std::size_t size>
struct List {
  char bytes[size];
};
template <std::size_t... sizes>
consteval auto list(const Entry<sizes>&... entries) {
  List<(sizes + ...) + sizeof...(sizes) + 1> packed{};  // Status::ok ends it.
  char* out = packed.bytes;
  const auto add = [&out](const auto& entry) {
    const ByteView text = entry.text;
    *out++ = static_cast<char>(entry.status);
    *out++ = static_cast<char>(text.size());
    for (const char byte : text) *out++ = byte;
  };
  (add(entries), ...);
  return packed;
}

// The first words of error lines. A word ends at a space or at the end of the line.
constexpr auto words = list(
    Entry{"OOM", Status::out_of_memory}, Entry{"READONLY", Status::read_only},
    Entry{"NOREPLICAS", Status::too_few_replicas}, Entry{"MASTERDOWN", Status::stale_replica},
    Entry{"LOADING", Status::loading}, Entry{"MISCONF", Status::disk_error}, Entry{"NOAUTH", Status::auth_required},
    Entry{"WRONGPASS", Status::auth_failed}, Entry{"NOPERM", Status::no_permission}, Entry{"BUSY", Status::busy_script},
    Entry{"NOSCRIPT", Status::no_script}, Entry{"WRONGTYPE", Status::wrong_type}, Entry{"MOVED", Status::moved},
    Entry{"ASK", Status::ask}, Entry{"CLUSTERDOWN", Status::cluster_down}, Entry{"CROSSSLOT", Status::cross_slot},
    Entry{"TRYAGAIN", Status::try_again}, Entry{"DENIED", Status::denied});

// What follows "ERR ".
constexpr auto generic = list(
    Entry{"max number", Status::too_many_clients}, Entry{"unknown command", Status::unknown_command},
    Entry{"Unknown Redis command", Status::unknown_command},  // Out of a script.
    Entry{"Unknown Valkey command", Status::unknown_command}, Entry{"unknown subcommand", Status::unknown_command},
    Entry{"The user executing", Status::no_permission}, Entry{"ACL failure", Status::no_permission},  // Valkey's words.
    Entry{"Script attempted to access a", Status::try_again},  // "... non local key": its slot is on the move.
    Entry{"Attempted to access a", Status::try_again},         // Valkey's words.
    Entry{"invalid password", Status::auth_failed},            // Before 6.0.
    Entry{"Client sent AUTH", Status::auth_failed}, Entry{"AUTH <password>", Status::auth_failed});

// How lines begin that wrap the error of a script, before 7.0.
constexpr auto wrappers = list(Entry{"ERR Error ", Status::server_error});  // "running script", "compiling script"

// Texts that are wrapped without an error class.
constexpr auto embedded =
    list(Entry{"The user executing", Status::no_permission}, Entry{"Unknown Redis command", Status::unknown_command},
         Entry{"command not allowed when used", Status::out_of_memory},
         Entry{"You can't write against a read", Status::read_only},
         Entry{"Script attempted to access a", Status::try_again},
         Entry{"Write commands are not allowed", Status::server_error});

// Anywhere in a line: it came out of a script, or quotes one that did.
constexpr auto script_marks =
    list(Entry{" script: ", Status::server_error}, Entry{"@user_script", Status::server_error},
         Entry{"ERR The user executing", Status::server_error}, Entry{"ERR ACL failure", Status::server_error},
         Entry{"called from script", Status::server_error}, Entry{"called from Lua", Status::server_error});

// What the line begins with, out of a list; ok: nothing of it.
Status begins_with(ByteView line, const char* entry, bool whole_word = false) noexcept {
  while (*entry != static_cast<char>(Status::ok)) {
    const auto status = static_cast<Status>(*entry);
    const ByteView text = {entry + 2, static_cast<unsigned char>(entry[1])};
    if (line.begins_with(text) && (!whole_word || line.size() == text.size() || line[text.size()] == ' '))
      return status;
    entry = text.end();
  }
  return Status::ok;
}

Status first_word(ByteView line) noexcept { return begins_with(line, words.bytes, true); }
Status embedded_text(ByteView line) noexcept { return begins_with(line, embedded.bytes); }
Status script_mark(ByteView line) noexcept { return begins_with(line, script_marks.bytes); }

// A plain error line: its first word, or what stands behind "ERR "; ok: neither is known.
Status plain(ByteView line) noexcept {
  const Status status = first_word(line);
  return status == Status::ok && line.begins_with("ERR ") ? begins_with(line.slice(4), generic.bytes) : status;
}

// The first that `classify` knows of what stands behind a mark.
Status behind(ByteView mark, ByteView line, Status (*classify)(ByteView) noexcept) noexcept {
  for (; !line.empty(); line = line.slice(1))
    if (line.begins_with(mark))
      if (const Status status = classify(line.slice(mark.size())); status != Status::ok) return status;
  return Status::ok;
}

// "...: @user_script:6: @user_script: 6: -OOM command not allowed ..." or the same without a class.
Status wrapped(ByteView line) noexcept {
  Status status = behind(" -", line, plain);
  if (status == Status::ok) status = behind("", line, embedded_text);
  if (status == Status::ok) status = behind(" ", line, first_word);  // "@user_script: 6: WRONGTYPE Operation ..."
  return status;
}

}  // namespace

ServerError classify_error(ByteView line) noexcept {
  const bool is_wrapped = begins_with(line, wrappers.bytes) != Status::ok;
  const Status status = is_wrapped ? wrapped(line) : plain(line);
  if (status == Status::ok) return {Status::server_error, false};
  return {status, !is_wrapped && behind("", line, script_mark) == Status::ok};
}

}  // namespace holdfast
