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
  // The rows in the memory of a device. If null, the rows are gathered on the host.
  const void* resident = nullptr;

  int64_t bytes() const { return vertices * width * 4; }
};

// Holds the vertices of a batch by their kinds.
struct KindBatch {
  std::shared_ptr<const KindRows> places;  // for each kind, the rows of its vertices in v0
  std::vector<Array<NodeId>> rows;         // for each kind, rows of its table, in the same order
};

class KindTables {
 public:
  // Lists the tables of a run whose model has several kinds of vertices.
  explicit KindTables(const RunData& run);

  const std::vector<KindTable>& list() const { return list_; }
  // Returns the table whose learned rows are this parameter; null if there is none.
  KindTable* learned(const Parameter& parameter);
  // Finds the parameters of `learner` that hold learned rows. `learner` must outlive this object.
  void learn(Learner& learner);

  KindBatch split(std::span<const NodeId> vertices) const;
  // features() returns the rows that a batch reads of tables of features. Tables that a device has
  // in its memory are left out, unless `everywhere` is set. learned_rows() returns the rows that a
  // batch reads of tables of learned rows, on the host: the rows on the track (Learner) of batch
  // `number` of an epoch or, without a number, the current rows.
  std::vector<LeafValue> features(const KindBatch& batch, bool everywhere) const;
  std::vector<LeafValue> learned_rows(const KindBatch& batch, int64_t number = -1) const;
  // Returns rows of the same sizes as those that features() and learned_rows() return for the
  // batch, but with other values.
  std::vector<LeafValue> like(const KindBatch& batch) const;

  // Decides whether features lie in the memory of a device with `free` bytes. Returns a note that
  // says where they lie; nothing if all rows are learned. Learned rows always lie in the device's
  // memory.
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
