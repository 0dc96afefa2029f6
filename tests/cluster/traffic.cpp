#include "cluster/traffic.h"

namespace nacre {

Traffic::Traffic(uint64_t seed, int size, int64_t most) : seed_(seed), size_(size), counts_(size * size) {
  Dice dice(seed);
  row_bytes_ = 1 + dice.below(70);
  pitch_ = row_bytes_ + (dice.below(2) == 0 ? 0 : dice.below(9));
  indexed_ = dice.below(3) > 0;
  const int empty = dice.below(3) == 0 ? static_cast<int>(dice.below(size)) : -1;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      const int64_t rows = dice.below(3) == 0 ? 0 : dice.below(most + 1);
      counts_[from * size + to] = from == empty || to == empty ? 0 : rows;
    }
  }
}

std::byte Traffic::value(int from, int to, int64_t row, int64_t at) const {
  return static_cast<std::byte>(1 + (seed_ * 7 + from * 31 + to * 17 + row * 5 + at) % 255);
}

template <class Byte>
RowRange<Byte> Traffic::rows_of(Block& block, int64_t rows) const {
  block.memory.assign((indexed_ ? 2 * rows : rows) * pitch_, std::byte{0});
  block.index.clear();
  for (int64_t i = 0; indexed_ && i < rows; ++i) block.index.push_back(static_cast<uint32_t>(2 * (rows - 1 - i)));
  return {block.memory.data(), rows, row_bytes_, pitch_, indexed_ ? block.index.data() : nullptr};
}

const ExchangeRequest& Traffic::prepare(int rank) {
  rank_ = rank;
  sent_.resize(size_);
  received_.resize(size_);
  for (int peer = 0; peer < size_; ++peer) {
    const int64_t out = count(rank, peer);
    const Rows rows = rows_of<std::byte>(sent_[peer], out);
    for (int64_t i = 0; i < out; ++i) {
      for (int64_t at = 0; at < row_bytes_; ++at) rows.row(i)[at] = value(rank, peer, i, at);
    }
    // Empty messages are sometimes left out.
    if (out > 0 || peer % 2 == 0) {
      request_.sends.push_back({peer, {rows.data, rows.count, rows.row_bytes, rows.pitch, rows.index}});
    }
    const int64_t in = count(peer, rank);
    const Rows target = rows_of<std::byte>(received_[peer], in);
    if (in > 0 || peer % 2 == 1) request_.receives.push_back({peer, target});
  }
  return request_;
}

void Traffic::check() const {
  int64_t written = 0, wrong = 0;
  for (const ReceiveRows& receive : request_.receives) {
    for (int64_t i = 0; i < receive.rows.count; ++i) {
      for (int64_t at = 0; at < row_bytes_; ++at) {
        wrong += receive.rows.row(i)[at] != value(receive.peer, rank_, i, at);
      }
    }
    written += receive.rows.bytes();
  }
  EXPECT_EQ(wrong, 0) << "bytes, rank " << rank_ << " of " << size_ << ", seed " << seed_;
  for (const Block& block : received_) {
    for (const std::byte b : block.memory) written -= b != std::byte{0};
  }
  EXPECT_EQ(written, 0) << "bytes between the rows, rank " << rank_ << ", seed " << seed_;
}

int64_t Traffic::bytes_sent(int rank) const {
  int64_t rows = 0;
  for (int peer = 0; peer < size_; ++peer) rows += peer == rank ? 0 : count(rank, peer);
  return rows * row_bytes_;
}

int64_t Traffic::bytes_received(int rank) const {
  int64_t rows = 0;
  for (int peer = 0; peer < size_; ++peer) rows += peer == rank ? 0 : count(peer, rank);
  return rows * row_bytes_;
}

}  // namespace nacre
