// SPDX-License-Identifier: MIT
//
// RespValue is one RESP2 reply or element of a reply: a small value that views bytes it does not own. It is valid as
// long as its source says (RespParser: until the next call that feeds or polls).
#pragma once

#include <cstdint>
#include <type_traits>

#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

enum class RespKind : std::uint8_t { null, simple, error, integer, bulk, array };

class RespValue {
 public:
  constexpr RespValue() noexcept = default;  // null
  static constexpr RespValue make_text(RespKind kind, ByteView text) noexcept {
    RespValue value;
    value.kind_ = kind;
    value.size_ = static_cast<std::uint32_t>(text.size());
    value.text_ = text.data();
    return value;
  }
  static constexpr RespValue make_integer(std::int64_t integer) noexcept {
    RespValue value;
    value.kind_ = RespKind::integer;
    value.integer_ = integer;
    return value;
  }

  [[nodiscard]] RespKind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is(RespKind kind) const noexcept { return kind_ == kind; }
  [[nodiscard]] bool is_null() const noexcept { return kind_ == RespKind::null; }

  // REQUIRES: kind() is simple, error or bulk.
  [[nodiscard]] ByteView text() const noexcept {
    HOLDFAST_ASSERT(kind_ == RespKind::simple || kind_ == RespKind::error || kind_ == RespKind::bulk);
    return {text_, size_};
  }
  // REQUIRES: kind() is integer.
  [[nodiscard]] std::int64_t integer() const noexcept {
    HOLDFAST_ASSERT(kind_ == RespKind::integer);
    return integer_;
  }
  // Elements of an array; 0 for every other kind.
  [[nodiscard]] std::uint32_t count() const noexcept { return kind_ == RespKind::array ? size_ : 0; }
  // Element `index` of an array. Costs a step for each element before it.
  // REQUIRES: index < count().
  [[nodiscard]] const RespValue& at(std::uint32_t index) const noexcept {
    HOLDFAST_ASSERT(index < count());
    const RespValue* item = items_;
    for (; index > 0; --index) item += 1 + item->below_;
    return *item;
  }

  // For decoders: is this exactly that status line, integer, or text of a bulk?
  [[nodiscard]] bool is_simple(ByteView expected) const noexcept {
    return kind_ == RespKind::simple && size_ == expected.size() && std::memcmp(text_, expected.data(), size_) == 0;
  }
  [[nodiscard]] bool is_integer(std::int64_t expected) const noexcept {
    return kind_ == RespKind::integer && integer_ == expected;
  }

 private:
  friend class RespParser;

  RespKind kind_ = RespKind::null;
  std::uint16_t below_ = 0;  // Nodes of the parser's table that the elements of this value occupy, and theirs.
  std::uint32_t size_ = 0;   // Bytes of a text, elements of an array.
  union {
    std::int64_t integer_ = 0;
    const char* text_;
    const RespValue* items_;
  };
};
static_assert(sizeof(RespValue) == 16, "a reply's node is sixteen bytes");
static_assert(std::is_trivially_copyable_v<RespValue>);

}  // namespace holdfast
