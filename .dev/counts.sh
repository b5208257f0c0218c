# shellcheck shell=bash disable=SC2034  # Others read the sums.
# SPDX-License-Identifier: MIT
#
# Steps that go on after a failure, and the sum of what really ran.

passed=0
failed=0
skipped=0
summary=()
failures=()  # What failed, a line each.

count() {  # count LABEL PASSED FAILED SKIPPED
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  summary+=("$(printf '%-30s %4d passed %4d failed %4d skipped' "$@")")
}

step() {  # step LABEL COMMAND...: into a log, whose end is shown if the command fails
  local label=$1 log=build/logs/${1//[^a-zA-Z0-9]/-}.log begin=$SECONDS
  shift
  printf '== %-30s ' "$label"
  if "$@" >"$log" 2>&1; then
    printf 'ok (%d s)\n' $((SECONDS - begin))
  else
    printf 'FAILED (%d s); the end of %s:\n' $((SECONDS - begin)) "$log"
    # Without what went well, so that what did not is among the last lines.
    grep -vE '^\[[0-9]+/[0-9]+\] (Comp|Link)|^Compiler for|warnings? generated\.$|^ *[0-9]+/[0-9]+ .* (OK|SKIP) ' "$log" |
      tail -n 80 | sed 's/^/   | /'
    return 1
  fi
}

print_summary() {  # the last line of it: N passed, N failed. It fails when something failed or nothing passed.
  printf '\n'
  ((${#failures[@]} == 0)) || printf 'failed: %s\n' "${failures[@]}"
  printf '%s\n' "${summary[@]}"
  local and_skipped=
  ((skipped == 0)) || and_skipped=", $skipped skipped"
  printf '%d passed, %d failed%s\n' "$passed" "$failed" "$and_skipped"
  ((failed == 0 && passed > 0))
}
