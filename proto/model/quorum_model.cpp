// SPDX-License-Identifier: MIT
//
// A model of the quorum, small enough that every order of events is tried: three nodes, two clients, and all that may
// happen between them. It is written by hand beside the code, from the rules, and shares nothing with it.
//
// What is in it
// - A node is who holds the key, and for how long still. A client has a token for each attempt, a vote a node with the time
//   that is left of it, and holds the lock while a majority of votes has time left (QuorumMachine::valid_until()).
// - A connection carries requests in order: acquire, renew, and release, which also takes back what was given up. Each is
//   delivered as late as it likes, and so is each reply: a paused process, a slow network and a slow server look the same.
// - A client may give a request up, an attempt up, or let go at any moment. A vote that was lost is repaired, with the same
//   token: as soon as the node has said "not yours" (the library waits for a majority's word first), or once its release has
//   been sent and nothing of it is on its way any more. It then counts to the end of the hold, and no further until it is
//   renewed.
// - Connections break: what was not executed never will be, replies are lost, releases are sent anew.
// - Nodes restart with their data. Outside of what is promised: without it, with and without the restart guard; and their
//   clocks step.
//
// What is left out, or made simple
// - Time is ticks, and a lease is `lease` of them. All clocks go alike: the drift, which pays for the difference, is 0.
// - Attempts, renewals and faults are counted: each world says how many there are.
// - No fences, re-entries, scripts that a server does not know, errors, busy times, announcements, min_validity.
// - A server knows when a connection to it was replaced (CLIENT KILL): nothing of the old one is executed then.
// - Two tokens a client, used in turn: an attempt waits until nothing of the last but one is on its way.
// - Nodes are alike, and so are clients: of states that differ only in their names one is looked at.
// - Of a state that was seen its 64-bit hash is kept: the chance that two collide is below 10^-4 at 50 million states.
//
// Prints what was explored and the verdicts. Exit 1 unless each is as expected.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <type_traits>
#include <vector>

