// Defines nacre._core.GraphData: data sets made from arrays or read from files, and views of their
// parts.
#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "account.h"
#include "common.h"
#include "embedded.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/data/formats/interactions.h"
#include "nacre/data/native.h"
#include "nacre/data/node_data.h"
#include "nacre/graph/costs.h"
#include "nacre/train/bill.h"

namespace nacre::python {
namespace {

constexpr const char* kHere = "nacre.Graph";

// These are the types of the arrays that the package passes, besides Ids. All arrays are
// contiguous.
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Features = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Targets = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

int64_t rows_of(size_t rows) { return static_cast<int64_t>(rows); }

// Returns the ids in the type that the graph stores. In error messages, `where` names the argument
// and `kind` what the ids are of: nodes, users or items.
std::vector<NodeId> checked(const Ids& ids, int64_t count, const std::string& where, const std::string& kind = "node") {
  return node_ids(ids, count, [&](int64_t id, size_t position) {
    throw UserError(where,
                    fmt::format("{} {} at position {} does not exist: the graph has {} {}s", kind, id, position,
                                human_count(count), kind),
                    fmt::format("number the {}s from 0, or give num_{}s", kind, kind));
  });
}

int64_t largest(const Ids& ids) {
  const int64_t* end = ids.data() + ids.shape(0);
  return ids.shape(0) == 0 ? -1 : *std::max_element(ids.data(), end);
}

// Holds the parts of a graph as the Python package passes them.
struct Parts {
  std::string name = "graph";
  std::optional<Ids> src, dst;
  int64_t num_nodes = -1;  // negative: not given; x, y or the edges then tell the number
  std::optional<Floats> edge_weight;
  std::optional<Ids> edge_type;
  std::optional<Features> x;
  std::optional<Labels> y;
  std::optional<Targets> targets;
  int64_t num_classes = 0;
  std::vector<std::string> class_names;
  std::optional<Ids> train, val, test;
  // These members are empty unless there are several kinds of nodes. Then they hold the names of
  // the kinds, the number of nodes of each kind, their features, and for each edge type the kind it
  // leads from, its name, and the kind it leads to.
  std::vector<std::string> node_types;
  std::vector<int64_t> node_counts;
  std::vector<std::optional<Features>> type_x;
  std::vector<std::tuple<int, std::string, int>> relations;
};

constexpr int64_t kMostNodes = (int64_t{1} << 32) - 1;
constexpr const char* kNumberFromZero =
    "number the nodes from 0, for example with numpy.unique(edge_index, return_inverse=True)";

// Returns the number of nodes that the edges imply: the largest id + 1.
int64_t count_ends(const Parts& p) {
  const int64_t most = std::max(largest(*p.src), largest(*p.dst));
  if (most >= kMostNodes) {
    throw UserError("edge_index", fmt::format("holds the node {}, but at most {} nodes fit", most, kMostNodes),
                    kNumberFromZero);
  }
  if (!is_plausible_vertex_count(most + 1, rows_of(p.src->shape(0)))) {
    throw UserError("edge_index",
                    fmt::format("holds the node {}, but only {} edges", most, human_count(rows_of(p.src->shape(0)))),
                    std::string(kNumberFromZero) + ", or give num_nodes");
  }
  return most + 1;
}

int64_t count_nodes(const Parts& p) {
  if (p.num_nodes >= 0) return p.num_nodes;
  if (p.x) return rows_of(p.x->shape(0));
  if (p.y) return rows_of(p.y->shape(0));
  if (p.targets) return rows_of(p.targets->shape(0));
  return count_ends(p);
}

// Throws UserError if the graph does not fit into memory while it is made.
void require_room(const GraphCounts& counts) {
  Bill bill;
  bill.remedy = "number the nodes from 0, and do not give a larger num_nodes than there are nodes";
  bill.phases.push_back({"making the graph",
                         {{"the program", std::max(program_bytes(), held_memory())},
                          {fmt::format("{} nodes and {} edges", human_count(counts.nodes), human_count(counts.edges)),
                           build_graph_bytes(counts)}}});
  require_fit(bill, host_bound({}, false));
}

void require_size(const std::string& where, int64_t given, int64_t wanted, const char* of) {
  if (given == wanted) return;
  throw UserError(where,
                  fmt::format("has {} values, but the graph has {} {}", human_count(given), human_count(wanted), of),
                  fmt::format("give one for each of the {}", of));
}

Graph make_graph(const Parts& p, int64_t num_nodes) {
  EdgeList edges;
  edges.num_nodes = num_nodes;
  const int64_t count = rows_of(p.src->shape(0));
  require_size("edge_index", rows_of(p.dst->shape(0)), count, "edges");
  edges.src = checked(*p.src, num_nodes, "edge_index[0]");
  edges.dst = checked(*p.dst, num_nodes, "edge_index[1]");
  if (p.edge_weight) {
    require_size("edge_weight", rows_of(p.edge_weight->shape(0)), count, "edges");
    edges.weight.assign(p.edge_weight->data(), p.edge_weight->data() + count);
  }
  if (p.edge_type) {
    require_size("edge_type", rows_of(p.edge_type->shape(0)), count, "edges");
    constexpr int64_t kMost = std::numeric_limits<uint16_t>::max();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t type = p.edge_type->data()[i];
      if (type < 0 || type > kMost)
        throw UserError("edge_type", fmt::format("{} at position {} is not a type from 0 to {}", type, i, kMost));
      edges.type.push_back(static_cast<uint16_t>(type));
    }
    // The number of types counts all relations, because the last ones may have no edges.
    edges.num_types = static_cast<int>(std::max({largest(*p.edge_type) + 1, std::ssize(p.relations), int64_t{1}}));
  }
  return build_graph(std::move(edges), kHere);
}

void take_labels(const Parts& p, Dataset& data) {
  if (p.y) {
    require_size("y", rows_of(p.y->shape(0)), data.num_nodes(), "nodes");
    const int32_t* labels = p.y->data();
    const int64_t count = data.num_nodes();
    for (int64_t i = 0; i < count; ++i) {
      if (labels[i] < -1)
        throw UserError("y", fmt::format("{} is not a class", labels[i]), "number the classes from 0; -1 = unlabelled");
    }
    data.num_classes = count == 0 ? 0 : static_cast<int64_t>(*std::max_element(labels, labels + count)) + 1;
    data.labels = Array<int32_t>(keep_array(*p.y), labels, count);
  }
  if (p.targets) {
    require_size("y", rows_of(p.targets->shape(0)), data.num_nodes(), "nodes");
    const Shape shape = {data.num_nodes(), rows_of(p.targets->shape(1))};
    data.targets = Tensor(DType::u8, shape, keep_array(*p.targets), const_cast<uint8_t*>(p.targets->data()));
    data.num_classes = shape[1];
  }
  if (p.num_classes > 0) {
    if (p.num_classes < data.num_classes)
      throw UserError("num_classes", fmt::format("is {}, but y has {} classes", p.num_classes, data.num_classes));
    data.num_classes = p.num_classes;
  }
  data.class_names = p.class_names;
}

Tensor features_of(const Features& x, int64_t rows, const std::string& where) {
  require_size(where, rows_of(x.shape(0)), rows, "nodes");
  const Shape shape = {rows, rows_of(x.shape(1))};
  if (shape[0] == 0 || shape[1] == 0) return {};
  return {DType::f32, shape, keep_array(x), const_cast<float*>(x.data())};
}

void take_kinds(const Parts& p, Dataset& data) {
  if (p.node_types.empty()) return;
  data.node_types = p.node_types;
  data.node_offsets = {0};
  for (const int64_t count : p.node_counts) data.node_offsets.push_back(data.node_offsets.back() + count);
  for (const auto& [from, name, to] : p.relations) data.relations.push_back({from, name, to});
  for (size_t k = 0; k < p.node_types.size(); ++k) {
    data.type_features.push_back(p.type_x[k] ? features_of(*p.type_x[k], p.node_counts[k], "x of " + p.node_types[k])
                                             : Tensor());
  }
}

GraphData from_parts(const Parts& p, const std::vector<std::string>& words) {
  refuse_after_fork();
  const cli::DataRequest request(words, cli::DataAre::in_memory);
  const int64_t num_nodes = count_nodes(p);
  if (num_nodes > kMostNodes) throw UserError("num_nodes", "must be less than 2^32");
  require_room({num_nodes, rows_of(p.src->shape(0)), p.edge_weight.has_value(), p.edge_type.has_value()});
  GraphData made;
  made.in_memory = true;
  made.spec = "memory:" + p.name;
  made.load = request.config.load;
  Dataset& data = made.dataset;
  data.name = p.name;
  if (p.x) data.features = features_of(*p.x, num_nodes, "x");
  take_kinds(p, data);
  const auto ids = [&](const std::optional<Ids>& given, const char* where) {
    return given ? Array<NodeId>(checked(*given, num_nodes, where)) : Array<NodeId>();
  };
  data.splits.train = ids(p.train, "train");
  data.splits.val = ids(p.val, "val");
  data.splits.test = ids(p.test, "test");
  {
    const GilRelease release;
    data.graph = make_graph(p, num_nodes);
  }
  take_labels(p, data);
  const GilRelease release;
  validate(data, kHere);
  data = complete_dataset(std::move(data), kHere, made.load);
  return made;
}

// Returns pairs of users and items in the type that data sets store.
Interactions interactions_of(const Ids& users, const Ids& items, const std::string& where) {
  require_size(where, rows_of(items.shape(0)), rows_of(users.shape(0)), "pairs");
  Interactions pairs;
  pairs.num_users = largest(users) + 1;
  pairs.num_items = largest(items) + 1;
  if (std::max(pairs.num_users, pairs.num_items) > kMostNodes)
    throw UserError(where, "holds a number that is too large", "number users and items from 0");
  pairs.user = checked(users, pairs.num_users, where + "[0]", "user");
  pairs.item = checked(items, pairs.num_items, where + "[1]", "item");
  return pairs;
}

// Throws UserError if the numbers of users and items that pairs imply are out of all proportion to
// the pairs.
void check_sides(const std::map<std::string, Interactions>& parts, bool users_stated, bool items_stated) {
  int64_t users = 0, items = 0, pairs = 0;
  for (const auto& [part, of_part] : parts) {
    pairs += std::ssize(of_part.user);
    users = std::max(users, of_part.num_users);
    items = std::max(items, of_part.num_items);
  }
  if (!users_stated && !is_plausible_vertex_count(users, pairs))
    throw UserError("train",
                    fmt::format("names the user {}, but there are only {} pairs", users - 1, human_count(pairs)),
                    "number the users from 0, or give num_users");
  if (!items_stated && !is_plausible_vertex_count(items, pairs))
    throw UserError("train",
                    fmt::format("names the item {}, but there are only {} pairs", items - 1, human_count(pairs)),
                    "number the items from 0, or give num_items");
}

// Returns the data of a recommender. Pairs for validation are held out like those for testing.
GraphData from_pairs(const std::map<std::string, std::pair<Ids, Ids>>& pairs, int64_t num_users, int64_t num_items,
                     const std::string& name) {
  refuse_after_fork();
  std::map<std::string, Interactions> parts;
  int64_t users = std::max<int64_t>(0, num_users), items = std::max<int64_t>(0, num_items);
  for (const auto& [part, ends] : pairs) {
    parts[part] = interactions_of(ends.first, ends.second, part);
    users = std::max(users, parts[part].num_users);
    items = std::max(items, parts[part].num_items);
  }
  if (num_users >= 0 && users > num_users)
    throw UserError("num_users", fmt::format("is {}, but the pairs name the user {}", num_users, users - 1));
  if (num_items >= 0 && items > num_items)
    throw UserError("num_items", fmt::format("is {}, but the pairs name the item {}", num_items, items - 1));
  check_sides(parts, num_users >= 0, num_items >= 0);
  int64_t edges = 0;
  for (const auto& [part, of_part] : parts) edges += 2 * std::ssize(of_part.user);
  require_room({users + items, edges, false, true});
  Interactions& train = parts["train"];
  train.num_users = users;
  train.num_items = items;
  Interactions val = std::move(parts["val"]);
  const GilRelease release;
  GraphData made;
  made.in_memory = true;
  made.spec = "memory:" + name;
  Dataset& data = made.dataset;
  data = interactions_dataset(std::move(train), std::move(parts["test"]), "train", true);
  data.name = name;
  for (NodeId& item : val.item) item = static_cast<NodeId>(item + users);
  data.val_edges = {std::move(val.user), std::move(val.item), {}};
  validate(data, kHere);
  data = complete_dataset(std::move(data), kHere, made.load);
  return made;
}

GraphData load(const std::vector<std::string>& words) {
  refuse_after_fork();
  const cli::DataRequest request(words, cli::DataAre::to_be_read);
  GraphData read;
  read.spec = request.config.data;
  read.load = request.config.load;
  const GilRelease release;
  cli::require_room_to_read(request.config);
  read.dataset = load_dataset(read.spec, read.load);
  return read;
}

// Returns the graph that GraphData.save() has written to the file `path`, with its name `name`. The
// file may be removed after this call.
GraphData restored(const std::string& path, const std::string& name) {
  refuse_after_fork();
  const GilRelease release;
  GraphData read;
  read.in_memory = true;
  read.spec = "memory:" + name;
  read.dataset = load_dataset(path, {});
  read.dataset.name = name;
  return read;
}

// Returns the two ends of every edge, [2, num_edges], in the order in which the graph stores edges.
nb::object edge_index(const GraphData& g) {
  const Graph& graph = g.dataset.graph;
  const int64_t count = graph.num_edges();
  auto values = std::make_unique<int64_t[]>(static_cast<size_t>(2 * count));
  {
    // Make this copy without other threads, so that it also works in a process that was forked.
    const GilRelease release;
    std::copy_n(graph.col_idx().data(), count, values.get());
    int64_t* dst = values.get() + count;
    for (int64_t v = 0; v < graph.num_dst(); ++v) std::fill(dst + graph.row_ptr()[v], dst + graph.row_ptr()[v + 1], v);
  }
  const nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<int64_t*>(p); });
  const size_t shape[] = {2, static_cast<size_t>(count)};
  int64_t* memory = values.release();
  return nb::cast(nb::ndarray<nb::numpy, int64_t>(memory, 2, shape, owner));
}

