# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# clang-tidy over our sources. builds.sh is read before this.

# A source is left out when the build does not compile it (its option is off): there are no flags to lint it with.
lint_sources() {
  configure_clang || return 1
  local source sources=()
  while read -r source; do
    ! grep -qF "\"../../$source\"" build/clang/compile_commands.json || sources+=("$source")
  done < <(find src proto -name '*.cpp' | sort)
  printf '%s\n' "${sources[@]}" | xargs -P 2 -n 1 clang-tidy -p build/clang --quiet
}
