"""Tests graphs from arrays and from objects of other libraries."""
import gc
import types

import numpy as np
import pytest
from conftest import communities, splits

import nacre


def address(array):
    return array.__array_interface__["data"][0]


def same_edges(graph, edge_index):
    """Compares edges as sorted pairs."""
    return sorted(zip(*graph.edge_index.tolist())) == sorted(zip(*np.asarray(edge_index).tolist()))


def test_parts():
    edge_index, x, y = communities()
    g = nacre.Graph(edge_index, x=x, y=y, name="three", **splits())
    assert (g.num_nodes, g.num_edges, g.num_features, g.num_classes) == (60, 360, 8, 3)
    assert same_edges(g, edge_index)
    np.testing.assert_array_equal(g.x, x)
    np.testing.assert_array_equal(g.y, y)
    assert g.train_idx.tolist() == list(range(20))
    assert g.test_idx.tolist() == list(range(40, 60))
    assert "three" in repr(g) and "360" in repr(g)


def test_numpy_is_not_copied():
    edge_index, x, y = communities()
    g = nacre.Graph(edge_index, x=x, y=y)
    assert address(g.x) == address(x)
    assert address(g.y) == address(y)
    assert not g.x.flags.writeable
    several = np.eye(60, 4, dtype=np.uint8)
    assert address(nacre.Graph(edge_index, y=several).y) == address(several)


def test_memory_outlives_its_names():
    edge_index, x, y = communities()
    expected = x.copy()
    g = nacre.Graph(edge_index, x=x, y=y)
    del x, y
    gc.collect()
    view = g.x
    del g
    gc.collect()
    np.testing.assert_array_equal(view, expected)


def test_other_layouts_are_copied():
    edge_index, x, y = communities()
    for other in (x.astype(np.float64), np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
        g = nacre.Graph(edge_index, x=other, y=y.astype(np.int64))
        np.testing.assert_array_equal(g.x, x)
        np.testing.assert_array_equal(g.y, y)


def test_rows_at_an_odd_address():
    edge_index, x, y = communities()
    memory = np.empty(x.size + 1, np.float32)
    odd = memory[1:].reshape(x.shape)
    odd[:] = x
    g = nacre.Graph(edge_index, x=odd, y=y, **splits())
    assert address(g.x) == address(odd)
    run = nacre.train(g, model="gcn", epochs=2, plan="off", device="cpu")
    same = nacre.train(nacre.Graph(edge_index, x=x, y=y, **splits()), model="gcn", epochs=2, plan="off", device="cpu")
    np.testing.assert_array_equal(run.scores(), same.scores())


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32, np.uint64, np.int16])
def test_types_of_ids(dtype):
    edge_index = np.array([[0, 1, 2, 2], [1, 2, 0, 0]], dtype=dtype)
    g = nacre.Graph(edge_index)
    assert same_edges(g, edge_index)
    assert same_edges(nacre.Graph((edge_index[0], edge_index[1].tolist())), edge_index)


def test_odd_graphs():
    empty = nacre.Graph(np.empty((2, 0)), num_nodes=3)
    assert (empty.num_nodes, empty.num_edges) == (3, 0)
    one = nacre.Graph([[0], [0]])
    assert (one.num_nodes, one.num_edges) == (1, 1)
    twice = nacre.Graph([[0, 0, 1], [1, 1, 1]])
    assert twice.num_edges == 3
    alone = nacre.Graph([[0], [1]], num_nodes=5)
    assert alone.num_nodes == 5


def test_weights_and_types_follow_their_edges():
    edge_index = np.array([[3, 0, 2, 1], [0, 1, 0, 0]])
    weight, kind = np.array([0.3, 0.1, 0.2, 0.4]), np.array([1, 0, 2, 1])
    g = nacre.Graph(edge_index, edge_weight=weight, edge_type=kind)
    given = {(s, d): (np.float32(w), t) for s, d, w, t in zip(*edge_index, weight, kind)}
    for s, d, w, t in zip(*g.edge_index, g.edge_weight, g.edge_type):
        assert given[s, d] == (w, t)


