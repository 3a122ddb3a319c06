"""The query encoder: a vector for each step of a query's relation path, and one for what is asked for.

A step's vector is that of its relation and depends on no other step: compositions that training never had are walked
like those it had.
"""

from __future__ import annotations

from torch import Tensor, nn

from strata_core.models.graphs.segments import take_rows


class QueryEncoder(nn.Module):
    """Embeddings of steps and modes.

    Args:
        n_relations: relations that a step may have, inverse ones counted.
        n_modes: what may be asked for.
        width: of the vectors.
    """

    def __init__(self, n_relations: int, n_modes: int, width: int) -> None:
        super().__init__()
        self.relations = nn.Embedding(n_relations, width)
        self.modes = nn.Embedding(n_modes, width)

    def initial_stds(self) -> dict[str, float]:
        """Vectors of unit size."""
        return {"relations.weight": 1.0, "modes.weight": 1.0}

    def forward(self, steps_ST: Tensor) -> Tensor:
        """int64 relations to float [T, S, W]."""
        vectors = take_rows(self.relations.weight, steps_ST.T.reshape(-1))
        return vectors.reshape(*steps_ST.T.shape, vectors.shape[-1])

    def mode(self, modes_B: Tensor) -> Tensor:
        """int64 to float [B, W]."""
        return take_rows(self.modes.weight, modes_B)
