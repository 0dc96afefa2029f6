"""Converts graphs of other libraries. None of these libraries is imported before it is
needed: objects are recognised by what they can do."""
from __future__ import annotations

import dataclasses
import importlib
import numbers
import os
from typing import Any

import numpy as np

from ._arrays import chosen, integers, missing, to_numpy, unlabelled
from ._core import UserError


def imported(name: str, wanted_by: str) -> Any:
    """Returns a module of another package. Raises UserError if that package is not installed;
    `wanted_by` says what needs it."""
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is there, but it needs another one
        raise UserError(f"{wanted_by}: needs the package {package}, which is not installed (pip install {package})") \
            from None


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
    # These fields are None unless there are several kinds of nodes. Then they hold the number of
    # nodes of each kind by its name, the features of each kind or None, and for each edge type the
    # kind it leads from, its name, and the kind it leads to. The ids of a kind follow those of the
    # kind before it.
    kinds: dict[str, int] | None = None
    kind_x: dict[str, Any] | None = None
    relations: list[tuple[str, str, str]] | None = None
    type_names: list[str] | None = None  # what another library calls the edge types

    def overridden_by(self, other: Source) -> Source:
        """Returns this source with everything that `other` gives."""
        values = {field.name: getattr(other, field.name) for field in dataclasses.fields(other)}
        given = {name: value for name, value in values.items() if value is not None}
        if "y" in given:
            given |= {"class_names": None, "num_classes": None}
        if "edge_type" in given:
            given |= {"type_names": None}
        return dataclasses.replace(self, **given)


def source_of(value: Any) -> Source:
    """Returns what `value`, which was given as the edges of a graph, holds: edges and, in objects
    of other libraries, also features, labels and splits."""
    if type(value).__module__ == "nacre._graph":
        return from_nacre(value)
    if isinstance(value, (str, bytes, os.PathLike)):
        raise UserError(f"edge_index: {os.fsdecode(value)!r} is a path (nacre.load() reads files)")
    reader = _reader_of(value)
    if reader is not None:
        return reader(value)
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


def _reader_of(value: Any) -> Any:
    """Returns the function that reads an object of another library, or None if the value is no such
    object."""
    if hasattr(value, "tocoo"):
        return from_scipy
    if hasattr(value, "ndata") and (hasattr(value, "edata") or hasattr(value, "edges")):
        return from_dgl
    if hasattr(value, "nodes") and hasattr(value, "edges") and hasattr(value, "is_directed"):
        return from_networkx
    if hasattr(value, "edge_index") or _has_kinds(value):
        return from_pyg
    return from_table if hasattr(value, "columns") or hasattr(value, "column_names") else None


def holds_graph(value: Any) -> bool:
    """Returns whether a value is an object of another library that can only be meant as a graph. A
    table with one column may be a list of nodes."""
    reader = _reader_of(value)
    return reader is not None and (reader is not from_table or len(_columns(value)) > 1)


def from_nacre(graph: Any) -> Source:
    """Returns the parts of a nacre.Graph."""
    if graph._data.num_held_out > 0:
        raise UserError("edge_index: the graph holds pairs out, which Graph() does not take (use Graph.from_pairs())")
    src, dst = graph.edge_index
    found = Source(src=src, dst=dst, x=graph.x, y=graph.y, train=graph.train_idx, val=graph.val_idx, test=graph.test_idx,
                   edge_weight=graph.edge_weight, edge_type=graph.edge_type, num_nodes=graph.num_nodes, name=graph.name,
                   class_names=graph.class_names or None, num_classes=graph.num_classes or None,
                   node_ids=graph.node_ids, type_names=graph.edge_type_names or None)
    if len(graph.node_types) == 1 and found.x is None:
        found.x = graph.type_x[0] if graph.type_x else None
    if len(graph.node_types) > 1:
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
        found.x = _joined("x", nodes, x)
    found.y = _classes_of(nodes, y)
    return found


