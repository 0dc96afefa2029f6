// Lines of words: text whose fields may be names with blanks or quotes in them, as tables have that people write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

// What separates the fields of a file, by one of its lines: a tab, a comma or a semicolon where it has any, in this
// order, otherwise blanks (' ').
char separator_of(std::string_view line);

// The fields of a line, without blanks around them. A field in double quotes may hold the separator; two quotes in it
// stand for one. Throws UserError at `number` of `file` where a quote is not closed.
std::vector<std::string> named_fields(std::string_view line, char separator, const std::string& file, int64_t number);

// Calls fn(fields, line number) for every line that is neither empty nor a comment; the first one decides what
// separates fields. Plain or gzipped.
void for_each_named_line(const std::shared_ptr<const MappedFile>& file,
                         FunctionRef<void(const std::vector<std::string>&, int64_t)> fn);

// The first lines that are neither empty nor comments, at most `count`.
std::vector<std::vector<std::string>> first_named_lines(const std::shared_ptr<const MappedFile>& file, size_t count);

}  // namespace nacre
