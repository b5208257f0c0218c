// SPDX-License-Identifier: MIT
//
// A service with a Mutex in a cluster and nothing else: what it carries is measured by ./dev size.
#include <holdfast/client.hpp>
#include <holdfast/cluster.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/url.hpp>

int main() {
  holdfast::Cluster cluster;
  holdfast::ClientConfig config = {.topology = &cluster};
  if (holdfast::parse_url("redis-cluster://10.0.0.1,10.0.0.2/k", config) != holdfast::Status::ok) return 1;
  holdfast::Client client;
  if (client.connect(config) != holdfast::Status::ok) return 1;
  holdfast::Mutex lock(client, "k");
  if (lock.acquire(std::chrono::seconds(1)) != holdfast::Status::ok) return 2;
  if (!lock.held() || lock.renew() != holdfast::Status::ok) return 3;
  return lock.release() == holdfast::Status::ok ? 0 : 4;
}
