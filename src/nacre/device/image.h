// Checks of compiled kernels. An image is an ELF file, both from the CUDA compiler and from the
// compiler of the emulated GPU.
#pragma once

#include <string>
#include <string_view>

namespace nacre {

// Returns what is wrong with the frame of an ELF image: it is no ELF file, or its headers name
// bytes beyond its end. Returns an empty text if the frame is whole. The functions that load images
// are not told their size and would read beyond the end of an image that was cut short.
std::string fault_of_image(std::string_view image);

}  // namespace nacre
