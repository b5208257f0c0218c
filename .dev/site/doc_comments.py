#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# usage: doc_comments.py HEADER
#
# Our headers have plain comments. This filter of Doxygen prints a header with those marked that describe something:
#   - the sentences at its head describe the file, and the class that they name first;
#   - a comment directly above a declaration describes it;
#   - a comment at the end of a declaration's line describes that one.
# Comments within functions, headings of sections and comments before an empty line stay as they are. Lines keep their numbers
# but for those of a class's description.
import re
import sys

DECLARES = re.compile(r'\b(namespace|class|struct|union|enum|extern\s+"C")\b')
STRINGS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")


def escaped(text):
    """A line of a comment; what Doxygen would take for a command or for HTML is none. Code is indented by four."""
    if text.startswith("     "):
        return text
    return re.sub(r"[\\@#<>]", lambda match: "\\" + match.group(), text).replace("&", "\\&")


def split(line):
    """The code of a line and its comment, or None."""
    blanked = STRINGS.sub(lambda match: '"' * len(match.group()), line)
    at = blanked.find("//")
    return (line, None) if at < 0 else (line[:at], line[at + 2:])


class Scopes:
    """Which braces are open, and whether declarations stand in them."""

    def __init__(self):
        self.open = []
        self.statement = ""

    def declares(self):
        return all(self.open)

    def read(self, code):
        for char in STRINGS.sub('""', code) + "\n":
            if char == "{":
                head = re.sub(r"template\s*<[^{;]*?>\s*(?=class|struct)", "", self.statement)
                self.open.append(bool(DECLARES.search(head)) and "(" not in head.replace("alignas(", ""))
                self.statement = ""
            elif char == "}":
                if self.open:
                    self.open.pop()
                self.statement = ""
            elif char == ";":
                self.statement = ""
            else:
                self.statement += char


def head_of(lines):
    """The end of the comment at the head of the file, and its sentences."""
    end = 0
    while end < len(lines) and lines[end].startswith("//"):
        end += 1
    return end, [line[2:] for line in lines[2:end]]


def described(lines, text):
    """The line of the class or name that the head of the file is about, if it has no comment of its own."""
    for name in re.findall(r"\b[A-Z][A-Za-z0-9]+\b", " ".join(text))[:1]:
        for at, line in enumerate(lines):
            if re.match(rf"(?:class|struct|enum class)\s+{name}\b[^;]*$|using {name} = ", line):
                first = at
                while lines[first - 1].startswith("template"):
                    first -= 1
                return None if lines[first - 1].startswith("//") else first
    return None


def marked(lines):
    scopes = Scopes()
    end, text = head_of(lines)
    about = described(lines, text) if text else None
    comment = ["///" + escaped(line) for line in text]
    trailing = None  # The column of the comment that the line before ended with.
    for at, line in enumerate(lines):
        # Nobody derives from our classes but we.
        if line.strip() == "protected:":
            scopes.read(line)
            yield line.replace("protected", "private")
            continue
        # Doxygen 1.9.4 knows no scope for a specialisation of another's template.
        if re.match(r"struct std::\w+<.*\{\};$", line):
            yield "struct holdfast_no_name;"
            continue
        if at < end:
            yield ["/// \\file", "///", *comment][at] if text and at < 2 else (comment[at - 2] if text else line)
            continue
        if at == about:
            yield from comment
        code, words = split(line)
        if words is None or not scopes.declares() or words.startswith(" ---"):
            trailing = None
            yield line
        elif not code.strip():
            following = at
            while following < len(lines) and lines[following].lstrip().startswith("//"):
                following += 1
            after = lines[following].strip() if following < len(lines) else ""
            if trailing == len(code):
                yield f"{code}///<{escaped(words)}"
            elif re.match(r"(?:#(?!define)|}|public:|private:|protected:|friend\b|static_assert|$)", after):
                yield line
            else:
                yield f"{code}///{escaped(words)}"
        elif code.rstrip().endswith("{") or code.startswith(("#", "}")) or not re.search(r"[;,}\w]\s*$", code):
            trailing = None
            yield line
        else:
            trailing = len(code)
            yield f"{code}///<{escaped(words)}"
        scopes.read(code)


def starred(lines):
    """The header for C: its comments stand between stars."""
    for at, line in enumerate(lines):
        if at == 0:
            line = "/** \\file"
        elif " * holdfast" in line or not re.match(r"\s*(/\*| \*(?!  ))", line):
            pass
        else:
            start, rest = re.match(r"(\s*/\*|\s*\*?)(.*)", line).groups()
            line = start + re.sub(r"[@#]|<(?=\w)", lambda match: "\\" + match.group(), rest)
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if re.match(r"/\* ---- .* ---+$", line):
            # The heading of a section, whose sentences are about what follows them directly.
            end = next(end for end in range(at, len(lines)) if lines[end].endswith("*/"))
            yield "/**" if lines[end + 1].strip() else line
            continue
        section = re.match(r"/\* ----", line) or (line.endswith("*/") and not following.strip())
        if re.match(r"\s*/\*[^*]", line) and not section:
            line = line.replace("/*", "/**", 1)
        yield re.sub(r"([;,]\s+)/\*(?!\*)", r"\1/**<", line)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().splitlines()
    if sys.argv[1].endswith(".h"):
        # The header for C has comments between stars.
        print("\n".join(starred(lines)))
    else:
        print("\n".join(marked(lines)))


main()
