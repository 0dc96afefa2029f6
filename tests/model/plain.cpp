#include "model/plain.h"

#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"

namespace nacre::test {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Calls f(destination, edge, source) for every edge.
template <class F>
void for_edges(const Graph& graph, F f) {
  for (int64_t i = 0; i < graph.num_dst(); ++i) {
    for (int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) f(at(i), e, at(graph.col_idx()[e]));
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double leaky(double x) { return x > 0 ? x : 0.2 * x; }

void add_row(std::vector<double>& y, const std::vector<double>& x, double factor) {
  for (size_t k = 0; k < y.size(); ++k) y[k] += factor * x[k];
}

void add_to(Rows& y, const Rows& x) {
  for (size_t i = 0; i < y.size(); ++i) add_row(y[i], x[i], 1);
}

}  // namespace

double PlainModel::weight(int64_t edge) const {
  return o_.edge_weighted ? value("edge_weight." + std::to_string(layer_))[at(edge)] : 1;
}

Rows PlainModel::zeros(int64_t width) const { return Rows(at(graph().num_dst()), std::vector<double>(at(width), 0.0)); }

Rows PlainModel::self(const Rows& x) const { return {x.begin(), x.begin() + graph().num_dst()}; }

Rows PlainModel::linear(const Rows& x, const std::string& name, bool bias) const {
  const auto& w = param(name + ".weight");
  Rows y;
  for (const auto& row : x) {
    const size_t in = row.size(), out = w.size() / in;
    std::vector<double> result(out, 0.0);
    for (size_t k = 0; k < in; ++k) {
      for (size_t n = 0; n < out; ++n) result[n] += row[k] * w[k * out + n];
    }
    if (bias) add_row(result, param(name + ".bias"), 1);
    y.push_back(result);
  }
  return y;
}

// Sums neighbours with the factors 1/√(d_j · d_i).
Rows PlainModel::propagate(const Rows& x) const {
  std::vector<double> in(at(graph().num_dst()), 0.0), out(at(graph().num_src()), 0.0);
  for_edges(graph(), [&](size_t i, int64_t e, size_t j) {
    in[i] += weight(e);
    out[j] += weight(e);
  });
  Rows sum = zeros(static_cast<int64_t>(x[0].size()));
  for_edges(graph(), [&](size_t i, int64_t e, size_t j) {
    if (in[i] > 0 && out[j] > 0) add_row(sum[i], x[j], weight(e) / std::sqrt(in[i] * out[j]));
  });
  return sum;
}

Rows PlainModel::gcn(const Rows& x) const { return linear(propagate(x), "lin", true); }

// Applies both maps after the sums that they share (tests/model/recommender_test.cpp goes message
// by message).
Rows PlainModel::ngcf(const Rows& x) const {
  if (o_.knobs.at("authors") != 0) return ngcf_of_authors(x);
  Rows sum = propagate(x), product = sum;
  for (size_t i = 0; i < sum.size(); ++i) {
    for (size_t k = 0; k < sum[i].size(); ++k) {
      product[i][k] = sum[i][k] * x[i][k];
      sum[i][k] += x[i][k];
    }
  }
  Rows y = linear(sum, "w1", false);
  add_to(y, linear(product, "w2", false));
  for (auto& row : y) std::transform(row.begin(), row.end(), row.begin(), leaky);
  return y;
}

Rows PlainModel::ngcf_of_authors(const Rows& x) const {
  Rows mean = self(x);
  std::vector<double> total(mean.size(), 1.0);
  for_edges(graph(), [&](size_t i, int64_t e, size_t j) {
    add_row(mean[i], x[j], weight(e));
    total[i] += weight(e);
  });
  Rows product = mean;
  for (size_t i = 0; i < mean.size(); ++i) {
    for (size_t k = 0; k < mean[i].size(); ++k) {
      mean[i][k] /= total[i];
      product[i][k] = mean[i][k] * x[i][k];
    }
  }
  Rows y = linear(mean, "w1", true), z = linear(product, "w2", true);
  for (Rows* rows : {&y, &z}) {
    for (auto& row : *rows) std::transform(row.begin(), row.end(), row.begin(), leaky);
  }
  add_to(y, z);
  return y;
}

// LightGCN adds up its layers, and NGCF puts them side by side.
Rows PlainModel::joined_layers(Rows x) {
  const bool light = o_.model == "lightgcn";
  const auto outside = [&](const Rows& rows, const std::string& name) {
    Rows y;
    const auto& w = value(name + ".weight");
    for (const auto& row : rows) {
      y.push_back(value(name + ".bias"));
      for (size_t k = 0; k < row.size(); ++k) {
        for (size_t n = 0; n < y.back().size(); ++n) y.back()[n] += row[k] * w[k * y.back().size() + n];
      }
    }
    return y;
  };
  if (light) x = outside(x, "input");
  Rows all = x;
  for (layer_ = 0; layer_ < o_.layers; ++layer_) {
    x = light ? propagate(x) : ngcf(x);
    all.resize(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      if (light) {
        add_row(all[i], x[i], 1);
        continue;
      }
      double squares = 0;
      for (const double v : x[i]) squares += v * v;
      const double length = o_.knobs.at("normalize") != 0 && squares > 0 ? std::sqrt(squares) : 1;
      for (const double v : x[i]) all[i].push_back(v / length);
    }
  }
  for (auto& row : all) {
    for (double& v : row) v /= light ? o_.layers + 1 : 1;
  }
  return outside(all, "classify");
}

Rows PlainModel::aggregate(const Rows& x) const {
  Rows y = zeros(static_cast<int64_t>(x[0].size()));
  std::vector<double> total(y.size(), 0.0);
  std::vector<bool> seen(y.size(), false);
  for_edges(graph(), [&](size_t i, int64_t e, size_t j) {
    total[i] += weight(e);
    if (o_.aggregator == "max") {
      for (size_t k = 0; k < y[i].size(); ++k) y[i][k] = seen[i] ? std::max(y[i][k], x[j][k]) : x[j][k];
    } else {
      add_row(y[i], x[j], weight(e));
    }
    seen[i] = true;
  });
  for (size_t i = 0; i < y.size(); ++i) {
    if (o_.aggregator != "mean" || total[i] == 0) continue;
    for (double& v : y[i]) v /= total[i];
  }
  return y;
}

Rows PlainModel::lstm(const Rows& x, int64_t hidden) const {
  const auto& w_ih = param("lstm.weight_ih");
  const auto& w_hh = param("lstm.weight_hh");
  const size_t width = at(hidden), gates = 4 * width;
  Rows y = zeros(hidden);
  for (int64_t i = 0; i < graph().num_dst(); ++i) {
    std::vector<double> h(width, 0.0), c(width, 0.0);
    for (int64_t e = graph().row_ptr()[i]; e < graph().row_ptr()[i + 1]; ++e) {
      const auto& row = x[at(graph().col_idx()[e])];
      std::vector<double> z = param("lstm.bias");
      for (size_t g = 0; g < gates; ++g) {
        for (size_t k = 0; k < row.size(); ++k) z[g] += row[k] * w_ih[k * gates + g];
        for (size_t k = 0; k < width; ++k) z[g] += h[k] * w_hh[k * gates + g];
      }
      for (size_t k = 0; k < width; ++k) {
        c[k] = sigmoid(z[width + k]) * c[k] + sigmoid(z[k]) * std::tanh(z[2 * width + k]);
        h[k] = sigmoid(z[3 * width + k]) * std::tanh(c[k]);
      }
    }
    y[at(i)] = h;
  }
  return y;
}

Rows PlainModel::sage(const Rows& x) const {
  const auto width = static_cast<int64_t>(x[0].size());
  Rows y = linear(o_.aggregator == "lstm" ? lstm(x, std::min(width, o_.hidden)) : aggregate(x), "lin_l", true);
  add_to(y, linear(self(x), "lin_r", false));
  return y;
}

// Computes the softmax of the scores (one row of heads per edge) over the edges of each
// destination, and the weighted sum of z, with heads merged.
Rows PlainModel::attend(const Rows& z, const Rows& scores, bool last) const {
  const size_t heads = scores.empty() ? 1 : scores[0].size();
  const size_t depth = z[0].size() / heads;
  Rows y = zeros(static_cast<int64_t>(z[0].size()));
  Rows total = zeros(static_cast<int64_t>(heads));
  for_edges(graph(), [&](size_t i, int64_t e, size_t) {
    for (size_t h = 0; h < heads; ++h) total[i][h] += std::exp(scores[at(e)][h]);
  });
  for_edges(graph(), [&](size_t i, int64_t e, size_t j) {
    for (size_t h = 0; h < heads; ++h) {
      const double alpha = std::exp(scores[at(e)][h]) / total[i][h];
      for (size_t d = 0; d < depth; ++d) y[i][h * depth + d] += alpha * z[j][h * depth + d];
    }
  });
  if (last) {
    const size_t mean_heads = at(o_.out_heads), width = z[0].size() / mean_heads;
    for (auto& row : y) {
      std::vector<double> mean(width, 0.0);
      for (size_t k = 0; k < row.size(); ++k) mean[k % width] += row[k] / static_cast<double>(mean_heads);
      row = mean;
    }
  }
  for (auto& row : y) add_row(row, param("bias"), 1);
  return y;
}

Rows PlainModel::gat(const Rows& x, int64_t heads, bool last) const {
  const Rows z = linear(x, "lin", false);
  const size_t depth = z[0].size() / at(heads);
  const auto score = [&](size_t vertex, size_t head, const std::string& name) {
    double s = 0;
    for (size_t d = 0; d < depth; ++d) s += z[vertex][head * depth + d] * param(name)[head * depth + d];
    return s;
  };
  Rows scores(at(graph().num_edges()), std::vector<double>(at(heads)));
  for_edges(graph(), [&](size_t i, int64_t e, size_t j) {
    for (size_t h = 0; h < at(heads); ++h) scores[at(e)][h] = leaky(score(j, h, "att_src") + score(i, h, "att_dst"));
  });
  return attend(z, scores, last);
}

Rows PlainModel::gatv2(const Rows& x, int64_t heads, bool last) const {
  const Rows l = linear(x, "lin_l", true);
  const Rows r = linear(self(x), "lin_r", true);
  const size_t depth = l[0].size() / at(heads);
  Rows scores(at(graph().num_edges()), std::vector<double>(at(heads), 0.0));
  for_edges(graph(), [&](size_t i, int64_t e, size_t j) {
    for (size_t k = 0; k < l[0].size(); ++k) scores[at(e)][k / depth] += param("att")[k] * leaky(l[j][k] + r[i][k]);
  });
  return attend(l, scores, last);
}

double PlainModel::relation_weight(int type, int64_t element) const {
  const auto& w = param("weight");
  const int64_t size = static_cast<int64_t>(w.size()) / (o_.num_bases ? o_.num_bases : o_.num_edge_types);
  if (o_.num_bases == 0) return w[at(type * size + element)];
  double sum = 0;
  for (int64_t b = 0; b < o_.num_bases; ++b) {
    sum += param("comp")[at(type * o_.num_bases + b)] * w[at(b * size + element)];
  }
  return sum;
}

Rows PlainModel::rgcn(const Rows& x, int64_t out) const {
  const auto type_of = [&](int64_t e) { return graph().typed() ? static_cast<int>(graph().edge_type()[e]) : 0; };
  Rows y = linear(self(x), "root", true);
  for (int type = 0; type < o_.num_edge_types; ++type) {
    Rows mean = zeros(static_cast<int64_t>(x[0].size()));
    std::vector<double> count(mean.size(), 0.0);
    for_edges(graph(), [&](size_t i, int64_t e, size_t j) {
      if (type_of(e) != type) return;
      add_row(mean[i], x[j], 1);
      count[i] += 1;
    });
    for (size_t i = 0; i < y.size(); ++i) {
      if (count[i] == 0) continue;
      for (size_t k = 0; k < x[0].size(); ++k) {
        for (int64_t n = 0; n < out; ++n) {
          y[i][at(n)] += mean[i][k] / count[i] * relation_weight(type, static_cast<int64_t>(k) * out + n);
        }
      }
    }
  }
  return y;
}

Rows PlainModel::gin(const Rows& x) const {
  Rows sum = self(x);
  for (auto& row : sum) {
    for (double& v : row) v *= 1 + param("eps")[0];
  }
  for_edges(graph(), [&](size_t i, int64_t, size_t j) { add_row(sum[i], x[j], 1); });
  Rows h = linear(sum, "nn.0", true);
  activate(h);
  return linear(h, "nn.1", true);
}

Rows PlainModel::norm(const Rows& x) const {
  if (o_.norm == "none") return x;
  const size_t width = x[0].size();
  std::vector<double> mean(width, 0.0), variance(width, 0.0);
  if (o_.norm == "batch" && !o_.training) {
    mean = param("norm.running_mean");
    variance = param("norm.running_var");
  } else if (o_.norm == "batch") {
    const auto rows = static_cast<double>(x.size());
    for (const auto& row : x) add_row(mean, row, 1 / rows);
    for (const auto& row : x) {
      for (size_t k = 0; k < width; ++k) variance[k] += (row[k] - mean[k]) * (row[k] - mean[k]) / rows;
    }
  }
  Rows y = x;
  for (auto& row : y) {
    if (o_.norm == "layer") {
      double m = 0, v = 0;
      for (double e : row) m += e / static_cast<double>(width);
      for (double e : row) v += (e - m) * (e - m) / static_cast<double>(width);
      mean.assign(width, m);
      variance.assign(width, v);
    }
    for (size_t k = 0; k < width; ++k) {
      row[k] = (row[k] - mean[k]) / std::sqrt(variance[k] + 1e-5) * param("norm.weight")[k] + param("norm.bias")[k];
    }
  }
  return y;
}

void PlainModel::activate(Rows& x) const {
  for (auto& row : x) {
    for (double& v : row) {
      if (o_.activation == "relu") v = std::max(v, 0.0);
      if (o_.activation == "leaky_relu") v = v > 0 ? v : 0.01 * v;
      if (o_.activation == "elu") v = v > 0 ? v : std::exp(v) - 1;
      if (o_.activation == "sigmoid") v = sigmoid(v);
      if (o_.activation == "tanh") v = std::tanh(v);
    }
  }
}

Rows PlainModel::layer(const Rows& x, int64_t out, bool last) const {
  if (o_.model == "gcn") return gcn(x);
  if (o_.model == "sage" || o_.model == "sage-lstm") return sage(x);
  if (o_.model == "gat") return gat(x, last ? o_.out_heads : o_.heads, last);
  if (o_.model == "gatv2") return gatv2(x, last ? o_.out_heads : o_.heads, last);
  if (o_.model == "rgcn") return rgcn(x, out);
  if (o_.model == "gin") return gin(x);
  NACRE_CHECK(o_.model == "mlp", "no plain form of " + o_.model);
  return linear(x, "lin", true);
}

Rows PlainModel::logits() {
  const auto& features = value("x");
  Rows x;
  for (size_t k = 0; k < features.size(); k += at(o_.in_dim)) {
    x.emplace_back(features.begin() + static_cast<std::ptrdiff_t>(k),
                   features.begin() + static_cast<std::ptrdiff_t>(k) + o_.in_dim);
  }
  if (o_.model == "lightgcn" || o_.model == "ngcf") return joined_layers(x);
  for (layer_ = 0; layer_ < o_.layers; ++layer_) {
    const bool last = layer_ + 1 == o_.layers;
    Rows y = layer(x, o_.width(layer_), last);
    if (!last) {
      y = norm(y);
      activate(y);
      if (o_.residual && y[0].size() == x[0].size()) add_to(y, o_.model == "mlp" ? x : self(x));
    }
    x = y;
  }
  return x;
}

double PlainModel::loss(const Rows& logits) const {
  const auto& row_weight = value("loss_weight");
  const double smooth = o_.label_smoothing;
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    double row = 0;
    if (o_.loss == "bce") {
      for (size_t c = 0; c < logits[i].size(); ++c) {
        const double p = sigmoid(logits[i][c]);
        const double yes = value("target")[i * logits[i].size() + c] * (1 - smooth) + smooth / 2;
        row -= yes * std::log(p) + (1 - yes) * std::log(1 - p);
      }
    } else if (value("label")[i] >= 0) {
      double total = 0;
      for (double v : logits[i]) total += std::exp(v);
      double mean = 0;
      for (double v : logits[i]) mean += v / static_cast<double>(logits[i].size());
      row = std::log(total) - (1 - smooth) * logits[i][at(static_cast<int64_t>(value("label")[i]))] - smooth * mean;
    }
    sum += row_weight[i] * row;
  }
  return sum;
}

}  // namespace nacre::test
