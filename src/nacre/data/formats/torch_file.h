// Reads files that torch.save writes (PyTorch 1.6 and later): a ZIP archive of a pickle and raw
// storages. It understands what splits and counts need: dictionaries of integers, NumPy arrays and
// tensors, or one tensor alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nacre/data/formats/pickle.h"
#include "nacre/data/zip.h"

namespace nacre {

class TorchFile {
 public:
  explicit TorchFile(const std::shared_ptr<const MappedFile>& file);

  const std::string& name() const { return archive_.file()->name(); }
  // Returns the integer under `key`, or nothing if there is no such key.
  std::optional<int64_t> integer(const std::string& key) const;
  // Returns the whole numbers of the array or tensor under `key`, or of the only one if `key` is
  // empty.
  std::optional<std::vector<int64_t>> numbers(const std::string& key) const;
  // Returns the whole numbers under `inner` in the dictionary under `key`, or under `key` itself if
  // `inner` is empty.
  std::optional<std::vector<int64_t>> numbers(const std::string& key, const std::string& inner) const;
  // Returns the keys of the dictionary under `key`, or none if there is no such dictionary.
  std::vector<std::string> keys(const std::string& key) const;

 private:
  std::vector<int64_t> array(Pickle::Id id) const;
  std::vector<int64_t> tensor(Pickle::Id id) const;

  ZipArchive archive_;
  std::string prefix_;  // what the names of the members begin with: "archive/"
  std::unique_ptr<Pickle> pickle_;
};

}  // namespace nacre
