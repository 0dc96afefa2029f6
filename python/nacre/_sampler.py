"""Offers Nacre's samplers by themselves, for training with another library."""
from __future__ import annotations

import dataclasses
from typing import Any, Iterator

import numpy as np

from . import _core
from ._arrays import chosen, whole
from ._convert import imported, tensor
from ._core import UserError
from ._graph import Graph, graph_of
from ._options import words


@dataclasses.dataclass(frozen=True)
class Block:
    """The edges of one layer. The destinations are the first num_dst of the sources, and sources
    are the first num_src nodes of the batch. In PyTorch Geometric:
    conv((x[:num_src], x[:num_dst]), edge_index). The arrays are of NumPy or, with output="torch",
    tensors."""

    edge_index: Any  # [2, E] of local ids: sources, destinations
    edge_id: Any  # position of each edge in graph.edge_index
    scale: Any  # weight of each edge in sums; None if every weight is 1
    num_src: int
    num_dst: int


@dataclasses.dataclass(frozen=True)
class Batch:
    """A mini-batch: its nodes, the seeds first, and one block for each layer, in the order of
    computation. The destinations of the last block are the seeds."""

    n_id: Any  # ids of the nodes in the graph
    batch_size: int  # number of seeds
    blocks: list[Block]
    loss_scale: Any  # factor of each seed in the loss (GraphSAINT)

    @property
    def seeds(self) -> Any:
        """The ids of the seeds."""
        return self.n_id[:self.batch_size]

    @property
    def num_edges(self) -> int:
        """The number of edges of all blocks."""
        return sum(block.edge_index.shape[1] for block in self.blocks)


class Sampler:
    """An iterable of mini-batches; each turn through it is the next epoch. See nacre.sampler()."""

    def __init__(self, graph: Graph, nodes: Any, shuffle: bool, drop_last: bool, options: dict[str, Any],
                 output: str = "numpy") -> None:
        if output not in ("numpy", "torch"):
            raise UserError(f"output: {output!r} is no kind of arrays (choose numpy or torch)")
        if output == "torch":
            imported("torch", 'output="torch"')
        self._array = tensor if output == "torch" else _same
        self._sampler = _core.Sampler(graph._data, words("sampler", options))
        self._num_nodes = graph.num_nodes
        if nodes is None:
            self._nodes = graph.train_idx.astype(np.int64)
            if not len(self._nodes):
                self._nodes = np.arange(graph.num_nodes, dtype=np.int64)
        else:
            self._nodes = chosen(nodes, "nodes", graph.num_nodes)
        self._shuffle, self._drop_last = shuffle, drop_last
        self.epoch = 0

    def __len__(self) -> int:
        size, rest = self._sampler.batch_size, len(self._nodes) % self._sampler.batch_size
        return len(self._nodes) // size + (1 if rest and not self._drop_last else 0)

    def sample(self, seeds: Any, epoch: int = 0, batch: int = 0) -> Batch:
        """Returns the batch of these seeds, ids of distinct nodes or truth values. The same seeds,
        epoch and number of the batch give the same batch."""
        drawn = self._sampler.sample(chosen(seeds, "seeds", self._num_nodes), whole(epoch, "epoch"), whole(batch, "batch"))
        blocks = [self._block(drawn, number) for number in range(drawn.num_blocks)]
        n_id = self._array(drawn.nodes.astype(np.int64))
        return Batch(n_id, drawn.num_seeds, blocks, self._or_none(drawn.loss_scale))

    def _block(self, drawn: _core.Sample, number: int) -> Block:
        ids = drawn.edges(number)
        return Block(self._array(drawn.edge_index(number)), self._array(np.empty(0, np.int64) if ids is None else ids),
                     self._or_none(drawn.scale(number)), drawn.num_src(number), drawn.num_dst(number))

    def _or_none(self, values: np.ndarray | None) -> Any:
        return None if values is None else self._array(values)

    def __iter__(self) -> Iterator[Batch]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        if self._sampler.draws_seeds:
            for number in range(len(self)):
                yield self.sample(np.empty(0, np.int64), epoch, number)
            return
        order = self._sampler.order(self._nodes, epoch) if self._shuffle else self._nodes
        size = self._sampler.batch_size
        for number in range(len(self)):
            yield self.sample(order[number * size:(number + 1) * size], epoch, number)


def _same(array: np.ndarray) -> np.ndarray:
    return array


def sampler(graph: Any, nodes: Any = None, *, shuffle: bool = True, drop_last: bool = False, output: str = "numpy",
            **options: Any) -> Sampler:
    """Returns an iterable of mini-batches of a graph.

        for batch in nacre.sampler(graph, fanout=[15, 10], batch_size=1024, output="torch"):
            x = features[batch.n_id]
            for conv, block in zip(convs, batch.blocks):
                x = conv((x, x[:block.num_dst]), block.edge_index)

    nodes      the seeds of an epoch, as ids or truth values; default: the training nodes
    shuffle    takes the seeds in a new order in every epoch
    drop_last  leaves out the last batch of an epoch if it is smaller than the others
    output     numpy, or torch for tensors, which share memory with Nacre: do not write to them

    Further settings are the mini-batch options of nacre train: fanout, batch_size, sampler,
    replace, sample_weighted, budget, walk_length, norm_samples; and seed. The first number of
    fanout belongs to the hop next to the seeds, as in PyTorch Geometric. A batch depends only on
    the graph, the settings, the epoch and its number, whatever the number of threads.
    """
    return Sampler(graph_of(graph), nodes, shuffle, drop_last, options, output)
