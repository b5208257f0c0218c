// SPDX-License-Identifier: MIT
#include "words.hpp"

namespace board {

char* take_word(char*& line) {
  while (*line == ' ') ++line;
  char* const word = line;
  while (*line != '\0' && *line != ' ') ++line;
  if (*line != '\0') *line++ = '\0';
  return word;
}

bool read_number(const char* word, std::uint32_t most, std::uint32_t& number) {
  std::uint32_t sum = 0;
  if (*word == '\0') return false;
  for (; *word != '\0'; ++word) {
    if (*word < '0' || *word > '9') return false;
    const auto digit = static_cast<std::uint32_t>(*word - '0');
    if (digit > most || sum > (most - digit) / 10) return false;
    sum = sum * 10 + digit;
  }
  number = sum;
  return true;
}

}  // namespace board
