// SPDX-License-Identifier: MIT
//
// The network of a world, and the server at its end.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "canary.hpp"
#include "checkers.hpp"
#include "keeping.hpp"
#include "pace.hpp"
#include "scripts.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

constexpr std::size_t socket_buffer = 16 * 1024;
// What a server sends and a client does not read stays with the server from here on.
constexpr std::size_t unread_max = 64 * 1024;
// A connection whose client has vanished: the server's keep-alive finds out.
constexpr SimTime keep_alive = 60 * second;

constexpr std::string_view message_head = "*3\r\n$7\r\nmessage\r\n";
constexpr std::string_view confirmation = "subscribe\r\n";  // By SUBSCRIBE or by SSUBSCRIBE.

// What a slow way costs each connect, and each reply to a handshake.
constexpr SimTime slow_min = 100 * millisecond;
constexpr SimTime slow_max = 400 * millisecond;

// Without the messages of a subscription. They come whole.
void erase_messages(std::string& bytes) {
  for (std::size_t at = bytes.find(message_head); at != std::string::npos; at = bytes.find(message_head, at)) {
    std::size_t end = at + message_head.size();
    for (int bulk = 0; bulk < 2; ++bulk) {
      const std::size_t line = bytes.find("\r\n", end);
      end = line + 2 + static_cast<std::size_t>(std::atoi(bytes.c_str() + end + 1)) + 2;
    }
    bytes.erase(at, end - at);
  }
}

// A release or a compensation, and nothing else.
bool lets_go(std::string_view bytes) {
  const Script* const all[] = {&scripts::mutex_release, &scripts::mutex_release_announced, &scripts::reentrant_release,
                               &scripts::multi_release, &scripts::read_write_release,      &scripts::semaphore_release,
                               &scripts::fair_release};
  for (const Script* const script : all)
    if (bytes.find(script->text.string_view()) != std::string_view::npos ||
        bytes.find(script->sha.bytes().string_view()) != std::string_view::npos)
      return true;
  // A count that is taken back goes with its text.
  return bytes.find("DELEX") != std::string_view::npos || bytes.find("DELIFEQ") != std::string_view::npos ||
         bytes.find(scripts::reentrant_step.text.string_view()) != std::string_view::npos ||
         bytes.find(scripts::multi_step.text.string_view()) != std::string_view::npos ||
         bytes.find(scripts::read_write_step.text.string_view()) != std::string_view::npos;
}

}  // namespace

std::string run_id_of(std::size_t node, std::uint32_t restarts) {
  // Backwards it is the replication id, of which the first digits count.
  const std::string number = std::to_string(restarts);
  const std::string name = std::to_string(node);
  return name + std::string(38 - number.size(), '0') + number + name;
}

// ---- Names -------------------------------------------------------------------------------------------------------

std::uint32_t address_of(Address address) noexcept { return 0x0a000001 + static_cast<std::uint32_t>(address); }
Address at_address(std::uint32_t address) noexcept { return static_cast<Address>(address - 0x0a000001); }

std::string host_name(const ConnectionPlan& plan, std::size_t node) {
  return "node" + std::to_string(node) + (plan.silent_addresses ? ".silent" : ".refusing") +
         std::to_string(plan.dead_addresses) + ".test";
}

bool read_host_name(const char* name, std::size_t& node, std::size_t& dead, bool& silent) noexcept {
  char kind[12] = "";
  if (std::sscanf(name, "node%zu.%11[a-z]%zu.test", &node, kind, &dead) != 3) return false;
  silent = std::string_view(kind) == "silent";
  return true;
}

// ---- Descriptors -------------------------------------------------------------------------------------------------

int World::add_descriptor(Descriptor descriptor) {
  descriptors_.push_back(descriptor);
  const int number = descriptor_base + static_cast<int>(descriptors_.size() - 1);
  process().descriptors.push_back(number);
  return number;
}

Descriptor* World::descriptor(int number) noexcept {
  const auto index = static_cast<std::size_t>(number - descriptor_base);
  return number < descriptor_base || index >= descriptors_.size() ? nullptr : &descriptors_[index];
}

int World::open_socket() {
  Link& link = links_.emplace_back();
  link.process = process().index;
  link.life = process().life;
  link.thread = link.user = thread().id;
  link.index = links_.size() - 1;
  link.number = add_descriptor({Descriptor::Kind::socket, link.index});
  return link.number;
}

