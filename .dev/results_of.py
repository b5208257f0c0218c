# SPDX-License-Identifier: MIT
"""Prints how many of Meson's tests passed, failed and were skipped.

usage: results_of.py TESTLOG     meson-logs/testlog.json of a build folder: one JSON object per line
"""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as log:
    results = [json.loads(line)["result"] for line in log]
passed = sum(result in ("OK", "EXPECTEDFAIL") for result in results)
skipped = results.count("SKIP")
print(passed, len(results) - passed - skipped, skipped)
