#include "nesting.h"

#include <fmt/format.h>

#include "nacre/base/error.h"

namespace nacre::cli {
namespace {

constexpr int kDeepest = 4;

// Counts how deeply a file nests, before it is parsed, because parsers need memory for every level.
// It counts brackets and the dots of keys, outside of strings and comments.
class Depth {
 public:
  Depth(const std::string& text, bool comments) : text_(text), comments_(comments) {}

  // Returns the line with too many levels; 0 if there is none.
  int64_t too_deep_line() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        dots_ = 0;
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else if (c == '#' && comments_) {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c == '[' || c == '{') {
        dots_ = 0;
        ++open_;
      } else if (c == ']' || c == '}') {
        --open_;
      } else if (c == '=' || c == ',') {
        dots_ = 0;
      } else if (c == '.') {
        ++dots_;
      }
      if (dots_ >= kDeepest || open_ > kDeepest) return line_;
    }
    return 0;
  }

 private:
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool long_one = comments_ && text_.compare(at_, 3, three) == 0;
    at_ += long_one ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '\\' && quote == '"') {
        ++at_;
      } else if (long_one ? text_.compare(at_, 3, three) == 0 : text_[at_] == quote || text_[at_] == '\n') {
        at_ += long_one ? 2 : 0;
        return;
      }
    }
  }

  const std::string& text_;
  bool comments_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int dots_ = 0, open_ = 0;
};

}  // namespace

std::string at_line(const std::string& path, int64_t line) { return path + ", line " + std::to_string(line); }

void refuse_nesting(const std::string& path, const std::string& text, bool comments) {
  if (const int64_t line = Depth(text, comments).too_deep_line(); line > 0)
    throw UserError(at_line(path, line), fmt::format("is nested deeper than {} levels", kDeepest));
}

}  // namespace nacre::cli
