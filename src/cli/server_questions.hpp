// SPDX-License-Identifier: MIT
//
// What holdfast doctor asks a server, over the library's own client. It changes nothing and creates nothing: where a right can only
// be tried, that is done by a request that finds no key, or whose arguments the server refuses.
#pragma once

#include <string>

#include "diagnosis.hpp"
#include "holdfast/client.hpp"

namespace holdfast::cli {

// How long all questions but those for the time may take. Some fifty are asked one after the other: enough for round trips of a
// fifth of a second.
inline constexpr Duration questions_time_max = std::chrono::seconds(15);

// The lock that is asked about.
struct Lock {
  Kind kind = Kind::mutex;
  std::string name;  // Or empty.
  bool with_acks = false;
};

// All but the time. After a question without an answer nothing more is asked, and facts.silent is set.
void ask_facts(ClientBase& client, const Lock& lock, ServerFacts& facts);

// For the time, once; as above.
void ask_time(ClientBase& client, ServerFacts& facts);

}  // namespace holdfast::cli
