// SPDX-License-Identifier: MIT
//
// Two quorums of the same name on N nodes, of which each is a key with an expiry. A link is the connection of a client to
// a node, with what a session does: replies in order, a compensation right behind what was given up, and none before the
// connection that replaces it. A seed draws every delay, loss, break and restart, and what the clients do. Where names move, a
// node of a client may come to lead to any server, also to one that is another node of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../sim/random.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/proto/resp_parser.hpp"

namespace holdfast::testing {

struct QuorumWorld {
  static constexpr Duration world_lease = 1s;

  struct Node {
    std::string token;  // Empty: nobody's.
    Instant expires;
    std::uint64_t counter = 0;
    bool knows_scripts = false;
  };
  struct Message {
    Operation operation = Operation::query;
    std::string token;
    std::uint64_t fence = 0;
    bool by_sha = false;
    ReplyTag tag;
    Instant deadline = Instant::max();
    bool detached = false;  // Nobody waits for its reply.
    bool executed = false;
    Status outcome = Status::ok;
    bool yes = false;
    std::uint64_t granted_fence = 0;
  };
  struct Link {
    std::deque<Message> messages;
    std::size_t server = 0;
    bool up = true;
    std::size_t twin = SIZE_MAX;  // As VoterRoll has it.
    [[nodiscard]] bool compensates() const {
      return std::any_of(messages.begin(), messages.end(),
                         [](const Message& it) { return it.operation == Operation::compensate; });
    }
  };
  struct Client {
    std::deque<QuorumVote> votes;
    std::vector<QuorumVote*> places;
    std::optional<QuorumMachine> machine;
    std::deque<Link> links;
    bool wants_reentry = false;
  };

  sim::Random random;
  const LockKind& kind;
  std::vector<Node> nodes;
  Client clients[2];
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  std::uint64_t tokens = 0;
  std::uint64_t fence_granted = 0;
  bool forgets;  // Nodes lose their data, against all promises: the checks must see it.
  bool names_move;
  // What was seen.
  std::size_t grants = 0, losses = 0, renewals = 0, repairs = 0, denials = 0, releases = 0, reentries = 0;
  std::size_t moves = 0, moved_while_held = 0;
  std::size_t both_held = 0, promises_broken = 0, fences_broken = 0, invariants_broken = 0, surprises = 0;
  [[nodiscard]] bool sound() const {
    return both_held + promises_broken + fences_broken + invariants_broken + surprises == 0;
  }

  // Without `bytes` the seed decides everything.
  QuorumWorld(std::uint64_t seed, const LockKind& of, std::size_t count, bool forgetful, bool moving = false,
              sim::DecisionBytes* bytes = nullptr)
      : random(seed, bytes), kind(of), nodes(count), forgets(forgetful), names_move(moving) {
    for (Node& node : nodes) node.counter = random.below(50);
    for (Client& client : clients) {
      for (std::size_t index = 0; index < count; ++index) {
        client.places.push_back(&client.votes.emplace_back(of));
        client.places.back()->native_delete = static_cast<NativeDelete>(random.below(3));
        client.links.emplace_back().server = index;
      }
      client.machine.emplace(of, client.places.data(), count);
      for (std::size_t index = 0; index < count; ++index) client.machine->meet(index, server_number(index), false);
      expect(client.machine->configure(Key("name"), {.lease = world_lease}) == Status::ok);
    }
  }

  void expect(bool condition) { surprises += condition ? 0U : 1U; }
  [[nodiscard]] static std::uint32_t server_number(std::size_t server) {
    return static_cast<std::uint32_t>(server + 1);
  }

  // ---- What a server does ----

