// SPDX-License-Identifier: MIT
//
// Waiting by push on one node.
#include "push_ear.hpp"
#include "holdfast/detail/run_listening.hpp"

namespace holdfast {

namespace {

class ChannelEar final : public PushEar {
 public:
  using PushEar::PushEar;
};

}  // namespace

Status run_listening(HoldRecord& record, NodeTask& task) noexcept {
  ChannelEar ear(record);
  const Status status = record.run(task, &ear);
  ear.leave(status == Status::ok);
  return status;
}

}  // namespace holdfast
