/* SPDX-License-Identifier: MIT
 *
 * What lwIP wants to know of compiler and board. */
#ifndef FIRMWARE_ARCH_CC_H
#define FIRMWARE_ARCH_CC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
uint32_t board_random_number(void);
void board_assertion_failed(const char* file, int line) __attribute__((noreturn));
#ifdef __cplusplus
}
#endif

#define BYTE_ORDER LITTLE_ENDIAN
#define LWIP_RAND() board_random_number()

/* File and line are enough: the texts would cost kilobytes. */
#define LWIP_PLATFORM_ASSERT(text) board_assertion_failed(__FILE_NAME__, __LINE__)
#define LWIP_PLATFORM_DIAG(text) \
  do {                           \
  } while (0)

#endif
