"""How graphs and the questions about them lie on disk: flat little-endian arrays, one file each, cut by offsets.

    graphs/
      names.json               relations, node types, entities and targets in the order of their numbers
      SPLIT/header.json        format version, rows of each array, counts
      SPLIT/ARRAY.bin          the rows of an array, nothing else

Nodes and edges are numbered from 0 within their graph. An array of offsets has one entry more than what it cuts: item
i of its owner is rows offsets[i] to offsets[i + 1] of the array it names. Several examples may ask about one graph.
"""

from __future__ import annotations

from strata_core.corpus.treebanks.structure_layout import Array

FORMAT_VERSION = 1
GRAPHS_FOLDER = "graphs"
NAMES_NAME = "names.json"

NOTHING = -1
"""Stands for what an example does not have: a number, a target, an end, a queried edge, a twin."""

ARRAYS = {
    "node_offsets": Array("<i8", 1, "offsets of graphs in node_types"),
    "node_types": Array("<i4", 1, "a node: number of its type"),
    "edge_offsets": Array("<i8", 1, "offsets of graphs in edges"),
    "edges": Array("<i4", 3, "an edge: source node, relation, destination node"),
    "example_graphs": Array("<i8", 1, "an example: the graph it asks about"),
    "id_offsets": Array("<i8", 1, "offsets of examples in ids"),
    "ids": Array("<u1", 1, "UTF-8"),
    "modes": Array("<u1", 1, "an example: what is asked for (graph_example.Mode)"),
    "statuses": Array("<u1", 1, "an example: what the graph says to it (graph_example.Status)"),
    "supported_probabilities": Array("<f4", 1, "an example: chance that it is supported, by all that can be seen"),
    "numbers": Array("<i4", 1, "an example: the answer to a question for a number"),
    "targets": Array("<i4", 1, "an example: the answer to a question for a label"),
    "ends": Array("<i4", 1, "an example: the node that is asked about beside the start"),
    "query_edges": Array("<i4", 1, "an example: the edge that is itself the answer, to be left out in training"),
    "twins": Array("<i8", 1, "an example: the supported example that it lacks an edge of"),
    "branch_offsets": Array("<i8", 1, "offsets of examples in branch_starts"),
    "branch_starts": Array("<i4", 1, "a branch of a query: node it starts from"),
    "step_offsets": Array("<i8", 1, "offsets of branches in steps"),
    "steps": Array("<i4", 1, "a step of a branch: relation to follow"),
    "answer_offsets": Array("<i8", 1, "offsets of examples in answers"),
    "answers": Array("<i4", 1, "a node that is an answer"),
    "path_offsets": Array("<i8", 1, "offsets of examples in path_kinds"),
    "path_kinds": Array("<u1", 1, "a path: graph_example.PathKind"),
    "path_branches": Array("<i4", 1, "a path: the branch of the query, from 0, whose start it leaves from"),
    "path_edge_offsets": Array("<i8", 1, "offsets of paths in path_edges"),
    "path_edges": Array("<i4", 1, "an edge of a path, in walking order"),
}
"""Every array by name."""

CUTS = {
    "node_offsets": "node_types",
    "edge_offsets": "edges",
    "id_offsets": "ids",
    "branch_offsets": "branch_starts",
    "step_offsets": "steps",
    "answer_offsets": "answers",
    "path_offsets": "path_kinds",
    "path_edge_offsets": "path_edges",
}
"""Each array of offsets, with the array that it cuts."""
