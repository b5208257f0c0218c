// SPDX-License-Identifier: MIT
//
// The connection that every subcommand begins with.
#pragma once

#include "holdfast/client.hpp"

namespace holdfast::cli {

// Returns exit_ok; or says why there is no connection, and returns what to end with.
[[nodiscard]] int connect(Client& client, const ClientConfig& server);

}  // namespace holdfast::cli
