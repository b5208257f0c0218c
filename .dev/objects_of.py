# SPDX-License-Identifier: MIT
"""Prints "module object", one line per source of ours in a build folder.

usage: objects_of.py BUILD
"""

import json
import os
import re
import sys

build = sys.argv[1]
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
    entries = json.load(file)
for entry in entries:
    source = os.path.relpath(os.path.join(entry["directory"], entry["file"]))
    module = re.match(r"(?:src/)?(proto|core|kinds|posix)/", source)
    if module:
        print(module.group(1), os.path.join(build, entry["output"]))
