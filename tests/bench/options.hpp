// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bench {

// A benchmark's command line: `--name VALUE`, and flags.
class OptionParser {
 public:
  // What an option is stored in: a flag, a number or a text.
  using Target = std::variant<bool*, double*, int*, std::size_t*, std::string*>;

  void add(std::string_view name, Target target) { options_.push_back({name, target, {}}); }
  void add_choice(std::string_view name, std::string& target, std::initializer_list<const char*> choices) {
    options_.push_back({name, &target, choices});
  }
  // False where the arguments are not understood.
  [[nodiscard]] bool parse(int argc, char** argv) const {
    for (int index = 1; index < argc; ++index) {
      const Option* const option = find(argv[index]);
      if (option == nullptr) return false;
      if (auto* const flag = std::get_if<bool*>(&option->target); flag != nullptr) {
        **flag = true;
        continue;
      }
      if (++index == argc || !store(*option, argv[index])) return false;
    }
    return true;
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
    if (auto* const number = std::get_if<double*>(&option.target)) **number = std::atof(value);
    if (auto* const number = std::get_if<int*>(&option.target)) **number = std::atoi(value);
    if (auto* const number = std::get_if<std::size_t*>(&option.target)) **number = std::strtoul(value, nullptr, 10);
    if (auto* const text = std::get_if<std::string*>(&option.target)) **text = value;
    for (const char* const choice : option.choices)
      if (std::string_view(choice) == value) return true;
    return option.choices.empty();
  }

  std::vector<Option> options_;
};

}  // namespace bench
