// SPDX-License-Identifier: MIT
//
// The locks that have their hold in themselves.
#include "client.hpp"
#include "holdfast/mutex.hpp"
#include "holdfast/semaphore.hpp"
#include "lock.hpp"

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_mutex_init(holdfast_lock* lock, holdfast_client* client, const char* key,
                                    const holdfast_lock_options* options) noexcept {
  const holdfast_lock_options& wanted = options_of(options);
  return make_lock<Mutex, BlockingLock>(lock, object_in(client), key_of(key, wanted),
                                        timing_of(wanted, {.announce = true, .fence = true}),
                                        MutexOptions{.announce = wanted.announce, .fence = wanted.fence});
}

holdfast_status holdfast_semaphore_init(holdfast_lock* lock, holdfast_client* client, const char* key, uint32_t permits,
                                        const holdfast_lock_options* options) noexcept {
  const holdfast_lock_options& wanted = options_of(options);
  return make_lock<Semaphore, BlockingLock>(lock, object_in(client), key_of(key, wanted), permits,
                                            timing_of(wanted, {}));
}
