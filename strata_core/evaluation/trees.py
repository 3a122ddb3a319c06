"""The best dependency tree under arc scores: a maximum spanning arborescence in which the root has one dependent.

Chu and Liu 1965, Edmonds 1967; for one root, all arcs from the root are lowered by more than any tree can make up
for, so that the best tree takes as few of them as it can (Zmigrod, Vieira and Cotterell 2020 discuss the constraint).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def decode_tree(scores: np.ndarray) -> np.ndarray:
    """The heads of the highest-scoring tree with one root; of equally good trees it is fixed which one.

    Args:
        scores: float [W, W + 1]; scores[i, h] is the score of word i + 1 having head h, 0 being the root. -inf
            forbids an arc. A word's score of being its own head is ignored.

    Returns:
        int64 [W]: the head of each word.

    Raises:
        ValueError: another shape, a NaN or +inf among the scores, or no tree without a forbidden arc.
    """
    n_words = len(scores)
    if scores.ndim != 2 or scores.shape[1] != n_words + 1:
        raise ValueError(f"scores of shape {scores.shape}, [words, words + 1] expected")
    if n_words == 0:
        return np.zeros(0, dtype=np.int64)
    arcs = np.full((n_words + 1, n_words + 1), -np.inf)
    arcs[1:] = scores
    np.fill_diagonal(arcs, -np.inf)
    if np.isnan(arcs).any() or np.isposinf(arcs).any():
        raise ValueError("arc scores must be numbers or -inf")
    heads = _greedy_tree(arcs)
    if heads is None:
        heads = _maximum_arborescence(_with_costly_root(arcs))
    chosen = arcs[np.arange(1, n_words + 1), heads[1:]]
    if not np.isfinite(chosen).all():
        raise ValueError("no tree without a forbidden arc")
    if np.count_nonzero(heads[1:] == 0) != 1:
        raise ValueError("no tree with one root without a forbidden arc")
    return heads[1:]


def _greedy_tree(arcs: np.ndarray) -> np.ndarray | None:
    """The best head of each word, where these already make a tree with one root."""
    heads = _best_heads(arcs)
    if np.count_nonzero(heads[1:] == 0) == 1 and not _find_cycle(heads).size:
        return heads
    return None


def _with_costly_root(arcs: np.ndarray) -> np.ndarray:
    """Arcs from the root made dearer than all others together can be, and forbidden arcs dearer than all of those."""
    finite = arcs[np.isfinite(arcs)]
    spread = float(np.ptp(finite)) + 1.0 if finite.size else 1.0
    costly = np.where(np.isfinite(arcs), arcs, -np.inf)
    costly[1:, 0] -= spread * len(arcs)
    floor = (finite.min() if finite.size else 0.0) - 4 * spread * len(arcs) ** 2
    costly[1:] = np.where(np.isfinite(costly[1:]), costly[1:], floor)
    np.fill_diagonal(costly, -np.inf)
    return costly


class _Contraction(NamedTuple):
    """A cycle made into the node of its first member.

    Attributes:
        members: the nodes of the cycle.
        sources, words: of each member's arc in the cycle, the two words it joins.
        node_of: for each word, the node it was part of before.
    """

    members: np.ndarray
    sources: np.ndarray
    words: np.ndarray
    node_of: np.ndarray


def _maximum_arborescence(arcs: np.ndarray) -> np.ndarray:
    """Heads of the best spanning arborescence from node 0; arcs[d, h] is the score of h heading d, diagonal -inf.

    Contracts one cycle after another, then takes them apart in reverse order. sources[d, h] and words[d, h] are the
    words that the best arc between the nodes h and d joins.
    """
    arcs = arcs.copy()
    n_nodes = len(arcs)
    node_of = np.arange(n_nodes)
    words, sources = (np.array(ends) for ends in np.indices(arcs.shape))
    contractions: list[_Contraction] = []
    heads = _best_heads(arcs)
    while (cycle := _find_cycle(heads)).size:
        inner = heads[cycle]
        contractions.append(_Contraction(cycle, sources[cycle, inner], words[cycle, inner], node_of.copy()))
        _contract(arcs, sources, words, cycle, inner)
        node_of[np.isin(node_of, cycle)] = cycle[0]
        heads = _best_heads(arcs)
    nodes = np.unique(node_of)[1:]
    entered = np.zeros(n_nodes, dtype=np.int64)
    entered[nodes] = words[nodes, heads[nodes]]
    result = np.zeros(n_nodes, dtype=np.int64)
    result[entered[nodes]] = sources[nodes, heads[nodes]]
    for contraction in reversed(contractions):
        outer_word = entered[contraction.members[0]]
        entered[contraction.members] = contraction.words
        kept = contraction.members != contraction.node_of[outer_word]
        result[contraction.words[kept]] = contraction.sources[kept]
        entered[contraction.node_of[outer_word]] = outer_word
    return result


def _best_heads(arcs: np.ndarray) -> np.ndarray:
    """The best head of each node; 0 for the root and for nodes that are part of another (all their arcs are -inf)."""
    heads: np.ndarray = arcs.argmax(axis=1)
    heads[0] = 0
    return heads


def _contract(arcs: np.ndarray, sources: np.ndarray, words: np.ndarray, cycle: np.ndarray, inner: np.ndarray) -> None:
    """Makes the first member stand for the cycle: an arc into it costs the arc of the cycle that it breaks."""
    everything = np.arange(len(arcs))
    into = arcs[cycle] - arcs[cycle, inner][:, None]
    entry = cycle[into.argmax(axis=0)]
    exit_ = cycle[arcs[:, cycle].argmax(axis=1)]
    into_scores, out_scores = into.max(axis=0), arcs[everything, exit_]
    into_ends = sources[entry, everything], words[entry, everything]
    out_ends = sources[everything, exit_], words[everything, exit_]
    node = cycle[0]
    arcs[node], arcs[:, node] = into_scores, out_scores
    sources[node], words[node] = into_ends
    sources[:, node], words[:, node] = out_ends
    arcs[cycle[1:]] = -np.inf
    arcs[:, cycle[1:]] = -np.inf
    arcs[node, node] = -np.inf


def _find_cycle(heads: np.ndarray) -> np.ndarray:
    """The nodes of one cycle of a graph in which node 0 ends every walk; empty where there is none."""
    next_node = heads.tolist()
    walk_of = [0] * len(next_node)
    for start in range(1, len(next_node)):
        node = start
        while node and not walk_of[node]:
            walk_of[node] = start
            node = next_node[node]
        if node and walk_of[node] == start:
            cycle = [node]
            while next_node[cycle[-1]] != node:
                cycle.append(next_node[cycle[-1]])
            return np.array(cycle)
    return np.zeros(0, dtype=np.int64)