template <class T>
nb::object tensor_view(const Tensor& tensor) {
  if (!tensor.defined()) return nb::none();
  std::vector<size_t> shape;
  for (const int64_t n : tensor.shape()) shape.push_back(static_cast<size_t>(n));
  return view(tensor.data<T>(), shape, std::make_shared<Tensor>(tensor));
}

template <class T>
nb::object view_or_none(const Array<T>& array) {
  return array.empty() ? nb::none() : view(array);
}

}  // namespace

void add_data(nb::module_& m) {
  nb::class_<Parts>(m, "Parts", "The arrays that a graph is made from.")
      .def(nb::init<>())
      .def_rw("name", &Parts::name)
      .def_rw("src", &Parts::src, nb::arg().none())
      .def_rw("dst", &Parts::dst, nb::arg().none())
      .def_rw("num_nodes", &Parts::num_nodes)
      .def_rw("edge_weight", &Parts::edge_weight, nb::arg().none())
      .def_rw("edge_type", &Parts::edge_type, nb::arg().none())
      .def_rw("x", &Parts::x, nb::arg().none())
      .def_rw("y", &Parts::y, nb::arg().none())
      .def_rw("targets", &Parts::targets, nb::arg().none())
      .def_rw("num_classes", &Parts::num_classes)
      .def_rw("class_names", &Parts::class_names)
      .def_rw("train", &Parts::train, nb::arg().none())
      .def_rw("val", &Parts::val, nb::arg().none())
      .def_rw("test", &Parts::test, nb::arg().none())
      .def_rw("node_types", &Parts::node_types)
      .def_rw("node_counts", &Parts::node_counts)
      .def_rw("type_x", &Parts::type_x)
      .def_rw("relations", &Parts::relations);

  nb::class_<GraphData>(m, "GraphData", "A data set: a graph with features, labels and splits.")
      .def_prop_ro("name", [](const GraphData& g) { return g.dataset.name; })
      .def_ro("spec", &GraphData::spec)
      .def_ro("in_memory", &GraphData::in_memory)
      .def_prop_ro("num_nodes", [](const GraphData& g) { return g.dataset.num_nodes(); })
      .def_prop_ro("num_edges", [](const GraphData& g) { return g.dataset.graph.num_edges(); })
      .def_prop_ro("num_features", [](const GraphData& g) { return g.dataset.num_features(); })
      .def_prop_ro("num_classes", [](const GraphData& g) { return g.dataset.num_classes; })
      .def_prop_ro("num_edge_types", [](const GraphData& g) { return g.dataset.graph.num_edge_types(); })
      .def_prop_ro("class_names", [](const GraphData& g) { return g.dataset.class_names; })
      .def_prop_ro("node_types", [](const GraphData& g) { return g.dataset.node_types; })
      .def_prop_ro("node_offsets", [](const GraphData& g) { return g.dataset.node_offsets; })
      .def_prop_ro("relations",
                   [](const GraphData& g) {
                     std::vector<std::tuple<int, std::string, int>> all;
                     for (const Relation& r : g.dataset.relations) all.emplace_back(r.src_type, r.name, r.dst_type);
                     return all;
                   })
      .def_prop_ro("type_x",
                   [](const GraphData& g) {
                     nb::list all;
                     for (const Tensor& x : g.dataset.type_features) all.append(tensor_view<float>(x));
                     return all;
                   })
      .def_prop_ro("num_held_out",
                   [](const GraphData& g) { return g.dataset.test_edges.size() + g.dataset.val_edges.size(); })
      .def_prop_ro("notes", [](const GraphData& g) { return g.dataset.notes; })
      .def_prop_ro("node_names", [](const GraphData& g) { return g.dataset.node_names; })
      .def_prop_ro("original_ids", [](const GraphData& g) { return view_or_none(g.dataset.original_ids); })
      .def_prop_ro("x", [](const GraphData& g) { return tensor_view<float>(g.dataset.features); })
      .def_prop_ro("y",
                   [](const GraphData& g) {
                     return g.dataset.multilabel() ? tensor_view<uint8_t>(g.dataset.targets)
                                                   : view_or_none(g.dataset.labels);
                   })
      .def_prop_ro("train", [](const GraphData& g) { return view(g.dataset.splits.train); })
      .def_prop_ro("val", [](const GraphData& g) { return view(g.dataset.splits.val); })
      .def_prop_ro("test", [](const GraphData& g) { return view(g.dataset.splits.test); })
      .def_prop_ro("edge_index", &edge_index)
      .def_prop_ro("row_ptr", [](const GraphData& g) { return view(g.dataset.graph.row_ptr()); })
      .def_prop_ro("col_idx", [](const GraphData& g) { return view(g.dataset.graph.col_idx()); })
      .def_prop_ro("edge_weight", [](const GraphData& g) { return view_or_none(g.dataset.graph.edge_weight()); })
      .def_prop_ro("edge_type", [](const GraphData& g) { return view_or_none(g.dataset.graph.edge_type()); })
      .def(
          "save",
          [](const GraphData& g, const std::string& path) {
            refuse_after_fork();
            const GilRelease release;
            write_native(g.dataset, path);
          },
          nb::arg("path"));

  m.def("count_nodes", &count_nodes, nb::arg("parts"), "Returns the number of nodes of the graph of these parts.");
  m.def("graph_from_parts", &from_parts, nb::arg("parts"), nb::arg("words"),
        "Makes a data set from arrays. Arrays of the right type and layout are not copied.");
  m.def("graph_from_pairs", &from_pairs, nb::arg("pairs"), nb::arg("num_users"), nb::arg("num_items"), nb::arg("name"),
        "Makes the data of a recommender from the pairs train, test and val.");
  m.def("restore", &restored, nb::arg("path"), nb::arg("name"),
        "Reads a file of GraphData.save() and gives the graph this name. The file may be removed then.");
  m.def("load", &load, nb::arg("words"), "Reads a data set; the words are options of the command line.");
}

}  // namespace nacre::python
