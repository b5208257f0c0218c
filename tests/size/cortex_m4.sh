#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: cortex_m4.sh SOURCE-ROOT OBJECT
#
# Compiles examples/freertos_transport.cpp for a Cortex-M4 and looks what it wants of others: nothing of libstdc++, no heap.
# Exits 77 (skipped) where there is no such compiler.
set -euo pipefail

source_root=${1:?usage: cortex_m4.sh SOURCE-ROOT OBJECT}
object=${2:?usage: cortex_m4.sh SOURCE-ROOT OBJECT}
flags=(-mcpu=cortex-m4 -mthumb -Os -std=c++20 -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections)

if ! command -v arm-none-eabi-g++ >/dev/null; then
  echo "skipped: no arm-none-eabi-g++ (Debian: gcc-arm-none-eabi)"
  exit 77
fi
if ! arm-none-eabi-g++ "${flags[@]}" -x c++ -fsyntax-only -include chrono -include cstring /dev/null 2>/dev/null; then
  echo "skipped: arm-none-eabi-g++ has no headers (Debian: libnewlib-arm-none-eabi, libstdc++-arm-none-eabi-newlib)"
  exit 77
fi

arm-none-eabi-g++ "${flags[@]}" -Wall -Wextra -Wconversion -Wshadow -Werror -I"$source_root/include" \
  -c "$source_root/examples/freertos_transport.cpp" -o "$object"
arm-none-eabi-size "$object"
foreign=$(arm-none-eabi-nm --undefined-only --format=posix "$object" | awk '{ print $1 }' |
  grep -E '^_Z(GV|TV|TI|TS|Z)*N?K?S[tabsiod]|^__cxa_|^__aeabi_atexit|^__gxx_|^_Z(n[wa]|d[la])|^(m|c|re)alloc$|^free$|printf' ||
  true)
if [[ -n $foreign ]]; then
  printf 'FAILED: it wants %s\n' "$foreign"
  exit 1
fi
echo "ok: nothing of libstdc++ and no heap wanted"
