"""Graph: a data set made from arrays, from objects of other libraries, or read from files."""
from __future__ import annotations

import numbers
import os
import pathlib
import tempfile
from typing import Any

import numpy as np

from . import _core
from ._arrays import both_ends, chosen, floats, integers, missing, ready, to_numpy, whole
from ._convert import Source, source_of
from ._core import UserError
from ._options import words


class Graph:
    """A graph with features, labels and splits, ready for nacre.train().

    edge_index is an array of shape [2, E] whose rows are the sources and the destinations of the
    edges (messages flow from the source to the destination), a pair of such arrays, or an object of
    another library: a SciPy sparse matrix, a networkx graph, a torch_geometric Data or HeteroData
    object, a dgl graph, or a table of edges (pandas, Arrow). Nodes are numbered from 0. Another
    Graph may be given, too; the other arguments then replace parts of it.

    x             features, one row for each node; float32 in C order is not copied
    y             classes, one for each node: numbers from 0 (-1 = unlabelled), words, or rows of 0
                  and 1 if a node may have several; int32 and uint8 are not copied
    train_mask, val_mask, test_mask
                  truth values, one for each node, or the ids of nodes
    edge_weight, edge_type
                  one number for each edge
    num_nodes     default: the number of rows of x or y, or the largest id + 1
    num_classes   default: the largest class + 1
    name          a word for messages and run folders

    Further settings are the data options of the command line: split="random:0.6/0.2/0.2",
    split_seed=1, undirected=True, features="degree", ignore_edge_weights=True, ….

    Arrays that are not copied must not be changed while the graph is used.

    A graph can be pickled, and so be passed to another process; the copy owns its memory.
    """

    def __init__(self, edge_index: Any, x: Any = None, y: Any = None, *, train_mask: Any = None, val_mask: Any = None,
                 test_mask: Any = None, edge_weight: Any = None, edge_type: Any = None, num_nodes: int | None = None,
                 num_classes: int | None = None, name: str | None = None, **options: Any) -> None:
        given = Source(x=x, y=y, train=train_mask, val=val_mask, test=test_mask, edge_weight=edge_weight,
                       edge_type=edge_type, num_nodes=num_nodes, name=name)
        source = source_of(edge_index).overridden_by(given)
        self.node_ids: list[Any] | None = source.node_ids
        self._type_names: list[str] = source.type_names or []
        self._data = _make(source, num_classes, options)

    @classmethod
    def from_pairs(cls, train: Any, test: Any = None, val: Any = None, *, num_users: int | None = None,
                   num_items: int | None = None, name: str = "pairs") -> Graph:
        """Returns a graph of users and items, from which nacre.train() makes a recommender.

        train, test and val are arrays of shape [2, P], or pairs of arrays: the users, and the items
        that they took. Users are numbered from 0, and so are items. The pairs of test and val are
        held out of the graph; the recommender is scored by how many of them it finds. The nodes of
        the graph are all users, then all items.

        num_users, num_items   default: the largest number + 1
        name                   a word for messages and run folders
        """
        parts = {"train": train, "test": test, "val": val}
        pairs = {part: both_ends(ends, part) for part, ends in parts.items() if ends is not None}
        if len(pairs) < 2:
            raise UserError("from_pairs: needs test or val, because a recommender is scored by held-out pairs")
        counts = [-1 if count is None else whole(count, where)
                  for count, where in ((num_users, "num_users"), (num_items, "num_items"))]
        return cls._of(_core.graph_from_pairs(pairs, *counts, _utf8(str(name))))

    @classmethod
    def _of(cls, data: _core.GraphData) -> Graph:
        graph = cls.__new__(cls)
        graph.node_ids, graph._type_names = None, []
        graph._data = data
        return graph

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self._data.name

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self._data.num_nodes

    @property
    def num_edges(self) -> int:
        """The number of edges; an undirected edge counts twice."""
        return self._data.num_edges

    @property
    def num_features(self) -> int:
        """The number of columns of x."""
        return self._data.num_features

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return self._data.num_classes

    @property
    def class_names(self) -> list[str]:
        """The words for the classes; empty if classes are numbers."""
        return self._data.class_names

    @property
    def node_types(self) -> list[str]:
        """The names of the kinds of nodes; empty if nodes have no kinds. The ids of a kind follow
        those of the kind before."""
        return self._data.node_types

    @property
    def node_offsets(self) -> list[int]:
        """The first id of each kind of nodes; the last entry is the number of nodes."""
        return self._data.node_offsets

    @property
    def relations(self) -> list[tuple[str, str, str]]:
        """The edge types; each is the kind it leads from, its name and the kind it leads to."""
        kinds = self.node_types
        return [(kinds[a], name, kinds[b]) for a, name, b in self._data.relations]

    @property
    def edge_type_names(self) -> list[str]:
        """The names of the edge types by their number; empty if they are numbers only. If two
        relations have the same name, their names also say which kinds of nodes they connect."""
        names = [name for _, name, _ in self.relations]
        if len(set(names)) < len(names):
            return [" ".join(relation) for relation in self.relations]
        return names or list(self._type_names)

    @property
    def type_x(self) -> list[np.ndarray | None]:
        """The features of each kind of nodes, read-only views; empty if there are no kinds."""
        return self._data.type_x

    @property
    def notes(self) -> list[str]:
        """Assumptions that were made while the data were read."""
        return self._data.notes

    @property
    def original_ids(self) -> np.ndarray | None:
        """The id that a file had for each node, if nodes were numbered anew."""
        return self._data.original_ids

    @property
    def x(self) -> np.ndarray | None:
        """The features, a read-only view; None if there are none."""
        return self._data.x

    @property
    def y(self) -> np.ndarray | None:
        """The classes, a read-only view; None if there are none."""
        return self._data.y

    @property
    def edge_index(self) -> np.ndarray:
        """A new array [2, num_edges] of sources and destinations. Edges are ordered by destination,
        then by source, and edge_weight and edge_type have the same order."""
        return self._data.edge_index

    @property
    def edge_weight(self) -> np.ndarray | None:
        """The weight of each edge, a read-only view; None if edges have no weights."""
        return self._data.edge_weight

    @property
    def edge_type(self) -> np.ndarray | None:
        """The type of each edge, a read-only view; None if edges have no types."""
        return self._data.edge_type

    @property
    def train_idx(self) -> np.ndarray:
        """The ids of the training nodes, a read-only view."""
        return self._data.train

    @property
    def val_idx(self) -> np.ndarray:
        """The ids of the validation nodes, a read-only view."""
        return self._data.val

    @property
    def test_idx(self) -> np.ndarray:
        """The ids of the test nodes, a read-only view."""
        return self._data.test

    def __copy__(self) -> Graph:
        return self  # a graph does not change

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self

    def __reduce__(self) -> Any:
        with tempfile.TemporaryDirectory(prefix="nacre-graph-") as folder:
            path = pathlib.Path(folder, "graph.nacre")
            self._data.save(str(path))
            return _restored, (path.read_bytes(), self.name, self.node_ids, self._type_names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph as a .nacre file, which nacre.load() and the command line read."""
        name = os.fspath(path)
        if not name.endswith(".nacre"):
            raise UserError(f"{name}: does not end in .nacre (graphs are saved as .nacre files)")
        self._data.save(name)

    def to_scipy(self) -> Any:
        """Returns a SciPy CSR matrix with an entry in row SOURCE, column DESTINATION for each edge:
        its weight, or 1. Entries of edges that exist more than once are added up."""
        from ._convert import to_scipy
        return to_scipy(self)

    def to_networkx(self) -> Any:
        """Returns a networkx MultiDiGraph whose nodes are node_ids or, without these, 0, 1, ….
        Nodes have the attributes x and y, and edges weight and type, if the graph has them. With
        several kinds of nodes, x has the features of the node's kind, and kind is its name."""
        from ._convert import to_networkx
        return to_networkx(self)

    def to_pyg(self) -> Any:
        """Returns a torch_geometric Data object, or a HeteroData object if there are several kinds
        of nodes. Features are not copied."""
        from ._convert import to_pyg
        return to_pyg(self)

    def to_dgl(self) -> Any:
        """Returns a dgl graph with feat, label and the masks of its nodes. Features are not
        copied."""
        from ._convert import to_dgl
        return to_dgl(self)

    def to_pandas(self) -> Any:
        """Returns a pandas table with a row for each edge: source, target, weight and type. The
        ends are node_ids or, without these, numbers, and types with names are words."""
        from ._convert import to_pandas
        return to_pandas(self)

    def to_arrow(self) -> Any:
        """Returns a pyarrow table with the columns of to_pandas()."""
        from ._convert import to_arrow
        return to_arrow(self)

    def __repr__(self) -> str:
        classes = f", {self.num_classes:,} classes" if self.num_classes else ""
        return (f"<nacre.Graph {self.name}: {self.num_nodes:,} nodes, {self.num_edges:,} edges, "
                f"{self.num_features:,} features{classes}>")


def _restored(file: bytes, name: str, node_ids: list[Any] | None, type_names: list[str] | None = None) -> Graph:
    """Returns a graph that was pickled."""
    with tempfile.TemporaryDirectory(prefix="nacre-graph-") as folder:
        path = pathlib.Path(folder, "graph.nacre")
        path.write_bytes(file)
        graph = Graph._of(_core.restore(str(path), name))
    graph.node_ids, graph._type_names = node_ids, type_names or []
    return graph


def graph_of(value: Any) -> Graph:
    """Returns the graph that was given: as a Graph, as a path or the name of a twin, or as what
    Graph() makes a graph of."""
    if isinstance(value, Graph):
        return value
    return load(value) if is_path(value) else Graph(value)


def is_path(value: Any) -> bool:
    """Returns whether the value is what nacre.load() takes."""
    return isinstance(value, (str, bytes, os.PathLike))


def load(path: str | os.PathLike[str], **options: Any) -> Graph:
    """Reads a data set: a file or folder of any layout that the command line knows (docs/data.md),
    or a generated twin such as "twin:cora". Further settings are the data options of the command
    line, for example format, features, labels, splits, split, undirected or data_seed."""
    return Graph._of(_core.load(words("load", {"data": path, **options})))


def _classes(y: Any, parts: _core.Parts) -> None:
    """Sets the labels of `parts`: one class for each node, or rows of 0 and 1."""
    array = to_numpy(y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.reshape(-1)
    if array.ndim == 2:
        if array.size and not np.isin(array, (0, 1)).all():
            raise UserError("y: rows of 0 and 1 are needed if a node may have several classes")
        parts.targets = ready(array, np.uint8)
        return
    if array.ndim != 1:
        raise UserError(f"y: has the shape {list(array.shape)} (give one class for each node)")
    if array.dtype.kind == "O":
        array = _numbers(array)
    if array.dtype.kind in "OUST":
        known = ~missing(array)
        names, codes = np.unique(array[known].astype(str), return_inverse=True)
        labels = np.full(len(array), -1, dtype=np.int32)
        labels[known] = codes
        parts.class_names = [_utf8(str(name)) for name in names]
        parts.y = labels
        return
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, array)
        if (array != np.floor(array)).any():
            raise UserError("y: holds numbers with fractions, which are no classes (Nacre classifies nodes)")
    if array.dtype.kind not in "iubf":
        raise UserError(f"y: holds {array.dtype}, not classes")
    if array.size and (array.max() > np.iinfo(np.int32).max or array.min() < -1):
        raise UserError("y: classes are numbered from 0; -1 means unlabelled")
    parts.y = ready(array, np.int32)


def _numbers(array: np.ndarray) -> np.ndarray:
    """Returns numbers with NaN in the place of values that are missing, or the array itself if it
    holds other objects, too."""
    values = np.where(missing(array), np.nan, array).tolist()
    plain = all(isinstance(value, (numbers.Real, np.bool_)) for value in values)
    return np.array(values, np.float64) if plain else array


def _utf8(text: str) -> str:
    """Returns the text with a mark in the place of characters that UTF-8 cannot write."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _make(source: Source, num_classes: int | None, options: dict[str, Any]) -> _core.GraphData:
    parts = _core.Parts()
    parts.src, parts.dst = integers(source.src, "edge_index[0]"), integers(source.dst, "edge_index[1]")
    if source.name is not None:
        parts.name = _utf8(str(source.name))
    if source.x is not None:
        parts.x = floats(source.x, "x", 2)
    if source.y is not None:
        _classes(source.y, parts)
    if source.class_names:
        parts.class_names = source.class_names
    if source.num_nodes is not None:
        parts.num_nodes = whole(source.num_nodes, "num_nodes")
    if num_classes is not None or source.num_classes is not None:
        parts.num_classes = whole(source.num_classes if num_classes is None else num_classes, "num_classes")
    num_nodes = _core.count_nodes(parts)
    if source.kinds is not None:
        kinds = list(source.kinds)
        given = source.kind_x or {}
        parts.node_types, parts.node_counts = kinds, list(source.kinds.values())
        parts.type_x = [None if given.get(kind) is None else floats(given[kind], f"x of {kind}", 2) for kind in kinds]
        parts.relations = [(kinds.index(a), name, kinds.index(b)) for a, name, b in source.relations or []]
    if source.edge_weight is not None:
        parts.edge_weight = floats(source.edge_weight, "edge_weight", 1)
    if source.edge_type is not None:
        parts.edge_type = integers(source.edge_type, "edge_type")
    parts.train = chosen(source.train, "train_mask", num_nodes)
    parts.val = chosen(source.val, "val_mask", num_nodes)
    parts.test = chosen(source.test, "test_mask", num_nodes)
    return _core.graph_from_parts(parts, words("graph", options))
