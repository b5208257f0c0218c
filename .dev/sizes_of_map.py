# SPDX-License-Identifier: MIT
"""Prints what each module of a firmware takes, from the maps of its programs' linker: bytes of flash and RAM.

usage: sizes_of_map.py MAP...            a table in Markdown, as examples/firmware/README.md has it
       sizes_of_map.py --holdfast MAP    the flash of holdfast alone

A module is an archive of build/firmware, libMODULE.a; the compiler's own archives are newlib.
"""

import os
import re
import sys

# What is copied into RAM at the start stands in flash, too.
IN_FLASH = {".text", ".data"}
IN_RAM = {".data", ".bss"}
OURS = ["proto", "core", "kinds"]
# In the order of the table, with their names there.
OTHERS = {
    "driver": "driver: lock_service, push, tcp_link",
    "board": "board: start-up, clock, console, LAN9118",
    "program": "program, with the storage of all objects",
    "lwip": "lwIP",
    "newlib": "newlib and libgcc",
}
GAPS = "gaps"


def module_of(path):
    archive = re.match(r"build/firmware/(?:lib)?(\w+)(?:\.a\(|/)", path)
    if archive is None:
        return "newlib"
    return "board" if archive.group(1) == "start" else archive.group(1)


def sizes(lines):
    found = {}
    output = None
    started = False
    for line in lines:
        started = started or line.startswith("Linker script and memory map")
        if not started:
            continue
        name = re.match(r"(\.\S+|/DISCARD/)", line)
        if name:
            output = name.group(1)
            continue
        # " .text.name  0xADDRESS  0xSIZE PATH", where a long name stands on a line of its own.
        entry = re.match(r"\s+(\S+\s+)?0x[0-9a-f]{8,16}\s+0x([0-9a-f]+)(?:\s+(\S.*))?$", line)
        if not entry or output not in IN_FLASH | IN_RAM:
            continue
        size = int(entry.group(2), 16)
        if line.lstrip().startswith("*fill*"):
            module = GAPS
        elif entry.group(3) and entry.group(3).startswith(("build/", "/")):
            module = module_of(entry.group(3))
        else:
            continue
        flash, ram = found.get(module, (0, 0))
        found[module] = (flash + size * (output in IN_FLASH), ram + size * (output in IN_RAM))
    return found


def total(figures):
    return tuple(sum(column) for column in zip(*figures))


def read(path):
    with open(path, encoding="utf-8") as text:
        found = sizes(text)
    unknown = set(found) - set(OURS) - set(OTHERS) - {GAPS}
    if unknown:
        sys.exit(f"sizes_of_map.py: no such module: {', '.join(sorted(unknown))}")
    return found


def row(name, columns):
    cells = [f"{figure:,}" for figures in columns for figure in figures]
    return f"| {name} | {' | '.join(cells)} |"


def print_table(paths):
    names = [os.path.basename(path).removesuffix(".map") for path in paths]
    programs = [read(path) for path in paths]
    print("| module | " + " | ".join(f"{name}: flash | RAM" for name in names) + " |")
    print("| --- |" + " --: |" * (2 * len(names)))
    for module in OURS:
        print(row(module, [found.get(module, (0, 0)) for found in programs]))
    print(row("**holdfast**, the sum of these", [total(found[module] for module in OURS) for found in programs]))
    for module, name in OTHERS.items():
        print(row(name, [found.get(module, (0, 0)) for found in programs]))
    print(row("all, with what lies between", [total(found.values()) for found in programs]))


def main():
    if sys.argv[1] == "--holdfast":
        found = read(sys.argv[2])
        print(total(found[module] for module in OURS)[0])
    else:
        print_table(sys.argv[1:])


main()
