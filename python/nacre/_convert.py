"""Converts graphs of other libraries. None of these libraries is imported before it is
needed: objects are recognised by what they can do."""
from __future__ import annotations

import dataclasses
import os
import warnings
from typing import Any

import numpy as np

from ._arrays import to_numpy
from ._core import UserError


@dataclasses.dataclass
class Source:
    """Holds what a graph is made from; None stands for "not given"."""

    src: Any = None
    dst: Any = None
    x: Any = None
    y: Any = None
    train: Any = None
    val: Any = None
    test: Any = None
    edge_weight: Any = None
    edge_type: Any = None
    num_nodes: int | None = None
    name: str | None = None
    class_names: list[str] | None = None
    num_classes: int | None = None
    node_ids: list[Any] | None = None  # what another library calls the nodes
    # If there are several kinds of nodes, these hold the number of nodes of each kind by its name,
    # the features of each kind or None, and for each edge type the kind it leads from, its name,
    # and the kind it leads to. The ids of a kind follow those of the kind before it.
    kinds: dict[str, int] | None = None
    kind_x: dict[str, Any] | None = None
    relations: list[tuple[str, str, str]] | None = None

    def overridden_by(self, other: Source) -> Source:
        """Returns this source with everything that `other` gives."""
        values = {field.name: getattr(other, field.name) for field in dataclasses.fields(other)}
        given = {name: value for name, value in values.items() if value is not None}
        if "y" in given:
            given |= {"class_names": None, "num_classes": None}
        return dataclasses.replace(self, **given)


def source_of(value: Any) -> Source:
    """Returns what `value`, which was given as the edges of a graph, holds: edges and, in objects
    of other libraries, also features, labels and splits."""
    if type(value).__module__ == "nacre._graph":
        return from_nacre(value)
    if isinstance(value, (str, bytes, os.PathLike)):
        raise UserError(f"edge_index: {os.fsdecode(value)!r} is a path (nacre.load() reads files)")
    if hasattr(value, "tocoo"):
        return from_scipy(value)
    if hasattr(value, "nodes") and hasattr(value, "edges") and hasattr(value, "is_directed"):
        if hasattr(value, "ndata"):
            return from_dgl(value)
        return from_networkx(value)
    if hasattr(value, "ndata") and hasattr(value, "edata"):
        return from_dgl(value)
    if hasattr(value, "edge_index") or (hasattr(value, "node_types") and hasattr(value, "edge_types")):
        return from_pyg(value)
    if hasattr(value, "columns") or hasattr(value, "column_names"):
        return from_table(value)
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return Source(src=value[0], dst=value[1])
    array = to_numpy(value, "edge_index")
    if array.dtype.kind == "O":
        raise UserError(f"edge_index: a {type(value).__name__} is no array of edges (help(nacre.Graph) lists what is taken)")
    if array.ndim == 2 and array.shape[0] == 2:
        return Source(src=array[0], dst=array[1])
    remedy = "it has a row for each edge: give edge_index.T" if array.ndim == 2 and array.shape[1] == 2 else \
        "give the sources in the first row and the destinations in the second"
    raise UserError(f"edge_index: has the shape {list(array.shape)} instead of [2, number of edges] ({remedy})")


def from_nacre(graph: Any) -> Source:
    """Returns the parts of a nacre.Graph."""
    src, dst = graph.edge_index
    found = Source(src=src, dst=dst, x=graph.x, y=graph.y, train=graph.train_idx, val=graph.val_idx, test=graph.test_idx,
                   edge_weight=graph.edge_weight, edge_type=graph.edge_type, num_nodes=graph.num_nodes, name=graph.name,
                   class_names=graph.class_names or None, num_classes=graph.num_classes or None,
                   node_ids=graph.node_ids)
    if graph.node_types:
        kinds, starts = graph.node_types, graph.node_offsets
        found.kinds = {kind: starts[k + 1] - starts[k] for k, kind in enumerate(kinds)}
        found.kind_x = dict(zip(kinds, graph.type_x))
        found.relations = graph.relations
    return found


