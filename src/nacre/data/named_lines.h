// Lines of words: text whose fields may be names with blanks or quotes, as in tables that people
// write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

// Returns what separates the fields of a line: a tab, a comma or a semicolon if the line has one,
// in this order of preference; otherwise blanks (' ').
char separator_of(std::string_view line);

// Returns the fields of a line without blanks around them. A field in double quotes may hold the
// separator; two quotes in it stand for one. Throws UserError at line `number` of `file` if a quote
// is not closed.
std::vector<std::string> named_fields(std::string_view line, char separator, const std::string& file, int64_t number);

// Calls fn(fields, line number) for every line that is neither empty nor a comment. The first such
// line decides what separates fields. The file may be plain or gzipped.
void for_each_named_line(const std::shared_ptr<const MappedFile>& file,
                         FunctionRef<void(const std::vector<std::string>&, int64_t)> fn);

// Returns the first lines that are neither empty nor comments, at most `count`.
std::vector<std::vector<std::string>> first_named_lines(const std::shared_ptr<const MappedFile>& file, size_t count);

}  // namespace nacre
