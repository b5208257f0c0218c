// SPDX-License-Identifier: MIT
//
// usage: write_completions bash | zsh | fish
//
// Writes what completes the holdfast command in a shell. It runs when holdfast is built, and asks the command itself for its
// options. Here stands only what the command does not know of them: a few words, and what their values are. An option
// without these words, and words without an option, fail the build.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "lock_choice.hpp"
#include "options.hpp"

namespace {

using holdfast::cli::declared_options;
using holdfast::cli::DeclaredOption;

enum class Value { none, kind, file, other };

struct Words {
  std::string_view name;  // The last of an option's names.
  std::string_view text;  // No quotes, brackets or colons: three shells read it.
  Value value = Value::none;
};
constexpr Words words[] = {
    {"--help", "print a summary"},
    {"--version", "print the version"},
    {"--url", "where the server is, several make a quorum", Value::other},
    {"--password-file", "the file with the password", Value::file},
    {"--tls-ca", "the file with the authorities that are trusted", Value::file},
    {"--tls-cert", "the file with our certificate", Value::file},
    {"--tls-key", "the file with the key of our certificate", Value::file},
    {"--tls-server-name", "the name that the certificate of the server must have", Value::other},
    {"--tls-insecure", "do not verify who the server is"},
    {"--kind", "the kind of lock", Value::kind},
    {"--quiet", "say nothing of what the exit code says"},
    {"--permits", "how many permits a semaphore has", Value::other},
    {"--fence", "a fence under a mutex or a fair lock, too"},
    {"--wait", "wait for so many seconds at most", Value::other},
    {"--lease", "how many seconds the lock lasts without a renewal", Value::other},
    {"--busy-exit-code", "the exit code when the lock was not acquired", Value::other},
    {"--max-lease", "the longest lease of all who use a quorum, in seconds", Value::other},
    {"--acks", "how many replicas must have the grant", Value::other},
    {"--acks-timeout", "how many seconds replicas are asked for that", Value::other},
    {"--stats", "the file for the numbers of the run", Value::file},
    {"--stats-interval", "how many seconds are between two writes of that file", Value::other},
    {"--stats-label", "a label on each of those numbers", Value::other},
    {"--no-restart-guard", "servers that were restarted vote at once"},
    {"--no-wait", "do not wait for the lock"},
    {"--verbose", "say what happens"},
    {"--grace", "seconds from TERM to KILL", Value::other},
    {"--keep-env", "the command gets the variables with passwords, too"},
    {"--json", "print JSON"},
    {"--token", "what holdfast acquire printed", Value::other},
    {"--token-file", "the file that holdfast acquire printed to", Value::file},
    {"--seconds", "how long clocks and round trips are looked at", Value::other},
    {"--force", "from whoever holds it"},
    {"--pattern", "the locks whose names match", Value::other},
    {"--for", "end after so many seconds", Value::other},
    {"--svg", "the file for a drawing of what was seen", Value::file},
};

struct Verb {
  std::string_view name;
  std::string_view text;
};
constexpr Verb verbs[] = {
    {"run", "run a command while holding a lock"},
    {"acquire", "take a lock, print its token and end"},
    {"renew", "extend a lock, by its token"},
    {"release", "let a lock go by its token, or take it from whoever holds it"},
    {"info", "show who holds a lock"},
    {"doctor", "see whether locks are safe on a server, or on several"},
    {"watch", "show locks as they change hands, and draw what was seen"},
};

// One option and its words.
struct Entry {
  DeclaredOption option;
  const Words* about = nullptr;
};
using Entries = std::vector<Entry>;

// Empty: something is missing, and was told.
Entries read_entries() {
  Entries entries;
  std::vector<std::string> missing;
  for (const DeclaredOption& option : declared_options()) {
    const auto* const about = std::find_if(std::begin(words), std::end(words),
                                           [&](const Words& it) { return it.name == option.names.back(); });
    if (about == std::end(words))
      missing.push_back("no words for the option " + option.names.back());
    else if ((about->value != Value::none) != option.takes_value)
      missing.push_back("whether " + option.names.back() + " takes a value is told wrongly");
    else
      entries.push_back({option, about});
    const bool known =
        option.subcommand.empty() ||
        std::any_of(std::begin(verbs), std::end(verbs), [&](const Verb& it) { return it.name == option.subcommand; });
    if (!known) missing.push_back("no words for the subcommand " + option.subcommand);
  }
  for (const Words& it : words)
    if (std::none_of(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.about == &it; }))
      missing.push_back("no option " + std::string(it.name));
  for (const Verb& it : verbs)
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.option.subcommand == it.name; }))
      missing.push_back("no subcommand " + std::string(it.name));
  for (const std::string& text : missing) std::fprintf(stderr, "write_completions: %s\n", text.c_str());
  return missing.empty() ? entries : Entries();
}

