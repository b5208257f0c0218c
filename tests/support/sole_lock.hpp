// SPDX-License-Identifier: MIT
//
// A reentrant lock of a quorum that is the only one of an owner of its own.
#pragma once

#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/proto/key.hpp"

template <class Owner>
struct OwnerFirst {
  Owner owner;
  template <class Quorum>
  explicit OwnerFirst(Quorum& quorum) : owner(quorum) {}
};

template <class Owner, class Lock>
class SoleOf : private OwnerFirst<Owner>, public Lock {
 public:
  template <class Quorum>
  SoleOf(Quorum& quorum, holdfast::BytesArgument key, const holdfast::QuorumTiming& timing = {})
      : OwnerFirst<Owner>(quorum), Lock(OwnerFirst<Owner>::owner, key, timing) {}
};
