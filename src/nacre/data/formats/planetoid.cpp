// Planetoid's files: ind.NAME.{x,y,tx,ty,allx,ally,graph}, which are pickles of Python 2, and
// ind.NAME.test.index. Rows of allx are the first vertices, and row k of tx is vertex
// test.index[k]. Vertices between those (Citeseer has 15) have no edges, no features and no label.
// The training split is the first rows (as many as y has), the validation split the next 500.
#include <algorithm>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/clean.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/formats/pickle.h"
#include "nacre/data/formats/sparse.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npy_edges.h"

namespace nacre {
namespace {

constexpr int64_t kValidation = 500;
constexpr std::string_view kGraphEnding = ".graph";

std::vector<std::string> names_in(const DataSource& source) {
  std::vector<std::string> names;
  for (const std::string& file : source.files()) {
    if (file.starts_with("ind.") && file.ends_with(kGraphEnding) && file.size() > 4 + kGraphEnding.size())
      names.push_back(file.substr(4, file.size() - 4 - kGraphEnding.size()));
  }
  return names;
}

std::string chosen_name(const DataSource& source, const std::string& variant) {
  const std::vector<std::string> names = names_in(source);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  if (!variant.empty()) {
    if (std::find(names.begin(), names.end(), variant) != names.end()) return variant;
    throw UserError(source.path(), "has no set '" + variant + "'", "found: " + list);
  }
  if (names.size() == 1) return names[0];
  if (names.empty()) throw UserError(source.path(), "holds no ind.NAME.graph");
  throw UserError(source.path(), "holds several sets: " + list, "choose one, as in --format planetoid:" + names[0]);
}

SparseMatrix matrix_from(const Pickle& pickle) {
  const Pickle::Id root = pickle.root();
  // In protocol 1, the matrix is made by a helper function, whose first argument is the class.
  std::string name = pickle.callable(root);
  if (name.ends_with(" _reconstructor") && !pickle.items(pickle.arguments(root)).empty())
    name = pickle.text(pickle.items(pickle.arguments(root))[0]);
  if (!name.ends_with(" csr_matrix")) throw UserError(pickle.where(root), "is no pickle of a SciPy CSR matrix");
  const Pickle::Id state = pickle.state(root);
  const auto part = [&](const char* key) {
    const Pickle::Id id = pickle.find(state, key);
    if (id == Pickle::missing) throw UserError(pickle.where(root), std::string("the matrix has no ") + key);
    return id;
  };
  const std::vector<Pickle::Id>& shape = pickle.items(part("_shape"));
  if (shape.size() != 2 || pickle.integer(shape[0]) < 0 || pickle.integer(shape[1]) < 0)
    throw UserError(pickle.where(root), "the shape of the matrix is not two numbers of at least 0");
  return from_csr({pickle.array(part("indptr")), pickle.array(part("indices")), pickle.array(part("data")),
                   pickle.integer(shape[0]), pickle.integer(shape[1])});
}

// Returns the class of every vertex, or -1 for none. Each row of the pickled array belongs to a
// vertex and has a 1 in the column of its class, or only zeros.
std::vector<int32_t> classes_from(const Pickle& pickle, int64_t& columns) {
  NpyReader array = pickle.array(pickle.root());
  if (array.shape().size() != 2) {
    throw UserError(pickle.where(pickle.root()),
                    "has shape " + shape_text(array.shape()) + "; [nodes, classes] is expected");
  }
  const int64_t rows = array.shape()[0];
  columns = array.shape()[1];
  if (columns > kMaxClasses)
    throw UserError(pickle.where(pickle.root()),
                    "has " + human_count(columns) + " columns of labels, more than the 1,000,000 that are possible");
  const Buffer<int64_t> values = array.to_i64(NanAs::error);
  std::vector<int32_t> labels(values.size() == 0 ? 0 : rows, -1);
  for (int64_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    if (values[i] != 1 || labels[i / columns] >= 0)
      throw UserError(pickle.where(pickle.root()), "row " + human_count(i / columns) + " is not a one-hot label");
    labels[i / columns] = static_cast<int32_t>(i % columns);
  }
  return labels;
}

// Reads edges from a dictionary {vertex: [neighbours]}.
EdgeList edges_from(const Pickle& pickle, int64_t num_nodes) {
  EdgeList edges;
  edges.num_nodes = num_nodes;
  const auto vertex = [&](Pickle::Id id) {
    const int64_t value = pickle.integer(id);
    if (value < 0 || value >= num_nodes) {
      throw UserError(pickle.where(id), "names node " + std::to_string(value) + ", but there are only " +
                                            human_count(num_nodes) + " nodes");
    }
    return static_cast<NodeId>(value);
  };
  if (pickle.kind(pickle.root()) != Pickle::Kind::dict)
    throw UserError(pickle.where(pickle.root()), "is no pickle of a dictionary");
  const std::vector<Pickle::Id>& pairs = pickle.items(pickle.root());
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const NodeId source = vertex(pairs[i]);
    const std::vector<Pickle::Id>& neighbours = pickle.items(pairs[i + 1]);
    // A pickle may refer to one list many times. Genuine files spend at least a byte on every edge.
    if (static_cast<int64_t>(edges.src.size() + neighbours.size()) > pickle.bytes())
      throw UserError(pickle.where(pairs[i]), "claims more edges than the file has bytes");
    for (const Pickle::Id neighbour : neighbours) {
      edges.src.push_back(source);
      edges.dst.push_back(vertex(neighbour));
    }
  }
  return edges;
}

struct Parts {
  SparseMatrix allx;
  SparseMatrix tx;
  std::vector<int32_t> ally;
  std::vector<int32_t> ty;
  int64_t train = 0;
  int64_t classes = 0;
  int64_t bytes = 0;
  std::vector<int64_t> test;
  std::string index;  // name of the file with `test`
  int64_t nodes = 0;
};

Parts read_parts(const DataSource& source, const std::string& prefix) {
  Parts parts;
  const auto open = [&](const char* part) { return Pickle(source.open(prefix + part)); };
  int64_t columns[3] = {};
  const Pickle allx = open("allx");
  const Pickle tx = open("tx");
  parts.bytes = allx.bytes() + tx.bytes();
  parts.allx = matrix_from(allx);
  parts.tx = matrix_from(tx);
  parts.ally = classes_from(open("ally"), columns[0]);
  parts.ty = classes_from(open("ty"), columns[1]);
  parts.train = static_cast<int64_t>(classes_from(open("y"), columns[2]).size());
  const auto index = source.open(prefix + "test.index");
  parts.test = read_whole_numbers(index);
  const auto test_count = static_cast<int64_t>(parts.test.size());
  const auto size = [](const std::vector<int32_t>& v) { return static_cast<int64_t>(v.size()); };
  const auto require = [&](bool fits, const char* file, int64_t row, const std::string& what) {
    if (!fits) throw UserError(source.at(prefix + file) + " row " + std::to_string(row), what, "fetch the files again");
  };
  const auto rows_fit = [&](const char* file, int64_t rows, const char* other, int64_t others) {
    require(rows == others, file, std::min(rows, others),
            "it has " + human_count(rows) + " rows, but " + other + " has " + human_count(others));
  };
  require(parts.allx.columns == parts.tx.columns, "tx", 0, "it has another number of columns than allx");
  require(columns[0] == columns[1], "ty", 0, "it has another number of columns than ally");
  require(columns[0] == columns[2], "y", 0, "it has another number of columns than ally");
  rows_fit("ally", size(parts.ally), "allx", parts.allx.rows);
  rows_fit("ty", size(parts.ty), "tx", parts.tx.rows);
  rows_fit("test.index", test_count, "tx", parts.tx.rows);
  require(parts.train <= parts.allx.rows, "y", parts.train, "it has more rows than allx");
  parts.classes = columns[0];
  parts.nodes = parts.allx.rows;
  parts.index = index->name();
  const auto largest = std::max_element(parts.test.begin(), parts.test.end());
  for (int64_t i = 0; i < test_count; ++i) {
    const int64_t id = parts.test[i];
    if (id < parts.allx.rows || id > kMaxNodeId) {
      throw UserError(parts.index + " row " + std::to_string(i),
                      "names node " + std::to_string(id) + ", which is not a test node");
    }
    parts.nodes = std::max(parts.nodes, id + 1);
  }
  check_vertex_count(parts.nodes, parts.allx.rows + parts.tx.rows,
                     parts.index + " row " + std::to_string(largest - parts.test.begin()));
  return parts;
}

Tensor features_of(Parts& parts, const std::string& where) {
  SparseMatrix all = std::move(parts.allx);
  all.rows = parts.nodes;
  for (const NodeId row : parts.tx.row) all.row.push_back(static_cast<NodeId>(parts.test[row]));
  all.column.insert(all.column.end(), parts.tx.column.begin(), parts.tx.column.end());
  all.value.insert(all.value.end(), parts.tx.value.begin(), parts.tx.value.end());
  return all.dense(parts.bytes, where);
}

std::vector<NodeId> range(int64_t first, int64_t last) {
  std::vector<NodeId> ids;
  for (int64_t v = first; v < last; ++v) ids.push_back(static_cast<NodeId>(v));
  return ids;
}

std::string recognise_planetoid(const DataSource& source) {
  const std::vector<std::string> names = names_in(source);
  return names.empty() ? "" : "holds ind." + names[0] + ".graph";
}

Dataset load_planetoid(const DataSource& source, const std::string& variant, const LoadOptions&) {
  Dataset data;
  data.name = chosen_name(source, variant);
  const std::string prefix = "ind." + data.name + ".";
  Parts parts = read_parts(source, prefix);
  std::vector<int32_t> labels(parts.nodes, -1);
  std::copy(parts.ally.begin(), parts.ally.end(), labels.begin());
  for (size_t k = 0; k < parts.test.size(); ++k) labels[parts.test[k]] = parts.ty[k];
  data.labels = std::move(labels);
  data.num_classes = parts.classes;
  const int64_t val_end = std::min(parts.train + kValidation, static_cast<int64_t>(parts.ally.size()));
  data.features = features_of(parts, source.at(prefix + "allx"));
  data.origins.features = {source.at(prefix + "allx")};
  data.origins.labels = {source.at(prefix + "ally")};
  data.origins.train = {source.at(prefix + "y"), "row"};
  data.origins.val = {source.at(prefix + "ally"), "row", {}, true};
  std::vector<int64_t> order(parts.test.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return parts.test[a] < parts.test[b]; });
  data.origins.test = {parts.index, "row", std::move(order)};
  std::sort(parts.test.begin(), parts.test.end());
  data.splits.train = range(0, parts.train);
  data.splits.val = range(parts.train, val_end);
  data.splits.test = std::vector<NodeId>(parts.test.begin(), parts.test.end());
  const int64_t between = parts.nodes - static_cast<int64_t>(parts.ally.size() + parts.test.size());
  const Pickle graph(source.open(prefix + "graph"));
  const Graph stored = build_graph(edges_from(graph, parts.nodes), graph.where());
  data.graph = cleaned(make_undirected(stored), {.drop_loops = true});
  data.notes.push_back("undirected, without the self loops and repetitions among " + human_count(stored.num_edges()) +
                       " stored edges; validation takes the 500 nodes after the training ones");
  if (between > 0)
    data.notes.push_back(human_count(between) + " nodes without features or label lie between the test nodes");
  return data;
}

}  // namespace

std::vector<Format> formats_in_planetoid() {
  return {{"planetoid", "Planetoid's ind.* files", recognise_planetoid, load_planetoid, "the set, such as cora"}};
}

}  // namespace nacre
