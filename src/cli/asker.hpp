// SPDX-License-Identifier: MIT
//
// Asker asks one server in plain words, over the library's own client, and has its answers as text. For holdfast doctor.
#pragma once

#include <string>
#include <vector>

#include "holdfast/client.hpp"

namespace holdfast::cli {

// Its questions and answers may be longer than those of locks: SENTINEL MASTER has some forty elements of some 900 bytes, and the
// script that looks through CLUSTER NODES has two thousand.
inline constexpr std::size_t answer_elements_max = 96;
inline constexpr std::size_t question_size_max = 4096;
using AskingBuffers =
    ClientBuffersOf<NodeBuffersOf<SessionBuffersOf<answer_elements_max, reply_size_max, question_size_max>,
                                  config_texts_size_max, addresses_max>>;
class AskingClient : public ClientWith<AskingBuffers> {};

using QuestionWords = std::vector<std::string>;

struct Answer {
  Status status = Status::ok;
  std::string error;               // The server's words.
  std::vector<std::string> texts;  // Of a reply, or of each of its elements.

  [[nodiscard]] bool is_text() const noexcept { return status == Status::ok && texts.size() == 1; }
};

// Once an answer did not come, or the time is over, nothing more is asked: the server has a fault that comes before all others, and
// each question more would cost its timeout.
class Asker {
 public:
  Asker(ClientBase& client, bool& silent, Instant until) : client_(client), silent_(silent), until_(until) {}

  Answer operator()(const QuestionWords& words);

 private:
  ClientBase& client_;
  bool& silent_;
  Instant until_;
};

[[nodiscard]] bool contains(const std::string& text, const char* part) noexcept;
// By the words of Redis and Valkey, of all versions with an ACL. That a key or a channel is refused is no matter of the command.
[[nodiscard]] bool refuses_command(const std::string& words) noexcept;
// The user may not run the command, or the script what it calls: that is said in other words, and as another error.
[[nodiscard]] bool is_refusal(const Answer& answer) noexcept;

}  // namespace holdfast::cli
