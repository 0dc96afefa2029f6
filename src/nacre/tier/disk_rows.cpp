#include "nacre/tier/disk_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <system_error>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {
namespace {

// The most batches that may be planned before their reads are asked for.
constexpr int64_t kPlannedAhead = 4;
// Before a batch is planned, at most this many batches are added to the look-ahead. So the first
// batches are planned with a shorter look-ahead and do not wait until all of it is drawn.
constexpr int kDrawnPerBatch = 4;
constexpr int kMostReads = 128, kFewestReads = 8;
// The rows of this many batches at the beginning are read from the table, so that these batches do
// not wait for a pack.
constexpr int64_t kFirstInPlace = 8;
// Packing pays if it is predicted to take less than this share of the time of reading from the
// table.
constexpr double kMustSave = 0.8;
// Packing takes this many bytes for each row that is read: one RowFetch in the list of this group,
// one in that of the group before it, and one while the rows are sorted. The lists of seats of both
// groups are counted separately.
constexpr int64_t kPackedRowBytes = sizeof(RowFetch) * 3;

int64_t list_bytes(const PackOptions& pack) { return pack.memory / 4 * 3; }

// The look-ahead has at most this many uses of rows for each seat. With more uses, the planner
// would still keep the same rows.
constexpr int64_t kUsesPerSeat = 8;

int64_t seat_bytes(int64_t row_bytes) { return row_bytes + RowPlanner::table_bytes(0, 1); }

}  // namespace

int64_t TierSizes::bytes(int64_t row_bytes) const {
  return seats * seat_bytes(row_bytes) + rows_ahead * RowPlanner::kUseBytes + RowReader::buffer_bytes(depth);
}

TierSizes divide_budget(int64_t budget, int64_t row_bytes, int64_t batch_rows) {
  TierSizes sizes;
  sizes.depth =
      static_cast<int>(std::clamp<int64_t>(budget / 16 / RowReader::buffer_bytes(1), kFewestReads, kMostReads));
  const int64_t left = std::max<int64_t>(0, budget - RowReader::buffer_bytes(sizes.depth));
  const int64_t most_seats = left / seat_bytes(row_bytes);
  const int64_t wanted = std::min(left / 8 / RowPlanner::kUseBytes, most_seats * kUsesPerSeat);
  // The planner keeps uses in a ring whose size is a power of two.
  sizes.rows_ahead = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(wanted, 1 << 10))));
  sizes.rows_ahead = std::min<int64_t>(sizes.rows_ahead, int64_t{1} << 31);
  sizes.seats = std::max<int64_t>(0, left - sizes.rows_ahead * RowPlanner::kUseBytes) / seat_bytes(row_bytes);
  sizes.seats = std::min<int64_t>(sizes.seats, INT32_MAX - 1);
  sizes.lead = sizes.seats >= 4 * batch_rows ? 2 : 1;
  return sizes;
}

int64_t least_budget(int64_t row_bytes, int64_t batch_rows) {
  int64_t budget = batch_rows * seat_bytes(row_bytes);
  while (divide_budget(budget, row_bytes, batch_rows).seats < batch_rows) budget += budget / 16 + 4096;
  return budget;
}

int64_t DiskRows::pack_bytes(const PackOptions& pack, int64_t row_bytes) {
  return 3 * (list_bytes(pack) / kPackedRowBytes * row_bytes);
}

int64_t DiskRows::table_bytes(const RowLayout& layout, const TierSizes& sizes, int64_t batch_rows, int in_flight) {
  const int64_t planned = (kPlannedAhead + sizes.lead + 1) * batch_rows * static_cast<int64_t>(sizeof(RowFetch));
  const int64_t in_use = (kPlannedAhead + sizes.lead + in_flight + 2) * batch_rows * 8;
  // `read` counts the lists of the batches whose rows are read while earlier batches are looked
  // up, and the list of the batch whose vertices are being drawn.
  const int64_t read = (sizes.lead + 1) * RowReader::list_bytes(batch_rows) + batch_rows * 4;
  return RowPlanner::table_bytes(layout.rows, 0) + RowPlanner::batch_bytes(batch_rows, sizes.lead) + planned + in_use +
         read;
}

