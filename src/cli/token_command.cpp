// SPDX-License-Identifier: MIT
#include "token_command.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "connection.hpp"
#include "failure_text.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/inspection.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

// What one server, or a quorum of several, has said.
struct Answers {
  std::size_t confirmed = 0;
  std::size_t lost = 0;     // There is no such hold.
  std::size_t unknown = 0;  // Sent, and the reply was lost.
  int failure = exit_no_server;
  std::vector<Instant> valid_until;  // Of a renewal: of those that confirmed.
};

// `done`: "renewed" or "released".
struct Deed {
  const HeldToken& hold;
  const char* done;
  Status (*ask)(Client& client, const Deed& deed, Instant& valid_until);
  LockTiming timing{};
};

// Asks all servers at once that there is a connection to. What keeps one from answering is said.
Answers ask_all(const Deed& deed, const std::vector<NodeConnection>& nodes) {
  struct Answer {
    Status status = Status::ok;
    Instant valid_until = Instant::max();
  };
  std::vector<Answer> given(nodes.size());
  at_once(nodes.size(), [&](std::size_t index) {
    if (nodes[index].code == exit_ok)
      given[index].status = deed.ask(*nodes[index].client, deed, given[index].valid_until);
  });
  Answers answers;
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const NodeConnection& node = nodes[index];
    if (node.code != exit_ok) {
      answers.failure = node.code;
      continue;
    }
    Client& client = *node.client;
    const auto [status, valid_until] = given[index];
    const std::string what = escaped(deed.hold.name) + (nodes.size() == 1 ? "" : " on " + address_text(*node.server));
    if (status == Status::ok) {
      ++answers.confirmed;
      answers.valid_until.push_back(valid_until);
    } else if (status == Status::lock_lost) {
      ++answers.lost;
    } else if (status == Status::outcome_unknown) {
      ++answers.unknown;
      say("sent, and the reply was lost: " + what + " may be " + deed.done + " or not");
    } else if (status == Status::wrong_type) {
      answers.failure = exit_no_lock;
      say(what + " was not " + deed.done + ": the key is no lock of this kind (" + escaped(client.error_text()) + ")");
    } else {
      answers.failure = exit_code_of(status, client, exit_software);
      say(what + " was not " + deed.done + ": " + failure_text(status, client));
    }
  }
  return answers;
}

// What the answers come to, and how that is said; `done` is on how many servers it is as it was wanted. exit_ok says nothing yet.
int judge(const Answers& answers, const Deed& deed, std::size_t done) {
  const std::size_t count = deed.hold.servers.size();
  const std::string name = escaped(deed.hold.name);
  if (done >= majority_of(count)) return exit_ok;
  if (answers.lost > count - majority_of(count)) {
    say(name + " was not " + deed.done + ": no hold has this token any more; its lease has ended, or it was released");
    return exit_lost;
  }
  if (answers.unknown != 0 && done + answers.unknown >= majority_of(count)) {
    say("it is unknown whether " + name + " was " + deed.done +
        "; asking again is safe: it touches nothing but this hold");
    return exit_unknown;
  }
  if (count > 1)
    say("a majority of the " + std::to_string(count) + " nodes did not confirm it: " + name + " was not " + deed.done);
  return answers.failure;
}

}  // namespace

int renew(const RenewOptions& options) {
  const Deed deed = {.hold = options.hold,
                     .done = "renewed",
                     .ask =
                         [](Client& client, const Deed& it, Instant& valid_until) {
                           return renew_adopted(client, kind_table(it.hold.kind), Key(ByteView(it.hold.name)),
                                                it.hold.token, it.timing, valid_until);
                         },
                     .timing = {.lease = options.lease}};
  const std::vector<NodeConnection> nodes = connect_all(options.hold.servers);
  if (tell_twins(nodes)) return exit_usage;
  Answers answers = ask_all(deed, nodes);
  if (const int code = judge(answers, deed, answers.confirmed); code != exit_ok) return code;
  // As long as the first of a majority does not end.
  std::sort(answers.valid_until.begin(), answers.valid_until.end(), std::greater<>());
  const Instant valid_until = answers.valid_until[majority_of(nodes.size()) - 1];
  const Instant now = Client::now();
  if (now >= valid_until) {
    say("the answer took longer than the lease: " + escaped(options.hold.name) + " may have ended meanwhile");
    return exit_unknown;
  }
  if (!options.hold.quiet)
    say("renewed " + escaped(options.hold.name) + "; it lasts for " + seconds_text(valid_until - now) +
        " seconds at least");
  return exit_ok;
}

int release_by_token(const TokenReleaseOptions& options) {
  const Deed deed = {.hold = options.hold, .done = "released", .ask = [](Client& client, const Deed& it, Instant&) {
                       return release_adopted(client, kind_table(it.hold.kind), Key(ByteView(it.hold.name)),
                                              it.hold.token);
                     }};
  const std::vector<NodeConnection> nodes = connect_all(options.hold.servers);
  if (tell_twins(nodes)) return exit_usage;
  const Answers answers = ask_all(deed, nodes);
  // Where a majority has none of it, nobody holds it by this token; but then it was lost where too few had it before.
  const bool was_held = answers.lost <= options.hold.servers.size() - majority_of(options.hold.servers.size());
  const int code = judge(answers, deed, answers.confirmed + (was_held ? answers.lost : 0));
  if (code == exit_ok && !options.hold.quiet) say("released " + escaped(options.hold.name));
  return code;
}

}  // namespace holdfast::cli
