// SPDX-License-Identifier: MIT
//
// AsyncLock is what all locks of an AsyncClient have in common: acquire, renew, release, and to be told of a loss. Its kinds
// are AsyncMutex and AsyncSemaphore, which have their hold in themselves, and AsyncReentrantLock, AsyncFencedLock,
// AsyncFairLock, AsyncMultiLock and the sides of AsyncReadWriteLock, which are handles of a hold of their owner's.
//
// Thread rule and heap: as AsyncClient's. Its whole memory is its own, that of its hold, and a place of AsyncLimits::kept.
#pragma once

#include <asio/async_result.hpp>
#include <cstdint>
#include <memory>
#include <system_error>

#include "holdfast/asio/async_handle.hpp"
#include "holdfast/asio/async_record.hpp"

namespace holdfast {

class AsyncLock : public AsyncHandle {
 public:
  // Asks the server for the lock's remaining time, whoever holds it, as BlockingLock::remaining_on_server(). `remaining`
  // must live until then; it is set if there is no error.
  template <class Token>
  auto async_remaining_on_server(Duration& remaining, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this, out = &remaining](auto handler) {
          initiate(std::move(handler), [&](Completion& completion) {
            record().start_query(nullptr, out, record().may_ask(), completion, *this);
          });
        },
        token);
  }
  [[nodiscard]] Instant renewal_due() const noexcept {
    return refused() ? Instant::max() : record().machine().renewal_due();
  }
  // Empty where the owner had no place for it.
  [[nodiscard]] Key key() const noexcept { return refused() ? Key() : record().machine().key(); }
  // The proof of the present or last hold.
  [[nodiscard]] const holdfast::Token& token() const noexcept {
    return refused() ? no_token : record().machine().token();
  }

 protected:
  AsyncLock() noexcept = default;
  ~AsyncLock() override = default;

  [[nodiscard]] static const std::shared_ptr<AsyncClientCore>& core_of(const AsyncClient& client) noexcept {
    return client.core_;
  }
  [[nodiscard]] AsyncRecord& record() const noexcept { return static_cast<AsyncRecord&>(hold()); }
  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return refused() ? 0 : record().machine().fence(); }

 private:
  friend class AsyncRecord;

  // Of several handles each has a timing, for what is acquired through it; nullptr: it is the hold's.
  [[nodiscard]] virtual const LockTiming* timing() const noexcept { return nullptr; }

  static constexpr holdfast::Token no_token = holdfast::Token::none();
};

}  // namespace holdfast
