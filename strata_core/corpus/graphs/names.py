"""What the numbers in a corpus of graphs stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from strata_core.corpus.flat_arrays import json_bytes, read_versioned_json
from strata_core.corpus.graphs.layout import FORMAT_VERSION, NAMES_NAME
from strata_core.files import write_file


def numbers_by_name(names: Iterable[str]) -> dict[str, list[int]]:
    """For each name its numbers; more than one where several things share it, as OpenKE's tables let them."""
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, []).append(number)
    return numbers


@dataclass(frozen=True)
class GraphNames:
    """Names in the order of their numbers, the same in all splits of a corpus.

    Attributes:
        relations: of edges and of the steps of queries.
        node_types: of nodes; one where nodes are not told apart.
        entities: of nodes, where one graph is shared by all examples and its nodes have names; else empty.
        targets: labels that are asked for; empty where none are.
    """

    relations: tuple[str, ...]
    node_types: tuple[str, ...] = ("node",)
    entities: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Writes names.json.

        Raises:
            StorageError: the file system refused.
        """
        write_file(folder / NAMES_NAME, json_bytes({"format_version": FORMAT_VERSION, **asdict(self)}))

    @classmethod
    def read(cls, folder: Path) -> GraphNames:
        """Reads names.json.

        Raises:
            DataError: the file is missing or not understood.
        """
        keys = tuple(field.name for field in fields(cls))
        value = read_versioned_json(folder / NAMES_NAME, format_version=FORMAT_VERSION, keys=keys)
        return cls(**{key: tuple(value[key]) for key in keys})
