# nacre_model_library(NAME my_model.cpp …): a shared library of models, libNAME.so, for
# nacre train --model libNAME.so. Each file registers its models with nacre::RegisterModel.
set(NACRE_MODEL_LIBRARY_ENTRY ${CMAKE_CURRENT_LIST_DIR}/model_library_entry.cpp)
if(NOT EXISTS ${NACRE_MODEL_LIBRARY_ENTRY})
  set(NACRE_MODEL_LIBRARY_ENTRY ${CMAKE_CURRENT_LIST_DIR}/../src/nacre/model/model_library_entry.cpp)
endif()
function(nacre_model_library name)
  add_library(${name} MODULE ${ARGN} ${NACRE_MODEL_LIBRARY_ENTRY})
  target_link_libraries(${name} PRIVATE nacre::model)
  target_compile_features(${name} PRIVATE cxx_std_20)
  # The library has its own copies of the rooms, and shows only its entry.
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,--no-undefined)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
