#include "nacre/schedule/batch_job.h"

#include <algorithm>
#include <cstring>

#include "nacre/base/error.h"
#include "nacre/schedule/row_copy.h"
#include "nacre/tensor/narrow_floats.h"

namespace nacre {
namespace {

// One look-up subtask copies this many bytes. That takes long compared with the cost of a task and
// is short compared with a training step.
constexpr int64_t kChunkBytes = 1 << 20;
// If rows have at least this many bytes, the rows of a batch do not fit any cache.
constexpr int64_t kLongRow = 4096;
// With LoaderOptions::stream, T sends at least this many bytes at a time, except for the last bytes
// of a batch, because a smaller transfer takes as long to start as to run.
constexpr int64_t kSendBytes = int64_t{8} << 20;

}  // namespace

LoaderContext::LoaderContext(const Sampler& s, LoaderFeatures f, FeatureSink& k, const LoaderOptions& o,
                             BatchLoader::Prepare p)
    : sampler(s),
      features(std::move(f)),
      sink(k),
      options(o),
      prepare(std::move(p)),
      source(features.source),
      samples(features.samples),
      hops(s.layers()),
      row_bytes(features.sent_bytes()),
      chunk_rows(std::max<int64_t>(1, kChunkBytes / std::max<int64_t>(1, row_bytes))),
      clock(std::max(1, hops)) {}

int64_t LoaderFeatures::sent_bytes() const {
  if (stride > 0) return stride;
  const DType type = is_narrow_float(rows.dtype()) && !as_stored ? DType::f32 : rows.dtype();
  return rows.row_size() * dtype_size(type);
}

void LoaderContext::add_wanted(std::span<const NodeId> ids, std::vector<NodeId>& list) const {
  if (!features.wanted) {
    list.insert(list.end(), ids.begin(), ids.end());
    return;
  }
  const std::vector<uint8_t>& wanted = *features.wanted;
  for (const NodeId v : ids) {
    if (wanted[v] == LoaderFeatures::kWanted) list.push_back(v);
  }
}

void LoaderContext::look_up(std::span<const NodeId> ids, void* to) const {
  const Tensor& rows = features.rows;
  const int64_t stored = rows.row_size() * dtype_size(rows.dtype());
  if (stored == 0) return;
  const auto* from = static_cast<const char*>(rows.raw());
  const auto row_of = [&](NodeId v) { return from + static_cast<int64_t>(v) * stored; };
  auto* out = static_cast<char*>(to);
  const auto bytes = static_cast<size_t>(stored);
  const bool widens = is_narrow_float(rows.dtype()) && !features.as_stored;
  if (stored >= kLongRow && !widens) {
    for (const NodeId v : ids) {
      copy_past_caches(out, row_of(v), bytes);
      out += row_bytes;
    }
    finish_copies();
    return;
  }
  constexpr size_t ahead = 8;
  for (size_t i = 0; i < ids.size(); ++i, out += row_bytes) {
    if (i + ahead < ids.size()) __builtin_prefetch(row_of(ids[i + ahead]));
    if (widens) {
      widen(rows.dtype(), reinterpret_cast<const uint16_t*>(row_of(ids[i])), reinterpret_cast<float*>(out),
            rows.row_size());
    } else {
      std::memcpy(out, row_of(ids[i]), bytes);
    }
  }
}

void LoaderContext::look_up(BatchTurn batch, int64_t first, std::span<const NodeId> ids, void* to) const {
  if (source == nullptr) return look_up(ids, to);
  source->look_up(batch, first, ids, to, row_bytes);
}

BatchSampler& ChosenSampler::choose(LoaderContext& context, const SampleKey& key) {
  const auto& second = context.options.second;
  const bool beside = second && second(static_cast<int64_t>(key.batch));
  std::unique_ptr<BatchSampler>& own = beside ? second_ : usual_;
  if (!own) own = beside ? context.sampler.make_second_sampler() : context.sampler.make_batch_sampler();
  NACRE_CHECK(own != nullptr, "there is no second sampler");
  context.clock.add_drawn(beside);
  chosen_ = own.get();
  return *own;
}

void BatchJob::start(int64_t index, std::span<const NodeId> seeds, const SampleKey& key, std::vector<Subtask>& ready) {
  begin(index, key);
  drawn_ = context_.samples != nullptr;
  seeds_ = seeds;
  emit({drawn_ ? Subtask::Kind::take : Subtask::Kind::pick}, ready);
}

void BatchJob::start(int64_t index, Sample sample, const SampleKey& key, std::vector<Subtask>& ready) {
  begin(index, key);
  drawn_ = true;
  for (std::vector<NodeId>& ids : ids_) ids.clear();
  context_.add_wanted(sample.vertices.span(), ids_.front());
  batch_.sample = std::move(sample);
  know_all();
  advance(ready);
}

// Makes all rows of the batch known at once. The job of a batch that was sampled before has no hops
// to wait for, so all of its rows count as rows of hop 0.
void BatchJob::know_all() {
  open_ = static_cast<int64_t>(ids_.front().size());
  hop_end_.assign(hop_end_.size(), open_);
  hops_open_ = reindexed_ = context_.hops;
}

void BatchJob::begin(int64_t index, const SampleKey& key) {
  index_ = index;
  drawn_ = false;
  key_ = key;
  ids_.resize(context_.hops);
  hop_end_.assign(context_.hops, 0);
  known_ = 0;
  open_ = given_ = found_ = sent_ = 0;
  hops_open_ = 0;
  chunks_.clear();
  chunks_found_ = 0;
  lookups_ = 0;
  making_room_ = sending_ = has_buffer_ = released_ = false;
  rows_here_ = context_.source == nullptr || context_.source->ready({key_.epoch, index_});
  reindexed_ = 0;
  prepare_given_ = prepared_ = false;
  pending_ = 0;
  error_ = nullptr;
  batch_ = {};
  batch_.index = static_cast<int64_t>(key.batch);
}

void BatchJob::emit(Subtask task, std::vector<Subtask>& ready) {
  ready.push_back(task);
  ++pending_;
}

int BatchJob::hop_of(int64_t row) const {
  const auto at = std::upper_bound(hop_end_.begin(), hop_end_.begin() + hops_open_, row);
  return static_cast<int>(std::min<int64_t>(at - hop_end_.begin(), context_.hops - 1));
}

// ---- The functions below run subtasks.

void BatchJob::run(const Subtask& task) {
  StageClock& clock = context_.clock;
  switch (task.kind) {
    case Subtask::Kind::take: {
      const StageSpan span(clock, Stage::pick, 0);
      for (std::vector<NodeId>& ids : ids_) ids.clear();
      batch_.sample = context_.samples->take(key_, ids_.front());
      return;
    }
    case Subtask::Kind::pick:
    case Subtask::Kind::insert:
      sample(task);
      return;
    case Subtask::Kind::reindex: {
      const StageSpan span(clock, Stage::reindex, task.hop);
      sampler_.get().reindex(task.hop);
      return;
    }
    case Subtask::Kind::make_room:
      make_room(task);
      return;
    case Subtask::Kind::look_up: {
      const StageSpan span(clock, Stage::lookup, task.hop);
      const auto hop = static_cast<size_t>(task.hop);
      const int64_t first = hop == 0 ? 0 : hop_end_[hop - 1];
      const std::span<const NodeId> ids(ids_[hop]);
      context_.look_up({key_.epoch, index_}, task.begin,
                       ids.subspan(static_cast<size_t>(task.begin - first), static_cast<size_t>(task.end - task.begin)),
                       buffer_ + task.begin * context_.row_bytes);
      return;
    }
    case Subtask::Kind::send: {
      const StageSpan span(clock, Stage::transfer, task.hop);
      context_.sink.send(slot_, task.begin * context_.row_bytes, task.end * context_.row_bytes);
      return;
    }
    case Subtask::Kind::prepare:
      finish_sample();
      return;
  }
}

void BatchJob::sample(const Subtask& task) {
  const auto hop = static_cast<size_t>(task.hop);
  if (task.kind == Subtask::Kind::pick) {
    const StageSpan span(context_.clock, Stage::pick, task.hop);
    if (task.hop == 0) {
      sampler_.choose(context_, key_).begin(seeds_, key_);
    }
    sampler_.get().pick(task.hop);
    if (context_.options.relax) return;
  }
  const StageSpan span(context_.clock, Stage::insert, task.hop);
  sampler_.get().insert(task.hop);
  const auto known = sampler_.get().vertices();
  ids_[hop].clear();
  context_.add_wanted(known.subspan(known_), ids_[hop]);
  known_ = known.size();
  hop_end_[hop] = (hop == 0 ? 0 : hop_end_[hop - 1]) + static_cast<int64_t>(ids_[hop].size());
}

void BatchJob::make_room(const Subtask& task) {
  const StageSpan span(context_.clock, Stage::lookup, task.hop);
  buffer_ = static_cast<char*>(context_.sink.buffer(slot_, task.end * context_.row_bytes));
}

void BatchJob::finish_sample() {
  const StageSpan span(context_.clock, Stage::prepare, 0);
  if (!drawn_) batch_.sample = sampler_.finish();
  if (context_.prepare) batch_.prepared = context_.prepare(batch_.sample, key_);
}

// ---- The functions below find out which subtasks can run.

void BatchJob::done(const Subtask& task, std::vector<Subtask>& ready) {
  --pending_;
  if (failed()) return;
  switch (task.kind) {
    case Subtask::Kind::take:
      know_all();
      break;
    case Subtask::Kind::pick:
      if (context_.options.relax) {
        emit({Subtask::Kind::insert, task.hop}, ready);
      } else {
        after_insert(task.hop, ready);
      }
      break;
    case Subtask::Kind::insert:
      after_insert(task.hop, ready);
      break;
    case Subtask::Kind::reindex:
      after_reindex(task.hop, ready);
      break;
    case Subtask::Kind::make_room:
      making_room_ = false;
      has_buffer_ = true;
      capacity_ = task.end;
      break;
    case Subtask::Kind::look_up: {
      --lookups_;
      const auto at = std::lower_bound(chunks_.begin(), chunks_.end(), task.end,
                                       [](const Chunk& c, int64_t e) { return c.end < e; });
      at->found = true;
      for (; chunks_found_ < chunks_.size() && chunks_[chunks_found_].found; ++chunks_found_)
        found_ = chunks_[chunks_found_].end;
      break;
    }
    case Subtask::Kind::send:
      sending_ = false;
      sent_ = task.end;
      break;
    case Subtask::Kind::prepare:
      prepared_ = true;
      break;
  }
  advance(ready);
}

void BatchJob::after_insert(int hop, std::vector<Subtask>& ready) {
  if (hop + 1 < context_.hops) emit({Subtask::Kind::pick, hop + 1}, ready);
  if (context_.options.subtasks) {
    emit({Subtask::Kind::reindex, hop}, ready);
    hops_open_ = hop + 1;
    open_ = hop_end_[hop];
  } else if (hop + 1 == context_.hops) {
    emit({Subtask::Kind::reindex, 0}, ready);
  }
}

void BatchJob::after_reindex(int hop, std::vector<Subtask>& ready) {
  ++reindexed_;
  if (context_.options.subtasks) return;
  if (hop + 1 < context_.hops) {
    emit({Subtask::Kind::reindex, hop + 1}, ready);
  } else {
    hops_open_ = context_.hops;
    open_ = hop_end_.back();
  }
}

void BatchJob::advance(std::vector<Subtask>& ready) {
  // The buffer may move when it grows, so it only grows while no subtask writes to it or sends from
  // it. It gets an eighth more than needed, so that it seldom grows again: batches are of about the
  // same size.
  if (!making_room_ && hops_open_ > 0 && (given_ < open_ || !has_buffer_)) {
    if (open_ <= capacity_ && has_buffer_) {
      if (rows_here_) emit_lookups(ready);
    } else if (lookups_ == 0 && !sending_) {
      making_room_ = true;
      emit({Subtask::Kind::make_room, hops_open_ - 1, 0, open_ <= capacity_ ? capacity_ : open_ + open_ / 8}, ready);
    }
  }
  const bool all_found = all_open() && found_ == open_;
  if (context_.source != nullptr && all_found && rows_here_ && !released_) {
    released_ = true;
    context_.source->release({key_.epoch, index_});
  }
  const bool may_send = all_found || (context_.options.stream && (found_ - sent_) * context_.row_bytes >= kSendBytes);
  if (!making_room_ && !sending_ && may_send && found_ > sent_) {
    sending_ = true;
    emit({Subtask::Kind::send, hop_of(sent_), sent_, found_}, ready);
  }
  const bool sampled = reindexed_ == context_.hops && (context_.options.subtasks || all_sent());
  if (sampled && !prepare_given_) {
    prepare_given_ = true;
    emit({Subtask::Kind::prepare}, ready);
  }
}

void BatchJob::ask_for_rows(std::vector<Subtask>& ready) {
  if (rows_here_ || failed() || !context_.source->ready({key_.epoch, index_})) return;
  rows_here_ = true;
  advance(ready);
}

void BatchJob::emit_lookups(std::vector<Subtask>& ready) {
  while (given_ < open_) {
    const int hop = hop_of(given_);
    const int64_t end = std::min(given_ + context_.chunk_rows, hop_end_[hop]);
    emit({Subtask::Kind::look_up, hop, given_, end}, ready);
    chunks_.push_back({end, false});
    ++lookups_;
    given_ = end;
  }
}

void BatchJob::fail(std::exception_ptr error) {
  --pending_;
  if (!error_) error_ = std::move(error);
}

void BatchJob::fail_with(std::exception_ptr error, int64_t lost) {
  pending_ -= static_cast<decltype(pending_)>(lost);
  if (!error_) error_ = std::move(error);
}

bool BatchJob::complete() const {
  const bool looked_up = context_.source == nullptr || released_;
  return pending_ == 0 && (failed() || (prepared_ && all_sent() && looked_up));
}

Batch BatchJob::take() {
  if (error_) std::rethrow_exception(error_);
  const StageSpan span(context_.clock, Stage::transfer, context_.hops - 1);
  batch_.features = context_.sink.finish(slot_, sent_ * context_.row_bytes);
  return std::move(batch_);
}

}  // namespace nacre
