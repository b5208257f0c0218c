// SPDX-License-Identifier: MIT
//
// A lock of any kind in the storage of a holdfast_lock: the object of C++, and beside it what its calls are. The kinds come
// with what makes them, so that a program carries those alone that it makes.
#pragma once

#include "holdfast/core/keep_options.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/limits.hpp"
#include "objects.hpp"

namespace holdfast::c {

// Of the class that all kinds on one server have in common, or all on a quorum.
struct LockCalls {
  Status (*configuration)(const void* lock) noexcept;
  Status (*keep)(void* lock, const KeepOptions& options) noexcept;
  void (*tick)(void* lock) noexcept;
  Status (*try_acquire)(void* lock) noexcept;
  Status (*acquire)(void* lock, Duration wait) noexcept;
  Status (*renew)(void* lock) noexcept;
  Status (*release)(void* lock) noexcept;
  Status (*post_release)(void* lock) noexcept;
  Status (*forget_loss)(void* lock) noexcept;
  bool (*held)(const void* lock) noexcept;
  bool (*at_risk)(const void* lock) noexcept;
  Duration (*remaining)(const void* lock) noexcept;
  Instant (*valid_until)(const void* lock) noexcept;
  Instant (*renewal_due)(const void* lock) noexcept;
  std::uint32_t (*hold_count)(const void* lock) noexcept;
  Status (*remaining_on_server)(void* lock, Duration& remaining) noexcept;
};

template <class Lock>
Status remaining_on_server(Lock& lock, Duration& remaining) noexcept {
  if constexpr (requires { lock.remaining_on_server(remaining); })
    return lock.remaining_on_server(remaining);
  else
    return Status::invalid_argument;  // A quorum is no one server.
}

template <class Lock>
Lock& lock_of(void* lock) noexcept {
  return *static_cast<Lock*>(lock);
}
template <class Lock>
const Lock& lock_of(const void* lock) noexcept {
  return *static_cast<const Lock*>(lock);
}

template <class Lock>
inline constexpr LockCalls calls_of = {
    .configuration = [](const void* lock) noexcept { return lock_of<Lock>(lock).configuration(); },
    .keep = [](void* lock, const KeepOptions& options) noexcept { return lock_of<Lock>(lock).keep(options); },
    .tick = [](void* lock) noexcept { lock_of<Lock>(lock).tick(); },
    .try_acquire = [](void* lock) noexcept { return lock_of<Lock>(lock).try_acquire(); },
    .acquire = [](void* lock, Duration wait) noexcept { return lock_of<Lock>(lock).acquire(wait); },
    .renew = [](void* lock) noexcept { return lock_of<Lock>(lock).renew(); },
    .release = [](void* lock) noexcept { return lock_of<Lock>(lock).release(); },
    .post_release = [](void* lock) noexcept { return lock_of<Lock>(lock).post_release(); },
    .forget_loss = [](void* lock) noexcept { return lock_of<Lock>(lock).forget_loss(); },
    .held = [](const void* lock) noexcept { return lock_of<Lock>(lock).held(); },
    .at_risk = [](const void* lock) noexcept { return lock_of<Lock>(lock).at_risk(); },
    .remaining = [](const void* lock) noexcept { return lock_of<Lock>(lock).remaining(); },
    .valid_until = [](const void* lock) noexcept { return lock_of<Lock>(lock).valid_until(); },
    .renewal_due = [](const void* lock) noexcept { return lock_of<Lock>(lock).renewal_due(); },
    .hold_count = [](const void* lock) noexcept { return lock_of<Lock>(lock).hold_count(); },
    .remaining_on_server =
        [](void* lock, Duration& remaining) noexcept { return remaining_on_server(lock_of<Lock>(lock), remaining); },
};

class LockObject {
 public:
  LockObject() noexcept {}
  ~LockObject() {
    if (destroy_ != nullptr) destroy_(space_);
  }
  LockObject(const LockObject&) = delete;
  LockObject& operator=(const LockObject&) = delete;

