// SPDX-License-Identifier: MIT
//
// Theorem: holds that come and go before an honest server, whose replies come late, never, as errors or as nonsense:
//   1. No valid_until is later than the end of the key on the server less drift, and none is lowered. (L2, L4)
//   2. Nothing raises a valid_until that has passed. Lost is final and told once; at_risk is told once until a
//      confirmation; both are told as soon as they are so. (L4)
//   3. A call names only holds that are entered, not lost, in time, allowed, of one kind and in no other call, with a
//      token and a lease of their own; there are never more calls than renewal_calls_max. (S12, S13)
//   4. What has left is told nothing of, whoever has its place; its late reply touches nobody. (L4)
//   5. A reply of another shape is reported as such, and renews nothing. (S14)
//   6. After the time was judged the next timer lies ahead, and after all was polled nothing is due that could go. (S10)
//   7. When the server answers again, every hold that has time left is kept.
// No assertion of the library fails. The names are those of proto/security.md.
//
// Input: a program. Each step is a letter and a parameter, a digit or any byte:
//   e hold  enter           x hold  leave          c hold  confirm          C hold  confirm, of a while ago
//   l n     lease of next   a n     age of next    k n     kind of next     n hold  may be renewed, or not
//   P       all calls       p n     one call, into a room of 40 n bytes     s hold  somebody deletes the key
//   X call  execute         r call  answer         f call  fail with what E n has chosen
//   j n     answer no call                         h call  answer with the nonsense that H n has chosen
//   w       judge time      + n     time passes    t       to the next timer         d    poll the events
// Spaces and line ends between steps are nothing.
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/renewal_schedule.hpp"
#include "holdfast/proto/resp_parser.hpp"
#include "resp_oracle.hpp"
#include "resp_tree.hpp"
#include "scripts.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr std::size_t steps_max = 400;
constexpr std::size_t place_count = 6;
constexpr std::size_t name_count = 8;  // More than there are places.

const LockKind other_kind = [] {
  LockKind kind = mutex_kind;
  kind.renew_batch = &scripts::reentrant_renew;
  return kind;
}();

Duration retry_of(Duration lease) { return lease / 30 < retry_delay_min ? retry_delay_min : lease / 30; }

// One hold as its application and the server see it. Each is an object of its own, also after it has left.
struct Holder {
  std::string key;
  Token token;
  const LockKind* kind = nullptr;
  RenewalSchedule::Place* place = nullptr;
  Duration lease{};
  Instant expires;    // The key, had nobody deleted it.
  bool there = true;  // Nobody has deleted it.
  bool allowed = true;
  bool left = false;
  bool risk_told = false;
  bool lost_told = false;
  Instant valid_until;  // After the last step.

  bool alive(Instant now) const { return there && now < expires; }
  Duration drift() const { return lease / 100 + 2ms; }
};

struct Asked {
  ReplyTag tag;
  std::vector<Holder*> holders;
  bool by_text = false;
  bool executed = false;
  std::string answer;
};

class World {
 public:
  World() : schedule_({may_renew, renewed}, {places_, heap_, place_count}, 1s) {}

  void run(std::string_view program) {
    rest_ = program;
    for (std::size_t step = 0; step < steps_max && !rest_.empty(); ++step) {
      const char letter = next();
      if (letter == ' ' || letter == '\n') continue;
      const auto raw = static_cast<std::uint8_t>(next());
      this->step(letter, raw >= '0' && raw <= '9' ? static_cast<std::size_t>(raw - '0') : raw);
      check();
    }
    settle();
  }

 private:
  static bool may_renew(void* holder, Instant) noexcept { return static_cast<Holder*>(holder)->allowed; }
  static void renewed(const KeptHold& hold) noexcept {
    auto& it = *static_cast<Holder*>(hold.holder);
    HOLDFAST_THEOREM(!it.left && !it.lost_told, it.key);
    HOLDFAST_THEOREM(hold.confirmed_at <= hold.valid_until && hold.valid_until + it.drift() <= it.expires, it.key);
    it.risk_told = false;
  }

