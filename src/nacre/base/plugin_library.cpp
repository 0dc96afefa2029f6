#include "nacre/base/plugin_library.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace nacre {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> places(const std::string& file, const std::string& only_place) {
  std::error_code ignored;
  if (!only_place.empty()) {
    return {fs::is_directory(only_place, ignored) ? fs::path(only_place) / file : fs::path(only_place)};
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> found;
  for (const char* place : {".", "..", "../lib", "../lib/x86_64-linux-gnu", "../lib64"}) {
    found.push_back((folder / place / file).lexically_normal());
  }
  // If this code is part of a library (the Python module), plug-ins lie beside that library.
  static const char here = 0;
  Dl_info library;
  if (dladdr(&here, &library) != 0 && library.dli_fname != nullptr)
    found.push_back(fs::absolute(library.dli_fname, ignored).parent_path() / file);
  return found;
}

// Returns false if a library ends before the bytes that the system maps from it. The system would
// kill a program that opens such a library. Headers of other kinds than PT_LOAD are not looked at:
// after strip, they may speak of bytes that a whole library does not have. Returns true for a file
// that cannot be read or is no 64-bit library, because dlopen() says what is wrong with it.
bool is_whole(const fs::path& path) {
  std::error_code ignored;
  const uint64_t size = fs::file_size(path, ignored);
  std::ifstream file(path, std::ios::binary);
  const auto read = [&](uint64_t at, auto& part) {
    return static_cast<bool>(
        file.seekg(static_cast<std::streamoff>(at)).read(reinterpret_cast<char*>(&part), sizeof part));
  };
  Elf64_Ehdr header{};  // bytes that the file does not have stay 0
  const bool headed = read(0, header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return true;
  if (!headed) return false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!read(header.e_phoff + uint64_t{header.e_phentsize} * i, part)) return false;
    if (part.p_type != PT_LOAD) continue;
    if (part.p_offset > size || part.p_filesz > size - part.p_offset) return false;
  }
  return true;
}

}  // namespace

PluginFunction open_plugin_function(const std::string& file, const char* name, const std::string& only_place) {
  for (const fs::path& path : places(file, only_place)) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    if (!is_whole(path)) return {nullptr, path.string(), path.string() + " is not whole: its end is missing"};
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* error = dlerror();
      return {nullptr, path.string(), error != nullptr ? error : path.string() + " cannot be opened"};
    }
    void* address = dlsym(library, name);
    if (address == nullptr) return {nullptr, path.string(), path.string() + " belongs to another version of nacre"};
    return {address, path.string(), ""};
  }
  return {};
}

}  // namespace nacre
