#include "nacre/data/formats/torch_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr std::string_view kPickleName = "data.pkl";

std::vector<int64_t> whole_numbers(NpyReader array) {
  const Buffer<int64_t> values = array.to_i64(NanAs::error);
  return {values.data(), values.data() + values.size()};
}

// Returns the NumPy type of a storage, "<i8" for LongStorage, or an empty text if it cannot hold
// ids.
std::string element_type(std::string_view storage) {
  constexpr std::pair<std::string_view, const char*> types[] = {
      {"torch LongStorage", "<i8"}, {"torch IntStorage", "<i4"},  {"torch ShortStorage", "<i2"},
      {"torch CharStorage", "|i1"}, {"torch ByteStorage", "|u1"}, {"torch BoolStorage", "|b1"}};
  for (const auto& [name, type] : types) {
    if (storage == name) return type;
  }
  return "";
}

}  // namespace

TorchFile::TorchFile(const std::shared_ptr<const MappedFile>& file) : archive_(file) {
  const auto& entries = archive_.entries();
  const auto found = std::find_if(entries.begin(), entries.end(), [](const ZipEntry& e) {
    return e.name == kPickleName || e.name.ends_with("/" + std::string(kPickleName));
  });
  if (found == entries.end())
    throw UserError(name() + " at byte " + std::to_string(archive_.directory_offset()),
                    "holds no data.pkl, so torch.save did not write it");
  prefix_ = found->name.substr(0, found->name.size() - kPickleName.size());
  auto bytes = std::make_shared<std::string>(static_cast<size_t>(found->size), '\0');
  archive_.open(*found)->read(bytes->data(), found->size);
  const auto span = std::as_bytes(std::span(*bytes));
  pickle_ = std::make_unique<Pickle>(span, name() + "[" + found->name + "]", std::move(bytes));
}

std::optional<int64_t> TorchFile::integer(const std::string& key) const {
  const Pickle::Id id = pickle_->find(pickle_->root(), key);
  return id == Pickle::missing ? std::nullopt : std::optional(pickle_->integer(id));
}

std::optional<std::vector<int64_t>> TorchFile::numbers(const std::string& key) const {
  const Pickle::Id id = key.empty() ? pickle_->root() : pickle_->find(pickle_->root(), key);
  if (id == Pickle::missing) return std::nullopt;
  return array(id);
}

std::optional<std::vector<int64_t>> TorchFile::numbers(const std::string& key, const std::string& inner) const {
  if (inner.empty()) return numbers(key);
  const Pickle::Id id = pickle_->find(pickle_->root(), key);
  if (id == Pickle::missing || pickle_->kind(id) != Pickle::Kind::dict) return std::nullopt;
  const Pickle::Id found = pickle_->find(id, inner);
  return found == Pickle::missing ? std::nullopt : std::optional(array(found));
}

std::vector<std::string> TorchFile::keys(const std::string& key) const {
  std::vector<std::string> keys;
  const Pickle::Id id = pickle_->find(pickle_->root(), key);
  if (id == Pickle::missing || pickle_->kind(id) != Pickle::Kind::dict) return keys;
  const std::vector<Pickle::Id>& pairs = pickle_->items(id);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pickle_->kind(pairs[i]) == Pickle::Kind::text) keys.emplace_back(pickle_->text(pairs[i]));
  }
  return keys;
}

std::vector<int64_t> TorchFile::array(Pickle::Id id) const {
  return pickle_->is_array(id) ? whole_numbers(pickle_->array(id)) : tensor(id);
}

// Returns the values of a tensor, which is pickled as _rebuild_tensor_v2((storage, class, key,
// place, count), offset, sizes, strides, …).
std::vector<int64_t> TorchFile::tensor(Pickle::Id id) const {
  const Pickle& p = *pickle_;
  const auto refuse = [&](const std::string& what) { throw UserError(p.where(id), what); };
  if (p.callable(id) != "torch._utils _rebuild_tensor_v2") refuse("does not hold a tensor of ids");
  const std::vector<Pickle::Id>& arguments = p.items(p.arguments(id));
  if (arguments.size() < 4) refuse("holds a tensor of unknown layout");
  const std::vector<Pickle::Id>& storage = p.items(arguments[0]);
  if (storage.size() < 5 || p.items(arguments[2]).size() != 1) refuse("holds a tensor that is not a list of ids");
  const int64_t stride = p.items(arguments[3]).size() == 1 ? p.integer(p.items(arguments[3])[0]) : 0;
  const int64_t count = p.integer(p.items(arguments[2])[0]);
  const std::string type = element_type(p.text(storage[1]));
  if (type.empty() || (stride != 1 && count > 1)) refuse("holds a tensor that is not a list of ids");
  const std::string member = prefix_ + "data/" + std::string(p.text(storage[2]));
  const ZipEntry* entry = archive_.find(member);
  if (entry == nullptr) refuse("its storage '" + member.substr(0, 80) + "' is missing");
  NpyHeader header;
  header.type = parse_npy_type(type, p.where(id));
  header.count = entry->size / header.type.size;
  header.shape = {header.count};
  const int64_t offset = p.integer(arguments[1]);
  if (offset < 0 || count < 0 || offset > header.count || count > header.count - offset)
    refuse("a tensor reaches beyond its storage");
  std::vector<int64_t> all =
      whole_numbers({header, archive_.open(*entry), name() + "[" + member + "]", archive_.file()});
  return {all.begin() + offset, all.begin() + offset + count};
}

}  // namespace nacre
