// SPDX-License-Identifier: MIT
#include "holdfast/detail/random_source.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "holdfast/proto/decimal.hpp"

namespace holdfast {

static_assert(sizeof(pid_t) <= sizeof(std::int32_t), "a process id must fit");

RandomSource::~RandomSource() {
  if (page_ != nullptr) ::munmap(page_, sizeof(Page));
}

Status RandomSource::open() noexcept {
  if (page_ != nullptr) return Status::ok;
  void* const page = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return Status::system_error;
  page_ = static_cast<Page*>(page);
  page_->alive = 1;
  page_->pool_left = 0;
  page_->owner = ::getpid();
#ifdef MADV_WIPEONFORK
  if (::madvise(page, sizeof(Page), MADV_WIPEONFORK) == 0) page_->owner = 0;
#endif
  return Status::ok;
}

bool RandomSource::other_process() const noexcept { return page_->owner != ::getpid(); }

void RandomSource::start_anew() noexcept {
  incarnation_.store(incarnation_.load() + 1);
  const bool wiped = page_->owner == 0;
  page_->pool_left = 0;
  page_->id[0] = '\0';
  page_->owner = wiped ? 0 : ::getpid();
  page_->alive = 1;
}

Status RandomSource::draw_token(Token& token) noexcept {
  unsigned char random[token_random_size];
  const Status status = draw(random, sizeof random);
  if (status == Status::ok) [[likely]]
    token = Token::from_random(random);
  return status;
}

// The uuid (version 4) stands in the page that is wiped in a forked child: a child has one of its own.
Status RandomSource::draw_ordinal(Token& token) noexcept {
  if (page_->id[0] == '\0') {
    unsigned char random[token_random_size];
    if (const Status status = draw(random, sizeof random); status != Status::ok) return status;
    random[6] = static_cast<unsigned char>((random[6] & 0x0f) | 0x40);
    random[8] = static_cast<unsigned char>((random[8] & 0x3f) | 0x80);
    char* at = page_->id;
    for (std::size_t index = 0; index < sizeof random; ++index) {
      if (index == 4 || index == 6 || index == 8 || index == 10) *at++ = '-';
      *at++ = "0123456789abcdef"[random[index] >> 4];
      *at++ = "0123456789abcdef"[random[index] & 0x0f];
    }
  }
  char field[token_size_max];
  std::memcpy(field, page_->id, sizeof page_->id);
  field[sizeof page_->id] = ':';
  char* const digits = field + sizeof page_->id + 1;
  const char* const end = write_decimal(digits, ++page_->ordinal);
  token = Token({field, static_cast<std::size_t>(end - field)});
  return Status::ok;
}

std::uint16_t RandomSource::number() noexcept {
  std::uint16_t number = UINT16_MAX;
  unsigned char bytes[2];
  if (page_ != nullptr && draw(bytes, sizeof bytes) == Status::ok) std::memcpy(&number, bytes, sizeof number);
  return number;
}

Status RandomSource::refill() noexcept {
  ssize_t count = 0;
  do count = ::getrandom(page_->pool, entropy_pool_size, 0);
  while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(entropy_pool_size)) return Status::no_entropy;
  page_->pool_left = entropy_pool_size;
  return Status::ok;
}

}  // namespace holdfast
