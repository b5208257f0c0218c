#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""usage: read_openmetrics.py PROGRAM

Reads what print_openmetrics prints by the strict parser of prometheus_client, and compares what that understands. Exit code 77,
skipped, where there is no such parser (Debian: python3-prometheus-client). A program of another machine runs by the wrapper that
Meson names.
"""

import os
import shlex
import subprocess
import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    print("skipped: there is no prometheus_client")
    sys.exit(77)

wrapper = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
text = subprocess.run([*wrapper, sys.argv[1]], check=True, stdout=subprocess.PIPE).stdout.decode()
families = {family.name: family for family in text_string_to_metric_families(text)}
labels = {"job": 'a"b\\c\nd', "_2": "\u00e4 {x}"}


def value_of(family, name, more=None):
    wanted = dict(labels, **(more or {}))
    values = [sample.value for sample in families[family].samples if sample.name == name and sample.labels == wanted]
    assert len(values) == 1, (family, name, wanted, families[family].samples)
    return values[0]


assert len(families) == 17, sorted(families)
for name, family in families.items():
    assert name.startswith("holdfast_") and family.documentation, family
    assert family.type in ("counter", "gauge", "histogram"), family
assert value_of("holdfast_grants", "holdfast_grants_total") == 1
assert value_of("holdfast_sent_bytes", "holdfast_sent_bytes_total") == 2**40
assert families["holdfast_sent_bytes"].unit == "bytes"
assert value_of("holdfast_waiting_calls", "holdfast_waiting_calls") == 2
renewal = "holdfast_renewal_seconds"
assert families[renewal].type == "histogram" and families[renewal].unit == "seconds"
assert value_of(renewal, renewal + "_bucket", {"le": "0.00025"}) == 0
assert value_of(renewal, renewal + "_bucket", {"le": "0.0005"}) == 3
assert value_of(renewal, renewal + "_bucket", {"le": "60.0"}) == 3
assert value_of(renewal, renewal + "_bucket", {"le": "+Inf"}) == 4
assert value_of(renewal, renewal + "_count") == 4
assert abs(value_of(renewal, renewal + "_sum") - 61.500000001) < 1e-9
try:
    list(text_string_to_metric_families(text.replace("# EOF\n", "")))
except ValueError:
    pass
else:
    sys.exit("FAILED: the parser takes a text without its end, so it proves nothing")
print(f"ok: {len(families)} families")
