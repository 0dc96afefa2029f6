// Finds the name that people meant when they typed the value of an option, a command or a key of a
// file. Capitals, hyphens and underscores do not matter. For an unknown name, the error message
// suggests a similar one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nacre {

// Another word for a name: people who type "ladies" mean the sampler "layer".
struct Synonym {
  std::string said;
  std::string meant;
};

// Returns how many letters must be changed, added, left out or swapped with their neighbour to turn
// `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the name among `known` that is most like `given`, or an empty text if none is like it.
std::string nearest_name(const std::string& given, const std::vector<std::string>& known);

// Returns the remedy for a name that is not in `known`: "did you mean 'gcn'? choose gat or gcn".
std::string suggest(const std::string& given, const std::vector<std::string>& known);

// Returns the name in `known` that `given` stands for, or nothing. A synonym counts only if the
// name that it means is in `known`.
std::optional<std::string> find_name(const std::string& given, const std::vector<std::string>& known,
                                     const std::vector<Synonym>& synonyms = {});

// Returns the name that find_name() finds. Throws UserError "OPTION: unknown WHAT 'given' (did you
// mean …)" if there is none.
std::string choose_name(const std::string& option, const std::string& what, const std::string& given,
                        const std::vector<std::string>& known, const std::vector<Synonym>& synonyms = {});

// Returns "a, b or c".
std::string listed(const std::vector<std::string>& names);

// Returns "1 epoch", "2 epochs", "1,000 epochs". `many` is needed only if the plural is not `one`
// with an s.
std::string counted(int64_t count, const std::string& one, const std::string& many = "");

}  // namespace nacre
