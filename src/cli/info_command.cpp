// SPDX-License-Identifier: MIT
#include "info_command.hpp"

#include <string>

#include "connection.hpp"
#include "failure_text.hpp"
#include "holdfast/inspection.hpp"
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

// Who has it. REQUIRES: it is held.
void add_hold(std::string& text, const LockInfo& hold) {
  add_line(text, "kind", to_string(hold.form));
  if (!hold.owner.empty()) add_line(text, "owner", escaped(hold.owner.view()));
  add_line(text, "count", std::to_string(hold.count));
  if (hold.owners != 1) add_line(text, "owners", std::to_string(hold.owners));
  const bool expires = hold.remaining != Duration::max();
  add_line(text, "remaining", expires ? seconds_text(hold.remaining) + " seconds" : "no expiry");
}

const char* state_text(LockForm form) noexcept {
  switch (form) {
    case LockForm::free: return "free";
    case LockForm::other: return "no lock";
    case LockForm::mutex:
    case LockForm::reentrant:
    case LockForm::read_write: return "held";
  }
  return "invalid";
}

int exit_code_for(LockForm form) noexcept {
  switch (form) {
    case LockForm::free: return exit_free;
    case LockForm::other: return exit_no_lock;
    case LockForm::mutex:
    case LockForm::reentrant:
    case LockForm::read_write: return exit_ok;
  }
  return exit_software;
}

}  // namespace

int info(const InfoOptions& options) {
  Client client;
  if (const int code = connect(client, options.server); code != exit_ok) return code;
  LockInfo found;
  if (const Status status = inspect(client, Key(ByteView(options.name)), found); status != Status::ok) {
    say("cannot say who holds " + escaped(options.name) + ": " + failure_text(status, client));
    return exit_code_of(status, exit_software);
  }
  const int code = exit_code_for(found.form);
  std::string text;
  add_line(text, "name", escaped(options.name));
  add_line(text, "state", state_text(found.form));
  if (code == exit_ok) add_hold(text, found);
  if (found.fence != 0) add_line(text, "fence", std::to_string(found.fence));
  return print(text) ? code : exit_output;
}

}  // namespace holdfast::cli
