# SPDX-License-Identifier: MIT
"""Prints how many of Meson's tests passed, failed and were skipped; then a line per failed test, with what it said last.

usage: results_of.py TESTLOG     meson-logs/testlog.json of a build folder: one JSON object per line
"""

import json
import sys

SAID_MOST = 4  # lines of a failed test, each of at most so many characters:
LINE_MOST = 200


def last_words(test):
    """What tells most of a failure: its case, the lines that name it, what was compared there; else the last lines."""
    lines = [line.strip() for line in (test.get("stdout", "") + test.get("stderr", "")).splitlines() if line.strip()]
    named = []
    case = None  # Named by every message of it, so only told before what failed in it.
    for line in lines:
        if line.startswith("TEST CASE:"):
            case = line
        elif "FAIL" in line or "ERROR" in line or "Assert" in line or (named and line.startswith("values:")):
            named += [case, line] if case and "ERROR" in line else [line]
            case = None if "ERROR" in line else case
    return [line[:LINE_MOST] for line in (named or lines)[-SAID_MOST:]]


with open(sys.argv[1], encoding="utf-8") as log:
    tests = [json.loads(line) for line in log]
failed = [test for test in tests if test["result"] not in ("OK", "EXPECTEDFAIL", "SKIP")]
skipped = sum(test["result"] == "SKIP" for test in tests)
print(len(tests) - len(failed) - skipped, len(failed), skipped)
for test in failed:
    print(f"{test['name']}: {test['result']}:", " | ".join(last_words(test)))
