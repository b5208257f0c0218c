// SPDX-License-Identifier: MIT
//
// Draws what happened in a world as SVG: a lane a client and one for the server, holds as bars, faults as marks.
#pragma once

#include <string>

#include "trace.hpp"

namespace holdfast::sim {

// From `from` to `until` of it.
[[nodiscard]] std::string timeline_svg(Trace& trace, SimTime from, SimTime until, const std::string& title);

}  // namespace holdfast::sim
