// SPDX-License-Identifier: MIT
#include "pace.hpp"

#include <algorithm>

#include "world.hpp"

namespace holdfast::sim {

namespace {

// An attempt every two milliseconds, of some ten calls each, is the most that waiting takes of itself.
constexpr SimTime call_every = 100 * microsecond;
// What one event may cost: a look at each of a quorum's sockets, its bytes, and what they call for.
constexpr std::int64_t calls_an_event = 60;
// A socket may take one byte at a time: each costs a look at the clock before and after the wait, and one at what has come.
constexpr std::int64_t calls_a_send = 8;
constexpr std::int64_t calls_at_first = 3'000;
constexpr std::int64_t calls_max = 20'000;

// Delays grow from reconnect_delay_min to reconnect_delay_max, each times a half to one: nine attempts fit into their
// growth, and one a second is the most behind that.
constexpr double failures_at_first = 12;
constexpr double failures_a_second = 1.5;

}  // namespace

// ---- System calls ------------------------------------------------------------------------------------------------

void Pace::begin(Thread& thread) const noexcept {
  thread.calls_left = std::max(thread.calls_left, calls_at_first);
  thread.calls_left_at = world_.now();
}

bool Pace::note_call(Thread& thread) const {
  const SimTime passed = (world_.now() - thread.calls_left_at) / call_every;
  if (passed != 0) {
    thread.calls_left = std::max(thread.calls_left, std::min(thread.calls_left + passed, calls_at_first));
    thread.calls_left_at += passed * call_every;
  }
  return --thread.calls_left >= 0;
}

void Pace::note_event(const Process& process) const noexcept {
  for (const std::size_t id : process.threads)
    if (Thread* const thread = world_.thread_at(id); thread != nullptr)
      thread->calls_left = std::min(thread->calls_left + calls_an_event, calls_max);
}

void Pace::note_sent(Thread& thread) noexcept {
  thread.calls_left = std::min(thread.calls_left + calls_a_send, calls_max);
  thread.calls -= std::min<std::uint32_t>(thread.calls, calls_a_send);
}

// ---- Dialling ----------------------------------------------------------------------------------------------------

double Pace::dialled_by(const Process& process, std::size_t node) const {
  double dialled = 0;
  for (const ConnectionPlan& connection : process.plan->connections)
    if (connection.node == node || world_.plan().one_place() || process.plan->quorum ||
        process.plan->connects_anew != 0)
      dialled += (process.plan->acks == 0 ? 2 : 3) * static_cast<double>(1 + connection.dead_addresses);
  // Each node of a cluster may name the one that is not there, to each connection that a client on a loop has.
  if (world_.plan().set_up == SetUp::cluster)
    dialled *= static_cast<double>(world_.plan().servers * (process.plan->loop ? world_.plan().tags : 1));
  return std::max(dialled, 2.0);
}

Pace::Dialling& Pace::dialling_of(const Link& link) {
  return dialling_of({link.process, link.life, link.thread, link.node},
                     dialled_by(world_.processes()[link.process], link.node));
}

Pace::Dialling& Pace::dialling_of(const Who& who, double dialled) {
  const double most = failures_at_first * dialled;
  const auto [found, fresh] = dialling_.try_emplace(who, Dialling{most, world_.now()});
  Dialling& dialling = found->second;
  const double passed = static_cast<double>(world_.now() - dialling.at) / static_cast<double>(second);
  dialling.left = std::max(dialling.left, std::min(most, dialling.left + passed * failures_a_second * dialled));
  dialling.at = world_.now();
  return dialling;
}

// The next failure is the first again.
void Pace::note_useful(const Link& link) {
  Dialling& dialling = dialling_of(link);
  dialling.left += failures_at_first;
}

void Pace::note_connect_call(const Process& process) {
  for (auto& [who, dialling] : dialling_)
    if (std::get<0>(who) == process.index && std::get<1>(who) == process.life) dialling.left += failures_at_first;
}

void Pace::note_closed(const Link& link) {
  if (link.useful || link.state == Link::State::unconnected) return;
  if (world_.plan().one_place() && link.answered) return;  // Who is asked where the server is has nothing else to do.
  Dialling& dialling = dialling_of(link);
  dialling.left -= 1;
  if (dialling.left < 0)
    world_.fail("back-off", "client " + std::to_string(link.process) + " dials node " + std::to_string(link.node) +
                                " again and again, for nothing");
}

void Pace::note_no_socket(const Process& process, const Thread& thread) {
  double dialled = 0;
  for (const Node& node : world_.nodes()) dialled += dialled_by(process, node.index);
  Dialling& dialling = dialling_of({process.index, process.life, thread.id, world_.nodes().size()}, dialled);
  dialling.left -= 1;
  if (dialling.left < 0)
    world_.fail("back-off", "client " + std::to_string(process.index) + " wants a socket again and again");
}

}  // namespace holdfast::sim
