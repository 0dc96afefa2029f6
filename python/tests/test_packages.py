"""Tests graphs and batches of PyTorch Geometric, DGL, Arrow and experiment trackers. Tests of a
package that is not installed are skipped; objects that look like those of HeteroData are tested
everywhere."""
import sys
import types

import numpy as np
import pytest
from conftest import SMALL, communities, splits

import nacre


class Store(dict):
    """A Store looks like the store of one kind of nodes or edges of a HeteroData object."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]


def papers():
    """Returns a graph of papers with classes and of authors, as parts: nodes and edges by kind."""
    random = np.random.default_rng(0)
    y = np.arange(30) % 3
    x = np.eye(3, dtype=np.float32)[y] + random.random((30, 3), dtype=np.float32)
    nodes = {"author": Store(x=random.random((8, 5), dtype=np.float32), num_nodes=8),
             "paper": Store(x=x, y=y, num_nodes=30, **splits(30)), "venue": Store(num_nodes=2)}
    edges = {("author", "writes", "paper"): np.stack([np.arange(30) % 8, np.arange(30)]),
             ("paper", "cites", "paper"): np.stack([random.integers(0, 10, 60) * 3 + np.arange(60) % 3, np.arange(60) % 30]),
             ("paper", "in", "venue"): np.stack([np.arange(30), np.arange(30) % 2])}
    return nodes, edges


def hetero():
    nodes, edges = papers()
    stores = {**nodes, **{kind: Store(edge_index=ends) for kind, ends in edges.items()}}

    class Data:
        node_types, edge_types = list(nodes), list(edges)

        def __getitem__(self, kind):
            return stores[kind]
    return Data()


def check_kinds(graph):
    nodes, edges = papers()
    assert sorted(graph.node_types) == ["author", "paper", "venue"] and graph.num_nodes == 40
    starts = dict(zip(graph.node_types, graph.node_offsets))
    assert sorted(graph.relations) == sorted(edges)
    for number, (a, name, b) in enumerate(graph.relations):
        ends = graph.edge_index[:, graph.edge_type == number] - [[starts[a]], [starts[b]]]
        assert sorted(zip(*ends.tolist())) == sorted(zip(*edges[a, name, b].tolist()))
    rows = slice(starts["paper"], starts["paper"] + 30)
    np.testing.assert_array_equal(graph.y[rows], nodes["paper"].y)
    assert (np.delete(graph.y, np.arange(rows.start, rows.stop)) == -1).all()
    assert (graph.train_idx - rows.start).tolist() == list(range(10))
    for kind, x in zip(graph.node_types, graph.type_x):
        if kind == "venue":
            assert x is None
        else:
            np.testing.assert_array_equal(x, nodes[kind].x)


def test_several_kinds_of_nodes():
    graph = nacre.Graph(hetero())
    check_kinds(graph)
    nodes, _ = papers()
    run = nacre.train(graph, **{**SMALL, "model": "rgcn", "hidden": 16, "epochs": 30, "lr": 0.03})
    assert run.result["test_acc"] > 0.5
    assert (run.predict()[graph.train_idx] == graph.y[graph.train_idx]).mean() > 0.8
    both = hetero()
    both["author"]["y"] = np.zeros(8, np.int64)
    with pytest.raises(nacre.UserError, match="author, paper have classes"):
        nacre.Graph(both)


def test_kinds_whose_nodes_have_several_classes():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
    data = hetero()
    several = np.eye(3, dtype=np.uint8)[data["paper"]["y"]]
    data["paper"]["y"] = several
    back = nacre.Graph(data).to_pyg()
    assert "y" not in back["author"] and torch.equal(back["paper"].y, torch.from_numpy(several).float())
    assert nacre.Graph(back).to_pyg()["paper"].train_mask.sum() == 10


def test_kinds_share_memory():
    data = hetero()
    graph = nacre.Graph(data)
    views = dict(zip(graph.node_types, graph.type_x))
    assert views["paper"].ctypes.data == data["paper"].x.ctypes.data


def test_hetero_data_of_pyg():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data_module = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
    nodes, edges = papers()
    data = data_module.HeteroData()
    for kind, store in nodes.items():
        for name, value in store.items():
            data[kind][name] = torch.from_numpy(value) if isinstance(value, np.ndarray) else value
    for kind, ends in edges.items():
        data[kind].edge_index = torch.from_numpy(ends)
    graph = nacre.Graph(data)
    check_kinds(graph)
    back = graph.to_pyg()
    assert back["paper"].x.data_ptr() == data["paper"].x.data_ptr()
    assert torch.equal(back["paper"].y, data["paper"].y)
    assert torch.equal(back["paper"].train_mask, data["paper"].train_mask)
    assert back["venue"].num_nodes == 2 and sorted(back.edge_types) == sorted(data.edge_types)
    check_kinds(nacre.Graph(back))


def test_data_of_pyg_without_edge_index():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data_module = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
    matrix = torch.sparse_coo_tensor(torch.tensor([[1, 2, 0], [0, 0, 2]]), torch.tensor([1.0, 2.0, 3.0]), (3, 3))
    for adjacency in (matrix, matrix.to_sparse_csr()):  # a row is a destination
        graph = nacre.Graph(data_module.Data(adj_t=adjacency, num_nodes=3))
        assert graph.edge_index.tolist() == [[2, 0, 0], [0, 1, 2]] and graph.edge_weight.tolist() == [3, 1, 2]
    with pytest.raises(nacre.UserError, match="has no edges"):
        nacre.Graph(data_module.Data(x=torch.ones(3, 2)))


def test_dgl():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dgl = pytest.importorskip("dgl", reason="dgl is not installed")
    edge_index, x, y = communities()
    given = dgl.graph((torch.from_numpy(edge_index[0]), torch.from_numpy(edge_index[1])), num_nodes=60)
    given.ndata["feat"], given.ndata["label"] = torch.from_numpy(x), torch.from_numpy(y).long()
    for name, mask in splits().items():
        given.ndata[name] = torch.from_numpy(mask)
    given.edata["w"] = torch.rand(given.num_edges())
    graph = nacre.Graph(given)
    assert graph.x.ctypes.data == given.ndata["feat"].data_ptr()
    back = graph.to_dgl()
    assert back.ndata["feat"].data_ptr() == given.ndata["feat"].data_ptr()
    assert torch.equal(back.ndata["label"], given.ndata["label"])
    assert torch.equal(back.ndata["val_mask"], given.ndata["val_mask"])
    triples = [sorted(zip(*(end.tolist() for end in g.edges()), g.edata[name].tolist()))
               for g, name in ((given, "w"), (back, "weight"))]
    assert triples[0] == triples[1]
    given.edata["etype"] = torch.arange(given.num_edges()) % 3
    typed = nacre.Graph(nacre.Graph(given).to_dgl())
    found = zip(*typed.edge_index.tolist(), typed.edge_type.tolist())
    assert sorted(found) == sorted(zip(*edge_index.tolist(), given.edata["etype"].tolist()))
    nodes, edges = papers()
    many = dgl.heterograph({kind: tuple(torch.from_numpy(end) for end in ends) for kind, ends in edges.items()},
                           num_nodes_dict={kind: store.num_nodes for kind, store in nodes.items()})
    for kind, store in nodes.items():
        for name, value in store.items():
            if isinstance(value, np.ndarray):
                many.nodes[kind].data[{"x": "feat", "y": "label"}.get(name, name)] = torch.from_numpy(value)
    check_kinds(nacre.Graph(many))
    check_kinds(nacre.Graph(nacre.Graph(many).to_dgl()))


def test_arrow():
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = arrow.table({"src": [0, 1, 2], "dst": [1, 2, 0], "weight": [1.0, 2.0, 3.0]})
    graph = nacre.Graph(table)
    assert arrow.Table.from_pandas(graph.to_pandas()).num_rows == 3
    ends = [[0, 1], [1, 2]]
    assert nacre.Graph(ends, y=arrow.array(["b", "a", None])).y.tolist() == [1, 0, -1]
    assert nacre.Graph(ends, y=arrow.array([1, 0, None])).y.tolist() == [1, 0, -1]
    assert nacre.Graph(ends, x=arrow.table({"a": [1.0, 2.0, 3.0], "b": [0.0, 0.0, 1.0]})).x.tolist() == [[1, 0], [2, 0], [3, 1]]


def test_pandas_and_back():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"source": [2, 0, 1], "target": [0, 1, 2], "weight": [3.0, 1.0, 2.0], "type": [1, 0, 1]})
    back = nacre.Graph(table).to_pandas().astype({"weight": float, "type": int})
    pandas.testing.assert_frame_equal(back.sort_values("source", ignore_index=True),
                                      table.sort_values("source", ignore_index=True))


def test_batches_whose_neighbours_are_drawn_once(graph):
    from nacre._loader import _once
    edges = {edge: number for number, edge in enumerate(zip(*graph.edge_index.tolist()))}
    for batch in nacre.sampler(graph, fanout=[2, 3], batch_size=4, seed=5):
        nodes, local, ids, (per_hop, edges_per_hop) = _once(batch)
        assert nodes[:per_hop[0]].tolist() == batch.seeds.tolist()
        assert len(set(nodes.tolist())) == len(nodes) == sum(per_hop)
        assert {pair for pair in zip(*nodes[local].tolist())} <= set(edges)
        assert [graph.edge_index[:, i].tolist() for i in ids] == nodes[local].T.tolist()
        counts = np.bincount(local[1], minlength=len(nodes))
        bounds = np.cumsum(per_hop)
        assert counts[:bounds[0]].max() <= 2 and counts[bounds[0]:bounds[1]].max(initial=0) <= 3
        assert counts[bounds[1]:].sum() == 0 and edges_per_hop == [counts[:bounds[0]].sum(), counts[bounds[0]:].sum()]
        degree = np.bincount(graph.edge_index[1], minlength=60)[nodes]
        assert (counts[:bounds[0]] == np.minimum(degree[:bounds[0]], 2)).all()


def test_neighbor_loader():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data_module = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
    edge_index, x, y = communities()
    data = data_module.Data(edge_index=torch.from_numpy(edge_index), x=torch.from_numpy(x), y=torch.from_numpy(y).long(),
                            edge_attr=torch.arange(360.0).reshape(-1, 1), train_mask=torch.from_numpy(splits()["train_mask"]))
    loader = nacre.NeighborLoader(data, num_neighbors=[2, 2], batch_size=8, input_nodes=data.train_mask, shuffle=True)
    assert len(loader) == 3
    seen = []
    for batch in loader:
        assert torch.equal(batch.x, data.x[batch.n_id]) and torch.equal(batch.y, data.y[batch.n_id])
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
        assert torch.equal(batch.edge_attr, data.edge_attr[batch.e_id])
        seen += batch.n_id[:batch.batch_size].tolist()
        assert torch.equal(data.train_mask.nonzero().flatten()[batch.input_id], batch.n_id[:batch.batch_size])
    assert sorted(seen) == list(range(20))
    data.likes = (data.edge_index[0] % 2).float()
    usual = {"directed": True, "disjoint": False, "subgraph_type": "directional", "time_attr": None, "num_workers": 4}
    for batch in nacre.NeighborLoader(data, [2, 2], batch_size=8, weight_attr="likes", **usual):
        assert (batch.likes == 1).all() and len(batch.likes) > 0  # edges of weight 0 are not drawn
    # As in PyTorch Geometric, the third argument may be the nodes without a keyword.
    assert len(nacre.NeighborLoader(data, [2, 2], data.train_mask, batch_size=8)) == 3
    with pytest.raises(nacre.UserError, match="subgraph_type: 'induced'"):
        nacre.NeighborLoader(data, [2], subgraph_type="induced")


@pytest.mark.parametrize("nodes, text", [([0, 7], "node 7 does not exist"), ([-1], "node -1 does not exist"),
                                         (np.ones(4, bool), r"the shape \[4\]")])
def test_nodes_of_a_loader(nodes, text):
    data = types.SimpleNamespace(edge_index=np.array([[0, 1], [1, 2]]), num_nodes=3)
    assert len(nacre.NeighborLoader(data, [2], np.array([True, False, True]))) == 2
    with pytest.raises(nacre.UserError, match=f"input_nodes: .*{text}"):
        nacre.NeighborLoader(data, [2], nodes)
    with pytest.raises(nacre.UserError, match="have no edge_index"):
        nacre.NeighborLoader(types.SimpleNamespace(num_nodes=3), [2])


def test_trackers(graph, monkeypatch):
    """Weights & Biases and MLflow must get the figures of every epoch."""
    logged = []
    wandb = types.ModuleType("wandb")
    wandb.init = lambda **settings: types.SimpleNamespace(log=lambda figures, step: logged.append((settings, figures, step)))
    mlflow = types.ModuleType("mlflow")
    mlflow.log_metrics = lambda figures, step, run_id: logged.append((run_id, figures, step))
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    run = nacre.train(graph, **SMALL, eval_every=2, callback=[nacre.wandb_logger(project="p"), nacre.mlflow_logger("r")])
    assert [step for _, _, step in logged] == [epoch for epoch in range(1, 6) for _ in range(2)]
    for settings, figures, step in logged:
        assert settings in ({"project": "p"}, "r")
        line = run.metrics[step - 1]
        assert figures == {name: line[name] for name in ("loss", "lr", "seconds", "train", "val", "test") if name in line}


def test_logs(graph):
    run = nacre.train(graph, **SMALL, log=["csv", "tensorboard"])
    import pathlib
    lines = pathlib.Path(run.folder, "metrics.csv").read_text().splitlines()
    assert lines[0].startswith("epoch,loss") and len(lines) == 6
    reader = pytest.importorskip("tbparse", reason="tbparse is not installed").SummaryReader(run.folder + "/tensorboard")
    table = reader.scalars
    losses = table[table.tag == "loss/train"].sort_values("step").value
    np.testing.assert_allclose(losses, [line["loss"] for line in run.metrics], rtol=1e-6)
