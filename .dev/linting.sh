# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# clang-tidy over our sources. builds.sh is read before this.

# Two readings. The first is by all checks but the static analyser's. Most of its time goes into the standard library's headers, so
# it reads the united sources, and each of those headers a few times instead of once for each source of ours. The second is the
# analyser's, which follows paths, takes far longer, and looks at one source at a time. So a run may be told for how long the
# analyser may begin with further sources. Their order is drawn by chance, so that each one's turn comes. It may also be told when
# to begin with nothing further at all. The second has a check with it that would follow calls across united sources into Asio,
# and takes what Asio throws where there is no memory for something that our destructors do.

# What the builds do not compile, since an option is off, is left out: there are no flags to lint it with.
lint_sources() {  # lint_sources [ANALYSER-SECONDS [SECONDS]]: without them all is read, and analysed
  local read=() sources=() unread=build/logs/clang-tidy.unread unanalysed=build/logs/clang-tidy.unanalysed result=0
  { configure_asan && configure_plain; } || return 1
  mapfile -t read < <(python3 .dev/sources_of.py san build/lint/united)
  mapfile -t sources < <(python3 .dev/sources_of.py plain build/lint/apart | shuf)
  ((${#read[@]} > 0 && ${#sources[@]} > 0)) || { say "the builds have no sources"; return 1; }
  : >"$unread"
  : >"$unanalysed"
  lint_each $(($(date +%s) + ${2:-1000000})) "$unread" build/lint/united "--checks=-clang-analyzer-*,-bugprone-exception-escape" \
    "${read[@]}" || result=1
  lint_each $(($(date +%s) + ${1:-1000000})) "$unanalysed" build/lint/apart \
    "--checks=-*,bugprone-exception-escape,clang-analyzer-*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling" \
    "${sources[@]}" || result=1
  printf '%d of %d sources were analysed' $((${#sources[@]} - $(wc -l <"$unanalysed"))) ${#sources[@]}
  [[ ! -s $unread ]] || printf ', and %d of %d united ones were not read: there was no time left' "$(wc -l <"$unread")" ${#read[@]}
  echo
  return "$result"
}

lint_each() {  # lint_each LAST LEFT-OUT DATABASE CHECKS SOURCE...: those whose turn comes after LAST are listed in LEFT-OUT
  local last=$1 left_out=$2 database=$3 checks=$4
  shift 4
  export -f lint_one
  printf '%s\n' "$@" | xargs -P "$(nproc)" -I SOURCE bash -c 'lint_one "$@"' - "$last" "$left_out" "$database" "$checks" SOURCE
}

lint_one() {  # lint_one LAST LEFT-OUT DATABASE CHECKS SOURCE
  if (($(date +%s) >= $1)); then echo "$5" >>"$2"; else clang-tidy -p "$3" --quiet "$4" "$5"; fi
}
