// What torch.save writes (PyTorch 1.6 and later): a ZIP archive of a pickle and raw storages. Read as far as splits and
// counts need it: dictionaries of integers, NumPy arrays and tensors, or one tensor alone.
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
  // The integer under `key`; nothing when there is no such key.
  std::optional<int64_t> integer(const std::string& key) const;
  // The whole numbers of the array or tensor under `key`; of the only one when `key` is empty.
  std::optional<std::vector<int64_t>> numbers(const std::string& key) const;
  // The same of a dictionary under `key`; of the dictionary itself when `inner` is empty.
  std::optional<std::vector<int64_t>> numbers(const std::string& key, const std::string& inner) const;
  // The keys of the dictionary under `key`; none when there is no such thing.
  std::vector<std::string> keys(const std::string& key) const;

 private:
  std::vector<int64_t> array(Pickle::Id id) const;
  std::vector<int64_t> tensor(Pickle::Id id) const;

  ZipArchive archive_;
  std::string prefix_;  // of the members' names: "archive/"
  std::unique_ptr<Pickle> pickle_;
};

}  // namespace nacre
