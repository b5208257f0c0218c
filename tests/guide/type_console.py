#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# usage: type_console.py PAGE SOURCE-ROOT COMMAND LIBRARY
#
# Types what a page of the guide types: each line with a `$` in its blocks of `console`, one after the other into one shell, and
# compares what comes with what the page says; `...` stands for anything within a line, or for any lines. What is changed,
# and nothing else:
#   - The port 7379 is one that is free here. A page that starts no server finds one there.
#   - build/demo/src/cli is the folder of COMMAND, build/demo/src/libholdfast.a is LIBRARY, and build/ else a folder of the test.
# Exits with 77 where there is no redis-server.
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PORT = "7379"
ANSWER_MAX = 120  # Seconds, for the slowest machine: a command compiles.


class Refused(Exception):
    pass


def consoles_of(text):
    """What is typed, its line's number, and the lines that answer."""
    typed = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            typed.append((number, line[2:], []))
        elif inside:
            typed[-1][2].append(line)
    return typed


def pattern_of(lines):
    parts = [r"(?:.*\n)*" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n" for line in lines]
    return "".join(parts)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


class Shell:
    END = "holdfast-end-of-answer"

    def __init__(self, root, environment):
        self.process = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root,
                                        stderr=subprocess.STDOUT, text=True, env=environment, bufsize=1)

    def answer(self, line):
        self.process.stdin.write(f"{line}\necho {self.END} $?\n")
        self.process.stdin.flush()
        answer = ""
        while True:
            got = self.process.stdout.readline()
            if not got:
                raise Refused(f"the shell has ended; it said: {answer}")
            if self.END in got:
                return answer + got.split(self.END)[0]
            answer += got


class Server:
    """Of the test, or of the page: either ends with the test."""

    def __init__(self, port):
        self.port = port

    def start(self):
        subprocess.run(["redis-server", "--port", self.port, "--save", "", "--daemonize", "yes"], check=True,
                       stdout=subprocess.DEVNULL)
        self.await_up()

    def await_up(self):
        """A reader types more slowly than a server starts."""
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(self.port))) == 0:
                    return
            time.sleep(0.05)
        raise Refused("the server does not listen")

    def stop(self):
        subprocess.run(["redis-cli", "-p", self.port, "shutdown", "nosave"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)


def type_page(page, root, command, library, work):
    text = page.read_text(encoding="utf-8")
    typed = consoles_of(text)
    if not typed:
        raise Refused("nothing is typed on this page")
    server = Server(free_port())
    starts = any(line.startswith("redis-server ") for _, line, _ in typed)
    environment = {**os.environ, "TMPDIR": str(work), "LC_ALL": "C"}
    for name in [name for name in environment if name.startswith("HOLDFAST_")]:
        del environment[name]
    if not starts:
        environment.update({"HOLDFAST_URL": f"redis://127.0.0.1:{server.port}",
                            "PATH": f"{command.parent}:{environment['PATH']}"})
    try:
        if not starts:
            server.start()
        shell = Shell(root, environment)
        for number, line, expected in typed:
            line = re.sub(r"(?<![\w/])build/(?!demo/)", f"{work}/", line.replace(PORT, server.port))
            line = line.replace("$PWD/build/demo/src/cli", str(command.parent))
            line = line.replace("build/demo/src/libholdfast.a", str(library))
            answer = shell.answer(line)
            if line.startswith("redis-server "):
                server.await_up()
            if not re.fullmatch(pattern_of(expected), answer):
                raise Refused(f"line {number}: {line}\n--- the page says\n" + "\n".join(expected) + f"\n--- came\n{answer}")
        shell.process.stdin.close()
        shell.process.wait(ANSWER_MAX)
    finally:
        server.stop()
    return len(typed)


def main():
    page, root, command, library = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
    if not shutil.which("redis-server") or not shutil.which("redis-cli"):
        print("skipped: there is no redis-server with its redis-cli here")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="holdfast-guide.") as work:
        try:
            print(f"ok: {type_page(page, root, command, library, pathlib.Path(work))} lines were typed")
        except Refused as refused:
            sys.exit(f"{page}: {refused}")


main()
