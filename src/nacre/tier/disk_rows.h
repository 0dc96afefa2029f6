// DiskRows: provides feature rows of tables that are larger than memory. One thread looks ahead and
// plans which rows are in memory when (RowPlanner); another reads the rows that are missing into
// their seats before batches are looked up (RowReader).
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "nacre/schedule/row_source.h"
#include "nacre/tier/batch_sequence.h"
#include "nacre/tier/pack_cost.h"
#include "nacre/tier/pack_file.h"
#include "nacre/tier/row_reader.h"

namespace nacre {

// Says how the memory of a source is divided.
struct TierSizes {
  int64_t seats = 0;
  int64_t rows_ahead = 0;  // the most rows that all batches in the look-ahead have together
  int depth = 8;           // number of reads that are under way at the same time
  int lead = 2;            // the value of RowPlannerOptions::lead

  // Returns the bytes of the seats, the buffers of reads and the look-ahead, which `budget` limits.
  int64_t bytes(int64_t row_bytes) const;
};
// Divides `budget` bytes for batches of at most `batch_rows` rows. The result has fewer than
// `batch_rows` seats if the budget is too small.
TierSizes divide_budget(int64_t budget, int64_t row_bytes, int64_t batch_rows);
// Returns the smallest budget that has a seat for every row of a batch.
int64_t least_budget(int64_t row_bytes, int64_t batch_rows);

// Counts what a source has done since it was made. The rows of a batch count when the batch can be
// looked up.
struct DiskCounters {
  int64_t batches = 0;
  int64_t from_memory = 0;  // rows that were in memory when their batch needed them
  int64_t from_disk = 0;    // rows that were read for their batch
  int64_t not_seated = 0;   // rows among from_disk for which there was no seat
  ReadCounts read;          // what was read for batches, from the table or from packs
  int64_t packed = 0;       // rows among from_disk that were read from packs
  ReadCounts gathered;      // what packing has read from the table
  int64_t written = 0;      // bytes of packs that were written
};

// Says whether and where the rows of groups of batches are packed (pack_cost.h).
enum class Packing : uint8_t { off, automatic, on };
struct PackOptions {
  Packing how = Packing::off;
  std::string folder;  // folder for the temporary files
  int64_t memory = 0;  // bytes of memory that packing may take
};

class DiskRows : public RowSource {
 public:
  using MakeQueue = std::function<std::unique_ptr<ReadQueue>(int depth)>;

  DiskRows(std::shared_ptr<const RowFile> file, std::unique_ptr<BatchSequence> sequence, const TierSizes& sizes,
           const PackOptions& pack = {}, const MakeQueue& make_queue = make_read_queue);
  ~DiskRows() override;
  DiskRows(const DiskRows&) = delete;
  DiskRows& operator=(const DiskRows&) = delete;

  void begin(BatchTurn first, bool more) override;
  void go_on(bool more) override;
  bool ready(BatchTurn batch) override;
  void wait(BatchTurn batch) override;
  void listen(std::function<void()> call) override;
  void look_up(BatchTurn batch, int64_t first, std::span<const NodeId> ids, void* to, int64_t stride) override;
  void release(BatchTurn batch) override;

  DiskCounters counters() const;
  // Returns how rows are read: "io_uring" or "threads".
  std::string method() const { return reader_.method(); }
  // Returns the most bytes of disk space that packs take.
  static int64_t pack_bytes(const PackOptions& pack, int64_t row_bytes);
  // Returns the bytes of the tables that planning needs besides the budget, for batches of
  // `batch_rows` rows of which `in_flight` are loaded at the same time.
  static int64_t table_bytes(const RowLayout& layout, const TierSizes& sizes, int64_t batch_rows, int in_flight);

 private:
  struct Job {
    BatchPlan plan;
    std::shared_ptr<const Pack> pack;  // null: rows are read from the table
    size_t place = 0;                  // position of the batch in its pack
    bool ready = false, over = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  int64_t number_of(BatchTurn batch) const;
  Job* job_of(int64_t number);
  void stop();
  void guarded(const std::function<void()>& work);
  void plan_batches();
  std::vector<Job> plan_group(int64_t known, bool packs);
  bool worth_packing(const std::vector<Job>& group);
  void pack_group(std::vector<Job>& group);
  void look_ahead(int64_t known);
  void read_batches();
  bool can_start() const;
  bool start_lists(Lock& lock);
  void finish_lists(const std::vector<int64_t>& done);
  void tell();
  void read_unseated(std::span<const int32_t> seats, std::span<const NodeId> ids, char* to, int64_t stride);

  std::shared_ptr<const RowFile> file_;
  std::unique_ptr<BatchSequence> sequence_;
  TierSizes sizes_;
  Seats seats_;
  RowReader reader_;  // used only by the thread that reads
  // The members from here to mutex_ are used only by the thread that plans.
  std::optional<RowPlanner> planner_;
  PackOptions pack_;
  bool packs_ = false;              // whether the next group may be packed
  std::optional<DiskRates> rates_;  // rates of the disk, measured when they are first needed
  int64_t planned_ = 0;             // number of batches that were planned
  int64_t most_ahead_ = 0;          // the most batches that may be planned and not asked for yet
  std::vector<NodeId> drawn_;       // the rows of a batch that did not fit into the look-ahead yet
  bool has_drawn_ = false;
  int64_t drawn_batches_ = 0;

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  BatchTurn begin_;       // the batch that has number 0
  int64_t known_ = 0;     // number of batches that were announced
  std::deque<Job> jobs_;  // batches that are planned and not over, in order
  int64_t over_ = 0;      // number of the first batch in jobs_; all batches before it are over
  int64_t started_ = 0;   // number of the first batch whose reads are not asked for yet
  bool stopping_ = false;
  std::exception_ptr error_;
  DiskCounters counters_;

  std::mutex listener_mutex_;  // held while the listener is called
  std::function<void()> listener_;
  std::thread planning_, reading_;
};

}  // namespace nacre
