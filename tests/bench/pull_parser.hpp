// SPDX-License-Identifier: MIT
//
// The limit that the codec's benchmark stands beside: a throwaway RESP2 pull parser. It keeps no state, restarts
// an incomplete reply from its first byte, knows no depth, and is no model for ours.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace reference {

struct Value {
  char type;
  bool nil;
  std::uint32_t size;
  std::int64_t number;
  const char* text;
};
enum class Step { need_more, value, invalid };

inline Step integer(const char*& cursor, const char* end, std::int64_t& out) {
  const char* p = cursor;
  bool negative = false;
  if (p == end) return Step::need_more;
  if (*p == '-') {
    negative = true;
    if (++p == end) return Step::need_more;
  }
  std::uint64_t v = 0;
  unsigned digit;
  const char* first = p;
  while (p < end && (digit = unsigned(static_cast<unsigned char>(*p)) - '0') < 10) {
    v = v * 10 + digit;
    if (++p - first > 19) return Step::invalid;
  }
  if (p == end) return Step::need_more;
  if (p == first || *p != '\r') return Step::invalid;
  if (p + 1 == end) return Step::need_more;
  if (p[1] != '\n') return Step::invalid;
  out = negative ? -std::int64_t(v) : std::int64_t(v);
  cursor = p + 2;
  return Step::value;
}

// One scalar reply, or the header of an array, from [cursor, end); cursor moves past it.
inline Step next(const char*& cursor, const char* end, Value& v) {
  const char* p = cursor;
  if (p == end) return Step::need_more;
  v.type = *p++;
  v.nil = false;
  switch (v.type) {
    case '+':
    case '-': {
      const char* cr = static_cast<const char*>(std::memchr(p, '\r', std::size_t(end - p)));
      if (!cr || cr + 1 == end) return Step::need_more;
      if (cr[1] != '\n') return Step::invalid;
      v.text = p;
      v.size = std::uint32_t(cr - p);
      cursor = cr + 2;
      return Step::value;
    }
    case ':': {
      Step s = integer(p, end, v.number);
      if (s == Step::value) cursor = p;
      return s;
    }
    case '*': {
      Step s = integer(p, end, v.number);
      if (s != Step::value) return s;
      if (v.number < -1 || v.number > 1024) return Step::invalid;
      cursor = p;
      return s;
    }
    case '$': {
      std::int64_t n;
      Step s = integer(p, end, n);
      if (s != Step::value) return s;
      if (n == -1) {
        v.nil = true;
        v.size = 0;
        cursor = p;
        return s;
      }
      if (n < 0 || n > (1 << 20)) return Step::invalid;
      if (end - p < n + 2) return Step::need_more;
      if (p[n] != '\r' || p[n + 1] != '\n') return Step::invalid;
      v.text = p;
      v.size = std::uint32_t(n);
      cursor = p + n + 2;
      return Step::value;
    }
  }
  return Step::invalid;
}

}  // namespace reference
