"""The causal pass one token at a time: what each block's attention has read is kept, not computed again.

Shapes: L positions given, P positions so far, C positions there is room for, H query heads, K key and value heads,
E width of a head, D model width, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from strata_core.errors import DataError
from strata_core.models.attention import Attention
from strata_core.models.rotary import Rotation, rotate
from strata_core.models.transformer import Block, Transformer


class KeyValueCache:
    """The keys and values of one sequence in every block of a transformer, with room that grows by doubling.

    One sequence has one cache and is computed by itself, in products of the same shapes whatever else is computed:
    its bits cannot depend on other sequences.
    """

    def __init__(self, transformer: Transformer) -> None:
        self._transformer = transformer
        self._room: list[tuple[Tensor, Tensor]] = []
        self.length = 0

    def extend(self, tokens_L: Tensor) -> Tensor:
        """The normalised states of the next tokens, float [L, D]: equal to those of one pass over all so far.

        Args:
            tokens_L: int64, the first tokens of the sequence together, or one that follows.

        Raises:
            DataError: the sequence becomes longer than max_seq_len.
            ValueError: several tokens follow others.
        """
        transformer, end = self._transformer, self.length + len(tokens_L)
        if self.length and len(tokens_L) != 1:
            raise ValueError(f"{len(tokens_L)} tokens after {self.length}: only the first tokens may come together")
        if end > transformer.config.max_seq_len:
            raise DataError(f"a sequence of {end} tokens; model.max_seq_len is {transformer.config.max_seq_len}")
        states_1LD = transformer.embed(tokens_L[None])
        self._make_room(end, states_1LD)
        positions_1L = torch.arange(self.length, end, device=tokens_L.device)[None]
        rotation = transformer.rotation(states_1LD, positions_1L)
        for number, block in enumerate(transformer.blocks):
            assert isinstance(block, Block)
            states_1LD = states_1LD + self._read(number, block.attention, block.attention_norm(states_1LD), rotation)
            states_1LD = states_1LD + block.feed_forward(block.feed_forward_norm(states_1LD))
        self.length = end
        return transformer.norm(states_1LD)[0]

    def copy(self) -> KeyValueCache:
        """Another that goes on from here by itself."""
        copied = KeyValueCache(self._transformer)
        copied._room = [(keys.clone(), values.clone()) for keys, values in self._room]
        copied.length = self.length
        return copied

    def _read(self, number: int, attention: Attention, states_1LD: Tensor, rotation: Rotation) -> Tensor:
        """What the new positions read in one block, float [1, L, D]; their keys and values are kept."""
        heads = [getattr(attention, name)(states_1LD) for name in ("query", "key", "value")]
        query_1LHE, key_1LKE, value_1LKE = (flat.unflatten(-1, (-1, attention.head_width)) for flat in heads)
        keys_1KCE, values_1KCE = self._room[number]
        end = self.length + states_1LD.shape[1]
        keys_1KCE[:, :, self.length : end] = rotate(key_1LKE, rotation).transpose(1, 2)
        values_1KCE[:, :, self.length : end] = value_1LKE.transpose(1, 2)
        read_1HLE = F.scaled_dot_product_attention(
            rotate(query_1LHE, rotation).transpose(1, 2),
            keys_1KCE[:, :, :end],
            values_1KCE[:, :, :end],
            is_causal=self.length == 0,
            enable_gqa=keys_1KCE.shape[1] != query_1LHE.shape[2],
        )
        return attention.output(read_1HLE.transpose(1, 2).flatten(2))

    def _make_room(self, end: int, like: Tensor) -> None:
        config = self._transformer.config
        room = self._room[0][0].shape[2] if self._room else 0
        if end <= room:
            return
        # What a sequence has room for follows from its own length alone.
        room = min(config.max_seq_len, max(64, 1 << (end - 1).bit_length()))
        shape = (1, config.n_kv_heads, room, config.d_model // config.n_heads)
        larger = [(like.new_zeros(shape), like.new_zeros(shape)) for _ in range(config.n_layers)]
        for new, old in zip(larger, self._room, strict=False):
            for to, source in zip(new, old, strict=True):
                to[:, :, : self.length] = source[:, :, : self.length]
        self._room = larger
