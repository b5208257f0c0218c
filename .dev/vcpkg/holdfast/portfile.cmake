# SPDX-License-Identifier: MIT
#
# The port for vcpkg. It builds the sources that it lies in, by CMakeLists.txt; in a registry, vcpkg_from_github() or its kin says
# where they are instead.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    asio HOLDFAST_ASIO
    tls HOLDFAST_TLS
)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DHOLDFAST_INSTALL=ON
    ${FEATURE_OPTIONS}
)
vcpkg_cmake_install()
# holdfast-config.cmake finds the archives of both configurations from there.
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/holdfast)

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
