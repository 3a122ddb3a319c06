"""Paths encoded by the walk itself: the message passing's own weights and update, along one path alone.

A path that ends before its query, or goes on behind it, comes out as zero, as a node does that no walk comes to.

Shapes: P paths, S branches, F edges, T steps, D width, K rank.
"""

from __future__ import annotations

import torch
from torch import Tensor

from strata_core.models.graphs.relational_passing import RelationalPassing
from strata_core.models.graphs.segments import take_rows


def encode_paths(
    passing: RelationalPassing,
    start_D: Tensor,
    mapped_TSK: Tensor,
    lengths_S: Tensor,
    relations_F: Tensor,
    path_edges_PT: Tensor,
    path_lengths_P: Tensor,
    path_branches_P: Tensor,
) -> Tensor:
    """What a walk of the branch's steps over the path's edges comes to, float [P, D].

    Args:
        passing: whose weights are used.
        start_D: the state at a start.
        mapped_TSK: the steps' vectors, mapped by the message weights.
        lengths_S: steps of each branch.
        relations_F: relation of each edge.
        path_edges_PT: edges, F where there is none.
        path_lengths_P: edges of each path.
        path_branches_P: the branch each path is of.
    """
    padded_relations = torch.cat([relations_F, relations_F.new_zeros(1)])
    lengths_P = lengths_S.index_select(0, path_branches_P)
    states_PD = start_D.expand(path_branches_P.shape[0], -1)
    for step in range(mapped_TSK.shape[0]):
        relations_P = padded_relations.index_select(0, path_edges_PT[:, step])
        vectors_PK = passing.weights.relation_vectors(relations_P)
        weights_PX = passing.weights(take_rows(mapped_TSK[step], path_branches_P), vectors_PK)
        moved_PD = passing.update(passing.dropout(passing.weights.apply_to(states_PD, weights_PX)))
        states_PD = torch.where((lengths_P > step)[:, None], moved_PD, states_PD)
    return states_PD * (path_lengths_P == lengths_P)[:, None]


def last_nodes(path_edges_PT: Tensor, path_lengths_P: Tensor, edges_F3: Tensor, starts_P: Tensor) -> Tensor:
    """The node that each path ends at, int64 [P]: the destination of its last given edge, or its start."""
    if path_edges_PT.shape[1] == 0:
        return starts_P
    destinations = torch.cat([edges_F3[:, 2], edges_F3.new_zeros(1)])
    last_P = (path_lengths_P.clamp(max=path_edges_PT.shape[1]) - 1).clamp(min=0)
    edge_P = path_edges_PT.gather(1, last_P[:, None])[:, 0]
    return torch.where(path_lengths_P > 0, destinations.index_select(0, edge_P), starts_P)
