// SPDX-License-Identifier: MIT
//
// What a consumer with TLS writes first. A file that is none must be refused, which the library with OpenSSL says.
#include <holdfast/client.hpp>
#include <holdfast/tls.hpp>

int main() {
  static holdfast::TlsPlaces<1> places;
  static holdfast::Tls tls(places.storage());
  return tls.open({.ca_file = "/nonexistent/ca.pem"}) == holdfast::Status::ok ? 1 : 0;
}
