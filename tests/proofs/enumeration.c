/* SPDX-License-Identifier: MIT
 *
 * proof.hpp for a proof that looks at each case by itself: it runs, and ends with 1 at the first claim that fails. */
#include <stdint.h>
#include <stdlib.h>

void prove(void);
void claim(uint8_t condition) {
  if (!condition) _Exit(1);
}
int main(void) {
  prove();
  return 0;
}
