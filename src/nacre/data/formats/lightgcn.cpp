// Users and their items: train.txt and test.txt with lines of "user item item …", one line per
// user, as NGCF and LightGCN use them. Users come first in the shared ids, and items follow. Edges
// go both ways, because both sides learn from each other; test pairs are held out.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/interactions.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

Interactions read_lists(const std::shared_ptr<const MappedFile>& file) {
  Interactions pairs;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    int64_t user = -1;
    FieldCursor fields(line);
    for (std::string_view field = fields.next(); !field.empty(); field = fields.next()) {
      int64_t id = 0;
      if (!parse_whole(field, id) || id < 0 || id > kMaxNodeId)
        throw_at_line(file->name(), number, in_quotes(field) + " is not the number of a user or item");
      if (id > pairs.largest) {
        pairs.largest = id;
        pairs.line = number;
      }
      if (user < 0) {
        user = id;
        pairs.num_users = std::max(pairs.num_users, id + 1);
        continue;
      }
      pairs.user.push_back(static_cast<NodeId>(user));
      pairs.item.push_back(static_cast<NodeId>(id));
      pairs.num_items = std::max(pairs.num_items, id + 1);
    }
  });
  return pairs;
}

}  // namespace

Dataset interactions_dataset(Interactions train, Interactions test, const std::string& where, bool plausible) {
  const int64_t users = std::max(train.num_users, test.num_users);
  const int64_t items = std::max(train.num_items, test.num_items);
  if (!plausible) check_vertex_count(users + items, std::ssize(train.user) + std::ssize(test.user), where);
  if (users + items == 0) throw UserError(where, "holds no users");
  if (users + items > kMaxNodeId + 1) throw UserError(where, "has more than 4,294,967,295 users and items");
  for (Interactions* pairs : {&train, &test}) {
    for (NodeId& item : pairs->item) item = static_cast<NodeId>(item + users);
  }
  Dataset data;
  data.node_types = {"user", "item"};
  data.node_offsets = {0, users, users + items};
  data.relations = {{0, "takes", 1}, {1, "rev_takes", 0}};
  EdgeList edges;
  edges.num_nodes = users + items;
  edges.num_types = 2;
  edges.src = train.user;
  edges.src.insert(edges.src.end(), train.item.begin(), train.item.end());
  edges.dst = std::move(train.item);
  edges.dst.insert(edges.dst.end(), train.user.begin(), train.user.end());
  edges.type.assign(edges.src.size(), 1);
  std::fill_n(edges.type.begin(), train.user.size(), uint16_t{0});
  data.graph = build_graph(std::move(edges), where);
  data.test_edges = {std::move(test.user), std::move(test.item), {}};
  data.notes.push_back(human_count(users) + " users and " + human_count(items) + " items; " +
                       human_count(data.test_edges.size()) + " test pairs are held out of the graph");
  return data;
}

namespace {

std::string recognise_lightgcn(const DataSource& source) {
  if (!source.has("train.txt") || !source.has("test.txt") || source.has("valid.txt") || source.has("entities.dict"))
    return "";
  return "holds train.txt and test.txt";
}

Dataset load_lightgcn(const DataSource& source, const std::string&, const LoadOptions&) {
  Interactions train = read_lists(source.open("train.txt"));
  Interactions test = read_lists(source.open("test.txt"));
  const std::string where =
      (train.largest >= test.largest ? source.at("train.txt") : source.at("test.txt")) + ":" +
      std::to_string(std::max<int64_t>(1, train.largest >= test.largest ? train.line : test.line));
  return interactions_dataset(std::move(train), std::move(test), where);
}

}  // namespace

std::vector<Format> formats_in_lightgcn() {
  return {{.name = "lightgcn",
           .about = "train.txt and test.txt of user item item …",
           .recognise = recognise_lightgcn,
           .load = load_lightgcn,
           .general = true}};
}

}  // namespace nacre
