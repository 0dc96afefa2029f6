// The interface between the program and the MPI plug-in. C++ objects cross this border, so both
// sides must be built from the same sources by the same compiler. kMpiAbi changes with every change
// of transport.h, so that a library from another build is refused instead of called.
#pragma once

#include "nacre/cluster/transport.h"

namespace nacre {

inline constexpr int kMpiAbi = 1;

// The plug-in has one symbol: extern "C" Transport* nacre_mpi_transport(int abi). The function
// starts MPI and returns a new transport. It returns null if `abi` is not the number that the
// plug-in was built with, and throws TransportError if MPI cannot be started.
using MpiPluginEntry = Transport* (*)(int abi);
inline constexpr const char* kMpiPluginEntry = "nacre_mpi_transport";
inline constexpr const char* kMpiPluginFile = "libnacre_mpi.so";

}  // namespace nacre
