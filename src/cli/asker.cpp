// SPDX-License-Identifier: MIT
#include "asker.hpp"

#include "exit_codes.hpp"
#include "holdfast/core/node_task.hpp"

namespace holdfast::cli {

namespace {

class PlainQuestion : public Question {
 public:
  explicit PlainQuestion(const QuestionWords& words) : Question{put, take_reply, conclude} {
    for (const std::string& word : words) arguments_.emplace_back(ByteView(std::string_view(word)));
  }
  std::vector<std::string> texts;

 private:
  static Status put(Question& self, Node& node, const ReplyTag& tag, Instant now) noexcept {
    const auto& arguments = static_cast<PlainQuestion&>(self).arguments_;
    return node.ask(Arguments(arguments.data(), arguments.size()), tag, now);
  }
  static std::string text_of(const RespValue& value) {
    if (value.is(RespKind::integer)) return std::to_string(value.integer());
    return value.is(RespKind::bulk) || value.is(RespKind::simple) ? std::string(value.text().string_view()) : "";
  }
  static bool take_reply(Question& self, const RespValue& reply) noexcept {
    auto& texts = static_cast<PlainQuestion&>(self).texts;
    texts.clear();
    if (!reply.is(RespKind::array)) texts.push_back(text_of(reply));
    for (std::uint32_t index = 0; reply.is(RespKind::array) && index < reply.count(); ++index)
      texts.push_back(text_of(reply.at(index)));
    return true;
  }
  static bool conclude(Question&, Status&) noexcept { return false; }

  std::vector<Argument> arguments_;
};

}  // namespace

Answer Asker::operator()(const QuestionWords& words) {
  Answer answer;
  if (Client::now() >= until_) silent_ = true;
  answer.status = Status::timed_out;
  if (silent_) return answer;
  PlainQuestion question(words);
  answer.status = client_.put(question);
  silent_ = is_absence(answer.status);
  if (answer.status != Status::ok) answer.error = std::string(client_.error_text().string_view());
  answer.texts = std::move(question.texts);
  return answer;
}

bool contains(const std::string& text, const char* part) noexcept { return text.find(part) != std::string::npos; }

bool refuses_command(const std::string& words) noexcept { return contains(words, "permissions to run"); }

bool is_refusal(const Answer& answer) noexcept {
  return answer.status == Status::no_permission || contains(answer.error, "ACL failure") ||
         contains(answer.error, "can't run this command");
}

}  // namespace holdfast::cli