def test_words_as_classes():
    g = nacre.Graph([[0, 1], [1, 2]], y=["b", "a", None])
    assert g.class_names == ["a", "b"]
    assert g.y.tolist() == [1, 0, -1]
    assert nacre.Graph([[0, 1], [1, 2]], y=[1.0, float("nan"), 0.0]).y.tolist() == [1, -1, 0]
    numbers = nacre.Graph([[0, 1], [1, 2]], y=[1, None, 0])
    assert numbers.y.tolist() == [1, -1, 0] and not numbers.class_names


def test_data_options():
    edge_index, x, y = communities()
    g = nacre.Graph(edge_index, x=x, y=y, split="stratified:0.5/0.2/0.3", split_seed=3, undirected=True)
    assert len(g.train_idx) == 30 and g.num_edges > 360
    assert nacre.Graph(edge_index, y=y, features="degree").num_features > 0


@pytest.mark.parametrize("arguments, text", [
    ({"edge_index": [[0, 5], [1, 0]], "num_nodes": 2}, "edge_index[0]: node 5 at position 1 does not exist"),
    ({"edge_index": [[0, -1], [1, 0]]}, "node -1"),
    ({"edge_index": np.zeros((4, 2), int)}, "give edge_index.T"),
    ({"edge_index": np.zeros(4, int)}, "instead of [2, number of edges]"),
    ({"edge_index": [[0.5], [1]]}, "not whole numbers"),
    ({"edge_index": [[0], [1]], "x": np.zeros((3, 2)), "num_nodes": 2}, "x: has 3 values, but the graph has 2 nodes"),
    ({"edge_index": [[0], [1]], "x": np.full((2, 1), np.nan)}, "finite"),
    ({"edge_index": [[0], [1]], "y": [0, 0.5]}, "no classes"),
    ({"edge_index": [[0], [1]], "y": [0, -7]}, "-1 means unlabelled"),
    ({"edge_index": [[0], [1]], "edge_weight": [1, 2, 3]}, "edge_weight: has 3 values"),
    ({"edge_index": [[0], [1]], "y": [0, 1], "train_mask": [0], "val_mask": [0]}, ""),
    ({"edge_index": [[0], [1]], "x": np.eye(2), "train_mask": np.ones(5, bool)}, "train_mask"),
    ({"edge_index": [[0], [1]], "undirectd": True}, "did you mean '--undirected'"),
])
def test_wrong_arguments(arguments, text):
    with pytest.raises(nacre.UserError) as error:
        nacre.Graph(**arguments)
    assert text in str(error.value)
    assert isinstance(error.value, ValueError)


def test_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(([2.0, 3.0, 1.0], ([0, 1, 2], [1, 2, 2])), shape=(4, 4))
    g = nacre.Graph(matrix)
    assert (g.num_nodes, g.num_edges) == (4, 3)
    assert abs(g.to_scipy() - matrix).nnz == 0
    ones = nacre.Graph(sparse.coo_array((np.ones(2), ([0, 1], [1, 0])), shape=(2, 2)))
    assert ones.edge_weight is None
    x = sparse.random(4, 6, density=0.5, format="csr", dtype=np.float32, random_state=0)
    np.testing.assert_array_equal(nacre.Graph(matrix, x=x).x, x.toarray())
    with pytest.raises(nacre.UserError, match="square"):
        nacre.Graph(sparse.csr_matrix((2, 3)))


