/* SPDX-License-Identifier: MIT
 *
 * What lwIP would take of a heap: segments on their way out, with their headers. Short ones, and those with a script's text. */
LWIP_MALLOC_MEMPOOL_START
LWIP_MALLOC_MEMPOOL(12, 128)
LWIP_MALLOC_MEMPOOL(4, 512)
LWIP_MALLOC_MEMPOOL(4, 1152)
LWIP_MALLOC_MEMPOOL_END
