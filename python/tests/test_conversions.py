"""Tests what is missing, uneven or unusual in objects of other libraries. Objects that look like
theirs stand in for libraries that are not installed."""
import pickle
import sys
import types

import numpy as np
import pytest
from conftest import SMALL
from test_packages import Store, hetero

import nacre


def of_kinds(nodes, edges):
    """Returns an object that looks like HeteroData with these stores of nodes and edges."""
    stores = {**nodes, **edges}

    class Data:
        node_types, edge_types = list(nodes), list(edges)

        def __getitem__(self, kind):
            return stores[kind]
    return Data()


class Adjacency:
    """An Adjacency looks like a SparseTensor of torch_sparse, whose rows are destinations."""

    def __init__(self, row, col, value=None):
        self._parts = (np.array(row), np.array(col), value)

    def coo(self):
        return self._parts


def two_kinds(**parts):
    """Returns a graph of two papers and three authors; `parts` are of the papers."""
    return of_kinds({"author": Store(num_nodes=3), "paper": Store(num_nodes=2, **parts)},
                    {("author", "writes", "paper"): Store(edge_index=np.array([[0, 2], [1, 0]]))})


@pytest.mark.parametrize("y, expected, names", [
    (np.array([[1], [0]]), [-1, -1, -1, 1, 0], []),
    (np.array([1.0, np.nan]), [-1, -1, -1, 1, -1], []),
    (np.array(["b", "a"]), [-1, -1, -1, 1, 0], ["a", "b"]),
    (np.array([[0, 1], [1, 0]]), [[0, 0], [0, 0], [0, 0], [0, 1], [1, 0]], []),
])
def test_nodes_of_other_kinds_have_no_class(y, expected, names):
    graph = nacre.Graph(two_kinds(y=y, train_mask=np.array([0])))
    assert graph.y.tolist() == expected and graph.class_names == names
    assert graph.train_idx.tolist() == [3]


def test_one_kind_of_nodes():
    x, y = np.eye(3, dtype=np.float32), np.array([0, 1, 0])
    nodes = {"paper": Store(num_nodes=3, x=x, y=y, train_mask=np.array([True, True, False]))}
    cites = Store(edge_index=np.array([[0, 1], [1, 2]]))
    graph = nacre.Graph(of_kinds(nodes, {("paper", "cites", "paper"): cites}))
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]] and graph.edge_type is None
    np.testing.assert_array_equal(graph.x, x)
    assert graph.train_idx.tolist() == [0, 1]
    likes = Store(edge_index=np.array([[2], [0]]))
    both = nacre.Graph(of_kinds(nodes, {("paper", "cites", "paper"): cites, ("paper", "likes", "paper"): likes}))
    assert both.edge_type_names == ["cites", "likes"] and both.edge_type.tolist() == [1, 0, 0]
    assert nacre.train(both, **{**SMALL, "model": "rgcn", "epochs": 2}).result["epochs"] == 2
    assert nacre.Graph(both).num_features == 3


def test_edges_of_kinds_as_adjacency():
    nodes = {"author": Store(num_nodes=3), "paper": Store(num_nodes=2)}
    edges = {("author", "writes", "paper"): Store(adj_t=Adjacency([1, 0], [0, 2], np.array([2.0, 3.0]))),
             ("paper", "cites", "paper"): Store(edge_index=np.array([[0], [1]]))}
    graph = nacre.Graph(of_kinds(nodes, edges))
    triples = zip(*graph.edge_index.tolist(), graph.edge_weight.tolist())
    assert sorted(triples) == [(0, 4, 2.0), (2, 3, 3.0), (3, 4, 1.0)]


