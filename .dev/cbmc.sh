# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Fetching CBMC of Debian unstable into build/cbmc, without touching the system. The private apt is that of valkey.sh.
source .dev/valkey.sh

readonly cbmc=$PWD/build/cbmc/cbmc

fetch_cbmc() {  # Fails where it cannot be fetched.
  if [[ -x $cbmc ]] && "$cbmc" --version >/dev/null; then return 0; fi
  local tool package loader
  for tool in apt-get dpkg-deb; do command -v "$tool" >/dev/null || return 1; done
  [[ -e $debian_keyring ]] || return 1

  say "fetching cbmc of Debian unstable into build/cbmc"
  rm -rf build/cbmc
  mkdir -p build/cbmc/apt/{lists,archives}/partial build/cbmc/apt/{parts,state} build/cbmc/root
  write_private_apt build/cbmc/apt
  apt-get -c build/cbmc/apt/apt.conf update -qq >&2 || return 1
  # Not the compiler that its package depends on: it reads what Clang has made.
  (cd build/cbmc/apt/archives && apt-get -c ../apt.conf download -qq cbmc minisat libc6 libgcc-s1 libstdc++6 zlib1g) >&2 || return 1
  for package in build/cbmc/apt/archives/*.deb; do dpkg-deb -x "$package" build/cbmc/root || return 1; done
  rm -rf build/cbmc/apt
  loader=$(cd build/cbmc && compgen -G 'root/usr/lib/*-linux-gnu*/ld-linux*.so.*' | head -n 1)
  [[ -n $loader ]] || return 1
  cat >"$cbmc.new" <<WRAPPER
#!/bin/sh
# Written by \`./dev prove\`: Debian's cbmc, started by the C library that it was built for.
here=\$(dirname "\$(readlink -f "\$0")")
exec "\$here/$loader" --library-path "\$here/$(dirname "$loader"):\$here/root/usr/lib" "\$here/root/usr/bin/cbmc" "\$@"
WRAPPER
  chmod +x "$cbmc.new"
  mv "$cbmc.new" "$cbmc"
  "$cbmc" --version >&2
}