void World::open_pipe(int* ends) {
  pipes_.emplace_back().process = process().index;
  ends[0] = add_descriptor({Descriptor::Kind::pipe, pipes_.size() - 1});
  ends[1] = add_descriptor({Descriptor::Kind::pipe, pipes_.size() - 1});
}

int World::open_epoll() {
  const std::size_t index = epolls_.size();
  Epoll& epoll = epolls_.emplace_back();
  epoll.number = add_descriptor({Descriptor::Kind::epoll, index});
  process().epolls.push_back(index);
  return epoll.number;
}

int World::open_timer() {
  timers_.push_back(never);
  return add_descriptor({Descriptor::Kind::timer, timers_.size() - 1});
}

int World::open_event() {
  pipes_.emplace_back().process = process().index;
  return add_descriptor({Descriptor::Kind::event, pipes_.size() - 1});
}

Interest* Epoll::find(int descriptor) noexcept {
  const auto found = std::find_if(interests.begin(), interests.end(),
                                  [&](const Interest& interest) { return interest.number == descriptor; });
  return found == interests.end() ? nullptr : &*found;
}

void Epoll::add(Interest& interest) {
  if (interest.queued) return;
  interest.queued = true;
  queue.push_back(interest.number);
}

void World::close(int number) {
  Descriptor* const open = descriptor(number);
  if (process().leaving) return;  // It has no descriptor any more.
  if (open == nullptr || open->kind == Descriptor::Kind::closed) {
    fail("descriptors", "closed twice");
    return;
  }
  if (open->kind == Descriptor::Kind::socket) close_link(links_[open->index], false);
  open->kind = Descriptor::Kind::closed;
  std::erase(process().descriptors, number);
  for (const std::size_t index : process().epolls) {
    std::erase_if(epolls_[index].interests, [&](const Interest& interest) { return interest.number == number; });
    std::erase(epolls_[index].queue, number);
  }
}

void World::note_link(const Link& link, bool open) {
  if (open)
    open_links_.push_back(link.index);
  else
    std::erase(open_links_, link.index);
  processes_[link.process].links_changed_at = now_;
}

// ---- From the client to the server -------------------------------------------------------------------------------

SimTime World::latency(const Node& node) {
  SimTime length = random_.between(plan_.latency_min, plan_.latency_max);
  if (now_ < node.spike_until) length += random_.between(0, node.spike);
  return length;
}

int World::connect(std::size_t index, std::size_t number, Address address) {
  Link& link = links_[index];
  const Node& node = nodes_[number];
  const Process& process = processes_[link.process];
  const std::string lane = "client " + std::to_string(link.process);
  link.node = number;
  link.address = address;
  link.state = Link::State::connecting;
  thread().uses.resize(nodes_.size());
  thread().uses[number].dialled = true;
  if (process.application != nullptr) link.max_lease = process.application->max_lease();
  trace_.add(now_, "connect", link.process, index, node.lane);
  if (address != Address::server) count(Fault::dead_address, lane);
  if (now_ < process.no_network_until) {
    link.state = Link::State::failed;
    return link.error = ENETUNREACH;
  }
  if (process.plan->local && address != Address::silent) {
    finish_connect(index);
    return link.error;
  }
  if (now_ < node.black_until || address == Address::silent) return EINPROGRESS;
  if (now_ < node.second_black_until && is_second(link)) {
    count(Fault::second_black_hole, lane);
    thread().uses[number].swallowed_at = now_;
    return EINPROGRESS;
  }
  SimTime length = latency(node) * 2;
  if (now_ < node.slow_connect_until) {
    count(Fault::slow_connect, lane);
    length += random_.between(slow_min, slow_max);
  }
  push(now_ + length, EventKind::connected, index);
  if (sin_of(*this) != Sin::connects_cut_short || uses_locks(thread())) return EINPROGRESS;
  after(100 * millisecond, [this, index] {
    Link& slow = links_[index];
    if (slow.state != Link::State::connecting || slow.client_closed) return;
    slow.state = Link::State::failed;
    slow.error = ETIMEDOUT;
    wake_waiters(processes_[slow.process], slow.number);
  });
  return EINPROGRESS;
}

