// SPDX-License-Identifier: MIT
//
// AnsweringServer answers each command as a function of the test says: a peer that is well-behaved, hostile or silent, word by
// word. One connection at a time.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "connection_server.hpp"

class AnsweringServer : public ConnectionServer {
 public:
  using Words = std::vector<std::string>;
  // What it answers, on its thread; nothing: it is silent.
  using Answer = std::function<std::string(const Words& words)>;

  AnsweringServer(const std::string& path, Answer answer)
      : ConnectionServer(path, [answer = std::move(answer)](int connection) {
          std::string bytes;
          char part[4096];
          for (ssize_t count = 0; (count = ::recv(connection, part, sizeof part, 0)) > 0;) {
            bytes.append(part, static_cast<std::size_t>(count));
            for (Words words; take_command(bytes, words);) send_text(connection, answer(words));
          }
        }) {}

  // Takes a command off the front of the bytes. False: it is not all there yet.
  static bool take_command(std::string& bytes, Words& words) {
    std::size_t at = 0;
    std::string head;
    if (!take(bytes, at, head, std::string::npos)) return false;
    words.resize(std::strtoul(head.c_str() + 1, nullptr, 10));
    for (std::string& word : words)
      if (!take(bytes, at, head, std::string::npos) ||
          !take(bytes, at, word, std::strtoul(head.c_str() + 1, nullptr, 10)))
        return false;
    bytes.erase(0, at);
    return true;
  }

 private:
  // Takes one line, or so many bytes and a line's end, off the front. False: they are not all there yet.
  static bool take(const std::string& bytes, std::size_t& at, std::string& text, std::size_t size) {
    const std::size_t end = size == std::string::npos ? bytes.find("\r\n", at) : at + size;
    if (end == std::string::npos || end + 2 > bytes.size()) return false;
    text = bytes.substr(at, end - at);
    at = end + 2;
    return true;
  }
};
