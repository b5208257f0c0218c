// SPDX-License-Identifier: MIT
//
// Short cuts for the usual case only save time: what they do, the general way behind them does, too. Where size counts
// more than speed, -Os, they are left out.
#pragma once

namespace holdfast {

#ifdef __OPTIMIZE_SIZE__
constexpr bool fast_paths = false;
#else
constexpr bool fast_paths = true;
#endif

}  // namespace holdfast