Entries entries_of(const Entries& all, std::string_view subcommand) {
  Entries entries;
  for (const Entry& entry : all)
    if (entry.option.subcommand == subcommand) entries.push_back(entry);
  return entries;
}

std::string kinds() {
  std::string text;
  for (int kind = 0; kind <= static_cast<int>(holdfast::cli::Kind::semaphore); ++kind)
    text += std::string(text.empty() ? "" : " ") + to_string(static_cast<holdfast::cli::Kind>(kind));
  return text;
}

std::string verb_names() {
  std::string text;
  for (const Verb& verb : verbs) text += (text.empty() ? "" : " ") + std::string(verb.name);
  return text;
}

// The names of all options that take such a value, as alternatives of a pattern. All the same: an option means the same in
// each subcommand.
std::string pattern_of(const Entries& all, Value value) {
  std::string pattern;
  for (const Words& it : words) {
    if (it.value != value) continue;
    const auto entry = std::find_if(all.begin(), all.end(), [&](const Entry& each) { return each.about == &it; });
    for (const std::string& name : entry->option.names) pattern += (pattern.empty() ? "" : " | ") + name;
  }
  return pattern;
}

void add(std::string& text, std::string_view line) {
  text += line;
  text += '\n';
}

// A word after "--" is a command's: run's begins with the one behind it.
std::string bash(const Entries& all) {
  std::string text;
  add(text, "# bash completion for holdfast(1). Made when holdfast was built.");
  add(text, "_holdfast() {");
  add(text, "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} index options=");
  add(text, "  COMPREPLY=()");
  add(text, "  for ((index = 1; index < COMP_CWORD; ++index)); do");
  add(text, "    [[ ${COMP_WORDS[index]} == -- ]] || continue");
  add(text, "    [[ ${COMP_WORDS[1]} == run ]] || return 0");
  add(text, "    if declare -F _command_offset >/dev/null; then _command_offset $((index + 1))");
  add(text, "    elif ((COMP_CWORD == index + 1)); then mapfile -t COMPREPLY < <(compgen -c -- \"$word\")");
  add(text, "    else mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); fi");
  add(text, "    return 0");
  add(text, "  done");
  add(text, "  # bash makes three words of --kind=read.");
  add(text,
      "  if [[ $word == '=' ]]; then word=; elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi");
  add(text, "  if ((COMP_CWORD == 1)); then");
  add(text, "    case $word in");
  add(
      text, "      -*) options=" + [&] {
        std::string names = "'";
        for (const Entry& entry : entries_of(all, ""))
          for (const std::string& name : entry.option.names) names += (names.size() == 1 ? "" : " ") + name;
        return names + "' ;;";
      }());
  add(text, "      *) options='" + verb_names() + "' ;;");
  add(text, "    esac");
  add(text, "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")");
  add(text, "    return 0");
  add(text, "  fi");
  add(text, "  case $before in");
  add(text, "    " + pattern_of(all, Value::kind) + ") mapfile -t COMPREPLY < <(compgen -W '" + kinds() +
                "' -- \"$word\"); return 0 ;;");
  add(text, "    " + pattern_of(all, Value::file) + ") mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return 0 ;;");
  add(text, "    " + pattern_of(all, Value::other) + ") return 0 ;;");
  add(text, "  esac");
  add(text, "  [[ $word == -* ]] || return 0");
  add(text, "  case ${COMP_WORDS[1]} in");
  for (const Verb& verb : verbs) {
    std::string line = "    " + std::string(verb.name) + ") options='";
    bool first = true;
    for (const Entry& entry : entries_of(all, verb.name))
      for (const std::string& name : entry.option.names) {
        line += (first ? "" : " ") + name;
        first = false;
      }
    add(text, line + "' ;;");
  }
  add(text, "  esac");
  add(text, "  mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")");
  add(text, "}");
  add(text, "complete -o filenames -F _holdfast holdfast");
  return text;
}

