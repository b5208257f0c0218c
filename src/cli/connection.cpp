// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include "exit_codes.hpp"
#include "failure_text.hpp"
#include "messages.hpp"

namespace holdfast::cli {

int connect(Client& client, const ClientConfig& server) {
  const Status status = client.connect(server);
  if (status == Status::ok) return exit_ok;
  say("no connection to " + address_text(server) + ": " + failure_text(status, client));
  return exit_code_of(status, client, exit_no_server);
}

}  // namespace holdfast::cli
