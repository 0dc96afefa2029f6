// Draws the DFG of a plan: its operations, and the kernels that compute them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nacre/base/printable.h"
#include "nacre/report/plan_pictures.h"

namespace nacre {
namespace {

constexpr size_t kMostDrawn = 1500;

using Operations = std::vector<OperationRecord>;
// Maps the number of an operation to its position in the list of operations.
using Positions = std::map<int64_t, size_t>;

Positions positions_of(const Operations& operations) {
  Positions at;
  for (size_t i = 0; i < operations.size(); ++i) at.emplace(operations[i].number, i);
  return at;
}

// Returns a link from each operation to every operation that reads its value. An operation reads
// only the values of operations before it.
std::vector<Link> links_of(const Operations& operations, const Positions& at) {
  std::vector<Link> links;
  for (size_t i = 0; i < operations.size(); ++i) {
    const std::set<int64_t> inputs(operations[i].inputs.begin(), operations[i].inputs.end());
    for (const int64_t input : inputs) {
      const auto from = at.find(input);
      if (from != at.end() && from->second < i) links.push_back({from->second, i});
    }
  }
  return links;
}

// Says which kernels compute each operation.
class Owners {
 public:
  Owners(const RunRecord& run, const Positions& at, const std::vector<Link>& links)
      : kernels_(run.operations.size()), inputs_(run.operations.size()) {
    for (const Link& link : links) inputs_[link.to].push_back(link.from);
    for (const KernelRecord& kernel : run.kernels) {
      for (const size_t i : known(kernel.nodes, at)) kernels_[i].push_back(kernel.index);
    }
    const auto listed = kernels_;
    for (const KernelRecord& kernel : run.kernels) add_on_the_way(kernel, at, listed);
  }
  const std::vector<int64_t>& of(size_t operation) const { return kernels_[operation]; }

 private:
  static std::set<size_t> known(const std::vector<int64_t>& numbers, const Positions& at) {
    std::set<size_t> found;
    for (const int64_t number : numbers) {
      if (const auto i = at.find(number); i != at.end()) found.insert(i->second);
    }
    return found;
  }

  // Adds a kernel to the operations that no kernel lists, but that the kernel must compute on the
  // way from the values that it reads to its results.
  void add_on_the_way(const KernelRecord& kernel, const Positions& at,
                      const std::vector<std::vector<int64_t>>& listed) {
    std::set<size_t> seen = known(kernel.reads, at);
    const std::set<size_t> results = known(kernel.nodes, at);
    std::vector<size_t> left(results.begin(), results.end());
    while (!left.empty()) {
      const size_t operation = left.back();
      left.pop_back();
      for (const size_t input : inputs_[operation]) {
        if (inputs_[input].empty() || !listed[input].empty() || !seen.insert(input).second) continue;
        kernels_[input].push_back(kernel.index);
        left.push_back(input);
      }
    }
  }

  std::vector<std::vector<int64_t>> kernels_;
  std::vector<std::vector<size_t>> inputs_;
};

std::string kernels_text(const std::vector<int64_t>& kernels) {
  if (kernels.empty()) return "";
  return fmt::format("{} {}", kernels.size() == 1 ? "kernel" : "kernels", fmt::join(kernels, ", "));
}

// Returns the row of every operation in the picture: below those that it reads, and for leaves
// right above their first reader.
std::vector<size_t> rows_of(size_t count, const std::vector<Link>& links) {
  std::vector<size_t> row(count, 0), first(count, count);
  std::vector<bool> leaf(count, true);
  for (const Link& link : links) {  // in the order of the readers
    row[link.to] = std::max(row[link.to], row[link.from] + 1);
    leaf[link.to] = false;
  }
  for (const Link& link : links) first[link.from] = std::min(first[link.from], row[link.to]);
  for (size_t i = 0; i < count; ++i) {
    if (leaf[i] && first[i] < count) row[i] = first[i] - 1;
  }
  return row;
}

// Holds the columns of a row that are taken.
class Row {
 public:
  // Takes the free column that is nearest to `wanted`, and returns it.
  size_t take(size_t wanted) {
    for (size_t away = 0;; ++away) {
      if (away <= wanted && taken_.insert(wanted - away).second) return wanted - away;
      if (taken_.insert(wanted + away).second) return wanted + away;
    }
  }

