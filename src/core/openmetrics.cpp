// SPDX-License-Identifier: MIT
#include "holdfast/core/openmetrics.hpp"

#include <cstdint>
#include <cstring>

#include "holdfast/proto/decimal.hpp"

namespace holdfast {

namespace {

struct Number {
  const char* family;
  const char* unit;  // nullptr: it has none.
  const char* help;
  std::uint64_t Stats::*value;
};
constexpr Number counters[] = {
    {"holdfast_grants", nullptr, "Calls that acquired a lock.", &Stats::grants},
    {"holdfast_refusals", nullptr, "Calls that ended without the lock because somebody else holds it.",
     &Stats::refusals},
    {"holdfast_acquire_failures", nullptr, "Calls that ended without the lock for another reason.", &Stats::failures},
    {"holdfast_waits", nullptr, "Calls that began to wait for a lock.", &Stats::waits},
    {"holdfast_losses", nullptr, "Holds that ended before they were released.", &Stats::losses},
    {"holdfast_renewals", nullptr, "Renewals that extended a hold.", &Stats::renewals},
    {"holdfast_renewal_failures", nullptr, "Renewals that did not extend a hold.", &Stats::renewals_failed},
    {"holdfast_connects", nullptr, "Connections that came to be of use.", &Stats::connects},
    {"holdfast_reconnects", nullptr, "Connections that followed one which was lost.", &Stats::reconnects},
    {"holdfast_compensations", nullptr, "Requests to take back what nobody may have.", &Stats::compensations},
    {"holdfast_sent_bytes", "bytes", "Bytes sent to servers.", &Stats::bytes_sent},
    {"holdfast_received_bytes", "bytes", "Bytes received from servers.", &Stats::bytes_received},
};

struct Gauge {
  const char* family;
  const char* help;
  std::uint64_t (Stats::*value)() const noexcept;
};
constexpr Gauge gauges[] = {
    {"holdfast_waiting_calls", "Calls that wait for a lock now.", &Stats::waiting},
    {"holdfast_connections", "Connections that are of use now.", &Stats::connected},
};

struct Histogram {
  const char* family;
  const char* help;
  Latencies Stats::*value;
};
constexpr Histogram histograms[] = {
    {"holdfast_acquire_seconds", "How long calls took that acquired a lock.", &Stats::acquire},
    {"holdfast_wait_seconds", "How long calls took that had to wait for a lock, whatever came of it.", &Stats::wait},
    {"holdfast_renewal_seconds", "How long renewals took that extended a hold.", &Stats::renewal},
};

static_assert(openmetrics_samples == sizeof counters / sizeof counters[0] + sizeof gauges / sizeof gauges[0] +
                                         sizeof histograms / sizeof histograms[0] * (latency_buckets_count + 2));

// Counts the bytes; and puts them down, where there is a place.
class Page {
 public:
  explicit Page(char* at) noexcept : at_(at) {}
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  Page& add(ByteView text) noexcept {
    if (at_ != nullptr && !text.empty()) std::memcpy(at_ + size_, text.data(), text.size());
    size_ += text.size();
    return *this;
  }
  Page& add(const char* text) noexcept { return add(ByteView(text, std::strlen(text))); }
  Page& add(std::uint64_t number) noexcept {
    char digits[decimal_size_max];
    return add(ByteView(digits, static_cast<std::size_t>(write_decimal(digits, number) - digits)));
  }
  // In seconds, to the last digit.
  Page& add_seconds(std::uint64_t nanoseconds) noexcept {
    constexpr std::uint64_t second = 1'000'000'000;
    char digits[decimal_size_max];
    (void)write_decimal(digits, second + nanoseconds % second);
    digits[0] = '.';  // The nine behind it have their zeros.
    return add(nanoseconds / second).add(ByteView(digits, 10));
  }
  Page& add_escaped(ByteView text) noexcept {
    for (const char byte : text) {
      if (byte == '\n')
        add("\\n");
      else if (byte == '\\' || byte == '"')
        add("\\").add(ByteView(&byte, 1));
      else
        add(ByteView(&byte, 1));
    }
    return *this;
  }

 private:
  char* at_;
  std::size_t size_ = 0;
};

struct Labels {
  const MetricLabel* labels;
  std::size_t count;

