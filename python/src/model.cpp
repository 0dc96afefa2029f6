// Gives Python what models are written with: the Napa builder, its values and options, and the
// registry.
#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <optional>

#include "common.h"
#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/model/model_file.h"
#include "nacre/model/registry.h"
#include "nacre/model/stack.h"

namespace nacre::python {
namespace {

// Points to the builder of the DFG while the function of the model runs, and to null when it has
// returned, because Python objects may live longer than the builder.
using Building = std::shared_ptr<Napa*>;

Napa& live(const Building& building) {
  if (*building == nullptr)
    throw UserError("model", "a value or the builder is used after the model's function has returned",
                    "use them only in that function");
  return **building;
}

struct PyValue {
  Value value;
  Building building;
};

// Wraps the builder that a model function in Python gets as its argument `net`.
struct PyNet {
  Building building;
  int64_t in_dim = 0;

  Napa& net() const { return live(building); }
  PyValue wrap(Value value) const { return {value, building}; }
  std::optional<PyValue> wrap_or_none(Value value) const { return value ? std::optional(wrap(value)) : std::nullopt; }
  // Returns the value that Python gives for a value of this builder. Throws UserError if it belongs
  // to another builder.
  Value take(const PyValue& given) const {
    net();
    if (given.building != building)
      throw UserError("model", "a value of another model is used", "make all values in the model's function");
    return given.value;
  }
  Value take(const std::optional<PyValue>& given) const { return given ? take(*given) : Value(); }
};

PyNet net_of(const PyValue& value) { return {value.building}; }

template <class T>
T named(const char* what, const std::string& name, const std::vector<std::pair<std::string, T>>& all) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const auto& [known, value] : all) names.push_back(known);
  const std::string meant = choose_name("model", what, name, names);
  for (const auto& [known, value] : all) {
    if (known == meant) return value;
  }
  return all.front().second;
}

Aggregate aggregate_of(const std::string& name) {
  return named<Aggregate>(
      "aggregate", name,
      {{"sum", Aggregate::sum}, {"mean", Aggregate::mean}, {"max", Aggregate::max}, {"mix", Aggregate::mix}});
}

Init init_of(const std::string& name) {
  return named<Init>("initial value", name,
                     {{"zeros", Init::zeros},
                      {"ones", Init::ones},
                      {"glorot", Init::glorot},
                      {"uniform_fan_in", Init::uniform_fan_in},
                      {"constant", Init::constant}});
}

// Returns the value that a Python function of the user has returned. Throws UserError if `result`
// is no value of the model; `by` names the function.
Value returned(const PyNet& net, const nb::object& result, const char* by) {
  PyValue value;
  if (!nb::try_cast(result, value)) throw UserError("model", std::string(by) + " must return a value of the model");
  return net.take(value);
}

PyValue neighbor_apply(const PyNet& self, const PyValue& at_src, const PyValue& at_dst, const nb::callable& g) {
  return self.wrap(self.net().neighbor_apply(self.take(at_src), self.take(at_dst), [&](Value s, Value d) {
    return returned(self, g(self.wrap(s), self.wrap(d)), "the function of neighbor_apply()");
  }));
}

PyValue stacked(const PyNet& self, const ModelOptions& options, const nb::callable& layer) {
  return self.wrap(stack_layers(self.net(), options, [&](Value x, int64_t out, bool last) {
    return returned(self, layer(self.wrap(x), out, last), "the function of stack_layers()");
  }));
}

// Says whether the process is the command line, which reports an exception of a model as it reports
// wrong input.
std::atomic<bool> g_is_program{false};

// Throws UserError that says what the function of a model has raised, and where; `nacre._model`
// finds the place.
[[noreturn]] void tell(const nb::python_error& error) {
  const nb::object text = nb::module_::import_("nacre._model").attr("_explained")(error.value());
  throw UserError("", nb::cast<std::string>(text));
}

BuildModel builder_of(const nb::object& function) {
  return [function = keep_alive(function)](Napa& net, const ModelOptions& options) -> Value {
    const GilAcquire gil;
    gil.require();
    const PyNet self{std::make_shared<Napa*>(&net), options.in_dim};
    struct Close {
      Building building;
      ~Close() { *building = nullptr; }
    } close{self.building};
    try {
      return returned(self, nb::handle(static_cast<PyObject*>(function.get()))(self, options),
                      "the function of a model");
    } catch (const nb::python_error& error) {
      if (!g_is_program) throw;
      tell(error);
    }
  };
}

