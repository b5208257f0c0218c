// SPDX-License-Identifier: MIT
#include "release_command.hpp"

#include <string>

#include "connection.hpp"
#include "failure_text.hpp"
#include "holdfast/inspection.hpp"
#include "messages.hpp"

namespace holdfast::cli {

int release(const ReleaseOptions& options) {
  const std::string name = escaped(options.name);
  Client client;
  if (const int code = connect(client, options.server); code != exit_ok) return code;
  bool released = false;
  const Status status = force_release(client, Key(ByteView(options.name)), released);
  if (status == Status::wrong_type) {
    say("did not release " + name + ": it is no lock that can be released (" + escaped(client.error_text()) + ")");
    return exit_no_lock;
  }
  if (status != Status::ok) {
    say("the release of " + name + " was not confirmed: " + failure_text(status, client));
    return exit_code_of(status, exit_software);
  }
  if (!released) {
    say(name + " was free: there was nothing to release");
    return exit_free;
  }
  say("released " + name + "; its holder was not asked");
  return exit_ok;
}

}  // namespace holdfast::cli
