// SPDX-License-Identifier: MIT
#include "resp_request_parser.hpp"

#include <charconv>

namespace holdfast::sim {

namespace {

constexpr std::size_t line_size_max = 64 * 1024;
constexpr std::int64_t bulk_size_max = 512LL * 1024 * 1024;
constexpr std::int64_t words_max = 0x7fffffff;
constexpr std::int64_t unauthenticated_bulk_size_max = 16384;
constexpr std::int64_t unauthenticated_words_max = 10;

// Where the line that begins at `from` ends: the carriage return. C's strchr does not see beyond a zero byte.
std::size_t find_line_end(std::string_view bytes, std::size_t from) noexcept {
  for (std::size_t at = from; at < bytes.size() && bytes[at] != '\0'; ++at)
    if (bytes[at] == '\r') return at;
  return std::string_view::npos;
}

RequestOutcome refuse(std::string& refusal, std::string_view words) {
  refusal = "ERR Protocol error: ";
  refusal += words;
  return RequestOutcome::refused;
}

RequestOutcome read_inline(std::string_view bytes, std::vector<std::string_view>& words, std::size_t& size,
                           std::string& refusal) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos)
    return bytes.size() > line_size_max ? refuse(refusal, "too big inline request") : RequestOutcome::need_more;
  std::string_view line = bytes.substr(0, end);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.find_first_of("\"'") != std::string_view::npos) return refuse(refusal, "unbalanced quotes in request");
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  size = end + 1;
  return RequestOutcome::request;
}

}  // namespace

bool read_integer(std::string_view text, std::int64_t& number) noexcept {
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view digits = negative ? text.substr(1) : text;
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return false;
  if (digits[0] == '0' && text.size() != 1) return false;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  number = value;
  return true;
}

RequestOutcome read_request(std::string_view bytes, bool authenticated, std::vector<std::string_view>& words,
                            std::size_t& size, std::string& refusal) {
  words.clear();
  if (bytes.empty()) return RequestOutcome::need_more;
  if (bytes[0] != '*') return read_inline(bytes, words, size, refusal);
  std::size_t end = find_line_end(bytes, 0);
  if (end == std::string_view::npos)
    return bytes.size() > line_size_max ? refuse(refusal, "too big mbulk count string") : RequestOutcome::need_more;
  if (end + 2 > bytes.size()) return RequestOutcome::need_more;
  std::int64_t count = 0;
  if (!read_integer(bytes.substr(1, end - 1), count) || count > words_max)
    return refuse(refusal, "invalid multibulk length");
  if (count > unauthenticated_words_max && !authenticated) return refuse(refusal, "unauthenticated multibulk length");
  std::size_t at = end + 2;
  for (; count > 0; --count) {
    end = find_line_end(bytes, at);
    if (end == std::string_view::npos) {
      if (bytes.size() - at > line_size_max) return refuse(refusal, "too big bulk count string");
      return RequestOutcome::need_more;
    }
    if (end + 2 > bytes.size()) return RequestOutcome::need_more;
    if (bytes[at] != '$') return refuse(refusal, std::string("expected '$', got '") + bytes[at] + "'");
    std::int64_t bulk = 0;
    if (!read_integer(bytes.substr(at + 1, end - at - 1), bulk) || bulk < 0 || bulk > bulk_size_max)
      return refuse(refusal, "invalid bulk length");
    if (bulk > unauthenticated_bulk_size_max && !authenticated) return refuse(refusal, "unauthenticated bulk length");
    at = end + 2;
    const auto length = static_cast<std::size_t>(bulk);
    if (bytes.size() - at < length + 2) return RequestOutcome::need_more;
    words.push_back(bytes.substr(at, length));
    at += length + 2;
  }
  size = at;
  return RequestOutcome::request;
}

}  // namespace holdfast::sim