void add_model(const ModelInfo& info, const nb::object& function, const std::string& file) {
  replace_model(info, builder_of(function));
  set_file_of_model(info.name, file);
}

// Lets load_model_file() run Python files with run(path), which returns the names of their models.
void set_runner(const nb::object& run) {
  set_python_models([run = keep_alive(run)](const std::string& path) {
    const GilAcquire gil;
    gil.require();
    try {
      return nb::cast<std::vector<std::string>>(nb::handle(static_cast<PyObject*>(run.get()))(path));
    } catch (const nb::python_error& error) {
      if (!g_is_program) throw;
      tell(error);
    }
  });
}

void add_options(nb::module_& m) {
  nb::class_<ModelOptions>(m, "ModelOptions", "The settings of a model, with the names of nacre train's options.")
      .def_ro("model", &ModelOptions::model)
      .def_ro("layers", &ModelOptions::layers)
      .def_ro("in_dim", &ModelOptions::in_dim, "Number of features.")
      .def_ro("hidden", &ModelOptions::hidden)
      .def_ro("out_dim", &ModelOptions::out_dim, "Number of classes.")
      .def_ro("heads", &ModelOptions::heads)
      .def_ro("out_heads", &ModelOptions::out_heads)
      .def_ro("dropout", &ModelOptions::dropout)
      .def_ro("input_dropout", &ModelOptions::input_dropout)
      .def_ro("attention_dropout", &ModelOptions::attention_dropout)
      .def_ro("aggregator", &ModelOptions::aggregator)
      .def_ro("activation", &ModelOptions::activation)
      .def_ro("norm", &ModelOptions::norm)
      .def_ro("residual", &ModelOptions::residual)
      .def_ro("num_bases", &ModelOptions::num_bases)
      .def_ro("num_edge_types", &ModelOptions::num_edge_types)
      .def_ro("edge_weighted", &ModelOptions::edge_weighted)
      .def_ro("embeddings", &ModelOptions::embeddings)
      .def_ro("training", &ModelOptions::training)
      .def_ro("knobs", &ModelOptions::knobs, "The settings that only this model has, by name.")
      .def("width", &ModelOptions::width, nb::arg("layer"), "The width of a layer's output.");
  nb::class_<ModelKnob>(m, "ModelKnob", "A ModelKnob is a number that is a setting of one model only.")
      .def(
          "__init__",
          [](ModelKnob* self, std::string name, double value, std::string about, bool share) {
            new (self) ModelKnob{std::move(name), value, std::move(about), share};
          },
          nb::arg("name"), nb::arg("value"), nb::arg("about") = "", nb::arg("share") = false);
  nb::class_<ModelInfo>(m, "ModelInfo", "A ModelInfo holds what Nacre knows of a model.")
      .def(nb::init<>())
      .def_rw("name", &ModelInfo::name)
      .def_rw("about", &ModelInfo::about)
      .def_rw("needs_self_loops", &ModelInfo::needs_self_loops)
      .def_rw("needs_types", &ModelInfo::needs_types)
      .def_rw("supports_edge_weight", &ModelInfo::supports_edge_weight)
      .def_rw("heads", &ModelInfo::heads)
      .def_rw("aggregators", &ModelInfo::aggregators)
      .def_rw("activation", &ModelInfo::activation)
      .def_rw("knobs", &ModelInfo::knobs);
}

