# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Making, checking and looking at the site of documents. What it is made by is in .dev/site.

# Debian's modules belong to Debian's Python.
readonly site_python=/usr/bin/python3
readonly site_widths=(390 1280)  # A telephone's and a laptop's.

make_documents() {
  rm -rf build/docs build/docs-api.tags
  mkdir -p build/docs/api
  doxygen .dev/site/Doxyfile && "$site_python" .dev/site/make_site.py . build/docs build/docs-api.tags || return 1
  # Of Doxygen's own pages; ours ask for none of them, or a link would be broken.
  rm -f build/docs/api/*.png build/docs/api/*.svg build/docs/api/*.js
}

# linkchecker gives up root's rights, so it reads a copy that everybody may read.
check_documents() {
  local copy result=0
  copy=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-docs.XXXXXX")
  cp -R build/docs "$copy/docs"
  chmod -R a+rX "$copy"
  (cd "$copy" && linkchecker --no-status --no-warnings --ignore-url '^https?:' "$copy/docs/index.html") || result=$?
  rm -rf "$copy"
  return "$result"
}

# A page per file name: build/docs-look/PAGE-WIDTH-light.png, and dark.
look_at_documents() {
  local browser page width name scheme
  for browser in chromium chromium-browser google-chrome ''; do ! command -v "$browser" >/dev/null || break; done
  if [[ -z $browser ]]; then say "not looked at: there is no Chromium here"; return 0; fi
  rm -rf build/docs-look
  mkdir -p build/docs-look
  for page in index proto/guide/tutorial proto/guide/which_lock proto/guide/pictures proto/guide/from_redisson proto/lock \
    api/classholdfast_1_1Mutex; do
    for width in "${site_widths[@]}"; do
      for scheme in light dark; do
        name=build/docs-look/${page##*/}-$width-$scheme.png
        "$site_python" .dev/site/look.py "$browser" "$PWD/build/docs/$page.html" "$width" "$scheme" "$name" || return 1
      done
    done
  done
  say "pictures of the pages are in build/docs-look"
}
