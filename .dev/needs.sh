# shellcheck shell=bash disable=SC2034  # The verbs read the lists.
# SPDX-License-Identifier: MIT
#
# What is missing, and how to get it. Until `need` has returned there may be nothing here but bash and coreutils.

# A need is a command, a header, or a name that have() knows; its value is the package of Debian and Ubuntu.
declare -rA package_of=(
  [meson]=meson [ninja]=ninja-build [pkg-config]=pkg-config [python3]=python3
  [g++]=g++ [clang++]=clang [ld.lld]=lld [clang-tidy]=clang-tidy [clang-format]=clang-format
  [redis-server]=redis-server [cmake]=cmake [valgrind]=valgrind [strace]=strace
  [doctest/doctest.h]=doctest-dev [CLI/CLI.hpp]=libcli11-dev [asio.hpp]=libasio-dev
  [benchmark/benchmark.h]=libbenchmark-dev [hiredis/hiredis.h]=libhiredis-dev
  [clang-runtime]=libclang-rt-dev [llvm-symbolizer]=llvm [llvm-cov]=llvm [llvm-profdata]=llvm
  [arm-none-eabi-g++]=gcc-arm-none-eabi [arm-libc]=libnewlib-arm-none-eabi
  [arm-libstdc++]=libstdc++-arm-none-eabi-newlib
  [mvn]=maven [javac]=default-jdk-headless [node]=nodejs [npm]=npm [go]=golang-go [python-venv]=python3-venv
  [s390x-linux-gnu-g++]=g++-s390x-linux-gnu [arm-linux-gnueabihf-g++]=g++-arm-linux-gnueabihf
  [qemu-s390x]=qemu-user [qemu-arm]=qemu-user [qemu-system-arm]=qemu-system-arm
  [dpkg-buildpackage]=dpkg-dev [dh]=debhelper [lintian]=lintian [debootstrap]=debootstrap [zsh]=zsh [fish]=fish
  [unshare]=util-linux [readelf]=binutils
  [openssl/ssl.h]=libssl-dev [sqlite3.h]=libsqlite3-dev [lua5.1/lua.h]=liblua5.1-0-dev [python-clang]=python3-clang
  [doxygen]=doxygen [dot]=graphviz [linkchecker]=linkchecker
  [python-markdown-it]=python3-markdown-it [python-pygments]=python3-pygments
  [python-prometheus]=python3-prometheus-client
)

# What each verb needs. One list stands on another, so they stand together.
readonly needs_arm=(arm-none-eabi-g++ arm-libc arm-libstdc++)
readonly needs_build=(meson ninja pkg-config python3 g++)
readonly needs_clang=(clang++ ld.lld clang-runtime llvm-symbolizer)
readonly needs_coverage=("${needs_build[@]}" "${needs_clang[@]}" llvm-cov llvm-profdata CLI/CLI.hpp doctest/doctest.h
  lua5.1/lua.h)
readonly needs_demo=("${needs_build[@]}" redis-server CLI/CLI.hpp)
readonly needs_fuzz=("${needs_build[@]}" "${needs_clang[@]}")
readonly needs_prove=("${needs_build[@]}" clang++ doctest/doctest.h CLI/CLI.hpp)
readonly needs_quick=("${needs_demo[@]}" doctest/doctest.h sqlite3.h lua5.1/lua.h valgrind strace cmake
  python-prometheus)
readonly needs_sim=("${needs_build[@]}" CLI/CLI.hpp doctest/doctest.h lua5.1/lua.h)
readonly needs_soak=("${needs_build[@]}" redis-server CLI/CLI.hpp doctest/doctest.h)
readonly needs_mutate=("${needs_sim[@]}" python-clang)
# The languages of the interop suite. CI installs them; elsewhere a test whose language is missing is skipped, and says so.
# Whose completions are tested.
readonly needs_shells=(zsh fish)
readonly needs_interop=(mvn javac node npm go python-venv)
readonly needs_test=("${needs_quick[@]}" "${needs_clang[@]}" clang-tidy)
# Other machines: CI installs what they need. Elsewhere they are skipped where it is missing, and `./dev machines` installs it.
readonly needs_machines=("${needs_build[@]}" redis-server doctest/doctest.h CLI/CLI.hpp s390x-linux-gnu-g++
  arm-linux-gnueabihf-g++ qemu-s390x qemu-arm)
