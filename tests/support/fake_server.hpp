// SPDX-License-Identifier: MIT
//
// FakeServer says what it is told to, whatever it is asked: a hostile or broken peer. For each connection it sends the
// next text of its list as soon as the client has sent something, then reads on until the client closes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "connection_server.hpp"

class FakeServer : public ConnectionServer {
 public:
  FakeServer(const std::string& path, std::vector<std::string> texts)
      : ConnectionServer(path, [texts = std::move(texts), index = std::size_t{0}](int connection) mutable {
          const std::string& text = texts[std::min(index++, texts.size() - 1)];
          char bytes[4096];
          for (bool answered = false; ::recv(connection, bytes, sizeof bytes, 0) > 0; answered = true)
            if (!answered) send_text(connection, text);
        }) {}
};
