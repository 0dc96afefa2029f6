// Defines the interface between the program and the MPI plug-in. C++ objects cross this border, so
// both sides must be built from the same sources by the same compiler. kMpiAbi changes with every
// change of transport.h, so that a library from another build is refused instead of called.
#pragma once

#include <string>

#include "nacre/cluster/transport.h"

namespace nacre {

inline constexpr int kMpiAbi = 4;

// LastWords is a function that tells people why MPI ends this process. When it has returned, the
// process ends.
using LastWords = void (*)(const std::string& why);

// The plug-in exports one function:
//   extern "C" Transport* nacre_mpi_transport(int abi, double timeout, LastWords last_words)
// It starts MPI and returns a new transport. It returns null if the plug-in was built with another
// number than `abi`, and throws TransportError if MPI does not start. If MPI has not started some
// seconds after `timeout`, because a process does not answer, it calls last_words() and ends the
// process.
using MpiPluginEntry = Transport* (*)(int abi, double timeout, LastWords last_words);
inline constexpr const char* kMpiPluginEntry = "nacre_mpi_transport";
inline constexpr const char* kMpiPluginFile = "libnacre_mpi.so";

}  // namespace nacre
