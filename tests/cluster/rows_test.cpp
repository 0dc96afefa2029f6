#include "nacre/cluster/rows.h"

#include <gtest/gtest.h>

#include <string>

#include "nacre/cluster/sums.h"

namespace nacre {
namespace {

TEST(Rows, are_gathered_and_scattered) {
  const std::string from = "aa.bb.cc.dd.";
  std::string to(9, '-');
  const uint32_t gathered[] = {3, 0, 1};
  const uint32_t scattered[] = {2, 0, 1};
  const ConstRows source{reinterpret_cast<const std::byte*>(from.data()), 3, 2, 3, gathered};
  const Rows target{reinterpret_cast<std::byte*>(to.data()), 3, 2, 3, scattered};
  copy_rows(source, target, 0, 2);
  EXPECT_EQ(to, "aa----dd-");
  copy_rows(source, target, 2, 3);
  EXPECT_EQ(to, "aa-bb-dd-");
  copy_rows({}, {}, 0, 0);
}

TEST(Rows, are_packed_and_unpacked_from_any_byte_on) {
  const std::string from = "abc.def.ghi.";
  const uint32_t reversed[] = {2, 1, 0};
  const ConstRows source{reinterpret_cast<const std::byte*>(from.data()), 3, 3, 4, reversed};
  for (int64_t cut = 0; cut <= 9; ++cut) {
    std::string packed(9, '-'), to(9, '-');
    auto* bytes = reinterpret_cast<std::byte*>(packed.data());
    pack_bytes(source, 0, cut, bytes);
    pack_bytes(source, cut, 9, bytes + cut);
    EXPECT_EQ(packed, "ghidefabc");
    const Rows target{reinterpret_cast<std::byte*>(to.data()), 3, 3, 0, reversed};
    unpack_bytes(bytes, target, 0, cut);
    unpack_bytes(bytes + cut, target, cut, 9);
    EXPECT_EQ(to, "abcdefghi");
  }
}

TEST(Sums, slices_cover_all_elements_once) {
  for (const int size : {1, 2, 3, 7}) {
    for (const int64_t count : {0, 1, 2, 6, 7, 100}) {
      int64_t at = 0, sent = 0, received = 0;
      for (int r = 0; r < size; ++r) {
        const SumSlice slice = slice_of(count, r, size);
        EXPECT_EQ(slice.begin, at);
        at = slice.end;
        sent += sum_bytes_sent(SumType::f32, count, r, size);
        received += sum_bytes_received(SumType::f32, count, r, size);
      }
      EXPECT_EQ(at, count);
      EXPECT_EQ(sent, received);
      EXPECT_EQ(sent, 2 * (size - 1) * count * 4);
    }
  }
}

}  // namespace
}  // namespace nacre