@pytest.mark.parametrize("nodes, edges, text", [
    ({"a": Store(num_nodes=2), "b": Store(num_nodes=2)}, {("a", "to", "b"): Store()},
     "the edge type a to b has no edges"),
    ({"a": Store(num_nodes=2), "b": Store(num_nodes=2)}, {("a", "to", "c"): Store(edge_index=np.zeros((2, 1), int))},
     "ends of the kind 'c', of which the graph has no nodes"),
    ({"a": Store(num_nodes=2), "b": Store(num_nodes=2)}, {("a", "to", "b"): Store(edge_index=np.array([[2], [0]]))},
     "the end 2 at position 0, but there are 2 nodes of the kind 'a'"),
    ({"a": Store(num_nodes=2), "b": Store(num_nodes=2)}, {("a", "to", "b"): Store(edge_index=np.zeros((1, 2), int))},
     r"the shape \[1, 2\], but it needs two rows"),
    ({"a": Store(num_nodes=2), "b": Store(num_nodes=None)}, {("a", "to", "a"): Store(edge_index=np.zeros((2, 1), int))},
     "the number of nodes of the kind 'b' is not known"),
    ({"a": Store(num_nodes=2, y=np.zeros(3, int)), "b": Store(num_nodes=2)},
     {("a", "to", "b"): Store(edge_index=np.zeros((2, 1), int))}, "there are 2 nodes of the kind 'a'"),
])
def test_wrong_kinds(nodes, edges, text):
    with pytest.raises(nacre.UserError, match=text):
        nacre.Graph(of_kinds(nodes, edges))


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    graph = nacre.Graph(pandas.DataFrame([[0, 1], [1, 2]]))
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(nacre.UserError, match="0: several columns"):
        nacre.Graph(pandas.DataFrame([[0, 1], [1, 2]], columns=[0, 0]))


@pytest.mark.parametrize("columns, text", [
    ({"src": [0, None], "dst": [1, 0]}, "src: row 1 of the table, counted from 0, has no value"),
    ({"src": ["a", "b"], "dst": [None, "a"]}, "dst: row 0 of the table"),
    ({"src": [0, 1], "dst": [1, 0], "type": ["x", None]}, "type: row 1 of the table"),
    ({"src": [0, 1], "dst": [1, 0], "weight": [None, 1.0]}, "weight: row 0 of the table"),
])
def test_rows_without_ends(columns, text):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(nacre.UserError, match=text):
        nacre.Graph(pandas.DataFrame(columns))


def test_ids_of_tables():
    pandas = pytest.importorskip("pandas")
    missing = pandas.DataFrame({"src": pandas.array([0, None], dtype="Int64"), "dst": [1, 0]})
    with pytest.raises(nacre.UserError, match="src: row 1"):
        nacre.Graph(missing)
    with_fractions = pandas.DataFrame({"src": [2, None], "dst": [0, 1]}).dropna()  # holds 2.0
    rest = nacre.Graph(with_fractions)
    assert rest.edge_index.tolist() == [[2], [0]] and rest.node_ids is None
    mixed = nacre.Graph(pandas.DataFrame({"src": [7, 8], "dst": ["a", "b"]}))
    assert mixed.node_ids == [7, "a", 8, "b"] and mixed.edge_index.tolist() == [[0, 2], [1, 3]]
    classes = nacre.Graph([[0, 1], [1, 2]], y=pandas.Series(pandas.array([1, None, 0], dtype="Int64")))
    assert classes.y.tolist() == [1, -1, 0]


def of_attributes(**values):
    """Returns a networkx graph with one edge, whose two nodes have these attributes."""
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("a", "b")])
    for name, parts in values.items():
        for node, part in zip(graph, parts):
            graph.nodes[node][name] = part
    return graph


@pytest.mark.parametrize("y, expected", [
    ([np.array([1, 0]), np.array([0, 1])], [[1, 0], [0, 1]]),
    ([np.array(1), None], [1, -1]),
    ([np.array([1]), None], [1, -1]),
    ([np.int64(1), None], [1, -1]),
    ([None, 0.0], [-1, 0]),
])
def test_classes_of_networkx(y, expected):
    graph = nacre.Graph(of_attributes(y=y))
    assert graph.y.tolist() == expected and not graph.class_names


