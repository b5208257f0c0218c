// SPDX-License-Identifier: MIT
//
// Keeping is what a hold comes with beside the lock itself: whether it is renewed, for how long and on what sign of life;
// whom to tell of a doubt and of a loss, each once; and what any thread may ask. Every lock of every driver has one.
//
// Thread rule: A from any thread, B from the owner's, C from whoever keeps the hold.   No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/keep_options.hpp"
#include "holdfast/detail/clock.hpp"
#include "holdfast/detail/shared_tick.hpp"
#include "holdfast/detail/shared_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class Keeping {
 public:
  enum class News : std::uint8_t { none, at_risk, lost };
  using Callback = void (*)(void* context) noexcept;

  // A. Questions.
  [[nodiscard]] Instant valid_until() const noexcept { return Instant::from_nanoseconds(valid_until_.load()); }
  [[nodiscard]] bool held() const noexcept {
    const Instant until = valid_until();
    return until != Instant() && read_clock() < until;
  }
  [[nodiscard]] Duration remaining() const noexcept {
    const Instant until = valid_until();
    const Instant now = read_clock();
    return now < until ? until - now : Duration::zero();
  }
  [[nodiscard]] bool at_risk() const noexcept {
    const Instant now = read_clock();
    return now < valid_until() && now.nanoseconds() >= risky_from_.load();
  }
  // The application is alive.
  void tick() noexcept { ticked_at_.set(read_clock()); }

  // B. The owner's.
  [[nodiscard]] const KeepOptions& options() const noexcept { return options_; }
  // Of holds from the next one on. Errors: invalid_argument; already_held.
  [[nodiscard]] Status set_options(const KeepOptions& options, bool held) noexcept {
    if (!options.valid()) return Status::invalid_argument;
    if (held) return Status::already_held;
    options_ = options;
    return Status::ok;
  }
  // To be renewed by somebody; `automatic`: the lease is.
  [[nodiscard]] bool kept(bool automatic) const noexcept {
    return options_.keep == Keep::always || (options_.keep == Keep::automatic && automatic);
  }
  // There is more to a hold than its renewal: somebody to tell, or an end to it.
  [[nodiscard]] bool watched() const noexcept {
    return tells() || options_.max_hold != max_hold_unlimited || options_.liveness != liveness_off;
  }
  [[nodiscard]] bool tells() const noexcept { return options_.on_lost != nullptr || options_.on_at_risk != nullptr; }
  void begin_hold(Instant granted_at) noexcept {
    granted_at_ = granted_at;
    ticked_at_.set(granted_at);
    told_.store(0);
    hidden_ &= hidden_by_release | hidden_as_idle;
    news_ = News::none;
  }
  // The outermost release has begun, whatever comes of it: a loss that it finds is nobody's news.
  void begin_end() noexcept { hidden_ |= ending_bit; }
  [[nodiscard]] bool ending() const noexcept { return (hidden_ & ending_bit) != 0; }
  // A release has begun: the hold is over for whoever asks, is renewed no more, and nobody is told anything of it.
  void begin_release() noexcept {
    hidden_ |= hidden_by_release;
    news_ = News::none;
    valid_until_.store(0);
  }
  // Asked for, or refused: what is published counts again.
  // Written only where a release had begun: who keeps a hold reads it.
  void end_release() noexcept {
    if (letting_go()) hidden_ &= static_cast<std::uint8_t>(~hidden_by_release);
  }
  [[nodiscard]] bool letting_go() const noexcept { return (hidden_ & hidden_by_release) != 0; }
  // The hold is nobody's for a while: not held for whoever asks, renewed as before, and nobody is told anything of it. REQUIRES,
  // of both: nobody else keeps it now.
  void begin_idle() noexcept {
    hidden_ |= hidden_as_idle;
    news_ = News::none;
    told_.store(1U << risk_told | 1U << loss_told | 1U << loss_counted);
    valid_until_.store(0);
  }
  // What is published counts again. Somebody has it, from then on; or it is over.
  void end_idle() noexcept { hidden_ &= static_cast<std::uint8_t>(~hidden_as_idle); }
  // What the machine says.
  void publish(Instant valid_until, Instant risky_from) noexcept {
    risky_from_.store(risky_from.nanoseconds());
    valid_until_.store(hidden() ? 0 : valid_until.nanoseconds());
  }
  // Nothing is held, whatever was published.
  void withdraw() noexcept { valid_until_.store(0); }

  // A loss is the last news of a hold.
  void note(News news) noexcept {
    if (hidden() || (news == News::at_risk && news_ != News::none)) return;
    news_ = news;
  }
  void doubt_is_over() noexcept {
    if (news_ == News::at_risk) news_ = News::none;
  }
  void forget_news() noexcept { news_ = News::none; }
  [[nodiscard]] News news() const noexcept { return news_; }
  [[nodiscard]] bool has_news() const noexcept { return news_ != News::none; }
  // The news, unless somebody has told it already; `call` is whom to tell, or nullptr. What comes next is news again.
  [[nodiscard]] News take_news(Callback& call) noexcept {
    const News news = news_;
    news_ = News::none;
    return news != News::none && claim(news, call) ? news : News::none;
  }

  // C. Who keeps the hold.
  // May it be renewed: not beyond max_hold, nor after more than `liveness` without a tick?
  [[nodiscard]] bool may_renew(Instant now) const noexcept { return !letting_go() && !too_old(now) && alive(now); }
  [[nodiscard]] bool too_old(Instant now) const noexcept {
    return options_.max_hold != max_hold_unlimited && now - granted_at_ >= options_.max_hold;
  }
  [[nodiscard]] bool alive(Instant now) const noexcept {
    return options_.liveness == liveness_off || ticked_at_.since(now) < options_.liveness;
  }
  void doubt() noexcept { risky_from_.store(0); }
  // True for the first who finds out that this hold is lost: it is the caller's to count.
  [[nodiscard]] bool first_loss() noexcept { return told_.raise(loss_counted); }
  // True for the first who asks for this hold and this news: it is the caller's to tell.
  [[nodiscard]] bool claim(News news, Callback& call) noexcept {
    call = news == News::lost ? options_.on_lost : options_.on_at_risk;
    return told_.raise(news == News::lost ? loss_told : risk_told);
  }

 private:
  [[nodiscard]] bool hidden() const noexcept { return (hidden_ & (hidden_by_release | hidden_as_idle)) != 0; }

  SharedValue<std::int64_t> valid_until_;
  SharedValue<std::int64_t> risky_from_;
  KeepOptions options_;
  Instant granted_at_;
  SharedTick ticked_at_;
  static constexpr unsigned risk_told = 0;
  static constexpr unsigned loss_told = 1;
  static constexpr unsigned loss_counted = 2;
  SharedValue<std::uint16_t> told_;  // A bit for each.
  News news_ = News::none;
  static constexpr std::uint8_t hidden_by_release = 1;
  static constexpr std::uint8_t hidden_as_idle = 2;
  static constexpr std::uint8_t ending_bit = 4;
  std::uint8_t hidden_ = 0;  // Any of them.
};

}  // namespace holdfast