namespace {

constexpr int node_count = 3;
constexpr int client_count = 2;
constexpr int majority = node_count / 2 + 1;
constexpr int entries_max = 6;

enum Kind : std::uint8_t { nothing, acquire, renew, release };
enum Phase : std::uint8_t { idle, asking, holding };

struct World {
  const char* name;
  bool safe;          // Never two: what is expected.
  bool keeps = true;  // And a majority of nodes keeps the key of whoever holds.
  int breaks = 0;     // Of one connection.
  int give_ups = 0;   // Of one request, which is still executed later.
  int restarts = 0;   // With data.
  int amnesias = 0;   // Without.
  int guard = -1;     // So long has a node no vote behind a restart without its data: max_lease, which is the lease.
  int steps = 0;      // A node's clock steps past its key's end.
  int needed = majority;  // Votes. Fewer: the checker must see it.
  bool from_send = true;  // Validity is counted from the send; else from the reply.
  int attempts = 2;       // Of both clients together, as many of each as there is room for.
  int renewals = 1;       // The same.
  int lease = 2;
};

struct Entry {
  std::uint8_t kind : 2;
  std::uint8_t token : 1;
  std::uint8_t executed : 1;
  std::uint8_t yes : 1;
  std::uint8_t dead : 1;  // Its reply is not waited for.
  std::uint8_t spare : 2;
};
static_assert(sizeof(Entry) == 1);

struct Channel {
  Entry entries[entries_max];
};
struct Node {
  std::uint8_t owner;  // 0: nobody; client * 2 + token + 1.
  std::uint8_t left;
  std::uint8_t young;
};
struct Part {          // One client's knowledge of one node.
  std::uint8_t vote;   // Ticks that are left of it.
  std::uint8_t age;    // Of the request that is on its way.
  std::uint8_t open;   // One is.
  std::uint8_t maybe;  // The token may stand there, and no release was sent.
  std::uint8_t repairing;
  std::uint8_t own;  // Of a repaired vote that was not renewed since: ticks that are left of the node's promise.
};
struct Client {
  std::uint8_t phase;
  std::uint8_t token;
};
struct State {
  Node nodes[node_count];
  Client clients[client_count];
  Part parts[client_count][node_count];
  Channel channels[client_count][node_count];
  std::uint8_t attempts, renewals, breaks, give_ups, restarts, amnesias, steps;
};
static_assert(std::has_unique_object_representations_v<State>, "states are compared byte by byte");

// ---- Small questions ---------------------------------------------------------------------------------------------

int valid_for(const World& world, const State& state, int client) {
  if (state.clients[client].phase != holding) return 0;
  int sorted[node_count];
  for (int node = 0; node < node_count; ++node) {
    int place = node;
    for (; place > 0 && sorted[place - 1] < state.parts[client][node].vote; --place) sorted[place] = sorted[place - 1];
    sorted[place] = state.parts[client][node].vote;
  }
  return sorted[world.needed - 1];
}
int owner_of(int client, int token) { return client * 2 + token + 1; }

Entry* free_entry(Channel& channel) {
  for (Entry& entry : channel.entries)
    if (entry.kind == nothing) return &entry;
  return nullptr;
}
bool push(Channel& channel, Kind kind, std::uint8_t token, bool dead) {
  Entry* const entry = free_entry(channel);
  if (entry == nullptr) return false;
  *entry = {};
  entry->kind = kind & 3U;
  entry->token = token & 1U;
  entry->dead = dead;
  return true;
}
void erase(Channel& channel, int place) {
  for (int each = place; each + 1 < entries_max; ++each) channel.entries[each] = channel.entries[each + 1];
  channel.entries[entries_max - 1] = {};
}
bool carries(const Channel& channel, std::uint8_t token, bool releases_only) {
  for (const Entry& entry : channel.entries)
    if (entry.kind != nothing && entry.token == token && (!releases_only || entry.kind == release)) return true;
  return false;
}

// ---- What may happen ---------------------------------------------------------------------------------------------
// Each is false where it cannot, or would change nothing.

bool tick(const World& world, State& state) {
  for (Node& node : state.nodes) {
    if (node.left != 0 && --node.left == 0) node.owner = 0;
    if (node.young != 0) --node.young;
  }
  for (auto& parts : state.parts)
    for (Part& part : parts) {
      if (part.vote != 0) --part.vote;
      if (part.own != 0) --part.own;
      if (part.open && part.age < world.lease) ++part.age;
    }
  return true;
}

bool begin(const World& world, State& state, int index) {
  Client& client = state.clients[index];
  if (client.phase != idle || state.attempts == 0) return false;
  const auto token = static_cast<std::uint8_t>(client.token ^ 1U);
  int voters = 0;
  for (int node = 0; node < node_count; ++node) {
    if (carries(state.channels[index][node], token, false)) return false;
    voters += state.nodes[node].young == 0;
  }
  if (voters < world.needed) return false;
  --state.attempts;
  client = {asking, token};
  for (int node = 0; node < node_count; ++node) {
    state.parts[index][node] = {};
    if (state.nodes[node].young != 0) continue;
    if (!push(state.channels[index][node], acquire, token, false)) return false;
    state.parts[index][node].open = 1;
    state.parts[index][node].maybe = 1;
  }
  return true;
}

bool renew_all(const World& world, State& state, int index) {
  const Client client = state.clients[index];
  if (state.renewals == 0 || valid_for(world, state, index) == 0) return false;
  --state.renewals;
  bool any = false;
  for (int node = 0; node < node_count; ++node) {
    Part& part = state.parts[index][node];
    Channel& channel = state.channels[index][node];
    if (part.open) continue;
    Kind kind = renew;
    if (part.vote == 0) {
      if (part.maybe) {  // It ended by time, or was given up: taken back first.
        part.maybe = 0;
        if (!push(channel, release, client.token, true)) return false;
      }
      if (carries(channel, client.token, true) || state.nodes[node].young != 0) continue;
      kind = acquire;
      part.repairing = 1;
      part.maybe = 1;
    }
    if (!push(channel, kind, client.token, false)) return false;
    part.open = 1;
    part.age = 0;
    any = true;
  }
  return any;
}

// One request is given up: its reply counts for nothing, and a release follows an acquire.
bool give_up(State& state, int index, int node) {
  Part& part = state.parts[index][node];
  if (!part.open) return false;
  for (Entry& entry : state.channels[index][node].entries) {
    if (entry.kind == nothing || entry.dead) continue;
    entry.dead = 1;
    part.open = 0;
    part.age = 0;
    part.repairing = 0;
    if (entry.kind != acquire) return true;
    part.maybe = 0;
    return push(state.channels[index][node], release, entry.token, true);
  }
  return false;
}

// A denial, a release, a loss: at any time, for whatever reason.
bool let_go(State& state, int index) {
  Client& client = state.clients[index];
  if (client.phase == idle) return false;
  for (int node = 0; node < node_count; ++node) {
    Part& part = state.parts[index][node];
    if (part.open && !give_up(state, index, node)) return false;
    if (part.maybe && !push(state.channels[index][node], release, client.token, true)) return false;
    part = {};
  }
  client.phase = idle;
  return true;
}

// The node executes the next request of a connection.
bool execute(const World& world, State& state, int index, int place) {
  Channel& channel = state.channels[index][place];
  Node& node = state.nodes[place];
  for (int each = 0; each < entries_max; ++each) {
    Entry& entry = channel.entries[each];
    if (entry.kind == nothing || entry.executed) continue;
    const int owner = owner_of(index, entry.token);
    const bool ours = node.owner == owner;
    if (entry.kind == release) {
      if (ours) node.owner = node.left = 0;
      erase(channel, each);
      return true;
    }
    entry.executed = 1;
    entry.yes = entry.kind == acquire ? node.owner == 0 : ours;
    if (entry.yes) {
      node.owner = static_cast<std::uint8_t>(owner);
      node.left = static_cast<std::uint8_t>(world.lease);
    }
    if (entry.dead) erase(channel, each);
    return true;
  }
  return false;
}

// What was repaired counts to the end of the hold.
void follow(const World& world, State& state, int index) {
  const int valid = valid_for(world, state, index);
  for (Part& part : state.parts[index])
    if (part.own != 0) part.vote = static_cast<std::uint8_t>(part.own < valid ? part.own : valid);
}

// The client reads the next reply.
bool hear(const World& world, State& state, int index, int node) {
  Channel& channel = state.channels[index][node];
  const Entry reply = channel.entries[0];
  if (reply.kind == nothing || !reply.executed) return false;
  erase(channel, 0);
  if (reply.dead) return true;
  Client& client = state.clients[index];
  Part& part = state.parts[index][node];
  const int left = world.from_send ? world.lease - part.age : world.lease;
  const bool repaired = part.repairing != 0;
  part.open = 0;
  part.age = 0;
  part.repairing = 0;
  if (!reply.yes) {
    part.vote = 0;
    part.maybe = 0;
    part.own = 0;
    if (reply.kind == acquire) return true;
    const bool asked_anew =
        client.phase == holding && valid_for(world, state, index) != 0 && state.nodes[node].young == 0;
    if (asked_anew) part.repairing = part.maybe = part.open = 1;
    follow(world, state, index);
    // Otherwise it is taken back all the same.
    return push(channel, asked_anew ? acquire : release, client.token, !asked_anew);
  }
  // Lost is final: what comes after the end revives nothing.
  if (left == 0 || (reply.kind == renew && part.vote == 0) ||
      (client.phase == holding && valid_for(world, state, index) == 0))
    return true;
  const int valid = valid_for(world, state, index);
  part.own = static_cast<std::uint8_t>(repaired ? left : 0);
  part.vote = static_cast<std::uint8_t>(repaired && valid < left ? valid : left);
  follow(world, state, index);
  if (client.phase != asking) return true;
  int granted = 0;
  for (const Part& each : state.parts[index]) granted += each.vote != 0;
  if (granted >= world.needed) client.phase = holding;
  return true;
}

// The connection ends. False where nothing was on it.
bool cut(State& state, int index, int node) {
  Channel& channel = state.channels[index][node];
  if (channel.entries[0].kind == nothing) return false;
  bool takes_back[2] = {};
  for (const Entry& entry : channel.entries)
    if (entry.kind == release || (entry.kind == acquire && !entry.dead)) takes_back[entry.token] = true;
  channel = {};
  Part& part = state.parts[index][node];
  if (part.open && part.vote == 0) part.maybe = 0;
  part.open = 0;
  part.age = 0;
  part.repairing = 0;
  for (std::uint8_t token = 0; token < 2; ++token)
    if (takes_back[token] && !push(channel, release, token, true)) return false;
  return true;
}
void cut_all(State& state, int node) {
  for (int index = 0; index < client_count; ++index) (void)cut(state, index, node);
}

// ---- The search --------------------------------------------------------------------------------------------------

std::uint64_t mixed(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}
std::uint64_t hash_of(const State& state) {
  unsigned char bytes[(sizeof(State) + 7) / 8 * 8] = {};
  std::memcpy(bytes, &state, sizeof state);
  std::uint64_t hash = 0;
  for (std::size_t place = 0; place < sizeof bytes; place += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + place, 8);
    hash = mixed(hash ^ word);
  }
  return hash == 0 ? 1 : hash;
}

