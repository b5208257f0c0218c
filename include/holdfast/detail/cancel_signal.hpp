// SPDX-License-Identifier: MIT
//
// CancelSignal is cancel() as calls see it. Any thread, or a signal handler, raises it. The call in progress looks at it in
// each of its waits and takes it at its end; no step inside a call consumes it. What is raised while no call is in progress
// ends the next call that can be ended.   One thread makes the calls.   No heap.
#pragma once

#include <cstdint>

#include "holdfast/detail/shared_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class CancelSignal {
 public:
  // Any thread; safe in a signal handler.
  void raise() noexcept { raised_.store(raised_.load() + 1); }

  // The call in progress is to end by it.
  [[nodiscard]] bool pending() const noexcept {
    const std::uint32_t raised = raised_.load();
    return raised != taken_ && raised != spared_;
  }
  // At the end of a call that it may end.
  void take() noexcept { taken_ = spared_ = raised_.load(); }
  // The one place where that is judged. `final`: the outcome of the call is known, and stands.
  [[nodiscard]] Status conclude(Status status, bool final) noexcept {
    if (!pending()) [[likely]]
      return status;
    take();
    return final ? status : Status::cancelled;
  }

  // How much has been taken. Whose call is made of several calls compares it: what one of them took was meant for the whole.
  [[nodiscard]] std::uint32_t taken() const noexcept { return taken_; }

  // Around a call that must not be kept from its work, such as a release: what was raised before it waits for the next call,
  // what is raised meanwhile ends its wait.
  void begin_spared() noexcept { spared_ = raised_.load(); }
  void end_spared() noexcept {
    if (raised_.load() != spared_) taken_ = raised_.load();
    spared_ = taken_;
  }

 private:
  SharedValue<std::uint32_t> raised_;
  std::uint32_t taken_ = 0;
  std::uint32_t spared_ = 0;
};

}  // namespace holdfast
