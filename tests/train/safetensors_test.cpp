// Tests the weights format: another program can read its bytes, and no damage makes the reader
// crash.
#include "nacre/train/safetensors.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <map>

#include "data/fixtures.h"

namespace nacre::test {
namespace {

Tensor floats(Shape shape, const std::vector<float>& values) {
  Tensor t(DType::f32, std::move(shape));
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}

template <class T>
Tensor of(Shape shape, const std::vector<T>& values) {
  Tensor t(DTypeOf<T>::value, std::move(shape));
  std::copy(values.begin(), values.end(), t.template data<T>());
  return t;
}

NamedTensors some_tensors() {
  return {{"layer0.weight", floats({2, 3}, {1, -2.5F, 3, 4, 5e-30F, -0.0F})},
          {"ids", of<int64_t>({2}, {-1, int64_t{1} << 40})},
          {"empty", floats({0, 4}, {})},
          {"scalar", floats({}, {7})},
          {"mask", of<uint8_t>({5}, {0, 1, 2, 3, 255})},
          {"half \"quoted\" é", of<int32_t>({1, 1}, {-7})}};
}

std::string bytes_of(const Tensor& t) { return {static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes())}; }

void expect_equal(const NamedTensors& got, const NamedTensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first);
    EXPECT_EQ(got[i].second.dtype(), want[i].second.dtype());
    EXPECT_EQ(got[i].second.shape(), want[i].second.shape());
    EXPECT_EQ(bytes_of(got[i].second), bytes_of(want[i].second));
  }
}

// A parser of headers that shares nothing with the writer: strings, unsigned numbers, arrays and
// objects of one line.
class HeaderParser {
 public:
  explicit HeaderParser(const std::string& text) : text_(text) {}

  struct Entry {
    std::string dtype;
    std::vector<uint64_t> shape;
    std::vector<uint64_t> offsets;
  };

  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;

  void parse() {
    object([&](const std::string& name) {
      if (name == "__metadata__") {
        object([&](const std::string& key) { metadata[key] = string(); });
        return;
      }
      Entry& e = entries[name];
      object([&](const std::string& key) {
        if (key == "dtype") e.dtype = string();
        if (key == "shape") e.shape = numbers();
        if (key == "data_offsets") e.offsets = numbers();
      });
    });
    while (at_ < text_.size()) ASSERT_EQ(text_[at_++], ' ') << "only spaces may follow";
  }

 private:
  void expect(char c) {
    ASSERT_LT(at_, text_.size());
    ASSERT_EQ(text_[at_], c) << "at " << at_ << " of " << text_;
    ++at_;
  }
  template <class Member>
  void object(const Member& member) {
    expect('{');
    while (at_ < text_.size() && text_[at_] != '}') {
      const std::string key = string();
      expect(':');
      member(key);
      if (text_[at_] == ',') ++at_;
    }
    expect('}');
  }
  std::string string() {
    expect('"');
    std::string s;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      s += text_[at_++];
    }
    expect('"');
    return s;
  }
  std::vector<uint64_t> numbers() {
    std::vector<uint64_t> list;
    expect('[');
    while (at_ < text_.size() && text_[at_] != ']') {
      uint64_t n = 0;
      while (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)
        n = n * 10 + static_cast<uint64_t>(text_[at_++] - '0');
      list.push_back(n);
      if (text_[at_] == ',') ++at_;
    }
    expect(']');
    return list;
  }

  const std::string& text_;
  size_t at_ = 0;
};

// Returns a file with any header text and data.
std::string file_with(const std::string& header, const std::string& data) {
  return raw<uint64_t>({header.size()}) + header + data;
}

TEST(Safetensors, ComeBackAsTheyWere) {
  const TempDir dir;
  const Metadata metadata = {{"format", "pt"}, {"config", "{\"a\": [1, 2]}\n"}};
  write_safetensors(dir.path("a.safetensors"), some_tensors(), metadata);
  expect_equal(read_safetensors(dir.path("a.safetensors")), some_tensors());
  EXPECT_EQ(read_safetensors_header(dir.path("a.safetensors")).metadata, metadata);
  write_safetensors(dir.path("none.safetensors"), {}, {});
  EXPECT_TRUE(read_safetensors(dir.path("none.safetensors")).empty());
}

TEST(Safetensors, OfWhichSomeAreRead) {
  const TempDir dir;
  write_safetensors(dir.path("a"), {{"best.w", floats({2}, {1, 2})}, {"first.w", floats({3}, {3, 4, 5})}}, {});
  expect_equal(read_safetensors(dir.path("a"), "best."), {{"best.w", floats({2}, {1, 2})}});
  EXPECT_TRUE(read_safetensors(dir.path("a"), "none.").empty());
  EXPECT_EQ(read_safetensors_header(dir.path("a")).bytes, 20);
  EXPECT_EQ(read_safetensors_header(dir.path("a"), "best.").bytes, 8);
}

