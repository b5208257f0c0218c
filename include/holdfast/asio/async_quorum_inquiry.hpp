// SPDX-License-Identifier: MIT
//
// AsyncQuorumInquiry asks all nodes of an AsyncQuorum about one name, or takes its lock away there: what inspection.hpp says of a
// quorum, for an Asio loop. It is an object, since it is the memory of what is asked: as many as are asked at the same time.
//
//     AsyncQuorumInquiry orders(quorum, "orders/42");
//     QuorumInfo info;
//     orders.async_inspect(info, [&](std::error_code error) { ... });
//
// One operation at a time. What an answer is written to must live until the operation is completed. A node that has no room for one
// more request is passed over. Cancellation, thread rule and heap: as AsyncClient's. Its whole memory is
// sizeof(AsyncQuorumInquiry).
#pragma once

#include <asio/async_result.hpp>
#include <cstddef>
#include <memory>
#include <system_error>

#include "holdfast/asio/async_loop.hpp"
#include "holdfast/asio/async_quorum.hpp"
#include "holdfast/core/client_config.hpp"
#include "holdfast/core/quorum_inquiry.hpp"
#include "holdfast/detail/linked_place.hpp"

namespace holdfast {

struct Reply;

class AsyncQuorumInquiry : private OperationOwner, private Sleeper {
 public:
  // The key's bytes are copied.
  AsyncQuorumInquiry(AsyncQuorum& quorum, BytesArgument key);
  // cancel().
  ~AsyncQuorumInquiry() override;

  // Takes a connect timeout and a request timeout at most. Errors: as inspect() of a quorum; too_many_requests while another
  // operation waits. `info` has what each node has said, also where there is no verdict.
  template <class Token>
  auto async_inspect(QuorumInfo& info, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this, out = &info](auto handler) {
          loop().initiate(std::move(handler), *this, [&](Completion& completion) { start(out, nullptr, completion); });
        },
        token);
  }
  // Errors: as force_release() of a quorum, and as above.
  template <class Token>
  auto async_force_release(QuorumRelease& release, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this, out = &release](auto handler) {
          loop().initiate(std::move(handler), *this, [&](Completion& completion) { start(nullptr, out, completion); });
        },
        token);
  }
  // Ends the operation that waits: by what the answers until then come to, or, where that is nothing, by Status::cancelled.
  void cancel();

  [[nodiscard]] asio::any_io_executor get_executor() const noexcept { return loop().executor(); }

 private:
  friend class AsyncQuorumCore;

  [[nodiscard]] AsyncLoop& loop() const noexcept;
  void start(QuorumInfo* info, QuorumRelease* release, Completion& completion);
  // As far as it goes.
  void proceed();
  void take_reply(std::size_t node, const Reply& reply);
  void give_up(Status why);
  void finish(bool cancelled);
  void cancel_operation(Completion& completion) final;
  void wake(Instant now) final;

  std::shared_ptr<AsyncQuorumCore> core_;
  BoundedText<key_size_max> key_;
  QuorumInquiry inquiry_;
  Completion* completion_ = nullptr;
  LinkedPlace<AsyncQuorumInquiry> place_{this};  // Among those of the quorum that wait.
};

}  // namespace holdfast
