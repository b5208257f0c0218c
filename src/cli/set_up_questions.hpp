// SPDX-License-Identifier: MIT
//
// What holdfast doctor asks sentinels and the nodes of a cluster, each by itself. It changes nothing.
#pragma once

#include "diagnosis.hpp"
#include "holdfast/client.hpp"
#include "holdfast/core/client_config.hpp"

namespace holdfast::cli {

// How long the questions to one host may take, after it was connected.
inline constexpr Duration host_time_max = std::chrono::seconds(3);

// How the server of this configuration is found; hosts are named, and nothing is asked.
[[nodiscard]] SetUpFacts set_up_of(const ClientConfig& config);
// Asks all hosts at once.
void ask_hosts(const ClientConfig& config, SetUpFacts& set_up);
// Asks the server that was found what it knows of its cluster. REQUIRES: it is one of a cluster.
void ask_server_of_slot(ClientBase& client, SetUpFacts& set_up, bool& silent);

}  // namespace holdfast::cli
