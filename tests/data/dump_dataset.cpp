// Prints how a data set was read, for tests written in Python.
//   dump_dataset PATH [FORMAT [FEATURES LABELS SPLITS VERTICES]]   one JSON object
//   dump_dataset --serve      for every line "FORMAT<tab>PATH" of the input one line: "0", or
//                             "2 MESSAGE"
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/data/load.h"

namespace nacre {
namespace {

std::string json(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char code[8];
    std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned char>(c));
    out += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32 ? std::string(code) : std::string(1, c);
  }
  return out + "\"";
}

template <class T>
std::string number(T value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
  return text;
}

template <class List, class Show>
std::string list(const List& values, const Show& show) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ",") + show(value);
  return "[" + out + "]";
}

template <class T>
std::string numbers(const Array<T>& values) {
  return list(values.span(), [](T v) { return number(v); });
}

std::string matrix(const Tensor& tensor) {
  if (!tensor.defined()) return "null";
  std::string out;
  const int64_t columns = tensor.shape()[1];
  for (int64_t r = 0; r < tensor.shape()[0]; ++r) {
    std::string row;
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t at = r * columns + c;
      const double value = tensor.dtype() == DType::u8 ? tensor.data<uint8_t>()[at] : tensor.data<float>()[at];
      row += (c == 0 ? "" : ",") + number(value);
    }
    out += (r == 0 ? "[" : ",[") + row + "]";
  }
  return "[" + out + "]";
}

std::string edges(const Graph& graph) {
  std::string out;
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
      out += (out.empty() ? "[" : ",[") + std::to_string(graph.col_idx()[e]) + "," + std::to_string(v);
      out += "," + (graph.typed() ? std::to_string(graph.edge_type()[e]) : "0");
      out += "," + (graph.weighted() ? number(graph.edge_weight()[e]) : "1") + "]";
    }
  }
  return "[" + out + "]";
}

std::string held_out(const HeldOutEdges& edges) {
  std::string out;
  for (int64_t i = 0; i < edges.size(); ++i) {
    out += (i == 0 ? "[" : ",[") + std::to_string(edges.src[i]) + "," + std::to_string(edges.dst[i]) + "," +
           std::to_string(edges.type.empty() ? 0 : edges.type[i]) + "]";
  }
  return "[" + out + "]";
}

std::string dump(const Dataset& d) {
  const auto plain = [](const std::string& text) { return json(text); };
  const auto whole = [](int64_t value) { return std::to_string(value); };
  std::string out = "{\"name\":" + json(d.name) + ",\"nodes\":" + whole(d.num_nodes());
  out += ",\"edges\":" + edges(d.graph) + ",\"edge_types\":" + whole(d.graph.num_edge_types());
  out += ",\"features\":" + matrix(d.features) + ",\"labels\":" + numbers(d.labels);
  out += ",\"targets\":" + matrix(d.targets) + ",\"classes\":" + whole(d.num_classes);
  out += ",\"train\":" + numbers(d.splits.train) + ",\"val\":" + numbers(d.splits.val);
  out += ",\"test\":" + numbers(d.splits.test);
  out += ",\"node_types\":" + list(d.node_types, plain) + ",\"node_offsets\":" + list(d.node_offsets, whole);
  out += ",\"relations\":" + list(d.relations, [&](const Relation& r) {
           return "[" + whole(r.src_type) + "," + json(r.name) + "," + whole(r.dst_type) + "]";
         });
  out += ",\"type_features\":" + list(d.type_features, matrix);
  out += ",\"val_edges\":" + held_out(d.val_edges) + ",\"test_edges\":" + held_out(d.test_edges);
  out += ",\"original_ids\":" + list(d.original_ids.span(), whole) + ",\"node_names\":" + list(d.node_names, plain);
  out += ",\"notes\":" + list(d.notes, plain) + ",\"fingerprint\":\"" + std::to_string(d.fingerprint()) + "\"}";
  return out;
}

int serve() {
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    LoadOptions options;
    options.format = line.substr(0, tab);
    try {
      load_dataset(line.substr(tab + 1), options).fingerprint();
      std::cout << "0" << std::endl;
    } catch (const UserError& error) {
      std::cout << "2 " << error.what() << std::endl;
    }
  }
  return 0;
}

int main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "--serve") return serve();
  LoadOptions options;
  std::string* const fields[] = {&options.format, &options.features_file, &options.labels_file, &options.splits_file};
  for (size_t i = 1; i < arguments.size() && i <= std::size(fields); ++i) *fields[i - 1] = arguments[i];
  if (arguments.size() > 5) options.num_nodes = std::stoll(arguments[5]);
  // "+undirected" after the format sets the option --undirected.
  if (options.format.ends_with("+undirected")) {
    options.undirected = true;
    options.format.resize(options.format.size() - 11);
  }
  try {
    std::cout << dump(load_dataset(arguments.at(0), options)) << "\n";
    return 0;
  } catch (const UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}

}  // namespace
}  // namespace nacre

int main(int argc, char** argv) { return nacre::main({argv + 1, argv + argc}); }