  // REQUIRES: once.
  template <class Kind, class... Arguments>
  Kind& make(Arguments&&... arguments) noexcept {
    static_assert(sizeof(Kind) <= sizeof space_ && alignof(Kind) <= HOLDFAST_ALIGNMENT);
    destroy_ = [](void* space) noexcept { std::destroy_at(static_cast<Kind*>(space)); };
    return *::new (static_cast<void*>(space_)) Kind(static_cast<Arguments&&>(arguments)...);
  }
  // What is called through this object: one that was made in it, or beside it.
  template <class Lock>
  void show(Lock& lock) noexcept {
    lock_ = &lock;
    calls_ = &calls_of<Lock>;
  }
  // The same of a kind, whose calls are those of its base class.
  template <class Lock, class Kind>
  void show_kind(Kind& kind) noexcept {
    show<Lock>(kind);
    if constexpr (requires { kind.fence(); })
      fence_ = [](const void* lock) noexcept { return static_cast<const Kind&>(lock_of<Lock>(lock)).fence(); };
  }
  void pair_with(holdfast_lock* partner) noexcept { partner_ = partner; }

  [[nodiscard]] const LockCalls& calls() const noexcept { return *calls_; }
  [[nodiscard]] void* lock() noexcept { return lock_; }
  [[nodiscard]] const void* lock() const noexcept { return lock_; }
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_ == nullptr ? 0 : fence_(lock_); }
  // The other side of a read/write lock; nullptr: there is none.
  [[nodiscard]] holdfast_lock* partner() const noexcept { return partner_; }

 private:
  const LockCalls* calls_ = nullptr;
  void* lock_ = nullptr;
  void (*destroy_)(void* space) noexcept = nullptr;  // nullptr: the lock is its partner's.
  std::uint64_t (*fence_)(const void* lock) noexcept = nullptr;
  holdfast_lock* partner_ = nullptr;
  alignas(HOLDFAST_ALIGNMENT) unsigned char space_[HOLDFAST_LOCK_SIZE - mark_size - 5 * sizeof(std::uint64_t)];
};

template <>
struct Made<holdfast_lock> {
  using Object = LockObject;
  static constexpr std::uintptr_t number = 2;
};

// ---- Options -----------------------------------------------------------------------------------------------------

// What a kind has beside a lease and a key.
struct Offered {
  bool announce = false;
  bool fence = false;
  bool quorum = false;
  bool key = true;
};

inline constexpr holdfast_lock_options default_options = {};
[[nodiscard]] inline const holdfast_lock_options& options_of(const holdfast_lock_options* options) noexcept {
  return options == nullptr ? default_options : *options;
}

// Where something is asked for that the kind does not have, the lease is one that every kind refuses.
[[nodiscard]] inline LockTiming timing_of(const holdfast_lock_options& options, Offered offered) noexcept {
  const bool fits = (offered.announce || !options.announce) && (offered.fence || !options.fence) &&
                    (offered.key || options.key_size == 0) &&
                    (offered.quorum || (options.node_timeout_ms == 0 && options.min_validity_ms == 0));
  return {.lease = fits ? of_milliseconds(options.lease_ms, lease_automatic) : Duration::zero(),
          .drift = of_milliseconds(options.drift_ms, drift_automatic),
          .kept = options.kept};
}

[[nodiscard]] inline ByteView key_of(const char* key, const holdfast_lock_options& options) noexcept {
  return key == nullptr || options.key_size == 0 ? ByteView(key) : ByteView(key, options.key_size);
}

// Makes a lock of this kind there. `parent` is nullptr where that is none.
template <class Kind, class Face, class Parent, class... Arguments>
[[nodiscard]] holdfast_status make_lock(holdfast_lock* storage, Parent* parent, Arguments&&... arguments) noexcept {
  if (const holdfast_status status = free_to_make(storage); status != HOLDFAST_OK) return status;
  clear(storage);
  if (parent == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  LockObject& object = make_in(storage);
  Kind& kind = object.make<Kind>(*parent, static_cast<Arguments&&>(arguments)...);
  object.show_kind<Face>(kind);
  return to_c(kind.configuration());
}

}  // namespace holdfast::c
