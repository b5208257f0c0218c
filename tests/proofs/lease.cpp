// SPDX-License-Identifier: MIT
//
// A hold ends after it began and no later than its lease, whatever instant it was asked for at. An inner acquisition with another
// timing ends neither the lease nor the validity of the outer one. every_lease.cpp has the drift that is computed.
//
// BOUND   every lease of up to 24 h, in nanoseconds; every drift below it; every instant; pairs of timings
// UNWIND  2
// BROKEN  include/holdfast/core/lock_machine.hpp: `longer && inner_validity > validity` => `longer`
// BROKEN  include/holdfast/core/lock_machine.hpp: `const Duration length = longer ? inner.effective_lease()`
//         => `const Duration length = !longer ? inner.effective_lease()`
#include "holdfast/core/lock_machine.hpp"
#include "proof.hpp"

using namespace holdfast;

namespace {

LockTiming any_timing() {
  const LockTiming timing{
      .lease = Duration(any_signed()), .drift = Duration(any_signed()), .kept = (any_u8() & 1) != 0};
  assume(timing.lease >= lease_min && timing.lease <= lease_max);
  assume(timing.drift >= Duration(0) && timing.drift < timing.lease);
  return timing;
}
Duration validity_of(const LockTiming& timing) { return timing.effective_lease() - timing.effective_drift(); }

}  // namespace

void prove() noexcept {
  const LockTiming timing = any_timing();
  const Duration validity = validity_of(timing);
  claim(validity > Duration(0) && validity <= timing.effective_lease());
  const std::int64_t sent = any_signed();
  assume(sent >= 0);
  const Instant asked_at = Instant::from_nanoseconds(sent);
  claim(asked_at + validity >= asked_at && asked_at + validity <= asked_at + timing.effective_lease());
  const LockTiming inner = any_timing();
  const LockTiming raised = timing.raised_by(inner);
  claim(raised.lease >= timing.lease && raised.lease >= inner.lease && raised.lease <= lease_max);
  claim(raised.drift >= Duration(0) && raised.drift < raised.lease);
  claim(validity_of(raised) >= validity);
}
