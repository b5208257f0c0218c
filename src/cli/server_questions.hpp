// SPDX-License-Identifier: MIT
//
// What holdfast doctor asks a server, over the library's own client. It changes nothing: where a right can only be tried, that
// is done on a key of its own that is not there, or that ends by itself within a second.
#pragma once

#include <string>

#include "diagnosis.hpp"
#include "holdfast/client.hpp"

namespace holdfast::cli {

// All but the time. `name` is the lock's, or empty.
void ask_facts(Client& client, const std::string& name, ServerFacts& facts);

// One pair. False: the server did not answer, or not so.
[[nodiscard]] bool ask_time(Client& client, TimePair& pair);

}  // namespace holdfast::cli
