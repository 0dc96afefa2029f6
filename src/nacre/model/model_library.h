// Defines what a shared library of models offers to the program that opens it. Such a library is
// made of model files and its own copy of this room; nacre_model_library() of CMake builds one.
#pragma once

#include <string>
#include <vector>

#include "nacre/model/builtin.h"

namespace nacre {

// These are the names and types of the two functions of a library.
inline constexpr const char* kModelLibraryAbi = "nacre_model_abi";
inline constexpr const char* kModelLibraryModels = "nacre_models";
using ModelLibraryAbi = const char* (*)();
using ModelLibraryModels = const std::vector<ModelEntry>* (*)();

// Returns a text that describes the types that a library and a program share. It consists of the
// versions of Nacre and of the compiler and of the sizes of the types. If a library and a program
// have different texts, they cannot work together.
const std::string& model_library_abi();

// Returns the models that register_model() has added, without those that come with Nacre.
std::vector<ModelEntry> registered_models();

}  // namespace nacre