void add_value(nb::module_& m) {
  const auto sum = [](const PyValue& a, const PyValue& b) {
    return net_of(a).wrap(net_of(a).take(a) + net_of(a).take(b));
  };
  const auto add_number = [](const PyValue& a, double b) {
    return net_of(a).wrap(net_of(a).take(a) + net_of(a).net().constant(b));
  };
  const auto scaled = [](const PyValue& a, double b) { return net_of(a).wrap(b * net_of(a).take(a)); };
  nb::class_<PyValue>(
      m, "Value",
      "A Value belongs to a model that is being built: it has rows for nodes or for edges, or is a parameter.")
      .def("__add__", sum)
      .def("__add__", add_number)
      .def("__radd__", add_number)
      .def("__sub__",
           [](const PyValue& a, const PyValue& b) { return net_of(a).wrap(net_of(a).take(a) - net_of(a).take(b)); })
      .def("__sub__",
           [](const PyValue& a, double b) { return net_of(a).wrap(net_of(a).take(a) - net_of(a).net().constant(b)); })
      .def("__rsub__",
           [](const PyValue& a, double b) { return net_of(a).wrap(net_of(a).net().constant(b) - net_of(a).take(a)); })
      .def("__mul__",
           [](const PyValue& a, const PyValue& b) { return net_of(a).wrap(net_of(a).take(a) * net_of(a).take(b)); })
      .def("__mul__", scaled)
      .def("__rmul__", scaled)
      .def("__truediv__",
           [](const PyValue& a, const PyValue& b) {
             return net_of(a).wrap(net_of(a).take(a) * net_of(a).net().inv(net_of(a).take(b)));
           })
      .def("__truediv__", [](const PyValue& a, double b) { return net_of(a).wrap((1 / b) * net_of(a).take(a)); })
      .def("__neg__", [](const PyValue& a) { return net_of(a).wrap(-1.0 * net_of(a).take(a)); })
      .def_prop_ro(
          "dims", [](const PyValue& a) { return net_of(a).take(a).dims(); }, "The dimensions of a row.")
      .def_prop_ro(
          "width", [](const PyValue& a) { return net_of(a).take(a).width(); }, "The number of elements of a row.")
      .def_prop_ro("layer", [](const PyValue& a) { return net_of(a).take(a).layer(); })
      .def("__repr__", [](const PyValue& a) {
        return *a.building == nullptr ? std::string("<nacre.Value of a model that is built>")
                                      : "<nacre.Value " + type_text(a.value.type()) + ">";
      });
}

template <Value (Napa::*method)(Value)>
PyValue of_one(const PyNet& self, const PyValue& x) {
  return self.wrap((self.net().*method)(self.take(x)));
}

template <Value (Napa::*method)(Value)>
std::optional<PyValue> of_one_or_none(const PyNet& self, const PyValue& x) {
  return self.wrap_or_none((self.net().*method)(self.take(x)));
}

template <Value (Napa::*method)(Value, double)>
PyValue by_number(const PyNet& self, const PyValue& x, double number) {
  return self.wrap((self.net().*method)(self.take(x), number));
}

template <Value (Napa::*method)(Value, Value)>
PyValue of_two(const PyNet& self, const PyValue& a, const PyValue& b) {
  return self.wrap((self.net().*method)(self.take(a), self.take(b)));
}

template <Value (Napa::*method)(const std::string&, const Dims&, Init)>
PyValue parameter(const PyNet& self, const std::string& name, const Dims& dims, const std::string& init) {
  return self.wrap((self.net().*method)(name, dims, init_of(init)));
}

using Net = nb::class_<PyNet>;

void add_graph_steps(Net& net) {
  net.def("src", of_one<&Napa::src>, nb::arg("x"), "Returns the row of the source of each edge.")
      .def("dst", of_one<&Napa::dst>, nb::arg("x"), "Returns the row of the destination of each edge.")
      .def("self", of_one<&Napa::self>, nb::arg("x"), "Returns the rows of the destinations themselves.")
      .def("edge_softmax", of_one<&Napa::edge_softmax>, nb::arg("e"),
           "Returns the softmax over the edges of each destination.")
      .def("edge_weight", of_one_or_none<&Napa::edge_weight>, nb::arg("x"),
           "Returns the weights of the edges, or None if edges have no weights.")
      .def("edge_scale", of_one_or_none<&Napa::edge_scale>, nb::arg("x"),
           "Returns how many edges each sampled edge stands for, or None if every edge stands for itself.")
      .def("in_degree", of_one<&Napa::in_degree>, nb::arg("x"),
           "Returns the number of incoming edges of each destination, in the whole graph.")
      .def("out_degree", of_one<&Napa::out_degree>, nb::arg("x"),
           "Returns the number of outgoing edges of each source, in the whole graph.")
      .def("in_weight", of_one<&Napa::in_weight>, nb::arg("x"),
           "Returns the sum of the weights of the incoming edges of each node.")
      .def("typed_degree", of_one<&Napa::typed_degree>, nb::arg("x"),
           "Returns for each edge how many edges of the block have its destination and type.")
      .def("symmetric_norm", of_one<&Napa::symmetric_norm>, nb::arg("x"),
           "Returns the coefficients of GCN, one for each edge.")
      .def("neighbor_apply", neighbor_apply, nb::arg("at_src"), nb::arg("at_dst"), nb::arg("function"),
           "Returns function(value at the source, value at the destination) for every edge.")
      .def(
          "pull",
          [](const PyNet& self, const PyValue& x, const std::string& aggregate,
             const std::optional<PyValue>& weighting) {
            return self.wrap(self.net().pull(self.take(x), aggregate_of(aggregate), self.take(weighting)));
          },
          nb::arg("x"), nb::arg("aggregate") = "sum", nb::arg("weighting") = nb::none(),
          "Aggregates the messages of the edges at every destination; `aggregate` is sum, mean, max or mix.")
      .def(
          "pull_linear",
          [](const PyNet& self, const PyValue& x, const std::string& name, int64_t out, const std::string& aggregate,
             const std::optional<PyValue>& weighting, bool bias) {
            return self.wrap(self.net().pull_linear(
                self.take(x), name, out,
                {.aggregate = aggregate_of(aggregate), .weighting = self.take(weighting), .bias = bias}));
          },
          nb::arg("x"), nb::arg("name"), nb::arg("out"), nb::arg("aggregate") = "sum",
          nb::arg("weighting") = nb::none(), nb::arg("bias") = true,
          "Does what pull() and then linear() do; the planner may change their order.")
      .def(
          "pull_lstm",
          [](const PyNet& self, const PyValue& x, const std::string& name, int64_t hidden) {
            return self.wrap(self.net().pull_lstm(self.take(x), name, hidden));
          },
          nb::arg("x"), nb::arg("name"), nb::arg("hidden"),
          "Runs an LSTM over the messages of each destination and returns its last hidden state.");
}