// Its thread has a connection to the node already.
bool World::is_second(const Link& link) const {
  return std::any_of(open_links_.begin(), open_links_.end(), [&](std::size_t index) {
    const Link& other = links_[index];
    return other.thread == link.thread && other.node == link.node && other.error == 0 && !other.end_received;
  });
}

Resolution* World::resolve(std::size_t number) {
  Thread& self = thread();
  Process& asker = process();
  Node& node = nodes_[number];
  const std::string lane = "client " + std::to_string(asker.index);
  const SimTime since = now_;
  SimTime length = random_.magnitude(100 * microsecond, 5 * millisecond);
  if (now_ < node.slow_resolver_until) {
    count(Fault::slow_resolver, lane);
    length = random_.magnitude(second, 12 * second);
  }
  const bool fails = now_ < node.failing_resolver_until;
  if (fails) {
    count(Fault::failing_resolver, lane);
    length = random_.magnitude(millisecond, 5 * second);
  }
  trace_.add(now_, "asks for", asker.index, number);
  if (trace_.recorded()) trace_.items().push_back({lane, "resolver", now_, now_ + length, false});
  const SimTime until = now_ + length;
  self.resolving_since = since;
  while (now_ < until && !asker.leaving) (void)block(until);
  self.resolving_since = -1;
  self.resolving += now_ - since;
  self.resolved_at = now_;
  return fails ? nullptr : &asker.resolutions.emplace_back();
}

void World::finish_connect(std::size_t index) {
  Link& link = links_[index];
  if (link.client_closed || link.state != Link::State::connecting) return;
  Node& node = nodes_[link.node];
  if (now_ < node.refused_until || link.address != Address::server) {
    link.state = Link::State::failed;
    link.error = ECONNREFUSED;
  } else {
    link.state = Link::State::established;
    link.server_id = node.redis.accept();
    if (processes_[link.process].plan->tls) link.tls = make_tls_peer(plan_.tls_1_2);
    node.links.push_back(index);
    note_link(link, true);
  }
  trace_.add(now_, "connected", link.process, index, link.error == 0 ? "" : "refused");
  pace_->note_event(processes_[link.process]);
  wake_waiters(processes_[link.process], link.number);
  flush_server(node);
}

void World::schedule_up(Link& link, std::string_view bytes) {
  const SimTime at = std::max(link.up_last, now_ + latency(nodes_[link.node]));
  link.up_last = at;
  link.up_bytes += bytes.size();
  link.up.push(bytes);
  push(at, EventKind::up, link.index);
}

std::size_t World::send(std::size_t index, std::string_view bytes) {
  Link& link = links_[index];
  if (now_ < link.full_until || link.up_bytes >= socket_buffer) return 0;
  if (link.tls == nullptr) note_unlooked(link, bytes);
  std::size_t size = std::min(bytes.size(), socket_buffer - link.up_bytes);
  if (link.dribbles) size = 1;
  if (link.short_writes != 0) {
    --link.short_writes;
    size = 1 + random_.index(size);
  }
  if (link.tls == nullptr)
    note_sent(link, bytes, size);
  else
    Pace::note_sent(thread());
  bytes = bytes.substr(0, size);
  if (link.reset_after >= 0) {
    link.reset_after -= static_cast<std::int64_t>(size);
    if (link.reset_after < 0) {
      // Some of it still arrives, and nothing behind it.
      schedule_up(link, bytes.substr(0, random_.index(size + 1)));
      count(Fault::reset_at_stage, "client " + std::to_string(link.process));
      link.up_swallowed = true;
      after(random_.between(0, 2 * millisecond), [this, index] { reset(links_[index]); });
      return size;
    }
  }
  if (link.up_swallowed) return size;
  while (!bytes.empty()) {
    const std::size_t most = std::min(plan_.chunk_max, bytes.size());
    const std::size_t chunk = most == bytes.size() ? most : 1 + random_.index(most);
    schedule_up(link, bytes.substr(0, chunk));
    bytes.remove_prefix(chunk);
  }
  return size;
}

// A release leaves without a look, be it in pieces: what lies there is taken for its answer. From here on it may be another's.
void World::note_unlooked(Link& link, std::string_view bytes) {
  link.releases = link.releases || lets_go(bytes);
  if (link.unasked && link.releases) processes_[link.process].lied_to = true;
  link.unasked = false;
}

