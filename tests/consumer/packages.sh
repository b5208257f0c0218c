#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: packages.sh FOLDER ROOT
#
# The Debian packages in FOLDER are installed in a copy of ROOT, a bare Debian of debootstrap. apt finds what they depend on; the command
# holds a lock there; programs in C and C++ are built with what pkg-config says; the shells' completions are where shells look. After
# a purge nothing is left. Exits 77 (skipped) where roots cannot be changed, or there is no server.
set -euo pipefail

folder=$(readlink -f "${1:?usage: packages.sh FOLDER ROOT}")
from=$(readlink -f "${2:?usage: packages.sh FOLDER ROOT}")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
[[ -d $from/var/lib/dpkg ]] || { echo "skipped: $from is no Debian" >&2; exit 77; }
((EUID == 0)) || { echo "skipped: not root" >&2; exit 77; }
# What is mounted is ours alone, and goes with us.
if [[ ${HOLDFAST_IN_NAMESPACE:-} != yes ]]; then
  unshare --mount --pid --fork true 2>/dev/null || { echo "skipped: no right to change roots" >&2; exit 77; }
  HOLDFAST_IN_NAMESPACE=yes exec unshare --mount --pid --fork --kill-child "${BASH_SOURCE[0]}" "$folder" "$from"
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-packages.XXXXXX")
# shellcheck source=/dev/null
source "$here/consumer.sh"
trap 'umount "$root/proc" 2>/dev/null || true; clean_up' EXIT

root=$work/root
cp -a "$from" "$root"
mount -t proc proc "$root/proc"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
apt() { quietly inside apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@"; }
# What belongs to no package but apt's, dpkg's and ldconfig's own books is part of this, and so is what packages bring.
listing() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./packages -o -path ./tmp -o -path ./var/lib/apt -o -path ./var/cache \
    -o -path ./var/log -o -path ./var/lib/dpkg -o -path ./socket -o -path ./etc/ld.so.cache \) -prune -o -printf '%p %y %m %l\n' | sort)
  inside dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n'
  find "$root/var/lib/dpkg/info" -printf '%f\n' | sort
}

# The way of this machine to Debian.
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
apt-config dump | grep -E '^Acquire::https?::Proxy' >"$root/etc/apt/apt.conf.d/99proxy" || true
mkdir "$root/packages"
cp "$folder"/*.deb "$root/packages"
apt update
listing >"$work/bare"

apt install $(cd "$root" && printf '/%s ' packages/holdfast_*.deb packages/libholdfast-dev_*.deb)
echo "ok: installed in a bare root: $(inside dpkg-query -W -f '${Version}' holdfast) in Debian $(cat "$root/etc/debian_version")"
start_server --unixsocket "$root/socket"
url=unix:///socket
said=$(inside holdfast run -n -l 10 --url "$url" job -- holdfast info --url "$url" job) || fail "holdfast run: $said"
grep -qE '^state: +held$' <<<"$said" || fail "holdfast run did not hold: $said"
result=0
inside holdfast info --url "$url" job >/dev/null || result=$?
((result == 1)) || fail "the lock was not released"
inside holdfast --version | grep -qx "holdfast $(inside dpkg-query -W -f '${Version}' holdfast)" || fail "another version"
[[ -s $root/usr/share/man/man1/holdfast.1.gz ]] || [[ -e $root/etc/dpkg/dpkg.cfg.d/excludes ]] || fail "no man page"
for file in bash-completion/completions/holdfast zsh/vendor-completions/_holdfast fish/vendor_completions.d/holdfast.fish; do
  [[ -s $root/usr/share/$file ]] || fail "no $file"
done
for package in holdfast libholdfast-dev; do
  python3 "$here/sbom.py" "$root/usr/share/doc/$package/$package.spdx.json" "$package" "$root/usr/bin/holdfast" || fail "the SBOM of $package"
done
echo "ok: the command takes and releases a lock"

apt purge holdfast libholdfast-dev
apt autoremove --purge
listing >"$work/after"
diff "$work/bare" "$work/after" >&2 || fail "something is left after the purge (right)"
echo "ok: nothing is left after a purge"

apt install /packages/"$(basename "$folder"/libholdfast-dev_*.deb)" g++ pkg-config
mkdir "$root/tmp/consumer"
cp "$here/main.cpp" "$here/codec.cpp" "$here/../../examples/c/minimal.c" "$root/tmp/consumer"
build() { quietly inside sh -ec "cd /tmp/consumer && $1"; }
build 'g++ -std=c++20 -Wall -Wextra -Werror main.cpp $(pkg-config --cflags --libs holdfast) -o locker'
build 'g++ -std=c++20 codec.cpp $(pkg-config --cflags --libs holdfast-proto) -o codec'
build 'gcc -std=c11 -Wall -Wextra -Werror minimal.c $(pkg-config --cflags --libs holdfast) -o in-c'
[[ $(inside /tmp/consumer/locker "$url") == 'held: yes' ]] || fail "the program in C++ did not lock"
inside /tmp/consumer/codec || fail "the codec did not read a reply"
[[ $(inside /tmp/consumer/in-c "$url" | tail -n 1) == 'acquire and release: ok' ]] || fail "the program in C did not lock"
echo "ok: programs in C++ and C, by pkg-config"