// Of all namings of nodes, clients and tokens the one with the least bytes.
State canonical(const State& state) {
  struct Row {  // All that is about one node.
    Node node;
    Part parts[client_count];
    Channel channels[client_count];
  };
  State best;
  for (int swapped = 0; swapped < client_count; ++swapped) {
    State named = state;
    Row rows[node_count];
    for (int node = 0; node < node_count; ++node) {
      Row row;
      row.node = state.nodes[node];
      if (row.node.owner != 0) {
        const int from = (row.node.owner - 1) / 2;
        const int token = ((row.node.owner - 1) % 2) ^ state.clients[from].token;
        row.node.owner = static_cast<std::uint8_t>(owner_of(from ^ swapped, token));
      }
      for (int index = 0; index < client_count; ++index) {
        const int from = index ^ swapped;
        row.parts[index] = state.parts[from][node];
        row.channels[index] = state.channels[from][node];
        if (state.clients[from].token == 0) continue;
        for (Entry& entry : row.channels[index].entries)
          if (entry.kind != nothing) entry.token = static_cast<std::uint8_t>(entry.token ^ 1U);
      }
      int place = node;
      for (; place > 0 && std::memcmp(&row, &rows[place - 1], sizeof row) < 0; --place) rows[place] = rows[place - 1];
      rows[place] = row;
    }
    for (int index = 0; index < client_count; ++index) {
      // The token of the present attempt is called 0.
      named.clients[index] = {state.clients[index ^ swapped].phase, 0};
      for (int node = 0; node < node_count; ++node) {
        named.parts[index][node] = rows[node].parts[index];
        named.channels[index][node] = rows[node].channels[index];
      }
    }
    for (int node = 0; node < node_count; ++node) named.nodes[node] = rows[node].node;
    if (swapped == 0 || std::memcmp(&named, &best, sizeof named) < 0) best = named;
  }
  return best;
}

