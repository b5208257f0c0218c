// SPDX-License-Identifier: MIT
//
// What an error reply of the server means.
#pragma once

#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

struct ServerError {
  Status status;
  // True if the class proves that the command had no effect. An error out of the middle of a script does not: the
  // commands before it have run. Nor does a text that we do not know.
  bool nothing_ran;
};

// Classifies an error line without its '-' and CR LF. Any bytes; what is not known is server_error. Both shapes of
// script errors are known: the plain one with a trailing " script: <sha>, on ..." (from 7.0), and the wrapped
// "ERR Error running script (call to f_<sha>): ..." (to 6.2).
// Source: redis.io and observation of 7.0.15; proto/resp2.md lists the lines.
[[nodiscard]] ServerError classify_error(ByteView line) noexcept;

}  // namespace holdfast
