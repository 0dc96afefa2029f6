#include "nacre/data/stored_rows.h"

#include <cstring>
#include <filesystem>

#include "nacre/data/native.h"

namespace nacre {

std::optional<StoredRows> stored_features(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const auto file = MappedFile::open(path);
  if (!is_native(*file)) return std::nullopt;
  const NativeContents contents = native_contents(file);
  for (size_t i = 0; i < contents.sections.size(); ++i) {
    const NativeSection& section = contents.sections[i];
    if (section.name != "features" || section.element != native::Element::f32 || section.shape.size() != 2) continue;
    native::SectionEntry entry;
    std::memcpy(&entry, file->bytes().data() + sizeof(native::FileHeader) + i * sizeof(entry), sizeof(entry));
    return StoredRows{path, section.offset, section.shape[0], section.shape[1] * 4, entry.checksum};
  }
  return std::nullopt;
}

}  // namespace nacre
