"""Converts graphs of other libraries. None of these libraries is imported before it is
needed: objects are recognised by what they can do."""
from __future__ import annotations

import dataclasses
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
    node_ids: list[Any] | None = None  # what another library calls the nodes

    def overridden_by(self, other: Source) -> Source:
        """Returns this source with everything that `other` gives."""
        values = {field.name: getattr(other, field.name) for field in dataclasses.fields(other)}
        return dataclasses.replace(self, **{name: value for name, value in values.items() if value is not None})


def source_of(value: Any) -> Source:
    """Returns the parts of whatever was given as the edges of a graph."""
    if hasattr(value, "tocoo"):
        return from_scipy(value)
    if hasattr(value, "nodes") and hasattr(value, "edges") and hasattr(value, "is_directed"):
        if hasattr(value, "ndata"):
            return from_dgl(value)
        return from_networkx(value)
    if hasattr(value, "ndata") and hasattr(value, "edata"):
        return from_dgl(value)
    if hasattr(value, "edge_index"):
        return from_pyg(value)
    if hasattr(value, "columns") or hasattr(value, "column_names"):
        return from_table(value)
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return Source(src=value[0], dst=value[1])
    array = to_numpy(value, "edge_index")
    if array.ndim == 2 and array.shape[0] == 2:
        return Source(src=array[0], dst=array[1])
    remedy = "it has a row for each edge: give edge_index.T" if array.ndim == 2 and array.shape[1] == 2 else \
        "give the sources in the first row and the destinations in the second"
    raise UserError(f"edge_index: has the shape {list(array.shape)} instead of [2, number of edges] ({remedy})")


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
    """Edges of an undirected graph lead both ways. The attribute weight of edges is used if all
    edges have it, and x and y of nodes if all nodes have them."""
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
    for key in ("x", "y"):
        values = [data.get(key) for _, data in graph.nodes(data=True)]
        if values and all(value is not None for value in values):
            setattr(found, key, np.array(values))
    return found


def from_pyg(data: Any) -> Source:
    """Takes edge_index, x, y, the masks and edge_weight of a torch_geometric Data object; edge_attr
    is used as weights if it has one column."""
    def part(name: str) -> Any:
        return getattr(data, name, None)

    if hasattr(data, "node_types") and len(data.node_types) != 1:
        raise UserError("edge_index: the HeteroData object has several kinds of nodes "
                        "(call its to_homogeneous() first)")
    weight = part("edge_weight")
    if weight is None:
        attributes = part("edge_attr")
        if attributes is not None and (attributes.ndim == 1 or attributes.shape[1] == 1):
            weight = attributes
    edges = to_numpy(data.edge_index, "edge_index")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise UserError(f"edge_index: has the shape {list(edges.shape)} instead of [2, number of edges]")
    return Source(src=edges[0], dst=edges[1], x=part("x"), y=part("y"), train=part("train_mask"),
                  val=part("val_mask"), test=part("test_mask"), edge_weight=weight, edge_type=part("edge_type"),
                  num_nodes=part("num_nodes"))


def from_dgl(graph: Any) -> Source:
    """Takes the edges of a dgl graph with one kind of nodes and one of edges, and feat, label and
    the masks of its nodes."""
    src, dst = graph.edges()

    def part(name: str) -> Any:
        return graph.ndata[name] if name in graph.ndata else None

    weight = next((graph.edata[name] for name in ("weight", "w") if name in graph.edata), None)
    return Source(src=src, dst=dst, x=part("feat"), y=part("label"), train=part("train_mask"), val=part("val_mask"),
                  test=part("test_mask"), edge_weight=weight, num_nodes=graph.num_nodes())


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
    made.add_nodes_from(range(graph.num_nodes))
    values = {name: part.tolist() for name, part in (("weight", graph.edge_weight), ("type", graph.edge_type))
              if part is not None}
    for i, (u, v) in enumerate(zip(*graph.edge_index.tolist())):
        made.add_edge(u, v, **{name: part[i] for name, part in values.items()})
    return made


def to_pyg(graph: Any) -> Any:
    """See Graph.to_pyg()."""
    import torch
    from torch_geometric.data import Data
    made = Data(edge_index=torch.from_numpy(graph.edge_index), num_nodes=graph.num_nodes)
    if graph.x is not None:
        with warnings.catch_warnings():  # torch warns that the memory must not be written to
            warnings.simplefilter("ignore")
            made.x = torch.from_numpy(graph.x)
    if graph.y is not None:
        y = torch.from_numpy(graph.y.copy())
        made.y = y.long() if y.ndim == 1 else y.float()
    if graph.edge_weight is not None:
        made.edge_weight = torch.from_numpy(graph.edge_weight.copy())
    if graph.edge_type is not None:
        made.edge_type = torch.from_numpy(graph.edge_type.astype(np.int64))
    for name in ("train", "val", "test"):
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        mask[torch.from_numpy(getattr(graph, name + "_idx").astype(np.int64))] = True
        setattr(made, name + "_mask", mask)
    return made
