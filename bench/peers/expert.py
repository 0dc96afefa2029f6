"""Models as an expert writes them by hand in PyTorch: A and its transpose are kept as CSR, with
the coefficients in their values. The product with the weights comes before or after the
aggregation, whichever makes the aggregation narrower. The backward pass uses the transpose. GCN
and SAGE (mean)."""
import torch
from torch import nn

import cusparse
import graph_file
import weights


class Aggregation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, adjacency):
        ctx.adjacency = adjacency
        return adjacency.forward @ x

    @staticmethod
    def backward(ctx, grad):
        return ctx.adjacency.backward @ grad.contiguous(), None


class Adjacency:
    """`forward` multiplies by A and `backward` by its transpose, through PyTorch or, if tuned,
    with cuSPARSE's best algorithm."""

    def __init__(self, edge_index, values, num_nodes, tuned=False):
        narrow = torch.int32 if edge_index.size(1) < 2**31 else torch.int64
        ends = (edge_index[1], edge_index[0])
        parts = [graph_file.csr(rows, cols, values, num_nodes, narrow) for rows, cols in (ends, ends[::-1])]
        if tuned:
            self.forward, self.backward = (cusparse.Matrix(part) for part in parts)
        else:
            size = (num_nodes, num_nodes)
            self.forward, self.backward = (torch.sparse_csr_tensor(*part, size) for part in parts)


def aggregates_first(width_in, width_out, first):
    """Returns whether to aggregate first. The first layer's input needs no gradient, so it is
    aggregated only once then instead of twice."""
    return (1 if first else 2) * width_in < 2 * width_out


class Net(nn.Module):
    """A model whose parameters have nacre's names, with '_' for '.'."""

    def __init__(self, model, data, hidden, layers, tuned=False):
        super().__init__()
        n, edges = data["num_nodes"], data["edge_index"]
        dims = [data["num_features"]] + [hidden] * (layers - 1) + [data["num_classes"]]
        self.model, self.pairs = model, list(zip(dims[:-1], dims[1:]))
        if model == "gcn":
            edges = graph_file.with_self_loops(edges, n)
            values = graph_file.gcn_weights(edges, n)
        elif model == "sage":
            values = graph_file.mean_weights(edges[1], n)
        else:
            raise ValueError(f"no hand-written {model}")
        self.adjacency = Adjacency(edges, values, n, tuned)
        self.values = nn.ParameterDict()
        for layer, pair in enumerate(self.pairs):
            for name in weights.NAMES[model]:
                shape = pair[1:] if name.endswith("bias") else pair
                self.values[f"{layer}_{name.replace('.', '_')}"] = nn.Parameter(torch.zeros(shape))

    def slots(self):
        return [weights.Slot(f"layers.{layer}.{name}", self.values[f"{layer}_{name.replace('.', '_')}"], False)
                for layer in range(len(self.pairs)) for name in weights.NAMES[self.model]]

    def aggregate(self, x):
        return Aggregation.apply(x, self.adjacency)

    def gcn(self, layer, x, early):
        weight, bias = self.values[f"{layer}_lin_weight"], self.values[f"{layer}_lin_bias"]
        if early:
            return torch.addmm(bias, self.aggregate(x), weight)
        return self.aggregate(x @ weight).add_(bias)

    def sage(self, layer, x, early):
        left, right = self.values[f"{layer}_lin_l_weight"], self.values[f"{layer}_lin_r_weight"]
        own = torch.addmm(self.values[f"{layer}_lin_l_bias"], x, right)
        if early:
            return own.addmm_(self.aggregate(x), left)
        return own.add_(self.aggregate(x @ left))

    def forward(self, x):
        for layer, pair in enumerate(self.pairs):
            x = getattr(self, self.model)(layer, x, aggregates_first(*pair, layer == 0))
            if layer + 1 < len(self.pairs):
                x = torch.relu_(x)
        return x