def _joined(where: str, nodes: list[Any], values: list[Any]) -> np.ndarray:
    """Returns the values of nodes as one array. Raises UserError unless each node has as many."""
    shapes = [_shape(where, node, value) for node, value in zip(nodes, values)]
    for node, shape in zip(nodes, shapes):
        if shape != shapes[0]:
            raise UserError(f"{where}: the value of node {node!r} has the shape {list(shape)}, but that of node "
                            f"{nodes[0]!r} has the shape {list(shapes[0])} (give each node as many numbers)")
    return np.array(values)


def _shape(where: str, node: Any, value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:
        raise UserError(f"{where}: the lists of node {node!r} have different lengths (give one list of numbers)") \
            from None


def _classes_of(nodes: list[Any], y: list[Any]) -> np.ndarray | None:
    """Returns the classes of nodes, of which those with None are unlabelled, or None if all are."""
    known = np.array([value is not None for value in y], bool)
    if not known.any():
        return None
    places = np.flatnonzero(known).tolist()
    given = _joined("y", [nodes[i] for i in places], [y[i] for i in places])
    if known.all():
        return given
    if given.size > len(given):
        node = nodes[int(np.argmin(known))]
        raise UserError(f"y: node {node!r} has none, but other nodes have lists (give a list of 0 and 1 to each node)")
    given = given.reshape(-1)
    classes = unlabelled(len(y), given)
    classes[known] = given
    return classes


def _has_kinds(value: Any) -> bool:
    """Returns whether an object looks like HeteroData of torch_geometric."""
    return hasattr(value, "node_types") and hasattr(value, "edge_types")


def from_pyg(data: Any) -> Source:
    """Takes edge_index, x, y, the masks and edge_weight of a torch_geometric Data object; edge_attr
    is used as weights if it has one column."""
    def part(name: str) -> Any:
        return getattr(data, name, None)

    if _has_kinds(data):
        return _from_hetero_data(data)
    src, dst, weight = _ends(data, "the Data object")
    attributes = part("edge_attr")
    if part("edge_weight") is None and attributes is not None and (attributes.ndim == 1 or attributes.shape[1] == 1):
        weight = attributes
    return Source(src=src, dst=dst, x=part("x"), y=part("y"), train=part("train_mask"), val=part("val_mask"),
                  test=part("test_mask"), edge_weight=weight, edge_type=part("edge_type"), num_nodes=part("num_nodes"))


def _from_hetero_data(data: Any) -> Source:
    """Takes the edges, edge_weight, x, y and the masks of a torch_geometric HeteroData object."""
    counts = {name: data[name].num_nodes for name in data.node_types}
    for name, count in counts.items():
        if count is None:
            raise UserError(f"num_nodes: the number of nodes of the kind {name!r} is not known (set "
                            f"data[{name!r}].num_nodes)")
    edges = {kind: _ends(data[kind], f"the edge type {' '.join(kind)}") for kind in data.edge_types}
    nodes = {name: data[name] for name in data.node_types}
    return _of_kinds(nodes, {name: int(count) for name, count in counts.items()}, edges, {"x": ("x",), "y": ("y",)},
                     lambda store, name: getattr(store, name, None))


def _ends(holder: Any, what: str) -> tuple[Any, Any, Any]:
    """Returns the sources, destinations and weights, or None, of a Data object or of an edge type
    of HeteroData. `what` names it in messages."""
    index, weight = getattr(holder, "edge_index", None), getattr(holder, "edge_weight", None)
    if index is None:
        src, dst, entries = _of_adjacency(getattr(holder, "adj_t", None), what)
        return src, dst, entries if weight is None else weight
    edges = to_numpy(index, "edge_index")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise UserError(f"edge_index: that of {what} has the shape {list(edges.shape)}, but it needs two rows, "
                        "[2, number of edges] (give sources in row 0 and destinations in row 1)")
    return edges[0], edges[1], weight


def _of_adjacency(matrix: Any, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Returns the sources, destinations and weights, or None, of adj_t, a sparse matrix of torch or
    torch_sparse whose rows are destinations."""
    if matrix is None:
        raise UserError(f"edge_index: {what} has no edges (it needs edge_index or adj_t)")
    if hasattr(matrix, "coo"):
        dst, src, entries = matrix.coo()
    else:
        coo = matrix.to_sparse_coo()
        (dst, src), entries = coo._indices(), coo._values()
    weight = None if entries is None else to_numpy(entries, "adj_t")
    return to_numpy(src, "adj_t"), to_numpy(dst, "adj_t"), None if weight is None or (weight == 1).all() else weight


def _of_kinds(nodes: dict[str, Any], counts: dict[str, int], edges: dict[tuple[str, str, str], tuple[Any, Any, Any]],
              names: dict[str, tuple[str, ...]], part: Any) -> Source:
    """Joins several kinds of nodes and edges. `edges` has sources, destinations and weights, or
    None, of each edge type; `names` says what features and classes are called; `part(holder, name)`
    returns them. One kind may have classes. If there is one kind only, the graph has no kinds."""
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist()))
    found = Source(num_nodes=sum(counts.values()), kinds=counts, kind_x={}, relations=list(edges))
    src, dst, kinds, weights = [], [], [], []
    for number, (relation, (u, v, weight)) in enumerate(edges.items()):
        src.append(_of_kind(u, relation, relation[0], counts) + starts[relation[0]])
        dst.append(_of_kind(v, relation, relation[2], counts) + starts[relation[2]])
        kinds.append(np.full(len(src[-1]), number, np.int64))
        weights.append(None if weight is None else to_numpy(weight, "edge_weight").reshape(-1))
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
        _place_labels(found, nodes[kind], kind, starts[kind], names["y"], part)
    return _without_kinds(found) if len(counts) == 1 else found


def _of_kind(ids: Any, relation: tuple[str, str, str], kind: str, counts: dict[str, int]) -> np.ndarray:
    """Returns one end of the edges of a type, ids within their kind of nodes."""
    edge_type = f"the edge type {' '.join(relation)}"
    if kind not in counts:
        raise UserError(f"edge_index: {edge_type} has ends of the kind {kind!r}, of which the graph has no nodes "
                        f"(set data[{kind!r}].num_nodes)")
    array = integers(ids, "edge_index")
    wrong = np.flatnonzero((array < 0) | (array >= counts[kind]))
    if len(wrong):
        raise UserError(f"edge_index: {edge_type} has the end {array[wrong[0]]} at position {wrong[0]}, but there are "
                        f"{counts[kind]:,} nodes of the kind {kind!r} (number the nodes of each kind from 0)")
    return array


def _without_kinds(found: Source) -> Source:
    """Returns the same graph as one whose nodes have no kinds; there is only one."""
    (x,) = found.kind_x.values()
    several = len(found.relations) > 1
    return dataclasses.replace(found, x=x, kinds=None, kind_x=None, relations=None,
                               edge_type=found.edge_type if several else None,
                               type_names=[name for _, name, _ in found.relations] if several else None)


def _place_labels(found: Source, holder: Any, kind: str, start: int, names: tuple[str, ...], part: Any) -> None:
    """Writes the classes and masks of one kind, whose first node is `start`, to the places of its
    nodes among all nodes."""
    y, count = to_numpy(part(holder, *names), "y"), found.kinds[kind]
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.reshape(-1)
    if y.ndim == 0 or len(y) != count:
        raise UserError(f"y: has the shape {list(y.shape)}, but there are {count:,} nodes of the kind {kind!r} (give "
                        "one class for each of them)")
    found.y = unlabelled(found.num_nodes, y)
    found.y[start:start + count] = y
    for name in ("train", "val", "test"):
        ids = chosen(part(holder, name + "_mask"), name + "_mask", count)
        setattr(found, name, None if ids is None else ids + start)


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
    """Takes a table that has a row for each edge. The ends of the edges are in the columns source
    and target, src and dst, or from and to; in other tables, they are in the first two columns. The
    columns weight and type are used, too. Ids that are not numbers from 0 on are numbered in the
    order in which they appear."""
    columns = _columns(table)
    lower = {str(name).lower(): name for name in reversed(columns)}
    ends = next(((lower[a], lower[b]) for a, b in ENDS if a in lower and b in lower), None)
    if ends is None:
        if len(columns) < 2:
            raise UserError("edge_index: the table has fewer than two columns (the ends of edges are needed)")
        ends = (columns[0], columns[1])
    src, dst = (_whole_numbers(_column(table, name)) for name in ends)
    found = Source(edge_weight=_column(table, lower["weight"]) if "weight" in lower else None)
    if "type" in lower:
        kinds = _whole_numbers(_column(table, lower["type"]))
        if kinds.dtype.kind not in "iu":
            names, kinds = np.unique(kinds.astype(str), return_inverse=True)
            found.type_names = names.tolist()
        found.edge_type = kinds
    if src.dtype.kind in "iu" and dst.dtype.kind in "iu" and (len(src) == 0 or min(src.min(), dst.min()) >= 0):
        found.src, found.dst = src, dst
        return found
    ids: dict[Any, int] = {}
    for edge in zip(src.tolist(), dst.tolist()):
        for name in edge:
            ids.setdefault(name, len(ids))
    found.src = np.array([ids[name] for name in src.tolist()], dtype=np.int64)
    found.dst = np.array([ids[name] for name in dst.tolist()], dtype=np.int64)
    found.node_ids, found.num_nodes = list(ids), len(ids)
    return found


def _columns(table: Any) -> list[Any]:
    """Returns the names of the columns, which may be numbers in a table of pandas."""
    return list(table.column_names if hasattr(table, "column_names") else table.columns)


def _column(table: Any, name: Any) -> np.ndarray:
    """Returns a column of a table. Raises UserError if a value is missing."""
    if _columns(table).count(name) > 1:
        raise UserError(f"{name}: several columns of the table have this name (rename all but one)")
    values = to_numpy(table[name], str(name))
    empty = np.flatnonzero(missing(values))
    if len(empty):
        raise UserError(f"{name}: row {empty[0]} of the table, counted from 0, has no value (write one, or leave the "
                        "row out)")
    return values


def _whole_numbers(values: np.ndarray) -> np.ndarray:
    """Returns the values as integers if all of them are whole numbers, which pandas writes as
    fractions or objects in a column that had gaps; otherwise the values themselves."""
    if values.dtype.kind == "O":
        whole = all(isinstance(value, numbers.Integral) and abs(value) < 2 ** 63 for value in values.tolist())
    else:
        whole = values.dtype.kind == "f" and bool(((values == np.floor(values)) & (np.abs(values) < 2 ** 53)).all())
    return values.astype(np.int64) if whole else values


def to_scipy(graph: Any) -> Any:
    """See Graph.to_scipy()."""
    sparse = imported("scipy.sparse", "Graph.to_scipy()")
    src, dst = graph.edge_index
    weight = np.ones(graph.num_edges, np.float32) if graph.edge_weight is None else graph.edge_weight
    return sparse.csr_matrix((weight, (src, dst)), shape=(graph.num_nodes, graph.num_nodes))


def to_networkx(graph: Any) -> Any:
    """See Graph.to_networkx()."""
    networkx = imported("networkx", "Graph.to_networkx()")
    made = networkx.MultiDiGraph(name=graph.name)
    nodes = range(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    made.add_nodes_from(nodes)
    if graph.x is not None:
        networkx.set_node_attributes(made, dict(zip(nodes, graph.x.tolist())), "x")
    if len(graph.node_types) > 1:
        for kind, rows, x, _ in _rows_by_kind(graph):
            networkx.set_node_attributes(made, dict.fromkeys(nodes[rows], kind), "kind")
            if x is not None:
                networkx.set_node_attributes(made, dict(zip(nodes[rows], x.tolist())), "x")
    if graph.y is not None:
        y = np.array([*graph.class_names, None], object)[graph.y] if graph.class_names and graph.y.ndim == 1 else graph.y
        networkx.set_node_attributes(made, {node: label for node, label in zip(nodes, y.tolist()) if label is not None}, "y")
    values = {name: part if isinstance(part, list) else part.tolist() for name, part in _edge_values(graph).items()}
    for i, (u, v) in enumerate(zip(*graph.edge_index.tolist())):
        made.add_edge(nodes[u], nodes[v], **{name: part[i] for name, part in values.items()})
    return made


def _edge_values(graph: Any) -> dict[str, Any]:
    """Returns the weights and the types of the edges, as far as the graph has them: arrays of
    numbers, or lists of the names of types."""
    values = {}
    if graph.edge_weight is not None:
        values["weight"] = graph.edge_weight
    if graph.edge_type is not None:
        names, numbers_of_types = graph.edge_type_names, graph.edge_type
        named = len(names) > numbers_of_types.max(initial=0)
        values["type"] = [names[number] for number in numbers_of_types.tolist()] if named else numbers_of_types
    return values


def _edge_table(graph: Any) -> dict[str, Any]:
    """Returns the columns of a table with a row for each edge: arrays of numbers, or lists."""
    src, dst = graph.edge_index
    if graph.node_ids is not None:
        src, dst = ([graph.node_ids[node] for node in end.tolist()] for end in (src, dst))
    return {"source": src, "target": dst, **_edge_values(graph)}


class _Writable:
    """Shows the memory of an array as memory that may be written to. torch knows no other memory,
    and warns about it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # keeps the memory alive
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def tensor(array: np.ndarray) -> Any:
    """Returns a torch tensor that shares the memory of the array."""
    torch = imported("torch", "a tensor")
    return torch.from_numpy(array if array.flags.writeable else np.asarray(_Writable(array)))


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
    """Yields the name, the rows among all nodes and the features of each of several kinds of nodes,
    and whether it has classes."""
    for k, kind in enumerate(graph.node_types):
        rows = slice(graph.node_offsets[k], graph.node_offsets[k + 1])
        x = graph.type_x[k] if graph.type_x else None
        labelled = graph.y is not None and bool((graph.y[rows] >= (0 if graph.y.ndim == 1 else 1)).any())
        yield kind, rows, x, labelled


def to_pyg(graph: Any) -> Any:
    """See Graph.to_pyg()."""
    torch = imported("torch", "Graph.to_pyg()")
    data_module = imported("torch_geometric.data", "Graph.to_pyg()")
    if len(graph.node_types) > 1:
        many = data_module.HeteroData()
        for kind, rows, x, labelled in _rows_by_kind(graph):
            many[kind].num_nodes = rows.stop - rows.start
            if x is not None:
                many[kind].x = tensor(x)
            for name, part in (_node_parts(graph, rows) if labelled else {}).items():
                many[kind][name] = part
        for kind, ends, weight in _edges_by_type(graph):
            many[kind].edge_index = torch.from_numpy(ends)
            if weight is not None:
                many[kind].edge_weight = torch.from_numpy(weight)
        return many
    made = data_module.Data(edge_index=torch.from_numpy(graph.edge_index), num_nodes=graph.num_nodes)
    if graph.x is not None:
        made.x = tensor(graph.x)
    if graph.edge_weight is not None:
        made.edge_weight = torch.from_numpy(graph.edge_weight.copy())
    if graph.edge_type is not None:
        made.edge_type = torch.from_numpy(graph.edge_type.astype(np.int64))
    for name, part in _node_parts(graph, slice(None)).items():
        setattr(made, name, part)
    return made


def to_dgl(graph: Any) -> Any:
    """Does what Graph.to_dgl() describes."""
    torch, dgl = imported("torch", "Graph.to_dgl()"), imported("dgl", "Graph.to_dgl()")
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
            data["feat"] = tensor(x)
        for name, part in (_node_parts(graph, rows) if labelled else {}).items():
            data["label" if name == "y" else name] = part
    return made


def to_pandas(graph: Any) -> Any:
    """Does what Graph.to_pandas() describes."""
    return imported("pandas", "Graph.to_pandas()").DataFrame(_edge_table(graph))


def to_arrow(graph: Any) -> Any:
    """Does what Graph.to_arrow() describes."""
    arrow = imported("pyarrow", "Graph.to_arrow()")
    try:
        return arrow.table(_edge_table(graph))
    except (TypeError, ValueError) as error:  # what Arrow raises comes from these
        raise UserError(f"Graph.to_arrow(): Arrow has no type for the ids of the nodes: {error} (use to_pandas(), or "
                        "number the nodes)") from None
