// SPDX-License-Identifier: MIT
//
// What follows for locks from how their server is found: the health of sentinels and of a cluster. Does no I/O.
#pragma once

#include "diagnosis.hpp"
#include "findings.hpp"
#include "holdfast/core/instant.hpp"

namespace holdfast::cli {

// `lease`: of a watchdog, whose holds may live through a fail-over.
void judge_set_up(Findings& findings, const ServerFacts& server, Duration lease);

}  // namespace holdfast::cli
