// SPDX-License-Identifier: MIT
//
// Addresses as URLs:
//
//     redis://[[user][:password]@]host[:port][/database]
//     unix://[[user][:password]@]/path/to/socket[?db=database]
//
// valkey:// is the same as redis://. User, password and path are percent-decoded: in a password '/' is %2F, '?' is %3F
// and '#' is %23. An IPv6 literal stands in brackets. TLS (rediss:) is not supported and is refused, as is everything
// else that is not understood: a typing error never ends at the default server.
#pragma once

#include "holdfast/client_config.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// Fills in address, user, password and database; the rest of `config` stays. `reason`, where it is not nullptr, is set
// to a sentence that says what is wrong; it never contains the password.
// Errors: invalid_argument (config is untouched).   No heap.   Thread-safe.
[[nodiscard]] Status parse_url(BytesArgument url, ClientConfig& config, const char** reason = nullptr) noexcept;

}  // namespace holdfast