DiskRows::DiskRows(std::shared_ptr<const RowFile> file, std::unique_ptr<BatchSequence> sequence, const TierSizes& sizes,
                   const PackOptions& pack, const MakeQueue& make_queue)
    : file_(std::move(file)),
      sequence_(std::move(sequence)),
      sizes_(sizes),
      seats_{page_memory(sizes.seats * file_->layout().row_bytes), file_->layout().row_bytes},
      reader_(make_queue(sizes.depth), seats_),
      pack_(pack) {}

DiskRows::~DiskRows() { stop(); }

void DiskRows::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (planning_.joinable()) planning_.join();
  if (reading_.joinable()) reading_.join();
  reader_.stop();
}

void DiskRows::begin(BatchTurn first, bool more) {
  stop();
  planner_.emplace(file_->layout(), RowPlannerOptions{sizes_.seats, sizes_.lead, sizes_.rows_ahead});
  has_drawn_ = false;
  drawn_batches_ = planned_ = 0;
  most_ahead_ = kPlannedAhead;
  packs_ = pack_.how != Packing::off;
  sequence_->begin(first);
  begin_ = first;
  const int64_t epoch = sequence_->batches_per_epoch();
  known_ = epoch - first.index + (more ? epoch : 0);
  jobs_.clear();
  over_ = started_ = 0;
  stopping_ = false;
  error_ = nullptr;
  try {
    planning_ = std::thread([this] { guarded([this] { plan_batches(); }); });
    reading_ = std::thread([this] { guarded([this] { read_batches(); }); });
  } catch (const std::system_error& error) {
    stop();
    throw RuntimeError("threads", std::string("cannot start a thread that reads features: ") + error.what());
  }
}

void DiskRows::go_on(bool more) {
  {
    const Lock lock(mutex_);
    if (more) known_ += sequence_->batches_per_epoch();
  }
  changed_.notify_all();
}

// ---- The calls of the loader.

int64_t DiskRows::number_of(BatchTurn batch) const {
  const auto epochs = static_cast<int64_t>(batch.epoch - begin_.epoch);
  return epochs * sequence_->batches_per_epoch() + batch.index - begin_.index;
}

// Returns the job of a batch; null if the batch is not planned yet.
DiskRows::Job* DiskRows::job_of(int64_t number) {
  NACRE_CHECK(number >= over_, "the batch is over");
  const auto at = static_cast<size_t>(number - over_);
  return at < jobs_.size() ? &jobs_[at] : nullptr;
}

bool DiskRows::ready(BatchTurn batch) {
  const Lock lock(mutex_);
  const Job* job = job_of(number_of(batch));
  return error_ != nullptr || (job != nullptr && job->ready);
}

void DiskRows::wait(BatchTurn batch) {
  Lock lock(mutex_);
  const int64_t number = number_of(batch);
  changed_.wait(lock, [&] {
    const Job* job = job_of(number);
    return error_ != nullptr || (job != nullptr && job->ready);
  });
}

void DiskRows::listen(std::function<void()> call) {
  const std::lock_guard lock(listener_mutex_);
  listener_ = std::move(call);
}

void DiskRows::look_up(BatchTurn batch, int64_t first, std::span<const NodeId> ids, void* to, int64_t stride) {
  const int32_t* seats = nullptr;
  {
    const Lock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    const Job* job = job_of(number_of(batch));
    NACRE_CHECK(job != nullptr && job->ready, "the rows of the batch are not read yet");
    NACRE_CHECK(first + static_cast<int64_t>(ids.size()) <= static_cast<int64_t>(job->plan.seats.size()),
                "the batch has more rows than the look-ahead said");
    seats = job->plan.seats.data() + first;
  }
  auto* out = static_cast<char*>(to);
  constexpr size_t ahead = 8;
  for (size_t i = 0; i < ids.size(); ++i, out += stride) {
    if (i + ahead < ids.size() && seats[i + ahead] >= 0) __builtin_prefetch(seats_.at(seats[i + ahead]));
    if (seats[i] >= 0) std::memcpy(out, seats_.at(seats[i]), static_cast<size_t>(seats_.row_bytes));
  }
  read_unseated({seats, ids.size()}, ids, static_cast<char*>(to), stride);
}

