#include "nacre/train/kind_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/tensor/narrow_floats.h"
#include "nacre/train/batch_inputs.h"
#include "nacre/train/feature_options.h"

namespace nacre {

KindTables::KindTables(const RunData& run) {
  const ModelOptions& model = run.config.model;
  int64_t first = 0;
  auto features = run.leaves.begin();
  for (const VertexKind& kind : model.kinds) {
    KindTable table;
    table.first = std::exchange(first, first + kind.vertices);
    table.vertices = kind.vertices;
    table.width = kind.features > 0 ? kind.features : model.in_dim;
    table.leaf = kind.features > 0 ? features->name : learned_rows_name(kind);
    if (kind.features > 0) table.values = (features++)->values;
    list_.push_back(std::move(table));
  }
}

KindTable* KindTables::learned(const Parameter& parameter) {
  for (KindTable& table : list_) {
    if (table.learned == &parameter) return &table;
  }
  return nullptr;
}

void KindTables::learn(Learner& learner) {
  learner_ = &learner;
  for (const Parameter& p : learner.list()) {
    for (KindTable& table : list_) {
      if (table.leaf == p.name) table.learned = &p;
    }
  }
}

size_t KindTables::kind_of(NodeId vertex) const {
  const auto after = std::upper_bound(list_.begin(), list_.end(), static_cast<int64_t>(vertex),
                                      [](int64_t v, const KindTable& table) { return v < table.first; });
  return static_cast<size_t>(after - list_.begin()) - 1;
}

KindBatch KindTables::split(std::span<const NodeId> vertices) const {
  std::vector<std::vector<NodeId>> places(list_.size()), rows(list_.size());
  for (size_t i = 0; i < vertices.size(); ++i) {
    const size_t kind = kind_of(vertices[i]);
    places[kind].push_back(static_cast<NodeId>(i));
    rows[kind].push_back(static_cast<NodeId>(vertices[i] - list_[kind].first));
  }
  KindBatch batch;
  batch.places =
      std::make_shared<const KindRows>(std::make_move_iterator(places.begin()), std::make_move_iterator(places.end()));
  batch.rows.assign(std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  return batch;
}

std::vector<LeafValue> KindTables::features(const KindBatch& batch, bool everywhere) const {
  std::vector<LeafValue> list;
  for (size_t k = 0; k < list_.size(); ++k) {
    const KindTable& table = list_[k];
    if (table.values.defined() && (everywhere || table.resident == nullptr))
      list.push_back({table.leaf, gather_rows(table.values, batch.rows[k].span())});
  }
  return list;
}

std::vector<LeafValue> KindTables::learned_rows(const KindBatch& batch, int64_t number) const {
  std::vector<LeafValue> list;
  for (size_t k = 0; k < list_.size(); ++k) {
    const Parameter* p = list_[k].learned;
    if (p == nullptr) continue;
    void* const rows = number < 0 ? learner_->parameters().data(*p) : learner_->on_track(learner_->place(*p), number);
    const Tensor all(DType::f32, p->shape, nullptr, rows);
    list.push_back({p->name, gather_rows(all, batch.rows[k].span())});
  }
  return list;
}

std::vector<LeafValue> KindTables::like(const KindBatch& batch) const {
  std::vector<LeafValue> list;
  for (size_t k = 0; k < list_.size(); ++k) {
    const KindTable& table = list_[k];
    const Shape shape = {batch.rows[k].size(), table.width};
    if (table.values.defined() && table.values.dtype() == DType::f32)
      list.push_back({table.leaf, Tensor(DType::f32, shape, nullptr, const_cast<void*>(table.values.raw()))});
    else
      list.push_back({table.leaf, Tensor::zeros(DType::f32, shape)});
  }
  return list;
}

std::string KindTables::place(const std::string& features_on, int64_t free) {
  int64_t all = 0;
  for (KindTable& table : list_) {
    if (table.learned != nullptr)
      table.resident = learner_->place(*table.learned);
    else
      all += table.bytes();
  }
  if (all == 0) {
    if (features_on == "host") refuse_learned_on_host();
    return "";
  }
  const auto text = [](int64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  if (features_on == "device" && all > free) {
    throw UserError(
        "--features-on",
        fmt::format("the features would take {}, but only {} of device memory are free", text(all), text(free)),
        "use auto or host");
  }
  const std::string what = fmt::format("features of {} kinds of nodes ({}) ", list_.size(), text(all));
  if (!all_f32() || features_on == "host" || (features_on == "auto" && all > free / 2))
    return what + "stay on the host, where the rows of each batch are gathered";
  for (KindTable& table : list_) {
    if (table.learned == nullptr) table.resident = learner_->leaf(table.leaf, table.values);
  }
  return what + "are in device memory, where rows are looked up";
}

bool KindTables::resident() const {
  return std::all_of(list_.begin(), list_.end(), [](const KindTable& t) { return t.resident != nullptr; });
}

bool KindTables::all_f32() const {
  return std::none_of(list_.begin(), list_.end(),
                      [](const KindTable& t) { return t.values.defined() && is_narrow_float(t.values.dtype()); });
}

int64_t KindTables::stored_bytes() const {
  int64_t sum = 0;
  for (const KindTable& table : list_) sum += table.values.bytes();
  return sum;
}

int64_t KindTables::bytes() const {
  int64_t sum = 0;
  for (const KindTable& table : list_) sum += table.bytes();
  return sum;
}

int64_t KindTables::bytes(std::span<const NodeId> vertices) const {
  int64_t sum = 0;
  for (const NodeId v : vertices) sum += list_[kind_of(v)].width * 4;
  return sum;
}

}  // namespace nacre
