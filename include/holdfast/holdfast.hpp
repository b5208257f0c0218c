// SPDX-License-Identifier: MIT
//
// All of the blocking client.
#pragma once

#include "holdfast/acks.hpp"
#include "holdfast/client.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/detail/branches.hpp"
#include "holdfast/fair_lock.hpp"
#include "holdfast/fenced_lock.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/lingering.hpp"
#include "holdfast/lock_set.hpp"
#include "holdfast/lockable.hpp"
#include "holdfast/multi_lock.hpp"
#include "holdfast/mutex.hpp"
#include "holdfast/read_write_lock.hpp"
#include "holdfast/redlock.hpp"
#include "holdfast/reentrant_lock.hpp"
#include "holdfast/scoped_lock.hpp"
#include "holdfast/semaphore.hpp"
#include "holdfast/sentinel_watch.hpp"
#include "holdfast/sentinels.hpp"
#include "holdfast/url.hpp"
#include "holdfast/watchdog.hpp"
