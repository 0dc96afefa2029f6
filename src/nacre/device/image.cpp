#include "nacre/device/image.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace nacre {
namespace {

bool inside(uint64_t from, uint64_t bytes, uint64_t size) { return from <= size && bytes <= size - from; }

template <class Header>
Header header_at(std::string_view image, uint64_t at) {
  Header header;
  std::memcpy(&header, image.data() + at, sizeof header);
  return header;
}

}  // namespace

std::string fault_of_image(std::string_view image) {
  if (image.size() < sizeof(Elf64_Ehdr) || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0 ||
      image[EI_CLASS] != ELFCLASS64) {
    return "the image is no 64-bit ELF file";
  }
  constexpr const char* cut = "the image is cut short";
  const auto file = header_at<Elf64_Ehdr>(image, 0);
  const uint64_t size = image.size();
  if ((file.e_shnum > 0 && file.e_shentsize != sizeof(Elf64_Shdr)) ||
      (file.e_phnum > 0 && file.e_phentsize != sizeof(Elf64_Phdr))) {
    return "the tables of the image are not those of a 64-bit ELF file";
  }
  if (!inside(file.e_shoff, uint64_t{file.e_shnum} * sizeof(Elf64_Shdr), size)) return cut;
  if (!inside(file.e_phoff, uint64_t{file.e_phnum} * sizeof(Elf64_Phdr), size)) return cut;
  for (uint64_t i = 0; i < file.e_shnum; ++i) {
    const auto section = header_at<Elf64_Shdr>(image, file.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS && !inside(section.sh_offset, section.sh_size, size)) return cut;
  }
  for (uint64_t i = 0; i < file.e_phnum; ++i) {
    const auto segment = header_at<Elf64_Phdr>(image, file.e_phoff + i * sizeof(Elf64_Phdr));
    if (!inside(segment.p_offset, segment.p_filesz, size)) return cut;
  }
  return "";
}

}  // namespace nacre
