// SPDX-License-Identifier: MIT
//
// holdfast renew, and holdfast release without --force: a hold that another process acquired, by its token.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Return the exit code of this process: exit_ok; exit_lost where there is no such hold any more; exit_unknown where the reply was
// lost.
[[nodiscard]] int renew(const RenewOptions& options);
[[nodiscard]] int release_by_token(const TokenReleaseOptions& options);

}  // namespace holdfast::cli
