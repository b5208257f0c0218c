// SPDX-License-Identifier: MIT
//
// A package's test has no server: a client is made, and says that nobody listens at the address.
#include <holdfast/holdfast.hpp>

int main() {
  holdfast::Client client;
  return client.connect("unix:///nowhere/to/be/found") == holdfast::Status::connect_failed ? 0 : 1;
}
