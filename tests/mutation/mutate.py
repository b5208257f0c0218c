#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Changes what is below the I/O line in many small ways and tells which changes no test sees.

That is proto, the core and the kinds, with the headers that they include. Functions that the compiler runs (constexpr) and
templates are left alone: what stands in them cannot be chosen later.

All changes of a file stand in one copy of it, each behind a question (mutant.hpp); HOLDFAST_MUTANT says which one is in
force. So everything is compiled and linked once. The copies are linked ahead of the tests: an inline function of a header
is then the changed one for the test, too. For each mutant those runners of the unit and replay suites are run
that come past it, and the simulator if they see nothing. A mutant is killed where a runner fails, crashes or hangs. --ask
names the runners, where a few of them know a file. With --only the files that it does not name are as written: a change of an
inline function is then in force in the tests, in the header's own source and in the files that are named, and not in the rest.

The output folder holds results.json and the programs: `HOLDFAST_MUTANT=7 build/plain/mutation/test_session` shows what
a test says to mutant 7.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import pickle
import re
import resource
import shlex
import signal
import subprocess
import sys
import time

try:
    from clang import cindex
    from clang.cindex import CursorKind as Kind
except ImportError:
    sys.exit("mutate: needs libclang's bindings for /usr/bin/python3 (Debian: python3-clang)")

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ARGUED = os.path.join(HERE, "survivors.txt")

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "coverage"))
from report import below_the_line  # noqa: E402

COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "*=": "+=", "^=": "|=", ">>=": "<<=", "<<=": ">>="}
LOGIC = {"&&": "||", "||": "&&"}
STEPS = {"++": "--", "--": "++"}
CALLS = {"earlier": "later", "later": "earlier"}
NUMBERS_PER_FILE = 1024  # So that a change of one file leaves the numbers of the others, and their copies, as they are.
CHECKS = ("invariants",)  # No part of a program: tests ask them whether the rest is right.
# Tests that compute for so long that each survivor would take a minute: --seconds leaves them out, and keeps the others.
LONG_TESTS = {
    "quorum_machine": "*no_two_should*,*forget_should*",
    "renewal_schedule": "*hundred_thousand*",
    "resp_parser": "*oracle*,*however_a_reply*,*odd_sizes*",
}
SHORTER = {"every string": ["5"]}  # With --seconds: strings of so many symbols.
WRAPPERS = (Kind.UNEXPOSED_EXPR, Kind.PAREN_EXPR)


class Mutant:
    def __init__(self, number, path, line, function, was, now):
        self.number, self.path, self.line, self.function = number, path, line, function
        self.was, self.now = was, now
        self.nth = 0  # Of those with the same key.
        self.dropped = False

    def change(self):
        return f"{self.was} -> {self.now}"

    def key(self):  # What it is called in survivors.txt: line numbers would be wrong tomorrow.
        return f"{self.path}, {self.function}: {self.change()}"


class Edit:
    """A stretch of the source, and what may stand in its place."""

    def __init__(self, start, end, mode):
        self.start, self.end, self.mode = start, end, mode
        self.choices = []  # (Mutant, text)


def one_line(text):
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", text)).strip()


