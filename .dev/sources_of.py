# SPDX-License-Identifier: MIT
"""usage: sources_of.py NAME FOLDER

Prints the sources that build/NAME makes our libraries and our command of, one per line, and writes into FOLDER how each is
compiled: a compile_commands.json with nothing of the tests, which compile some of them once more."""

import json
import pathlib
import sys


def main() -> None:
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    build = pathlib.Path("build", name).resolve()
    commands = [
        command
        for command in json.loads((build / "compile_commands.json").read_text())
        if command["output"].startswith(("proto/", "src/"))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(commands, indent=1))
    for command in commands:
        print((build / command["file"]).resolve())


main()
