# nacre_room(NAME SOURCES a.cpp … USES other_room … LINKS Lib::Target …)
#
# Makes one static library per room. USES lists the rooms whose headers and code this room may use.
# It is public, so a forbidden include fails at link time, and the direction of dependencies is
# visible where files are listed. LINKS lists third-party libraries. They stay private, so no header
# of ours may include theirs.
set(NACRE_ROOMS "" CACHE INTERNAL "")
function(nacre_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_library(nacre_${name} STATIC ${arg_SOURCES})
  add_library(nacre::${name} ALIAS nacre_${name})
  set_target_properties(nacre_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(nacre_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  foreach(room ${arg_USES})
    target_link_libraries(nacre_${name} PUBLIC nacre_${room})
  endforeach()
  target_link_libraries(nacre_${name} PRIVATE ${arg_LINKS})
  nacre_flags(nacre_${name})
  nacre_compile_together(nacre_${name})
  if("nlohmann_json::nlohmann_json" IN_LIST arg_LINKS)
    nacre_precompile(nacre_${name} <nlohmann/json.hpp>)
  else()
    nacre_precompile(nacre_${name})
  endif()
  set(NACRE_ROOMS "${NACRE_ROOMS};nacre_${name}" CACHE INTERNAL "")
endfunction()

# nacre_list_entries(OUTPUT HEADER header TYPE Type ALL function EACH prefix FILES a.cpp b.cpp …)
#
# Writes a source file into the build folder that joins what the files offer: the function
# `std::vector<Type> function()` returns the entries that prefix_a(), prefix_b(), … return, in this
# order. Each of them is defined in the file it is named after. So a new entry is a new file, and
# the linker does not leave it out, as it would a file that nothing refers to.
function(nacre_list_entries output)
  cmake_parse_arguments(arg "" "HEADER;TYPE;ALL;EACH" "FILES" ${ARGN})
  set(declared "")
  set(called "")
  foreach(file ${arg_FILES})
    get_filename_component(name ${file} NAME_WE)
    string(APPEND declared "std::vector<${arg_TYPE}> ${arg_EACH}_${name}();\n")
    string(APPEND called "  for (${arg_TYPE}& entry : ${arg_EACH}_${name}()) all.push_back(std::move(entry));\n")
  endforeach()
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${output} CONTENT
"// Made by nacre_list_entries() of cmake/nacre.cmake.
#include <utility>
#include <vector>

#include \"${arg_HEADER}\"

namespace nacre {

${declared}
std::vector<${arg_TYPE}> ${arg_ALL}() {
  std::vector<${arg_TYPE}> all;
${called}  return all;
}

}  // namespace nacre
")
endfunction()

# nacre_plugin(NAME SOURCES a.cpp … USES room … LINKS Lib::Target …): a shared library beside the
# program that is opened at run time. It has its own copies of the rooms, and shows only what the
# sources mark as visible.
function(nacre_plugin name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_library(nacre_${name} MODULE ${arg_SOURCES})
  foreach(room ${arg_USES})
    target_link_libraries(nacre_${name} PRIVATE nacre_${room})
  endforeach()
  target_link_libraries(nacre_${name} PRIVATE ${arg_LINKS})
  target_link_options(nacre_${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed)
  set_target_properties(nacre_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  nacre_flags(nacre_${name})
  nacre_compile_together(nacre_${name})
  install(TARGETS nacre_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# nacre_test(NAME SOURCES a.cpp … USES room … LABELS fast|slow … COST seconds): a GoogleTest program
# that is registered with CTest. Everything not labelled `slow` also runs under the sanitizers.
# Tests labelled `gpu` use a GPU if there is one, and are part of the bundle (make gpu-bundle). BUSY
# marks a test whose own code takes time: it is optimised like the rooms. Other tests are optimised
# only lightly, which compiles faster. COST is about the number of seconds that a long test takes:
# CTest starts the longest tests first, so that none is left over at the end. Tests that mostly wait
# have one, too, because other tests run beside them. PARTS divides the cases of a long test among
# this number of CTest entries, so that several cores share them.
function(nacre_test name)
  cmake_parse_arguments(arg "BUSY" "COST;PARTS" "SOURCES;USES;LABELS;LINKS" ${ARGN})
  add_executable(test_${name} ${arg_SOURCES})
  foreach(room ${arg_USES})
    target_link_libraries(test_${name} PRIVATE nacre_${room})
  endforeach()
  target_link_libraries(test_${name} PRIVATE ${arg_LINKS} GTest::gtest_main)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  nacre_flags(test_${name})
  if(arg_BUSY)
    target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  else()
    nacre_compile_quickly(test_${name} -O1)
  endif()
  nacre_sanitize_lightly(test_${name})
  nacre_compile_together(test_${name})
  nacre_precompile(test_${name} <gtest/gtest.h>)
  if(NACRE_SANITIZE AND "slow" IN_LIST arg_LABELS)
    set_target_properties(test_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(NOT arg_PARTS)
    set(arg_PARTS 1)
  endif()
  if(arg_BUSY AND NOT arg_COST)
    set(arg_COST 5)
  endif()
  foreach(part RANGE 1 ${arg_PARTS})
    set(entry ${name})
    if(arg_PARTS GREATER 1)
      set(entry ${name}_${part})
    endif()
    add_test(NAME ${entry} COMMAND test_${name} --gtest_brief=1)
    set_tests_properties(${entry} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 1800)
    if(arg_PARTS GREATER 1)
      math(EXPR index "${part} - 1")
      set_tests_properties(${entry} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${index}")
    endif()
    if(arg_COST)
      set_tests_properties(${entry} PROPERTIES COST ${arg_COST})
    endif()
  endforeach()
  if("gpu" IN_LIST arg_LABELS)
    # The test lies beside the plug-in, where the program looks for it.
    set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    if(NOT TARGET gpu_tests)
      add_custom_target(gpu_tests)
    endif()
    add_dependencies(gpu_tests test_${name})
    if(TARGET nacre_cuda)
      add_dependencies(test_${name} nacre_cuda)
      target_compile_definitions(test_${name} PRIVATE NACRE_CUDA_BUILT)
    endif()
  endif()
endfunction()

# nacre_compile_quickly(TARGET [FLAG]): for targets whose own code need not be fast. In sanitized
# builds, their code is not optimised, because sanitized templates take long to optimise. Release
# builds use FLAG instead of their usual level.
function(nacre_compile_quickly target)
  if(NACRE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${ARGN}>)
  endif()
endfunction()

# nacre_sanitize_lightly(TARGET), called after nacre_flags: for targets that do not look at raw
# bytes, such as tests, the program and the planner. They need not check whether pointers are
# aligned, which takes a sixth of their compile time.
function(nacre_sanitize_lightly target)
  if(NACRE_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=alignment)
  endif()
endfunction()

# nacre_precompile(TARGET [header …]): the target takes the headers that nearly every source
# includes, and the given ones, from a precompiled header. All targets with the same flags share it.
# It saves a third of the compile time of a source. Builds with ccache or clang compile without it,
# so that a missing #include is noticed there.
function(nacre_precompile target)
  # With ccache, a precompiled header would prevent hits. Those of clang depend on flags that
  # fuzzers add later.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # This runs when the folder's list has been read and the flags are known.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL nacre_precompile_now ${target} ${ARGN})")
  endif()
endfunction()

function(nacre_precompile_now target)
  get_target_property(type ${target} TYPE)
  get_target_property(options ${target} COMPILE_OPTIONS)
  string(MD5 key "${type} ${options} ${ARGN}")
  set(donor nacre_precompiled_${key})
  if(NOT TARGET ${donor})
    file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cpp "int main() {}\n")
    if(type STREQUAL EXECUTABLE)
      add_executable(${donor} ${PROJECT_BINARY_DIR}/precompiled.cpp)
    else()
      add_library(${donor} STATIC ${PROJECT_BINARY_DIR}/precompiled.cpp)
    endif()
    if("<gtest/gtest.h>" IN_LIST ARGN)
      target_link_libraries(${donor} PRIVATE GTest::gtest)
    endif()
    if("<fmt/format.h>" IN_LIST ARGN)
      target_link_libraries(${donor} PRIVATE fmt::fmt)
    endif()
    target_compile_features(${donor} PRIVATE cxx_std_20)
    target_compile_options(${donor} PRIVATE ${options})
    if(NACRE_SANITIZE)
      target_link_options(${donor} PRIVATE -fsanitize=${NACRE_SANITIZE})
    endif()
    target_precompile_headers(${donor} PRIVATE <algorithm> <atomic> <cmath> <cstring> <filesystem> <functional> <map>
      <memory> <mutex> <optional> <set> <span> <string> <unordered_map> <variant> <vector> ${ARGN})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${donor})
endfunction()

# nacre_compile_together(TARGET): compiles those sources of the target together that define no name
# twice (scripts/together.py). This takes less than half of the time. Builds with ccache compile
# each source by itself, because a change of one would compile the others again, and so that a
# missing #include is noticed.
function(nacre_compile_together target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL nacre_compile_together_now ${target})")
  endif()
endfunction()

function(nacre_compile_together_now target)
  get_target_property(sources ${target} SOURCES)
  set(paths "")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    if(source MATCHES "\\.cpp$" AND EXISTS ${source})
      list(APPEND paths ${source})
    endif()
  endforeach()
  list(LENGTH paths count)
  set(lines "")
  if(count GREATER 1)
    execute_process(COMMAND python3 -B ${PROJECT_SOURCE_DIR}/scripts/together.py ${paths}
      OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  endif()
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line ${lines})
    string(REGEX MATCH "^([0-9]+) (.*)$" match "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP "${target}_${CMAKE_MATCH_1}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A local variable may have the name of something in another source. The other warnings are about
  # std::string, are wrong, and come only if much is inlined.
  target_compile_options(${target} PRIVATE -Wno-shadow -Wno-stringop-overflow -Wno-array-bounds)
endfunction()

function(nacre_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
    # g++ 12 warns of overlaps in std::string concatenation that do not exist (GCC bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    # All machines must give the same results, so the compiler must not contract or reorder float
    # expressions.
    -ffp-contract=off)
  if(NACRE_SANITIZE)
    # The address sanitizer finds the mistakes that the last three checks look for, and without them
    # a source compiles in five sixths of the time.
    target_compile_options(${target} PUBLIC -fsanitize=${NACRE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
      -fno-sanitize=null,vptr,object-size)
    target_link_options(${target} PUBLIC -fsanitize=${NACRE_SANITIZE})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      # The descriptions of all checks take 100 MB. Without a fixed address, each start would read
      # and change all of them.
      target_link_options(${target} PRIVATE -no-pie)
    endif()
  endif()
endfunction()