// Hashes of what was seen.
class Seen {
 public:
  bool insert(std::uint64_t hash) {
    if (count_ * 2 >= slots_.size()) grow();
    return place(hash) && ++count_ != 0;
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  bool place(std::uint64_t hash) {
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1))
      if (slots_[slot] == hash) return false;
    slots_[slot] = hash;
    return true;
  }
  void grow() {
    std::vector<std::uint64_t> old(slots_.size() * 2);
    old.swap(slots_);
    for (const std::uint64_t hash : old)
      if (hash != 0) (void)place(hash);
  }
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1U << 16U);
  std::size_t count_ = 0;
};

enum class Finding : std::uint8_t { none, promise, both, overflow };

// Both hold; or one does, and no majority of nodes keeps its key for so long as it thinks.
Finding look(const World& world, const State& state) {
  int holders = 0;
  bool broken = false;
  for (int index = 0; index < client_count; ++index) {
    const int valid = valid_for(world, state, index);
    if (valid == 0) continue;
    ++holders;
    int keep = 0;
    for (const Node& node : state.nodes)
      keep += node.owner == owner_of(index, state.clients[index].token) && node.left >= valid;
    broken = broken || keep < world.needed;
  }
  if (holders == 2) return Finding::both;
  return broken ? Finding::promise : Finding::none;
}

struct Outcome {
  std::size_t states = 0;
  std::size_t depth = 0;
  std::size_t promises = 0;
  std::size_t both = 0;
  std::size_t overflows = 0;  // States at which a connection was too full: the bound was too small.
  bool held = false;
  bool renewed = false;
};

