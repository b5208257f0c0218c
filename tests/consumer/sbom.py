#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# usage: sbom.py FILE NAME PROGRAM
#
# The SBOM in FILE is about NAME, names each library that PROGRAM asks the loader for where NAME is the command's package, and each
# component with a version and a licence.
import json
import re
import subprocess
import sys

file, name, program = sys.argv[1:]
with open(file, encoding="utf-8") as text:
    document = json.load(text)
packages = {it["SPDXID"]: it for it in document["packages"]}
assert len(packages) == len(document["packages"]) > 2, "identifiers are not unique"
assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
for it in packages.values():
    assert it["versionInfo"] and it["licenseDeclared"] not in ("", "NOASSERTION"), it
for it in document["relationships"]:
    assert it["relatedSpdxElement"] in packages, it
described = [it["relatedSpdxElement"] for it in document["relationships"] if it["relationshipType"] == "DESCRIBES"]
assert [packages[it]["name"] for it in described] == [name], described

related = [it for it in document["relationships"] if it["relationshipType"] == "DYNAMIC_LINK"]
shared = {packages[it["relatedSpdxElement"]]["name"] for it in related}
names = {it["name"] for it in packages.values()}
if name == "holdfast":
    needed = re.findall(r"\(NEEDED\).*\[(.*)\.so\.", subprocess.check_output(["readelf", "-d", program], text=True))
    package_of = {"libc": "libc6", "libm": "libc6", "libgcc_s": "libgcc-s1", "libstdc++": "libstdc++6"}
    package_of |= {"libssl": "libssl3", "libcrypto": "libssl3"}
    shared = {it.removesuffix("t64") for it in shared}
    assert needed and shared == {package_of[it] for it in needed}, (needed, shared)
    assert "libcli11-dev" in names, names
else:
    assert not shared and "libasio-dev" in names and "libcli11-dev" not in names, (shared, names)