def from_scipy(matrix: Any) -> Source:
    """Takes a sparse matrix. An entry in row i, column j is an edge from i to j. The
    entries are weights, unless all of them are 1."""
    if matrix.shape[0] != matrix.shape[1]:
        raise UserError(f"edge_index: the matrix has the shape {list(matrix.shape)}; a graph needs a square one")
    coo = matrix.tocoo()
    weight = None if coo.data.dtype == np.bool_ or (coo.data == 1).all() else coo.data
    row, col = (coo.coords if hasattr(coo, "coords") else (coo.row, coo.col))
    return Source(src=row, dst=col, edge_weight=weight, num_nodes=matrix.shape[0])


def from_networkx(graph: Any) -> Source:
    """Takes the edges and attributes of a networkx graph. Edges of an undirected graph lead both
    ways. The attribute weight of edges is used if all edges have it, and x of nodes if all nodes
    have it; nodes without y are unlabelled."""
    nodes = list(graph.nodes)
    index = {node: i for i, node in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    src = np.array([index[u] for u, _, _ in edges], dtype=np.int64)
    dst = np.array([index[v] for _, v, _ in edges], dtype=np.int64)
    weight = None
    if edges and all("weight" in data for _, _, data in edges):
        weight = np.array([data["weight"] for _, _, data in edges], dtype=np.float32)
    if not graph.is_directed():
        loops = src == dst  # a self loop becomes one edge, not two
        src, dst = np.concatenate([src, dst[~loops]]), np.concatenate([dst, src[~loops]])
        weight = None if weight is None else np.concatenate([weight, weight[~loops]])
    found = Source(src=src, dst=dst, edge_weight=weight, num_nodes=len(nodes), node_ids=nodes,
                   name=str(graph.name) if getattr(graph, "name", "") else None)
    x, y = ([data.get(key) for _, data in graph.nodes(data=True)] for key in ("x", "y"))
    if x and all(value is not None for value in x):
        found.x = np.array(x)
    if any(value is not None for value in y):
        found.y = np.array(y, dtype=object if None in y else None)
    return found


def from_pyg(data: Any) -> Source:
    """Takes edge_index, x, y, the masks and edge_weight of a torch_geometric Data object; edge_attr
    is used as weights if it has one column."""
    def part(name: str) -> Any:
        return getattr(data, name, None)

    if hasattr(data, "node_types") and (len(data.node_types) != 1 or len(data.edge_types) != 1):
        edges = {kind: (*data[kind].edge_index, _first(data[kind], "edge_weight")) for kind in data.edge_types}
        return _of_kinds({name: data[name] for name in data.node_types},
                         {name: int(data[name].num_nodes) for name in data.node_types}, edges,
                         {"x": ("x",), "y": ("y",)}, _first)
    weight = part("edge_weight")
    if weight is None:
        attributes = part("edge_attr")
        if attributes is not None and (attributes.ndim == 1 or attributes.shape[1] == 1):
            weight = attributes
    if part("edge_index") is None:
        src, dst, entries = _of_adjacency(part("adj_t"))
        weight = entries if weight is None else weight
        edges = np.stack([src, dst])
    else:
        edges = to_numpy(data.edge_index, "edge_index")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise UserError(f"edge_index: has the shape {list(edges.shape)} instead of [2, number of edges]")
    return Source(src=edges[0], dst=edges[1], x=part("x"), y=part("y"), train=part("train_mask"),
                  val=part("val_mask"), test=part("test_mask"), edge_weight=weight, edge_type=part("edge_type"),
                  num_nodes=part("num_nodes"))


def _of_adjacency(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Returns the sources, destinations and weights, or None, of adj_t, a sparse matrix of torch or
    torch_sparse whose rows are destinations."""
    if matrix is None:
        raise UserError("edge_index: the Data object has no edges (it needs edge_index or adj_t)")
    if hasattr(matrix, "coo"):
        dst, src, entries = matrix.coo()
    else:
        coo = matrix.to_sparse_coo()
        (dst, src), entries = coo._indices(), coo._values()
    weight = None if entries is None else to_numpy(entries, "adj_t")
    return to_numpy(src, "adj_t"), to_numpy(dst, "adj_t"), None if weight is None or (weight == 1).all() else weight


def _first(holder: Any, *names: str) -> Any:
    """Returns the first of these parts that a store of PyG holds, or None."""
    return next((holder[name] for name in names if name in holder), None)


def _of_kinds(nodes: dict[str, Any], counts: dict[str, int], edges: dict[tuple[str, str, str], tuple[Any, Any, Any]],
              names: dict[str, tuple[str, ...]], part: Any) -> Source:
    """Joins several kinds of nodes and edges. `edges` has sources, destinations and weights, or
    None, of each edge type; `names` says what features and classes are called; `part(holder, name)`
    returns them. One kind may have classes."""
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist()))
    total = sum(counts.values())
    found = Source(num_nodes=total, kinds=counts, kind_x={}, relations=[])
    src, dst, kinds, weights = [], [], [], []
    for number, ((a, name, b), (u, v, weight)) in enumerate(edges.items()):
        src.append(to_numpy(u, "edge_index").astype(np.int64) + starts[a])
        dst.append(to_numpy(v, "edge_index").astype(np.int64) + starts[b])
        kinds.append(np.full(len(src[-1]), number, np.int64))
        weights.append(None if weight is None else to_numpy(weight, "edge_weight").reshape(-1))
        found.relations.append((a, name, b))
    empty = np.empty(0, np.int64)
    found.src, found.dst, found.edge_type = (np.concatenate([*all, empty]) for all in (src, dst, kinds))
    if any(weight is not None for weight in weights):
        found.edge_weight = np.concatenate([np.ones(len(s), np.float32) if w is None else w
                                            for s, w in zip(src, weights)])
    labelled = [kind for kind in counts if part(nodes[kind], *names["y"]) is not None]
    if len(labelled) > 1:
        raise UserError(f"y: nodes of the kinds {', '.join(labelled)} have classes (Nacre classifies one kind; remove "
                        "the classes of the others)")
    for kind in counts:
        found.kind_x[kind] = part(nodes[kind], *names["x"])
    for kind in labelled:
        _place_labels(found, nodes[kind], slice(starts[kind], starts[kind] + counts[kind]), names["y"], part)
    return found


def _place_labels(found: Source, holder: Any, rows: slice, names: tuple[str, ...], part: Any) -> None:
    """Writes the classes and masks of one kind to the places of its nodes among all nodes."""
    y = to_numpy(part(holder, *names), "y")
    found.y = np.full((found.num_nodes, *y.shape[1:]), -1 if y.ndim == 1 else 0, y.dtype if y.ndim > 1 else np.float64)
    found.y[rows] = y
    for name in ("train", "val", "test"):
        mask = part(holder, name + "_mask")
        if mask is not None:
            whole = np.zeros(found.num_nodes, bool)
            whole[rows] = to_numpy(mask, name + "_mask").astype(bool)
            setattr(found, name, whole)


def from_dgl(graph: Any) -> Source:
    """Returns the edges of a dgl graph, and feat, label and the masks of its nodes."""
    if len(graph.ntypes) != 1 or len(graph.canonical_etypes) != 1:
        def part(kind: str, *names: str) -> Any:
            return next((graph.nodes[kind].data[name] for name in names if name in graph.nodes[kind].data), None)

        edges = {kind: (*graph.edges(etype=kind), next((graph.edges[kind].data[name] for name in ("weight", "w")
                                                        if name in graph.edges[kind].data), None))
                 for kind in graph.canonical_etypes}
        return _of_kinds({name: name for name in graph.ntypes}, {name: graph.num_nodes(name) for name in graph.ntypes},
                         edges, {"x": ("feat",), "y": ("label", "labels")}, part)
    src, dst = graph.edges()

    def part(name: str) -> Any:
        return graph.ndata[name] if name in graph.ndata else None

    weight = next((graph.edata[name] for name in ("weight", "w") if name in graph.edata), None)
    kinds = next((graph.edata[name] for name in ("type", "etype", "_TYPE") if name in graph.edata), None)
    return Source(src=src, dst=dst, x=part("feat"), y=part("label"), train=part("train_mask"), val=part("val_mask"),
                  test=part("test_mask"), edge_weight=weight, edge_type=kinds, num_nodes=graph.num_nodes())


ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("source", "destination"))


def from_table(table: Any) -> Source:
    """A row is an edge. The ends are in columns source and target, src and dst, or from and to, or
    else in the first two; columns weight and type are used. Ids that are not numbers from 0 on are
    numbered in the order in which they appear."""
    names = [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]
    lower = {name.lower(): name for name in reversed(names)}
    ends = next(((lower[a], lower[b]) for a, b in ENDS if a in lower and b in lower), None)
    if ends is None:
        if len(names) < 2:
            raise UserError("edge_index: the table has fewer than two columns (the ends of edges are needed)")
        ends = (names[0], names[1])
    src, dst = (to_numpy(table[name], name) for name in ends)
    found = Source(edge_weight=table[lower["weight"]] if "weight" in lower else None)
    if "type" in lower:
        kinds = to_numpy(table[lower["type"]], "type")
        found.edge_type = kinds if kinds.dtype.kind in "iu" else np.unique(kinds.astype(str), return_inverse=True)[1]
    if src.dtype.kind in "iu" and dst.dtype.kind in "iu" and (len(src) == 0 or min(src.min(), dst.min()) >= 0):
        found.src, found.dst = src, dst
        return found
    ids: dict[Any, int] = {}
    for name in np.stack([src, dst], axis=1).reshape(-1).tolist():
        ids.setdefault(name, len(ids))
    found.src = np.array([ids[name] for name in src.tolist()], dtype=np.int64)
    found.dst = np.array([ids[name] for name in dst.tolist()], dtype=np.int64)
    found.node_ids, found.num_nodes = list(ids), len(ids)
    return found


def to_scipy(graph: Any) -> Any:
    """See Graph.to_scipy()."""
    import scipy.sparse
    src, dst = graph.edge_index
    weight = np.ones(graph.num_edges, np.float32) if graph.edge_weight is None else graph.edge_weight
    return scipy.sparse.csr_matrix((weight, (src, dst)), shape=(graph.num_nodes, graph.num_nodes))


def to_networkx(graph: Any) -> Any:
    """See Graph.to_networkx()."""
    import networkx
    made = networkx.MultiDiGraph(name=graph.name)
    nodes = range(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    made.add_nodes_from(nodes)
    if graph.x is not None:
        networkx.set_node_attributes(made, dict(zip(nodes, graph.x.tolist())), "x")
    if graph.y is not None:
        y = np.array([*graph.class_names, None], object)[graph.y] if graph.class_names and graph.y.ndim == 1 else graph.y
        networkx.set_node_attributes(made, {node: label for node, label in zip(nodes, y.tolist()) if label is not None}, "y")
    values = {name: part.tolist() for name, part in (("weight", graph.edge_weight), ("type", graph.edge_type))
              if part is not None}
    for i, (u, v) in enumerate(zip(*graph.edge_index.tolist())):
        made.add_edge(nodes[u], nodes[v], **{name: part[i] for name, part in values.items()})
    return made


def _tensor(array: np.ndarray) -> Any:
    """Returns a torch tensor that shares the memory of the array."""
    import torch
    with warnings.catch_warnings():  # torch warns about memory that must not be written to
        warnings.simplefilter("ignore")
        return torch.from_numpy(array)


def _node_parts(graph: Any, rows: slice) -> dict[str, Any]:
    """Returns the classes and masks of some nodes as tensors: y, train_mask, val_mask,
    test_mask."""
    import torch
    parts = {}
    if graph.y is not None:
        y = torch.from_numpy(graph.y[rows].copy())
        parts["y"] = y.long() if y.ndim == 1 else y.float()
    for name in ("train", "val", "test"):
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        mask[torch.from_numpy(getattr(graph, name + "_idx").astype(np.int64))] = True
        parts[name + "_mask"] = mask[rows]
    return parts


def _edges_by_type(graph: Any) -> Any:
    """Yields, for each edge type, its kinds and name, its edges by ids within the kinds, and their
    weights."""
    edges, kinds, starts = graph.edge_index, list(graph.node_types), graph.node_offsets
    for number, (a, name, b) in enumerate(graph.relations):
        chosen = graph.edge_type == number
        ends = edges[:, chosen] - np.array([[starts[kinds.index(a)]], [starts[kinds.index(b)]]])
        yield (a, name, b), ends, None if graph.edge_weight is None else graph.edge_weight[chosen]


def _rows_by_kind(graph: Any) -> Any:
    """Yields the name, the rows among all nodes and the features of each kind of nodes, and whether
    it has classes."""
    for k, kind in enumerate(graph.node_types):
        rows = slice(graph.node_offsets[k], graph.node_offsets[k + 1])
        x = graph.x if graph.x is not None and len(graph.node_types) == 1 else graph.type_x[k]
        labelled = graph.y is not None and bool((graph.y[rows] >= (0 if graph.y.ndim == 1 else 1)).any())
        yield kind, rows, x, labelled


def to_pyg(graph: Any) -> Any:
    """See Graph.to_pyg()."""
    import torch
    from torch_geometric.data import Data, HeteroData
    if len(graph.node_types) > 1:
        many = HeteroData()
        for kind, rows, x, labelled in _rows_by_kind(graph):
            many[kind].num_nodes = rows.stop - rows.start
            if x is not None:
                many[kind].x = _tensor(x)
            for name, part in (_node_parts(graph, rows) if labelled else {}).items():
                many[kind][name] = part
        for kind, ends, weight in _edges_by_type(graph):
            many[kind].edge_index = torch.from_numpy(ends)
            if weight is not None:
                many[kind].edge_weight = torch.from_numpy(weight)
        return many
    made = Data(edge_index=torch.from_numpy(graph.edge_index), num_nodes=graph.num_nodes)
    if graph.x is not None:
        made.x = _tensor(graph.x)
    if graph.edge_weight is not None:
        made.edge_weight = torch.from_numpy(graph.edge_weight.copy())
    if graph.edge_type is not None:
        made.edge_type = torch.from_numpy(graph.edge_type.astype(np.int64))
    for name, part in _node_parts(graph, slice(None)).items():
        setattr(made, name, part)
    return made


def to_dgl(graph: Any) -> Any:
    """Does what Graph.to_dgl() describes."""
    import dgl
    import torch
    several = len(graph.node_types) > 1
    if several:
        edges = {kind: (torch.from_numpy(ends[0].copy()), torch.from_numpy(ends[1].copy()), weight)
                 for kind, ends, weight in _edges_by_type(graph)}
        made = dgl.heterograph({kind: ends[:2] for kind, ends in edges.items()},
                               num_nodes_dict={kind: rows.stop - rows.start
                                               for kind, rows, _, _ in _rows_by_kind(graph)})
        for kind, (_, _, weight) in edges.items():
            if weight is not None:
                made.edges[kind].data["weight"] = torch.from_numpy(weight)
    else:
        src, dst = (torch.from_numpy(end) for end in graph.edge_index)
        made = dgl.graph((src, dst), num_nodes=graph.num_nodes)
        if graph.edge_weight is not None:
            made.edata["weight"] = torch.from_numpy(graph.edge_weight.copy())
        if graph.edge_type is not None:
            made.edata["type"] = torch.from_numpy(graph.edge_type.astype(np.int64))
    kinds = _rows_by_kind(graph) if several else [(made.ntypes[0], slice(None), graph.x, True)]
    for kind, rows, x, labelled in kinds:
        data = made.nodes[kind].data
        if x is not None:
            data["feat"] = _tensor(x)
        for name, part in (_node_parts(graph, rows) if labelled else {}).items():
            data["label" if name == "y" else name] = part
    return made


def to_pandas(graph: Any) -> Any:
    """Does what Graph.to_pandas() describes."""
    import pandas
    src, dst = graph.edge_index
    columns = {"source": src, "target": dst, "weight": graph.edge_weight, "type": graph.edge_type}
    return pandas.DataFrame({name: values for name, values in columns.items() if values is not None})
