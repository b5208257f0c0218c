// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <functional>
#include <iterator>
#include <optional>

#include "help_text.hpp"
#include "holdfast/lock_machine.hpp"
#include "holdfast/url.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

// What is wrong with the command line, as a sentence without a full stop.
struct UsageError {
  std::string text;
};

// The words in front of the first "--", and those behind it. CLI11 sees only the former, so that no byte of a command
// is ever taken for an option.
struct SplitArguments {
  std::vector<std::string> words;
  std::vector<std::string> rest;
  bool marked = false;
};

SplitArguments split_at_mark(int count, char** arguments) {
  SplitArguments split;
  for (int index = 1; index < count; ++index) {
    const std::string word = arguments[index];
    if (split.marked)
      split.rest.push_back(word);
    else if (word == "--")
      split.marked = true;
    else
      split.words.push_back(word);
  }
  return split;
}

// The texts as they were given. They are judged after CLI11 is done, by our own readers: CLI11's would take "0x10",
// "1e300" and "nan" for numbers.
struct RunTexts {
  std::optional<std::string> name;
  std::optional<std::string> wait;
  std::optional<std::string> lease;
  std::optional<std::string> exit_code;
  std::optional<std::string> grace;
  std::optional<std::string> url;
  bool no_wait = false;
  bool verbose = false;
};

void keep_in(CLI::App& app, const std::string& names, std::optional<std::string>& text) {
  // A callback and no variable: where CLI11 fills in variables, some texts have a meaning of their own to it.
  CLI::Option* const option =
      app.add_option_function<std::string>(names, std::function<void(const std::string&)>([](const std::string&) {}));
  option->take_last();
  option->each([&text](const std::string& given) { text = given; });
}

void declare_run(CLI::App& app, RunTexts& texts) {
  keep_in(app, "NAME", texts.name);
  keep_in(app, "-w,--wait", texts.wait);
  keep_in(app, "-l,--lease", texts.lease);
  keep_in(app, "-E,--busy-exit-code", texts.exit_code);
  keep_in(app, "-k,--grace", texts.grace);
  keep_in(app, "--url", texts.url);
  app.add_flag("-n,--no-wait", texts.no_wait);
  app.add_flag("-v,--verbose", texts.verbose);
}

Duration seconds_of(const char* option, const std::string& text) {
  const std::optional<Duration> duration = parse_seconds(text);
  if (!duration)
    throw UsageError{std::string(option) + ": '" + escaped(text) +
                     "' is no time; it takes seconds such as 30 or 0.25, with up to nine digits on each side"};
  return *duration;
}

int exit_code_from(const std::string& text) {
  int code = 0;
  bool valid = !text.empty() && text.size() <= 3;
  for (const char byte : text) {
    valid = valid && byte >= '0' && byte <= '9';
    if (valid) code = code * 10 + (byte - '0');
  }
  if (!valid || code > exit_code_max)
    throw UsageError{"-E: '" + escaped(text) + "' is no exit code; it takes a number from 0 to 255"};
  return code;
}

Duration lease_from(const std::string& text) {
  const Duration lease = seconds_of("-l", text);
  if (lease < lease_min || lease > lease_max || lease % std::chrono::milliseconds(1) != Duration::zero())
    throw UsageError{"-l: a lease has whole milliseconds, from " + seconds_text(lease_min) + " to " +
                     seconds_text(lease_max) + " seconds; '" + escaped(text) + "' has not"};
  return lease;
}

// Long enough for a command to tidy up, and short beside the lease, so that a renewal may fail a few times first.
Duration default_grace(Duration lease) noexcept {
  constexpr Duration grace_max = std::chrono::seconds(5);
  return lease / 6 < grace_max ? lease / 6 : grace_max;
}

Duration grace_from(const std::string& text, Duration lease) {
  const Duration grace = seconds_of("-k", text);
  if (grace > lease / 2)
    throw UsageError{"-k: " + seconds_text(grace) + " seconds of grace are more than half of the lease of " +
                     seconds_text(lease) + " seconds"};
  return grace;
}

// One request may take half of a short lease: what is granted later is worth little.
Duration request_timeout_for(Duration lease) noexcept {
  const Duration half = lease / 2;
  return half < request_timeout_default ? half : request_timeout_default;
}

