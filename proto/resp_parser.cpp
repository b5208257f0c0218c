// SPDX-License-Identifier: MIT
//
// The grammar stands in read_element() and read_number(): one element, from its first byte. An element that has not come
// as a whole is read again when more has come: bodies are skipped and lines are short, so that costs little, and no state
// has to be kept between two bytes. read_reply() puts elements together.
//
// take_scalar() is a short cut for what has come as a whole and is plain, the usual case, out of registers: it accepts
// nothing that read_element() would refuse, and whatever it does not take it leaves alone.
#include "holdfast/proto/resp_parser.hpp"

#include "holdfast/proto/assert.hpp"

namespace holdfast {

namespace {

// take_scalar() and take_array() only save time. Where size counts more, -Os, they are left out.
#ifdef __OPTIMIZE_SIZE__
constexpr bool short_cuts = false;
#else
constexpr bool short_cuts = true;
#endif

// What a peer that speaks TLS answers to anything else: a record with an alert.
constexpr char tls_alert = '\x15';

// 19 digits hold every 64-bit integer and cannot overflow the accumulator.
constexpr std::uint32_t digits_max = 19;
constexpr std::uint64_t integer_max = 0x7fff'ffff'ffff'ffffU;

// REQUIRES: two bytes at `at`.
inline bool is_line_end(const char* at) noexcept {
  std::uint16_t expected = 0;  // Two bytes as one number: GCC compares memcmp()'s one after the other.
  std::uint16_t found = 0;
  std::memcpy(&expected, "\r\n", 2);
  std::memcpy(&found, at, 2);
  return found == expected;
}

// A number without a sign, and its CR LF. nullptr: unfinished, not canonical, or of 19 digits.
// REQUIRES: three bytes at `at`.
inline const char* take_number(const char* at, const char* end, std::uint64_t& number) noexcept {
  std::uint64_t sum = static_cast<unsigned char>(*at) - static_cast<std::uint64_t>('0');
  if (sum > 9) return nullptr;
  if (is_line_end(at + 1)) [[likely]] {
    number = sum;
    return at + 3;
  }
  if (sum == 0) return nullptr;
  const char* const first = at;
  for (++at; at != end; ++at) {
    const unsigned digit = static_cast<unsigned char>(*at) - static_cast<unsigned>('0');
    if (digit > 9) break;
    sum = sum * 10 + digit;
  }
  if (end - at < 2 || !is_line_end(at) || at - first >= static_cast<std::ptrdiff_t>(digits_max)) return nullptr;
  number = sum;
  return at + 2;
}

// One reply or element that is no array, from its type byte to its last LF. Returns the place behind it; nullptr, with
// `value` untouched, where it is not whole or not plain.
[[gnu::always_inline]] inline const char* take_scalar(const char* at, const char* end, RespValue& value) noexcept {
  if (end - at < 4) return nullptr;
  const char type = *at++;
  std::uint64_t number = 0;
  if (type == '$') {
    if (*at == '-') {
      if (end - at < 4 || std::memcmp(at, "-1\r\n", 4) != 0) return nullptr;
      value = RespValue();
      return at + 4;
    }
    at = take_number(at, end, number);
    if (at == nullptr || number > bulk_size_max) return nullptr;
    if (static_cast<std::size_t>(end - at) < number + 2 || !is_line_end(at + number)) return nullptr;
    value = RespValue::make_text(RespKind::bulk, {at, static_cast<std::size_t>(number)});
    return at + number + 2;
  }
  if (type == ':') {
    at = take_number(at, end, number);
    if (at != nullptr) value = RespValue::make_integer(static_cast<std::int64_t>(number));
    return at;
  }
  if (type != '+' && type != '-') return nullptr;
  const char* const text = at;
  while (at != end && static_cast<unsigned char>(*at) > '\r') ++at;
  const auto size = static_cast<std::size_t>(at - text);
  if (end - at < 2 || !is_line_end(at) || size > line_size_max) return nullptr;
  value = RespValue::make_text(type == '+' ? RespKind::simple : RespKind::error, {text, size});
  return at + 2;
}

// Elements from `first` to `last` that are no arrays, up to the first that is not whole or not plain: `first` then
// is its place. Returns the place behind the last one taken.
[[gnu::noinline]] const char* take_scalars(const char* at, const char* end, RespValue*& first,
                                           const RespValue* last) noexcept {
  RespValue* value = first;
  for (; value != last; ++value) {
    const char* const behind = take_scalar(at, end, *value);
    if (behind == nullptr) break;
    at = behind;
  }
  first = value;
  return at;
}

}  // namespace

RespParser::RespParser(MutableBytes buffer, RespValue* nodes, std::size_t node_count) noexcept
    : begin_(buffer.data),
      limit_(buffer.data + buffer.size),
      nodes_(nodes),
      node_count_(static_cast<std::uint32_t>(node_count)) {
  HOLDFAST_ASSERT(buffer.size >= 16 && node_count >= 1 && node_count <= UINT16_MAX);
  reset();
}

void RespParser::reset() noexcept {
  end_ = begin_;
  cursor_ = begin_;
  value_begin_ = begin_;
  error_ = nullptr;
  nodes_used_ = 0;
  scanned_ = 0;
  depth_ = 0;
}

// receive_space() while a reply is unfinished. An invalid parser is never idle: its cursor stands before the malformed
// element, or inside a reply.
MutableBytes RespParser::receive_more() noexcept {
  if (error_ != nullptr) return {};
  if (depth_ == 0) value_begin_ = cursor_;
  // Moves the unfinished reply to the front. Its finished elements view the buffer and move along.
  if (const std::ptrdiff_t shift = value_begin_ - begin_; shift != 0) {
    std::memmove(begin_, value_begin_, static_cast<std::size_t>(end_ - value_begin_));
    for (std::uint32_t index = 0; index < nodes_used_; ++index) {
      RespValue& node = nodes_[index];
      if (node.kind_ == RespKind::simple || node.kind_ == RespKind::error || node.kind_ == RespKind::bulk)
        node.text_ -= shift;
    }
    cursor_ -= shift;
    end_ -= shift;
    value_begin_ = begin_;
  }
  return {end_, static_cast<std::size_t>(limit_ - end_)};
}

std::size_t RespParser::feed(ByteView bytes) noexcept {
  const MutableBytes space = receive_space();
  const std::size_t count = bytes.size() < space.size ? bytes.size() : space.size;
  if (count != 0) std::memcpy(space.data, bytes.data(), count);
  end_ += count;
  return count;
}

ParseResult RespParser::invalidate(const char* error) noexcept {
  error_ = error;
  return ParseResult::invalid;
}

// What follows the type byte in ":-12\r\n", "$3\r\n", "*2\r\n": a canonical decimal number, no plus sign, no leading
// zero, no minus zero. Of the lengths only -1 is negative.
inline ParseResult RespParser::read_number(const char*& place, char type, std::int64_t& number) noexcept {
  const char* at = place;
  const bool negative = at != end_ && *at == '-';
  if (negative) ++at;
  const char* const first = at;
  std::uint64_t sum = 0;
  for (;; ++at) {
    if (at == end_) return ParseResult::need_more;
    const unsigned digit = static_cast<unsigned char>(*at) - static_cast<unsigned>('0');
    if (digit > 9) break;
    if (at != first && sum == 0) return invalidate("a number with a leading zero");
    if (at - first == digits_max) return invalidate("a number beyond 64 bits");
    sum = sum * 10 + digit;
    if (type == ':') continue;
    if (negative && sum != 1) return invalidate("a negative length other than -1");
    if (type == '$' && sum > bulk_size_max) return invalidate("a bulk string is longer than its limit");
    if (type == '*' && sum >= node_count_ && !negative) return invalidate("an array has more elements than its limit");
  }
  if (at == first) return invalidate("a number without digits");
  if (*at != '\r') return invalidate("a byte in a number that is no digit");
  if (negative && sum == 0) return invalidate("minus zero");
  if (sum > integer_max + (negative ? 1U : 0U)) return invalidate("a number beyond 64 bits");
  if (++at == end_) return ParseResult::need_more;
  if (*at != '\n') return invalidate("CR without LF behind a number");
  place = at + 1;
  number = static_cast<std::int64_t>(negative ? 0 - sum : sum);
  return ParseResult::value;
}

// The element at the cursor: a scalar, or an array without its elements. The cursor moves only behind a whole one.
inline ParseResult RespParser::read_element(RespValue& element) noexcept {
  const char* at = cursor_;
  const char* const end = end_;
  if (at == end) return ParseResult::need_more;
  const char type = *at++;
  if (type == '+' || type == '-') {  // "+OK\r\n" and "-ERR ...\r\n": no CR and no LF inside.
    const char* const text = at;
    for (at += scanned_;; ++at) {
      if (at == end || (*at == '\r' && at + 1 == end)) {
        scanned_ = static_cast<std::uint32_t>(at - text);  // A long line is not read again from its start.
        return ParseResult::need_more;
      }
      if (*at == '\r') break;
      if (*at == '\n') return invalidate("LF without CR in a line");
      if (at - text == line_size_max) return invalidate("a line is longer than its limit");
    }
    element = RespValue::make_text(type == '+' ? RespKind::simple : RespKind::error,
                                   {text, static_cast<std::size_t>(at - text)});
    if (*++at != '\n') return invalidate("CR without LF behind a line");
    scanned_ = 0;
    cursor_ = at + 1;
    return ParseResult::value;
  }
  if (type != ':' && type != '$' && type != '*')
    return invalidate(type == tls_alert ? "a word of TLS: use rediss://" : "an unknown type byte");
  std::int64_t number = 0;
  if (const ParseResult result = read_number(at, type, number); result != ParseResult::value) return result;
  if (type == ':') {
    element = RespValue::make_integer(number);
  } else if (number < 0) {
    element = RespValue();
  } else if (type == '*') {
    element.kind_ = RespKind::array;
    element.size_ = static_cast<std::uint32_t>(number);
  } else {  // The bytes of a bulk string, then CR LF.
    element = RespValue::make_text(RespKind::bulk, {at, static_cast<std::size_t>(number)});
    if (end - at <= number) return ParseResult::need_more;
    at += number;
    if (*at != '\r') return invalidate("no CR behind a bulk string");
    if (++at == end) return ParseResult::need_more;
    if (*at != '\n') return invalidate("no LF behind a bulk string");
    ++at;
  }
  cursor_ = at;
  return ParseResult::value;
}

ParseResult RespParser::poll_value(RespValue& out) noexcept {
  // What made the parser invalid stands at the cursor still, so take_scalar() does not take it.
  if (short_cuts && depth_ == 0 && scanned_ == 0) [[likely]] {
    if (const char* const behind = take_scalar(cursor_, end_, out); behind != nullptr) [[likely]] {
      cursor_ = behind;
      return ParseResult::value;
    }
  }
  return read_reply(out);
}

// The short cut for an array of scalars. False where it is not whole or not plain: what came of it is kept then.
inline bool RespParser::take_array(RespValue& out) noexcept {
  if (depth_ != 0 || end_ - cursor_ < 4 || *cursor_ != '*') return false;
  std::uint64_t count = 0;
  const char* const behind = take_number(cursor_ + 1, end_, count);
  if (behind == nullptr || count - 1 >= node_count_ - 1U) return false;
  RespValue& array = *nodes_;
  array.kind_ = RespKind::array;
  array.below_ = 0;
  array.size_ = static_cast<std::uint32_t>(count);
  array.items_ = &array + 1;
  RespValue* element = &array + 1;
  const RespValue* const last = element + count;
  value_begin_ = cursor_;
  cursor_ = take_scalars(behind, end_, element, last);
  if (element == last) {
    out = array;
    return true;
  }
  depth_ = 1;
  levels_[0] = {static_cast<std::uint32_t>(last - element), 0};
  nodes_used_ = static_cast<std::uint32_t>(element - &array);
  return false;
}

// Puts elements together. An array's node is followed by those of its elements; its level counts what is still to come.
ParseResult RespParser::read_reply(RespValue& out) noexcept {
  if (error_ != nullptr) return ParseResult::invalid;
  if (short_cuts && take_array(out)) return ParseResult::value;
  for (;;) {
    if (depth_ == 0) value_begin_ = cursor_;
    RespValue& element = nodes_[nodes_used_];
    const ParseResult result = read_element(element);
    if (result != ParseResult::value) {
      // A buffer that one unfinished reply fills can never finish it.
      if (result == ParseResult::need_more && value_begin_ == begin_ && end_ == limit_)
        return invalidate("a reply is larger than the receive buffer");
      return result;
    }
    if (depth_ != 0) {
      --levels_[depth_ - 1].remaining;
    } else if (element.kind_ != RespKind::array) {
      out = element;
      return ParseResult::value;
    }
    if (element.kind_ == RespKind::array) {
      if (depth_ == depth_max) return invalidate("arrays are nested deeper than their limit");
      // The elements of all open arrays must find a node.
      std::uint32_t needed = nodes_used_ + 1 + element.size_;
      for (std::uint8_t level = 0; level < depth_; ++level) needed += levels_[level].remaining;
      if (needed > node_count_) return invalidate("a reply has more elements than its limit");
      levels_[depth_++] = {element.size_, nodes_used_};
      element.items_ = &element + 1;
      element.below_ = 0;
    }
    ++nodes_used_;
    while (levels_[depth_ - 1].remaining == 0) {
      RespValue& array = nodes_[levels_[--depth_].node];
      array.below_ = static_cast<std::uint16_t>(nodes_used_ - levels_[depth_].node - 1);
      if (depth_ != 0) continue;
      out = array;
      out.below_ = 0;
      nodes_used_ = 0;
      return ParseResult::value;
    }
  }
}

}  // namespace holdfast
