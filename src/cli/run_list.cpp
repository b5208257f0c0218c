// SPDX-License-Identifier: MIT
#include "run_list.hpp"

#include <cstdlib>
#include <optional>
#include <utility>

namespace holdfast::cli {

namespace {

bool plain(char byte) noexcept {
  const int letter = (byte | 0x20) - 'a';
  return (letter >= 0 && letter < 26) || (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-' ||
         byte == ':';
}

std::string encoded(std::string_view bytes) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string text;
  for (const char byte : bytes) {
    if (plain(byte)) {
      text += byte;
      continue;
    }
    const auto value = static_cast<unsigned char>(byte);
    text += '%';
    text += digits[value >> 4];
    text += digits[value & 0xf];
  }
  return text;
}

std::string decoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size()) {
      const std::size_t high = digits.find(text[at + 1]);
      const std::size_t low = digits.find(text[at + 2]);
      if (high != std::string_view::npos && low != std::string_view::npos) {
        bytes += static_cast<char>(high * 16 + low);
        at += 2;
        continue;
      }
    }
    bytes += text[at];
  }
  return bytes;
}

// What is in front of the separator, which is taken off with it; all of it where there is none.
std::string_view take(std::string_view& text, char separator) noexcept {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

}  // namespace

RunList::RunList(std::string text) : text_(std::move(text)) {
  std::string_view rest = text_;
  while (!rest.empty()) {
    std::string_view entry = take(rest, ' ');
    OuterRun run;
    run.token = decoded(take(entry, '/'));
    run.name = decoded(take(entry, '/'));
    for (std::string_view servers = take(entry, '/'); !servers.empty();)
      run.servers.push_back(decoded(take(servers, ',')));
    run.url_taken = entry == "taken";
    if (!run.token.empty()) runs_.push_back(std::move(run));
  }
}

RunList RunList::inherited() {
  const char* const text = std::getenv(run_list_variable);
  return text == nullptr ? RunList() : RunList(text);
}

const OuterRun* RunList::find_token(std::string_view token) const noexcept {
  for (const OuterRun& run : runs_)
    if (run.token == token) return &run;
  return nullptr;
}

std::string RunList::text_with(const OuterRun& inner) const {
  std::string text = text_;
  if (!text.empty()) text += ' ';
  text += encoded(inner.token) + "/" + encoded(inner.name) + "/";
  for (std::size_t index = 0; index < inner.servers.size(); ++index)
    text += (index == 0 ? "" : ",") + encoded(inner.servers[index]);
  if (inner.url_taken) text += "/taken";
  return text;
}

}  // namespace holdfast::cli
