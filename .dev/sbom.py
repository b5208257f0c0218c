#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# usage: sbom.py --build DIR --name NAME --version VERSION [--zig DIR] TARGET...
#
# Writes an SBOM, SPDX 2.3 in JSON, of what a build of ours has made: TARGETs are archives or programs, relative to DIR. Nothing in it
# is a list by hand but licences: the headers that were compiled in are those that ninja has seen the compiler read, the shared
# libraries those that the programs name, and versions are the package manager's. With --zig: the toolchain of the static program. A
# component whose licence is not known here is an error.
import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess

# By source package of Debian.
LICENCES = {
    "asio": "BSL-1.0",
    "cli11": "BSD-3-Clause",
    "glibc": "LGPL-2.1-or-later",
    "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "linux": "GPL-2.0-only WITH Linux-syscall-note",
    "openssl": "Apache-2.0",
}
LLVM = "Apache-2.0 WITH LLVM-exception"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def packages_of(paths):
    """Name, version and source of the Debian packages that files belong to. dpkg may know a file by its place before /usr."""
    names = {}
    for path in map(os.path.realpath, paths):
        names[path] = {path, path.removeprefix("/usr"), "/usr" + path}
    said = subprocess.run(["dpkg", "-S", *sorted(set().union(*names.values()))], capture_output=True, text=True).stdout
    owners = {path: owner.split(",")[0] for owner, path in (line.split(": ", 1) for line in said.splitlines())}
    found = set()
    for path, alternatives in names.items():
        known = [owners[it] for it in alternatives if it in owners]
        if not known:
            raise SystemExit(f"sbom: no package has {path}")
        found.add(known[0])
    if not found:
        return []
    fields = output("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${source:Package}\n", *sorted(found))
    return [tuple(line.split("\t")) for line in fields.splitlines()]


def licence_of(source):
    source = re.sub(r"^gcc-\d+$", "gcc", source)
    if source not in LICENCES:
        raise SystemExit(f"sbom: the licence of {source} is not known; .dev/sbom.py lists them")
    return LICENCES[source]


def headers_of(build, targets):
    """What the compiler has read from outside of the sources, for the objects that the targets are made of."""
    inputs = set(output("ninja", "-C", build, "-t", "inputs", *targets).split("\n"))
    headers = set()
    counted = False
    objects = 0
    for line in output("ninja", "-C", build, "-t", "deps").split("\n"):
        if line and not line.startswith(" "):
            counted = line.split(":")[0] in inputs
            objects += counted
        elif counted and line.strip():
            headers.add(os.path.normpath(os.path.join(build, line.strip())))  # A compiler's cache may write them relative.
    if not objects:
        raise SystemExit("sbom: ninja knows no objects of " + " ".join(targets))
    root = os.path.realpath(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + "/"
    return [it for it in headers if not os.path.realpath(it).startswith((root, os.path.realpath(build) + "/"))]


def shared_libraries_of(build, targets):
    names = set()
    for target in targets:
        if not target.endswith(".a"):
            names |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", os.path.join(build, target))))
    return [output("gcc", "-print-file-name=" + name).strip() for name in names]


def debian_components(build, targets):
    found = {}
    found |= dict.fromkeys(packages_of(headers_of(build, targets)), "CONTAINS")
    found |= dict.fromkeys(packages_of(shared_libraries_of(build, targets)), "DYNAMIC_LINK")
    yield from (debian_component(*it, relation) for it, relation in sorted(found.items()))


def debian_component(name, version, source, relation):
    return {
        "name": name,
        "version": version,
        "licence": licence_of(source),
        "relation": relation,
        "why": "its headers are compiled in" if relation == "CONTAINS" else "a shared library, of this or a later version",
        "url": f"pkg:deb/debian/{name}@{version}",
    }


def zig_components(build, targets, zig):
    def number(pattern, path):
        with open(os.path.join(zig, path), encoding="utf-8") as text:
            return re.search(pattern, text.read(), re.MULTILINE).group(1)

    llvm = int(number(r"_LIBCPP_VERSION +(\d+)", "lib/libcxx/include/__config"))
    llvm = f"{llvm // 10000}.{llvm // 100 % 100}.{llvm % 100}"
    zig_version = output(os.path.join(zig, "zig"), "version").strip()
    musl = number(r'VERSION "(.*)"', "lib/libc/musl/src/internal/version.h")
    for name, version, licence in (
        ("compiler_rt", zig_version, "MIT"),
        ("libc++", llvm, LLVM),
        ("libc++abi", llvm, LLVM),
        ("libunwind", llvm, LLVM),
        ("musl", musl, "MIT"),
    ):
        yield {"name": name, "version": version, "licence": licence, "relation": "STATIC_LINK", "why": f"as in Zig {zig_version}"}
    ours = [it for it in headers_of(build, targets) if not os.path.realpath(it).startswith(os.path.realpath(zig) + "/")]
    yield from (debian_component(*it, "CONTAINS") for it in packages_of(ours))


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", name)


def package(name, version, licence, why, url=None):
    entry = {
        "SPDXID": identifier(name), "name": name, "versionInfo": version, "licenseConcluded": licence,
        "licenseDeclared": licence, "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "comment": why,
    }  # fmt: skip
    if url:
        entry["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}
        ]
    return entry


def main():
    parser = argparse.ArgumentParser()
    for option in ("--build", "--name", "--version"):
        parser.add_argument(option, required=True)
    parser.add_argument("--zig")
    parser.add_argument("target", nargs="+")
    given = parser.parse_args()
    for target in given.target:
        if not os.path.exists(os.path.join(given.build, target)):
            raise SystemExit(f"sbom: there is no {target} in {given.build}")
    targets = given.target
    if given.zig:
        found = zig_components(given.build, targets, given.zig)
    else:
        found = debian_components(given.build, targets)
    components = {it["name"]: it for it in found}

    ours = package(given.name, given.version, "MIT", "made of " + ", ".join(os.path.basename(it) for it in targets))
    packages = [ours] + [package(it["name"], it["version"], it["licence"], it["why"], it.get("url")) for it in components.values()]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", ours["SPDXID"])]
    relations += [(ours["SPDXID"], it["relation"], identifier(it["name"])) for it in components.values()]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    contents = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()[:32]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{given.name}-{given.version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{given.name}-{given.version}-{contents}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: holdfast-.dev/sbom.py"],
        },
        "packages": packages,
        "relationships": [
            {"spdxElementId": one, "relationshipType": relation, "relatedSpdxElement": other}
            for one, relation, other in relations
        ],
    }
    print(json.dumps(document, indent=2))


main()
