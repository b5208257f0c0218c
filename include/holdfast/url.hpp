// SPDX-License-Identifier: MIT
//
// Addresses as URLs:
//
//     redis://[[user][:password]@]host[:port][/database]
//     rediss://...                                          the same over TLS
//     unix://[[user][:password]@]/path/to/socket[?db=database]
//     redis-sentinel://[[user][:password]@]host[:port],host[:port],.../service[/database][?sentinel_user=u&sentinel_password=p]
//     rediss-sentinel://...                                 the same over TLS, the sentinels included
//     redis-cluster://[[user][:password]@]host[:port],host[:port],.../name
//     rediss-cluster://...                                  the same over TLS
//
// valkey:// and valkeys:// are the same as redis:// and rediss://. User, password and path are percent-decoded: in a password
// '/' is %2F, '?' is %3F and '#' is %23. An IPv6 literal stands in brackets. What is not understood is refused: a typing
// error never ends at the default server.
// The user and the password before the '@' are the master's; the sentinels may have others.
//
// redis-sentinel:// needs `sentinels` in the configuration, and fills them in; with those no other form is taken. It is the same with
// redis-cluster:// and `cluster`; a name that the Cluster has already may be missing in the URL.
// rediss:// needs `tls` in the configuration, and with that no other form is taken: so nothing is sent in the clear by
// mistake, in either direction.
#pragma once

#include "holdfast/core/client_config.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// Fills in address, user, password and database; the rest of `config` stays. `reason`, where it is not nullptr, is set
// to a sentence that says what is wrong; it never contains the password.
// REQUIRES: no client has the Sentinels or the Cluster of `config`, or the URL says what they say already.
// Errors: invalid_argument (config, its Sentinels and its Cluster are untouched).   No heap.   Thread-safe.
[[nodiscard]] Status parse_url(BytesArgument url, ClientConfig& config, const char** reason = nullptr) noexcept;

}  // namespace holdfast
