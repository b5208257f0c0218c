// SPDX-License-Identifier: MIT
//
// RandomSource draws tokens and random numbers from getrandom(), sixteen tokens per system call. A forked child shares none
// of them with its parent: they stand in a page that the kernel wipes in the child (MADV_WIPEONFORK, Linux 4.14), and where
// the kernel does not, the process id tells, at the cost of a system call per question. So the same page answers whether this
// process is such a child. Not for programs of their own: clients have one.
//
// Thread rule: one thread at a time; forked() and incarnation() any thread. No heap: one page from the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "holdfast/core/instant.hpp"
#include "holdfast/detail/shared_value.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// getrandom() never returns less than asked up to 256 bytes.
inline constexpr std::size_t entropy_pool_size = 256;

class RandomSource {
 public:
  RandomSource() noexcept = default;
  ~RandomSource();
  RandomSource(const RandomSource&) = delete;
  RandomSource& operator=(const RandomSource&) = delete;

  // Goes by the page of another from now on: random numbers, the owner's id and its ordinals, and what fork does to them, are one for
  // both, until part(). REQUIRES: this was not opened; the other was; in a forked child all of them start anew.
  void share(const RandomSource& other) noexcept {
    page_ = other.page_;
    incarnation_.store(other.incarnation());
  }
  void part() noexcept { page_ = nullptr; }
  // Gets the page, once. system_error: there is none; errno says why. Everything else REQUIRES that it was opened, but
  // forked(), incarnation() and number().
  [[nodiscard]] Status open() noexcept;

  // This process is a child of the one that opened it, and has not called start_anew().
  [[nodiscard]] bool forked() const noexcept {
    return page_ != nullptr && (page_->alive == 0 || (page_->owner != 0 && other_process()));
  }
  // In a forked child: nothing of the parent's is used again.
  void start_anew() noexcept;
  // Grows with each start_anew(): holds of before are the parent's.
  [[nodiscard]] std::uint32_t incarnation() const noexcept { return incarnation_.load(); }

  // Random bytes as text, of a hold that proves itself by them. Errors: no_entropy; errno says why.
  [[nodiscard]] Status draw_token(Token& token) noexcept;
  // `uuid:ordinal`, the owner field of a hash kind: this source's id, and an ordinal that is used once. Errors as above.
  [[nodiscard]] Status draw_ordinal(Token& token) noexcept;
  // Evenly from all values. Without random bytes the largest: later is safe, sooner is not.
  [[nodiscard]] std::uint16_t number() noexcept;
  // Half to all of the delay.
  [[nodiscard]] Duration jittered(Duration delay) noexcept { return delay / 2 + delay / 2 * number() / UINT16_MAX; }

 private:
  struct Page {
    std::uint32_t alive;      // 1; 0 in a forked child.
    std::uint32_t pool_left;  // Random bytes not handed out yet, at the pool's end. Wiped: none.
    std::int32_t owner;       // 0: the kernel wipes the page. Otherwise the process that may use it.
    std::uint64_t ordinal;    // The last one.
    char id[36];              // A UUID as text; begins with NUL until it is drawn.
    unsigned char pool[entropy_pool_size];
  };

  [[nodiscard]] Status draw(unsigned char* out, std::size_t size) noexcept {
    if (page_->pool_left < size) [[unlikely]]
      if (const Status status = refill(); status != Status::ok) return status;
    std::memcpy(out, page_->pool + (entropy_pool_size - page_->pool_left), size);
    page_->pool_left -= static_cast<std::uint32_t>(size);
    return Status::ok;
  }
  [[nodiscard]] Status refill() noexcept;
  [[nodiscard]] bool other_process() const noexcept;

  Page* page_ = nullptr;
  SharedValue<std::uint32_t> incarnation_;
};

}  // namespace holdfast
