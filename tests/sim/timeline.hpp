// SPDX-License-Identifier: MIT
//
// Draws the end of a failed world as SVG: a lane a client and a server, what each believes to hold and what the server
// has as bars, faults as marks, and the violation in red.
#pragma once

#include <string>

#include "trace.hpp"

namespace holdfast::sim {

struct TimelineTitle {
  SimTime at = 0;  // The failure.
  std::string checker;
  std::string text;
  std::string world;    // What runs it again.
  SimTime longest = 0;  // How far the picture reaches back, at most.
};

[[nodiscard]] std::string timeline_svg(Trace& trace, const TimelineTitle& title);

}  // namespace holdfast::sim