void World::note_sent(Link& link, std::string_view offered, std::size_t size) {
  link.releases = link.releases && size < offered.size();
  const std::string_view bytes = offered.substr(0, size);
  trace_.add(now_, "send", link.process, link.index, bytes);
  Thread& sender = thread();
  link.user = sender.id;
  if (!link.subscribed && bytes.find("SUBSCRIBE") != std::string_view::npos) {
    link.subscribed = true;
    link.again = ++sender.subscriptions > 1;
    if (nodes_[link.node].redis.faults().refuses_subscriber())
      count(Fault::refused_subscriber, "client " + std::to_string(link.process));
  }
  // A command begins with its number of words.
  for (std::size_t at = bytes.find('*'); at != std::string_view::npos && at + 1 < bytes.size();
       at = bytes.find('*', at + 1))
    if (bytes[at + 1] >= '1' && bytes[at + 1] <= '9' && (at == 0 || bytes[at - 1] == '\n')) {
      ++sender.commands;
      if (!link.subscribed) ++sender.asked;
    }
  Pace::note_sent(sender);
  if (!link.answered) return;
  link.greeted = true;
  if (link.useful || link.subscribed) return;
  link.useful = true;
  link.useful_at = now_;
  pace_->note_useful(link);
}

void World::deliver_up(std::size_t index) {
  Link& link = links_[index];
  if (link.up.empty()) return;  // Reset.
  if (now_ < link.up_stalled_until) {
    push(link.up_stalled_until, EventKind::up, index);
    return;
  }
  const std::string_view bytes = link.up.front();
  const bool was_full = link.up_bytes >= socket_buffer;
  link.up_bytes -= bytes.size();
  if (was_full && !link.client_closed) {
    pace_->note_event(processes_[link.process]);
    wake_waiters(processes_[link.process], link.number);
  }
  if (link.server_id != 0 && paused(nodes_[link.node])) {
    link.pending += bytes;
    link.pending_end = link.pending_end || bytes.empty();
  } else if (link.server_id != 0) {
    give_to_server(link, bytes, bytes.empty());
  }
  link.up.pop();
}

void World::give_to_server(Link& link, std::string_view bytes, bool end) {
  if (link.server_id == 0) return;
  Node& node = nodes_[link.node];
  std::string opened;
  if (link.tls != nullptr && !bytes.empty()) {
    if (!open_tls(link, bytes, opened)) return;
    bytes = opened;
    if (bytes.empty() && !end) return;
  }
  trace_.add(now_, end ? "end" : "receive", link.process, link.server_id, bytes);
  if (!bytes.empty()) {
    checkers_->before_receive(link);
    checkers_->after_receive(node, node.redis.receive(link.server_id, bytes, wall(node)));
    begin_wait(link);
  }
  if (end) {
    node.redis.receive_end(link.server_id);
    drop_server_side(link);
  }
  flush_server(node);
}

// What TLS says to it goes back at once. False: it was none, and the connection has ended.
bool World::open_tls(Link& link, std::string_view bytes, std::string& opened) {
  std::string answer;
  const bool sound = link.tls->receive(bytes, opened, answer);
  const bool reaches = !link.client_closed && !link.down_swallowed;
  if (reaches && !answer.empty()) send_down(link, answer);
  if (sound) return true;
  if (reaches) send_down(link, {});
  link.end_sent = true;
  nodes_[link.node].redis.receive_end(link.server_id);
  drop_server_side(link);
  return false;
}

// In the time of faults as many as there are confirm at once, or late, or fewer do.
void World::begin_wait(Link& link) {
  if (plan_.replicas == 0) return;
  const std::optional<ModelRedis::Wait> wait = nodes_[link.node].redis.wait_of(link.server_id);
  if (!wait || link.held_up) return;
  link.waits = link.held_up = true;
  std::int64_t replicas = plan_.replicas;
  SimTime delay = random_.between(10 * microsecond, latency(nodes_[link.node]));
  const SimTime timeout = wait->timeout_ms * millisecond;
  if (phase_ == Phase::faults) {
    if (random_.chance(plan_.late_replicas)) delay = random_.magnitude(millisecond, 2 * timeout);
    if (random_.chance(plan_.lost_replicas)) replicas = random_.between(0, replicas - 1);
  }
  if (replicas < wait->replicas) delay = timeout;
  if (delay > timeout) replicas = random_.between(0, wait->replicas - 1);
  after(std::min(delay, timeout), [this, index = link.index, connection = link.server_id, since = now_, replicas] {
    end_wait(index, connection, since, replicas);
  });
}