@pytest.mark.parametrize("values, text", [
    ({"y": [[1, 0], None]}, "y: node 'b' has none, but other nodes have lists"),
    ({"y": [np.array([1, 0]), np.array([1])]}, r"y: the value of node 'b' has the shape \[1\]"),
    ({"x": [[1.0, 0.0], [1.0]]},
     r"x: the value of node 'b' has the shape \[1\], but that of node 'a' has the shape \[2\]"),
    ({"x": [[[1.0], [1.0, 2.0]], [1.0]]}, "x: the lists of node 'a' have different lengths"),
])
def test_uneven_attributes_of_networkx(values, text):
    with pytest.raises(nacre.UserError, match=text):
        nacre.Graph(of_attributes(**values))


class Tensor:
    """A Tensor looks like an array of JAX or CuPy: it is no NumPy array, but knows DLPack."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **settings):
        if self.device != (1, 0):
            raise BufferError("the memory lies on a GPU")
        return self.array.__dlpack__(**settings)

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class OfJax(Tensor):
    pass


class OfCuPy(Tensor):
    """An array that lies on a GPU."""

    def __init__(self, array):
        super().__init__(array, device=(2, 0))

    def get(self):
        return self.array


class OfTorch(Tensor):
    """A tensor that lies on a GPU and is trained."""

    requires_grad = True

    def __init__(self, array, trained=True):
        super().__init__(array, device=(2, 0))
        self.requires_grad = trained

    def detach(self):
        return OfTorch(self.array, False)

    def cpu(self):
        assert not self.requires_grad
        return self.array

    def numpy(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")


@pytest.mark.parametrize("kind", [OfJax, OfCuPy, OfTorch])
def test_arrays_that_know_dlpack(kind):
    edges, x, y = np.array([[0, 1], [1, 2]]), np.eye(3, dtype=np.float32), np.array([0, 1, 0], np.int32)
    mask = np.array([True, False, True])
    graph = nacre.Graph(kind(edges), x=kind(x), y=kind(y), train_mask=kind(mask))
    assert graph.edge_index.tolist() == edges.tolist() and graph.train_idx.tolist() == [0, 2]
    assert graph.x.ctypes.data == x.ctypes.data and graph.y.ctypes.data == y.ctypes.data
    pair = nacre.Graph((kind(edges[0]), kind(edges[1])))
    assert pair.edge_index.tolist() == edges.tolist()


def test_neighbours_in_the_memory_of_a_gpu():
    edges = np.array([[2, 0, 1], [1, 1, 0]])
    data = types.SimpleNamespace(edge_index=OfTorch(edges), num_nodes=3)
    loader = nacre.NeighborLoader(data, [2])
    src, dst = edges[:, loader._order]
    assert [src.tolist(), dst.tolist()] == loader.graph.edge_index.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_between_addresses(dtype):
    """Values that were read from the middle of a file may lie at any address; they are copied."""
    values = np.arange(6, dtype=dtype)
    odd = np.frombuffer(b"-" + values.tobytes(), dtype, offset=1).reshape(3, 2)
    assert not odd.flags.aligned
    graph = nacre.Graph([[0, 1], [1, 2]], x=odd)
    assert graph.x.flags.aligned and graph.x.tolist() == odd.tolist()
    ends = np.frombuffer(b"-" + np.arange(3).tobytes(), np.int64, offset=1)
    classes = np.frombuffer(b"-" + np.arange(3, dtype=np.int32).tobytes(), np.int32, offset=1)
    graph = nacre.Graph((ends, ends), y=classes)
    assert graph.y.flags.aligned and graph.y.tolist() == [0, 1, 2]


def words_and_types():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"source": ["x", "y", "z"], "target": ["y", "z", "x"], "type": ["likes", "knows", "likes"]})


def rows(table):
    return sorted(zip(table["source"], table["target"], table["type"]))


def test_tables_keep_words():
    table = words_and_types()
    graph = nacre.Graph(table)
    assert graph.edge_type_names == ["knows", "likes"]
    for same in (graph, nacre.Graph(graph), pickle.loads(pickle.dumps(graph))):
        assert rows(same.to_pandas()) == rows(table)
    assert nacre.Graph(graph, edge_type=[0, 1, 2]).edge_type_names == []
    kinds = nacre.Graph(hetero()).to_pandas()
    assert set(kinds["type"]) == {"writes", "cites", "in"}
    same = nacre.Graph(of_kinds({"a": Store(num_nodes=1), "b": Store(num_nodes=1)},
                                {("a", "to", "b"): Store(edge_index=np.zeros((2, 1), int)),
                                 ("b", "to", "a"): Store(edge_index=np.zeros((2, 1), int))}))
    assert same.edge_type_names == ["a to b", "b to a"]


def test_networkx_keeps_kinds():
    pytest.importorskip("networkx")
    graph = nacre.Graph(hetero())
    made = graph.to_networkx()
    starts = dict(zip(graph.node_types, graph.node_offsets))
    for kind, x in zip(graph.node_types, graph.type_x):
        node = made.nodes[starts[kind] + 1]
        assert node["kind"] == kind and ("x" in node) == (x is not None)
        if x is not None:
            np.testing.assert_array_equal(np.array(node["x"], np.float32), x[1])
    assert {kind for _, _, kind in made.edges(data="type")} == {"writes", "cites", "in"}
    words = nacre.Graph(words_and_types()).to_networkx()
    assert sorted(words.edges(data="type")) == rows(words_and_types())


def test_to_arrow():
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = nacre.Graph(words_and_types()).to_arrow()
    assert isinstance(table, arrow.Table) and rows(table.to_pydict()) == rows(words_and_types())
    weighted = nacre.Graph([[0, 1], [1, 0]], edge_weight=[2.0, 3.0]).to_arrow()
    assert weighted.to_pydict() == {"source": [1, 0], "target": [0, 1], "weight": [3.0, 2.0]}
    mixed = nacre.Graph([[0, 1], [1, 0]])
    mixed.node_ids = [0, "a"]
    with pytest.raises(nacre.UserError, match="Arrow has no type for the ids"):
        mixed.to_arrow()


def test_columns_for_arrow(monkeypatch):
    """Arrow must get arrays of numbers and lists of words."""
    monkeypatch.setitem(sys.modules, "pyarrow", types.SimpleNamespace(table=dict))
    columns = nacre.Graph(words_and_types()).to_arrow()
    assert rows(columns) == rows(words_and_types()) and isinstance(columns["source"], list)
    plain = nacre.Graph([[0, 1], [1, 0]]).to_arrow()
    assert list(plain) == ["source", "target"] and plain["source"].dtype == np.int64


@pytest.mark.parametrize("package, call", [
    ("scipy", lambda graph: graph.to_scipy()),
    ("networkx", lambda graph: graph.to_networkx()),
    ("torch", lambda graph: graph.to_pyg()),
    ("torch", lambda graph: graph.to_dgl()),
    ("pandas", lambda graph: graph.to_pandas()),
    ("pyarrow", lambda graph: graph.to_arrow()),
    ("torch", lambda graph: nacre.sampler(graph, fanout=[2], output="torch")),
    ("tqdm", lambda graph: nacre.train(graph, progress=True, **SMALL)),
    ("wandb", lambda graph: nacre.wandb_logger(project="p")),
    ("mlflow", lambda graph: nacre.mlflow_logger()),
])
def test_packages_that_are_not_installed(graph, monkeypatch, package, call):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(nacre.UserError, match=rf"needs the package {package}.*\(pip install {package}\)"):
        call(graph)
