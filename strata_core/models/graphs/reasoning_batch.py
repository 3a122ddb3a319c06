"""What the graph reasoner reads: examples laid out as flat tensors, with all index structure made beforehand.

Each example has a copy of its graph, and each branch of its query has one too: the walk of a branch takes place in the
branch's copy, of which only what it can reach is there, and what it comes to is brought together in the example's.

Shapes: B examples, M nodes and F edges of the examples' graphs, S branches, N nodes and E edges of the branches'
graphs, T steps of the longest branch, K branches of the query with most of them, P paths, A answers, Q twin pairs, I
items of the next-hop loss and C edges to choose from in them, L links, J edges of the relation loss, X paths of the
branch with most of them, O edges that leave the node with most of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class ReasoningBatch:
    """Tensors are int64 unless another type is given. A row number one past the last stands for nothing.

    Attributes:
        node_types_M, node_examples_M: of the examples' nodes.
        edges_F3, edge_examples_F: source, relation, destination.
        branch_nodes_N: the example's node that a branch's node is a copy of.
        node_branches_N, branch_edges_E3, edge_branches_E: of the branches' graphs.
        branch_starts_S: node of the branch's graph.
        branch_examples_S: whose it is.
        steps_ST: relations to follow; relation + number of relations: backwards; 0 behind the end.
        lengths_S: how many.
        branch_rows_KM: for each node of an example and each of its branches the branch's node; N where the example has
            no such branch, N + 1 where its walk cannot get there.
        modes_B, statuses_B: graph_example.Mode and Status.
        numbers_B: the answer to a question for a number, or -1.
        answers_A, answer_examples_A: nodes of examples.
        path_edges_PT: edges of examples in walking order, or F.
        path_lengths_P, path_branches_P: edges may be more than the T that are given.
        path_supports_P: bool, whether it is a supporting one.
        branch_paths_SX: given paths of each branch, or P.
        out_edges_MO: edges that leave each node, or F.
        pairs_Q2: an example that lacks an edge, and its supported twin.
        hop_branches_I, hop_steps_I: a place on a supporting path.
        choice_items_C, choice_edges_C: edges that leave its node.
        choice_supports_C: bool, whether a supporting path goes on over it.
        support_nodes_M: bool, whether the node lies on a supporting path.
        links_L2: two nodes of an example.
        link_exists_L: bool.
        relation_edges_J: edges whose relation is to be told.
    """

    node_types_M: Tensor
    node_examples_M: Tensor
    edges_F3: Tensor
    edge_examples_F: Tensor
    branch_nodes_N: Tensor
    node_branches_N: Tensor
    branch_edges_E3: Tensor
    edge_branches_E: Tensor
    branch_starts_S: Tensor
    branch_examples_S: Tensor
    steps_ST: Tensor
    lengths_S: Tensor
    branch_rows_KM: Tensor
    modes_B: Tensor
    statuses_B: Tensor
    numbers_B: Tensor
    answers_A: Tensor
    answer_examples_A: Tensor
    path_edges_PT: Tensor
    path_lengths_P: Tensor
    path_branches_P: Tensor
    path_supports_P: Tensor
    branch_paths_SX: Tensor
    out_edges_MO: Tensor
    pairs_Q2: Tensor
    hop_branches_I: Tensor
    hop_steps_I: Tensor
    choice_items_C: Tensor
    choice_edges_C: Tensor
    choice_supports_C: Tensor
    support_nodes_M: Tensor
    links_L2: Tensor
    link_exists_L: Tensor
    relation_edges_J: Tensor

    @property
    def n_examples(self) -> int:
        """B."""
        return self.modes_B.shape[0]
