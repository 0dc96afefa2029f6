# Installs the program, the headers, every room as a library, and the CMake package that offers them
# as nacre::ROOM and, all together, as nacre::nacre.
include(CMakePackageConfigHelpers)

# The rooms are static libraries, so whoever links them also links what they use. The package must
# find all of that, so every third-party target has a line here.
set(find_TBB::tbb "find_dependency(TBB)")
set(find_Threads::Threads "find_dependency(Threads)")
set(find_ZLIB::ZLIB "find_dependency(ZLIB)")
set(find_fmt::fmt "find_dependency(fmt)")
set(find_nlohmann_json::nlohmann_json "find_dependency(nlohmann_json)")
set(find_tomlplusplus::tomlplusplus "find_dependency(tomlplusplus)")
set(find_METIS::METIS "find_library(NACRE_METIS metis REQUIRED)
if(NOT TARGET METIS::METIS)
  add_library(METIS::METIS UNKNOWN IMPORTED)
  set_target_properties(METIS::METIS PROPERTIES IMPORTED_LOCATION \${NACRE_METIS})
endif()")
set(find_BLAS::BLAS "find_dependency(BLAS)")
set(find_PkgConfig::YAML "find_dependency(PkgConfig)\npkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-cpp)")
set(find_PkgConfig::HWY "find_dependency(PkgConfig)\npkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)")
set(find_PkgConfig::URING "find_dependency(PkgConfig)\npkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)")
set(find_PkgConfig::OPENBLAS "find_dependency(PkgConfig)\npkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)")

set(NACRE_FIND_DEPENDENCIES "")
foreach(room ${rooms})
  get_target_property(links ${room} LINK_LIBRARIES)
  foreach(link ${links})
    if(link MATCHES "^nacre_" OR NOT link MATCHES "::")
      continue()
    endif()
    if(NOT DEFINED find_${link})
      message(FATAL_ERROR "${room} links ${link}: say in cmake/install.cmake how the installed package finds it")
    endif()
    list(APPEND NACRE_FIND_DEPENDENCIES "${find_${link}}")
  endforeach()
endforeach()
list(REMOVE_DUPLICATES NACRE_FIND_DEPENDENCIES)
list(JOIN NACRE_FIND_DEPENDENCIES "\n" NACRE_FIND_DEPENDENCIES)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nacre)
configure_package_config_file(cmake/nacre-config.cmake.in ${PROJECT_BINARY_DIR}/nacre-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/nacre-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS ${rooms} nacre_all EXPORT nacre ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS nacre RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY src/nacre DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE PATTERN "src/nacre/cuda" EXCLUDE
  PATTERN "src/nacre/mpi" EXCLUDE)
install(EXPORT nacre NAMESPACE nacre:: FILE nacre-targets.cmake DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/nacre-config.cmake ${PROJECT_BINARY_DIR}/nacre-config-version.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/model_library.cmake ${PROJECT_SOURCE_DIR}/src/nacre/model/model_library_entry.cpp
  DESTINATION ${package_dir})
if(TARGET nacre_shell_files)
  set(shell ${PROJECT_BINARY_DIR}/shell)
  install(FILES ${shell}/nacre.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME nacre)
  install(FILES ${shell}/_nacre DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${shell}/nacre.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(FILES ${shell}/nacre.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
