#include "nacre/data/zip.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;
constexpr int64_t kLocalBytes = 30;
constexpr int64_t kEntryBytes = 46;
constexpr int64_t kEndBytes = 22;
constexpr int64_t kEnd64Bytes = 56;
constexpr int64_t kLocatorBytes = 20;
// A deflate stream cannot expand by more than 1032 : 1. The slack covers very short streams.
constexpr int64_t kMaxExpansion = 1032;
constexpr int64_t kExpansionSlack = 4096;

// Says where the directory lies and how many entries it has.
struct Directory {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t entries = 0;
  int64_t limit = 0;  // the directory must end here or earlier
};

class Parser {
 public:
  explicit Parser(const MappedFile& file) : bytes_(file.bytes()), size_(file.size()), where_(file.name()) {}

  std::vector<ZipEntry> parse(int64_t& directory_offset) const {
    const Directory directory = locate();
    directory_offset = directory.offset;
    if (directory.offset > directory.limit || directory.bytes > directory.limit - directory.offset) {
      damaged("the directory lies outside the file", directory.limit);
    }
    if (directory.entries > directory.bytes / kEntryBytes)
      damaged("the directory is shorter than its entry count", directory.offset);
    std::vector<ZipEntry> entries;
    entries.reserve(directory.entries);
    int64_t at = directory.offset;
    const int64_t end = directory.offset + directory.bytes;
    for (int64_t i = 0; i < directory.entries; ++i) entries.push_back(entry(at, end));
    if (at != end) damaged("bytes follow the last directory entry", at);
    check_overlap(entries, directory.offset);
    return entries;
  }

 private:
  [[noreturn]] void damaged(const std::string& what, int64_t at) const {
    throw UserError(where_ + " at byte " + std::to_string(at), "damaged ZIP archive: " + what,
                    "the file is truncated or damaged: fetch or write it again");
  }

  // Returns the little-endian number at position `at`. Throws UserError if the file ends before it;
  // callers check the bounds of their sections.
  template <class T>
  T get(int64_t at) const {
    if (at < 0 || at > size_ - static_cast<int64_t>(sizeof(T))) damaged("a record is cut off", size_);
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }

  int64_t get64(int64_t at) const {
    const auto value = get<uint64_t>(at);
    if (value > static_cast<uint64_t>(INT64_MAX)) damaged("a size is out of range", at);
    return static_cast<int64_t>(value);
  }

  Directory locate() const {
    const int64_t end = find_end();
    Directory directory{get<uint32_t>(end + 16), get<uint32_t>(end + 12), get<uint16_t>(end + 10), end};
    const bool extended =
        directory.offset == 0xFFFFFFFF || directory.bytes == 0xFFFFFFFF || directory.entries == 0xFFFF;
    const bool has_locator = end >= kLocatorBytes && get<uint32_t>(end - kLocatorBytes) == kEnd64Locator;
    if (!extended || !has_locator) {
      if (get<uint16_t>(end + 4) != 0 || get<uint16_t>(end + 6) != 0) damaged("it is one part of several", end);
      return directory;
    }
    const int64_t end64 = get64(end - kLocatorBytes + 8);
    if (end64 > end - kLocatorBytes - kEnd64Bytes || get<uint32_t>(end64) != kEnd64) {
      damaged("the ZIP64 record is not where it should be", end - kLocatorBytes);
    }
    if (get<uint32_t>(end64 + 16) != 0 || get<uint32_t>(end64 + 20) != 0) damaged("it is one part of several", end64);
    return {get64(end64 + 48), get64(end64 + 40), get64(end64 + 32), end64};
  }

  // Returns the position of the end record, which is the last thing in the file, followed only by a
  // comment of at most 65,535 bytes.
  int64_t find_end() const {
    const int64_t first = std::max<int64_t>(0, size_ - kEndBytes - 0xFFFF);
    for (int64_t at = size_ - kEndBytes; at >= first; --at) {
      if (get<uint32_t>(at) == kEnd && at + kEndBytes + get<uint16_t>(at + 20) == size_) return at;
    }
    damaged("it has no directory at its end", size_);
  }

