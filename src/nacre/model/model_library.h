// Defines what a shared library of models offers to the program that opens it. Such a library is
// made of model files and its own copy of this room; nacre_model_library() of CMake builds one.
#pragma once

#include <string>
#include <vector>

#include "nacre/model/builtin.h"

namespace nacre {

// The names and types of the two functions of a library.
inline constexpr const char* kModelLibraryAbi = "nacre_model_abi";
inline constexpr const char* kModelLibraryModels = "nacre_models";
using ModelLibraryAbi = const char* (*)();
using ModelLibraryModels = const std::vector<ModelEntry>* (*)();

// Returns a text that differs between a library and a program if the types that they share differ.
// The text consists of the versions of Nacre and of the compiler and the sizes of the types.
const std::string& model_library_abi();

// Returns the models that register_model() has added, without those of Nacre.
std::vector<ModelEntry> registered_models();

}  // namespace nacre
