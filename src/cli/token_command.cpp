// SPDX-License-Identifier: MIT
#include "token_command.hpp"

#include <cstring>
#include <memory>
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
  Instant valid_until = Instant::max();  // Of a renewal: the earliest of those that confirmed.
  bool one_machine = false;              // Two of the nodes are one server.
};

// `done`: "renewed" or "released".
struct Deed {
  const HeldToken& hold;
  const char* done;
  Status (*ask)(Client& client, const Deed& deed, Instant& valid_until);
  LockTiming timing{};
};

// Asks each server in turn. What keeps one from answering is said.
Answers ask_all(const Deed& deed) {
  Answers answers;
  const Servers& servers = deed.hold.servers;
  std::vector<ServerIdentity> met;
  for (const ClientConfig& server : servers) {
    const auto client = std::make_unique<Client>();
    if (const int code = connect(*client, server); code != exit_ok) {
      answers.failure = code;
      continue;
    }
    const ServerIdentity& identity = client->server();
    for (const ServerIdentity& other : met)
      if (identity.run_id_known && other.run_id_known && std::memcmp(identity.run_id, other.run_id, run_id_size) == 0)
        answers.one_machine = true;
    if (answers.one_machine) return answers;
    met.push_back(identity);
    Instant valid_until = Instant::max();
    const Status status = deed.ask(*client, deed, valid_until);
    const std::string where = servers.size() == 1 ? "" : " on " + address_text(server);
    const std::string what = escaped(deed.hold.name) + where;
    if (status == Status::ok) {
      ++answers.confirmed;
      if (valid_until < answers.valid_until) answers.valid_until = valid_until;
    } else if (status == Status::lock_lost) {
      ++answers.lost;
    } else if (status == Status::outcome_unknown) {
      ++answers.unknown;
      say("sent, and the reply was lost: " + what + " may be " + deed.done + " or not");
    } else if (status == Status::wrong_type) {
      answers.failure = exit_no_lock;
      say(what + " was not " + deed.done + ": the key is no lock of this kind (" + escaped(client->error_text()) + ")");
    } else {
      answers.failure = exit_code_of(status, *client, exit_software);
      say(what + " was not " + deed.done + ": " + failure_text(status, *client));
    }
  }
  return answers;
}

// What the answers come to, and how that is said. exit_ok says nothing yet.
int judge(const Answers& answers, const Deed& deed, std::size_t wanted) {
  const std::size_t count = deed.hold.servers.size();
  const std::string name = escaped(deed.hold.name);
  if (answers.one_machine) {
    say("two of the nodes are one server: a quorum needs a server for each");
    return exit_usage;
  }
  if (wanted >= majority_of(count)) return exit_ok;
  if (answers.lost > count - majority_of(count)) {
    say(name + " was not " + deed.done + ": no hold has this token any more; its lease has ended, or it was released");
    return exit_lost;
  }
  if (answers.unknown != 0 && wanted + answers.unknown >= majority_of(count)) {
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
  const Answers answers = ask_all(deed);
  if (const int code = judge(answers, deed, answers.confirmed); code != exit_ok) return code;
  const Instant now = Client::now();
  if (now >= answers.valid_until) {
    say("the answer took longer than the lease: " + escaped(options.hold.name) + " may have ended meanwhile");
    return exit_unknown;
  }
  if (!options.hold.quiet)
    say("renewed " + escaped(options.hold.name) + "; it lasts for " + seconds_text(answers.valid_until - now) +
        " seconds at least");
  return exit_ok;
}

int release_by_token(const TokenReleaseOptions& options) {
  const Deed deed = {.hold = options.hold, .done = "released", .ask = [](Client& client, const Deed& it, Instant&) {
                       return release_adopted(client, kind_table(it.hold.kind), Key(ByteView(it.hold.name)),
                                              it.hold.token);
                     }};
  const Answers answers = ask_all(deed);
  // Where a majority has none of it, nobody holds it by this token; but then it was lost where too few had it before.
  const bool was_held = answers.lost <= options.hold.servers.size() - majority_of(options.hold.servers.size());
  const int code = judge(answers, deed, answers.confirmed + (was_held ? answers.lost : 0));
  if (code == exit_ok && !options.hold.quiet) say("released " + escaped(options.hold.name));
  return code;
}

}  // namespace holdfast::cli
