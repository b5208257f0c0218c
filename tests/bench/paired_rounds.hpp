// SPDX-License-Identifier: MIT
//
// PairedRounds compares several ways of doing the same thing on a machine that is noisy and shared. All of them run in
// one process, in rounds: each round runs every contender once, in a random order, and keeps the median of its samples.
// A ratio is formed inside each round, so that what slows a whole round down cancels out; what is reported is the
// median of those ratios with the 10th and the 90th percentile. One contender runs twice under two names (the A/A
// control): a difference that is smaller than the control's spread is no difference.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

// The compiler must have `value` in memory here, and every other byte of the program, too. (Google Benchmark's
// DoNotOptimize() of 1.7 lets GCC write wrong code where it may change its argument.)
template <class Value>
inline void consume(const Value& value) {
  asm volatile("" : : "m"(value) : "memory");
}
// The compiler no longer knows what `value` is, a number or a pointer, nor what it points to.
template <class Value>
inline void conceal(Value& value) {
  asm volatile("" : "+r"(value) : : "memory");
}

// The middle of what was measured, and what eight of ten rounds lie between.
struct Spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

// Linear between the two nearest ranks. REQUIRES: `sorted` is sorted and not empty.
inline double percentile(const std::vector<double>& sorted, double fraction) {
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

inline Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {percentile(values, 0.5), percentile(values, 0.1), percentile(values, 0.9)};
}

class PairedRounds {
 public:
  // Runs `count` operations and returns.
  using Run = std::function<void(std::size_t count)>;
  // Does one operation and returns its nanoseconds: for operations of which only a part is to be timed.
  using Sample = std::function<double()>;

  // `samples` a round and contender; each sample times `batch` operations at once.
  PairedRounds(std::size_t samples, std::size_t batch, unsigned seed)
      : samples_(samples), batch_(batch), order_source_(seed) {}

  void add(std::string name, Run run) { contenders_.push_back({std::move(name), std::move(run), {}, batch_, {}}); }
  void add_sampled(std::string name, Sample sample) {
    contenders_.push_back({std::move(name), {}, std::move(sample), 1, {}});
  }

  // Chooses every contender's batch so that a sample takes about `duration`: for operations of nanoseconds, whose
  // costs are far apart. REQUIRES: none was added as sampled.
  void calibrate(std::chrono::nanoseconds duration) {
    for (Contender& contender : contenders_) {
      contender.batch = 16;
      while (elapsed(contender) * static_cast<double>(contender.batch) < static_cast<double>(duration.count()))
        contender.batch *= 2;
    }
  }

  // Rounds until `duration` has passed, but at least `rounds_min`.
  void run(std::chrono::nanoseconds duration, std::size_t rounds_min) {
    const Clock::time_point end = Clock::now() + duration;
    std::vector<std::size_t> order(contenders_.size());
    for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
    std::vector<double> values(samples_);
    for (std::size_t round = 0; round < rounds_min || Clock::now() < end; ++round) {
      std::shuffle(order.begin(), order.end(), order_source_);
      for (const std::size_t index : order) {
        for (double& value : values) value = elapsed(contenders_[index]);
        std::sort(values.begin(), values.end());
        contenders_[index].rounds.push_back(percentile(values, 0.5));
      }
    }
  }

  [[nodiscard]] std::size_t round_count() const { return contenders_.empty() ? 0 : contenders_[0].rounds.size(); }
  // Nanoseconds an operation. REQUIRES: `name` was added, and run() was called.
  [[nodiscard]] Spread nanoseconds(const std::string& name) const { return spread(find(name).rounds); }
  // The time of `name` over the time of `reference`. REQUIRES: as above.
  [[nodiscard]] Spread ratio(const std::string& name, const std::string& reference) const {
    const std::vector<double>& numerators = find(name).rounds;
    const std::vector<double>& denominators = find(reference).rounds;
    std::vector<double> ratios(numerators.size());
    for (std::size_t round = 0; round < ratios.size(); ++round) ratios[round] = numerators[round] / denominators[round];
    return spread(std::move(ratios));
  }

 private:
  struct Contender {
    std::string name;
    Run run;
    Sample sample;  // Instead of `run`.
    std::size_t batch;
    std::vector<double> rounds;  // Median nanoseconds an operation, one a round.
  };

  // Nanoseconds an operation of one sample.
  static double elapsed(const Contender& contender) {
    if (contender.sample) return contender.sample();
    const Clock::time_point begin = Clock::now();
    contender.run(contender.batch);
    const std::chrono::duration<double, std::nano> duration = Clock::now() - begin;
    return duration.count() / static_cast<double>(contender.batch);
  }

  [[nodiscard]] const Contender& find(const std::string& name) const {
    return *std::find_if(contenders_.begin(), contenders_.end(), [&](const Contender& it) { return it.name == name; });
  }

  std::size_t samples_;
  std::size_t batch_;
  std::mt19937 order_source_;
  std::vector<Contender> contenders_;
};

}  // namespace bench
