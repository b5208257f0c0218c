// SPDX-License-Identifier: MIT
//
// What connects by sentinels or by a cluster in a live test: who is asked, and the configuration.
#pragma once

#include <string>

#include "clients.hpp"

template <class Topology>
struct GuidedBy {
  explicit GuidedBy(const std::string& url, holdfast::StreamSecurity* tls = nullptr) {
    config.topology = &topology;
    config.tls = tls;
    const char* reason = nullptr;
    const Status status = holdfast::parse_url(ByteView(url), config, &reason);
    TEST_MESSAGE((reason == nullptr ? "" : reason));
    TEST_ASSERT_EQUAL(Status::ok, status);
    config.request_timeout = 5s;
    config.connect_timeout = 5s;
  }
  Topology topology;
  ClientConfig config;
};

inline std::string text_of(Client& client) { return std::string(client.error_text().string_view()); }
