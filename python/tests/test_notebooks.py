"""Runs the notebooks of examples/notebooks: every cell, in order, with the value of its last line
shown as Jupyter would."""
import ast
import json
import pathlib

import pytest

import nacre

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "notebooks"


def shown(value):
    """Returns what a notebook shows for a value."""
    html = getattr(value, "_repr_html_", None)
    return html() if html is not None else repr(value)


def run_cell(text, names, where):
    """Runs a cell and shows the value of its last line, if that is an expression."""
    tree = ast.parse(text, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), where, "eval"), names)
        assert value is None or shown(value)


@pytest.mark.skipif(not FOLDER.exists(), reason="the notebooks are not here")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = json.loads(path.read_text())
    assert book["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        run_cell(cell, names, f"{path.name}, cell {number}")
    assert len(cells) >= 4 and names["nacre"] is nacre


def test_there_are_five():
    if not FOLDER.exists():
        pytest.skip("the notebooks are not here")
    assert len(list(FOLDER.glob("*.ipynb"))) == 5
