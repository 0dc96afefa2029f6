"""Runs the Python examples of docs/python.md, in order and with the names that those before have
defined. Small data stand in for what the page leaves to its reader."""
import importlib.util
import os
import pathlib
import re

import pytest
from conftest import communities, splits
from test_model import GATED

import nacre

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
LIBRARY = os.environ.get("NACRE_MODEL_LIBRARY")
# Maps a text to what an example that contains it needs: a package, or a library of models.
NEEDS = {'output="torch"': "torch", "NeighborLoader": "torch_geometric", "sklearn": "sklearn",
         "libmine.so": "a library"}


def missing(code):
    """Returns what an example needs, but is not here, or None."""
    for text, name in NEEDS.items():
        if text in code and not (LIBRARY if name == "a library" else importlib.util.find_spec(name)):
            return name
    return None


def convolution(ends, edge_index):
    """Adds up the rows of the sources at each destination, as a layer of another library might."""
    sources, destinations = ends
    return destinations.index_add(0, edge_index[1], sources[edge_index[0]])


def stand_ins(code):
    """Returns what an example takes from its reader."""
    edge_index, x, y = communities()
    masks = splits()
    names = {"edge_index": edge_index, "x": x, "y": y}
    names |= {name: masks[name + "_mask"] for name in ("train", "val", "test")}
    if 'output="torch"' in code or "NeighborLoader" in code:
        import torch
        names = {"features": torch.from_numpy(x), "labels": torch.from_numpy(y).long(), "convs": [convolution] * 2,
                 "criterion": torch.nn.functional.cross_entropy, "model": lambda rows, edges: rows}
    if "NeighborLoader" in code:
        names["data"] = nacre.Graph(edge_index, x=x, y=y, **masks).to_pyg()
    return names


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not here")
def test_examples_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_model.py").write_text(GATED)
    if LIBRARY:
        (tmp_path / "libmine.so").symlink_to(os.path.abspath(LIBRARY))
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(examples) >= 9
    names = {}
    for number, code in enumerate(examples, 1):
        if missing(code) is None:
            names |= stand_ins(code)
            exec(compile(code, f"{PAGE.name}, example {number}", "exec"), names)
    # The callback must also work after epochs without scores (eval_every=3).
    assert nacre.train(names["graph"], epochs=4, eval_every=3, callback=names["good_enough"]).result["epochs"] >= 3
    assert names["run"].result["epochs"] > 0 and (tmp_path / "runs/mine/config.json").exists()
