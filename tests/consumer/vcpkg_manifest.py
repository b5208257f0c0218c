#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: vcpkg_manifest.py SOURCE-ROOT

The manifest of the port by the rules of vcpkg's schema for it, and beside what it says of the same project elsewhere: its version,
its license, its description, and that each feature is one that portfile.cmake asks for, and the other way.
"""
import json
import pathlib
import re
import sys

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
RESERVED = re.compile(r"prn|aux|nul|con|lpt[1-9]|com[1-9]|core|default")
FIELDS = {"name": str, "version-semver": str, "description": str, "license": str, "supports": str, "dependencies": list,
          "features": dict}
FEATURE = {"description": str, "dependencies": list}
DEPENDENCY = {"name": str, "host": bool, "version>=": str, "features": list, "default-features": bool, "platform": str}


def refuse(text):
    sys.exit(f"vcpkg.json: {text}")


def unique(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        refuse(f"a field is there twice: {names}")
    return dict(pairs)


def look(what, value, fields):
    """A field that begins with $ is a comment."""
    for name, field in value.items():
        if name.startswith("$"):
            continue
        if name not in fields or not isinstance(field, fields[name]) or field in ("", [], {}):
            refuse(f"{what}: {name} is no such field, or of another type")


def look_at_dependencies(what, dependencies):
    for each in dependencies:
        dependency = {"name": each} if isinstance(each, str) else each
        look(what, dependency, DEPENDENCY)
        if not NAME.fullmatch(dependency["name"]) or RESERVED.fullmatch(dependency["name"]):
            refuse(f"{what}: '{dependency['name']}' is no name of a port")


def main():
    root = pathlib.Path(sys.argv[1])
    port = root / ".dev" / "vcpkg" / "holdfast"
    manifest = json.loads((port / "vcpkg.json").read_text(encoding="utf-8"), object_pairs_hook=unique)
    look("the port", manifest, FIELDS)
    for needed in ("name", "version-semver", "description", "license"):
        if needed not in manifest:
            refuse(f"there is no {needed}")
    if manifest["name"] != port.name:
        refuse("a port has the name of its folder")
    look_at_dependencies("the port", manifest["dependencies"])
    for name, feature in manifest["features"].items():
        if not NAME.fullmatch(name) or RESERVED.fullmatch(name):
            refuse(f"'{name}' is no name of a feature")
        look(name, feature, FEATURE)
        look_at_dependencies(name, feature["dependencies"])
        if "description" not in feature:
            refuse(f"{name} has no description")

    text = (root / "meson.build").read_text(encoding="utf-8")
    version = re.search(r"\n  version: '([^']+)'", text).group(1)
    if manifest["version-semver"] != version:
        refuse(f"it is of version {manifest['version-semver']}, and meson.build of {version}")
    if f"license: '{manifest['license']}'" not in text:
        refuse("meson.build has another license")
    if f'description = "{manifest["description"]}"' not in (root / ".dev/conan/conanfile.py").read_text(encoding="utf-8"):
        refuse("the recipe for Conan has another description")

    steps = (port / "portfile.cmake").read_text(encoding="utf-8")
    asked = re.search(r"FEATURES\n((?: +[a-z-]+ HOLDFAST_[A-Z]+\n)+)", steps).group(1)
    if sorted(asked.split()[::2]) != sorted(manifest["features"]):
        refuse("portfile.cmake asks for other features")
    hosts = {each["name"] for each in manifest["dependencies"] if isinstance(each, dict) and each.get("host")}
    for function, tool in (("vcpkg_cmake_configure", "vcpkg-cmake"), ("vcpkg_cmake_config_fixup", "vcpkg-cmake-config")):
        if f"{function}(" in steps and tool not in hosts:
            refuse(f"{function}() is of {tool}, which is no dependency of the host")


if __name__ == "__main__":
    main()
