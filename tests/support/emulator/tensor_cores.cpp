// Computes products of tensor cores. The manual of the instructions says where the elements of the
// factors lie (PTX ISA: mma.m16n8k8 with .tf32, wgmma.m64nNk8, and its matrix descriptors).
#include <cstring>

#include "support/emulator/block.h"

namespace nacre::emulator {
namespace {

float cut(unsigned bits) {
  bits &= 0xffffe000U;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Reads a[16][8] from the registers of a warp's threads.
template <class RegistersOf>
void read_a(float (*a)[8], const RegistersOf& registers_of) {
  for (int lane = 0; lane < 32; ++lane) {
    const unsigned* from = registers_of(lane);
    for (int j = 0; j < 4; ++j) a[lane / 4 + j % 2 * 8][lane % 4 + j / 2 * 4] = cut(from[j]);
  }
}

float read_described(Word at, int row, int k, const char* shared) {
  unsigned bits = 0;
  std::memcpy(&bits, shared + described_place(at, row, k), sizeof bits);
  return cut(bits);
}

}  // namespace

unsigned described_place(Word descriptor, int row, int k) {
  const auto place = static_cast<unsigned>((descriptor & 0x3fff) << 4) + static_cast<unsigned>(row) * 128 +
                     static_cast<unsigned>(k) * 4;
  return place ^ (place >> 7 & 7U) << 4;
}

void multiply_warp(const std::array<Warp::Lane, 32>& lanes) {
  float a[16][8];
  float b[8][8];
  read_a(a, [&](int lane) { return lanes[static_cast<size_t>(lane)].a; });
  for (int lane = 0; lane < 32; ++lane) {
    for (int j = 0; j < 2; ++j) b[lane % 4 + j * 4][lane / 4] = cut(lanes[static_cast<size_t>(lane)].b[j]);
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int j = 0; j < 4; ++j) {
      const int row = lane / 4 + j / 2 * 8, column = lane % 4 * 2 + j % 2;
      float sum = 0;
      for (int k = 0; k < 8; ++k) sum += a[row][k] * b[k][column];
      *lanes[static_cast<size_t>(lane)].sums[j] += sum;
    }
  }
}

void multiply_four_warps(const std::array<WarpgroupProduct::Part, 128>& parts, const char* shared) {
  const int columns = parts[0].columns;
  float b[256][8];
  for (int n = 0; n < columns; ++n) {
    for (int k = 0; k < 8; ++k) b[n][k] = read_described(parts[0].b_at, n, k, shared);
  }
  for (int warp = 0; warp < 4; ++warp) {
    const WarpgroupProduct::Part* lanes = parts.data() + static_cast<size_t>(warp) * 32;
    float a[16][8];
    if (lanes[0].a != nullptr) {
      read_a(a, [&](int lane) { return lanes[lane].a; });
    } else {
      for (int row = 0; row < 16; ++row) {
        for (int k = 0; k < 8; ++k) a[row][k] = read_described(lanes[0].a_at, warp * 16 + row, k, shared);
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int j = 0; j < columns / 2; ++j) {
        const int row = lane / 4 + j % 4 / 2 * 8, column = j / 4 * 8 + lane % 4 * 2 + j % 2;
        float sum = 0;
        for (int k = 0; k < 8; ++k) sum += a[row][k] * b[column][k];
        *lanes[lane].sums[j] += sum;
      }
    }
  }
}

}  // namespace nacre::emulator
