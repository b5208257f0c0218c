#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints what tests reach below the I/O line: in the sources of proto, core and kinds, and all that they include.

usage: report.py PROFILE PROGRAM...     from the root; PROFILE as llvm-profdata merged it

A table of lines and branches, then each line and each outcome of a condition that was never reached. Exits with 1 below
100 % of lines or 95 % of branches, or where a source is in no program.

Not counted, and told by number: what HOLDFAST_ASSERT evaluates, since its other outcome ends the program; the default
that a switch over every enumerator does not have; conditions that the build decides; what only the compiler runs; and
invariants(), which only tests call, since they fail where it is false.
"""

import collections
import glob
import json
import os
import re
import subprocess
import sys

LINES_PERCENT = 100
BRANCHES_PERCENT = 95
SOURCES = ("proto/*.cpp", "src/core/*.cpp", "src/kinds/*.cpp")
INCLUDE_PATHS = ("include", "proto", "src/core", "src/kinds")
DECIDED_BY_THE_BUILD = ("short_cuts", "writes_one_piece", "!writes_one_piece", "requires { literals.count; }")


def below_the_line():
    """The sources, and the headers that they include, directly or not."""
    found = set()
    waiting = [name for pattern in SOURCES for name in glob.glob(pattern)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        with open(name, encoding="utf-8") as file:
            headers = re.findall(r'^#include "([^"]+)"', file.read(), re.M)
        paths = [os.path.join(folder, header) for header in headers for folder in INCLUDE_PATHS]
        waiting += filter(os.path.exists, paths)
    return sorted(found)


def counts_of_lines(segments):
    """Lines and how often each was run. A segment: line, column, count, has a count, begins a region, is a gap."""
    by_line = collections.defaultdict(list)
    for segment in segments:
        by_line[segment[0]].append(segment)
    before = None  # The last segment of the lines before: its region goes on.
    for line in range(min(by_line, default=1), max(by_line, default=0) + 1):
        here = by_line.get(line, [])
        counts = [it[2] for it in here if it[3] and it[4] and not it[5]]
        if before and before[3]:
            counts.append(before[2])
        skipped = here and here[0][4] and not here[0][3]
        if counts and not skipped:
            yield line, max(counts)
        before = here[-1] if here else before


class Source:
    def __init__(self, name):
        with open(name, encoding="utf-8") as file:
            self.text = file.read().split("\n")
        self.name = name
        self.is_linked = False  # Also where nothing of it counts: quorum_invariants.cpp.
        self.lines = {}  # Line: how often it was run.
        self.outcomes = {}  # Place of a condition, and "true" or "false": how often.
        self.left_out = collections.defaultdict(set)  # Why: places of conditions.
        self.consteval, self.checks = set(), set()  # Lines.
        for line, text in enumerate(self.text, 1):
            if re.match(r"\s*(template .*)?consteval |\s*if \(std::is_constant_evaluated\(\)\) \{$", text):
                self.consteval.update(range(line, self.end_of_body(line) + 1))
            if re.search(r"\binvariants\(\) const noexcept \{", text):
                self.checks.update(range(line, self.end_of_body(line) + 1))

    def end_of_body(self, line):
        depth = 0
        while True:
            text = self.text[line - 1]
            depth += text.count("{") - text.count("}")
            if depth == 0 and text.endswith("}"):
                return line
            line += 1

    # The places are those of llvm-cov: line, column, last line, last column.
    def condition(self, place):
        line, column, last_line, last_column = place
        text = self.text[line - 1]
        return text[column - 1 : last_column - 1] if line == last_line else text[column - 1 :] + " ..."

    def why_left_out(self, place):
        if place[0] in self.consteval:
            return "run by the compiler"
        if place[0] in self.checks:
            return "in invariants()"
        if self.condition(place) in DECIDED_BY_THE_BUILD:
            return "decided by the build"
        if self.text[place[0] - 1][: place[1] - 1].endswith("switch ("):
            return "defaults that no switch has"
        return None

    def add(self, export):
        """What one program reached of it."""
        self.is_linked = True
        for line, count in counts_of_lines(export["segments"]):
            if line not in self.consteval and line not in self.checks:
                self.lines[line] = max(count, self.lines.get(line, 0))
        for expansion in export["expansions"]:
            place = tuple(expansion["source_region"][:4])
            if expansion["branches"] and self.condition(place) != "HOLDFAST_ASSERT":
                sys.exit(f"report: {self.name}:{place[0]}: a condition in a macro that this script does not know")
            self.left_out["in HOLDFAST_ASSERT"].update((place, *it[:4]) for it in expansion["branches"])
        counts = collections.Counter()  # Instances of a template are one.
        for branch in export["branches"]:
            place = tuple(branch[:4])
            if why := self.why_left_out(place):
                self.left_out[why].add(place)
                continue
            counts[place, "true"] += branch[4]
            counts[place, "false"] += branch[5]
        for outcome, count in counts.items():
            self.outcomes[outcome] = max(count, self.outcomes.get(outcome, 0))

    def figures(self):
        figures = collections.Counter()
        for what, counts in (("lines", self.lines), ("branches", self.outcomes)):
            figures[what] = len(counts)
            figures[what + " reached"] = sum(count != 0 for count in counts.values())
        return figures

    def never(self):
        for line, count in sorted(self.lines.items()):
            if count == 0:
                yield f"{self.name}:{line}: never run: {self.text[line - 1].strip()}"
        for (place, outcome), count in sorted(self.outcomes.items()):
            if count == 0:
                yield f"{self.name}:{place[0]}:{place[1]}: never {outcome}: {self.condition(place)}"


def percent(figures, what):
    return 100 * figures[what + " reached"] / figures[what] if figures[what] else 100.0


def row(name, figures):
    def cell(what):
        return f"{figures[what + ' reached']:6}/{figures[what]:<6}{percent(figures, what):7.2f}%"

    return f"{name:40}" + cell("lines") + cell("branches")


def export_of(profile, program, names):
    command = ["llvm-cov", "export", "-instr-profile=" + profile, program, *names]
    # It warns of the functions that other programs call by the same name, every main() for one.
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)["data"][0]["files"]


def main(profile, *programs):
    sources = {name: Source(name) for name in below_the_line()}
    # A program at a time: of a function that some programs call and others do not, one export would keep the first.
    for program in programs:
        for file in export_of(profile, program, sources):
            name = os.path.relpath(file["filename"])
            if name in sources:
                sources[name].add(file)

    total, left_out = collections.Counter(), collections.Counter()
    print(f"{'file':40}{'lines':>13}{'':8}{'branches':>13}")
    for source in sources.values():
        total.update(source.figures())
        left_out.update({why: len(places) for why, places in source.left_out.items()})
        if source.lines:
            print(row(source.name, source.figures()))
    print(row("all", total))
    print("conditions not counted: " + ", ".join(f"{count} {why}" for why, count in sorted(left_out.items())))

    absent = [it.name for it in sources.values() if not it.lines]
    print("nothing to run in: " + " ".join(absent))
    for source in sources.values():
        for line in source.never():
            print(line)
    unlinked = [it.name for it in sources.values() if it.name.endswith(".cpp") and not it.is_linked]
    for name in unlinked:
        print(f"{name}: in no program")
    enough = percent(total, "lines") >= LINES_PERCENT and percent(total, "branches") >= BRANCHES_PERCENT
    if not enough:
        print(f"asked for: {LINES_PERCENT} % of lines, {BRANCHES_PERCENT} % of branches")
    return 0 if enough and total["lines"] and not unlinked else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