class Source:
    """One file: its tree, its edits, and the text with all of them."""

    modes = ("guard", "delete", "condition", "value")  # Outer ones first.
    bodies = (Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR)

    def __init__(self, path, command, directory):
        self.path = os.path.relpath(path, ROOT)
        self.file = path
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        if not self.text.isascii():
            sys.exit(f"mutate: {self.path} is not ASCII; offsets would be wrong")
        self.mutants, self.edits = [], {}
        self.function, self.returns_nothing, self.function_end = "", False, 0
        self.arguments = parser_arguments(command, directory)
        unit = cindex.Index.create().parse(
            path, args=self.arguments, options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        )
        errors = [str(it) for it in unit.diagnostics if it.severity >= cindex.Diagnostic.Error]
        if errors:
            sys.exit(f"mutate: {self.path} does not parse:\n" + "\n".join(errors))
        self.macros = [
            (it.extent.start.offset, it.extent.end.offset)
            for it in unit.cursor.get_children()
            if it.kind == Kind.MACRO_INSTANTIATION and self.is_here(it)
        ]
        self.declarations(unit.cursor)

    # ---- The tree ------------------------------------------------------------------------------------------------

    def is_here(self, node):
        return node.location.file is not None and os.path.realpath(node.location.file.name) == self.file

    def extent(self, node):
        return node.extent.start.offset, node.extent.end.offset

    def text_of(self, node):
        start, end = self.extent(node)
        return self.text[start:end]

    def in_macro(self, node):
        start = node.extent.start.offset
        return any(first <= start < end for first, end in self.macros)

    def declarations(self, node):
        for child in node.get_children():
            if not self.is_here(child):
                continue
            if child.kind in (Kind.NAMESPACE, Kind.CLASS_DECL, Kind.STRUCT_DECL):
                self.declarations(child)
            elif child.kind in self.bodies:
                self.define(child)

    def define(self, node):
        body = next((it for it in node.get_children() if it.kind == Kind.COMPOUND_STMT), None)
        if body is None:
            return
        if re.search(r"\bconst(expr|eval)\b", self.text[node.extent.start.offset : body.extent.start.offset]):
            return
        self.function = node.spelling
        self.returns_nothing = node.result_type.kind == cindex.TypeKind.VOID
        self.function_end = body.extent.end.offset
        self.statement(body)

    # ---- Statements ----------------------------------------------------------------------------------------------

    def statement(self, node):
        if self.in_macro(node):
            return
        children = list(node.get_children())
        kind = node.kind
        if kind in (Kind.COMPOUND_STMT, Kind.UNEXPOSED_STMT):
            for child in children:
                if child.kind != Kind.UNEXPOSED_ATTR:
                    self.statement(child)
        elif kind in (Kind.IF_STMT, Kind.WHILE_STMT, Kind.FOR_STMT):
            self.branch(node, children)
        elif kind == Kind.CXX_FOR_RANGE_STMT:
            for child in children[:-1]:
                if child.kind.is_expression() and self.text_of(child) != ":":
                    self.expression(child)
            self.statement(children[-1])
        elif kind == Kind.SWITCH_STMT:
            for child in children[:-1]:
                self.expression(child)
            self.statement(children[-1])
        elif kind in (Kind.CASE_STMT, Kind.DEFAULT_STMT):
            self.statement(children[-1])
        elif kind == Kind.RETURN_STMT:
            if self.returns_nothing:
                self.jump(node)
            for child in children:
                if self.returns_nothing:
                    self.removable(child)
                else:
                    self.value(child)
        elif kind in (Kind.BREAK_STMT, Kind.CONTINUE_STMT):
            self.jump(node)
        elif kind == Kind.DECL_STMT:
            for child in children:
                self.variable(child)
        elif kind.is_expression():
            self.removable(node)

    def branch(self, node, children):
        closer = ";" if node.kind == Kind.FOR_STMT else ")"
        condition = None
        for child in children[:-1]:
            behind = self.text[child.extent.end.offset :].lstrip()
            if child.kind.is_expression() and condition is None and behind.startswith(closer):
                condition = child
                self.condition(child, loop=node.kind != Kind.IF_STMT)
            elif child.kind == Kind.DECL_STMT:
                self.statement(child)
            elif condition is not None and node.kind == Kind.IF_STMT:
                self.statement(child)
            # How a loop goes on is left alone: every such mutant hangs.
        self.statement(children[-1])

    def variable(self, node):
        if node.kind != Kind.VAR_DECL or re.search(r"\bconstexpr\b", self.text_of(node)):
            return
        expressions = [it for it in node.get_children() if it.kind.is_expression()]
        is_array = node.type.get_canonical().kind == cindex.TypeKind.CONSTANTARRAY
        for child in expressions[1:] if is_array and len(expressions) > 1 else expressions:
            self.value(child)

    def removable(self, node):
        self.expression(node)
        while node.kind in WRAPPERS and len(list(node.get_children())) == 1:
            node = next(iter(node.get_children()))
        if node.kind in (
            Kind.CALL_EXPR, Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNARY_OPERATOR,
            Kind.CSTYLE_CAST_EXPR,
        ):
            self.add(*self.extent(node), "delete", "", "nothing")

    def jump(self, node):
        start, end = self.extent(node)
        while self.text[end - 1] != ";":
            end += 1
        behind = re.sub(r"//[^\n]*", "", self.text[end : self.function_end])
        if re.fullmatch(r"([\s}]|case [\w:]+:|return;)*", behind):
            return  # Nothing comes behind it in its function.
        self.add(start, end, "guard", "", "nothing")

    # ---- Expressions ---------------------------------------------------------------------------------------------

    def condition(self, node, loop=False):
        if not self.in_macro(node):
            for now in ("false",) if loop else ("true", "false"):
                self.add(*self.extent(node), "condition", now, now)
        self.expression(node)

    def value(self, node):
        inner = node
        while inner.kind in WRAPPERS and len(list(inner.get_children())) == 1:
            inner = next(iter(inner.get_children()))
        simple = (Kind.CALL_EXPR, Kind.MEMBER_REF_EXPR, Kind.DECL_REF_EXPR)
        is_bool = node.type.get_canonical().kind == cindex.TypeKind.BOOL
        if is_bool and inner.kind in simple and not self.in_macro(node) and self.operator(inner) not in COMPARISONS:
            self.add(*self.extent(inner), "value", f"!({self.text_of(inner)})", f"!({self.text_of(inner)})")
        self.expression(node)

    def operands(self, node):
        children = list(node.get_children())
        if node.kind == Kind.CALL_EXPR:
            return [children[0], children[2]] if len(children) == 3 and node.spelling.startswith("operator") else []
        return children if len(children) == 2 else []

    def operator(self, node):
        operands = self.operands(node)
        if not operands:
            return ""
        return one_line(self.text[operands[0].extent.end.offset : operands[1].extent.start.offset])

    def expression(self, node):
        if self.in_macro(node):
            return
        kind = node.kind
        children = list(node.get_children())
        text = self.text_of(node)
        if kind in (Kind.TYPE_REF, Kind.TEMPLATE_REF, Kind.NAMESPACE_REF, Kind.CXX_UNARY_EXPR):
            return
        if kind == Kind.LAMBDA_EXPR:
            # Its returns are not those of the function.
            before, self.returns_nothing = self.returns_nothing, False
            for child in children:
                if child.kind == Kind.COMPOUND_STMT:
                    self.statement(child)
            self.returns_nothing = before
            return
        if kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.CALL_EXPR) and self.operands(node):
            self.binary(node)
            return
        if kind == Kind.UNARY_OPERATOR and not text.startswith("!="):
            self.unary(node, text, children[0])
        elif kind == Kind.CONDITIONAL_OPERATOR:
            self.condition(children[0])
            children = children[1:]
        elif kind == Kind.INTEGER_LITERAL and re.match(r"\d", text):
            number = text.replace("'", "").rstrip("uUlL")
            now = {"0": "1", "1": "0"}.get(number, f"{text} + 1")
            self.add(*self.extent(node), "value", now, now)
        elif kind == Kind.CXX_BOOL_LITERAL_EXPR and text in ("true", "false"):
            now = "false" if text == "true" else "true"
            self.add(*self.extent(node), "value", now, now)
        elif kind == Kind.DECL_REF_EXPR:
            self.enumerator(node, text)
        elif kind == Kind.CALL_EXPR and node.spelling in CALLS and text.startswith(node.spelling):
            now = CALLS[node.spelling] + text[len(node.spelling) :]
            self.add(*self.extent(node), "value", now, now)
        for child in children:
            self.expression(child)

    def binary(self, node):
        left, right = self.operands(node)
        operator = self.operator(node)
        left_text, right_text = self.text_of(left), self.text_of(right)
        start, end = left.extent.start.offset, right.extent.end.offset
        changed = [*COMPARISONS.get(operator, ())]
        changed += [table[operator] for table in (ARITHMETIC, ASSIGNMENTS) if operator in table]
        for other in changed:
            now = f"{left_text} {other} {right_text}"
            self.add(start, end, "value", now, now)
        if operator in LOGIC:
            for now in (f"({left_text}) {LOGIC[operator]} ({right_text})", left_text, right_text):
                self.add(start, end, "value", now, now)
        if operator == "=":
            self.expression(left)
            self.value(right)
            return
        for side in (left, right):
            # Another constant in a comparison says less than its negation.
            if operator not in COMPARISONS or side.kind != Kind.DECL_REF_EXPR:
                self.expression(side)

    def unary(self, node, text, child):
        inner = self.text_of(child)
        if text[0] in "!-" and text[:2] != "--":
            self.add(*self.extent(node), "value", inner, inner)
        for operator, other in STEPS.items():
            if text.startswith(operator):
                self.add(*self.extent(node), "value", other + text[2:], other + text[2:])
            elif text.endswith(operator):
                self.add(*self.extent(node), "value", text[:-2] + other, text[:-2] + other)

    def enumerator(self, node, text):
        declared = node.referenced
        if declared is None or declared.kind != Kind.ENUM_CONSTANT_DECL or not text.endswith(declared.spelling):
            return
        names = [it.spelling for it in declared.semantic_parent.get_children() if it.kind == Kind.ENUM_CONSTANT_DECL]
        other = names[(names.index(declared.spelling) + 1) % len(names)]
        now = text[: len(text) - len(declared.spelling)] + other
        self.add(*self.extent(node), "value", now, now)

    # ---- The result ----------------------------------------------------------------------------------------------

    def add(self, start, end, mode, text, now):
        edit = self.edits.setdefault((start, end, mode), Edit(start, end, mode))
        text = one_line(text)
        if any(text == other for _, other in edit.choices):
            return
        line = self.text.count("\n", 0, start) + 1
        mutant = Mutant(0, self.path, line, self.function, one_line(self.text[start:end]), one_line(now))
        self.mutants.append(mutant)
        edit.choices.append((mutant, text))

    def render(self):
        """The text with all mutants that are not dropped, and where in it each stands: (start, end, mutant)."""
        out, spans = [], []
        length = 0

        def put(text):
            nonlocal length
            out.append(text)
            length += len(text)

        def put_range(start, end, edits):
            at = start
            while edits:
                edit = edits.pop(0)
                put(self.text[at : edit.start])
                inner = []
                while edits and edits[0].start < edit.end:
                    inner.append(edits.pop(0))
                put_edit(edit, inner)
                at = edit.end
            put(self.text[at:end])

        def put_edit(edit, inner):
            choices = [(mutant, text) for mutant, text in edit.choices if not mutant.dropped]
            if not choices:
                put_range(edit.start, edit.end, inner)
                return
            put("{ " if edit.mode == "guard" else "(")
            for mutant, text in choices:
                begin = length
                if edit.mode == "guard":
                    put(f"if (!mutated({mutant.number})) ")
                elif edit.mode == "delete":
                    put(f"mutated({mutant.number}) ? static_cast<void>(0) : ")
                else:
                    put(f"mutated({mutant.number}) ? ({text}) : ")
                spans.append((begin, length, mutant))
            put({"delete": "static_cast<void>(", "condition": "static_cast<bool>(", "value": "("}.get(edit.mode, ""))
            put_range(edit.start, edit.end, inner)
            put({"guard": " }"}.get(edit.mode, "))"))

        edits = sorted(self.edits.values(), key=lambda it: (it.start, -it.end, self.modes.index(it.mode)))
        put(f'#include "{HERE}/mutant.hpp"\n#line 1\n')
        put_range(0, len(self.text), edits)
        return "".join(out), spans

    def drop_at(self, spans, text, positions):
        """Drops what stands at these offsets of the rendered text; True if there was something."""
        dropped = False
        for position in positions:
            around = [it for it in spans if it[0] <= position <= it[1] and not it[2].dropped]
            if not around:  # Somewhere in the line, then.
                begin = text.rfind("\n", 0, position) + 1
                end = text.find("\n", position)
                around = [it for it in spans if begin <= it[0] <= end and not it[2].dropped]
                for it in around:
                    it[2].dropped = dropped = True
            else:
                min(around, key=lambda it: it[1] - it[0])[2].dropped = dropped = True
        return dropped

    def drop_what_does_not_compile(self):
        while True:
            text, spans = self.render()
            unit = cindex.Index.create().parse(
                self.file, args=self.arguments + ["-ferror-limit=0"], unsaved_files=[(self.file, text)]
            )
            errors = [it for it in unit.diagnostics if it.severity >= cindex.Diagnostic.Error]
            if not errors:
                return text, spans
            if not self.drop_at(spans, text, [it.location.offset for it in errors]):
                sys.exit(f"mutate: the copy of {self.path} does not parse:\n" + "\n".join(map(str, errors)))


