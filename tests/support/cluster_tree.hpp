// SPDX-License-Identifier: MIT
//
// A client of a cluster that serves names of any slot. The blocking one has branches for that.
#pragma once

#include <string>

#include "clients.hpp"
#include "holdfast/cluster.hpp"
#ifndef HOLDFAST_TEST_ASIO
#include "holdfast/detail/branches.hpp"
#endif

// Connected by these hosts.
struct Tree {
  Tree(const std::string& hosts, const std::string& name, Duration request_timeout = 5s)
      : cluster({.hosts = ByteView(hosts), .name = ByteView(name)}) {
    config.topology = &cluster;
    config.request_timeout = request_timeout;
    config.connect_timeout = 5s;
    config.client_name = "tree";
    connect();
  }
  void connect() { TEST_ASSERT_EQUAL(Status::ok, client.connect(config)); }

  holdfast::Cluster cluster;
  ClientConfig config;
  Client client;
#ifndef HOLDFAST_TEST_ASIO
  holdfast::BranchesOf<4> branches{client};
#endif
};
