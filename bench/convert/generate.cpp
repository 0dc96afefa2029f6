// Writes large inputs for `nacre data convert`, in little memory:
//   c++ -O2 -std=c++20 -o generate bench/convert/generate.cpp
//   generate edges.txt 20000000 200000000      text, "src<TAB>dst" lines
//   generate edges.npy 20000000 200000000      int64 [2, E]
//   generate features.npy 20000000 256         float32 [N, F]
// Both forms hold the same edges. Sources and destinations are skewed as in social networks, and
// ids are scattered.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

uint64_t mixed(uint64_t z) {
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Squaring a uniform number makes small ranks frequent, so few vertices have many edges. The
// product scatters the ids of these vertices.
int64_t vertex(uint64_t random, int64_t nodes) {
  const double u = static_cast<double>(random >> 11) * 0x1.0p-53;
  const auto rank = static_cast<uint64_t>(u * u * static_cast<double>(nodes));
  return static_cast<int64_t>(rank * 2654435761ull % static_cast<uint64_t>(nodes));
}
int64_t source(int64_t edge, int64_t nodes) { return vertex(mixed(static_cast<uint64_t>(2 * edge)), nodes); }
int64_t target(int64_t edge, int64_t nodes) { return vertex(mixed(static_cast<uint64_t>(2 * edge + 1)), nodes); }

class Output {
 public:
  explicit Output(const char* path) : file_(std::fopen(path, "wb")) {
    if (file_ == nullptr) fail();
  }
  ~Output() {
    flush();
    if (std::fclose(file_) != 0) fail();
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  void put(const void* data, size_t bytes) {
    const auto* p = static_cast<const char*>(data);
    held_.insert(held_.end(), p, p + bytes);
    if (held_.size() > (1 << 22)) flush();
  }
  void put(int64_t number, char after) {
    char digits[24];
    char* p = digits + sizeof(digits);
    *--p = after;
    do *--p = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    put(p, static_cast<size_t>(digits + sizeof(digits) - p));
  }

 private:
  void flush() {
    if (std::fwrite(held_.data(), 1, held_.size(), file_) != held_.size()) fail();
    held_.clear();
  }
  [[noreturn]] static void fail() {
    std::perror("generate");
    std::exit(1);
  }
  std::FILE* file_;
  std::vector<char> held_;
};

void put_header(Output& out, const char* type, int64_t rows, int64_t columns) {
  std::string text = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (" +
                     std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  text.resize(117, ' ');
  text += '\n';
  out.put("\x93NUMPY\x01\x00\x76\x00", 10);
  out.put(text.data(), text.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fputs("usage: generate FILE VERTICES EDGES-OR-FEATURES\n", stderr);
    return 2;
  }
  const std::string path = arguments[1];
  const int64_t nodes = std::atoll(arguments[2]);
  const int64_t many = std::atoll(arguments[3]);
  Output out(arguments[1]);
  if (path.find("feat") != std::string::npos) {
    put_header(out, "<f4", nodes, many);
    for (int64_t i = 0; i < nodes * many; ++i) {
      const float value =
          static_cast<float>(static_cast<int64_t>(mixed(static_cast<uint64_t>(i)) >> 40)) * 0x1.0p-23F - 1;
      out.put(&value, 4);
    }
  } else if (path.ends_with(".npy")) {
    put_header(out, "<i8", 2, many);
    for (const auto& end : {source, target}) {
      for (int64_t e = 0; e < many; ++e) {
        const int64_t id = end(e, nodes);
        out.put(&id, 8);
      }
    }
  } else {
    for (int64_t e = 0; e < many; ++e) {
      out.put(source(e, nodes), '\t');
      out.put(target(e, nodes), '\n');
    }
  }
}
