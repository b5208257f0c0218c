#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# usage: extract.py SOURCE-ROOT FOLDER
#
# Takes the examples out of README.md and of the guide (proto/guide), so that they are compiled and run: of each C++ block the
# files <example>_head.inc and <example>.inc, which tests/readme/<example>.cpp includes, and of the shell's blocks command.sh, the
# lines that call the holdfast command. A block of the guide may also be a part of a program in examples/guide, line by line: it
# is compiled and run there. What a page has typed on a console is run by tests/guide. A block that is not known here is an
# error, and so is an example that no page has: nothing is left out in silence.
#
# What is changed in an example, and nothing else:
#   - Its first lines, #include and `using namespace`, go into <example>_head.inc: the rest may have to stand in a function.
#   - A URL redis://A.B.C.D stands for the server that the environment variable redis_A_B_C_D names.
#   - A comment line `// ... co_await X ...` is where the reader's own work goes: it becomes a call of `work(lock)`.
#
# What stands within a sentence, as `holdfast run [--kind ...]`, is a synopsis and no example.
import pathlib
import re
import sys

# A C++ block is the one example whose mark it has.
MARKS = {
    "mutex": "holdfast::Mutex lock(",
    "fenced": "holdfast::FencedLock lock(",
    "quorum": "holdfast::Quorum<",
    "asio": "holdfast::AsyncMutex lock(",
}
# Those that say that their hold is kept. Their programs run for longer than a lease.
KEPT = {"fenced", "asio"}
KEPT_WORDS = re.compile(r"automatic lease|\bkept\b|\bkeeps\b|renew")

# No C++ and no command: how another project names us by Meson and CMake, and a program in C. tests/consumer does all three.
OTHER_BLOCKS = {"meson": "dependency('holdfast'", "c": "#include <holdfast.h>", "cmake": "holdfast::holdfast",
                "ini": "[provide]"}
# In the guide: what .dev/site/pictures.py draws, and the code of those from whom one comes.
GUIDE_BLOCKS = {"states": "src/core/", "dot": "->", "chain": "lanes:", "console": "$ ", "c++": "sw::redis::", "java": "redisson.",
                "go": "redsync."}

URL = r"redis://(\d+(?:\.\d+){3})"


class Refused(Exception):
    pass


def blocks_of(text):
    """The fenced blocks: language, number of the first line, lines."""
    opened = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.strip()
        if re.match(r"~~~|````", mark):
            raise Refused(f"line {number}: blocks begin and end with three backquotes")
        if not mark.startswith("```"):
            if opened:
                opened[2].append(line)
        elif opened and mark == "```":
            yield opened
            opened = None
        elif opened:
            raise Refused(f"line {number}: a block begins within the block of line {opened[1] - 1}")
        else:
            opened = (mark[3:].strip(), number + 1, [])
    if opened:
        raise Refused(f"line {opened[1] - 1}: the block has no end")


def variable_of(match):
    return "redis_" + match.group(1).replace(".", "_")


def name_of(number, lines):
    """Which example a C++ block is."""
    text = "\n".join(lines)
    names = [name for name, mark in MARKS.items() if mark in text]
    if len(names) != 1:
        raise Refused(f"line {number}: no test knows how to run this block; give it a program in tests/readme")
    if KEPT_WORDS.search(text) and names[0] not in KEPT:
        raise Refused(f"line {number}: says that a hold is kept; its program must run for longer than a lease")
    return names[0]


def quotes(lines, programs):
    """Whether a block is a part of a program of the guide."""
    text = "\n".join(lines) + "\n"
    return any("\n" + text in program for program in programs)


def parts_of(page, number, lines):
    """The head and the rest of a C++ block; the compiler names the lines of the page."""
    size = 0
    while size < len(lines) and re.match(r"#include |using namespace |$", lines[size]):
        size += 1
    rest = "\n".join(lines[size:])
    rest = re.sub(f'"{URL}"', lambda match: f'server("{variable_of(match)}")', rest)
    rest = re.sub(r"^( *)// \.\.\. co_await .*\.\.\.$", r"\1co_await work(lock);", rest, flags=re.MULTILINE)
    if "redis://" in rest or "// ..." in rest:
        raise Refused(f"line {number}: a URL or a gap in this block is none that is known how to fill")
    head = "\n".join(lines[:size])
    return [f'#line {first} "{page}"\n{text}\n' for first, text in ((number, head), (number + size, rest))]


def command_of(number, line, verbs):
    """A line of a shell block as it is run; None for a verb of ./dev, of which only its being there is looked at."""
    verb = re.match(r"\./dev ([a-z]+)(?: |$)", line)
    if verb and (verbs / verb.group(1)).is_file():
        return None
    if not line.startswith("holdfast run "):
        raise Refused(f"line {number}: no test knows how to run this line: {line}")
    return re.sub(URL, lambda match: f'"${variable_of(match)}"', line)


def extract(root):
    """The files and their texts."""
    files = {}
    commands = []
    programs = [path.read_text(encoding="utf-8") for path in sorted((root / "examples" / "guide").glob("*.cpp"))]
    guide = sorted((root / "proto" / "guide").glob("*.md"))
    if not programs or not guide:
        raise Refused("there is no guide")
    for path in [root / "README.md", *guide]:
        page = str(path.relative_to(root))
        known = {**OTHER_BLOCKS, **(GUIDE_BLOCKS if path in guide else {})}
        try:
            for language, number, lines in blocks_of(path.read_text(encoding="utf-8")):
                if language == "cpp" and path in guide and quotes(lines, programs):
                    continue
                if language == "cpp":
                    name = name_of(number, lines)
                    if f"{name}.inc" in files:
                        raise Refused(f"line {number}: a second block of the example {name}")
                    files[f"{name}_head.inc"], files[f"{name}.inc"] = parts_of(page, number, lines)
                elif language == "sh":
                    for index, line in enumerate(lines):
                        command = command_of(number + index, line, root / ".dev")
                        commands += [command] if command else []
                elif language not in known or known[language] not in "\n".join(lines):
                    raise Refused(f"line {number}: no test knows what to do with this block")
        except Refused as refused:
            raise Refused(f"{page}, {refused}") from None
    missing = [name for name in MARKS if f"{name}.inc" not in files]
    if missing or not commands:
        raise Refused(f"these examples are gone: {' '.join(missing or ['holdfast run'])}")
    files["command.sh"] = "".join(command + "\n" for command in commands)
    return files


def main():
    root, folder = map(pathlib.Path, sys.argv[1:3])
    try:
        files = extract(root)
    except Refused as refused:
        sys.exit(f"{root}: {refused}")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


main()
