// SPDX-License-Identifier: MIT
//
// proof.hpp for CBMC, and what a trap of Clang or a broken assertion of the library is: a failed proof.
#include <stdint.h>
#include <stdlib.h>

uint8_t nondet_u8(void);
uint16_t nondet_u16(void);
uint32_t nondet_u32(void);
uint64_t nondet_u64(void);

uint8_t any_u8(void) { return nondet_u8(); }
uint16_t any_u16(void) { return nondet_u16(); }
uint32_t any_u32(void) { return nondet_u32(); }
uint64_t any_u64(void) { return nondet_u64(); }
void assume(uint8_t condition) { __CPROVER_assume(condition); }
void claim(uint8_t condition) { __CPROVER_assert(condition, "a claim of the proof"); }
uint8_t* any_bytes(uint64_t size) {
  uint8_t* const bytes = malloc(size);
  __CPROVER_assume(bytes != 0);
  return bytes;
}
void proof_trap(void) {
  __CPROVER_assert(0, "no undefined behaviour");
  __CPROVER_assume(0);
}
void _ZN8holdfast16assertion_failedEPKci(uint8_t* file, uint32_t line) {
  (void)file;
  (void)line;
  __CPROVER_assert(0, "no broken assertion");
  __CPROVER_assume(0);
}
