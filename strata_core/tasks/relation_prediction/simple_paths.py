"""Paths between two nodes of a small graph, as the relations along them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

Edge = tuple[int, int, int]


def simple_paths(
    edges: Iterable[Edge], start: int, end: int, *, max_edges: int, max_paths: int
) -> list[tuple[int, ...]]:
    """Relations along the paths from one node to another that come to no node twice.

    Where start and end are the same, these are the cycles through it. A depth-first search that only enters nodes from
    which the end is near enough, once for each length from the shortest on, so that it stops as soon as there are
    enough paths.

    Args:
        edges: (source, relation, destination), walked forwards.
        start, end: nodes.
        max_edges: longest path.
        max_paths: as many are given at most, the shortest first, those of one length in the order of the edges.

    Returns:
        Different sequences of relations; none where there is no path.
    """
    outgoing: dict[int, list[tuple[int, int]]] = {}
    incoming: dict[int, list[int]] = {}
    for source, relation, destination in edges:
        outgoing.setdefault(source, []).append((relation, destination))
        incoming.setdefault(destination, []).append(source)
    distances = _distances(incoming, end)
    if start not in distances:
        return []
    found: dict[tuple[int, ...], None] = {}
    for length in range(max(distances[start], 1), min(max_edges, len(outgoing)) + 1):
        for path in _paths_of_length(outgoing, distances, start, end, length):
            found.setdefault(path)
            if len(found) == max_paths:
                return list(found)
    return list(found)


def _distances(incoming: dict[int, list[int]], end: int) -> dict[int, int]:
    """Edges on the shortest way to the end, for each node that has one."""
    distances = {end: 0}
    queue = deque([end])
    while queue:
        node = queue.popleft()
        for source in incoming.get(node, ()):
            if source not in distances:
                distances[source] = distances[node] + 1
                queue.append(source)
    return distances


def _paths_of_length(
    outgoing: dict[int, list[tuple[int, int]]], distances: dict[int, int], start: int, end: int, length: int
) -> Iterator[tuple[int, ...]]:
    path: list[int] = []
    visited = {start}

    def walk(node: int) -> Iterator[tuple[int, ...]]:
        left = length - len(path) - 1
        for relation, destination in outgoing.get(node, ()):
            path.append(relation)
            if left == 0:
                if destination == end:
                    yield tuple(path)
            elif destination not in visited and destination != end and distances.get(destination, length) <= left:
                visited.add(destination)
                yield from walk(destination)
                visited.remove(destination)
            path.pop()

    yield from walk(start)