  // `bound`: of a bucket; nullptr: the sample is none.
  void write(Page& page, const char* bound) const noexcept {
    if (count == 0 && bound == nullptr) return;
    const char* before = "{";
    for (std::size_t index = 0; index < count; ++index) {
      page.add(before).add(labels[index].name).add("=\"").add_escaped(labels[index].value).add("\"");
      before = ",";
    }
    if (bound != nullptr) page.add(before).add("le=\"").add(bound).add("\"");
    page.add("}");
  }
};

void write_head(Page& page, const char* family, const char* type, const char* unit, const char* help) noexcept {
  page.add("# TYPE ").add(family).add(" ").add(type).add("\n");
  if (unit != nullptr) page.add("# UNIT ").add(family).add(" ").add(unit).add("\n");
  page.add("# HELP ").add(family).add(" ").add(help).add("\n");
}

void write_sample(Page& page, const char* family, const char* suffix, const Labels& labels, const char* bound,
                  std::uint64_t number) noexcept {
  page.add(family).add(suffix);
  labels.write(page, bound);
  page.add(" ").add(number).add("\n");
}

void write_histogram(Page& page, const char* family, const Labels& labels, const Latencies& latencies) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t bucket = 0; bucket < latency_buckets_count; ++bucket) {
    sum += latencies.buckets[bucket];
    const char* const bound = bucket < latency_bounds_count ? latency_bounds[bucket].text : "+Inf";
    write_sample(page, family, "_bucket", labels, bound, sum);
  }
  page.add(family).add("_sum");
  labels.write(page, nullptr);
  page.add(" ").add_seconds(latencies.nanoseconds).add("\n");
  write_sample(page, family, "_count", labels, nullptr, sum);
}

void write_all(Page& page, const Stats& stats, const Labels& labels) noexcept {
  for (const Number& counter : counters) {
    write_head(page, counter.family, "counter", counter.unit, counter.help);
    write_sample(page, counter.family, "_total", labels, nullptr, stats.*counter.value);
  }
  for (const Gauge& gauge : gauges) {
    write_head(page, gauge.family, "gauge", nullptr, gauge.help);
    write_sample(page, gauge.family, "", labels, nullptr, (stats.*gauge.value)());
  }
  for (const Histogram& histogram : histograms) {
    write_head(page, histogram.family, "histogram", "seconds", histogram.help);
    write_histogram(page, histogram.family, labels, stats.*histogram.value);
  }
  page.add("# EOF\n");
}

// ---- Labels ------------------------------------------------------------------------------------------------------

bool is_name(ByteView text) noexcept {
  bool first = true;
  for (const char byte : text) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
    if (!letter && (first || byte < '0' || byte > '9')) return false;
    first = false;
  }
  return !text.empty();
}

// The bytes of the character that begins here; 0: none does.
std::size_t character_size(ByteView text) noexcept {
  const auto at = [text](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t index = 1; index < size; ++index)
    if ((at(index) & 0xc0U) != 0x80) return 0;
  // Too long for what it says, half of a pair, or beyond the last character.
  const unsigned second = at(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) return 0;
  return size;
}

bool is_utf8(ByteView text) noexcept {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0) return false;
    text = text.slice(size);
  }
  return true;
}

}  // namespace

const char* metric_label_problem(const MetricLabel& label) noexcept {
  if (label.name.size() > metric_label_name_size_max) return "its name is longer than 64 bytes";
  if (!is_name(label.name)) return "its name must have letters, digits and '_', and no digit first";
  if (label.name == "le" || label.name.begins_with("__")) return "its name is reserved";
  if (label.value.size() > metric_label_value_size_max) return "its value is longer than 256 bytes";
  return is_utf8(label.value) ? nullptr : "its value is not UTF-8";
}

Status write_openmetrics(const Stats& stats, MutableBytes space, std::size_t& size, const MetricLabel* labels,
                         std::size_t label_count) noexcept {
  if (label_count > metric_labels_max) return Status::invalid_argument;
  for (std::size_t index = 0; index < label_count; ++index) {
    if (metric_label_problem(labels[index]) != nullptr) return Status::invalid_argument;
    for (std::size_t other = 0; other < index; ++other)
      if (labels[other].name == labels[index].name) return Status::invalid_argument;
  }
  const Labels all = {labels, label_count};
  Page measured(nullptr);
  write_all(measured, stats, all);
  if (measured.size() > space.size) return Status::buffer_too_small;
  Page page(space.data);
  write_all(page, stats, all);
  size = page.size();
  return Status::ok;
}

}  // namespace holdfast
