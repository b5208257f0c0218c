// SPDX-License-Identifier: MIT
//
// Reads the golden vectors of proto/vectors. A file is a list of cases, apart by empty lines; a case is a list of
// lines `field: expression`; a line that starts with '#' is a comment. Each file says at its head which fields it has.
//
//     bytes   = item *( SP item )            one after another
//     item    = [ number " * " ] string      the string so many times
//     string  = DQUOTE ... DQUOTE            with \r \n \t \" \\ and \x00 to \xff
//     reply   = ( "simple" / "error" / "bulk" ) SP bytes / "integer" SP number / "null"
//             / "array" SP "[" [ element *( "," SP element ) ] "]"
//     element = [ number " * " ] reply       the reply so many times
#pragma once

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "resp_tree.hpp"

namespace holdfast::testing {

struct VectorCase {
  std::string file;
  int line = 0;  // Of its first field.
  std::vector<std::pair<std::string, std::string>> fields;

  [[nodiscard]] std::string place() const { return file + ":" + std::to_string(line); }
  // Ends the program where there is no such field: a vector that is not understood must not pass.
  [[nodiscard]] const std::string& field(std::string_view name) const {
    for (const auto& [field_name, expression] : fields)
      if (field_name == name) return expression;
    refuse(place(), "no field " + std::string(name));
  }
  [[noreturn]] static void refuse(const std::string& place, const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", place.c_str(), why.c_str());
    std::abort();
  }
};

// One expression, read from left to right.
class VectorReader {
 public:
  VectorReader(const VectorCase& from, std::string_view expression) : from_(from), rest_(expression) {}

  [[nodiscard]] bool at_end() {
    skip_spaces();
    return rest_.empty();
  }
  // Takes `word` if it is what comes next.
  bool take(std::string_view word) {
    skip_spaces();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) refuse("expected " + std::string(word));
  }
  void expect_end() {
    if (!at_end()) refuse("not understood");
  }
  std::string word() {
    skip_spaces();
    std::string word;
    while (!rest_.empty() && (std::isalnum(static_cast<unsigned char>(rest_.front())) != 0 || rest_.front() == '_'))
      word += next();
    if (word.empty()) refuse("expected a word");
    return word;
  }
  std::int64_t number() {
    skip_spaces();
    std::string digits;
    if (!rest_.empty() && rest_.front() == '-') digits += next();
    while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) digits += next();
    if (digits.empty() || digits == "-") refuse("expected a number");
    return std::strtoll(digits.c_str(), nullptr, 10);
  }
  // One string, so many times.
  std::string item() {
    const std::int64_t times = repetition();
    const std::string once = string();
    std::string item;
    for (std::int64_t time = 0; time < times; ++time) item += once;
    return item;
  }
  std::string bytes() {
    std::string bytes;
    while (starts_item()) bytes += item();
    return bytes;
  }
  RespTree reply() {
    RespTree tree;
    if (take("simple"))
      tree.kind = RespKind::simple;
    else if (take("error"))
      tree.kind = RespKind::error;
    else if (take("bulk"))
      tree.kind = RespKind::bulk;
    else if (take("integer"))
      tree.kind = RespKind::integer;
    else if (take("array"))
      tree.kind = RespKind::array;
    else if (!take("null"))
      refuse("expected a reply");
    switch (tree.kind) {
      case RespKind::simple:
      case RespKind::error:
      case RespKind::bulk:
        if (!starts_item()) refuse("expected bytes");
        tree.text = bytes();
        break;
      case RespKind::integer: tree.integer = number(); break;
      case RespKind::null: break;
      case RespKind::array:
        expect("[");
        if (take("]")) break;
        do {
          const std::int64_t times = repetition();
          const RespTree item = reply();
          for (std::int64_t time = 0; time < times; ++time) tree.items.push_back(item);
        } while (take(","));
        expect("]");
    }
    return tree;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) {
    VectorCase::refuse(from_.place(), why + " at: " + std::string(rest_));
  }
  char next() {
    if (rest_.empty()) refuse("ends too early");
    const char byte = rest_.front();
    rest_.remove_prefix(1);
    return byte;
  }
  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool starts_item() {
    skip_spaces();
    return !rest_.empty() && (rest_.front() == '"' || std::isdigit(static_cast<unsigned char>(rest_.front())) != 0);
  }
  std::int64_t repetition() {
    skip_spaces();
    if (rest_.empty() || std::isdigit(static_cast<unsigned char>(rest_.front())) == 0) return 1;
    const std::int64_t times = number();
    expect("*");
    skip_spaces();
    return times;
  }
  std::string string() {
    expect("\"");
    std::string string;
    for (char byte = next(); byte != '"'; byte = next()) string += byte == '\\' ? escaped() : byte;
    return string;
  }
  char escaped() {
    const char letter = next();
    if (letter == 'r') return '\r';
    if (letter == 'n') return '\n';
    if (letter == 't') return '\t';
    if (letter == '"' || letter == '\\') return letter;
    if (letter != 'x') refuse("an unknown escape");
    const char digits[] = {next(), next(), '\0'};
    char* end = nullptr;
    const unsigned long byte = std::strtoul(digits, &end, 16);
    if (end != digits + 2) refuse("an escape without two hexadecimal digits");
    return static_cast<char>(byte);
  }

  const VectorCase& from_;
  std::string_view rest_;
};

// All cases of proto/vectors/`name`. The tree is found by HOLDFAST_SOURCE_ROOT, which the build sets for every test.
inline std::vector<VectorCase> read_vectors(const std::string& name) {
  const char* const root = std::getenv("HOLDFAST_SOURCE_ROOT");
  const std::string path = std::string(root == nullptr ? "." : root) + "/proto/vectors/" + name;
  std::ifstream file(path);
  if (!file) VectorCase::refuse(path, "cannot be read; HOLDFAST_SOURCE_ROOT names the source tree");
  std::vector<VectorCase> cases;
  bool open = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) open = false;
    if (line.empty() || line.front() == '#') continue;
    if (!open) cases.push_back({"proto/vectors/" + name, number, {}});
    open = true;
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) VectorCase::refuse(cases.back().place(), "no field in: " + line);
    cases.back().fields.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return cases;
}

}  // namespace holdfast::testing
