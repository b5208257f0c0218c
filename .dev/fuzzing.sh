# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Running fuzz targets. needs.sh and builds.sh are read before this.

# The libraries are compiled for it, too: else the fuzzer would not see which of their branches an input reaches.
build_fuzz() {
  build fuzz clang "${sanitized[@]}" "${united[@]}" -Db_sanitize=address,undefined -Dfuzz=enabled \
    "-Dcpp_args=-g1 -fsanitize=fuzzer-no-link" -Dtests=disabled -Dcli=disabled -Dasio=disabled
}

fuzz_targets() {
  local source
  for source in fuzz/fuzz_*.cpp; do
    [[ -e $source ]] || continue
    if [[ $source == */fuzz_world.cpp ]] && ! have lua5.1/lua.h; then
      say "fuzz_world is skipped: it needs Lua 5.1 (liblua5.1-0-dev)"
      continue
    fi
    basename "$source" .cpp
  done
}

fuzz_one() {  # fuzz_one TARGET SECONDS: new finds go to build/fuzz/corpus, seeds come from fuzz/corpus
  local target=$1 seconds=$2 finds=build/fuzz/corpus/$1 extra=()
  mkdir -p "$finds" build/fuzz/artifacts
  [[ ! -e fuzz/$target.dict ]] || extra+=("-dict=fuzz/$target.dict")
  extra+=("$finds")
  [[ ! -d fuzz/corpus/$target ]] || extra+=("fuzz/corpus/$target")
  if [[ $target == fuzz_world ]]; then
    # A world has ten thousand features, of which libFuzzer's statistics of rare ones would take most of the time; and
    # the fibers of killed processes would leave their fake stacks behind. Long inputs decide more than short ones.
    extra+=(-entropic=0 -len_control=0)
    local -x ASAN_OPTIONS=$ASAN_OPTIONS:detect_stack_use_after_return=0
  fi
  fixed_addresses "build/fuzz/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/artifacts/$target-" "${extra[@]}"
}

fuzz_to_log() {  # fuzz_to_log TARGET SECONDS
  local log=build/fuzz/logs/$1.log
  if fuzz_one "$@" >"$log" 2>&1; then
    printf 'ok %s (%s)\n' "$1" "$(sed -n 's/^stat::number_of_executed_units: /executions: /p' "$log")"
  else
    printf 'not ok %s (see %s)\n' "$1" "$log"
  fi | tee "build/fuzz/logs/$1.result"
}

fuzz_all() {  # fuzz_all SECONDS: two at a time
  rm -rf build/fuzz/logs
  mkdir -p build/fuzz/logs
  export -f fuzz_to_log fuzz_one fixed_addresses
  fuzz_targets | xargs -P 2 -I TARGET bash -c 'fuzz_to_log "$@"' - TARGET "$1"
  local target
  for target in $(fuzz_targets); do fuzz_passed "$target" || return 1; done
}

fuzz_passed() { grep -q '^ok ' "build/fuzz/logs/$1.result" 2>/dev/null; }