  char next() { return next_byte(rest_); }

  void step(char letter, std::size_t n) {
    static constexpr char letters[] = "exPXr+wtpcCnsfhlakEHjd";
    letter = letter_of(letter, letters);
    trace_ += letter + std::to_string(n) + " ";
    static constexpr Duration leases[] = {30s, 5ms, 100ms, 1s, 24h, 6ms, 10s, 2min, 30s, 30s};
    static constexpr Duration steps[] = {1ns, 1ms, 2ms, 30ms, 100ms, 1s, 3s, 7s, 10s, 30s};
    Holder* const holder = now_held_[n % name_count];
    switch (letter) {
      case 'e': enter(n % name_count); break;
      case 'x': leave(n % name_count); break;
      case 'c': confirm(holder, Duration(0)); break;
      case 'C': confirm(holder, age_); break;
      case 'l': lease_ = leases[n % 10]; break;
      case 'a': age_ = lease_ * static_cast<int>(n % 10) / 8; break;
      case 'k': kind_ = n % 2 == 0 ? &mutex_kind : &other_kind; break;
      case 'n':
        if (holder != nullptr) holder->allowed = !holder->allowed;
        break;
      case 's':
        if (holder != nullptr) holder->there = false;
        break;
      case 'p': (void)ask(n * 40); break;
      case 'P': ask_all(); break;
      case 'X': execute(n); break;
      case 'r': answer(n); break;
      case 'f': fail(n); break;
      case 'h': answer_nonsense(n); break;
      case 'E': failure_ = n; break;
      case 'H': nonsense_ = n; break;
      case 'j': answer_stray(n); break;
      case 'w': judge(); break;
      case '+': now_ = now_ + steps[n % 10]; break;
      case 't':
        if (schedule_.poll_timeout() != Instant::max()) now_ = later(now_, schedule_.poll_timeout());
        judge();
        break;
      case 'd': drain(); break;
    }
  }

  // ---- The application

  void enter(std::size_t name) {
    if (now_held_[name] != nullptr) return;
    holders_.emplace_back();
    Holder& holder = holders_.back();
    holder.key = "lock" + std::to_string(name);
    holder.token = Token(ByteView("token" + std::to_string(holders_.size())));
    holder.kind = kind_;
    holder.lease = lease_;
    const Instant confirmed_at = now_ - age_;
    holder.expires = confirmed_at + lease_;
    const Duration validity = lease_ - holder.drift();
    holder.valid_until = confirmed_at + validity;
    holder.place = schedule_.enter({.holder = &holder,
                                    .kind = kind_,
                                    .key = Key(ByteView(holder.key)),
                                    .token = &holder.token,
                                    .lease = lease_,
                                    .validity = validity,
                                    .confirmed_at = confirmed_at,
                                    .valid_until = holder.valid_until},
                                   now_);
    HOLDFAST_THEOREM((holder.place == nullptr) == (entered() == place_count), trace_);
    if (holder.place == nullptr)
      holder.left = true;
    else
      now_held_[name] = &holder;
  }
  std::size_t entered() const {
    std::size_t count = 0;
    for (const Holder* holder : now_held_) count += holder != nullptr;
    return count;
  }
  void leave(std::size_t name) {
    Holder* const holder = std::exchange(now_held_[name], nullptr);
    if (holder == nullptr) return;
    holder->left = true;
    schedule_.leave(*holder->place);
  }
  // By its own client, whose reply took so long.
  void confirm(Holder* holder, Duration ago) {
    if (holder == nullptr || !holder->alive(now_)) return;
    const Instant asked_at = now_ - ago;
    holder->expires = later(holder->expires, asked_at + holder->lease);
    const bool news = now_ < holder->place->hold.valid_until && asked_at > holder->place->hold.confirmed_at;
    schedule_.confirm(*holder->place, asked_at, now_);
    if (news) holder->risk_told = false;
  }

  // ---- The driver

