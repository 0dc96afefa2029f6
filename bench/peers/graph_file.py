"""Graphs as nacre exports and reads them (.npz: edge_index, x, y, train_idx, optionally
edge_type), and what nacre derives from them: edge types, self loops, coefficients. Everything
runs on the device where the edges lie."""
import numpy as np
import torch

RELATIONS = 7  # the number that nacre uses if a graph has no edge types


def load(path, relations=RELATIONS):
    """Returns edge_index, x, y and the counts on the CPU, and train_idx and edge_type if the
    file has them."""
    with np.load(path) as npz:
        keys = ("edge_index", "x", "y", "train_idx", "edge_type")
        data = {key: torch.from_numpy(npz[key]) for key in keys if key in npz.files}
    for key in ("edge_index", "y", "train_idx", "edge_type"):
        if key in data:
            data[key] = data[key].long()
    data["x"] = data["x"].float()
    return with_counts(data, relations)


def with_counts(data, relations=RELATIONS):
    data["relations"] = int(data["edge_type"].max()) + 1 if "edge_type" in data else relations
    data["num_nodes"], data["num_features"] = data["x"].shape
    data["num_classes"] = int(data["y"].max()) + 1
    return data


def write(path, data):
    """Writes a graph with every vertex in the training split, so that nacre's loss is over all
    of them. 32 bits hold every id."""
    arrays = {"edge_index": data["edge_index"].int(), "x": data["x"], "y": data["y"].int()}
    if "edge_type" in data:
        arrays["edge_type"] = data["edge_type"].int()
    arrays = {key: value.cpu().numpy() for key, value in arrays.items()}
    nodes = data["num_nodes"]
    np.savez(path, num_nodes=np.int64(nodes), train_idx=np.arange(nodes, dtype=np.int32), **arrays)


def _shifted(z, bits):
    """Returns z >> bits as if z were unsigned."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _signed(word):
    return word - (1 << 64) if word >= 1 << 63 else word


def mix_key(a, b):
    """Computes nacre's mix_key (splitmix64's finaliser) on int64 tensors, whose products wrap as
    unsigned ones do."""
    z = a + (b + 1) * _signed(0x9E3779B97F4A7C15)
    z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shifted(z, 31)


def edge_types(data):
    """Returns the edge types of the file, or those that nacre gives an untyped graph: a hash of
    the ends of an edge, modulo the number of relations."""
    if "edge_type" in data:
        return data["edge_type"]
    relations, kinds = data["relations"], []
    # Work on a limited number of edges at a time, because the temporaries take memory.
    for source, target in torch.split(data["edge_index"], 1 << 24, dim=1):
        key = mix_key(source, target)
        signed = torch.remainder(key, relations)
        kinds.append(torch.where(key < 0, (signed + (1 << 64) % relations) % relations, signed))
    return torch.cat(kinds)


def with_self_loops(edge_index, num_nodes):
    """Adds a loop to every vertex that has none."""
    bare = torch.ones(num_nodes, dtype=torch.bool, device=edge_index.device)
    bare[edge_index[0][edge_index[0] == edge_index[1]]] = False
    loops = bare.nonzero().view(1, -1).expand(2, -1)
    return torch.cat([edge_index, loops], dim=1)


def gcn_weights(edge_index, num_nodes):
    """Returns 1 / √(out-degree of the source · in-degree of the destination). PyG's gcn_norm
    uses the in-degree for both, which is the same on undirected graphs and another model on
    directed ones."""
    out, into = (torch.bincount(ends, minlength=num_nodes).clamp_(min=1).float().rsqrt() for ends in edge_index)
    return out[edge_index[0]] * into[edge_index[1]]


def mean_weights(target, num_nodes):
    """Returns 1 / in-degree for every edge, so that a sum becomes a mean."""
    return 1.0 / torch.bincount(target, minlength=num_nodes)[target].float()


def csr(rows, cols, values, num_nodes, index_type=torch.int64):
    """Returns sorted (row offsets, columns, values)."""
    order = torch.argsort(rows * num_nodes + cols)
    offsets = torch.zeros(num_nodes + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(torch.bincount(rows, minlength=num_nodes), 0, out=offsets[1:])
    return offsets.to(index_type), cols[order].to(index_type), values[order].contiguous()
