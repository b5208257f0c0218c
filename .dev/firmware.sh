# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The programs of examples/firmware for a Cortex-M4, in build/firmware: an archive per module, so that the linker's map tells what
# each one takes. builds.sh is read before this.

# The release that Debian 13 has. Of the files that are used here Debian's patches change comments alone.
readonly lwip_version=2.2.1
readonly lwip_sha256=83729c274c499d3348e9fbbe043a3113f3fa8953e7efddc7c21c7fcbb1f2b7b1
readonly lwip_file=pool/main/l/lwip/lwip_$lwip_version+dfsg1.orig.tar.xz
readonly lwip=build/firmware/lwip-$lwip_version/src
# NO_SYS, IPv4, TCP: see lwipopts.h.
readonly lwip_sources=(core/{init,def,inet_chksum,ip,mem,memp,netif,pbuf,tcp,tcp_in,tcp_out,timeouts}.c
  core/ipv4/{etharp,icmp,ip4,ip4_addr}.c netif/ethernet.c)

# How much of holdfast is in them at most, in bytes of flash. A promise is about 200 bytes above what was measured when it was made.
declare -rA promise_firmware=([freertos_on_board]=16300 [mutex]=22400 [firmware]=31000)

readonly firmware_programs=(firmware mutex freertos_on_board)

readonly firmware_flags=(-mcpu=cortex-m4 -mthumb -Os -ffunction-sections -fdata-sections -fno-common -Iexamples/firmware
  "-isystem" "$lwip/include")
readonly firmware_cpp_flags=("${firmware_flags[@]}" -std=c++20 -fno-exceptions -fno-rtti -fno-threadsafe-statics
  -Wall -Wextra -Wconversion -Wshadow -Werror -Iinclude -Iproto -Isrc -I. -Ibuild/plain/proto)

fetch_lwip() {
  [[ ! -d $lwip ]] || return 0
  mkdir -p build/firmware
  local archive=build/firmware/lwip.tar.xz
  python3 .dev/fetch.py "$archive" "$lwip_sha256" "http://deb.debian.org/debian/$lwip_file" \
    "https://snapshot.debian.org/archive/debian/20250601T000000Z/$lwip_file" || return 1
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$archive" build/firmware
}

compile_firmware() {  # compile_firmware MODULE SOURCE...: build/firmware/MODULE/*.o, and libMODULE.a of them
  local module=$1 source object
  shift
  mkdir -p "build/firmware/$module"
  for source in "$@"; do
    object=build/firmware/$module/$(basename "${source%.*}").o
    case $source in
      *.c) arm-none-eabi-gcc "${firmware_flags[@]}" -c "$source" -o "$object" || return 1 ;;
      *) arm-none-eabi-g++ "${firmware_cpp_flags[@]}" -c "$source" -o "$object" || return 1 ;;
    esac
  done
  rm -f "build/firmware/lib$module.a"
  arm-none-eabi-ar rcs "build/firmware/lib$module.a" build/firmware/"$module"/*.o
}

link_firmware() {  # link_firmware PROGRAM
  local elf=build/firmware/$1.elf modules=(driver board core kinds proto lwip)
  arm-none-eabi-g++ -mcpu=cortex-m4 -mthumb -nostartfiles --specs=nano.specs -Wl,--gc-sections -Wl,--fatal-warnings \
    -Texamples/firmware/mps2_an386.ld -Wl,-Map="build/firmware/$1.map" build/firmware/start/startup.o "build/firmware/program/$1.o" \
    build/firmware/libprogram.a -Wl,--start-group "${modules[@]/#/-l}" -Wl,--end-group -Lbuild/firmware -o "$elf" || return 1
  # No heap: nobody wants one, so newlib's is not there, nor what it would grow by.
  ! arm-none-eabi-nm "$elf" | grep -E ' _?(malloc|calloc|realloc|free|sbrk)(_r)?$| _Z(n[wa]|d[la])'
}

build_firmware() {
  mkdir -p build/firmware
  configure_plain && fetch_lwip || return 1  # Meson embeds the scripts.
  local program here=examples/firmware
  compile_firmware proto proto/*.cpp &&
    compile_firmware core src/core/*.cpp &&
    compile_firmware kinds src/kinds/*.cpp &&
    compile_firmware lwip "${lwip_sources[@]/#/$lwip/}" &&
    compile_firmware board $here/{board,lan9118,network}.cpp &&
    compile_firmware driver $here/{tcp_link,lock_service,push}.cpp &&
    compile_firmware program $here/{firmware,mutex,freertos_on_board,site,words}.cpp examples/freertos_transport.cpp &&
    compile_firmware start $here/startup.cpp || return 1
  for program in "${firmware_programs[@]}"; do link_firmware "$program" || return 1; done
}

build_firmware_tests() { configure_plain && build_suites plain firmware; }

# What the boards of the tests have said at their ends: the deepest stack of all, and the sizes of the objects.
print_firmware_memory() {
  grep -aoE '^report: .*' build/plain/meson-logs/testlog.txt | sort -V | tail -n 1 | sed 's/^report: /  RAM: /; s/, milliseconds.*//'
}

print_firmware_sizes() {  # the table of examples/firmware/README.md; false where a promise is broken
  local program size verdict line result=0 maps=("${firmware_programs[@]/#/build/firmware/}")
  printf '\n%s, -Os\n\n' "$(arm-none-eabi-g++ --version | head -n 1)"
  python3 .dev/sizes_of_map.py "${maps[@]/%/.map}" >build/firmware/sizes.md || return 1
  cat build/firmware/sizes.md
  while read -r line; do
    grep -qxF "$line" examples/firmware/README.md || { say "examples/firmware/README.md has other figures"; break; }
  done <build/firmware/sizes.md
  printf '\n'
  for program in "${firmware_programs[@]}"; do
    size=$(python3 .dev/sizes_of_map.py --holdfast "build/firmware/$program.map")
    verdict=kept
    ((size > 0 && size <= promise_firmware[$program])) || verdict=BROKEN result=1
    printf '  %-22s carries %6d of %6d promised: %s\n' "$program.elf" "$size" "${promise_firmware[$program]}" "$verdict"
  done
  return $result
}
