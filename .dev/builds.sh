# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# One folder below build/ per way of building, and how the programs in it are run.

with_compiler() {  # with_compiler gcc|gcc-N|clang|'' COMMAND...
  local c=$1
  shift
  case $c in
    clang) CC=clang CXX=clang++ CC_LD=lld CXX_LD=lld "$@" ;;
    gcc*) CC=$c CXX=${c/gcc/g++} "$@" ;;
    '') "$@" ;;  # As the file of the toolchain says.
  esac
}

configure() {  # configure NAME COMPILER MESON-ARGUMENT...: build/NAME, set up afresh if the arguments have changed
  local dir=build/$1 compiler=$2 more_args
  shift 2
  read -ra more_args <<<"${HOLDFAST_MESON_ARGS:-}"
  local wanted="$compiler $* ${more_args[*]-}"
  if [[ -e $dir/build.ninja && $(cat "$dir/.arguments" 2>/dev/null) == "$wanted" ]]; then return 0; fi

  if [[ -d $dir ]]; then  # What took long to find or to measure is kept.
    find "$dir" -mindepth 1 -maxdepth 1 ! -name corpus ! -name results -exec rm -rf {} +
  fi
  with_compiler "$compiler" meson setup "$dir" "$@" "${more_args[@]}" || return 1
  printf '%s\n' "$wanted" >"$dir/.arguments"
}

build() {  # build NAME COMPILER MESON-ARGUMENT...
  configure "$@" && ninja -C "build/$1"
}

# Meson's own default is -O0, which nobody ships. The sanitizers' stacks are readable at -O1, and say lines, which is all the debug
# information that is made for them.
readonly optimised=(--buildtype=debugoptimized)
# Where nobody measures, or looks for a line: compiled in a tenth less of the time.
readonly optimised_bare=(-Doptimization=2 -Ddebug=false)
# Most of what the compiler reads is the standard library's headers: once for many sources is enough, where no archive is shipped.
readonly united=(-Dunited=true)
readonly sanitized=(-Doptimization=1 -Ddebug=true -Dcpp_args=-g1 -Db_lundef=false)

# Not united: a test looks at what its programs link, and Clang's analyser at one source at a time.
# For a debugger, unless only the lines of a failure are wanted: they cost a fifth of compiling less.
configure_plain() { configure plain gcc "${optimised[@]}" ${HOLDFAST_LINES_ONLY:+-Dcpp_args=-g1} -Dtests=enabled; }
build_plain() { configure_plain && ninja -C build/plain; }
# Asio's deprecated names are switched off, so that we use none that it is about to drop.
build_clang() {
  configure clang clang "${optimised_bare[@]}" "${united[@]}" -Dtests=enabled -Dcpp_args=-DASIO_NO_DEPRECATED &&
    build_suites clang unit
}
configure_asan() { configure san clang "${sanitized[@]}" "${united[@]}" -Db_sanitize=address,undefined -Dtests=enabled; }
build_asan() { configure_asan && build_suites san unit replay live; }
build_tsan() {
  configure tsan clang "${sanitized[@]}" "${united[@]}" -Db_sanitize=thread -Dtests=enabled && build_suites tsan threads
}

# Other machines, as .dev/MACHINE.ini has them. Without Asio, whose headers take long to compile.
readonly machines=(s390x arm)
build_machine() {  # build_machine MACHINE
  configure "$1" gcc "${optimised_bare[@]}" "${united[@]}" --cross-file ".dev/$1.ini" -Dtests=enabled -Dasio=disabled &&
    build_suites "$1" unit replay machines
}
build_s390x() { build_machine s390x; }
build_arm() { build_machine arm; }

build_suites() {  # build_suites NAME SUITE...: only the programs that tests of these suites run
  local programs
  programs=$(programs_of "$@") || return 1
  [[ -n $programs ]] || { say "no tests of: ${*:2}"; return 1; }
  # shellcheck disable=SC2086  # One word per program.
  ninja -C "build/$1" $programs
}

programs_of() {  # programs_of NAME SUITE...: these and what they depend on, relative to build/NAME, one per line
  ninja -C "build/$1" build.ninja >&2 || return 1  # What Meson tells is of its last run, and a meson.build may be newer.
  meson introspect --tests --targets "build/$1" | python3 .dev/programs_of.py "build/$1" "${@:2}"
}

build_libraries() {  # build_libraries NAME COMPILER MESON-ARGUMENT...: nothing but the archives
  local log=build/logs/$1.log
  {
    configure "$@" -Dtests=disabled -Dfuzz=disabled -Dcli=disabled -Dasio=disabled -Ddebug=false &&
      meson compile -C "build/$1" holdfast:static_library holdfast-proto:static_library
  } >"$log" 2>&1 && return 0
  printf 'the build of %s failed; the end of %s:\n' "$1" "$log"
  tail -n 12 "$log" | sed 's/^/  | /'
  return 1
}

# How a program is run.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}

# Clang 14's sanitizers cannot place their shadow on kernels that randomise more address bits than Clang knew of.
fixed_addresses() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

run_meson_tests() {  # run_meson_tests NAME MESON-TEST-ARGUMENT...
  local name=$1
  shift
  # The live tests wait far more than they work, so there are more of them than processors.
  fixed_addresses meson test -C "build/$name" --no-rebuild --print-errorlogs --num-processes $((4 * $(nproc))) "$@"
}

has_suite() {  # has_suite NAME SUITE: are there tests of that suite in build/NAME?
  meson introspect --tests "build/$1" 2>/dev/null | grep -q ":$2\""
}

has_target() {  # has_target NAME FILE: does ninja know how to make it in build/NAME?
  ninja -C "build/$1" -t query "$2" >/dev/null 2>&1
}