// Reads the rows of a batch that have no seat to their places in `to`. They are few, because the
// budget was divided for batches of the usual size.
void DiskRows::read_unseated(std::span<const int32_t> seats, std::span<const NodeId> ids, char* to, int64_t stride) {
  std::vector<RowFetch> fetches;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (seats[i] < 0) fetches.push_back({ids[i], static_cast<int32_t>(i)});
  }
  read_rows(*file_, std::move(fetches), to, stride);
}

void DiskRows::release(BatchTurn batch) {
  {
    const Lock lock(mutex_);
    Job* job = job_of(number_of(batch));
    if (job == nullptr) return;  // the batch has no job if reading has failed
    job->over = true;
    while (!jobs_.empty() && jobs_.front().over) {
      jobs_.pop_front();
      ++over_;
    }
  }
  changed_.notify_all();
}

DiskCounters DiskRows::counters() const {
  const Lock lock(mutex_);
  return counters_;
}

void DiskRows::tell() {
  changed_.notify_all();
  const std::lock_guard lock(listener_mutex_);
  if (listener_) listener_();
}

// ---- The thread that plans and the thread that reads.

void DiskRows::guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    {
      const Lock lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    tell();
  }
}

void DiskRows::plan_batches() {
  while (true) {
    int64_t known = 0;
    {
      Lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || (planned_ < known_ && planned_ - started_ < most_ahead_); });
      if (stopping_) return;
      known = known_;
    }
    const bool packs = packs_ && planned_ >= kFirstInPlace;
    std::vector<Job> group = plan_group(known, packs);
    if (packs) pack_group(group);
    // A group is packed while the group before it is read.
    most_ahead_ = std::max(kPlannedAhead, static_cast<int64_t>(group.size()));
    {
      const Lock lock(mutex_);
      for (Job& job : group) jobs_.push_back(std::move(job));
    }
    changed_.notify_all();
  }
}

// Plans one batch or, if rows are packed, as many as packing has memory for.
std::vector<DiskRows::Job> DiskRows::plan_group(int64_t known, bool packs) {
  std::vector<Job> group;
  planner_->take_neighbours(!packs);
  // Adds batches to the group until another batch with lists as long as those of the last one would
  // exceed the memory for the lists of packed rows (list_bytes()). Without packing, the group is
  // one batch.
  int64_t bytes = 0, last = 0;
  for (; planned_ < known && (group.empty() || (packs && bytes + last <= list_bytes(pack_))); ++planned_) {
    look_ahead(known);
    group.emplace_back();
    group.back().plan = planner_->plan();
    const BatchPlan& plan = group.back().plan;
    last = static_cast<int64_t>(plan.fetches.size()) * kPackedRowBytes +
           static_cast<int64_t>(plan.seats.size() * sizeof(plan.seats[0])) * 2;
    bytes += last;
  }
  return group;
}

bool DiskRows::worth_packing(const std::vector<Job>& group) {
  if (pack_.how == Packing::on) return true;
  const RowLayout& layout = file_->layout();
  if (layout.row_bytes * 2 > layout.page) return false;
  if (!rates_) rates_ = measure_rates(*file_, pack_.folder);
  GroupReads reads;
  std::vector<int64_t> pages;
  for (const Job& job : group) {
    reads.rows += static_cast<int64_t>(job.plan.fetches.size());
    reads.pages += job.plan.pages;
    for (const RowFetch& fetch : job.plan.fetches) pages.push_back(layout.first_page(fetch.row));
  }
  std::sort(pages.begin(), pages.end());
  reads.distinct_pages = std::unique(pages.begin(), pages.end()) - pages.begin();
  return seconds_packed(reads, layout, *rates_) < kMustSave * seconds_in_place(reads, layout, *rates_);
}