  ZipEntry entry(int64_t& at, int64_t end) const {
    if (end - at < kEntryBytes || get<uint32_t>(at) != kDirectoryEntry) damaged("a directory entry is missing", at);
    const int64_t name_bytes = get<uint16_t>(at + 28);
    const int64_t extra_bytes = get<uint16_t>(at + 30);
    const int64_t comment_bytes = get<uint16_t>(at + 32);
    if (end - at - kEntryBytes < name_bytes + extra_bytes + comment_bytes) damaged("a directory entry is cut off", at);
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(bytes_.data()) + at + kEntryBytes, static_cast<size_t>(name_bytes));
    const auto unprintable = [](unsigned char c) { return c < 32 || c == 127; };
    if (std::any_of(entry.name.begin(), entry.name.end(), unprintable))
      damaged("a member's name holds control characters", at);
    const uint16_t flags = get<uint16_t>(at + 8);
    const uint16_t method = get<uint16_t>(at + 10);
    const std::string place = where_ + " at byte " + std::to_string(at);
    if ((flags & 1) != 0)
      throw UserError(place, "member '" + entry.name + "' is encrypted", "save it without a password");
    if (method != 0 && method != 8) {
      throw UserError(place, "member '" + entry.name + "' uses ZIP method " + std::to_string(method),
                      "only stored and deflated members are read: save with numpy.savez or savez_compressed");
    }
    entry.deflated = method == 8;
    entry.crc32 = get<uint32_t>(at + 16);
    entry.packed_size = get<uint32_t>(at + 20);
    entry.size = get<uint32_t>(at + 24);
    entry.header_offset = get<uint32_t>(at + 42);
    apply_zip64(entry, at + kEntryBytes + name_bytes, extra_bytes);
    locate_data(entry, flags);
    at += kEntryBytes + name_bytes + extra_bytes + comment_bytes;
    return entry;
  }

  // Replaces those of the three numbers of `entry` that are 0xFFFFFFFF by 64-bit values. Extra
  // field 1 holds values for these numbers only, in the order of the loop below.
  void apply_zip64(ZipEntry& entry, int64_t at, int64_t bytes) const {
    const int64_t end = at + bytes;
    while (end - at >= 4) {
      const uint16_t id = get<uint16_t>(at);
      const int64_t length = get<uint16_t>(at + 2);
      at += 4;
      if (length > end - at) damaged("an extra field is cut off", at);
      if (id == 1) {
        const int64_t field_end = at + length;
        for (int64_t* value : {&entry.size, &entry.packed_size, &entry.header_offset}) {
          if (*value != 0xFFFFFFFF) continue;
          if (field_end - at < 8) damaged("a ZIP64 field is cut off", at);
          *value = get64(at);
          at += 8;
        }
        return;
      }
      at += length;
    }
  }

  void locate_data(ZipEntry& entry, uint16_t flags) const {
    const int64_t at = entry.header_offset;
    if (at > size_ - kLocalBytes || get<uint32_t>(at) != kLocalHeader) {
      damaged("member '" + entry.name + "' does not begin where the directory says", at);
    }
    const int64_t name_bytes = get<uint16_t>(at + 26);
    entry.data_offset = at + kLocalBytes + name_bytes + get<uint16_t>(at + 28);
    if (entry.data_offset > size_ || entry.packed_size > size_ - entry.data_offset) {
      damaged("member '" + entry.name + "' is cut off", at);
    }
    const bool same_name = name_bytes == static_cast<int64_t>(entry.name.size()) &&
                           std::memcmp(bytes_.data() + at + kLocalBytes, entry.name.data(), entry.name.size()) == 0;
    // If bit 3 of the flags is set, sizes and CRC follow the data instead of being in the local
    // header.
    const bool same_crc = (flags & 8) != 0 || get<uint32_t>(at + 14) == entry.crc32;
    if (!same_name || !same_crc || get<uint16_t>(at + 8) != (entry.deflated ? 8 : 0)) {
      damaged("member '" + entry.name + "' differs from its directory entry", at);
    }
    const bool plausible = entry.deflated ? (entry.size - kExpansionSlack) / kMaxExpansion <= entry.packed_size
                                          : entry.size == entry.packed_size;
    if (!plausible) damaged("member '" + entry.name + "' claims an impossible size", at);
  }

  void check_overlap(const std::vector<ZipEntry>& entries, int64_t directory_offset) const {
    std::vector<const ZipEntry*> sorted;
    sorted.reserve(entries.size());
    for (const ZipEntry& entry : entries) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(),
              [](const ZipEntry* a, const ZipEntry* b) { return a->header_offset < b->header_offset; });
    for (size_t i = 0; i < sorted.size(); ++i) {
      const int64_t next = i + 1 < sorted.size() ? sorted[i + 1]->header_offset : directory_offset;
      if (sorted[i]->data_offset + sorted[i]->packed_size > next) damaged("members overlap", sorted[i]->header_offset);
    }
    std::sort(sorted.begin(), sorted.end(), [](const ZipEntry* a, const ZipEntry* b) { return a->name < b->name; });
    for (size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i]->name == sorted[i - 1]->name)
        damaged("two members are called '" + sorted[i]->name + "'", sorted[i]->header_offset);
    }
  }

  std::span<const std::byte> bytes_;
  int64_t size_;
  const std::string& where_;
};

}  // namespace

ZipArchive::ZipArchive(std::shared_ptr<const MappedFile> file)
    : file_(std::move(file)), entries_(Parser(*file_).parse(directory_offset_)) {}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const ZipEntry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

std::unique_ptr<ByteStream> ZipArchive::open(const ZipEntry& entry) const {
  const std::string where = file_->name() + "[" + entry.name + "]";
  const auto packed =
      file_->bytes().subspan(static_cast<size_t>(entry.data_offset), static_cast<size_t>(entry.packed_size));
  auto inner =
      entry.deflated ? inflate_stream(packed, Wrapping::deflate, where, entry.data_offset) : memory_stream(packed);
  const std::string place = where + " at byte " + std::to_string(entry.data_offset);
  return checked_stream(std::move(inner), {entry.size, entry.crc32}, place);
}

}  // namespace nacre
