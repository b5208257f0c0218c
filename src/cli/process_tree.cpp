// SPDX-License-Identifier: MIT
#include "process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "run_list.hpp"
#include "warden.hpp"

namespace holdfast::cli {

namespace {

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

std::string read_whole(const std::string& path) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[4096];
  for (;;) {
    const ssize_t count = ::read(file, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(part, static_cast<std::size_t>(count));
  }
  ::close(file);
  return text;
}

std::optional<pid_t> number_of(std::string_view text) {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The next word behind spaces, taken off.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

// All process ids of /proc.
std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc"));
  if (folder == nullptr) return found;
  while (const dirent* const entry = ::readdir(folder.get()))
    if (const std::optional<pid_t> pid = number_of(entry->d_name)) found.push_back(*pid);
  return found;
}

// "pid (name) state parent group ...". The name may hold any byte, parentheses among them, so the last one counts.
std::optional<Process> read_stat(pid_t pid) {
  const std::string text = read_whole("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos || text.find('(') >= bracket) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(bracket + 1);
  const std::size_t open = text.find('(');
  const std::string_view name = std::string_view(text).substr(open + 1, bracket - open - 1);
  const std::string_view state = take_word(rest);
  const std::optional<pid_t> parent = number_of(take_word(rest));
  const std::optional<pid_t> group = number_of(take_word(rest));
  if (!parent || !group) return std::nullopt;
  const bool zombie = state == "Z" || state == "X" || state == "x";
  return Process{.pid = pid, .parent = *parent, .group = *group, .zombie = zombie, .warden = name == warden_name};
}

}  // namespace

std::vector<Process> descendants_of(pid_t root) {
  std::vector<Process> others;
  for (const pid_t pid : all_processes())
    if (const std::optional<Process> process = read_stat(pid)) others.push_back(*process);

  // Generation by generation.
  std::vector<Process> found;
  std::vector<pid_t> parents = {root};
  while (!parents.empty()) {
    std::vector<pid_t> children;
    for (const Process& process : others) {
      for (const pid_t parent : parents) {
        if (process.parent != parent) continue;
        found.push_back(process);
        children.push_back(process.pid);
        break;
      }
    }
    parents.swap(children);
  }
  return found;
}

bool alone_in_group() {
  bool seen = false;
  for (const pid_t pid : all_processes()) {
    const std::optional<Process> process = read_stat(pid);
    if (!process || process->zombie || process->group != ::getpgrp()) continue;
    if (pid != ::getpid()) return false;
    seen = true;
  }
  return seen;
}

std::vector<Process> bearers_of(const std::string& token) {
  const std::string variable = std::string(run_list_variable) + "=";
  std::vector<Process> found;
  for (const pid_t pid : all_processes()) {
    const std::string environment = read_whole("/proc/" + std::to_string(pid) + "/environ");
    std::size_t begin = 0;
    while (begin < environment.size()) {
      const std::size_t end = std::min(environment.find('\0', begin), environment.size());
      const std::string entry = environment.substr(begin, end - begin);
      begin = end + 1;
      if (entry.compare(0, variable.size(), variable) != 0) continue;
      if (RunList(entry.substr(variable.size())).find_token(token) == nullptr) continue;
      if (const std::optional<Process> process = read_stat(pid)) found.push_back(*process);
      break;
    }
  }
  return found;
}

}  // namespace holdfast::cli
