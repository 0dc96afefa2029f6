// Implements the Apply part of the builder: dense work inside one space.
#include <array>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/model/model.h"

namespace nacre {

namespace {

constexpr double kNormEpsilon = 1e-5;
constexpr double kBatchNormMomentum = 0.1;

}  // namespace

Value Napa::linear(Value x, const std::string& name, int64_t out, bool bias) {
  const Value y = matmul(x, param(name + ".weight", {x.width(), out}, Init::glorot));
  return bias ? add_bias(y, name + ".bias") : y;
}

Value Napa::matmul(Value x, Value weight) { return add(Op::matmul, {x, weight}); }
Value Napa::typed_matmul(Value e, Value weight) { return add(Op::typed_matmul, {e, weight}); }
Value Napa::add_bias(Value x, const std::string& name) { return x + param(name, x.dims(), Init::zeros); }

Value Napa::dot(Value x, const std::string& name) {
  return row_sum(x * param(name, x.dims(), Init::glorot), static_cast<int>(x.dims().size()) - 1);
}

Value Napa::activation(Value x, std::string_view name) {
  if (name == "none") return x;
  for (const ActivationInfo& row : activations()) {
    if (name == row.name) return add(row.op, {x}, Attr::none, row.has_alpha() ? row.alpha : 0);
  }
  throw UserError("activation", "unknown activation '" + std::string(name) + "'",
                  suggest(std::string(name), activation_names()));
}

Value Napa::leaky_relu(Value x, double slope) { return add(Op::leaky_relu, {x}, Attr::none, slope); }

Value Napa::dropout(Value x, double share) {
  if (!options_.training || share <= 0) return x;
  return add({.op = Op::dropout, .inputs = {x.node()}, .alpha = share, .salt = ++dropouts_});
}

// All layers drop the same edges, because they share the salt of the random numbers, as in the
// published programs of NGCF and LightGCN.
Value Napa::edge_dropout(Value e, double share) {
  if (!options_.training || share <= 0) return e;
  if (edge_salt_ == 0) edge_salt_ = ++dropouts_;
  return add({.op = Op::dropout, .inputs = {e.node()}, .alpha = share, .salt = edge_salt_});
}

Value Napa::constant(double number) { return add({.op = Op::constant, .type = {Space::param(), {}}, .alpha = number}); }

Value Napa::norm(Value x, const std::string& name, std::string_view kind) {
  if (kind == "none") return x;
  Value y;
  if (kind == "layer") {
    y = add(Op::row_normalize, {x}, Attr::none, kNormEpsilon);
  } else if (kind == "batch") {
    y = batch_norm(x, name);
  } else {
    throw UserError("norm", "unknown norm '" + std::string(kind) + "'", "use none, layer or batch");
  }
  y = y * param(name + ".weight", x.dims(), Init::ones);
  return add_bias(y, name + ".bias");
}

// Normalises the columns of x. The running variance is the mean of the biased variances of the
// batches (torch uses the unbiased ones).
Value Napa::batch_norm(Value x, const std::string& name) {
  const int64_t width = x.width();
  const std::array<Value, 2> running = {state_param(name + ".running_mean", {width}, Init::zeros),
                                        state_param(name + ".running_var", {width}, Init::ones)};
  if (!options_.training) {
    const Value moments = reshape(concat(running[0], running[1]), {2, width});
    return add(Op::standardize, {x, moments}, Attr::none, kNormEpsilon);
  }
  const Value moments = add(Op::column_moments, {x});
  const Value flat = reshape(moments, {2 * width});
  for (int i = 0; i < 2; ++i) {
    const Value old = running[i];
    const Value kept = (1 - kBatchNormMomentum) * old;
    const Value next = kept + kBatchNormMomentum * slice(flat, i * width, width);
    dfg_.set_update(dfg_[old.node()].name, next.node());
  }
  return add(Op::standardize, {x, moments}, Attr::none, kNormEpsilon);
}

Value Napa::inv(Value x) { return add(Op::inv, {x}); }
Value Napa::inv_sqrt(Value x) { return add(Op::inv_sqrt, {x}); }

Value Napa::row_sum(Value x, int rank) { return add({.op = Op::row_sum, .inputs = {x.node()}, .ints = {rank}}); }

Value Napa::reshape(Value x, const Dims& dims) {
  return add({.op = Op::reshape, .inputs = {x.node()}, .type = {x.type().space, dims}});
}

Value Napa::concat(Value a, Value b) { return add(Op::concat, {a, b}); }

Value Napa::slice(Value x, int64_t begin, int64_t len) {
  return add({.op = Op::slice, .inputs = {x.node()}, .ints = {begin, len}});
}

Value Napa::split_heads(Value x, int64_t heads) { return reshape(x, {heads, x.width() / heads}); }
Value Napa::merge_heads(Value x) { return reshape(x, {x.width()}); }

Value Napa::mean_heads(Value x) {
  const int64_t heads = x.dims()[0];
  const int64_t width = x.width() / heads;
  const Value flat = merge_heads(x);
  if (heads == 1) return flat;
  Value sum = slice(flat, 0, width);
  for (int64_t h = 1; h < heads; ++h) sum = sum + slice(flat, h * width, width);
  return (1.0 / static_cast<double>(heads)) * sum;
}

}  // namespace nacre
