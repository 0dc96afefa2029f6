#include "nacre/data/dataset.h"

#include "nacre/base/philox.h"
#include "nacre/data/checksum.h"

namespace nacre {
namespace {

uint64_t hash(const Tensor& tensor) {
  uint64_t h = checksum64(tensor.raw(), tensor.bytes());
  for (const int64_t d : tensor.shape()) h = mix_key(h, static_cast<uint64_t>(d));
  return h;
}

template <class T>
uint64_t hash(const Array<T>& array) {
  return checksum64(array.data(), array.size() * static_cast<int64_t>(sizeof(T)));
}

}  // namespace

int64_t Dataset::bytes() const {
  const int64_t ids = splits.train.size() + splits.val.size() + splits.test.size();
  return graph.bytes() + (features.defined() ? features.bytes() : 0) + (targets.defined() ? targets.bytes() : 0) +
         labels.size() * 4 + ids * 4;
}

uint64_t Dataset::fingerprint() const {
  uint64_t h = mix_key(graph.fingerprint(), static_cast<uint64_t>(num_classes));
  for (const Tensor* tensor : {&features, &targets}) h = mix_key(h, tensor->defined() ? hash(*tensor) : 0);
  h = mix_key(h, hash(labels));
  for (const Array<NodeId>* part : {&splits.train, &splits.val, &splits.test}) h = mix_key(h, hash(*part));
  return h;
}

}  // namespace nacre