// Packs the rows of a group, if that pays. If packing does not pay or fails, rows are read from the
// table from now on.
void DiskRows::pack_group(std::vector<Job>& group) {
  packs_ = worth_packing(group);
  if (!packs_) return;
  std::vector<std::span<const RowFetch>> batches;
  batches.reserve(group.size());
  for (const Job& job : group) batches.emplace_back(job.plan.fetches);
  std::shared_ptr<const Pack> pack;
  try {
    pack = std::make_shared<const Pack>(pack_rows(*file_, batches, pack_.folder, pack_.memory - list_bytes(pack_)));
  } catch (const ReadFailure&) {
    throw;
  } catch (const RuntimeError& error) {
    log_warning(std::string(error.what()) + "; features are not packed");
    packs_ = false;
    return;
  }
  for (size_t i = 0; i < group.size(); ++i) {
    group[i].pack = pack;
    group[i].place = i;
    std::vector<RowFetch>& fetches = group[i].plan.fetches;
    for (size_t k = 0; k < fetches.size(); ++k) fetches[k].row = static_cast<NodeId>(k);
  }
  const Lock lock(mutex_);
  counters_.gathered.reads += pack->read.reads;
  counters_.gathered.pages += pack->read.pages;
  counters_.gathered.bytes += pack->read.bytes;
  counters_.written += pack->bytes;
}

// Draws batches and adds them to the look-ahead, as far as they are announced (`known` of them) and
// fit into the look-ahead.
void DiskRows::look_ahead(int64_t known) {
  for (int i = 0; i < kDrawnPerBatch && (has_drawn_ || drawn_batches_ < known); ++i) {
    if (!has_drawn_) {
      sequence_->next(drawn_);
      ++drawn_batches_;
      has_drawn_ = true;
    }
    const bool fits = planner_->rows_ahead() + static_cast<int64_t>(drawn_.size()) <= sizes_.rows_ahead &&
                      planner_->ahead() < RowPlanner::kMostAhead - 1;
    if (planner_->ahead() > 0 && !fits) return;
    planner_->add(drawn_);
    has_drawn_ = false;
  }
}

bool DiskRows::can_start() const {
  const auto at = static_cast<size_t>(started_ - over_);
  return at < jobs_.size() && jobs_[at].plan.after < over_;
}

// Asks for the reads of the batches whose seats are free. Returns false if the source stops.
bool DiskRows::start_lists(Lock& lock) {
  if (!reader_.busy()) changed_.wait(lock, [this] { return stopping_ || can_start(); });
  bool any = false;
  for (; !stopping_ && can_start(); ++started_) {
    Job& job = jobs_[static_cast<size_t>(started_ - over_)];
    const RowFile& file = job.pack ? *job.pack->file : *file_;
    if (job.pack) counters_.packed += static_cast<int64_t>(job.plan.fetches.size());
    reader_.add(job.plan.number, file, job.pack ? job.pack->layouts[job.place] : file_->layout(),
                std::move(job.plan.fetches));
    any = true;
  }
  if (any) changed_.notify_all();
  return !stopping_;
}

void DiskRows::read_batches() {
  std::vector<int64_t> done;
  Lock lock(mutex_);
  while (start_lists(lock)) {
    lock.unlock();
    file_->require_unchanged();
    done.clear();
    reader_.work(done);
    lock.lock();
    finish_lists(done);
    if (done.empty()) continue;
    lock.unlock();
    tell();
    lock.lock();
  }
}

void DiskRows::finish_lists(const std::vector<int64_t>& done) {
  for (const int64_t number : done) {
    Job& job = *job_of(number);
    const BatchPlan& plan = job.plan;
    job.ready = true;
    const auto rows = static_cast<int64_t>(plan.seats.size());
    counters_.batches += 1;
    counters_.from_memory += plan.from_memory;
    counters_.from_disk += rows - plan.from_memory;
    counters_.not_seated += std::count(plan.seats.begin(), plan.seats.end(), kNoSeat);
  }
  counters_.read = reader_.counts();
}

}  // namespace nacre
