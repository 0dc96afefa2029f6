# Ranks that are processes. All of them share the cores of one machine.
if(NOT TARGET nacre_mpi)
  add_test(NAME cluster_mpi COMMAND ${CMAKE_COMMAND} -E echo "skipped: MPI was not found when nacre was configured")
  set_tests_properties(cluster_mpi PROPERTIES LABELS fast SKIP_REGULAR_EXPRESSION "skipped: ")
  return()
endif()

# Open MPI keeps some memory until the process ends.
set(mpi_environment "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;ASAN_OPTIONS=detect_leaks=0")

# nacre_mpi_program(NAME source …): a program that lies beside the plug-in.
function(nacre_mpi_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE nacre_cluster)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  nacre_flags(${name})
  nacre_compile_quickly(${name} -O1)
  nacre_sanitize_lightly(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  add_dependencies(${name} nacre_mpi)
endfunction()

nacre_mpi_program(test_cluster_mpi mpi_test.cpp)
target_link_libraries(test_cluster_mpi PRIVATE test_cluster_suite)
# One odd and one even number of ranks are among the tests of every change; `make stress` has the
# rest.
foreach(ranks 1 2 3 4)
  if(ranks LESS 3)
    set(labels "slow;stress")
  else()
    set(labels fast)
  endif()
  add_test(NAME cluster_mpi_${ranks}
    COMMAND ${MPIEXEC_EXECUTABLE} -n ${ranks} --oversubscribe --bind-to none $<TARGET_FILE:test_cluster_mpi> --gtest_brief=1)
  set_tests_properties(cluster_mpi_${ranks} PROPERTIES LABELS "${labels}" TIMEOUT 900 COST 14 ENVIRONMENT "${mpi_environment}")
endforeach()

nacre_mpi_program(mpi_worker mpi_worker.cpp)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME cluster_mpi_faults
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/mpi_faults_test.py ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:mpi_worker>)
set_tests_properties(cluster_mpi_faults PROPERTIES LABELS "slow;stress" TIMEOUT 900 ENVIRONMENT "${mpi_environment}")
