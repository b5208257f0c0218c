# SPDX-License-Identifier: MIT
#
# The recipe for Conan 2: `conan create .dev/conan -s compiler.cppstd=20`, in the root of the sources. It builds by CMakeLists.txt.
# Without TLS nothing but libc is needed; TLS takes Conan's own OpenSSL.
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load


class Holdfast(ConanFile):
    name = "holdfast"
    description = "Distributed locks on Redis and Valkey"
    topics = ("distributed-lock", "redis", "valkey")
    license = "MIT"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"tls": [True, False]}
    default_options = {"tls": False}

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        self.version = re.search(r"\n  version: '([0-9.]+)'", load(self, os.path.join(self._root, "meson.build"))).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "meson.build", "include/*", "proto/*", "src/*"):
            copy(self, pattern, self._root, self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        if self.options.tls:
            self.requires("openssl/[>=3.0 <4]", transitive_headers=False)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HOLDFAST_ASIO"] = "OFF"
        toolchain.cache_variables["HOLDFAST_TLS"] = "ON" if self.options.tls else "OFF"
        toolchain.cache_variables["HOLDFAST_INSTALL"] = True
        toolchain.generate()
        if self.options.tls:
            from conan.tools.cmake import CMakeDeps

            CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    # holdfast's own package for find_package() is installed, and knows all targets.
    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "holdfast")]
        self.cpp_info.libs = ["holdfast"] + (["holdfast-tls"] if self.options.tls else [])
        self.cpp_info.system_libs = ["pthread"]
