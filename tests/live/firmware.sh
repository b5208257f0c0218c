#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: firmware.sh RUNNER [ARGUMENT...]
#
# Runs the tests of examples/firmware, whose programs HOLDFAST_FIRMWARE_FOLDER has. Exits 77 (skipped) where there are none, or no board.
set -euo pipefail

folder=${HOLDFAST_FIRMWARE_FOLDER:-}
for program in firmware mutex freertos_on_board; do
  [[ -e $folder/$program.elf ]] && continue
  echo "skipped: no $program.elf in ${folder:-HOLDFAST_FIRMWARE_FOLDER}; ./dev firmware builds it (Debian: gcc-arm-none-eabi)"
  exit 77
done
if ! qemu-system-arm -M help 2>/dev/null | grep '^mps2-an386 ' >/dev/null; then
  echo "skipped: no qemu-system-arm with the machine mps2-an386 (Debian: qemu-system-arm)"
  exit 77
fi
exec "$@"
