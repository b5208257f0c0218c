#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# usage: compile_guide.py java|go PAGE SOURCES
#
# The guide shows code of other clients beside ours. This compiles the blocks of a page with the client that prepare.sh fetched, of
# which HOLDFAST_PEER is the program. SOURCES is the peer's folder beside this script. What a block names and does not
# declare (redisson, pool, work()) stands around it here. Nothing is run.
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

JAVA = """import java.util.concurrent.TimeUnit;
import org.redisson.api.*;

class Guide {
  static RedissonClient redisson;
  static void work() {}
%s
}
"""
GO = """package main

import (
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
)

var (
	pool, pool1, pool2, pool3 redis.Pool
	errLost                   = errors.New("lost")
	second                    = time.Second
)

func work() {}
%s
func main() {}
"""


def compile_java(blocks, peer, _, work):
    methods = [f"  static void block{at}() throws Exception {{\n{block}  }}" for at, block in enumerate(blocks)]
    (work / "Guide.java").write_text(JAVA % "\n".join(methods), encoding="utf-8")
    return ["javac", "-proc:none", "-cp", f"{peer / 'jars'}/*", "-d", str(work), str(work / "Guide.java")], {}


def compile_go(blocks, peer, sources, work):
    functions = []
    for at, block in enumerate(blocks):
        # One that only makes a mutex uses it, and ends.
        rest = "" if re.search(r"^return", block, re.MULTILINE) else "_ = mutex\nreturn nil\n"
        functions.append(f"func block{at}() error {{\n{block}{rest}}}\n\nvar _ = block{at}\n")
    for name in ("go.mod", "go.sum"):
        shutil.copy(sources / name, work)
    (work / "main.go").write_text(GO % "\n".join(functions), encoding="utf-8")
    return ["go", "build", "-o", str(work / "guide"), "."], {
        "GOTOOLCHAIN": "local", "GOMODCACHE": str(peer / "modules"), "GOCACHE": str(peer / "cache"), "GOPROXY": "off",
        "GOFLAGS": "-modcacherw -buildvcs=false", "CGO_ENABLED": "0"}


def main():
    language, page, sources = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if not blocks:
        sys.exit(f"{page} has no block of {language}")
    peer = pathlib.Path(os.environ["HOLDFAST_PEER"]).parent
    with tempfile.TemporaryDirectory(prefix="holdfast-guide.") as work:
        how = compile_java if language == "java" else compile_go
        command, variables = how(blocks, peer, sources, pathlib.Path(work))
        if subprocess.run(command, cwd=work, env={**os.environ, **variables}, check=False).returncode:
            sys.exit(f"{page}: a block of {language} does not compile")
    print(f"ok: {len(blocks)} blocks of {language}")


main()
