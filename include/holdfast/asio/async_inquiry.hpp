// SPDX-License-Identifier: MIT
//
// AsyncInquiry asks the server about one name, or takes its lock away: inspection.hpp for an Asio loop. It
// is an object, as a lock is, since it is the memory of what is asked: as many as are asked at the same time.
//
//     AsyncInquiry orders(client, "orders/42");
//     LockInfo info;
//     orders.async_inspect(info, [&](std::error_code error) { ... });
//
// One operation at a time. What an answer is written to, and the value of async_fenced_set(), must live until it is
// completed; it is untouched if there is an error. Cancellation, thread rule and heap: as AsyncClient's. Its whole memory is
// sizeof(AsyncInquiry).
#pragma once

#include <cstdint>

#include "holdfast/asio/async_lock.hpp"
#include "holdfast/core/inquiry.hpp"
#include "holdfast/core/mutex_kind.hpp"

namespace holdfast {

class AsyncInquiry : private AsyncLock, private Question {
 public:
  // The key's bytes are copied. The client must outlive it.
  AsyncInquiry(AsyncClient& client, BytesArgument key)
      : Question{ask, take, asks_on}, record_(core_of(client), mutex_kind, Key(key), {}) {
    attach(record_);
  }
  // Completes what waits with Status::cancelled.
  ~AsyncInquiry() override = default;

  // One attempt, and another one where the key may be a semaphore; it waits for a connection and for room no longer than a
  // request timeout. Errors: as inspect(); too_many_requests while another operation waits.
  template <class Token>
  auto async_inspect(LockInfo& info, Token&& token) {
    return inquire([this, out = &info] { return inquiry_.begin_info(key(), *out); }, token);
  }
  // Errors: as inspect_queue(), and as above.
  template <class Token>
  auto async_inspect_queue(LockQueue& queue, Token&& token) {
    return inquire([this, out = &queue] { return inquiry_.begin_queue(key(), *out); }, token);
  }
  // Errors: as force_release(), and as above. Cancelled, it may have been done.
  template <class Token>
  auto async_force_release(bool& released, Token&& token) {
    return inquire([this, out = &released] { return inquiry_.begin_release(key(), *out); }, token);
  }
  // The key is the resource. Errors: as fenced_set(), and as above; too_many_requests for a value that does not fit into the
  // client's send buffer. Cancelled, it may have been done.
  template <class Token>
  auto async_fenced_set(std::uint64_t fence, BytesArgument value, bool& written, Token&& token) {
    return inquire([this, fence, bytes = value.view(),
                    out = &written] { return inquiry_.begin_fenced_set(key(), fence, bytes, *out); },
                   token);
  }

  using AsyncHandle::cancel;
  using AsyncHandle::configuration;
  using AsyncHandle::get_executor;
  using AsyncLock::key;

 private:
  template <class Begin, class Token>
  auto inquire(Begin begin, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this, begin](auto handler) {
          initiate(std::move(handler), [&](Completion& completion) {
            const Status refused = record_.may_ask();
            const Status begun = refused == Status::ok ? begin() : refused;
            record_.start_query(this, nullptr, begun, completion, *this);
          });
        },
        token);
  }
  static Status ask(Question& self, Node& node, const ReplyTag& tag, Instant now) noexcept;
  static bool take(Question& self, const RespValue& reply) noexcept;
  static bool asks_on(Question& self, Status& outcome) noexcept;

  Inquiry inquiry_;  // It outlives the record, whose end it hears of.
  AsyncRecord record_;
};

}  // namespace holdfast