def source_of(path, entry, out):
    """The Source, and where it is kept: reading takes long, so what was read is read again only if it has changed."""
    with open(path, "rb") as file, open(os.path.realpath(__file__), "rb") as script:
        reader = script.read().partition(b"# ---- Building")[0]
        words = [file.read(), reader, entry["command"].encode(), path.encode()]
    digest = hashlib.sha256(b"\0".join(words)).hexdigest()[:16]
    store = os.path.join(out, "read", os.path.relpath(path, ROOT).replace("/", "_") + "." + digest)
    if os.path.exists(store):
        with open(store, "rb") as file:
            return pickle.load(file), store
    source = Source(path, entry["command"], entry["directory"])
    keep(source, store)
    return source, store


def stem_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def remove(path):
    if os.path.exists(path):
        os.unlink(path)


def keep(source, store):
    os.makedirs(os.path.dirname(store), exist_ok=True)
    with open(store + ".new", "wb") as file:
        pickle.dump(source, file)
    os.replace(store + ".new", store)


def parser_arguments(command, directory):
    """Of a compiler's command what libclang needs to read the file."""
    arguments = []
    for word in shlex.split(command)[1:]:
        if word.startswith("-I"):
            arguments.append("-I" + os.path.join(directory, word[2:]))
        elif re.match(r"-(std|D|isystem|fno-exceptions|fno-rtti)", word):
            arguments.append(word)
    return [*arguments, "-w"]


