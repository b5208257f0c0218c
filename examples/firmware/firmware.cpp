// SPDX-License-Identifier: MIT
//
// A program on a microcontroller with four locks on a Redis server: holdfast's core, lwIP and a driver, without an operating
// system and without a heap. It does what is typed on its serial line, a command a line:
//
//     take NAME [SECONDS]    acquires a lock; waits for it so long at most
//     release NAME
//     report                 how much of the stack was used
//     stop                   the end, with exit code 0
//
// NAME is mutex, second, fenced or shared. The last two are known to waiters by push: "take shared 30" sleeps until the holder
// lets go of it. What is held is renewed by itself, and what becomes of it is told.
//
// It is started with words from the debugger: PORT KEY [LEASE-IN-MILLISECONDS]. The keys on the server are KEY/mutex and so on.
#include <cstring>

#include "board.hpp"
#include "holdfast/core/client_config.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "lock_service.hpp"
#include "network.hpp"
#include "push.hpp"
#include "site.hpp"
#include "storage.hpp"
#include "words.hpp"

using namespace board;
using namespace holdfast;

namespace {

enum ExitCode { all_well = 0, usage = 64, no_board = 71 };

// ---- Memory ------------------------------------------------------------------------------------------------------
// All of it is here, for ever.

Network network;

LockMachine mutex(mutex_kind), second(mutex_kind), fenced(fenced_kind), shared(reentrant_kind);
LockMachine* const machines[] = {&mutex, &second, &fenced, &shared};
constexpr const char* names[] = {"mutex", "second", "fenced", "shared"};
constexpr std::size_t machine_count = sizeof machines / sizeof machines[0];

FirmwareNodeBuffers node_buffers;
FirmwareSubscriberBuffers subscriber_buffers;

void hear(const LockMachine& machine, LockEvent event);
void hear_connection(bool up, Status why, ByteView text);

extern Push push;
LockService service({node_buffers.storage(), machines, machine_count}, network, {hear, hear_connection}, &push);
Push push(service, subscriber_buffers.storage());

static_assert(sizeof node_buffers + sizeof service + sizeof mutex * machine_count <= 6 * 1024,
              "promised: one connection and four locks");

// ---- What is told ------------------------------------------------------------------------------------------------

const char* name_of(const LockMachine& machine) {
  for (std::size_t at = 0; at < machine_count; ++at)
    if (machines[at] == &machine) return names[at];
  return "?";
}

void say(const char* subject, const char* what, const char* detail = "") {
  print(subject);
  print(": ");
  print(what);
  print(detail);
  print("\n");
}

void hear(const LockMachine& machine, LockEvent event) {
  const char* const name = name_of(machine);
  switch (event) {
    case LockEvent::renewed: return say(name, "renewed");
    case LockEvent::at_risk: return say(name, "at risk: ", to_string(machine.status()));
    case LockEvent::lost: return say(name, "lost");
    case LockEvent::unclear: return say(name, "unclear, and taken back: ", to_string(machine.status()));
    case LockEvent::none:
    case LockEvent::granted:  // These are told as the outcome of the call.
    case LockEvent::denied:
    case LockEvent::released:
    case LockEvent::protocol_doubt: return;
  }
}

void hear_connection(bool up, Status why, ByteView text) {
  if (up) return say("connection", "up");
  print("connection: lost: ");
  print(to_string(why));
  print(" ");
  print(text.data(), text.size());
  print("\n");
}

void tell_outcome(const LockMachine& machine, Call call) {
  const Status status = service.status();
  const bool granted = call == Call::acquire && status == Status::ok;
  print(name_of(machine));
  print(granted ? ": granted" : call == Call::acquire ? ": not granted: " : ": released: ");
  if (!granted) print(to_string(status));
  if (granted && machine.kind().fenced) {
    print(", fence ");
    print_number(machine.fence());
  }
  print("\n");
}

void report() {
  print("report: stack ");
  print_number(stack_used());
  print(" of ");
  print_number(stack_size());
  print(", node and locks ");
  print_number(sizeof node_buffers + sizeof service + sizeof mutex * machine_count);
  print(", push ");
  print_number(sizeof subscriber_buffers + sizeof push);
  print(", milliseconds ");
  print_number(milliseconds());
  print(", ticks ");
  print_number(ticks());
  print("\n");
}

// ---- Commands ----------------------------------------------------------------------------------------------------

LockMachine* find(const char* name) {
  for (std::size_t at = 0; at < machine_count; ++at)
    if (std::strcmp(names[at], name) == 0) return machines[at];
  return nullptr;
}

constexpr std::uint32_t wait_seconds_max = 3600;

Call call_in_progress = Call::none;
LockMachine* called = nullptr;

void begin_call(Call call, char* words) {
  LockMachine* const machine = find(take_word(words));
  std::uint32_t wait = 0;
  const char* const seconds = take_word(words);
  if (machine == nullptr || (*seconds != '\0' && !read_number(seconds, wait_seconds_max, wait)))
    return say("console", "take or release one of mutex, second, fenced, shared; seconds are a number up to 3600");
  called = machine;
  call_in_progress = call;
  if (call == Call::acquire)
    service.acquire(*machine, std::chrono::seconds(wait));
  else
    service.release(*machine);
}

void obey(char* line) {
  const char* const command = take_word(line);
  if (std::strcmp(command, "take") == 0) return begin_call(Call::acquire, line);
  if (std::strcmp(command, "release") == 0) return begin_call(Call::release, line);
  if (std::strcmp(command, "report") == 0) return report();
  if (std::strcmp(command, "stop") == 0) stop(all_well);
  if (*command != '\0') say("console", "no such command: ", command);
}

// One call at a time: what is typed meanwhile waits in the line.
void read_console() {
  static char line[80];
  static std::size_t size = 0;
  static bool too_long = false;
  if (!service.over()) return;
  if (call_in_progress != Call::none) tell_outcome(*called, call_in_progress);
  call_in_progress = Call::none;
  for (int byte = typed(); byte >= 0; byte = typed()) {
    if (byte != '\n' && byte != '\r') {
      too_long = too_long || size == sizeof line - 1;
      if (!too_long) line[size++] = static_cast<char>(byte);
      continue;
    }
    line[size] = '\0';
    size = 0;
    if (too_long)
      say("console", "that line is too long");
    else
      obey(line);
    too_long = false;
    return;
  }
}

// ---- Start -------------------------------------------------------------------------------------------------------

bool configure(char* words) {
  std::uint32_t port = 0;
  if (!read_number(take_word(words), UINT16_MAX, port) || port == 0) return false;
  const ByteView prefix(std::string_view(take_word(words)));
  std::uint32_t lease = 3000;
  const char* const length = take_word(words);
  if (*length != '\0' && !read_number(length, lease_max / 1ms, lease)) return false;
  const LockTiming timing = {.lease = std::chrono::milliseconds(lease),
                             .drift = drift_of(std::chrono::milliseconds(lease)) + clock_step};
  for (std::size_t at = 0; at < machine_count; ++at) {
    char key[program_key_size_max];
    const std::size_t name_size = std::strlen(names[at]);
    if (prefix.empty() || prefix.size() + 1 + name_size > sizeof key) return false;
    std::memcpy(key, prefix.data(), prefix.size());
    key[prefix.size()] = '/';
    std::memcpy(key + prefix.size() + 1, names[at], name_size);
    if (machines[at]->configure(Key({key, prefix.size() + 1 + name_size}), timing) != Status::ok) return false;
  }
  service.connect(server_at(static_cast<std::uint16_t>(port)), server_config());
  return true;
}

}  // namespace

int main() {
  if (const char* const missing = start(network); missing != nullptr) {
    say("start", missing);
    return no_board;
  }
  char words[128];
  if (!read_command_line(words, sizeof words) || !configure(words)) {
    say("start", "usage: PORT KEY [LEASE-IN-MILLISECONDS]; a key has up to 41 bytes");
    return usage;
  }
  say("start", "ready");
  for (bool cable = network.up();;) {
    if (!network.poll()) sleep();
    if (network.up() != cable) {
      cable = network.up();
      say("cable", cable ? "in" : "out");
      if (cable) service.hurry();
    }
    service.turn();
    read_console();
  }
}
