// Comma-separated tables with a line of names. Fields may be quoted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

class CsvTable {
 public:
  // Reads the names of the columns. The file may be plain or gzipped.
  CsvTable(std::shared_ptr<const MappedFile> file, char separator);

  const std::string& name() const { return file_->name(); }
  const std::vector<std::string>& columns() const { return columns_; }
  int find(const std::string& column) const;     // -1 if there is none
  int require(const std::string& column) const;  // throws UserError that lists the columns
  // Returns the first of `names` that is a column, or -1.
  int find_any(std::initializer_list<const char*> names) const;
  // Calls fn(fields, line number) for every row. A row has as many fields as there are columns.
  void for_each_row(FunctionRef<void(std::span<const std::string>, int64_t)> fn) const;

 private:
  void split(std::string_view line, int64_t number, std::vector<std::string>& fields) const;

  std::shared_ptr<const MappedFile> file_;
  char separator_;
  std::vector<std::string> columns_;
};

// Parses a text such as "0.5, 1, 2e-3" and appends its numbers to `values`. Errors name `line` of
// `where`.
void parse_vector(std::string_view text, std::vector<float>& values, const std::string& where, int64_t line);
// Returns whether `text` is 1 or True. Throws UserError unless it is one of them, or 0 or False.
bool parse_flag(std::string_view text, const std::string& where, int64_t line);

}  // namespace nacre
