// Compiled kernels as files see them: an image is an ELF file, of the CUDA compiler as of the emulated device's.
#pragma once

#include <string>
#include <string_view>

namespace nacre {

// Returns what is wrong with the frame of an ELF image: no ELF file at all, or headers that name bytes beyond its end.
// Returns an empty text if the frame is whole. Loaders of images are not told their size and would read beyond the end
// of one that was cut short.
std::string fault_of_image(std::string_view image);

}  // namespace nacre
