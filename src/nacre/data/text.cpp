#include "nacre/data/text.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {
namespace {

constexpr int64_t kBlock = 16 << 20;
constexpr size_t kPiece = 1 << 20;

[[noreturn]] void line_too_long(const std::string& name, int64_t at) {
  throw UserError(name + " at byte " + std::to_string(at),
                  "a line is longer than " + human_bytes(static_cast<double>(kBlock)), "check that it is a text file");
}

// Returns the number of bytes up to and including the last line end, or 0 if there is none.
int64_t whole_lines(const char* p, int64_t bytes) {
  const void* last = memrchr(p, '\n', static_cast<size_t>(bytes));
  return last == nullptr ? 0 : static_cast<const char*>(last) - p + 1;
}

}  // namespace

void throw_at_line(const std::string& file, int64_t line, const std::string& what, const std::string& remedy) {
  throw UserError(file + ":" + std::to_string(line), what, remedy);
}

TextBlocks::TextBlocks(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  if (file_->starts_with("\x1F\x8B")) {
    stream_ = inflate_stream(file_->bytes(), Wrapping::gzip, file_->name());
    // A small file needs less than a whole block, because deflate compresses at most 1032 : 1.
    buffer_ = Buffer<char>(std::min(kBlock, file_->size() * 1040));
  }
}

std::string_view TextBlocks::next() {
  std::string_view block = stream_ == nullptr ? next_mapped() : next_inflated();
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (std::exchange(first_, false) && block.starts_with(byte_order_mark)) block.remove_prefix(byte_order_mark.size());
  return block;
}

std::string_view TextBlocks::next_mapped() {
  const auto* text = reinterpret_cast<const char*>(file_->bytes().data()) + at_;
  const int64_t left = file_->size() - at_;
  int64_t bytes = std::min(left, kBlock);
  if (bytes < left) {
    bytes = whole_lines(text, bytes);
    if (bytes == 0) line_too_long(name(), at_);
  }
  at_ += bytes;
  return {text, static_cast<size_t>(bytes)};
}

std::string_view TextBlocks::next_inflated() {
  if (ended_) return {};
  const int64_t kept = kept_end_ - kept_begin_;
  std::memmove(buffer_.data(), buffer_.data() + kept_begin_, static_cast<size_t>(kept));
  const int64_t room = buffer_.size() - kept;
  const int64_t got = stream_->read(buffer_.data() + kept, room);
  const int64_t held = kept + got;
  ended_ = got < room;
  const int64_t bytes = ended_ ? held : whole_lines(buffer_.data(), held);
  if (bytes == 0 && !ended_) line_too_long(name(), at_);
  at_ += bytes;
  kept_begin_ = bytes;
  kept_end_ = held;
  return {buffer_.data(), static_cast<size_t>(bytes)};
}

std::vector<std::string_view> split_at_lines(std::string_view block) {
  std::vector<std::string_view> pieces;
  while (block.size() > kPiece) {
    const size_t end = block.find('\n', kPiece);
    if (end == std::string_view::npos) break;
    pieces.push_back(block.substr(0, end + 1));
    block.remove_prefix(end + 1);
  }
  if (!block.empty()) pieces.push_back(block);
  return pieces;
}

const char* find_line_end(const char* p, const char* end) {
  const void* found = p == end ? nullptr : std::memchr(p, '\n', static_cast<size_t>(end - p));
  return found == nullptr ? end : static_cast<const char*>(found);
}

std::vector<std::string_view> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  const char* end = line.data() + line.size();
  const char* p = skip_blanks(line.data(), end);
  while (!at_line_end(p, end)) {
    const char* begin = p;
    while (!at_line_end(p, end) && !is_blank(*p) && *p != ',' && *p != ';') ++p;
    fields.emplace_back(begin, static_cast<size_t>(p - begin));
    if (after_field(p, end) != After::field) break;
  }
  return fields;
}

std::string shown_field(const char* p, const char* end) {
  std::string text;
  for (; text.size() < 40 && !at_line_end(p, end) && !is_blank(*p) && *p != ',' && *p != ';'; ++p) {
    text += *p >= 32 && *p < 127 ? *p : '?';
  }
  return "'" + text + "'";
}

FirstLine find_first_line(std::string_view block) {
  FirstLine first;
  const char* end = block.data() + block.size();
  for (const char* p = block.data(); p != end;) {
    const char* line_end = find_line_end(p, end);
    const char* text = skip_blanks(p, line_end);
    if (text != line_end && !is_comment(text, line_end)) {
      first.line = {p, static_cast<size_t>(line_end - p)};
      first.begin = static_cast<size_t>(p - block.data());
      first.found = true;
      return first;
    }
    ++first.lines_before;
    p = line_end == end ? end : line_end + 1;
  }
  return first;
}

bool names_columns(std::string_view line) {
  const std::vector<std::string_view> fields = split_fields(line);
  if (fields.empty() || fields[0].empty()) return false;
  const char c = fields[0][0];
  return (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '"') && fields[0] != "nan" &&
         fields[0] != "NaN";
}

void for_each_word(const std::shared_ptr<const MappedFile>& file, FunctionRef<void(std::string_view, int64_t)> fn) {
  TextBlocks blocks(file);
  int64_t line = 0;
  int64_t blank_line = 0;  // blank lines are allowed at the end of the file but not between words
  for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
    const char* end = block.data() + block.size();
    for (const char* p = block.data(); p != end;) {
      ++line;
      const char* line_end = find_line_end(p, end);
      const std::vector<std::string_view> fields = split_fields({p, static_cast<size_t>(line_end - p)});
      const bool comment = is_comment(skip_blanks(p, line_end), line_end);
      p = line_end == end ? end : line_end + 1;
      if (comment) continue;
      if (fields.empty()) {
        blank_line = blank_line == 0 ? line : blank_line;
        continue;
      }
      if (blank_line != 0) throw_at_line(file->name(), blank_line, "is empty", "every node needs a line");
      if (fields.size() != 1) throw_at_line(file->name(), line, "has several columns; one word is expected");
      fn(fields[0], line);
    }
  }
}

}  // namespace nacre
