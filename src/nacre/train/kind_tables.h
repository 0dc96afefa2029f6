// KindTables: what mini-batches read of vertices of several kinds. Each kind has a table of rows of
// its own, features or learned rows. A batch reads the rows of its own vertices, kind by kind, and
// the model puts them together in the order of the batch's vertices (Op::join_rows).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nacre/engine/block_runner.h"
#include "nacre/train/learner.h"
#include "nacre/train/run_data.h"

namespace nacre {

struct KindTable {
  std::string leaf;      // the input "x.<kind>", or the parameter that holds learned rows
  int64_t first = 0;     // first vertex of the kind; row i belongs to vertex first + i
  int64_t vertices = 0;  // number of rows
  int64_t width = 0;     // floats of a row
  Tensor values;         // features; undefined if rows are learned
  // Learned rows, and their gradient in the back end's memory. Null if the rows are features.
  const Parameter* learned = nullptr;
  float* gradient = nullptr;
  // The rows in the memory of a device. Null: they are gathered on the host.
  const void* resident = nullptr;

  int64_t bytes() const { return vertices * width * 4; }
};

// Holds the vertices of a batch by their kinds.
struct KindBatch {
  std::shared_ptr<const KindRows> places;  // for each kind, the rows of its vertices in v0
  std::vector<Array<NodeId>> rows;         // rows of its table, in the same order, by kind
};

class KindTables {
 public:
  // Lists the tables of a run whose model has several kinds of vertices.
  explicit KindTables(const RunData& run);

  const std::vector<KindTable>& list() const { return list_; }
  // Returns the table whose learned rows are this parameter; null if there is none.
  KindTable* learned(const Parameter& parameter);
  // Says which parameters are learned rows. `learner` must outlive this object.
  void learn(Learner& learner);

  KindBatch split(std::span<const NodeId> vertices) const;
  // Return the rows that a batch reads of tables of features, and of tables of learned rows. Rows
  // that a device has in its memory are left out, unless `everywhere` is set. Batch `number` of an
  // epoch reads learned rows on its track (Learner), on the host; without a number, they are the
  // current ones.
  std::vector<LeafValue> features(const KindBatch& batch, bool everywhere) const;
  std::vector<LeafValue> learned_rows(const KindBatch& batch, int64_t number = -1) const;
  // Returns rows of the same sizes as the batch's, with values of other vertices.
  std::vector<LeafValue> like(const KindBatch& batch) const;

  // Decides whether features lie in the memory of a device with `free` bytes. Returns a note that
  // says where they lie; nothing if all rows are learned. Learned rows are always there.
  std::string place(const std::string& features_on, int64_t free);
  // Returns whether a device has all rows in its memory.
  bool resident() const;
  // Returns whether all rows are f32.
  bool all_f32() const;
  // Return the bytes of the features as they are stored, of all rows as f32, and of the rows of a
  // batch.
  int64_t stored_bytes() const;
  int64_t bytes() const;
  int64_t bytes(std::span<const NodeId> vertices) const;

 private:
  size_t kind_of(NodeId vertex) const;

  std::vector<KindTable> list_;
  Learner* learner_ = nullptr;
};

}  // namespace nacre
