// SPDX-License-Identifier: MIT
//
// Texts are put together without the heap, and cut where there is no more room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/decimal.hpp"

namespace holdfast {

class TextWriter {
 public:
  explicit TextWriter(MutableBytes space) noexcept
      : begin_(space.data), at_(space.data), end_(space.data + space.size) {}
  TextWriter& add(ByteView text) noexcept {
    const auto room = static_cast<std::size_t>(end_ - at_);
    const std::size_t size = text.size() < room ? text.size() : room;
    if (size != 0) std::memcpy(at_, text.data(), size);
    at_ += size;
    return *this;
  }
  TextWriter& add(std::uint64_t number) noexcept {
    char digits[decimal_size_max];
    return add({digits, static_cast<std::size_t>(write_decimal(digits, number) - digits)});
  }
  TextWriter& add_address(ByteView host, std::uint16_t port) noexcept {
    const bool bracketed = host.find(":") != SIZE_MAX;
    if (bracketed) add("[");
    add(host);
    if (bracketed) add("]");
    return add(":").add(std::uint64_t{port});
  }
  // By its number in a quorum, and where it is: with sentinels or a cluster that is what they look for, and the server that is connected.
  TextWriter& add_node(std::size_t index, const Node& node) noexcept {
    const KeptConfig& config = node.config();
    add("node ").add(index + 1).add(" (");
    if (config.topology != nullptr) add(config.topology->name());
    if (config.topology != nullptr && node.placed()) add(" at ");
    if (node.local())
      add(config.socket_path.view());
    else if (node.placed())
      add_address(config.host.view(), config.port);
    return add(")");
  }
  TextWriter& add_milliseconds(Duration duration) noexcept {
    return add(static_cast<std::uint64_t>(duration.count() / 1'000'000)).add(" ms");
  }
  [[nodiscard]] ByteView view() const noexcept { return {begin_, static_cast<std::size_t>(at_ - begin_)}; }

 private:
  char* begin_;
  char* at_;
  char* end_;
};

}  // namespace holdfast