# ---- Building ----------------------------------------------------------------------------------------------------


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        shown = command if isinstance(command, str) else shlex.join(command)
        sys.exit(f"mutate: failed: {shown}\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def is_header(path):
    return path.endswith(".hpp")


def command_for_copies(entry, out):
    words = [it for it in shlex.split(entry["command"]) if not it.startswith("-W")]
    for option in ("-o", "-MF", "-MQ", "-c"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    words = [it for it in words if it not in ("-MD", "-g")]
    # The changed headers stand ahead of those that are as written. Every inline function is kept, for the tests.
    for folder in ("include", "proto", "src/core", "src/kinds"):
        words += ["-iquote", os.path.join(out, "copies", folder)]
    return [*words, "-w", "-O1", "-g0", "-fno-inline", "-fkeep-inline-functions"]


def compile_headers(sources, entry, out):
    """The inline functions of all changed headers, for the tests: not each is included by a changed source."""
    every = os.path.join(out, "headers.cpp")
    with open(every, "w", encoding="utf-8") as file:
        file.writelines(f'#include "{os.path.join(out, "copies", it.path)}"\n' for it in sources)
    folders = sorted({os.path.dirname(it.file) for it in sources})
    words = [*command_for_copies(entry, out), *(word for it in folders for word in ("-iquote", it))]
    run([*words, "-c", every, "-o", every + ".o"], cwd=entry["directory"])
    return every + ".o"


def compile_copy(source, entry, out):
    """Compiles the copy; what this compiler refuses and libclang did not is dropped, too. A header has no object file."""
    copies = os.path.join(out, "copies")
    copy = os.path.join(copies, source.path)
    object_file = os.path.join(out, source.path.replace("/", "_") + ".o")
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    text, spans = source.drop_what_does_not_compile()
    words = [*command_for_copies(entry, out), "-iquote", os.path.dirname(copy), "-iquote", os.path.dirname(source.file)]
    words += ["-fsyntax-only", "-x", "c++", copy] if is_header(source.path) else ["-c", copy, "-o", object_file]
    while True:
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True)
        if done.returncode == 0:
            return None if is_header(source.path) else object_file
        starts = [0]
        for line in text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        places = re.findall(rf"^{re.escape(copy)}:(\d+):(\d+): error", done.stderr, re.MULTILINE)
        # Two lines stand ahead of the first.
        if not source.drop_at(spans, text, [starts[int(line) + 1] + int(column) - 1 for line, column in places]):
            sys.exit(f"mutate: the copy of {source.path} does not compile:\n{done.stderr[-4000:]}")
        text, spans = source.drop_what_does_not_compile()


class Runner:
    def __init__(self, test, build):
        self.name = test["name"]
        self.target = os.path.relpath(test["cmd"][0], build)
        self.arguments = test["cmd"][1:]
        self.environment = test["env"]
        suites = {it.split(":")[-1] for it in test["suite"]}
        self.is_simulator = "sim" in suites
        is_built = not self.target.startswith("..")  # A script among the sources runs none of the mutants.
        self.wanted = is_built and (bool(suites & {"unit", "replay"}) or test["name"] == "sim seeds")
        self.program, self.seconds, self.reached = None, 0.0, frozenset()


def runners_of(build, worlds, seconds, ask, out):
    tests = json.loads(run(["meson", "introspect", "--tests", build]))
    runners = [it for it in (Runner(test, build) for test in tests) if it.wanted]
    if ask:
        unknown = [name for name in ask if not fnmatch.filter((it.name for it in runners), name)]
        if unknown:
            sys.exit(f"mutate: no such runner: {', '.join(unknown)}; of {', '.join(it.name for it in runners)}")
        runners = [it for it in runners if any(fnmatch.fnmatchcase(it.name, name) for name in ask)]
    for runner in runners:
        if seconds:
            runner.arguments = SHORTER.get(runner.name, runner.arguments)
        if runner.is_simulator:
            runner.arguments = ["--first", "1", "--worlds", str(worlds), "--output", os.path.join(out, "sim-")]
        elif os.path.basename(runner.target).startswith("test_"):
            runner.arguments = [*runner.arguments, "--abort-after=1"]
            if seconds and runner.name in LONG_TESTS:
                runner.arguments.append("--test-case-exclude=" + LONG_TESTS[runner.name])
    if not runners:
        sys.exit(f"mutate: {build} has no unit tests; configure it with -Dtests=enabled")
    return runners


def without_inlining(entry, out):
    """A runner's object whose calls of inline functions are calls: in one that was optimised the changed ones would be missing."""
    object_file = os.path.join(out, entry["output"].replace("/", "_"))
    words = [it for it in shlex.split(entry["command"]) if not it.startswith("-W") and it not in ("-MD", "-g")]
    for option in ("-MF", "-MQ"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    words[words.index("-o") + 1] = object_file
    run([*words, "-w", "-g0", "-fno-inline"], cwd=entry["directory"])
    return object_file


def link_words(runner, build):
    return shlex.split(run(["ninja", "-C", build, "--quiet", "-t", "commands", runner.target]).strip().split("\n")[-1])


def has_inlined(runner, word, by_output):
    return not runner.is_simulator and word in by_output and re.search(r" -O[123s]\b", by_output[word]["command"])


def is_ours(word):
    return word.endswith(("libholdfast.a", "libholdfast-proto.a"))


def needed(runner, build, by_output):
    """What its link takes as the build makes it."""
    words = link_words(runner, build)
    words = [it for it in words[words.index("-o") + 2 :] if it.endswith((".a", ".o")) and not os.path.isabs(it)]
    return [it for it in words if not is_ours(it) and not has_inlined(runner, it, by_output)]


def link(runner, build, mutated_objects, archive, by_output, out):
    words = link_words(runner, build)
    words = [without_inlining(by_output[it], out) if has_inlined(runner, it, by_output) else it for it in words]
    runner.program = os.path.join(out, os.path.basename(runner.target))
    words[words.index("-o") + 1] = runner.program
    # Of an inline function the linker takes the first that it sees.
    words[words.index("-o") + 2 : words.index("-o") + 2] = mutated_objects
    words = [archive if is_ours(it) else it for it in words]
    run(words, cwd=build)


# ---- Running -----------------------------------------------------------------------------------------------------


def passes(runner, mutant, limit, reached=None):
    """None if it passes within so many seconds of a processor, else how it failed."""
    environment = {**os.environ, **runner.environment, "HOLDFAST_MUTANT": str(mutant)}
    if reached:
        environment["HOLDFAST_REACHED"] = reached

    def limit_resources():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.nice(5)

    process = subprocess.Popen(
        [runner.program, *runner.arguments],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, preexec_fn=limit_resources,
    )
    try:
        code = process.wait(60 + 20 * limit)  # It may also wait for what never comes.
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "hangs"
    return None if code == 0 else "fails" if code > 0 else "hangs" if code == -signal.SIGKILL else "crashes"


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def check_unmutated(runners, seconds, out):
    """Those that are fast enough, and what each comes past."""
    kept = []
    for runner in runners:
        record = os.path.join(out, "reached")
        begin = used()
        failure = passes(runner, 0, seconds or 600, record)
        runner.seconds = used() - begin
        if failure == "hangs" and seconds:
            say(f"left out, since it takes longer: {runner.name}")
            continue
        kept.append(runner)
        if failure:
            sys.exit(f"mutate: {runner.name} {failure} without any mutant; try: {runner.program}")
        if os.path.exists(record):  # Else nothing of what is mutated is linked to it.
            with open(record, "rb") as file:
                runner.reached = frozenset(number for number, seen in enumerate(file.read()) if seen)
            os.unlink(record)
    return kept


def judge(mutant, runners):
    """Who saw it: (the runner's name or None, how)."""
    fit = [it for it in runners if mutant.number in it.reached]
    fit.sort(key=lambda it: (it.is_simulator, it.seconds))
    for runner in fit:
        failure = passes(runner, mutant.number, 1 + int(4 * runner.seconds))
        if failure:
            return runner.name, failure, runner.is_simulator
    return None, "survives" if fit else "is not reached", False


# ---- The report --------------------------------------------------------------------------------------------------


def read_argued():
    """Of survivors.txt: a line with the mutant, below it an indented one with the reason."""
    if not os.path.exists(ARGUED):
        return set()
    with open(ARGUED, encoding="utf-8") as file:
        return {it.strip() for it in file if it.strip() and not it.startswith((" ", "#"))}


def stale(mutants, argued):
    """Lines of survivors.txt that name no mutant of the files that were read."""
    read = {it.path for it in mutants}
    return sorted({it for it in argued if it.partition(",")[0] in read} - {it.key() for it in mutants if not it.dropped})


def needless(mutants, results, argued):
    """Those that name only what is seen."""
    seen = {}
    for mutant in mutants:
        if mutant.key() in argued and not mutant.dropped:
            is_seen = mutant.number in results and bool(results[mutant.number][0])
            seen[mutant.key()] = seen.get(mutant.key(), True) and is_seen
    return sorted(key for key, is_seen in seen.items() if is_seen)


def report(mutants, results, argued):
    rows = collections.OrderedDict()
    for mutant in mutants:
        row = rows.setdefault(mutant.path, collections.Counter())
        if mutant.dropped:
            row["dropped"] += 1
            continue
        if mutant.number not in results:
            continue
        row["mutants"] += 1
        killer, how, by_simulator = results[mutant.number]
        if killer:
            row["sim" if by_simulator else "tests"] += 1
        else:
            row["argued" if mutant.key() in argued else "alive"] += 1
    total = collections.Counter()
    for row in rows.values():
        total.update(row)

    columns = "{:44} {:>8} {:>8} {:>7} {:>7} {:>6} {:>7} {:>7}".format
    print(columns("file", "mutants", "by tests", "by sim", "argued", "alive", "raw", "score"))
    for name, row in [*rows.items(), ("all", total)]:
        killed, counted = row["tests"] + row["sim"], row["mutants"]
        if counted:
            raw, score = killed / counted, killed / max(1, counted - row["argued"])
            numbers = [row[it] for it in ("mutants", "tests", "sim", "argued", "alive")]
            print(columns(name, *numbers, f"{raw:.1%}", f"{score:.1%}"))
    print(f"dropped, since they do not compile: {total['dropped']}")

    alive = [it for it in mutants if it.number in results and not results[it.number][0] and it.key() not in argued]
    if alive:
        print("\nalive:")
    for mutant in alive:
        unreached = " (not reached)" if results[mutant.number][1] == "is not reached" else ""
        print(f"{mutant.path}:{mutant.line}: {mutant.change()}{unreached}  [{mutant.number}]")
    for line in needless(mutants, results, argued):
        print(f"survivors.txt argues what is seen: {line}")
    return not alive


def count_equals(mutants):
    counts = collections.Counter()
    for mutant in mutants:
        counts[mutant.key()] += 1
        mutant.nth = counts[mutant.key()]


def identity(mutant):  # It stays what it is when another function changes.
    return f"{mutant.key()} ({mutant.nth})"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="What no test can see is argued in survivors.txt beside this script, and not counted against the score.",
    )
    parser.add_argument("build", help="a configured Meson build folder with tests, e.g. build/plain")
    parser.add_argument("--out", help="where everything goes (BUILD/mutation)")
    parser.add_argument("--only", default="", metavar="TEXT[,TEXT]", help="files with this in their path, in this order")
    parser.add_argument("--again", action="store_true", help="only what the last run left alive")
    parser.add_argument("--mutant", metavar="N[,N]", help="only these, by the number at the end of the list")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument(
        "--ask", default="", metavar="NAME[,NAME]", help="only these runners, by their names in Meson, which may have * (all)"
    )
    parser.add_argument("--worlds", type=int, default=200, help="worlds of the simulator (200; 0: without it)")
    parser.add_argument("--seconds", type=int, help="leave out what takes more of a processor (nothing)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once (2)")
    arguments = parser.parse_args()

    build = os.path.realpath(arguments.build)
    if not os.path.exists(os.path.join(build, "compile_commands.json")):
        sys.exit(f"mutate: {arguments.build} is no configured build folder: see ./dev mutate")
    out = os.path.realpath(arguments.out or os.path.join(build, "mutation"))
    os.makedirs(out, exist_ok=True)

    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    entries = {}
    for entry in commands:
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        if re.match(r"(src/(core|kinds|posix|system|c)|proto)/[^/]*$", os.path.relpath(path, ROOT)):
            entries.setdefault(path, entry)

    os.chdir(ROOT)
    parts = arguments.only.split(",")
    paths = [os.path.realpath(it) for it in below_the_line()]
    chosen = {it for it in paths if any(part in os.path.relpath(it, ROOT) for part in parts)}
    stems = {stem_of(it) for it in chosen if is_header(it)}
    chosen |= {it for it in paths if stem_of(it) in stems}
    sources, stores = [], {}
    # A header is read by the command of a source that may include all of them.
    of_headers = entries[os.path.join(ROOT, "src/kinds/inquiry.cpp")]
    for place, path in enumerate(paths):
        if path not in chosen:
            remove(os.path.join(out, "copies", os.path.relpath(path, ROOT)))
            continue
        entry = entries.setdefault(path, of_headers) if is_header(path) else entries[path]
        source, stores[path] = source_of(path, entry, out)
        if len(source.mutants) >= NUMBERS_PER_FILE:
            sys.exit(f"mutate: {source.path} has more mutants than NUMBERS_PER_FILE")
        for number, mutant in enumerate(source.mutants, place * NUMBERS_PER_FILE + 1):
            mutant.number = number
        sources.append(source)
    # The headers first: the copies of the sources include theirs.
    sources.sort(key=lambda it: not is_header(it.path))
    mutants = [it for source in sources for it in source.mutants if it.function not in CHECKS]
    count_equals(mutants)
    argued = read_argued()
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.path}:{mutant.line}: {mutant.change()}  [{mutant.number}]")
        return complain(mutants, argued)

    asked = [it for it in arguments.ask.split(",") if it]
    runners = runners_of(build, arguments.worlds, arguments.seconds, asked, out)
    if not arguments.worlds:
        runners = [it for it in runners if not it.is_simulator]
    say(f"{len(mutants)} mutants; building")
    mutated_objects = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for headers in (True, False):
            here = [it for it in sources if is_header(it.path) == headers]
            mutated_objects += pool.map(lambda it: compile_copy(it, entries[it.file], out), here)
    mutated_objects = [it for it in mutated_objects if it]
    headers = [it for it in sources if is_header(it.path)]
    if headers:
        mutated_objects.append(compile_headers(headers, of_headers, out))
    for source in sources:
        keep(source, stores[source.file])  # With what does not compile.
    changed = {it.file for it in sources}
    as_written = [it for path, it in entries.items() if path not in changed]
    others = [os.path.join(it["directory"], it["output"]) for it in as_written]
    by_output = {it["output"]: it for it in commands}
    names = [os.path.relpath(it, build) for it in others]
    names += [name for runner in runners for name in needed(runner, build, by_output)]
    run(["nice", "ninja", "-C", build, f"-j{arguments.jobs}", *dict.fromkeys(names)])
    question = os.path.join(out, "mutant.o")
    run(["c++", "-std=c++20", "-O1", "-c", os.path.join(HERE, "mutant.cpp"), "-o", question])
    archive = os.path.join(out, "libholdfast.a")
    remove(archive)
    run(["ar", "cr", archive, question, *others])
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda it: link(it, build, mutated_objects, archive, by_output, out), runners))
    runners = check_unmutated(runners, arguments.seconds, out)
    say("without mutants all pass: " + ", ".join(f"{it.name} {it.seconds:.2f} s" for it in runners))

    store = os.path.join(out, "results.json")
    known = {}
    if os.path.exists(store):
        with open(store, encoding="utf-8") as file:
            known = json.load(file)
    wanted = [it for part in parts for it in mutants if not it.dropped and part in it.path]
    wanted = list(dict.fromkeys(wanted))  # In the order of the parts, and once.
    if arguments.mutant:
        numbers = {int(it) for it in arguments.mutant.split(",")}
        wanted = [it for it in wanted if it.number in numbers]
    asked_for = wanted
    if arguments.again:
        asked_for = [it for it in wanted if not known.get(identity(it), (None,))[0]]

    # What a change of a file has made of others is forgotten.
    exist, read = {identity(it) for it in mutants}, {it.path for it in mutants}
    for it in [it for it in known if it not in exist and it.partition(",")[0] in read]:
        del known[it]

    def save(results):
        for it in asked_for:
            # Whom other runners came past in vain is no change that was not reached.
            if it.number in results and (results[it.number][1] != "is not reached" or identity(it) not in known):
                known[identity(it)] = results[it.number]
        with open(store, "w", encoding="utf-8") as file:
            json.dump(known, file, indent=0)

    results = judge_all(asked_for, runners, arguments.jobs, save)
    for mutant in wanted:
        if identity(mutant) in known:
            results.setdefault(mutant.number, known[identity(mutant)])
    all_seen = report(mutants, results, argued)
    return complain(mutants, argued) or (0 if all_seen else 1)


def complain(mutants, argued):
    lines = stale(mutants, argued)
    for line in lines:
        print(f"survivors.txt names what is no mutant: {line}")
    return 1 if lines else 0


def judge_all(mutants, runners, jobs, save):
    results, alive = {}, 0
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(judge, it, runners): it for it in mutants}
        for future in concurrent.futures.as_completed(futures):
            results[futures[future].number] = future.result()
            alive += not future.result()[0]
            if len(results) % 100 == 0:
                save(results)
                say(f"{len(results)} of {len(mutants)}, {alive} alive, {time.monotonic() - begin:.0f} s")
    save(results)
    return results


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
