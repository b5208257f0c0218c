#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# usage: check_pictures.py SOURCE-ROOT
#
# What .dev/site/pictures.py promises: a picture of states has every state and every input of its table in the sources, a table
# that lacks a state is refused, and so is a chain of times with a line that nobody draws. Exits with 77 where there is no Graphviz.
import pathlib
import re
import shutil
import sys
import tempfile

root = pathlib.Path(sys.argv[1]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(root / ".dev" / "site"))
from pictures import Refused, picture_of  # noqa: E402

TABLES = {"lock": ("core/lock_machine.hpp", "LockState"), "quorum": ("core/quorum_machine.hpp", "QuorumState"),
          "task": ("core/lock_task.hpp", "TaskStage")}


def fail(words):
    sys.exit(f"FAILED: {words}")


def refused(language, source, base, words):
    try:
        picture_of(language, source, base)
    except Refused as reason:
        if words not in str(reason):
            fail(f"no word of '{words}': {reason}")
        return
    fail(f"not refused: {words}")


def check_table(name):
    header, enum = TABLES[name]
    table = f"src/core/{name}_transitions.hpp"
    text = (root / table).read_text(encoding="utf-8")
    states = set(re.findall(rf"{enum}::(\w+)", text))
    svg = picture_of("states", table, root)
    drawn = set(re.findall(r">(\w+)</text>", svg))
    if not states <= drawn:
        fail(f"{table}: the picture lacks {' '.join(states - drawn)}")
    inputs = set(re.findall(rf"\{{{enum}::\w+, \w+::(\w+), ", text)) - {"none"}
    if not inputs <= drawn:
        fail(f"{table}: the picture lacks the inputs {' '.join(inputs - drawn)}")
    # A state that the machine has and the table has not.
    with tempfile.TemporaryDirectory() as copy:
        base = pathlib.Path(copy)
        for file in (table, f"include/holdfast/{header}"):
            (base / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / file, base / file)
        whole = (base / "include/holdfast" / header).read_text(encoding="utf-8")
        (base / "include/holdfast" / header).write_text(
            re.sub(rf"(enum class {enum} [^{{]*\{{)", r"\1 stuck,", whole), encoding="utf-8")
        refused("states", table, base, "no transition of the table has the state stuck")


if not shutil.which("dot"):
    print("skipped: there is no Graphviz here")
    sys.exit(77)
for each in TABLES:
    check_table(each)
refused("states", "src/core/node.cpp", root, "has no table of transitions")
refused("chain", "lanes: a, b\n0 a; nothing", root, "does not have this line")
refused("chain", "lanes: a, b\n0 c: nothing", root, "has no lane c")
if ">sent &amp; gone</tspan>" not in picture_of("chain", "lanes: a, b\n0-1 a -> b: sent & gone\n2 b: there", root):
    fail("a message has no words")
print("ok")
