# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# clang-tidy over our sources. builds.sh is read before this.

# Four fifths of clang-tidy's time goes into its static analyser, which follows paths. So a run may be told for how long the
# analyser may begin with further sources; the rest is read by all other checks alone. It may also be told when to begin with no
# further source at all. The order is drawn by chance, so that each source's turn comes.

# A source is left out when the build does not compile it (its option is off): there are no flags to lint it with.
lint_sources() {  # lint_sources [ANALYSER-SECONDS [SECONDS]]: without them every source is analysed, and read
  configure_asan || return 1
  local source sources=() analysed=build/logs/clang-tidy.analysed left=build/logs/clang-tidy.left result=0 now unread
  now=$(date +%s)
  while read -r source; do
    ! grep -qF "\"../../$source\"" build/san/compile_commands.json || sources+=("$source")
  done < <(find src proto -name '*.cpp' | sort)
  : >"$analysed"
  : >"$left"
  export -f lint_one
  printf '%s\n' "${sources[@]}" | shuf |
    xargs -P "$(nproc)" -I SOURCE bash -c 'lint_one "$@"' - SOURCE "$analysed" $((now + ${1:-1000000})) \
      "$left" $((now + ${2:-1000000})) || result=1
  unread=$(wc -l <"$left")
  printf '%d of %d sources were analysed, %d read by the other checks alone' \
    "$(wc -l <"$analysed")" ${#sources[@]} $((${#sources[@]} - $(wc -l <"$analysed") - unread))
  ((unread == 0)) || printf ', and %d were not read: there was no time left' "$unread"
  echo
  return "$result"
}

lint_one() {  # lint_one SOURCE LIST-OF-ANALYSED END LIST-OF-UNREAD LAST: with the analyser until END, until LAST at all
  local checks=()
  if (($(date +%s) >= $5)); then echo "$1" >>"$4"; return 0; fi
  if (($(date +%s) < $3)); then echo "$1" >>"$2"; else checks=(--checks=-clang-analyzer-*); fi
  clang-tidy -p build/san --quiet "${checks[@]}" "$1"
}
