# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Which symbols of others the libraries want. builds.sh is read before this.

# The libraries want nothing of libstdc++ but its headers. That must be so for each compiler, optimisation level and
# assertion mode, so variants are built and looked at. A check prints one line, "ok ..." or "not ok ...".

# The names are tested mangled, since demangled ones have std:: in their parameters as well.
foreign_symbols='^_Z(GV|TV|TI|TS|Z)*N?K?S[tabsiod]'  # functions, guards, tables and statics of std::
foreign_symbols+='|^_ZT[ISV]N10__cxxabiv1|^__cxa_|^__gxx_|^_Unwind_'
foreign_symbols+='|^_Z(n[wa]|d[la])'  # operator new, operator delete
readonly foreign_symbols

# `./dev size` looks at all eight variants. These four are looked at by each test run: any two of the three choices meet in one.
readonly usual_variants=(gcc-O0-U gcc-Os-D clang-O0-D clang-Os-U)

check_symbols() {  # check_symbols [all]
  local compiler level assertions name result=0
  for compiler in gcc clang; do
    for level in 0 s; do
      for assertions in -U_GLIBCXX_ASSERTIONS -D_GLIBCXX_ASSERTIONS=1; do
        name=$compiler-O$level${assertions:0:2}
        [[ ${1:-} == all || " ${usual_variants[*]} " == *" $name "* ]] || continue
        check_variant "size-$name" "$compiler" "$level" "$assertions" || result=1
      done
    done
  done
  check_archive_names || result=1
  return $result
}

check_variant() {  # check_variant NAME COMPILER LEVEL ASSERTIONS
  local dir=build/$1 label="$2 -O$3 $4" archive foreign
  build_libraries "$1" "$2" "-Doptimization=$3" "-Dcpp_args=$4" "${united[@]}" || { not_ok "$label: does not build"; return 1; }
  for archive in libholdfast libholdfast-proto; do
    archive=$(find "$dir" -name "$archive.a")
    [[ -n $archive ]] || { not_ok "$label: an archive is missing"; return 1; }
    foreign=$(foreign_symbols_of "$archive")
    [[ -z $foreign ]] || { not_ok "$label: $(basename "$archive") wants $foreign"; return 1; }
  done
  links_without_libstdcxx "$dir" "$2" "$3" "$4" >"build/logs/$1-link.log" 2>&1 ||
    { not_ok "$label: a program does not link without libstdc++ (build/logs/$1-link.log)"; return 1; }
  printf 'ok %s: nothing of libstdc++ wanted\n' "$label"
}

not_ok() { printf 'not ok %s\n' "$*"; }

foreign_symbols_of() {  # foreign_symbols_of ARCHIVE: demangled, in one line; empty if there are none
  local names
  names=$(nm --undefined-only --format=posix "$1" | awk '$2 == "U" { print $1 }')
  grep -E "$foreign_symbols" <<<"$names" | sort -u | c++filt | tr '\n' ';' || true
}

# The consumer's program, one with all of the library, and drivers on the core alone, linked by the C driver.
readonly linked_programs=(
  tests/consumer/main.cpp
  tests/size/watchdog.cpp
  examples/poll_loop.cpp
  "examples/freertos_transport.cpp examples/freertos_on_posix.cpp"
)

links_without_libstdcxx() {  # links_without_libstdcxx DIR COMPILER LEVEL ASSERTIONS
  local cxx=g++
  [[ $2 != clang ]] || cxx=clang++
  local program source sources objects
  for program in "${linked_programs[@]}"; do
    read -ra sources <<<"$program"
    objects=()
    for source in "${sources[@]}"; do
      objects+=("$1/$(basename "$source" .cpp).o")
      "$cxx" -std=c++20 "-O$3" "$4" -fno-exceptions -fno-rtti -Iinclude -c "$source" -o "${objects[-1]}" || return 1
    done
    "$2" -pthread "${objects[@]}" "$(find "$1" -name libholdfast.a)" -o "$1/consumer" || return 1
  done
}

check_archive_names() {  # what a packager would ship by accident
  local others
  others=$(find build -name 'libholdfast*.a' ! -name libholdfast.a ! -name libholdfast-proto.a \
    ! -name libholdfast-asio.a ! -name libholdfast-tls.a)
  [[ -z $others ]] || { not_ok "archives of other names: ${others//$'\n'/ }"; return 1; }
  printf 'ok no archive of another name\n'
}