 private:
  std::set<size_t> taken_;
};

// Returns the places of all operations. An operation stands below its first input that is no leaf,
// and a leaf above its first reader, or in the free column that is nearest to that.
std::vector<Spot> layout(size_t count, const std::vector<Link>& links) {
  const std::vector<size_t> row = rows_of(count, links);
  std::vector<Row> rows(count + 1);
  std::vector<size_t> column(count, 0), source(count, count), reader(count, count);
  std::vector<bool> leaf(count, true);
  for (const Link& link : links) leaf[link.to] = false;
  for (const Link& link : links) {
    if (!leaf[link.from] && source[link.to] == count) source[link.to] = link.from;
    if (reader[link.from] == count) reader[link.from] = link.to;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!leaf[i]) column[i] = rows[row[i]].take(source[i] < count ? column[source[i]] : 0);
  }
  std::vector<Spot> spots;
  for (size_t i = 0; i < count; ++i) {
    if (leaf[i]) column[i] = rows[row[i]].take(reader[i] < count ? column[reader[i]] : 0);
    spots.push_back(spot_at(column[i], row[i]));
  }
  return spots;
}

// Returns the line of the DFG's text, with the kernels as its comment.
std::string line_of(const OperationRecord& operation, const std::vector<int64_t>& kernels) {
  return operation.line + (kernels.empty() ? "" : "  # " + kernels_text(kernels));
}

Box box_of(const OperationRecord& operation, const std::vector<int64_t>& kernels, const Spot& at) {
  Box box;
  box.at = at;
  box.words = line_of(operation, kernels);
  const std::string& name = operation.leaf.empty() ? operation.operation : operation.leaf;
  box.lines[0] = fmt::format("%{} {}", operation.number, name);
  box.lines[1] = operation.leaf.empty() ? operation.shape : operation.operation + " " + operation.shape;
  if (!kernels.empty()) {
    box.lines[1] += ", " + kernels_text(kernels);
    box.kernel = kernels.front();
  }
  return box;
}

}  // namespace

Picture dfg_picture(const RunRecord& run) {
  const size_t count = run.operations.size();
  if (count == 0) return {};
  if (count > kMostDrawn) {
    return {"", fmt::format("There is no picture of the DFG, because it has more than {} operations; nacre explain "
                            "--run {} lists them.",
                            kMostDrawn, run.folder)};
  }
  const Positions at = positions_of(run.operations);
  const std::vector<Link> links = links_of(run.operations, at);
  const Owners owners(run, at, links);
  const std::vector<Spot> spots = layout(count, links);
  std::vector<Box> boxes;
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    boxes.push_back(box_of(run.operations[i], owners.of(i), spots[i]));
    text += xml_text(printable(boxes.back().words)) + "\n";
  }
  Drawing drawing;
  drawing.title = run.name + ": the operations of a step (DFG)";
  drawing.note =
      "A line leads from an operation, an input or a parameter to the operations that read it. The second line of "
      "a box is the space and the shape of a row: v nodes, e edges, p parameters, by layer. The strip at the left "
      "has the colour of the kernel that computes the operation, one of eight that take turns.";
  drawing.words = fmt::format(
      "{} operations, inputs and parameters, and {} values that are read, computed by {} kernels; "
      "the text below the picture lists them",
      count, links.size(), run.kernels.size());
  drawing.below = fmt::format(
      "<details><summary>the same as text</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Text of the DFG of {}\"><pre class=\"dfg\">{}</pre></div></details>",
      xml_text(printable(run.name)), text);
  return {boxes_figure(drawing, boxes, links), ""};
}

}  // namespace nacre