  bool ask(std::size_t room) {
    // A room of its very size, so that a sanitizer sees a write behind it; the usual room costs no allocation.
    const std::unique_ptr<char[]> small(room < sizeof room_ ? new char[room] : nullptr);
    char* const space = small ? small.get() : room_;
    Request request;
    std::size_t size = 0;
    schedule_.handle_timeout(now_);
    drain();
    const std::size_t before = schedule_.calls_in_flight();
    if (!schedule_.poll_request({space, room}, request, size, now_)) {
      HOLDFAST_THEOREM(schedule_.calls_in_flight() == before, trace_);
      return false;
    }
    HOLDFAST_THEOREM(before < renewal_calls_max && schedule_.calls_in_flight() == before + 1, trace_);
    HOLDFAST_THEOREM(size <= room && request.deadline == now_ + 1s, trace_);
    HOLDFAST_THEOREM(request.tag.operation == Operation::renew && request.compensation == nullptr, trace_);
    read_call({space, size}, request.tag);
    return true;
  }
  void read_call(std::string_view bytes, const ReplyTag& tag) {
    RespTree tree;
    std::size_t size = 0;
    const OracleLimits wide = {.bulk = 1U << 20, .elements = 1U << 20, .reply = 1U << 24};
    HOLDFAST_THEOREM(RespOracle::read(bytes, wide, tree, size) == ParseResult::value && size == bytes.size(), trace_);
    const std::vector<RespTree>& words = tree.items;
    Asked asked;
    asked.tag = tag;
    asked.by_text = words[0].text == "EVAL";
    HOLDFAST_THEOREM(asked.by_text || words[0].text == "EVALSHA", trace_);
    const std::size_t count = std::stoul(words[2].text);
    HOLDFAST_THEOREM(count >= 1 && words.size() == 3 + 3 * count, trace_);
    for (std::size_t index = 0; index < count; ++index) {
      Holder* const holder = now_held_[static_cast<std::size_t>(words[3 + index].text.back() - '0')];
      HOLDFAST_THEOREM(holder != nullptr && holder->key == words[3 + index].text, trace_);
      HOLDFAST_THEOREM(!holder->lost_told && holder->allowed && now_ < holder->place->hold.valid_until, trace_);
      HOLDFAST_THEOREM(words[3 + count + 2 * index].text == holder->token.bytes().string_view(), trace_);
      HOLDFAST_THEOREM(words[4 + count + 2 * index].text == std::to_string(holder->lease / 1ms), trace_);
      const Script& script = *holder->kind->renew_batch;
      HOLDFAST_THEOREM(words[1].text == (asked.by_text ? script.text : script.sha.bytes()).string_view(), trace_);
      HOLDFAST_THEOREM(!in_flight(holder), trace_);
      for (const Holder* other : asked.holders) HOLDFAST_THEOREM(other != holder, trace_);
      asked.holders.push_back(holder);
    }
    asked_.push_back(asked);
  }
  bool in_flight(const Holder* holder) const {
    for (const Asked& asked : asked_)
      for (const Holder* other : asked.holders)
        if (other == holder) return true;
    return false;
  }
  void ask_all() {
    while (ask(sizeof room_)) continue;
    if (schedule_.calls_in_flight() == renewal_calls_max) return;
    for (const Holder* holder : now_held_)
      if (holder != nullptr && !in_flight(holder) && now_ < holder->place->hold.valid_until && !lost(holder))
        HOLDFAST_THEOREM(holder->place->due > now_, trace_ + holder->key);
  }
  // Told of a loss, or about to be.
  bool lost(const Holder* holder) {
    drain();
    return holder->lost_told;
  }
  void judge() {
    schedule_.handle_timeout(now_);
    HOLDFAST_THEOREM(schedule_.poll_timeout() > now_, trace_);
    drain();
    for (const Holder* holder : now_held_) {
      if (holder == nullptr) continue;
      const KeptHold& hold = holder->place->hold;
      HOLDFAST_THEOREM(now_ < hold.valid_until || holder->lost_told, trace_ + holder->key);
      HOLDFAST_THEOREM(now_ < hold.confirmed_at + hold.lease / 3 * 2 || holder->risk_told || holder->lost_told,
                       trace_ + holder->key);
    }
  }
  void drain() {
    void* told = nullptr;
    for (;;) {
      const RenewalEvent event = schedule_.poll_event(told);
      if (event == RenewalEvent::none) return;
      Holder& holder = *static_cast<Holder*>(told);
      HOLDFAST_THEOREM(!holder.left && !holder.lost_told, trace_ + holder.key);
      if (event == RenewalEvent::at_risk) {
        HOLDFAST_THEOREM(!holder.risk_told, trace_ + holder.key);
        holder.risk_told = true;
      } else {
        holder.lost_told = true;
      }
    }
  }

