// SPDX-License-Identifier: MIT
#include "info_command.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "connection.hpp"
#include "failure_text.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/decimal.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

void add_line(std::string& text, const char* name, const std::string& value) {
  text += name;
  text += ": ";
  text += value;
  text += '\n';
}

int exit_code_for(const LockInfo& found) noexcept {
  switch (found.form) {
    case LockForm::free: return exit_free;
    case LockForm::other: return exit_no_lock;
    case LockForm::semaphore: return found.owners < found.permits ? exit_free : exit_ok;
    case LockForm::mutex:
    case LockForm::reentrant:
    case LockForm::read:
    case LockForm::write: return exit_ok;
  }
  return exit_software;
}

const char* state_text(const LockInfo& found) noexcept {
  const int code = exit_code_for(found);
  return code == exit_ok ? "held" : code == exit_free ? "free" : "no lock";
}

bool is_held(const LockInfo& found) noexcept { return exit_code_for(found) == exit_ok; }

std::string remaining_text(const LockInfo& found) {
  return found.remaining == Duration::max() ? "no expiry" : seconds_text(found.remaining) + " seconds";
}

// A number without an end: somebody's lock, or that of the permits where nobody has one.
bool looks_like_idle_semaphore(const LockInfo& found) {
  std::uint64_t permits = 0;
  return found.form == LockForm::mutex && found.remaining == Duration::max() &&
         read_decimal(found.owner.view(), permits_max, permits) && permits != 0;
}

// Its owner field has a negative ordinal.
bool may_linger(const LockInfo& found) noexcept {
  return found.form == LockForm::reentrant && found.owner.view().string_view().find(":-") != std::string_view::npos;
}

// What one server says of it.
void add_answer(std::string& text, const LockInfo& found) {
  add_line(text, "state", state_text(found));
  if (found.form == LockForm::semaphore) {
    add_line(text, "kind", to_string(found.form));
    add_line(text, "permits", std::to_string(found.permits));
    add_line(text, "taken", std::to_string(found.owners));
    if (found.owners != 0) add_line(text, "owner", escaped(found.owner.view()));
    if (found.owners != 0) add_line(text, "remaining", remaining_text(found));
  } else if (is_held(found)) {
    add_line(text, "kind", to_string(found.form));
    if (!found.owner.empty()) add_line(text, "owner", escaped(found.owner.view()));
    add_line(text, "count", std::to_string(found.count));
    if (found.owners != 1) add_line(text, "owners", std::to_string(found.owners));
    add_line(text, "remaining", remaining_text(found));
    if (looks_like_idle_semaphore(found))
      add_line(text, "note", "or it is a semaphore, and all " + escaped(found.owner.view()) + " permits are free");
    if (may_linger(found)) add_line(text, "note", "it may stay where nobody uses it; a waiter recalls it");
  }
  if (found.fence != 0) add_line(text, "fence", std::to_string(found.fence));
}

// Who waits for it, where that can be told.
void add_queue(std::string& text, const LockQueue& queue) {
  if (queue.waiting == 0) return;
  add_line(text, "waiting", std::to_string(queue.waiting));
  for (const LockQueue::Waiter* waiter = queue.waiters; waiter != queue.waiters + queue.told; ++waiter)
    add_line(text, "waiter",
             escaped(waiter->token.view()) + " for " + seconds_text(waiter->waited) + " seconds, " +
                 (waiter->heard == Duration::max() ? "not heard of for 3 seconds"
                                                   : "heard of " + seconds_text(waiter->heard) + " seconds ago"));
}

// Connects and asks. Returns exit_ok; or says why there is no answer, and returns what to end with.
int ask(const ClientConfig& server, const std::string& name, LockInfo& found, LockQueue* queue = nullptr) {
  Client client;
  if (const int code = connect(client, server); code != exit_ok) return code;
  const Status status = inspect(client, Key(ByteView(name)), found);
  if (status == Status::ok) {
    // Not every user may ask that, and not every name can have a queue.
    if (queue != nullptr) (void)inspect_queue(client, Key(ByteView(name)), *queue);
    return exit_ok;
  }
  say("cannot say who holds " + escaped(name) + ": " + failure_text(status, client));
  return exit_code_of(status, client, exit_software);
}

// How many nodes say what this one says: the same owner, or the same lack of one.
std::size_t agreeing(const std::vector<LockInfo>& answers, const LockInfo& wanted) {
  return static_cast<std::size_t>(std::count_if(answers.begin(), answers.end(), [&](const LockInfo& it) {
    if (is_held(it) != is_held(wanted)) return false;
    return is_held(it) ? it.owner.view() == wanted.owner.view() : it.form == wanted.form;
  }));
}

int info_of_quorum(const InfoOptions& options) {
  const std::size_t count = options.servers.size();
  const std::size_t majority = majority_of(count);
  std::string text;
  std::vector<LockInfo> answers;
  int failure = exit_no_server;
  add_line(text, "name", escaped(options.name));
  for (std::size_t index = 0; index < count; ++index) {
    LockInfo found;
    const int code = ask(options.servers[index], options.name, found);
    add_line(text, "\nnode", address_text(options.servers[index]));
    if (code == exit_ok) {
      add_answer(text, found);
      answers.push_back(found);
    } else {
      add_line(text, "state", "unknown");
      failure = code;
    }
  }

  // What a majority says is so; and where no owner can have one, whatever the silent nodes would say, nobody has the lock.
  std::string state = "unknown";
  int code = failure;
  std::size_t most = 0;
  for (const LockInfo& answer : answers) {
    const std::size_t votes = agreeing(answers, answer);
    if (is_held(answer)) most = std::max(most, votes);
    if (votes < majority) continue;
    state = state_text(answer);
    if (is_held(answer)) state += " by " + escaped(answer.owner.view());
    code = exit_code_for(answer);
  }
  if (state == "unknown" && most + (count - answers.size()) < majority) {
    state = "free";
    code = exit_free;
  }
  add_line(text, "\nmajority", state);
  return print(text) ? code : exit_output;
}

}  // namespace

int info(const InfoOptions& options) {
  if (options.servers.size() > 1) return info_of_quorum(options);
  LockInfo found;
  LockQueue queue;
  if (const int code = ask(options.servers.front(), options.name, found, &queue); code != exit_ok) return code;
  std::string text;
  add_line(text, "name", escaped(options.name));
  add_answer(text, found);
  add_queue(text, queue);
  return print(text) ? exit_code_for(found) : exit_output;
}

}  // namespace holdfast::cli