Outcome explore(const World& world, std::size_t states_max) {
  Outcome outcome;
  Seen seen;
  std::deque<State> now;
  std::deque<State> next;
  State start = {};
  start.attempts = static_cast<std::uint8_t>(world.attempts);
  start.renewals = static_cast<std::uint8_t>(world.renewals);
  start.breaks = static_cast<std::uint8_t>(world.breaks);
  start.give_ups = static_cast<std::uint8_t>(world.give_ups);
  start.restarts = static_cast<std::uint8_t>(world.restarts);
  start.amnesias = static_cast<std::uint8_t>(world.amnesias);
  start.steps = static_cast<std::uint8_t>(world.steps);
  (void)seen.insert(hash_of(canonical(start)));
  now.push_back(start);
  const auto visit = [&](const State& state) {
    for (const auto& channels : state.channels)
      for (const Channel& channel : channels) outcome.overflows += channel.entries[entries_max - 1].kind != nothing;
    const State named = canonical(state);
    if (!seen.insert(hash_of(named))) return;
    for (int index = 0; index < client_count; ++index) {
      outcome.held = outcome.held || valid_for(world, named, index) != 0;
      outcome.renewed =
          outcome.renewed || (named.renewals != world.renewals && valid_for(world, named, index) == world.lease);
    }
    const Finding finding = look(world, named);
    if (finding == Finding::both) ++outcome.both;
    if (finding != Finding::none) ++outcome.promises;
    next.push_back(named);
  };
  for (; !now.empty() && (outcome.both == 0 || world.safe) && seen.count() < states_max; ++outcome.depth) {
    for (; !now.empty() && seen.count() < states_max; now.pop_front()) {
      const State state = now.front();
      State then = state;
      if (tick(world, then)) visit(then);
      for (int index = 0; index < client_count; ++index) {
        if (then = state; begin(world, then, index)) visit(then);
        if (then = state; renew_all(world, then, index)) visit(then);
        if (then = state; let_go(then, index)) visit(then);
        for (int node = 0; node < node_count; ++node) {
          if (then = state; execute(world, then, index, node)) visit(then);
          if (then = state; hear(world, then, index, node)) visit(then);
          if (then = state; state.give_ups != 0 && give_up(then, index, node)) {
            --then.give_ups;
            visit(then);
          }
          if (then = state; state.breaks != 0 && cut(then, index, node)) {
            --then.breaks;
            visit(then);
          }
        }
      }
      for (int node = 0; node < node_count; ++node) {
        if (then = state; state.restarts != 0) {
          --then.restarts;
          cut_all(then, node);
          visit(then);
        }
        if (then = state; state.amnesias != 0 && state.nodes[node].owner != 0) {
          --then.amnesias;
          cut_all(then, node);
          then.nodes[node] = {0, 0, static_cast<std::uint8_t>(world.guard < 0 ? world.lease : world.guard)};
          visit(then);
        }
        if (then = state; state.steps != 0 && state.nodes[node].owner != 0) {
          --then.steps;
          then.nodes[node].owner = then.nodes[node].left = 0;
          visit(then);
        }
      }
    }
    now.swap(next);
    next.clear();
  }
  outcome.states = seen.count();
  return outcome;
}

}  // namespace

int main() {
  const World worlds[] = {
      {.name = "nothing fails", .safe = true},
      {.name = "a connection breaks", .safe = true, .breaks = 1, .renewals = 0},
      {.name = "a connection breaks, and a renewal", .safe = true, .breaks = 1, .lease = 1},
      {.name = "a request is given up, and a renewal", .safe = true, .give_ups = 1, .lease = 1},
      {.name = "a node restarts with its data, and a renewal", .safe = true, .restarts = 1, .lease = 1},
      {.name = "a node restarts without its data, guarded", .safe = true, .keeps = false, .amnesias = 1, .renewals = 0},
      {.name = "the same, and a renewal", .safe = true, .keeps = false, .amnesias = 1, .lease = 1},
      {.name = "a node restarts without its data, unguarded", .safe = false, .amnesias = 1, .guard = 0},
      {.name = "the same, and a guard of half a lease", .safe = false, .amnesias = 1, .guard = 1},
      {.name = "a node's clock steps", .safe = false, .steps = 1},
      {.name = "one vote of three is enough", .safe = false, .needed = 1},
      {.name = "validity counts from the reply", .safe = false, .from_send = false},
  };
  constexpr std::size_t states_max = 40'000'000;
  bool as_expected = true;
  std::size_t total = 0;
  for (const World& world : worlds) {
    const Outcome outcome = explore(world, states_max);
    total += outcome.states;
    const bool whole = outcome.states < states_max && outcome.overflows == 0;
    const bool safe = outcome.both == 0 && (outcome.promises == 0) == world.keeps;
    const bool expected =
        outcome.held && (world.safe ? safe && whole && (outcome.renewed || world.renewals == 0) : outcome.both != 0);
    as_expected = as_expected && expected;
    std::printf("%-46s %10zu states, %3zu deep: %s%s%s\n", world.name, outcome.states, outcome.depth,
                outcome.both != 0       ? "two hold at once"
                : outcome.promises != 0 ? "never two, but on fewer nodes than they think"
                                        : "never two",
                whole || !world.safe ? "" : ", NOT EXPLORED TO ITS END",
                expected ? ", as expected" : ", NOT AS EXPECTED");
    std::fflush(stdout);
  }
  std::printf("%zu states; %s\n", total, as_expected ? "all as expected" : "NOT all as expected");
  return as_expected ? 0 : 1;
}
