#include "nacre/data/dataset.h"

#include "nacre/base/philox.h"
#include "nacre/data/checksum.h"
#include "nacre/data/stored_rows.h"

namespace nacre {
namespace {

uint64_t hash_with(uint64_t checksum, const Tensor& tensor) {
  uint64_t h = checksum;
  for (const int64_t d : tensor.shape()) h = mix_key(h, static_cast<uint64_t>(d));
  return h;
}

uint64_t hash(const Tensor& tensor) { return hash_with(checksum64(tensor.raw(), tensor.bytes()), tensor); }

uint64_t hash_if_defined(const Tensor& tensor) { return tensor.defined() ? hash(tensor) : 0; }

template <class T>
uint64_t hash(const Array<T>& array) {
  return checksum64(array.data(), array.size() * static_cast<int64_t>(sizeof(T)));
}

uint64_t hash(const std::string& text) { return checksum64(text.data(), static_cast<int64_t>(text.size())); }

uint64_t hash(const HeldOutEdges& edges) {
  return mix_key(mix_key(hash(edges.src), hash(edges.dst)), hash(edges.type));
}

uint64_t hash_kinds(const Dataset& data) {
  uint64_t h = data.node_types.size();
  for (const std::string& type : data.node_types) h = mix_key(h, hash(type));
  for (const int64_t offset : data.node_offsets) h = mix_key(h, static_cast<uint64_t>(offset));
  for (const Relation& r : data.relations) {
    h = mix_key(h, hash(r.name));
    h = mix_key(h, static_cast<uint64_t>(r.src_type) << 32 | static_cast<uint32_t>(r.dst_type));
  }
  for (const Tensor& tensor : data.type_features) h = mix_key(h, tensor.defined() ? hash(tensor) : 0);
  return h;
}

int64_t bytes_of(const Tensor& tensor) { return tensor.defined() ? tensor.bytes() : 0; }

int64_t bytes_of(const HeldOutEdges& edges) {
  return (edges.src.size() + edges.dst.size()) * static_cast<int64_t>(sizeof(NodeId)) + edges.type.size() * 2;
}

}  // namespace

int64_t Dataset::bytes() const {
  const int64_t ids = splits.train.size() + splits.val.size() + splits.test.size();
  int64_t bytes = graph.bytes() + bytes_of(features) + bytes_of(targets) + bytes_of(val_edges) + bytes_of(test_edges) +
                  labels.size() * 4 + ids * 4 + original_ids.size() * 8;
  for (const Tensor& tensor : type_features) bytes += bytes_of(tensor);
  for (const std::string& text : node_names) bytes += static_cast<int64_t>(sizeof(std::string) + text.size());
  return bytes;
}

static uint64_t fingerprint_of(const Dataset& d, uint64_t features) {
  uint64_t h = mix_key(d.graph.fingerprint(), static_cast<uint64_t>(d.num_classes));
  h = mix_key(mix_key(h, features), hash_if_defined(d.targets));
  h = mix_key(h, hash(d.labels));
  for (const Array<NodeId>* part : {&d.splits.train, &d.splits.val, &d.splits.test}) h = mix_key(h, hash(*part));
  // Kinds and held-out edges are mixed in only if they exist, so that a set without them has the
  // same fingerprint, whatever file it was read from.
  if (!d.node_types.empty()) h = mix_key(h, hash_kinds(d));
  if (d.val_edges.size() > 0) h = mix_key(h, hash(d.val_edges));
  // The complement tells test edges apart from validation edges.
  if (d.test_edges.size() > 0) h = mix_key(h, ~hash(d.test_edges));
  return h;
}

uint64_t Dataset::fingerprint() const { return fingerprint_of(*this, hash_if_defined(features)); }

uint64_t fingerprint_with(const Dataset& dataset, const StoredRows& features) {
  return fingerprint_of(dataset, hash_with(features.checksum, dataset.features));
}

}  // namespace nacre
