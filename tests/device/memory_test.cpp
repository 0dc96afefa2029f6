// Tests of the memory of a device: copies, the cache of blocks, and what happens if there is none
// left.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "device/gpu.h"
#include "nacre/base/error.h"

namespace nacre::test {
namespace {

class MemoryTest : public GpuTest {};

TEST_F(MemoryTest, DescribesTheDevice) {
  const DeviceInfo& info = device_->info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.arch, 80);
  EXPECT_GT(info.multiprocessors, 0);
  EXPECT_GE(info.shared_bytes, 48 << 10);
  EXPECT_GT(info.l2_bytes, 0);
  EXPECT_GT(info.memory_bytes, int64_t{1} << 30);
  EXPECT_LE(info.free_bytes, info.memory_bytes);
}

TEST_F(MemoryTest, BytesComeBack) {
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{4096}, int64_t{5'000'001}}) {
    std::vector<uint8_t> sent(static_cast<size_t>(n));
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
    const DeviceArray<uint8_t> first(*device_, sent);
    const DeviceArray<uint8_t> second(*device_, n);
    device_->copy(second.data(), first.data(), n);
    device_->fill(first.data(), 0xab, n);
    EXPECT_EQ(second.values(), sent) << n;
    EXPECT_EQ(first.values(), std::vector<uint8_t>(sent.size(), 0xab)) << n;
  }
}

TEST_F(MemoryTest, AnUploadedBufferMayBeChangedAtOnce) {
  std::vector<int> numbers(1 << 20);
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::vector<int> sent = numbers;
  const DeviceArray<int> there(*device_, static_cast<int64_t>(numbers.size()));
  device_->upload(there.data(), numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(int)));
  std::fill(numbers.begin(), numbers.end(), -1);
  EXPECT_EQ(there.values(), sent);
}

TEST_F(MemoryTest, AFewBytesGoInTheirTurn) {
  std::vector<uint8_t> sent(kFewBytes);
  for (const int64_t n : {0, 1, 7, 16, 48, 63, 64}) {
    const DeviceArray<uint8_t> there(*device_, 80), before(*device_, 80);
    device_->fill(there.data(), 0xab, 80);
    device_->copy(before.data(), there.data(), 80);
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint8_t>(i * 5 + static_cast<size_t>(n));
    std::vector<uint8_t> want(80, 0xab);
    std::copy_n(sent.begin(), n, want.begin() + 5);
    device_->upload_few(there.data() + 5, sent.data(), n);
    std::fill(sent.begin(), sent.end(), uint8_t{0});  // the bytes have already been copied
    EXPECT_EQ(there.values(), want) << n;
    EXPECT_EQ(before.values(), std::vector<uint8_t>(80, 0xab)) << n;
  }
  EXPECT_THROW(device_->upload_few(nullptr, sent.data(), kFewBytes + 1), InternalError);
  // A replay would write the bytes of the recording, so upload_few() is refused.
  device_->begin_capture();
  EXPECT_THROW(device_->upload_few(nullptr, sent.data(), 1), InternalError);
  device_->end_capture();
}

TEST_F(MemoryTest, NobodyWaitsForAFewBytes) {
  constexpr int64_t kBytes = 256 << 20;
  const DeviceArray<uint8_t> big(*device_, kBytes), there(*device_, 16);
  const uint64_t words[2] = {1, 2};
  device_->upload_few(there.data(), words, sizeof words);  // this call loads the kernel
  device_->synchronize();
  const DeviceEvent start = device_->record();
  for (int i = 0; i < 40; ++i) device_->fill(big.data(), i, kBytes);
  const auto asked = std::chrono::steady_clock::now();
  device_->upload_few(there.data(), words, sizeof words);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - asked;
  EXPECT_LT(taken.count(), device_->elapsed(start, device_->record()) / 4);
}

TEST_F(MemoryTest, PinnedMemory) {
  constexpr int64_t kBytes = 1 << 16;
  auto* pinned = static_cast<uint8_t*>(device_->allocate_pinned(kBytes));
  std::memset(pinned, 7, kBytes);
  const DeviceArray<uint8_t> there(*device_, kBytes);
  device_->upload(there.data(), pinned, kBytes);
  device_->synchronize();
  std::memset(pinned, 0, kBytes);
  device_->download(pinned, there.data(), kBytes);
  for (int64_t i = 0; i < kBytes; ++i) ASSERT_EQ(pinned[i], 7) << i;
  device_->release_pinned(pinned);
  device_->release_pinned(nullptr);
}

TEST_F(MemoryTest, FreedBlocksAreUsedAgain) {
  device_->trim();
  const int64_t before = device_->used_bytes();
  device_->reset_peak();
  EXPECT_EQ(device_->peak_bytes(), before);
  void* first = device_->allocate(3'000'000);
  EXPECT_GE(device_->used_bytes(), before + 3'000'000);
  const int64_t with = device_->used_bytes();
  device_->release(first);
  EXPECT_EQ(device_->used_bytes(), before);
  EXPECT_EQ(device_->peak_bytes(), with);
  void* again = device_->allocate(2'900'000);
  EXPECT_EQ(again, first);
  device_->release(again);
  void* much_smaller = device_->allocate(1000);
  EXPECT_NE(much_smaller, first) << "a large block is not spent on a small request";
  device_->release(much_smaller);
  device_->trim();
  EXPECT_EQ(device_->used_bytes(), before);
}

TEST_F(MemoryTest, BlocksDoNotOverlapAndAreAligned) {
  std::vector<std::pair<char*, int64_t>> blocks;
  for (int64_t i = 0; i < 200; ++i) {
    const int64_t bytes = i * i * 97 % 70'000;
    blocks.emplace_back(static_cast<char*>(device_->allocate(bytes)), bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(blocks.back().first) % 256, 0U);
  }
  std::sort(blocks.begin(), blocks.end());
  for (size_t i = 1; i < blocks.size(); ++i) {
    ASSERT_GE(blocks[i].first, blocks[i - 1].first + std::max<int64_t>(blocks[i - 1].second, 1));
  }
  for (const auto& [memory, bytes] : blocks) device_->release(memory);
}

TEST_F(MemoryTest, TooMuchIsTheUsersErrorAndNothingIsLost) {
  const int64_t before = device_->used_bytes();
  try {
    device_->allocate(device_->info().memory_bytes * 2);
    FAIL() << "allocated";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("needed"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("free"), std::string::npos) << error.what();
  }
  EXPECT_THROW(device_->allocate(INT64_MAX), UserError);
  EXPECT_EQ(device_->used_bytes(), before);
  const DeviceArray<int> after(*device_, std::vector<int>{1, 2, 3});
  EXPECT_EQ(after.values(), (std::vector<int>{1, 2, 3}));
}

TEST_F(MemoryTest, CachedBlocksMakeRoomForALargeOne) {
  // Allocates half of the free memory as blocks and releases them all, then allocates three
  // quarters in one piece.
  device_->trim();
  const int64_t piece = plugin_->devices()[0].free_bytes / 8;
  std::vector<void*> pieces;
  for (int i = 0; i < 4; ++i) pieces.push_back(device_->allocate(piece));
  for (void* p : pieces) device_->release(p);
  void* large = nullptr;
  EXPECT_NO_THROW(large = device_->allocate(6 * piece));
  device_->release(large);
  device_->trim();
}

TEST_F(MemoryTest, ForeignMemoryIsNotReleased) {
  int here = 0;
  EXPECT_THROW(device_->release(&here), InternalError);
  EXPECT_NO_THROW(device_->release(nullptr));
}

}  // namespace
}  // namespace nacre::test