TEST(Safetensors, BytesAreAFunctionOfTheArguments) {
  const TempDir dir;
  write_safetensors(dir.path("a"), some_tensors(), {{"k", "v"}});
  write_safetensors(dir.path("b"), some_tensors(), {{"k", "v"}});
  EXPECT_EQ(read_bytes(dir.path("a")), read_bytes(dir.path("b")));
  // The layout is a promise to other programs: this exact file must not change.
  write_safetensors(dir.path("c"), {{"w", floats({2}, {1, 2})}}, {});
  EXPECT_EQ(read_bytes(dir.path("c")),
            file_with(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )", raw<float>({1, 2})));
}

TEST(Safetensors, LayoutIsReadableByOthers) {
  const TempDir dir;
  const NamedTensors tensors = some_tensors();
  write_safetensors(dir.path("a"), tensors, {{"nacre", "model"}});
  const std::string bytes = read_bytes(dir.path("a"));
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  ASSERT_LE(8 + length, bytes.size());
  EXPECT_EQ((8 + length) % 8, 0u) << "values are aligned";
  const std::string header = bytes.substr(8, length);
  HeaderParser parser(header);
  parser.parse();
  EXPECT_EQ(parser.metadata, (std::map<std::string, std::string>{{"nacre", "model"}}));
  ASSERT_EQ(parser.entries.size(), tensors.size());
  const std::map<DType, std::string> names = {
      {DType::f32, "F32"}, {DType::i64, "I64"}, {DType::u8, "U8"}, {DType::i32, "I32"}};
  uint64_t end = 0;
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(parser.entries.contains(name)) << name;
    const auto& e = parser.entries.at(name);
    EXPECT_EQ(e.dtype, names.at(tensor.dtype()));
    EXPECT_EQ(Shape(e.shape.begin(), e.shape.end()), tensor.shape());
    ASSERT_EQ(e.offsets.size(), 2u);
    EXPECT_EQ(e.offsets[0], end);
    end = e.offsets[1];
    EXPECT_EQ(bytes.substr(8 + length + e.offsets[0], end - e.offsets[0]), bytes_of(tensor)) << name;
  }
  EXPECT_EQ(8 + length + end, bytes.size());
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const TempDir dir;
  write_safetensors(dir.path("a"), some_tensors(), {{"k", "v"}});
  for_each_truncation(read_bytes(dir.path("a")), [&](const std::string& bytes, size_t n) {
    EXPECT_FALSE(survives([&] { read_safetensors(dir.write("cut", bytes)); }, std::to_string(n))) << n;
  });
  EXPECT_USER_ERROR(read_safetensors(dir.write("long", read_bytes(dir.path("a")) + "x")), "does not end");
}

TEST(Safetensors, FlippedBytesNeverCrash) {
  const TempDir dir;
  write_safetensors(dir.path("a"), some_tensors(), {{"k", "v"}});
  const std::string whole = read_bytes(dir.path("a"));
  constexpr unsigned char masks[] = {0x01, 0x20, 0x80, 0xFF};
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(static_cast<unsigned char>(bytes[i]) ^ masks[i % 4]);
    survives([&] { read_safetensors(dir.write("flip", bytes)); }, "byte " + std::to_string(i));
  }
}

TEST(Safetensors, LiesAreRefusedWithoutTakingMemory) {
  const TempDir dir;
  const MemoryLimit limit;
  const std::string data = raw<float>({1, 2});
  const auto refused = [&](const std::string& header, const std::string& why) {
    EXPECT_USER_ERROR(read_safetensors(dir.write("lie", file_with(header, data))), why);
  };
  refused(R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", "larger than the file");
  refused(R"({"w":{"dtype":"F32","shape":[0,9223372036854775808],"data_offsets":[0,0]}})", "larger than the file");
  refused(R"({"w":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", "larger than the file");
  refused(R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "bad shape");
  refused(R"({"w":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "bad shape");
  refused(R"({"w":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", "bad");
  refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "bad offsets");
  refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})", "bad offsets");
  refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":["0","8"]}})", "bad offsets");
  refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8,16]}})", "malformed");
  refused(R"({"w":{"dtype":"F7","shape":[2],"data_offsets":[0,8]}})", "element type");
  refused(R"({"w":{"dtype":3,"shape":[2],"data_offsets":[0,8]}})", "malformed");
  refused(R"({"w":7})", "malformed");
  refused(R"([1,2])", "not JSON");
  refused("nonsense", "not JSON");
  refused("", "not JSON");
  refused(
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"v":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      "overlap");
  refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "gap");
  refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "does not end");
  EXPECT_USER_ERROR(read_safetensors(dir.write("huge", raw<uint64_t>({~uint64_t{0}}) + "{}")), "too long");
  EXPECT_USER_ERROR(read_safetensors(dir.write("deep", file_with("{\"w\":" + std::string(1 << 20, '['), ""))),
                    "not JSON");
  EXPECT_USER_ERROR(read_safetensors(dir.path("absent")), "cannot be read");
  EXPECT_USER_ERROR(read_safetensors(dir.path("")), "cannot be read");
}

TEST(Safetensors, FailedWritesLeaveTheOldFile) {
  const TempDir dir;
  dir.write("a", "old");
  EXPECT_USER_ERROR(write_safetensors(dir.path("no/such/folder/a"), some_tensors(), {}), "cannot be written");
  EXPECT_EQ(read_bytes(dir.path("a")), "old");
  write_safetensors(dir.path("a"), {}, {});
  EXPECT_EQ(dir.files(), (std::vector<std::string>{"a"})) << "nothing temporary stays behind";
}

}  // namespace
}  // namespace nacre::test
