# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Fetching a Valkey 9 into build/servers, without touching the system.

readonly valkey=$PWD/build/servers/valkey-server
readonly debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fetch_valkey() {
  if [[ -x $valkey ]] && "$valkey" --version; then return 0; fi
  local tool
  for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || die "servers needs apt-get and dpkg-deb; skipped"
  done
  [[ -e $debian_keyring ]] || die "servers needs the package debian-archive-keyring, to check what it fetches; skipped"

  say "fetching valkey-server of Debian unstable into build/servers"
  rm -rf build/servers
  mkdir -p build/servers/apt/{lists,archives}/partial build/servers/apt/{parts,state} build/servers/valkey
  write_private_apt build/servers/apt
  private_apt update -qq
  # Since its list of installed packages is empty, apt takes everything that the server needs, its C library too.
  private_apt install -qq -y --no-install-recommends --download-only valkey-server
  local package
  for package in build/servers/apt/archives/*.deb; do dpkg-deb -x "$package" build/servers/valkey; done
  rm -rf build/servers/apt
  write_valkey_wrapper
  "$valkey" --version
}

private_apt() { apt-get -c build/servers/apt/apt.conf "$@" >&2; }

# The mirror is that of the system's own Debian sources, if it has some. The signature is checked in any case.
write_private_apt() {  # write_private_apt FOLDER
  local apt=$PWD/$1 mirror
  mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
    sed -nE 's#^(deb|URIs:)(.*[ \t])?(https?://[^ \t]*/debian)/?([ \t].*)?$#\3#p' | sed -n 1p)
  printf 'deb [arch=%s target=Packages signed-by=%s] %s unstable main\n' "$(dpkg --print-architecture)" \
    "$debian_keyring" "${mirror:-http://deb.debian.org/debian}" >"$apt/sources.list"
  : >"$apt/status"
  cat >"$apt/apt.conf" <<CONF
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "$apt/parts";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "$apt/parts";
Dir::State "$apt/state";
Dir::State::Lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::Archives "$apt/archives";
Dir::Log "$apt";
APT::Default-Release "";
APT::Sandbox::User "root";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
CONF
}

# The binary wants a newer C library than the system's, so its own loader starts it. It is one binary for several
# commands, and looks at argv[0] to know which one it is.
write_valkey_wrapper() {
  local loader
  loader=$(cd build/servers/valkey && compgen -G 'usr/lib/*-linux-gnu*/ld-linux*.so.*' | head -n 1)
  [[ -n $loader ]] || die "no loader among the fetched packages"
  cat >"$valkey.new" <<WRAPPER
#!/bin/sh
# Written by \`./dev servers\`: Debian's valkey-server, started by the C library that it was built for.
here=\$(dirname "\$(readlink -f "\$0")")/valkey
exec "\$here/$loader" --library-path "\$here/$(dirname "$loader")" --argv0 valkey-server \\
  "\$here/usr/bin/valkey-server" "\$@"
WRAPPER
  chmod +x "$valkey.new"
  mv "$valkey.new" "$valkey"
}
