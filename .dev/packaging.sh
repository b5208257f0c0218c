# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The Debian packages and the static program, all below build/package. needs.sh and builds.sh are read before this.

readonly zig_version=0.17.1  # From PyPI: a whole toolchain, musl and libc++ included.
readonly package_folder=build/package
readonly static_program=$package_folder/holdfast-static

project_version() { sed -nE "s/^  version: '([0-9.]+)',$/\1/p" meson.build; }

# The same commit makes the same packages.
source_date() { printf '%s\n' "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}"; }

source_files() {  # with a NUL after each
  local parts=(include src proto tests fuzz examples meson.build meson_options.txt CMakeLists.txt LICENSE README.md CHANGELOG.md)
  git ls-files -z "${parts[@]}" 2>/dev/null || find "${parts[@]}" -type f -print0
}

build_debs() {
  local version tree name=${DEBFULLNAME:-The holdfast authors} mail=${DEBEMAIL:-holdfast@example.org}
  version=$(project_version)
  tree=$package_folder/holdfast-$version
  SOURCE_DATE_EPOCH=$(source_date)
  export SOURCE_DATE_EPOCH
  rm -rf "$tree" "$package_folder"/*.{deb,dsc,tar.*,changes,buildinfo}
  mkdir -p "$tree" && source_files | xargs -0 cp --parents -t "$tree" && cp -R .dev/debian "$tree/debian" &&
    cp .dev/sbom.py "$tree/debian/sbom.py" && sed -i "s/@MAINTAINER@/$name <$mail>/" "$tree/debian/control" || return 1
  {
    printf 'holdfast (%s) unstable; urgency=medium\n\n  * Version %s; see the changelog of holdfast itself.\n\n' "$version" "$version"
    printf ' -- %s <%s>  %s\n' "$name" "$mail" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
  } >"$tree/debian/changelog"
  find "$tree" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  (cd "$tree" && dpkg-buildpackage -us -uc --jobs="$(nproc)") || return 1
  rm -rf "$tree"
}

# Nothing is overridden.
check_debs() { lintian --fail-on error,warning --allow-root "$package_folder"/*.changes; }

zig() { printf '%s\n' build/tools/zig/lib/python3*/site-packages/ziglang; }

fetch_zig() {
  [[ -x $(zig)/zig && $("$(zig)/zig" version) == "$zig_version" ]] && return 0
  rm -rf build/tools/zig
  python3 -m venv build/tools/zig && build/tools/zig/bin/pip install --quiet --disable-pip-version-check "ziglang==$zig_version" &&
    [[ -x $(zig)/zig ]] && return 0
  say "no Zig $zig_version from PyPI: without it there is no static program"
  return 1
}

# The command without TLS: there is no OpenSSL for musl at hand. The C++ runtime is LLVM's, the resolver musl's.
build_static() {
  local folder=$PWD/$package_folder/zig headers=/usr/include/CLI
  [[ -d $headers ]] || headers=/usr/local/include/CLI
  fetch_zig || return 1
  mkdir -p "$folder/include"
  ln -sfn "$headers" "$folder/include/CLI"  # Not all of /usr/include: that is glibc's.
  # Meson before 1.3 does not know Zig's linker by its name. It is LLD.
  cat >"$folder/c++" <<END
#!/bin/sh
case " \$* " in *" -Wl,--version "*) echo 'LLD (compatible with GNU linkers)'; exit ;; esac
exec '$PWD/$(zig)/zig' c++ -target $(uname -m)-linux-musl "\$@"
END
  chmod +x "$folder/c++"
  cat >"$folder/native.ini" <<END
[binaries]
cpp = '$folder/c++'
ar = ['$PWD/$(zig)/zig', 'ar']

[built-in options]
cpp_args = ['-isystem', '$folder/include', '-fno-sanitize=undefined', '-ffile-prefix-map=$PWD=.']
cpp_link_args = ['-static', '-s']
END
  configure static "" --native-file "$folder/native.ini" --buildtype=minsize -Ddebug=false -Dtests=disabled -Dfuzz=disabled \
    -Dasio=disabled -Dtls=disabled -Dcli=enabled && ninja -C build/static src/cli/holdfast &&
    cp build/static/src/cli/holdfast "$static_program" &&
    SOURCE_DATE_EPOCH=$(source_date) python3 .dev/sbom.py --build build/static --name holdfast-static \
      --version "$(project_version)" --zig "$(zig)" src/cli/holdfast >"$static_program.spdx.json"
}

# Roots to install in, kept for the next time. The tests work on copies.
readonly root_suites=(bookworm trixie)
fetch_root() {  # fetch_root SUITE
  local root=$package_folder/roots/$1
  [[ ! -e $root.done ]] || return 0
  as_root rm -rf "$root"
  mkdir -p "$package_folder/roots"
  as_root debootstrap --variant=minbase "$1" "$root" && touch "$root.done"
}

run_packages() {
  local suite
  package_step "Debian packages: build" build_debs || return 0
  package_step "Debian packages: lintian" check_debs || true
  for suite in "${root_suites[@]}"; do
    package_step "a root of $suite" fetch_root "$suite" || continue
    package_step "installed in $suite" tests/consumer/packages.sh "$package_folder" "$package_folder/roots/$suite" || true
  done
  package_step "static program: build" build_static || return 0
  package_step "static program: anywhere" tests/consumer/static.sh "$static_program" || true
}

# A check that lacks what it needs exits with 77, and is counted as skipped.
package_step() {  # package_step LABEL COMMAND...: counted
  local label=$1
  package_result=0
  if ! step "$label" package_try "${@:2}"; then
    count "$label" 0 1 0
    return 1
  elif ((package_result == 77)); then
    tail -n 1 "build/logs/${label//[^a-zA-Z0-9]/-}.log" | sed 's/^/   | /'
    count "$label" 0 0 1
  else
    count "$label" 1 0 0
  fi
}
package_result=0
package_try() {
  "$@" || package_result=$?
  ((package_result == 0 || package_result == 77))
}
