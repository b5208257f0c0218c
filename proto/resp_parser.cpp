// SPDX-License-Identifier: MIT
//
// Two readers of one grammar. take_scalar() takes what has come as a whole and is plain, the usual case, out of
// registers; it accepts nothing that the other would refuse, and whatever it does not take it leaves alone. The other
// is one switch over the state, entered at the byte where the last call stopped: it resumes anywhere, and it alone
// says what is wrong.
#include "holdfast/resp_parser.hpp"

#include "holdfast/assert.hpp"

// Where size counts, the compiler decides.
#ifdef __OPTIMIZE_SIZE__
#define HOLDFAST_INLINE_FOR_SPEED inline
#else
#define HOLDFAST_INLINE_FOR_SPEED [[gnu::always_inline]] inline
#endif

namespace holdfast {

namespace {

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
HOLDFAST_INLINE_FOR_SPEED const char* take_scalar(const char* at, const char* end, RespValue& value) noexcept {
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
      end_(buffer.data),
      cursor_(buffer.data),
      value_begin_(buffer.data),
      nodes_(nodes),
      node_count_(static_cast<std::uint32_t>(node_count)) {
  HOLDFAST_ASSERT(buffer.size >= 16 && node_count >= 1 && node_count <= UINT16_MAX);
}

void RespParser::reset() noexcept {
  end_ = begin_;
  cursor_ = begin_;
  value_begin_ = begin_;
  nodes_used_ = 0;
  error_ = nullptr;
  state_ = State::type;
  depth_ = 0;
}

// receive_space() while a reply is unfinished. An invalid parser is never idle: its cursor stands before the malformed
// byte, or inside a reply.
MutableBytes RespParser::receive_more() noexcept {
  if (error_ != nullptr) return {};
  if (state_ == State::type && depth_ == 0) value_begin_ = cursor_;
  // Moves the unfinished reply to the front. Its finished elements view the buffer and move along.
  const auto move_to_front = [this]() __attribute__((noinline)) {
    const std::ptrdiff_t shift = value_begin_ - begin_;
    std::memmove(begin_, value_begin_, static_cast<std::size_t>(end_ - value_begin_));
    for (std::uint32_t index = 0; index < nodes_used_; ++index) {
      RespValue& node = nodes_[index];
      if (node.kind_ == RespKind::simple || node.kind_ == RespKind::error || node.kind_ == RespKind::bulk)
        node.text_ -= shift;
    }
    if (state_ != State::type) text_begin_ -= shift;
    cursor_ -= shift;
    end_ -= shift;
    value_begin_ = begin_;
  };
  if (value_begin_ != begin_) move_to_front();
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

// Everything received has been looked at. A buffer that one unfinished reply fills can never finish it.
ParseResult RespParser::suspend(const char* at) noexcept {
  cursor_ = at;
  if (value_begin_ == begin_ && end_ == limit_) return invalidate("a reply is larger than the receive buffer");
  return ParseResult::need_more;
}

ParseResult RespParser::poll_value(RespValue& out) noexcept {
  // What made the parser invalid stands at the cursor still, so take_scalar() does not take it.
  const bool between_replies = state_ == State::type && depth_ == 0;
  if (between_replies) [[likely]] {
    if (const char* const behind = take_scalar(cursor_, end_, out); behind != nullptr) [[likely]] {
      cursor_ = behind;
      return ParseResult::value;
    }
  }

  // All the rest. A function of its own, so that the usual case has no registers to save.
  const auto resume = [this, &out, between_replies]() __attribute__((noinline)) -> ParseResult {
    if (error_ != nullptr) return ParseResult::invalid;
    const char* at = cursor_;
    const char* const end = end_;
    if (between_replies && end - at >= 4 && *at == '*') {
      std::uint64_t count = 0;
      const char* const behind = take_number(at + 1, end, count);
      if (behind != nullptr && count - 1 < node_count_ - 1U) {
        RespValue& array = *nodes_;
        array.kind_ = RespKind::array;
        array.size_ = static_cast<std::uint32_t>(count);
        array.items_ = &array + 1;
        array.span_ = 1;
        RespValue* element = &array + 1;
        const RespValue* const last = element + count;
        value_begin_ = at;
        at = take_scalars(behind, end, element, last);
        if (element == last) {
          out = array;
          cursor_ = at;
          return ParseResult::value;
        }
        depth_ = 1;
        levels_[0] = {static_cast<std::uint32_t>(last - element), 0};
        nodes_used_ = static_cast<std::uint32_t>(element - &array);
      }
    }
    RespValue element;

    switch (state_) {
      case State::type:
      next_element:
        state_ = State::type;
        if (at == end) {
          if (depth_ == 0) value_begin_ = at;
          return suspend(at);
        }
        if (depth_ == 0) {
          value_begin_ = at;
          nodes_used_ = 0;
        }
        type_ = *at++;
        text_begin_ = at;
        if (type_ == '+' || type_ == '-') goto line;
        if (type_ != ':' && type_ != '$' && type_ != '*') return invalidate("an unknown type byte");
        number_ = 0;
        digits_ = 0;
        negative_ = false;
        goto number_sign;

      // "+OK\r\n" and "-ERR ...\r\n": no CR and no LF inside.
      case State::line:
      line: {
        state_ = State::line;
        const char* const line_limit = text_begin_ + line_size_max;
        for (;; ++at) {
          if (at == end) return suspend(at);
          if (*at == '\r') break;
          if (*at == '\n') return invalidate("LF without CR in a line");
          if (at == line_limit) return invalidate("a line is longer than its limit");
        }
        ++at;
      }
        [[fallthrough]];
      case State::line_lf:
        state_ = State::line_lf;
        if (at == end) return suspend(at);
        if (*at != '\n') return invalidate("CR without LF behind a line");
        element = RespValue::make_text(type_ == '+' ? RespKind::simple : RespKind::error,
                                       {text_begin_, static_cast<std::size_t>(at - 1 - text_begin_)});
        ++at;
        goto finished;

      // ":-12\r\n", "$3\r\n", "*2\r\n": a canonical decimal number, no plus sign, no leading zero, no minus zero.
      case State::number_sign:
      number_sign:
        state_ = State::number_sign;
        if (at == end) return suspend(at);
        if (*at == '-') {
          negative_ = true;
          ++at;
        }
        [[fallthrough]];
      case State::number_digits: {
        state_ = State::number_digits;
        std::uint64_t number = number_;
        std::uint32_t digits = digits_;
        for (;; ++at) {
          if (at == end) {
            number_ = number;
            digits_ = digits;
            return suspend(at);
          }
          const unsigned digit = static_cast<unsigned char>(*at) - static_cast<unsigned>('0');
          if (digit > 9) break;
          if (digits != 0 && number == 0) return invalidate("a number with a leading zero");
          if (++digits > digits_max) return invalidate("a number beyond 64 bits");
          number = number * 10 + digit;
          if (type_ != ':') {
            if (negative_ && number != 1) return invalidate("a negative length other than -1");
            if (type_ == '$' && number > bulk_size_max) return invalidate("a bulk string is longer than its limit");
            if (type_ == '*' && number >= node_count_ && !negative_)
              return invalidate("an array has more elements than its limit");
          }
        }
        number_ = number;
        if (digits == 0) return invalidate("a number without digits");
        if (*at != '\r') return invalidate("a byte in a number that is no digit");
        if (negative_ && number == 0) return invalidate("minus zero");
        if (number > integer_max + (negative_ ? 1U : 0U)) return invalidate("a number beyond 64 bits");
        ++at;
      }
        [[fallthrough]];
      case State::number_lf:
        state_ = State::number_lf;
        if (at == end) return suspend(at);
        if (*at != '\n') return invalidate("CR without LF behind a number");
        ++at;
        if (type_ == ':') {
          element = RespValue::make_integer(static_cast<std::int64_t>(negative_ ? 0 - number_ : number_));
          goto finished;
        }
        if (negative_) {  // "$-1" and "*-1"
          element = RespValue();
          goto finished;
        }
        if (type_ == '*') {
          if (depth_ == depth_max) return invalidate("arrays are nested deeper than their limit");
          // The elements of all open arrays must find a node.
          std::uint64_t needed = nodes_used_ + 1 + number_;
          for (std::uint8_t level = 0; level < depth_; ++level) needed += levels_[level].remaining - 1;
          if (needed > node_count_) return invalidate("a reply has more elements than its limit");
          RespValue& node = nodes_[nodes_used_];
          node.kind_ = RespKind::array;
          node.size_ = static_cast<std::uint32_t>(number_);
          node.items_ = &node + 1;
          node.span_ = 1;
          if (number_ == 0) {
            element = node;
            goto finished;
          }
          levels_[depth_].remaining = static_cast<std::uint32_t>(number_);
          levels_[depth_].node = nodes_used_;
          ++depth_;
          ++nodes_used_;
          goto next_element;
        }
        text_begin_ = at;
        [[fallthrough]];

      // The bytes of a bulk string, then CR LF.
      case State::body: {
        state_ = State::body;
        const auto missing = static_cast<std::size_t>(number_) - static_cast<std::size_t>(at - text_begin_);
        if (static_cast<std::size_t>(end - at) < missing) return suspend(end);
        at += missing;
      }
        [[fallthrough]];
      case State::body_cr:
        state_ = State::body_cr;
        if (at == end) return suspend(at);
        if (*at != '\r') return invalidate("no CR behind a bulk string");
        ++at;
        [[fallthrough]];
      case State::body_lf:
        state_ = State::body_lf;
        if (at == end) return suspend(at);
        if (*at != '\n') return invalidate("no LF behind a bulk string");
        ++at;
        element = RespValue::make_text(RespKind::bulk, {text_begin_, static_cast<std::size_t>(number_)});
        goto finished;
    }

  finished:
    if (depth_ == 0) {
      out = element;
      state_ = State::type;
      cursor_ = at;
      return ParseResult::value;
    }
    nodes_[nodes_used_++] = element;
    while (--levels_[depth_ - 1].remaining == 0) {
      RespValue& array = nodes_[levels_[depth_ - 1].node];
      array.span_ = static_cast<std::uint16_t>(nodes_used_ - levels_[depth_ - 1].node);
      if (--depth_ == 0) {
        out = array;
        out.span_ = 1;
        nodes_used_ = 0;
        state_ = State::type;
        cursor_ = at;
        return ParseResult::value;
      }
    }
    goto next_element;
  };
  return resume();
}

}  // namespace holdfast
