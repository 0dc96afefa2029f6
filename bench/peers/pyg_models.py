"""The peer's models: three layers of PyG's own convolutions, and the graph in each form of PyG.

Paths:
  edge_index  [2, E] tensor, unsorted, as most PyG code passes it: gather, message, scatter
  sorted      PyG's EdgeIndex, sorted by destination with CSR and CSC cached; fused where the layer
              supports it
  sparse      torch.sparse CSR of the transposed adjacency: torch.sparse.mm where supported

torch_sparse.SparseTensor is not a fourth path: on the CPU, PyG turns it into torch.sparse CSR in
each call. GCN's normalisation, self loops, sorting and CSR are made once, outside the timed epochs,
for every path.
"""
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import GATConv, GCNConv, GINConv, RGCNConv, SAGEConv
from torch_geometric.utils import spmm

from graph_file import csr, edge_types, gcn_weights, mean_weights, with_self_loops

PATHS = ("edge_index", "sorted", "sparse")


class GraphForm:
    """The edges in the form of one path. `weight` is None or one float per edge (only GCN has
    weights)."""

    def __init__(self, path, edge_index, num_nodes, weight=None):
        self.weight = None
        if path == "edge_index":
            self.adj, self.weight = edge_index, weight
            return
        size = (num_nodes, num_nodes)
        if path == "sorted":
            order = torch.argsort(edge_index[1] * num_nodes + edge_index[0])
            self.adj = EdgeIndex(edge_index[:, order], sparse_size=size, sort_order="col").fill_cache_()
            self.weight = None if weight is None else weight[order]
            return
        values = torch.ones(edge_index.size(1), device=edge_index.device) if weight is None else weight
        self.adj = torch.sparse_csr_tensor(*csr(edge_index[1], edge_index[0], values, num_nodes), size)


class SplitRGCNConv(RGCNConv):
    """RGCNConv over one ready adjacency per relation. RGCNConv itself splits the edges by type
    in every call, and accepts only torch_sparse's sparse form. This class gives the peer the
    faster way."""

    def forward(self, x, adjs):
        out = x @ self.root + self.bias
        for adj, weight in zip(adjs, self.weight):
            # The rows of an EdgeIndex are sources, those of the sparse form are destinations.
            if isinstance(adj, EdgeIndex):
                h = adj.matmul(x, reduce="mean", transpose=True)
            else:
                h = spmm(adj, x, reduce="sum")  # the values are those of the mean
            out = out + h @ weight
        return out


class Net(nn.Module):
    """Layers of convolution, activation and dropout, then the convolution that gives the logits."""

    def __init__(self, convs, call, activation, dropout, graph):
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.call, self.activation, self.dropout = call, activation, dropout
        self.graph = graph  # what `call` holds, in no particular order

    def forward(self, x):
        for conv in self.convs[:-1]:
            x = self.activation(self.call(conv, x))
            x = F.dropout(x, self.dropout, self.training)
        return self.call(self.convs[-1], x)


def build(model, path, data, hidden=256, layers=3, dropout=0.5, heads=4):
    """Builds a model. `data` has edge_index, num_nodes, num_features, num_classes, and relations
    for rgcn. The model lies on the CPU, and its graph where the edges lie."""
    n, edges = data["num_nodes"], data["edge_index"]
    dims = [data["num_features"]] + [hidden] * (layers - 1) + [data["num_classes"]]
    pairs = list(zip(dims[:-1], dims[1:]))
    activation = F.relu
    if model == "gcn":
        edges = with_self_loops(edges, n)
        g = GraphForm(path, edges, n, gcn_weights(edges, n))
        convs = [GCNConv(i, o, normalize=False) for i, o in pairs]
        call = lambda conv, x: conv(x, g.adj, g.weight)
    elif model == "sage":
        g = GraphForm(path, edges, n)
        convs = [SAGEConv(i, o, aggr="mean") for i, o in pairs]
        call = lambda conv, x: conv(x, g.adj)
    elif model == "gin":
        g = GraphForm(path, edges, n)
        convs = [GINConv(nn.Sequential(nn.Linear(i, hidden), nn.ReLU(), nn.Linear(hidden, o)), train_eps=True)
                 for i, o in pairs]
        call = lambda conv, x: conv(x, g.adj)
    elif model == "gat":
        g = GraphForm(path, with_self_loops(edges, n), n)
        convs = [GATConv(i, hidden // heads, heads, add_self_loops=False) for i, _ in pairs[:-1]]
        convs.append(GATConv(pairs[-1][0], pairs[-1][1], 1, add_self_loops=False))
        activation = F.elu
        call = lambda conv, x: conv(x, g.adj)
    elif model == "rgcn":
        kinds, kind = data["relations"], edge_types(data)
        if path == "edge_index":
            graph = [edges, kind]
            convs = [RGCNConv(i, o, kinds) for i, o in pairs]
            call = lambda conv, x: conv(x, edges, kind)
        else:
            parts = [edges[:, kind == r] for r in range(kinds)]
            graph = adjs = [GraphForm(path, part, n, mean_weights(part[1], n)).adj for part in parts]
            convs = [SplitRGCNConv(i, o, kinds) for i, o in pairs]
            call = lambda conv, x: conv(x, adjs)
    else:
        raise SystemExit(f"unknown model '{model}'")
    return Net(convs, call, activation, dropout, [g.adj, g.weight] if model != "rgcn" else graph)