void World::end_wait(std::size_t index, ModelRedis::ConnectionId connection, SimTime since, std::int64_t replicas) {
  Link& link = links_[index];
  Node& node = nodes_[link.node];
  if (link.server_id != connection) return;
  if (paused(node)) return after(node.paused_until - now_, [=, this] { end_wait(index, connection, since, replicas); });
  const std::optional<ModelRedis::Wait> wait = node.redis.wait_of(connection);
  if (!wait) return;
  link.held_up = false;
  trace_.add(now_, "wait", link.process, index, std::to_string(replicas));
  SimTime& confirmed = processes_[link.process].confirmed_at[link.node];
  if (replicas >= wait->replicas && processes_[link.process].life == link.life) confirmed = std::max(confirmed, since);
  checkers_->before_receive(link);
  checkers_->after_receive(node, node.redis.answer_wait(connection, replicas));
  begin_wait(link);
  flush_server(node);
}

void World::drop_server_side(Link& link) {
  link.server_id = 0;
  link.pending.clear();
  link.pending_end = false;
  std::erase(nodes_[link.node].links, link.index);
}

// ---- From the server to the client -------------------------------------------------------------------------------

void World::flush_server(Node& node) {
  for (std::size_t at = 0; at < node.links.size(); ++at) {
    Link& link = links_[node.links[at]];
    if (!node.redis.wants_attention(link.server_id)) continue;
    const bool closed = node.redis.closed(link.server_id);
    if (node.redis.output_size(link.server_id) != 0) {
      if (link.client_closed) {
        (void)node.redis.take_output(link.server_id);
      } else if (!link.down_swallowed && now_ >= link.down_stalled_until && link.received.size() < unread_max) {
        std::string bytes = node.redis.take_output(link.server_id);
        if (link.again && sin_of(*this) == Sin::deaf_after_reconnect) erase_messages(bytes);
        if (node.tamper != Tamper::nothing) tamper_with(link, bytes);
        if (link.tls != nullptr && !bytes.empty()) {
          trace_.add(now_, "says", link.process, link.index, bytes);
          bytes = std::exchange(link.spoilt, {}) + link.tls->seal(bytes);
        }
        if (!bytes.empty()) send_down(link, bytes);
      } else if (!closed) {
        continue;
      }
    }
    if (!closed) continue;
    if (!link.end_sent && !link.client_closed && !link.down_swallowed) send_end(link);
    link.end_sent = true;
    node.redis.receive_end(link.server_id);
    drop_server_side(link);
    --at;
  }
}

