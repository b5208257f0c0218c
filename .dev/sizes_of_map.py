# SPDX-License-Identifier: MIT
"""Prints what each module of a firmware takes, from its linker's map: module, bytes of flash, bytes of RAM.

usage: sizes_of_map.py MAP

A module is an archive of build/firmware, libMODULE.a; the compiler's own archives are newlib. "holdfast" is the sum of ours.
"""

import re
import sys

# What is copied into RAM at the start stands in flash, too.
IN_FLASH = {".text", ".data"}
IN_RAM = {".data", ".bss"}
OURS = ["proto", "core", "kinds"]
ORDER = OURS + ["driver", "board", "program", "lwip", "newlib", "gaps"]


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
            module = "gaps"
        elif entry.group(3) and entry.group(3).startswith(("build/", "/")):
            module = module_of(entry.group(3))
        else:
            continue
        flash, ram = found.get(module, (0, 0))
        found[module] = (flash + size * (output in IN_FLASH), ram + size * (output in IN_RAM))
    return found


def print_line(module, figures):
    print(f"  {module:<10}{figures[0]:>8}{figures[1]:>8}")


def total(figures):
    return tuple(sum(column) for column in zip(*figures))


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        found = sizes(text)
    unknown = set(found) - set(ORDER)
    if unknown:
        sys.exit(f"sizes_of_map.py: no such module: {', '.join(sorted(unknown))}")
    print(f"  {'module':<10}{'flash':>8}{'RAM':>8}")
    for module in ORDER:
        if module in found:
            print_line(module, found[module])
    print_line("holdfast", total([found[module] for module in OURS if module in found]))
    print_line("all", total(found.values()))


main()