// One argument of _arguments: '(-w --wait)'{-w,--wait}'[text]:value:'.
std::string zsh_spec(const Entry& entry) {
  std::string exclusive;
  std::string names;
  for (const std::string& name : entry.option.names) {
    const bool is_long = name.substr(0, 2) == "--";
    exclusive += (exclusive.empty() ? "" : " ") + name;
    names += (names.empty() ? "" : ",") + name + (!entry.option.takes_value ? "" : is_long ? "=" : "+");
  }
  std::string value;
  if (entry.about->value == Value::kind) value = ":kind:(" + kinds() + ")";
  if (entry.about->value == Value::file) value = ":file:_files";
  if (entry.about->value == Value::other) value = ":value: ";
  const std::string text = "'[" + std::string(entry.about->text) + "]" + value + "'";
  const bool repeats = entry.about->name == "--url";
  if (entry.option.names.size() == 1) return (repeats ? "'*'" : "") + names + text;
  return "'(" + exclusive + ")'{" + names + "}" + text;
}

std::string zsh(const Entries& all) {
  std::string text;
  add(text, "#compdef holdfast");
  add(text, "# zsh completion for holdfast(1). Made when holdfast was built.");
  add(text, "_holdfast() {");
  add(text, "  local curcontext=$curcontext state line ret=1");
  add(text, "  typeset -A opt_args");
  std::string line = "  _arguments -C";
  for (const Entry& entry : entries_of(all, "")) line += " " + zsh_spec(entry);
  add(text, line + " '1:subcommand:->subcommand' '*::argument:->argument' && ret=0");
  add(text, "  case $state in");
  add(text, "    subcommand)");
  add(text, "      local -a subcommands=(");
  for (const Verb& verb : verbs) add(text, "        '" + std::string(verb.name) + ":" + std::string(verb.text) + "'");
  add(text, "      )");
  add(text, "      _describe -t subcommands subcommand subcommands && ret=0");
  add(text, "      ;;");
  add(text, "    argument)");
  add(text, "      case $line[1] in");
  for (const Verb& verb : verbs) {
    add(text, "        " + std::string(verb.name) + ")");
    // -S: nothing after a "--" is an option of ours.
    add(text, "          _arguments -S \\");
    for (const Entry& entry : entries_of(all, verb.name)) add(text, "            " + zsh_spec(entry) + " \\");
    add(text, verb.name == "run" ? "            '1:name: ' '*::command:_normal' && ret=0"
                                 : "            '1:name: ' && ret=0");
    add(text, "          ;;");
  }
  add(text, "      esac");
  add(text, "      ;;");
  add(text, "  esac");
  add(text, "  return ret");
  add(text, "}");
  add(text, "# Sourced by hand it only defines the function.");
  add(text, "[[ $zsh_eval_context[-1] == loadautofunc ]] && _holdfast \"$@\"");
  return text;
}

std::string fish(const Entries& all) {
  std::string text;
  add(text, "# fish completion for holdfast(1). Made when holdfast was built.");
  add(text, "complete -c holdfast -f");
  add(text, "# After a -- the words are a command's.");
  add(text, "function __holdfast_before_mark");
  add(text, "    not contains -- -- (commandline -opc)");
  add(text, "end");
  add(text,
      "complete -c holdfast -n 'not __holdfast_before_mark; and __fish_seen_subcommand_from run' "
      "-xa '(set -l words (commandline -opc) (commandline -ct); "
      "complete -C (string join \" \" -- $words[(math (contains -i -- -- $words) + 1)..-1]))'");
  for (const Verb& verb : verbs)
    add(text, "complete -c holdfast -n __fish_use_subcommand -a " + std::string(verb.name) + " -d '" +
                  std::string(verb.text) + "'");
  for (const Entry& entry : all) {
    const std::string& verb = entry.option.subcommand;
    std::string line = "complete -c holdfast -n " +
                       (verb.empty() ? std::string("__fish_use_subcommand")
                                     : "'__holdfast_before_mark; and __fish_seen_subcommand_from " + verb + "'");
    for (const std::string& name : entry.option.names)
      line += name.substr(0, 2) == "--" ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (entry.about->value == Value::kind) line += " -xa '" + kinds() + "'";
    if (entry.about->value == Value::file) line += " -rF";
    if (entry.about->value == Value::other) line += " -x";
    add(text, line + " -d '" + std::string(entry.about->text) + "'");
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view shell = count == 2 ? arguments[1] : "";
  auto* const write = shell == "bash" ? bash : shell == "zsh" ? zsh : shell == "fish" ? fish : nullptr;
  if (write == nullptr) {
    std::fputs("usage: write_completions bash | zsh | fish\n", stderr);
    return 64;
  }
  const Entries all = read_entries();
  if (all.empty()) return 1;
  const std::string text = write(all);
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