# Packages, and where they are installed.
readonly needs_package=("${needs_build[@]}" CLI/CLI.hpp asio.hpp openssl/ssl.h redis-server python-venv readelf unshare
  dpkg-buildpackage dh lintian debootstrap "${needs_shells[@]}")
# Programs for a microcontroller, and a board to run them on. As with other machines, CI installs what they need.
readonly needs_firmware=("${needs_quick[@]}" "${needs_arm[@]}" qemu-system-arm)
readonly needs_lint=("${needs_build[@]}" clang++ ld.lld clang-runtime doctest/doctest.h CLI/CLI.hpp clang-tidy)
readonly needs_bench=("${needs_quick[@]}" benchmark/benchmark.h hiredis/hiredis.h openssl/ssl.h)
readonly needs_docs=(python3 doxygen dot linkchecker python-markdown-it python-pygments)
readonly needs_check=("${needs_build[@]}" clang++ ld.lld)
readonly needs_size=("${needs_check[@]}" doctest/doctest.h "${needs_arm[@]}")

have() {  # have NEED
  case $1 in
    *.h | *.hpp) [[ -e /usr/include/$1 || -e /usr/local/include/$1 ]] ;;
    clang-runtime) have clang++ && compgen -G "$(clang++ -print-resource-dir)/lib/*/libclang_rt.fuzzer*" >/dev/null ;;
    python-clang) /usr/bin/python3 -c 'import clang.cindex' 2>/dev/null ;;
    python-markdown-it) /usr/bin/python3 -c 'import markdown_it' 2>/dev/null ;;
    python-pygments) /usr/bin/python3 -c 'import pygments' 2>/dev/null ;;
    python-prometheus) /usr/bin/python3 -c 'import prometheus_client.openmetrics.parser' 2>/dev/null ;;
    python-venv) python3 -c 'import ensurepip' 2>/dev/null ;;
    arm-libc) have_arm_archive libc.a ;;
    arm-libstdc++) have_arm_archive libstdc++.a ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# The compiler prints the bare name back when it does not find the file.
have_arm_archive() { have arm-none-eabi-gcc && [[ -e $(arm-none-eabi-gcc -print-file-name="$1") ]]; }

missing_of() {  # missing_of NEED...: the needs that are not there, one per line
  local it
  for it in "$@"; do have "$it" || printf '%s\n' "$it"; done | sort -u
}

need() {  # need NEED...: returns when all are there, else installs them, else says what is missing and exits
  local missing
  mapfile -t missing < <(missing_of "$@")
  ((${#missing[@]})) || return 0

  local packages=() it
  for it in "${missing[@]}"; do packages+=("${package_of[$it]}"); done
  say "missing here: ${missing[*]}"
  may_install || die "cannot install them (no apt-get, or no right to use it). Please install: ${packages[*]}"
  say "installing:   ${packages[*]}"
  install_packages "${packages[@]}" || die "apt-get did not install all of: ${packages[*]}"

  # The runtime follows clang's version; where clang++ is not the distribution's default one, its number is needed.
  have clang-runtime || [[ " ${missing[*]} " != *" clang-runtime "* ]] ||
    install_packages "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev" || true

  mapfile -t missing < <(missing_of "$@")
  ((${#missing[@]} == 0)) || die "still missing after the installation: ${missing[*]}"
}

# Everything else works without Asio: Meson then leaves the Asio client out, and says so.
want_asio() {
  (need asio.hpp) && return 0
  say "warning: without Asio the client for its loops is neither built nor checked"
  return 1
}

# So does everything else without OpenSSL.
want_tls() {
  (need openssl/ssl.h) && return 0
  say "warning: without OpenSSL's headers TLS is neither built nor checked"
  return 1
}

may_install() {
  command -v apt-get >/dev/null || return 1
  ((EUID == 0)) && return 0
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null || { [[ -t 0 ]] && sudo -v; }
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# This runs in a subshell because of its EXIT trap: the file that keeps services from starting must go whatever happens.
install_packages() (
  policy=/usr/sbin/policy-rc.d
  redis_was_here=$(command -v redis-server || true)
  if [[ ! -e $policy ]]; then
    trap 'as_root rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
  as_root apt-get update -qq || say "warning: apt-get update failed; going on with what apt knows"
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >&2 || exit 1
  # We want the binary for tests, not a server at the next boot.
  if [[ -z $redis_was_here ]] && command -v redis-server >/dev/null && command -v systemctl >/dev/null; then
    as_root systemctl disable --quiet redis-server 2>/dev/null || true
  fi
)

