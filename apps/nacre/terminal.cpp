#include "terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace nacre::cli {
namespace {

int number_of(Stream stream) { return stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO; }

std::string styled(const char* code, const std::string& text, Stream stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  if ((no_colour != nullptr && *no_colour != '\0') || !is_terminal(stream)) return text;
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Returns the number of columns that a UTF-8 text takes if every character is one column wide.
int width_of(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string first_columns(const std::string& text, int columns) {
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!continues(text[i]) && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : "  ") + part;
  }
  return text;
}

}  // namespace

bool is_terminal(Stream stream) {
  const char* kind = std::getenv("TERM");
  if (kind != nullptr && std::strcmp(kind, "dumb") == 0) return false;
  return isatty(number_of(stream)) != 0;
}

int terminal_columns(Stream stream) {
  winsize size{};
  if (ioctl(number_of(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  constexpr int kUsual = 80;
  return kUsual;
}

std::string bold(const std::string& text, Stream stream) { return styled("1", text, stream); }
std::string red(const std::string& text, Stream stream) { return styled("1;31", text, stream); }
std::string yellow(const std::string& text, Stream stream) { return styled("33", text, stream); }

std::string fit_progress(const ProgressLine& line, int columns) {
  const std::string percent = fmt::format("{:3.0f}%", line.share * 100);
  const std::string most = joined({percent, line.note, line.left});
  // The blanks around the bar and its brackets take 5 columns.
  const int room = columns - width_of(line.title) - width_of(most) - 5;
  // The bar has one of a few lengths only, so that it does not change whenever the figures beside
  // it become longer or shorter.
  for (const int bar : {24, 16, 8}) {
    if (bar > room) continue;
    const int full = static_cast<int>(line.share * bar);
    return fmt::format("{} [{}{}]  {}", line.title, std::string(full, '#'), std::string(bar - full, '.'), most);
  }
  for (const std::string& text :
       {joined({line.title, most}), joined({line.title, percent, line.note}), joined({percent, line.note})}) {
    if (width_of(text) <= columns) return text;
  }
  return first_columns(joined({percent, line.note}), std::max(0, columns));
}

}  // namespace nacre::cli
