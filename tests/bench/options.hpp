// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bench {

// A benchmark's command line, `--name VALUE` and flags, and the help that lists it.
class OptionParser {
 public:
  // What an option is stored in: a flag, a number or a text.
  using Target = std::variant<bool*, double*, int*, std::size_t*, std::string*>;
  using Choices = std::initializer_list<const char*>;

  // `usage` is the option as the help shows it: "--seconds N". A text with `choices` must be one of them.
  void add(std::string_view usage, Target target, std::string_view text, Choices choices = {}) {
    options_.push_back({usage.substr(0, usage.find(' ')), target, choices});
    help_line(usage, text);
  }
  // A paragraph of the help, between the options before it and after it.
  void say(std::string_view paragraph) { ((help_ += '\n') += paragraph) += "\n\n"; }
  void help_line(std::string_view usage, std::string_view text) {
    char line[160];
    (void)std::snprintf(line, sizeof line, "  %-19.*s %.*s\n", static_cast<int>(usage.size()), usage.data(),
                        static_cast<int>(text.size()), text.data());
    help_ += line;
  }
  [[nodiscard]] const std::string& help() const { return help_; }

  // False where the arguments are not understood.
  [[nodiscard]] bool parse(int argc, char** argv) const {
    take(argc, argv);
    return argc == 1;
  }
  // Takes what it understands out of the arguments, and leaves the rest.
  void take(int& argc, char** argv) const {
    int kept = 1;
    for (int index = 1; index < argc; ++index) {
      const Option* const option = find(argv[index]);
      bool* const* const flag = option == nullptr ? nullptr : std::get_if<bool*>(&option->target);
      if (flag != nullptr)
        **flag = true;
      else if (option != nullptr && index + 1 < argc && store(*option, argv[index + 1]))
        ++index;
      else
        argv[kept++] = argv[index];
    }
    argc = kept;
  }

 private:
  struct Option {
    std::string_view name;
    Target target;
    std::vector<const char*> choices;
  };

  [[nodiscard]] const Option* find(std::string_view name) const {
    for (const Option& option : options_)
      if (option.name == name) return &option;
    return nullptr;
  }
  [[nodiscard]] static bool store(const Option& option, const char* value) {
    bool allowed = option.choices.empty();
    for (const char* const choice : option.choices) allowed = allowed || std::string_view(choice) == value;
    if (!allowed) return false;
    if (auto* const number = std::get_if<double*>(&option.target)) **number = std::atof(value);
    if (auto* const number = std::get_if<int*>(&option.target)) **number = std::atoi(value);
    if (auto* const number = std::get_if<std::size_t*>(&option.target)) **number = std::strtoul(value, nullptr, 10);
    if (auto* const text = std::get_if<std::string*>(&option.target)) **text = value;
    return true;
  }

  std::vector<Option> options_;
  std::string help_;
};

}  // namespace bench