def test_networkx():
    networkx = pytest.importorskip("networkx")
    club = networkx.karate_club_graph()
    g = nacre.Graph(club)
    assert (g.num_nodes, g.num_edges) == (34, 2 * club.number_of_edges())
    assert g.node_ids == list(club.nodes)
    back = g.to_networkx()
    assert sorted(back.edges(data="weight")) == sorted(club.to_directed().edges(data="weight"))
    directed = networkx.DiGraph([("a", "b"), ("b", "b"), ("c", "a")])
    assert same_edges(nacre.Graph(directed), [[0, 1, 2], [1, 1, 0]])
    loop = networkx.Graph([(0, 0), (0, 1)])
    assert nacre.Graph(loop).num_edges == 3
    named = networkx.Graph([(0, 1)])
    for node in named:
        named.nodes[node].update(x=[float(node), 1.0], y=node)
    assert nacre.Graph(named).x.tolist() == [[0, 1], [1, 1]]
    named.add_edge(0, "c")
    named.nodes["c"].update(x=[2.0, 2.0])
    g = nacre.Graph(nacre.Graph(named).to_networkx())
    assert g.node_ids == [0, 1, "c"] and g.num_edges == 4
    assert g.x.tolist() == [[0, 1], [1, 1], [2, 2]] and g.y.tolist() == [0, 1, -1]
    for node, word in zip(named, ("one", "two", None)):
        named.nodes[node]["y"] = word
    g = nacre.Graph(nacre.Graph(named).to_networkx())
    assert g.class_names == ["one", "two"] and g.y.tolist() == [0, 1, -1]


def test_pandas():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"weight": [1.0, 2.0, 3.0], "src": [0, 1, 2], "dst": [1, 2, 0]})
    g = nacre.Graph(table)
    assert same_edges(g, [[0, 1, 2], [1, 2, 0]])
    words = pandas.DataFrame({"from": ["x", "y"], "to": ["y", "z"], "type": ["likes", "knows"]})
    g = nacre.Graph(words)
    assert g.node_ids == ["x", "y", "z"]
    assert same_edges(g, [[0, 1], [1, 2]])
    assert sorted(g.edge_type.tolist()) == [0, 1]


def test_tables_are_read_without_warnings(recwarn):
    pandas = pytest.importorskip("pandas")
    nacre.Graph(pandas.DataFrame({"src": [0, 1], "dst": [1, 0]}))
    assert not recwarn.list


def test_objects_that_look_like_pyg_data():
    edge_index, x, y = communities()
    data = types.SimpleNamespace(edge_index=edge_index, x=x, y=y, num_nodes=60, edge_attr=np.ones((360, 1)), **splits())
    g = nacre.Graph(data)
    assert g.edge_weight.tolist() == [1] * 360
    assert address(g.x) == address(x)
    assert len(g.val_idx) == 20


def test_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    edge_index, x, y = communities()
    tensor = torch.from_numpy(x).requires_grad_()
    g = nacre.Graph(torch.from_numpy(edge_index), x=tensor, y=torch.from_numpy(y).long())
    assert address(g.x) == tensor.data_ptr()
    np.testing.assert_array_equal(g.y, y)
    half = tensor.detach().bfloat16()
    np.testing.assert_array_equal(nacre.Graph(edge_index, x=half).x, half.float().numpy())


def test_pyg():
    data_module = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
    import torch
    edge_index, x, y = communities()
    masks = {name: torch.from_numpy(mask) for name, mask in splits().items()}
    data = data_module.Data(edge_index=torch.from_numpy(edge_index), x=torch.from_numpy(x),
                            y=torch.from_numpy(y).long(), **masks)
    g = nacre.Graph(data)
    back = g.to_pyg()
    assert back.x.data_ptr() == data.x.data_ptr()
    assert torch.equal(back.y, data.y) and torch.equal(back.train_mask, data.train_mask)
    assert same_edges(g, back.edge_index.numpy())


def test_load_and_save(tmp_path):
    g = nacre.load("twin:cora")
    assert (g.num_nodes, g.num_classes) == (2708, 7)
    g.save(tmp_path / "copy.nacre")
    again = nacre.load(tmp_path / "copy.nacre")
    np.testing.assert_array_equal(again.x, g.x)
    np.testing.assert_array_equal(again.edge_index, g.edge_index)
    assert nacre.load("twin:cora", split="random:0.1/0.1/0.8").train_idx.size == 271
    with pytest.raises(nacre.UserError, match="no such file"):
        nacre.load(tmp_path / "nothing.npz")
    with pytest.raises(nacre.UserError, match="did you mean '--splits'|did you mean '--split'"):
        nacre.load("twin:cora", spilt="random:0.1/0.1/0.8")
    with pytest.raises(nacre.UserError, match=".nacre"):
        g.save(tmp_path / "copy.npz")
