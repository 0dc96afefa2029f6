"""Tests that data and runs that do not fit into memory are refused with a message."""
import json
import pathlib

import numpy as np
import pytest
from conftest import SMALL
from test_processes import child

import nacre


# A child process that begins with this code may take 6 GiB of address space after the imports,
# which is less than the calls below need.
LIMITED = """
import resource
import nacre
with open("/proc/self/statm") as sizes:
    taken = int(sizes.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (6 << 30), taken + (6 << 30)))
"""


@pytest.mark.parametrize("call, text", [
    ("nacre.load('twin:papers100M')", "reading needs"),
    ("nacre.train('twin:papers100M', model='gcn', device='cpu')", "are needed, but only"),
    ("nacre.Graph([[0], [1]], num_nodes=4_000_000_000)", "making the graph needs"),
])
def test_what_does_not_fit_is_refused(call, text):
    done = child(f"{LIMITED}\ntry:\n    {call}\nexcept nacre.UserError as error:\n    print(error)")
    assert done.returncode == 0 and "memory" in done.stdout and text in done.stdout, (done.stdout, done.stderr)


@pytest.mark.parametrize("call", [nacre.train, nacre.Session])
def test_the_limit_of_a_run_holds(graph, call):
    with pytest.raises(nacre.UserError, match="--memory-limit"):
        call(graph, **SMALL, memory_limit="20M")


def test_the_bill_of_a_run_is_kept(graph, tmp_path):
    run = nacre.train(graph, **SMALL, checkpoint=str(tmp_path / "run"))
    phases = [phase["phase"] for phase in json.loads((tmp_path / "run/result.json").read_text())["bill"]]
    assert phases == ["training", "evaluating"]
    assert run.result["planned_mb"] == pytest.approx(max(run.result["phases_mb"].values()))


# Memory that the process held and freed before a run is not part of the run's bill.
def test_memory_that_was_freed_does_not_count(graph):
    before = nacre.train(graph, **SMALL).result["planned_mb"]
    np.ones(200 << 20, dtype=np.uint8)
    assert nacre.train(graph, **SMALL).result["planned_mb"] < before + 100


@pytest.mark.parametrize("edges", [[[0], [4_000_000_000]], [[5_000_000], [0]]])
def test_ids_that_are_not_numbered_from_0(edges):
    with pytest.raises(nacre.UserError, match="number the nodes from 0"):
        nacre.Graph(edges)


def test_the_last_relations_may_have_no_edges():
    parts = nacre._core.Parts()
    parts.src = parts.dst = np.array([0, 1])
    parts.edge_type = np.zeros(2, dtype=np.int64)
    parts.num_nodes = 3
    parts.node_types, parts.node_counts, parts.type_x = ["a", "b"], [2, 1], [None, None]
    parts.relations = [(0, "to", 0), (0, "to", 1)]
    data = nacre._core.graph_from_parts(parts, [])
    assert data.num_edge_types == 2 and len(data.relations) == 2


def test_tracing_ends_with_the_run(graph, tmp_path):
    nacre.train(graph, **SMALL, trace=str(tmp_path / "trace.json"))
    kept = (tmp_path / "trace.json").read_bytes()
    assert json.loads(kept)["traceEvents"]
    # If the first run's timeline still recorded, it would write a file beside trace.json as soon as
    # it has many spans.
    nacre.train(graph, **{**SMALL, "epochs": 3000, "eval_every": 3000})
    assert (tmp_path / "trace.json").read_bytes() == kept
    assert [path.name for path in pathlib.Path(tmp_path).glob("trace*")] == ["trace.json"]


@pytest.mark.parametrize("node", [2**32, -1])
def test_nodes_of_samplers_that_do_not_exist(graph, node):
    with pytest.raises(nacre.UserError, match=f"node {node} does not exist"):
        list(nacre.sampler(graph, fanout=[2], nodes=[node]))
