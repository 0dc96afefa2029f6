// This file defines the functions by which the program finds the models of a shared library. It is
// compiled into each such library (cmake/model_library.cmake), not into this room.
#include "nacre/model/model_library.h"

extern "C" {

__attribute__((visibility("default"))) const char* nacre_model_abi() { return nacre::model_library_abi().c_str(); }

__attribute__((visibility("default"))) const std::vector<nacre::ModelEntry>* nacre_models() {
  static const std::vector<nacre::ModelEntry> models = nacre::registered_models();
  return &models;
}
}