  // The node's clock is faster than the clients', as much as the drift allows.
  [[nodiscard]] Instant end_of_lease() const { return now + world_lease - world_lease / 100; }
  void expire(Node& node) const {
    if (now >= node.expires) node.token.clear();
  }
  void execute(Node& node, Message& message) {
    expire(node);
    message.executed = true;
    const bool script = message.operation != Operation::acquire || &kind != &mutex_kind;
    if (script && message.by_sha && !node.knows_scripts) {
      message.outcome = Status::no_script;
      return;
    }
    if (script && !message.by_sha) node.knows_scripts = true;
    if (message.operation != Operation::compensate && random.chance(20'000)) {
      message.outcome = Status::loading;
      return;
    }
    const bool ours = node.token == message.token;
    switch (message.operation) {
      case Operation::acquire:
        message.yes = node.token.empty();
        if (!message.yes) return;
        node.token = message.token;
        node.expires = end_of_lease();
        message.granted_fence = ++node.counter;
        return;
      case Operation::renew:
        message.yes = ours;
        if (!ours) return;
        node.expires = later(node.expires, end_of_lease());
        node.counter = std::max(node.counter, message.fence);
        return;
      default:
        message.yes = ours;
        if (ours) node.token.clear();
        return;
    }
  }

  // ---- What a session does ----

  void report(Client& client, std::size_t index, const Message& message, Status outcome) {
    Reply reply = {.tag = message.tag, .outcome = outcome, .nothing_ran = false, .value = {}};
    const std::string fence = std::to_string(message.granted_fence);
    RespParserStorage storage;
    RespParser parser({storage.buffer, sizeof storage.buffer}, storage.nodes, elements_max);
    if (outcome == Status::no_script || outcome == Status::loading) reply.nothing_ran = true;
    if (outcome == Status::ok) {
      if (message.operation == Operation::acquire) {
        if (message.yes)
          reply.value = kind.fenced ? RespValue::make_text(RespKind::bulk, ByteView(fence))
                                    : RespValue::make_text(RespKind::simple, "OK");
        else if (&kind != &mutex_kind)
          reply.value = RespValue::make_integer(5);
      } else if (message.operation == Operation::renew && kind.reentrant) {
        expect(parser.feed(ByteView(std::string_view(message.yes ? "*1\r\n:1\r\n" : "*1\r\n:0\r\n"))) != 0 &&
               parser.poll_value(reply.value) == ParseResult::value);
      } else {
        reply.value = RespValue::make_integer(message.yes ? 1 : 0);
      }
    }
    client.machine->handle_reply(index, reply, now);
    settle(client);
  }
  static Message compensation_of(const Message& message) {
    Message compensation;
    compensation.operation = Operation::compensate;
    compensation.token = message.token;
    compensation.tag = message.tag;
    compensation.tag.operation = Operation::compensate;
    return compensation;
  }
  void give_up(Client& client, std::size_t index, Status why, bool only_late) {
    Link& link = client.links[index];
    std::vector<Message> told;
    const std::size_t size = link.messages.size();
    for (std::size_t place = 0; place < size; ++place) {
      Message& message = link.messages[place];
      if (message.detached || message.deadline == Instant::max()) continue;
      if (only_late && now < message.deadline) continue;
      message.detached = true;
      told.push_back(message);
      if (message.operation == Operation::acquire) link.messages.push_back(compensation_of(told.back()));
    }
    for (const Message& message : told) report(client, index, message, why);
  }
  // The connection is gone: some of what was sent has been executed, the rest never will be.
  void break_link(Client& client, std::size_t index) {
    std::deque<Message> old;
    old.swap(client.links[index].messages);
    const std::size_t reached = random.index(old.size() + 1);
    for (std::size_t place = 0; place < reached; ++place)
      if (!old[place].executed) execute(nodes[client.links[index].server], old[place]);
    std::vector<Message> told;
    for (const Message& message : old) {
      const bool takes_back = message.operation == Operation::compensate || message.operation == Operation::release;
      if (takes_back || (message.operation == Operation::acquire && !message.detached))
        client.links[index].messages.push_back(compensation_of(message));
      if (!takes_back && !message.detached) told.push_back(message);
    }
    for (const Message& message : told) report(client, index, message, Status::transport_closed);
  }
  void deliver(Client& client, std::size_t index) {
    Link& link = client.links[index];
    if (link.messages.empty() || !link.messages.front().executed) return;
    const Message message = link.messages.front();
    link.messages.pop_front();
    if (!message.detached) report(client, index, message, message.outcome);
  }

  // ---- What a driver does ----

  void settle(Client& client) {
    QuorumMachine& machine = *client.machine;
    for (bool again = true; again;) {
      machine.settle(now);
      again = false;
      for (std::size_t index = 0; index < nodes.size(); ++index) {
        LockMachine& vote = client.places[index]->machine;
        ReplyTag tag;
        Compensation compensation;
        if (vote.wants_request()) {
          again = true;
          submit(client, index);
        }
        if (machine.poll_compensation(index, true, tag, compensation)) {
          Message message;
          message.operation = Operation::compensate;
          message.token = compensation.token->bytes().string_view();
          message.tag = tag;
          client.links[index].messages.push_back(message);
        }
      }
    }
    for (NodeSet set = machine.poll_give_up(); set != 0; set = static_cast<NodeSet>(set & (set - 1)))
      give_up(client, static_cast<std::size_t>(__builtin_ctz(set)), Status::cancelled, false);
    expect(machine.poll_protocol_doubt() == 0);
    for (QuorumEvent event{}; machine.poll_event(event);) note(client, event);
  }
  void submit(Client& client, std::size_t index) {
    LockMachine& vote = client.places[index]->machine;
    const bool up = client.links[index].up;
    if (!up || random.chance(10'000)) {
      vote.refuse_request(up ? Status::too_many_requests : Status::not_connected, now);
      return;
    }
    static char space[8192];
    Request request;
    std::size_t size = 0;
    Message message;
    message.fence = vote.fence();
    message.token = vote.token().bytes().string_view();
    expect(vote.poll_request({space, sizeof space}, request, size) == Status::ok);
    message.operation = request.tag.operation;
    message.tag = request.tag;
    message.deadline = request.deadline;
    message.by_sha = std::string_view(space, size).find("EVALSHA") != std::string_view::npos;
    client.links[index].messages.push_back(message);
  }
  void note(Client& client, QuorumEvent event) {
    switch (event) {
      case QuorumEvent::granted:
        ++grants;
        if (kind.fenced && client.machine->fence() <= fence_granted) ++fences_broken;
        fence_granted = std::max(fence_granted, client.machine->fence());
        return;
      case QuorumEvent::denied: ++denials; return;
      case QuorumEvent::renewed:
        ++renewals;
        if (client.wants_reentry && client.machine->reenter() == Status::ok) ++reentries;
        client.wants_reentry = false;
        return;
      case QuorumEvent::lost: ++losses; return;
      case QuorumEvent::released: ++releases; return;
      case QuorumEvent::doubted: client.wants_reentry = false; return;
      case QuorumEvent::at_risk: return;
    }
  }
  [[nodiscard]] NodeSet random_nodes() {
    auto set = static_cast<NodeSet>(random.below(std::uint64_t{1} << nodes.size()));
    return random.coin() ? clients[0].machine->all() : set;
  }
  // Those of them that may vote.
  [[nodiscard]] NodeSet random_voters(const Client& client) {
    NodeSet set = random_nodes();
    for (std::size_t index = 0; index < nodes.size(); ++index)
      if (!client.links[index].up || client.links[index].twin != SIZE_MAX)
        set = static_cast<NodeSet>(set & ~node_bit(index));
    return set;
  }
  // A connection ends, and the next one leads where the name leads then.
  void move_name(Client& client, std::size_t index) {
    Link& link = client.links[index];
    if (link.up) {
      break_link(client, index);
      link.up = false;
      return;
    }
    const std::size_t before = link.server;
    link.server = random.coin() ? index : random.index(nodes.size());
    link.up = true;
    if (link.server != before) {  // Session::forget_compensations().
      link.messages.clear();
      ++moves;
      if (client.machine->held(now)) ++moved_while_held;
    }
    link.twin = SIZE_MAX;
    NodeSet changed = node_bit(index);
    for (std::size_t other = 0; other < nodes.size(); ++other) {
      Link& peer = client.links[other];
      if (other == index || !peer.up) continue;
      const bool same = peer.server == link.server;
      if (same && peer.twin == SIZE_MAX) link.twin = other;
      if (same || peer.twin != index) continue;
      peer.twin = SIZE_MAX;
      changed = static_cast<NodeSet>(changed | node_bit(other));
    }
    for (std::size_t other = 0; other < nodes.size(); ++other)
      if ((changed & node_bit(other)) != 0)
        client.machine->meet(other, server_number(client.links[other].server), client.links[other].twin != SIZE_MAX);
    settle(client);
  }
  void act(Client& client) {
    QuorumMachine& machine = *client.machine;
    if (random.coin()) settle(client);
    switch (machine.state()) {
      case QuorumState::idle:
      case QuorumState::lost: {
        if (machine.count() != 0) {
          expect(machine.release(now) == Status::lock_lost);
          break;
        }
        std::string token = std::to_string(++tokens);
        token.insert(0, token_text_size - token.size(), '0');
        client.wants_reentry = false;
        (void)machine.acquire(Token(ByteView(token)), now, random_voters(client));
        break;
      }
      case QuorumState::acquiring:
      case QuorumState::fencing:
        if (random.chance(50'000)) machine.cancel(now);
        break;
      case QuorumState::held:
      case QuorumState::at_risk: {
        if (random.chance(150'000)) {
          (void)machine.release(now);
          break;
        }
        NodeSet repairers = random_voters(client);
        for (std::size_t index = 0; index < nodes.size(); ++index)
          if (client.links[index].compensates()) repairers = static_cast<NodeSet>(repairers & ~node_bit(index));
        if (machine.renew(now, now + 200ms, repairers) != Status::ok) break;
        client.wants_reentry = kind.reentrant && random.coin();
        for (std::size_t index = 0; index < nodes.size(); ++index)
          if (machine.vote(index).repairing) ++repairs;
        break;
      }
      case QuorumState::releasing:
        if (random.chance(100'000)) machine.end_release(Status::timed_out);
        break;
    }
    settle(client);
  }

  // ---- One step, and what must hold behind it ----

  void step() {
    const std::uint64_t choice = random.below(1000);
    std::size_t index = random.index(nodes.size());
    std::size_t who = random.index(2);
    for (int again = 0; choice < 600 && again < 10 && clients[who].links[index].messages.empty(); ++again) {
      index = random.index(nodes.size());
      who = random.index(2);
    }
    Client& client = clients[who];
    Link& link = client.links[index];
    if (choice < 300) {
      for (Message& message : link.messages)
        if (link.up && !message.executed) {
          execute(nodes[link.server], message);
          break;
        }
    } else if (choice < 600) {
      deliver(client, index);
    } else if (choice < 680) {
      act(client);
    } else if (choice < 880) {
      now = now + Duration(random.magnitude(1000, 10'000'000));
    } else if (choice < 887) {
      now = now + Duration(random.between(1'000'000, 1'200'000'000));  // A pause of everybody.
    } else if (names_move && choice < 930) {
      move_name(client, index);
    } else if (choice < 980) {
      for (std::size_t each = 0; each < nodes.size(); ++each) give_up(client, each, Status::timed_out, true);
      settle(client);
    } else if (choice < 990) {
      break_link(client, index);
    } else if (choice < 993) {  // A restart with data.
      for (Client& each : clients)
        for (std::size_t slot = 0; slot < nodes.size(); ++slot)
          if (each.links[slot].server == index) break_link(each, slot);
      nodes[index].knows_scripts = false;
      if (forgets) nodes[index].token.clear();
    }
    check();
  }
  void check() {
    for (std::size_t each = 0; each < 2; ++each) {
      const QuorumMachine& machine = *clients[each].machine;
      if (!machine.invariants()) ++invariants_broken;
      if (!machine.held(now)) continue;
      expect(machine.state() == QuorumState::held || machine.state() == QuorumState::at_risk);
      // A majority keeps this token until then.
      std::size_t keep = 0;
      for (const Node& node : nodes)
        if (node.token == machine.token().bytes().string_view() && node.expires >= machine.valid_until()) ++keep;
      if (keep < machine.majority()) ++promises_broken;
    }
    if (clients[0].machine->held(now) && clients[1].machine->held(now)) ++both_held;
  }
};

}  // namespace holdfast::testing
