// SPDX-License-Identifier: MIT
//
// Everything of the Asio client. It needs Asio from 1.22 on, exceptions and RTTI.
#pragma once

#include "holdfast/any_thread.hpp"
#include "holdfast/asio_error.hpp"
#include "holdfast/async_client.hpp"
#include "holdfast/async_lock.hpp"
#include "holdfast/async_mutex.hpp"
#include "holdfast/async_quorum.hpp"
#include "holdfast/async_quorum_lock.hpp"
#include "holdfast/async_redlock.hpp"
#include "holdfast/async_reentrant_lock.hpp"
#include "holdfast/url.hpp"
