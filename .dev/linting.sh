# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# clang-tidy over our sources. builds.sh is read before this.

# Four fifths of clang-tidy's time goes into its static analyser, which follows paths. So a run may be told for how long the
# analyser may begin with further sources; the rest is read by all other checks alone. The order is drawn by chance, so that
# each source's turn comes.

# A source is left out when the build does not compile it (its option is off): there are no flags to lint it with.
lint_sources() {  # lint_sources [SECONDS]: without them every source is analysed
  configure_asan || return 1
  local source sources=() analysed=build/logs/clang-tidy.analysed result=0
  while read -r source; do
    ! grep -qF "\"../../$source\"" build/san/compile_commands.json || sources+=("$source")
  done < <(find src proto -name '*.cpp' | sort)
  : >"$analysed"
  export -f lint_one
  printf '%s\n' "${sources[@]}" | shuf |
    xargs -P "$(nproc)" -I SOURCE bash -c 'lint_one "$@"' - SOURCE "$analysed" $((${1:-1000000} + $(date +%s))) || result=1
  printf '%d of %d sources were analysed, %d read by the other checks alone\n' \
    "$(wc -l <"$analysed")" ${#sources[@]} $((${#sources[@]} - $(wc -l <"$analysed")))
  return "$result"
}

lint_one() {  # lint_one SOURCE LIST-OF-ANALYSED END: with the analyser until that second of the epoch
  local checks=()
  if (($(date +%s) < $3)); then echo "$1" >>"$2"; else checks=(--checks=-clang-analyzer-*); fi
  clang-tidy -p build/san --quiet "${checks[@]}" "$1"
}
