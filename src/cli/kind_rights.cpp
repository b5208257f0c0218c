// SPDX-License-Identifier: MIT
#include "kind_rights.hpp"

#include <sstream>

#include "holdfast/core/derived_name.hpp"

namespace holdfast::cli {

std::vector<std::string> rules_of(const char* list) {
  std::vector<std::string> rules;
  std::istringstream stream(list);
  for (std::string rule; stream >> rule;) rules.push_back(rule);
  return rules;
}

namespace {

// A name as a pattern of an ACL that can be typed: a byte that is special there stands in brackets. A rule has no spaces, and
// redis-cli reads quotes and backslashes in its own way: in their place, and in that of bytes that nobody can type, stands `?`.
std::string pattern_of(const std::string& name) {
  std::string pattern;
  for (const char byte : name) {
    if (byte == '*' || byte == '?' || byte == '[')
      pattern.append(1, '[').append(1, byte).append(1, ']');
    else
      pattern += byte > ' ' && byte <= '~' && byte != '\\' && byte != '"' && byte != '\'' ? byte : '?';
  }
  return pattern;
}

}  // namespace

NamedPattern named(const std::string& pattern, const std::string& name) {
  const char mark = pattern.front();
  const std::string text = pattern.substr(1);
  // The lock's key, and what stands beside it under its own name.
  if (text == "NAME") return {mark + pattern_of(name), name};
  if (text == "{NAME}*") {
    const std::string tag = name.find('{') == std::string::npos ? "{" + name + "}" : name;
    return {mark + pattern_of(tag) + "*", tag + ":timeout"};
  }
  // A prefix, and ":*".
  const std::string prefix = text.substr(0, text.size() - 2);
  const DerivedName derived{ByteView(std::string_view(prefix)), Key{ByteView(std::string_view(name))}};
  return {pattern, std::string(derived.bytes().string_view())};
}

}  // namespace holdfast::cli