  // ---- The server

  // The call `n` of those in flight; the last where there are fewer.
  Asked* call(std::size_t n) { return asked_.empty() ? nullptr : &asked_[n < asked_.size() ? n : asked_.size() - 1]; }
  void execute(std::size_t n) {
    if (Asked* const asked = call(n); asked != nullptr) execute(*asked);
  }
  void execute(Asked& asked) {
    if (asked.executed) return;
    asked.executed = true;
    asked.answer = "*" + std::to_string(asked.holders.size()) + "\r\n";
    for (Holder* holder : asked.holders) {
      const bool kept = holder->alive(now_);
      if (kept) holder->expires = later(holder->expires, now_ + holder->lease);
      asked.answer += kept ? ":1\r\n" : ":0\r\n";
    }
  }
  Asked take(std::size_t n) {
    const Asked taken = *call(n);
    asked_.erase(asked_.begin() + (call(n) - asked_.data()));
    return taken;
  }
  void answer(std::size_t n) {
    if (call(n) == nullptr) return;
    execute(n);
    const Asked asked = take(n);
    HOLDFAST_THEOREM(answer(asked.tag, asked.answer), trace_);
  }
  bool answer(const ReplyTag& tag, const std::string& bytes) {
    static char buffer[reply_size_max];
    static RespValue nodes[elements_max];
    RespParser parser({buffer, sizeof buffer}, nodes, elements_max);
    std::memcpy(parser.receive_space().data, bytes.data(), bytes.size());
    parser.handle_received(bytes.size());
    RespValue value;
    HOLDFAST_THEOREM(parser.poll_value(value) == ParseResult::value, bytes);
    return schedule_.handle_reply({.tag = tag, .outcome = Status::ok, .nothing_ran = false, .value = value}, now_);
  }
  void fail(std::size_t n) {
    if (call(n) == nullptr) return;
    // What was lost may have run; an honest server has not run what it refused.
    static constexpr Status outcomes[] = {
        Status::timed_out, Status::transport_closed, Status::not_connected, Status::no_script,     Status::cross_slot,
        Status::loading,   Status::wrong_type,       Status::server_error,  Status::no_permission, Status::cancelled};
    const Asked asked = take(n);
    const Status outcome = outcomes[failure_ % 10];
    HOLDFAST_THEOREM(
        schedule_.handle_reply({.tag = asked.tag, .outcome = outcome, .nothing_ran = false, .value = {}}, now_),
        trace_);
  }
  void answer_nonsense(std::size_t n) {
    if (call(n) == nullptr) return;
    const Asked asked = take(n);
    const std::string count = std::to_string(asked.holders.size());
    std::string ones;
    for (std::size_t index = 1; index < asked.holders.size(); ++index) ones += ":1\r\n";
    const std::string odd[] = {"$-1\r\n",
                               ":1\r\n",
                               "+OK\r\n",
                               "*" + std::to_string(asked.holders.size() + 1) + "\r\n" + ones + ":1\r\n:1\r\n",
                               "*" + std::to_string(asked.holders.size() - 1) + "\r\n" + ones,
                               "*" + count + "\r\n" + ones + "$1\r\n1\r\n",
                               "*" + count + "\r\n" + ones + "$-1\r\n",
                               "*" + count + "\r\n*1\r\n:1\r\n" + ones,
                               "*" + count + "\r\n+1\r\n" + ones};
    std::vector<Instant> before;
    for (const Holder* holder : asked.holders)
      before.push_back(holder->left ? Instant() : holder->place->hold.valid_until);
    HOLDFAST_THEOREM(!answer(asked.tag, odd[nonsense_ % 9]), trace_);
    for (std::size_t index = 0; index < before.size(); ++index)
      HOLDFAST_THEOREM(asked.holders[index]->left || asked.holders[index]->place->hold.valid_until == before[index],
                       trace_);
  }
  void answer_stray(std::size_t n) {
    ReplyTag tag{nullptr, static_cast<std::uint32_t>(n), Operation::renew};
    for (const Asked& asked : asked_)
      if (asked.tag.generation == tag.generation) return;
    HOLDFAST_THEOREM(answer(tag, "*1\r\n:0\r\n"), trace_);
  }