// A server that ends a connection over TLS says so as a rule.
void World::send_end(Link& link) {
  if (link.tls != nullptr && random_.chance(800'000))
    if (const std::string farewell = link.tls->farewell(); !farewell.empty()) send_down(link, farewell);
  send_down(link, {});
}

void World::send_down(Link& link, std::string_view bytes) {
  const std::size_t index = link.index;
  const Node& node = nodes_[link.node];
  trace_.add(now_, bytes.empty() ? "close" : "reply", link.process, index, bytes);
  if (link.reset_after >= 0) {
    link.reset_after -= static_cast<std::int64_t>(bytes.size());
    if (link.reset_after < 0) {
      count(Fault::reset_at_stage, "client " + std::to_string(link.process));
      bytes = bytes.substr(0, random_.index(bytes.size()));
      link.down_swallowed = true;
      after(latency(node) + millisecond, [this, index] { reset(links_[index]); });
      if (bytes.empty()) return;
    }
  }
  SimTime late = 0;
  if (now_ < node.slow_handshake_until && !link.greeted && !bytes.empty()) {
    count(Fault::slow_handshake, "client " + std::to_string(link.process));
    late = random_.between(slow_min, slow_max);
  }
  std::string_view left = bytes;
  do {
    const std::size_t most = std::min(link.dribbles ? 1 : plan_.chunk_max, left.size());
    const std::size_t chunk = most == left.size() || most <= 1 ? most : 1 + random_.index(most);
    const SimTime at = std::max({link.down_last, now_ + latency(node) + late, link.down_stalled_until});
    link.down_last = at;
    link.down.push(left.substr(0, chunk));
    push(at, EventKind::down, index);
    left.remove_prefix(chunk);
  } while (!left.empty());
}

void World::deliver_down(std::size_t index) {
  Link& link = links_[index];
  if (link.down.empty()) return;
  if (now_ < link.down_stalled_until) {
    push(link.down_stalled_until, EventKind::down, index);
    return;
  }
  const std::string_view bytes = link.down.front();
  if (!link.client_closed) {
    trace_.add(now_, "arrive", link.process, index, bytes);
    if (bytes.empty())
      link.end_received = true;
    else
      link.received += bytes;
    if (link.tls == nullptr) {
      link.answered = true;
      note_confirmed(link, link.received);
    }
    pace_->note_event(processes_[link.process]);
    wake_waiters(processes_[link.process], link.number);
  }
  link.down.pop();
}

void World::note_opened(Link& link, std::string_view bytes) {
  trace_.add(now_, "understands", link.process, link.index, bytes);
  link.answered = true;
  note_confirmed(link, bytes);
}

void World::note_confirmed(Link& link, std::string_view bytes) {
  if (link.useful || !link.subscribed || bytes.find(confirmation) == std::string_view::npos) return;
  link.useful = true;
  link.useful_at = now_;
  pace_->note_useful(link);
}

// ---- The end of connections --------------------------------------------------------------------------------------

void World::close_link(Link& link, bool silently) {
  if (link.client_closed) return;
  link.client_closed = true;
  trace_.add(now_, "closes", link.process, link.index);
  pace_->note_closed(link);
  if (link.server_id != 0) nodes_[link.node].redis.close(link.server_id);
  if (link.state != Link::State::established) return;
  note_link(link, false);
  // What its client gives up by itself while it greets is none that it had.
  const bool forced = link.error != 0 || link.end_received || link.deceived;
  if (!link.subscribed && (link.greeted || forced)) keeping_->note_lost(link);
  const std::size_t index = link.index;
  if (silently || link.up_swallowed) {
    after(keep_alive, [this, index] {
      Link& silent = links_[index];
      if (silent.server_id != 0) give_to_server(silent, {}, true);
    });
    return;
  }
  schedule_up(link, {});
}

void World::reset(Link& link) {
  if (link.state != Link::State::established || link.client_closed) return;
  trace_.add(now_, "reset", link.process, link.index);
  link.error = ECONNRESET;
  pace_->note_event(processes_[link.process]);
  link.down.clear();
  link.up.clear();
  link.up_bytes = 0;
  if (link.server_id != 0) {
    Node& node = nodes_[link.node];
    node.redis.close(link.server_id);
    // What the server has in its socket it reads before it finds the end.
    if (paused(node)) {
      link.pending_end = true;
    } else {
      node.redis.receive_end(link.server_id);
      drop_server_side(link);
    }
  }
  wake_waiters(processes_[link.process], link.number);
}

// ---- The server's process ----------------------------------------------------------------------------------------

void World::pause_server(Node& node, SimTime length) {
  node.paused_until = std::max(node.paused_until, now_ + length);
  hinder(node, length);
  if (trace_.recorded()) trace_.items().push_back({node.lane, "stopped", now_, now_ + length, false});
  after(length, [this, paused = &node] { resume_server(*paused); });
}

void World::resume_server(Node& node) {
  if (paused(node)) return;
  // It reads its sockets one by one, in an order of its own, each as far as it has filled.
  std::vector<std::size_t> waiting;
  for (const std::size_t index : node.links)
    if (!links_[index].pending.empty() || links_[index].pending_end) waiting.push_back(index);
  while (!waiting.empty()) {
    const std::size_t chosen = random_.index(waiting.size());
    Link& link = links_[waiting[chosen]];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(chosen));
    const std::string bytes = std::move(link.pending);
    link.pending.clear();
    give_to_server(link, bytes, link.pending_end);
  }
}

void World::restart_server(Node& node, ModelRedis::Data data, SimTime down) {
  node.redis.restart(data, run_id_of(node.index, ++node.restarts));
  hinder(node, 0);
  for (const std::size_t index : node.links) {
    Link& link = links_[index];
    node.redis.receive_end(link.server_id);
    link.server_id = 0;
    link.pending.clear();
    link.pending_end = false;
    link.end_sent = true;
    if (!link.client_closed && !link.down_swallowed) send_down(link, {});
  }
  node.links.clear();
  node.redis.receive_end(node.foreign);
  node.redis.set_now(wall(node));
  node.foreign = node.redis.accept();
  if (plan_.password && !plan_.is_sentinel(node.index)) (void)foreign(node, {"AUTH", "right"});
  if (down != 0) refuse_connects(node, down);
}

// It was a replica, and says so by its replication id and the offset of the one before.
void World::promote_server(Node& node) {
  const std::string number = std::to_string(++node.promotions);
  const std::string name = "f" + std::to_string(node.index) + std::string(14 - number.size(), '0') + number;
  node.redis.promote(name + std::string(40 - name.size(), '0'));
}

std::string World::foreign(Node& node, const std::vector<std::string>& words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  if (node.redis.closed(node.foreign)) {
    node.redis.receive_end(node.foreign);
    node.foreign = node.redis.accept();
    if (plan_.password && words[0] != "AUTH" && !plan_.is_sentinel(node.index)) (void)foreign(node, {"AUTH", "right"});
  }
  (void)node.redis.receive(node.foreign, request, wall(node));
  std::string reply = node.redis.take_output(node.foreign);
  trace_.add(now_, "foreign", node.index, 0, request + reply);
  flush_server(node);
  return reply;
}

// ---- What a server must not say ----------------------------------------------------------------------------------

bool World::say_unasked(Link& link, std::string_view text) {
  const bool quiet =
      link.up.empty() && link.down.empty() && link.pending.empty() && link.received.empty() && !link.held_up;
  if (link.state != Link::State::established || link.client_closed || link.server_id == 0 || link.subscribed ||
      link.tls != nullptr || !link.answered || !quiet || !link.sound(now_) || paused(nodes_[link.node]))
    return false;
  trace_.add(now_, "unasked", link.process, link.index, text);
  link.received = text;
  link.unasked = true;
  wake_waiters(processes_[link.process], link.number);
  return true;
}

void World::tamper_with(Link& link, std::string& bytes) {
  const std::string lane = "client " + std::to_string(link.process);
  Tamper& tamper = nodes_[link.node].tamper;
  const bool message = bytes.find(message_head) != std::string::npos;
  switch (tamper) {
    case Tamper::nothing: return;
    case Tamper::lose_message:
    case Tamper::double_message:
      // Only where the output is one message and nothing else, so that no reply goes with it.
      if (!message || !bytes.starts_with(message_head) || bytes.find("*3", 1) != std::string::npos) return;
      count(tamper == Tamper::lose_message ? Fault::lost_message : Fault::duplicated_message, lane);
      if (tamper == Tamper::lose_message)
        bytes.clear();
      else
        bytes += bytes;
      break;
    case Tamper::hostile: {
      static constexpr std::string_view rubbish[] = {
          "HTTP/1.1 400 Bad Request\r\n\r\n", "$99999999999\r\n", "*1000\r\n", ":12x\r\n", "\r\n", "$-2\r\n",
          std::string_view("\0", 1)};
      count(Fault::hostile_bytes, lane);
      link.deceived = true;
      const std::string_view chosen = rubbish[random_.index(std::size(rubbish))];
      if (link.tls != nullptr && random_.coin())
        link.spoilt = chosen;
      else
        bytes.insert(0, chosen);
      break;
    }
    case Tamper::shape: {
      // One whole reply of a shape that no command of ours has.
      if (message) return;
      static constexpr std::string_view shapes[] = {"+HELLO\r\n", "*1\r\n*1\r\n+OK\r\n", "$5\r\nhello\r\n", ":-77\r\n"};
      const bool simple = bytes.size() > 2 && (bytes[0] == '+' || bytes[0] == ':' || bytes[0] == '-') &&
                          bytes.find("\r\n") == bytes.size() - 2;
      if (!simple && bytes != "$-1\r\n") return;
      count(Fault::wrong_shape, lane);
      bytes = shapes[random_.index(std::size(shapes))];
      break;
    }
    case Tamper::unasked:
      // Behind a reply, so that it stands where the next one will be looked for.
      if (message) return;
      count(Fault::unasked_reply, lane);
      processes_[link.process].lied_to = true;
      bytes += random_.coin() ? "$3\r\nbad\r\n" : "-ERR unasked\r\n";
      break;
  }
  tamper = Tamper::nothing;
}

}  // namespace holdfast::sim