ClientConfig server_from(const std::optional<std::string>& option, const char* url_of_environment, Duration lease) {
  ClientConfig server;
  const char* reason = nullptr;
  // Never the URL itself: it may hold a password.
  if (option) {
    if (parse_url(*option, server, &reason) != Status::ok) throw UsageError{std::string("--url: ") + reason};
  } else if (url_of_environment != nullptr) {
    if (parse_url(std::string_view(url_of_environment), server, &reason) != Status::ok)
      throw UsageError{std::string("HOLDFAST_URL: ") + reason};
  }
  server.request_timeout = request_timeout_for(lease);
  if (const ConfigProblem problem = validate(server); problem.found())
    throw UsageError{std::string(option ? "--url: " : "HOLDFAST_URL: ") + problem.field + ": " + problem.reason};
  return server;
}

// NAME stands in front of the "--", or, so that it may begin with a dash, behind it and in front of another one.
void take_name_and_command(RunOptions& options, const RunTexts& texts, SplitArguments&& split) {
  auto command = split.rest.begin();
  if (texts.name) {
    options.name = *texts.name;
    if (!split.marked) throw UsageError{"there is no command: NAME must be followed by -- and the command"};
  } else {
    if (split.rest.size() < 2 || split.rest[1] != "--") throw UsageError{"NAME is missing in front of the --"};
    options.name = split.rest[0];
    command += 2;
  }
  options.command.assign(std::make_move_iterator(command), std::make_move_iterator(split.rest.end()));
  if (options.name.empty()) throw UsageError{"NAME is empty"};
  if (options.name.size() > key_size_max)
    throw UsageError{"NAME has " + std::to_string(options.name.size()) + " bytes; a lock's name has at most " +
                     std::to_string(key_size_max)};
  if (options.command.empty()) throw UsageError{"there is no command behind the --"};
}

RunOptions run_options(const RunTexts& texts, SplitArguments&& split, const char* url_of_environment) {
  RunOptions options;
  take_name_and_command(options, texts, std::move(split));
  if (texts.no_wait && texts.wait) throw UsageError{"-n and -w exclude each other"};
  if (texts.no_wait) options.wait = no_wait;
  if (texts.wait) options.wait = seconds_of("-w", *texts.wait);
  if (texts.lease) options.lease = lease_from(*texts.lease);
  options.grace = texts.grace ? grace_from(*texts.grace, options.lease) : default_grace(options.lease);
  if (texts.exit_code) options.not_acquired = exit_code_from(*texts.exit_code);
  options.server = server_from(texts.url, url_of_environment, options.lease);
  options.verbose = texts.verbose;
  return options;
}

Answered print(const char* text) {
  const bool printed = std::fputs(text, stdout) >= 0 && std::fflush(stdout) == 0;
  return {printed ? exit_ok : exit_output};
}

Answered complain(const std::string& text, const char* help) {
  say(text);
  say(std::string("see ") + help + " --help");
  return {exit_usage};
}

}  // namespace

Invocation read_command_line(int argument_count, char** arguments, const char* url_of_environment) {
  SplitArguments split = split_at_mark(argument_count, arguments);
  CLI::App app("", "holdfast");
  app.set_help_flag("-h,--help", "");
  app.set_version_flag("--version", std::string(HOLDFAST_VERSION));
  app.require_subcommand(1);
  CLI::App& run = *app.add_subcommand("run");
  RunTexts texts;
  declare_run(run, texts);
  try {
    // CLI11 takes the words from the back.
    app.parse(std::vector<std::string>(split.words.rbegin(), split.words.rend()));
    return run_options(texts, std::move(split), url_of_environment);
  } catch (const CLI::CallForHelp&) {
    return print(run.parsed() ? run_help_text : help_text);
  } catch (const CLI::CallForVersion&) {
    return print(version_text);
  } catch (const CLI::ParseError& error) {
    return complain(escaped(std::string(error.what())), run.parsed() ? "holdfast run" : "holdfast");
  } catch (const UsageError& error) {
    return complain(error.text, "holdfast run");
  }
}

}  // namespace holdfast::cli