void add_dense_steps(Net& net) {
  net.def(
         "linear",
         [](const PyNet& self, const PyValue& x, const std::string& name, int64_t out, bool bias) {
           return self.wrap(self.net().linear(self.take(x), name, out, bias));
         },
         nb::arg("x"), nb::arg("name"), nb::arg("out"), nb::arg("bias") = true,
         "Multiplies by the parameter NAME.weight and adds NAME.bias.")
      .def("matmul", of_two<&Napa::matmul>, nb::arg("x"), nb::arg("weight"),
           "Multiplies the rows by a parameter of the shape [in, out].")
      .def("typed_matmul", of_two<&Napa::typed_matmul>, nb::arg("e"), nb::arg("weight"),
           "Multiplies each edge by the weight of its type.")
      .def(
          "add_bias",
          [](const PyNet& self, const PyValue& x, const std::string& name) {
            return self.wrap(self.net().add_bias(self.take(x), name));
          },
          nb::arg("x"), nb::arg("name") = "bias")
      .def(
          "dot",
          [](const PyNet& self, const PyValue& x, const std::string& name) {
            return self.wrap(self.net().dot(self.take(x), name));
          },
          nb::arg("x"), nb::arg("name"), "Returns the dot products of the last dimension with a trained vector.")
      .def(
          "activation",
          [](const PyNet& self, const PyValue& x, const std::string& name) {
            return self.wrap(self.net().activation(self.take(x), name));
          },
          nb::arg("x"), nb::arg("name"), "Applies the activation `name`: none, relu, leaky_relu, elu, sigmoid or tanh.")
      .def("leaky_relu", by_number<&Napa::leaky_relu>, nb::arg("x"), nb::arg("slope"),
           "Returns x where it is positive, and slope times x elsewhere.")
      .def("dropout", by_number<&Napa::dropout>, nb::arg("x"), nb::arg("share"),
           "Sets this share of the elements to 0 while training, and scales the others up.")
      .def("edge_dropout", by_number<&Napa::edge_dropout>, nb::arg("e"), nb::arg("share"),
           "Drops this share of the elements of a value with one number for each edge; all blocks drop the same edges.")
      .def(
          "norm",
          [](const PyNet& self, const PyValue& x, const std::string& name, const std::string& kind) {
            return self.wrap(self.net().norm(self.take(x), name, kind));
          },
          nb::arg("x"), nb::arg("name"), nb::arg("kind"),
          "Normalises by layer or batch, or not at all if `kind` is none.")
      .def(
          "constant", [](const PyNet& self, double number) { return self.wrap(self.net().constant(number)); },
          "Returns a number as a value.")
      .def("inv", of_one<&Napa::inv>, nb::arg("x"), "Returns 1/x, and 0 where x is 0.")
      .def("inv_sqrt", of_one<&Napa::inv_sqrt>, nb::arg("x"), "Returns 1/√x, and 0 where x is 0.")
      .def(
          "row_sum",
          [](const PyNet& self, const PyValue& x, int rank) {
            return self.wrap(self.net().row_sum(self.take(x), rank));
          },
          nb::arg("x"), nb::arg("rank"), "Keeps the first `rank` dimensions and sums over the others.");
}

