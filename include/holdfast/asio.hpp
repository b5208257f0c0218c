// SPDX-License-Identifier: MIT
//
// Everything of the Asio client. It needs Asio from 1.22 on, exceptions and RTTI.
#pragma once

#include "holdfast/asio/any_thread.hpp"
#include "holdfast/asio/asio_error.hpp"
#include "holdfast/asio/async_client.hpp"
#include "holdfast/asio/async_fair_lock.hpp"
#include "holdfast/asio/async_inquiry.hpp"
#include "holdfast/asio/async_lock.hpp"
#include "holdfast/asio/async_lock_set.hpp"
#include "holdfast/asio/async_mutex.hpp"
#include "holdfast/asio/async_owner.hpp"
#include "holdfast/asio/async_quorum.hpp"
#include "holdfast/asio/async_quorum_inquiry.hpp"
#include "holdfast/asio/async_quorum_lock.hpp"
#include "holdfast/asio/async_quorum_owner.hpp"
#include "holdfast/asio/async_read_write_lock.hpp"
#include "holdfast/asio/async_redlock.hpp"
#include "holdfast/asio/async_reentrant_lock.hpp"
#include "holdfast/asio/async_scoped_lock.hpp"
#include "holdfast/asio/async_semaphore.hpp"
#include "holdfast/url.hpp"
