#include "nacre/tier/pack_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "nacre/tier/row_reader.h"

namespace nacre {

PackFile::PackFile(const std::string& folder) : folder_(folder) {
  fd_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ >= 0) return;
  // Some file systems have no unnamed files. There, a file with a name is made, and its name is
  // removed as soon as it is open.
  std::string name = folder + "/.nacre-pack-XXXXXX";
  fd_ = mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) fail("cannot make a temporary file", errno);
  unlink(name.c_str());
}

PackFile::~PackFile() { close(fd_); }

void PackFile::fail(const char* what, int error) const {
  throw RuntimeError(folder_, std::string(what) + ": " + std::strerror(error));
}

void PackFile::reserve(int64_t bytes) {
  if (bytes == 0) return;
  int result = -1;
  do {
    result = fallocate(fd_, 0, 0, bytes);
  } while (result != 0 && errno == EINTR);
  // If the file system cannot reserve space, the file only gets its size, and a later write fails
  // when the disk is full.
  if (result != 0 && errno == EOPNOTSUPP) result = ftruncate(fd_, bytes);
  if (result != 0) fail("there is no room for packed features", errno);
}

void PackFile::write(int64_t offset, std::span<const char> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = pwrite(fd_, bytes.data() + done, bytes.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("packed features cannot be written", n < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(n);
  }
}

void PackFile::sync() {
  if (fdatasync(fd_) != 0) fail("packed features cannot be written", errno);
  posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
}

std::shared_ptr<const RowFile> PackFile::opened(const RowLayout& layout) const {
  return std::make_shared<RowFile>("/proc/self/fd/" + std::to_string(fd_), layout, "packed features in " + folder_);
}

namespace {

constexpr int kFewestPackReads = 4;
// Reading a row takes this many bytes besides the row itself: two entries in lists of the reader,
// and the number of the row.
const int64_t kReadRowBytes = RowReader::list_bytes(1) + static_cast<int64_t>(sizeof(RowFetch) + sizeof(NodeId));

// Names a row of the source and a batch that wants it.
struct Wanted {
  NodeId row;
  uint32_t batch;
};

// Collects the rows of each batch in a buffer and writes the buffer to the file when it is full.
class PackWriter {
 public:
  PackWriter(PackFile& file, const std::vector<RowLayout>& layouts, int64_t memory)
      : file_(file), layouts_(layouts), buffers_(layouts.size()), written_(layouts.size(), 0) {
    most_ = static_cast<size_t>(
        std::max<int64_t>(4096, memory / std::max<int64_t>(1, static_cast<int64_t>(layouts.size()))));
    for (std::vector<char>& buffer : buffers_) buffer.reserve(most_);
  }
  void add(uint32_t batch, const char* row, int64_t bytes) {
    std::vector<char>& buffer = buffers_[batch];
    if (buffer.size() + static_cast<size_t>(bytes) > most_) flush(batch);
    buffer.insert(buffer.end(), row, row + bytes);
  }
  void finish() {
    for (uint32_t batch = 0; batch < buffers_.size(); ++batch) flush(batch);
  }

 private:
  void flush(uint32_t batch) {
    std::vector<char>& buffer = buffers_[batch];
    file_.write(layouts_[batch].offset + written_[batch], buffer);
    written_[batch] += static_cast<int64_t>(buffer.size());
    buffer.clear();
  }

  PackFile& file_;
  const std::vector<RowLayout>& layouts_;
  std::vector<std::vector<char>> buffers_;
  std::vector<int64_t> written_;
  size_t most_ = 0;
};

}  // namespace

Pack pack_rows(const RowFile& source, const std::vector<std::span<const RowFetch>>& batches, const std::string& folder,
               int64_t memory) {
  const RowLayout& layout = source.layout();
  Pack pack;
  std::vector<Wanted> wanted;
  size_t count = 0;
  for (const auto& batch : batches) count += batch.size();
  wanted.reserve(count);
  for (size_t b = 0; b < batches.size(); ++b) {
    const auto rows = static_cast<int64_t>(batches[b].size());
    pack.layouts.push_back({pack.bytes, layout.row_bytes, rows, layout.page});
    pack.bytes += (rows * layout.row_bytes + layout.page - 1) / layout.page * layout.page;
    for (const RowFetch& fetch : batches[b]) wanted.push_back({fetch.row, static_cast<uint32_t>(b)});
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const Wanted& a, const Wanted& b) { return a.row != b.row ? a.row < b.row : a.batch < b.batch; });
  PackFile file(folder);
  file.reserve(pack.bytes);
  const int64_t one = RowReader::buffer_bytes(1);
  const int depth = static_cast<int>(std::clamp<int64_t>(memory / 4 / one, kFewestPackReads, kReadDepth));
  const int64_t half = std::max<int64_t>(0, memory - RowReader::buffer_bytes(depth)) / 2;
  PackWriter writer(file, pack.layouts, half);
  const auto chunk = static_cast<size_t>(std::max<int64_t>(64, half / (layout.row_bytes + kReadRowBytes)));
  std::vector<NodeId> ids;
  ids.reserve(chunk);
  std::vector<char> rows;
  for (size_t i = 0; i < wanted.size();) {
    ids.clear();
    const size_t first = i;
    for (; i < wanted.size() && ids.size() < chunk; ++i) {
      if (i == first || wanted[i].row != wanted[i - 1].row) ids.push_back(wanted[i].row);
    }
    rows.resize(ids.size() * static_cast<size_t>(layout.row_bytes));
    const ReadCounts counts = read_rows(source, ids, rows.data(), layout.row_bytes, depth);
    pack.read.reads += counts.reads;
    pack.read.pages += counts.pages;
    pack.read.bytes += counts.bytes;
    size_t at = 0;
    for (size_t k = first; k < i; ++k) {
      if (ids[at] != wanted[k].row) ++at;
      writer.add(wanted[k].batch, rows.data() + at * static_cast<size_t>(layout.row_bytes), layout.row_bytes);
    }
  }
  writer.finish();
  file.sync();
  const int64_t all_rows = pack.bytes / std::max<int64_t>(1, layout.row_bytes);
  pack.file = file.opened({0, layout.row_bytes, all_rows, layout.page});
  return pack;
}

}  // namespace nacre
