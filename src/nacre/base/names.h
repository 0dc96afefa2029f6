// Names that people type: values of options, commands, keys of files. A name is understood whatever its capitals,
// hyphens and underscores; a name that is not known gets a suggestion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nacre {

// Another word for a name: people who say "ladies" mean the sampler "layer".
struct Synonym {
  std::string said;
  std::string meant;
};

// The number of letters to change, add, leave out or swap with their neighbour.
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the name among `known` that is most like `given`, or an empty text if none is like it.
std::string nearest_name(const std::string& given, const std::vector<std::string>& known);

// Returns the remedy for a name that is not in `known`: "did you mean 'gcn'? choose gat or gcn".
std::string suggest(const std::string& given, const std::vector<std::string>& known);

// Returns the name in `known` that `given` stands for, or nothing.
std::optional<std::string> find_name(const std::string& given, const std::vector<std::string>& known,
                                     const std::vector<Synonym>& synonyms = {});

// Returns the same name, or throws UserError: "OPTION: unknown WHAT 'given' (did you mean …)".
std::string choose_name(const std::string& option, const std::string& what, const std::string& given,
                        const std::vector<std::string>& known, const std::vector<Synonym>& synonyms = {});

// Returns "a, b or c".
std::string listed(const std::vector<std::string>& names);

// Returns "1 epoch", "2 epochs", "1,000 epochs". `many` is only needed where it is more than `one` and an s.
std::string counted(int64_t count, const std::string& one, const std::string& many = "");

}  // namespace nacre