void add_shape_steps(Net& net) {
  net.def(
         "reshape",
         [](const PyNet& self, const PyValue& x, const Dims& dims) {
           return self.wrap(self.net().reshape(self.take(x), dims));
         },
         nb::arg("x"), nb::arg("dims"))
      .def("concat", of_two<&Napa::concat>, nb::arg("a"), nb::arg("b"), "Joins the rows of a and b.")
      .def(
          "slice",
          [](const PyNet& self, const PyValue& x, int64_t begin, int64_t length) {
            return self.wrap(self.net().slice(self.take(x), begin, length));
          },
          nb::arg("x"), nb::arg("begin"), nb::arg("length"))
      .def(
          "split_heads",
          [](const PyNet& self, const PyValue& x, int64_t heads) {
            if (heads < 1 || self.take(x).width() % heads != 0)
              throw UserError("split_heads", "a width of " + std::to_string(self.take(x).width()) +
                                                 " cannot be divided among " + std::to_string(heads) + " heads");
            return self.wrap(self.net().split_heads(self.take(x), heads));
          },
          nb::arg("x"), nb::arg("heads"), "Splits rows of H·D elements into H heads of D elements.")
      .def("merge_heads", of_one<&Napa::merge_heads>, nb::arg("x"),
           "Joins H heads of D elements into rows of H·D elements.")
      .def(
          "mean_heads",
          [](const PyNet& self, const PyValue& x) {
            if (self.take(x).dims().size() != 2)
              throw UserError("mean_heads", "needs a value whose rows have the dimensions [heads, width]",
                              "use split_heads() first");
            return self.wrap(self.net().mean_heads(self.take(x)));
          },
          nb::arg("x"), "Returns the mean over the heads.");
}

void add_leaves(Net& net) {
  net.def_prop_ro("training", [](const PyNet& self) { return self.net().training(); })
      .def(
          "begin_layer", [](const PyNet& self, int layer) { self.net().begin_layer(layer); }, nb::arg("layer"),
          "From this call on, new parameters are called layers.<layer>.<name>.")
      .def("end_layers", [](const PyNet& self) { self.net().end_layers(); })
      .def(
          "output",
          [](const PyNet& self, const std::string& name, const PyValue& x) { self.net().output(name, self.take(x)); },
          nb::arg("name"), nb::arg("value"),
          "Names a result beside the logits; \"embedding\" is the input of the last layer.")
      .def(
          "features",
          [](const PyNet& self, std::optional<int64_t> dim) {
            return self.wrap(self.net().features(dim.value_or(self.in_dim)));
          },
          nb::arg("dim") = nb::none(), "Returns the features of the nodes.")
      .def(
          "param",
          [](const PyNet& self, const std::string& name, const Dims& dims, const std::string& init, double value) {
            return self.wrap(self.net().param(name, dims, init_of(init), value));
          },
          nb::arg("name"), nb::arg("dims"), nb::arg("init") = "glorot", nb::arg("value") = 0.0,
          "Returns a trained parameter that begins as glorot, zeros, ones, uniform_fan_in or constant (value).")
      .def("type_param", parameter<&Napa::type_param>, nb::arg("name"), nb::arg("dims"), nb::arg("init") = "glorot",
           "Returns a trained parameter with one row for each edge type.")
      .def("state_param", parameter<&Napa::state_param>, nb::arg("name"), nb::arg("dims"), nb::arg("init") = "zeros",
           "Returns a parameter that is stored with the others, but not trained.");
}

}  // namespace

void become_program() { g_is_program = true; }

void add_models(nb::module_& m) {
  add_options(m);
  add_value(m);
  Net net(m, "Napa", "Napa is the builder that a model is written with (docs/add_a_model.md).");
  add_leaves(net);
  add_graph_steps(net);
  add_dense_steps(net);
  add_shape_steps(net);
  m.def("stack_layers", stacked, nb::arg("net"), nb::arg("options"), nb::arg("layer"),
        "Stacks layers with norm, activation, residual and dropout between them. layer(x, out, last) computes one "
        "layer of width out.");
  m.def("add_model", add_model, nb::arg("info"), nb::arg("function"), nb::arg("file"),
        "Registers a model that function(net, options) builds. `file` is what --model takes to find the model again.");
  m.def("set_model_runner", set_runner, nb::arg("run"), "Sets the function run(path) that runs files of models.");
  m.def("load_model_file", &load_model_file, nb::arg("text"), nb::call_guard<GilRelease>());
}

}  // namespace nacre::python
