"""NeighborLoader has the interface of PyTorch Geometric's loader, but uses Nacre's sampler."""
from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

import numpy as np

from ._arrays import chosen, to_numpy
from ._convert import imported
from ._core import UserError
from ._graph import Graph
from ._sampler import Batch, Sampler


# These are settings of torch_geometric's NeighborLoader. Those in _IGNORED change no batch, so
# every value is accepted. Those in _USUAL are accepted only with the value for which both loaders
# do the same.
_IGNORED = {"num_workers", "persistent_workers", "pin_memory", "prefetch_factor", "filter_per_worker", "is_sorted",
            "temporal_strategy"}
_USUAL = {"directed": True, "disjoint": False, "subgraph_type": "directional", "input_time": None, "time_attr": None,
          "transform_sampler_output": None, "neighbor_sampler": None}


class NeighborLoader:
    """Yields mini-batches as torch_geometric Data objects, with the arguments and the attributes of
    torch_geometric.loader.NeighborLoader:

        loader = nacre.NeighborLoader(data, num_neighbors=[15, 10], batch_size=1024,
                                      input_nodes=data.train_mask, shuffle=True)
        for batch in loader:
            out = model(batch.x, batch.edge_index)[:batch.batch_size]

    data may be a Data object or a nacre.Graph. A batch has everything that Data holds for its nodes
    and edges, and n_id, e_id, input_id, batch_size, num_sampled_nodes and num_sampled_edges. The
    neighbours of a node are drawn once, as many as num_neighbors says for the hop in which the node
    is reached. With weight_attr, the name of an attribute that has a weight for each edge, they are
    drawn in proportion to these weights. A batch is prepared when it is asked for; to prepare
    batches ahead, iterate over the loader on a thread of your own.
    """

    def __init__(self, data: Any, num_neighbors: Sequence[int], input_nodes: Any = None, *, batch_size: int = 1,
                 shuffle: bool = False, drop_last: bool = False, replace: bool = False, weight_attr: str | None = None,
                 transform: Callable[[Any], Any] | None = None, seed: int = 0, **ignored: Any) -> None:
        for name, value in ignored.items():
            if name not in _IGNORED and (name not in _USUAL or getattr(value, "value", value) != _USUAL[name]):
                known = f"{name}: {value!r}" if name in _USUAL else name
                raise UserError(f"{known}: is no setting of nacre.NeighborLoader (the loader of torch_geometric has more settings)")
        self.data = data.to_pyg() if isinstance(data, Graph) else data
        if hasattr(self.data, "node_types"):
            raise UserError("nacre.NeighborLoader: takes graphs of one kind of nodes (HeteroData is not sampled yet)")
        if getattr(self.data, "edge_index", None) is None:
            raise UserError("nacre.NeighborLoader: the data have no edge_index (adj_t is not sampled; give edge_index)")
        self.graph = data if isinstance(data, Graph) else Graph(
            self.data.edge_index, num_nodes=self.data.num_nodes,
            edge_weight=None if weight_attr is None else self.data[weight_attr])
        nodes = np.arange(self.graph.num_nodes, dtype=np.int64) if input_nodes is None else \
            chosen(input_nodes, "input_nodes", self.graph.num_nodes)
        self.transform = transform
        self._nodes, self._position = nodes, np.empty(self.graph.num_nodes, np.int64)
        self._position[nodes] = np.arange(len(nodes))
        self._sampler = Sampler(self.graph, nodes, shuffle, drop_last,
                                {"fanout": list(num_neighbors), "batch_size": batch_size, "replace": replace,
                                 "sample_weighted": weight_attr is not None, "seed": seed})
        self._order = None if isinstance(data, Graph) else self._edge_order()

    def _edge_order(self) -> np.ndarray:
        """Returns the position in data.edge_index of each edge of the graph, which sorts edges by
        destination and then by source."""
        src, dst = to_numpy(self.data.edge_index, "edge_index")
        return np.lexsort((src, dst))

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        for drawn in self._sampler:
            batch = self._batch(drawn)
            yield batch if self.transform is None else self.transform(batch)

    def _batch(self, drawn: Batch) -> Any:
        torch = imported("torch", "nacre.NeighborLoader")
        data_module = imported("torch_geometric.data", "nacre.NeighborLoader")
        nodes, edges, edge_ids, per_hop = _once(drawn)
        n_id = torch.from_numpy(nodes)
        e_id = torch.from_numpy(edge_ids if self._order is None else self._order[edge_ids])
        batch = data_module.Data(edge_index=torch.from_numpy(edges), num_nodes=len(nodes))
        for name, value in self.data.items():
            if name in ("edge_index", "num_nodes"):
                continue
            if self.data.is_node_attr(name):
                value = value[n_id]
            elif self.data.is_edge_attr(name):
                value = value[e_id]
            batch[name] = value
        batch.n_id, batch.e_id, batch.batch_size = n_id, e_id, drawn.batch_size
        batch.input_id = torch.from_numpy(self._position[drawn.seeds])
        batch.num_sampled_nodes, batch.num_sampled_edges = per_hop
        return batch


def _once(drawn: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[list[int], list[int]]]:
    """Joins the blocks of a batch into one graph in which the neighbours of each node were drawn
    once. (The blocks draw the neighbours of a node again in every hop.) Returns the ids of the
    nodes in the order of their hops, the edges by local ids, their ids, and the numbers of nodes
    and edges of each hop."""
    hop = np.full(len(drawn.n_id), -1, np.int8)
    hop[:drawn.batch_size] = 0
    ends, ids = [], []
    for number, block in enumerate(reversed(drawn.blocks)):
        src, dst = block.edge_index
        kept = np.flatnonzero(hop[dst] == number)
        src = src[kept]
        hop[src[hop[src] < 0]] = number + 1
        ends.append(np.stack([src, dst[kept]]))
        ids.append(block.edge_id[kept])
    order = np.argsort(hop, kind="stable")
    order = order[np.searchsorted(hop[order], 0):]
    local = np.empty(len(hop), np.int64)
    local[order] = np.arange(len(order))
    counts = np.bincount(hop[order], minlength=len(ends) + 1).tolist()
    return (drawn.n_id[order], local[np.concatenate(ends, axis=1)], np.concatenate(ids),
            (counts, [part.shape[1] for part in ends]))