  // ---- The theorem

  void check() {
    for (Holder& holder : holders_) {
      if (holder.left) continue;
      const Instant valid_until = holder.place->hold.valid_until;
      HOLDFAST_THEOREM(valid_until + holder.drift() <= holder.expires, trace_ + holder.key);
      HOLDFAST_THEOREM(valid_until >= holder.valid_until, trace_ + holder.key);
      const bool final = holder.lost_told || now_ >= holder.valid_until;
      HOLDFAST_THEOREM(!final || valid_until == holder.valid_until, trace_ + holder.key);
      holder.valid_until = valid_until;
    }
    HOLDFAST_THEOREM(schedule_.size() == entered() && schedule_.calls_in_flight() == asked_.size(), trace_);
  }

  // From now on every call is answered at once. Nobody who has time left is lost, and the driver does not spin.
  void settle() {
    failure_ = 0;
    while (!asked_.empty()) fail(0);
    judge();
    std::vector<Holder*> kept;
    for (Holder* holder : now_held_) {
      if (holder == nullptr) continue;
      holder->allowed = true;
      if (holder->alive(now_) && !holder->lost_told && now_ + retry_of(holder->lease) < holder->place->hold.valid_until)
        kept.push_back(holder);
    }
    const Instant end = now_ + 1min;
    std::size_t turns = 0;
    Duration shortest = 30s;
    for (const Holder* holder : now_held_)
      if (holder != nullptr && holder->lease < shortest) shortest = holder->lease;
    const Instant stop = earlier(end, now_ + shortest * 5);
    while (now_ < stop) {
      ask_all();
      while (!asked_.empty()) answer(0);
      ask_all();  // What the script was unknown for, or what had to be asked alone.
      while (!asked_.empty()) answer(0);
      check();
      if (schedule_.poll_timeout() == Instant::max()) break;
      HOLDFAST_THEOREM(schedule_.poll_timeout() > now_, trace_);
      now_ = schedule_.poll_timeout();
      judge();
      check();
      HOLDFAST_THEOREM(++turns < 2000, trace_);
    }
    for (const Holder* holder : kept) HOLDFAST_THEOREM(!holder->lost_told, trace_ + holder->key);
  }

  std::string_view rest_;
  std::string trace_;
  char room_[16384];
  RenewalSchedule::Place places_[place_count];
  std::uint32_t heap_[place_count];
  RenewalSchedule schedule_;
  std::deque<Holder> holders_;  // Views and pointers into it stay.
  Holder* now_held_[name_count] = {};
  std::vector<Asked> asked_;
  Instant now_ = Instant::from_nanoseconds(1'000'000'000'000'000);
  Duration lease_ = 30s;
  Duration age_{};
  const LockKind* kind_ = &mutex_kind;
  std::size_t failure_ = 0;
  std::size_t nonsense_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World().run({reinterpret_cast<const char*>(data), size});
  return 0;
}
