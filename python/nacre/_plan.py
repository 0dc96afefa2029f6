"""Plans runs: says what a run would do, and what it would cost."""
from __future__ import annotations

import html
import json
from typing import Any

from . import _core
from ._graph import graph_of
from ._options import words


class Plan:
    """What a run would do: print(plan) shows a few lines, print(plan.details) every kernel and
    byte."""

    def __init__(self, texts: _core.PlanTexts) -> None:
        self.summary: str = texts.summary
        self.details: str = texts.details
        self._json: str = texts.json

    def to_json(self) -> str:
        """Returns the plan file, which nacre.train(plan="FILE") takes."""
        return self._json

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """The kernels of the plan, as the plan file describes them."""
        return json.loads(self._json)["kernels"]

    def save(self, path: Any) -> None:
        """Writes the plan file to `path`."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._json + "\n")

    def __str__(self) -> str:
        return self.summary

    def __repr__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        return (f"<pre>{html.escape(self.summary)}</pre><details><summary>every kernel and byte</summary>"
                f"<pre>{html.escape(self.details)}</pre></details>")


def plan(graph: Any, **options: Any) -> Plan:
    """Plans a run without running it. The settings are the options of nacre plan: model, layers,
    hidden, mode, fanout, device, plan, memory_limit, …. With device="cuda:typical", no GPU is
    needed."""
    return Plan(_core.plan(graph_of(graph)._data, words("train", options)))
