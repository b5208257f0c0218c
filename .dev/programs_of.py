# SPDX-License-Identifier: MIT
"""Prints the programs that the tests of some suites need, relative to the build folder, one per line.

usage: meson introspect --tests --targets BUILD | programs_of.py BUILD SUITE...

That is what a test runs and what it depends on, but only what is built: a script among the sources is left out.
"""

import json
import os
import sys

build, suites = os.path.realpath(sys.argv[1]), set(sys.argv[2:])
known = json.load(sys.stdin)
files = {target["id"]: target["filename"] for target in known["targets"]}
tests = [test for test in known["tests"] if suites & {suite.split(":")[-1] for suite in test["suite"]}]
wanted = {name for test in tests for target in test.get("depends", []) for name in files.get(target, [])}
wanted |= {test["cmd"][0] for test in tests}
relative = (os.path.relpath(path, build) for path in wanted)
print(*sorted(name for name in relative if not name.startswith("..")), sep="\n")
