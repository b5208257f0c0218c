// SPDX-License-Identifier: MIT
//
//     connect -> look -> pause -> look -> ... -> the end: a signal, --for, what no waiting heals
//                 |  ^
//                 v  | it answers
//               silent: asked again after longer and longer pauses
#include "watch_command.hpp"

#include <string.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "failure_text.hpp"
#include "key_events.hpp"
#include "key_reader.hpp"
#include "live_screen.hpp"
#include "lock_sight.hpp"
#include "lock_table.hpp"
#include "logbook.hpp"
#include "messages.hpp"
#include "new_file.hpp"
#include "seconds.hpp"
#include "timeline.hpp"
#include "watch_pace.hpp"

namespace holdfast::cli {

namespace {

// A frame is drawn when something has changed, and as often as this at least: times run.
constexpr Duration frame_pause = std::chrono::milliseconds(250);

std::int64_t wall_clock() noexcept {
  timespec time{};
  (void)::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

class Watch {
 public:
  explicit Watch(WatchOptions& options)
      : options_(options),
        start_(ClientBase::now()),
        wall_start_(wall_clock()),
        end_(start_ + options.duration),
        book_(start_),
        timeline_(start_) {
    chosen_ = !options.name.empty()      ? Chosen::by_name
              : !options.pattern.empty() ? Chosen::by_pattern
                                         : Chosen::by_shape;
    head_.scans = chosen_ != Chosen::by_name;
    head_.server = address_text(options.server);
    head_.scope = chosen_ == Chosen::by_name      ? escaped(options.name)
                  : chosen_ == Chosen::by_pattern ? "pattern " + escaped(options.pattern)
                                                  : "what looks like a lock";
  }

  int run();

 private:
  [[nodiscard]] Status look(std::size_t& keys);
  [[nodiscard]] Status read(const std::vector<std::string>& names);
  [[nodiscard]] Status scan();
  void take(const KeyReader::Answer& answer, bool named, Instant asked, Instant answered);
  bool hear();
  [[nodiscard]] bool tell(LiveScreen& screen);
  [[nodiscard]] int finish(int code);

  WatchOptions& options_;
  Instant start_;
  std::int64_t wall_start_;
  Instant end_;
  Chosen chosen_ = Chosen::by_shape;
  Logbook book_;
  Timeline timeline_;
  TableHead head_;
  KeyReader reader_;
  BackOff back_off_;
  std::optional<KeyEvents> events_;  // Of the lock that is named.
  std::minstd_rand random_{std::random_device{}()};
  std::string last_name_;           // Of the round before, in the order of names.
  std::vector<std::string> shown_;  // The locks in the table.
  Instant sweep_start_;
  bool sweeping_ = false;
  std::uint64_t left_out_ = 0;  // In the sweep under way.
  std::uint64_t refused_ = 0;
  Instant drawn_;
  bool changed_ = true;
  bool limits_told_ = false;
};

// ---- Looking ---------------------------------------------------------------------------------------------------------

void Watch::take(const KeyReader::Answer& answer, bool named, Instant asked, Instant answered) {
  for (const KeyFacts& facts : answer.keys) {
    std::optional<LockSight> sight = sight_of(facts, chosen_);
    // What was a lock, and is none now, is gone.
    if (!sight && named) sight = LockSight{.name = facts.name};
    if (sight) book_.handle_sight(*sight, asked, answered);
  }
}

Status Watch::read(const std::vector<std::string>& names) {
  for (std::size_t first = 0; first < names.size(); first += question_keys_max) {
    const auto begin = names.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(first + question_keys_max, names.size()));
    KeyReader::Answer answer;
    const Instant asked = ClientBase::now();
    if (const Status status = reader_.read({begin, end}, answer); status != Status::ok) return status;
    const Instant answered = ClientBase::now();
    book_.handle_answer(answered);
    hear();  // What came before the look tells what the look finds.
    take(answer, true, asked, answered);
  }
  return Status::ok;
}

Status Watch::scan() {
  KeyReader::Answer answer;
  const Instant asked = ClientBase::now();
  if (!sweeping_) sweep_start_ = asked;
  sweeping_ = true;
  if (const Status status = reader_.scan(options_.pattern, chosen_ == Chosen::by_shape, answer); status != Status::ok)
    return status;
  const Instant answered = ClientBase::now();
  book_.handle_answer(answered);
  take(answer, false, asked, answered);
  left_out_ += answer.left_out;
  refused_ += answer.refused;
  if (!answer.last) return Status::ok;
  head_.left_out = std::exchange(left_out_, 0);
  head_.refused = std::exchange(refused_, 0);
  head_.sweep = answered - sweep_start_;
  head_.swept = true;
  sweeping_ = false;
  book_.handle_sweep();
  return Status::ok;
}

// One round. `keys`: how many it looked at.
Status Watch::look(std::size_t& keys) {
  keys = 0;
  if (chosen_ == Chosen::by_name) {
    keys = 1;
    return read({options_.name});
  }
  const std::size_t known = book_.locks().size();
  const RoundPlan plan = plan_round(known, shown_.size(), true, head_.swept);
  std::vector<std::string> names = book_.names_after(last_name_, plan.known == known ? known : plan.known - plan.shown);
  if (!names.empty()) last_name_ = names.back();
  if (names.size() < known)
    names.insert(names.end(), shown_.begin(), shown_.begin() + static_cast<std::ptrdiff_t>(plan.shown));
  keys += names.size();
  if (const Status status = read(names); status != Status::ok) return status;
  for (std::size_t scanned = 0; scanned < plan.scanned; scanned += question_keys_max) {
    keys += question_keys_max;
    if (const Status status = scan(); status != Status::ok) return status;
    if (!sweeping_) break;  // All keys have been seen: the next round begins anew.
  }
  return Status::ok;
}

// True: something has happened to the lock.
bool Watch::hear() {
  if (!events_) return false;
  const std::vector<std::string> events = events_->take(ClientBase::now(), static_cast<std::uint32_t>(random_()));
  for (const std::string& event : events) book_.handle_event(options_.name, event);
  return !events.empty();
}

// ---- Telling ---------------------------------------------------------------------------------------------------------

// False: nobody can read it any more.
bool Watch::tell(LiveScreen& screen) {
  const Instant now = ClientBase::now();
  std::string lines;
  for (Change change; book_.poll_change(change);) {
    if (!options_.svg.empty()) timeline_.handle_change(change);
    changed_ = true;
    if (screen.shown()) continue;
    const std::string time = time_text(wall_start_ + (change.at - start_).count());
    lines += (options_.json ? change_json(change, time) : change_line(change, time)) + "\n";
  }
  if (!lines.empty() && !screen.write(lines)) return false;
  // Once: it may be another number with each look at all keys.
  if (const std::string limits = limits_text(book_, head_); !screen.shown() && !limits_told_ && !limits.empty()) {
    limits_told_ = true;
    say(limits);
  }
  if (!screen.shown()) return true;
  const bool due = now - drawn_ >= frame_pause;
  if (!screen.take_redraw() && !changed_ && !due) return true;
  changed_ = false;
  drawn_ = now;
  Table table = table_of(book_, head_, screen.size(), now);
  shown_ = std::move(table.names);
  return screen.draw(table.lines);
}

int Watch::finish(int code) {
  if (options_.svg.empty()) return code;
  const std::string title =
      "holdfast watch: " + head_.scope + " on " + head_.server + ", from " + time_text(wall_start_) + " on";
  const std::string problem = write_new_file(options_.svg, timeline_.svg(title, ClientBase::now()));
  if (problem.empty()) return code;
  say("--svg: " + escaped(options_.svg) + ": " + problem);
  return code == exit_ok ? exit_output : code;
}

int Watch::run() {
  if (!options_.svg.empty())
    if (const std::string problem = new_file_problem(options_.svg); !problem.empty()) {
      say("--svg: " + escaped(options_.svg) + ": " + problem);
      return exit_output;
    }
  int code = exit_ok;
  std::string last_words;
  {
    Status status = reader_.connect(options_.server);
    ::explicit_bzero(&options_.server.password, sizeof options_.server.password);
    if (status != Status::ok) {
      say("no connection to " + head_.server + ": " + failure_text(status, reader_.client()));
      return exit_code_of(status, reader_.client(), exit_no_server);
    }
    LiveScreen screen(reader_.client(), options_.json);
    if (chosen_ == Chosen::by_name) events_.emplace(reader_.client(), options_.name);
    Instant next = ClientBase::now();
    Instant looked;
    while (screen.ending_signal() == 0 && ClientBase::now() < end_) {
      if (ClientBase::now() >= next) {
        std::size_t keys = 0;
        status = look(keys);
        const Instant now = ClientBase::now();
        looked = now;
        if (status == Status::ok) {
          back_off_.reset();
          next = now + pause_after(keys);
        } else if (status != Status::cancelled) {
          if (!heals(status)) {
            last_words = "cannot look at locks: " + failure_text(status, reader_.client());
            code = exit_code_of(status, reader_.client(), exit_no_server);
            break;
          }
          head_.retry = back_off_.next(static_cast<std::uint32_t>(random_()));
          next = now + head_.retry;
          const bool plain = is_absence(status) && reader_.client().error_text().empty();
          const std::string why = plain ? cause(status) : failure_text(status, reader_.client());
          book_.handle_silence(head_.server + ": " + why + " It is asked again until it answers.", now);
        }
        book_.handle_timeout(now);
      }
      if (!tell(screen)) {
        code = exit_output;
        break;
      }
      const auto earlier_of = [](Instant one, Instant other) { return one < other ? one : other; };
      Instant then = earlier_of(next, end_);
      if (screen.shown()) then = earlier_of(then, drawn_ + frame_pause);
      const int socket = events_ ? events_->socket() : -1;
      if (screen.sleep_until(then, socket, socket >= 0 ? events_->poll_events() : short{0}) && hear() &&
          book_.silence().empty())
        next = earlier_of(next, looked + event_pause_min);
    }
    if (code == exit_ok && !tell(screen)) code = exit_output;
    if (code == exit_output) last_words = output_problem();
  }
  if (!last_words.empty()) say(last_words);
  return finish(code);
}

}  // namespace

int watch(WatchOptions& options) {
  // Its buffers are large, and it is one for the process.
  return std::make_unique<Watch>(options)->run();
}

}  // namespace holdfast::cli
