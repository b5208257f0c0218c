# SPDX-License-Identifier: MIT
#
# usage: cmake -D PORT_DIR=... -D FEATURES=... -D WORK=... -P vcpkg.cmake
#
# Runs the port's portfile.cmake as vcpkg does, with stand-ins for the functions of vcpkg that it calls: they take what the real
# ones take, refuse what those refuse, and do the part of their work that a port can see. So the order of the port's steps and what
# they leave behind are seen, and nothing of what vcpkg does by itself: downloads, triplets, toolchains, dependencies.
cmake_minimum_required(VERSION 3.21)
set(PORT holdfast)
set(CURRENT_PACKAGES_DIR "${WORK}/packages/holdfast_x64-linux")
set(CURRENT_INSTALLED_DIR "${WORK}/installed/x64-linux")
set(CURRENT_BUILDTREES_DIR "${WORK}/buildtrees/holdfast")
set(VCPKG_LIBRARY_LINKAGE dynamic)  # The port must say that it is static.
set(VCPKG_TARGET_EXECUTABLE_SUFFIX "")

function(refuse_rest)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "arguments that this function does not have: ${arg_UNPARSED_ARGUMENTS}")
  endif()
endfunction()

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output)
endfunction()

function(vcpkg_check_linkage)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ONLY_STATIC_LIBRARY;ONLY_DYNAMIC_LIBRARY" "" "")
  refuse_rest()
  if(arg_ONLY_STATIC_LIBRARY)
    set(VCPKG_LIBRARY_LINKAGE static PARENT_SCOPE)
  endif()
endfunction()

function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  refuse_rest()
  set(options "")
  set(pairs ${arg_FEATURES})
  while(pairs)
    list(POP_FRONT pairs feature variable)
    file(READ "${PORT_DIR}/vcpkg.json" manifest)
    string(JSON said GET "${manifest}" features ${feature} description)  # An error where there is no such feature.
    if(feature IN_LIST FEATURES)
      list(APPEND options "-D${variable}=ON")
    else()
      list(APPEND options "-D${variable}=OFF")
    endif()
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()

# An option that the project does not know is an error, as vcpkg has it.
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  refuse_rest()
  foreach(pair rel,Release, dbg,Debug,/debug)
    string(REPLACE "," ";" parts "${pair}")
    list(GET parts 0 suffix)
    list(GET parts 1 type)
    list(GET parts 2 folder)
    run(${CMAKE_COMMAND} -S "${arg_SOURCE_PATH}" -B "${CURRENT_BUILDTREES_DIR}/x64-linux-${suffix}" -G Ninja
        ${arg_OPTIONS} -DCMAKE_BUILD_TYPE=${type} -DBUILD_SHARED_LIBS=OFF -DCMAKE_INSTALL_LIBDIR:STRING=lib
        # What the compiler makes of it is not the question here, and time is.
        -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DHOLDFAST_UNITED=ON
        -DCMAKE_INSTALL_BINDIR:STRING=bin -DCMAKE_ERROR_ON_ABSOLUTE_INSTALL_DESTINATION=ON
        "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}${folder}")
    foreach(option IN LISTS arg_OPTIONS)
      string(REGEX REPLACE "^-D([^=:]*).*" "\\1" variable "${option}")
      file(STRINGS "${arg_SOURCE_PATH}/CMakeLists.txt" known REGEX "(set|option)\\(${variable} ")
      if(NOT known)
        message(FATAL_ERROR "the project has no option ${variable}")
      endif()
    endforeach()
  endforeach()
  if(NOT VCPKG_LIBRARY_LINKAGE STREQUAL static)
    message(FATAL_ERROR "the libraries are static, and the port does not say so")
  endif()
endfunction()

function(vcpkg_cmake_install)
  refuse_rest()
  foreach(suffix rel dbg)
    run(${CMAKE_COMMAND} --build "${CURRENT_BUILDTREES_DIR}/x64-linux-${suffix}" --parallel 2)
    run(${CMAKE_COMMAND} --install "${CURRENT_BUILDTREES_DIR}/x64-linux-${suffix}")
  endforeach()
endfunction()

# The package moves to share/PORT; of that for Debug only what is named after it stays.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  refuse_rest()
  foreach(folder "" /debug)
    set(from "${CURRENT_PACKAGES_DIR}${folder}/${arg_CONFIG_PATH}")
    if(NOT EXISTS "${from}")
      message(FATAL_ERROR "there is no ${from}")
    endif()
    file(GLOB files "${from}/*")
    file(COPY ${files} DESTINATION "${CURRENT_PACKAGES_DIR}${folder}/share/${PORT}")
    cmake_path(GET from PARENT_PATH parent)
    file(REMOVE_RECURSE "${parent}")
  endforeach()
  file(GLOB other "${CURRENT_PACKAGES_DIR}/debug/share/${PORT}/*-debug.cmake")
  if(other)
    file(COPY ${other} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  endif()
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/share")
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  refuse_rest()
  file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

include("${PORT_DIR}/portfile.cmake")

# ---- What vcpkg looks at after a build ---------------------------------------
foreach(there include/holdfast.h lib/libholdfast.a debug/lib/libholdfast.a share/holdfast/holdfast-config.cmake
        share/holdfast/copyright share/holdfast/usage)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${there}")
    message(FATAL_ERROR "the port leaves no ${there}")
  endif()
endforeach()
foreach(wrong debug/include debug/share lib/cmake debug/lib/cmake bin debug/bin)
  if(EXISTS "${CURRENT_PACKAGES_DIR}/${wrong}")
    message(FATAL_ERROR "the port leaves ${wrong}, which vcpkg refuses")
  endif()
endforeach()
file(GLOB release RELATIVE "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/lib/*.a")
file(GLOB debug RELATIVE "${CURRENT_PACKAGES_DIR}/debug/lib" "${CURRENT_PACKAGES_DIR}/debug/lib/*.a")
if(NOT release STREQUAL debug)
  message(FATAL_ERROR "other libraries for Debug: ${debug}; and for Release: ${release}")
endif()
file(GLOB_RECURSE texts "${CURRENT_PACKAGES_DIR}/share/*.cmake")
foreach(text IN LISTS texts)
  file(STRINGS "${text}" absolute REGEX "${WORK}")
  if(absolute)
    message(FATAL_ERROR "${text} names a folder of the build: ${absolute}")
  endif()
endforeach()
# vcpkg copies the package to where programs find it.
file(MAKE_DIRECTORY "${WORK}/installed")
file(RENAME "${CURRENT_PACKAGES_DIR}" "${CURRENT_INSTALLED_DIR}")
