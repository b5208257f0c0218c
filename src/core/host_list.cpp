// SPDX-License-Identifier: MIT
#include "holdfast/core/host_list.hpp"

#include "holdfast/limits.hpp"
#include "holdfast/proto/decimal.hpp"
#include "place_number.hpp"

namespace holdfast {

namespace {

// What is before the first `separator`; `rest` is what follows it, or has no data() where there is none.
ByteView take_until(char separator, ByteView& rest) noexcept {
  const ByteView whole = rest;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (whole[at] != separator) continue;
    rest = {whole.data() + at + 1, whole.size() - at - 1};
    return {whole.data(), at};
  }
  rest = {};
  return whole;
}

}  // namespace

bool read_port(ByteView text, std::uint16_t& port) noexcept {
  std::uint64_t number = 0;
  if (!read_decimal(text, UINT16_MAX, number) || number == 0) return false;
  port = static_cast<std::uint16_t>(number);
  return true;
}

bool is_host(ByteView text) noexcept {
  if (text.empty() || text.size() > listed_host_size_max) return false;
  for (const char byte : text) {
    const int letter = (byte | 0x20) - 'a';
    const bool plain = (letter >= 0 && letter < 26) || (byte >= '0' && byte <= '9');
    if (!plain && byte != '.' && byte != '-' && byte != '_' && byte != ':' && byte != '%') return false;
  }
  return true;
}

bool read_named_host(ByteView text, ByteView& host, std::uint16_t& port) noexcept {
  std::size_t colon = text.size();
  while (colon != 0 && text[colon - 1] != ':') --colon;
  std::uint16_t number = 0;
  if (colon == 0 || !read_port(text.slice(colon), number)) return false;
  const ByteView name = text.slice(0, colon - 1);
  if (!name.empty() && !is_host(name)) return false;
  host = name;
  port = number;
  return true;
}

std::size_t HostList::count() const noexcept {
  std::size_t commas = 0;
  for (const char byte : text) commas += byte == ',' ? 1 : 0;
  return text.empty() ? 0 : commas + 1;
}

bool HostList::at(std::size_t index, ByteView& host, std::uint16_t& port) const noexcept {
  ByteView others = text;
  ByteView rest = take_until(',', others);
  for (; index != 0; --index) {
    if (others.data() == nullptr) return false;
    rest = take_until(',', others);
  }
  const bool bracketed = !rest.empty() && rest[0] == '[';
  if (bracketed) rest = {rest.data() + 1, rest.size() - 1};
  const ByteView name = take_until(bracketed ? ']' : ':', rest);
  // Of a bracket that nothing closes there is no rest.
  if (bracketed && (rest.data() == nullptr || !take_until(':', rest).empty())) return false;
  std::uint16_t number = port_default;
  if (rest.data() != nullptr && !read_port(rest, number)) return false;
  ByteView colons = name;
  (void)take_until(':', colons);
  if (!is_host(name) || (colons.data() != nullptr) != bracketed) return false;
  host = name;
  port = number;
  return true;
}

std::uint64_t HostList::sum() const noexcept {
  std::uint64_t sum = 0;
  ByteView host;
  std::uint16_t port = 0;
  for (std::size_t index = 0; at(index, host, port); ++index) sum += PlaceNumber().add(host, port).get();
  return sum;
}

const char* HostList::problem() const noexcept {
  const std::size_t hosts = count();
  static_assert(cluster_hosts_max == sentinels_max, "the text names both");
  if (hosts == 0 || hosts > sentinels_max) return "it must name 1 to 9 hosts";
  for (std::size_t index = 0; index < hosts; ++index) {
    ByteView host;
    std::uint16_t port = 0;
    if (!at(index, host, port)) return "it must be host[:port], and others after commas";
  }
  return nullptr;
}

}  // namespace holdfast
