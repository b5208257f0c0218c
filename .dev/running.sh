# shellcheck shell=bash disable=SC2046,SC2086  # Numbers and names are split into words on purpose.
# SPDX-License-Identifier: MIT
#
# A build and then its tests, counted. builds.sh and counts.sh are read before this.

run_build() {  # run_build LABEL BUILD-FUNCTION NAME MESON-TEST-ARGUMENT...: build/NAME, then its tests, counted
  local label=$1 function=$2 log=build/$3/meson-logs/testlog.json
  shift 2
  await_ahead "$function"
  if ! step "$label: build" "$function"; then count "$label: build" 0 1 0; return; fi
  rm -f "$log"
  [[ -z ${ahead:-} ]] || start_ahead $ahead
  step "$label: tests" run_meson_tests "$@" || true
  if [[ ! -s $log ]]; then count "$label" 0 1 0; return; fi
  local -a results
  mapfile -t results < <(python3 .dev/results_of.py "$log")
  count "$label" ${results[0]}
  failures+=("${results[@]:1}")
}

# Tests wait more than they work. So what is needed later is built while they run, one after the other, at a lower priority. If a
# build fails, the failure shows when its turn comes.
ahead_process=''

start_ahead() {  # start_ahead BUILD-FUNCTION...
  rm -f build/logs/ahead.*.done
  (
    renice -n 15 -p "$BASHPID" >/dev/null
    for function; do
      "$function" || true
      touch "build/logs/ahead.$function.done"
    done
  ) >build/logs/ahead.log 2>&1 &
  ahead_process=$!
}

await_ahead() {  # await_ahead BUILD-FUNCTION: nobody else builds it any more
  [[ $ahead_process ]] || return 0
  while [[ ! -e build/logs/ahead.$1.done ]] && kill -0 "$ahead_process" 2>/dev/null; do sleep 1; done
}

finish_ahead() {
  [[ -z $ahead_process ]] || wait "$ahead_process" || true
  ahead_process=''
}

run_firmware() {  # What it runs was built by build_firmware().
  run_build "firmware, emulated" build_firmware_tests plain --suite firmware
}

run_machines() {
  local machine
  for machine in "${machines[@]}"; do
    run_build "$machine, emulated" "build_$machine" "$machine" --suite unit --suite replay --suite machines --timeout-multiplier 4
  done
}
