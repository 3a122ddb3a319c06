"""Batches of sentences: each sentence once an epoch, like lengths together, the same for the same seed."""

import numpy as np
import pytest

from strata_core.tasks.sentence_structure.sentence_batches import SentenceBatches, cut_by_length

LENGTHS = np.random.default_rng(0).geometric(1 / 14, 500)


def batches(lengths=LENGTHS, usable=None, size=25, seed=3):
    usable = np.arange(len(lengths)) if usable is None else usable
    return SentenceBatches(np.asarray(lengths), usable, sentences_per_batch=size, seed=seed)


def epoch_of(made, epoch):
    return [made.batch(epoch * made.n_batches + place) for place in range(made.n_batches)]


@pytest.mark.parametrize("epoch", [0, 1, 5])
def test_an_epoch_has_every_usable_sentence_once_and_no_empty_batch(epoch):
    usable = np.flatnonzero(LENGTHS < 40)
    found = epoch_of(batches(usable=usable), epoch)
    assert min(map(len, found)) > 0
    assert sorted(np.concatenate(found)) == sorted(usable)


def test_batches_have_about_as_many_words_as_their_mean_number_of_sentences():
    words = [LENGTHS[batch].sum() for batch in epoch_of(batches(), 0)]
    wanted = 25 * LENGTHS.mean()
    assert all(abs(count - wanted) < LENGTHS.max() + wanted * 0.1 for count in words)
    assert len(words) == 500 // 25


def test_padding_is_small():
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in epoch_of(batches(), 2))
    assert padded < 1.25 * LENGTHS.sum()


def test_one_sentence_longer_than_a_batch_is_a_batch_with_no_other_of_its_kind():
    lengths = [3] * 60 + [400]
    found = epoch_of(batches(lengths, size=5), 0)
    assert min(map(len, found)) > 0
    assert sum(60 in batch for batch in found) == 1


def test_the_batch_of_a_step_does_not_depend_on_what_was_asked_before():
    forward = batches()
    in_order = [forward.batch(step) for step in range(50)]
    backward = batches()
    in_reverse = [backward.batch(step) for step in reversed(range(50))][::-1]
    assert all(np.array_equal(one, other) for one, other in zip(in_order, in_reverse, strict=True))


def test_epochs_and_seeds_differ_in_order_and_in_neighbours():
    first, second, other = epoch_of(batches(), 0), epoch_of(batches(), 1), epoch_of(batches(seed=4), 0)
    as_sets = [{frozenset(batch.tolist()) for batch in found} for found in (first, second, other)]
    assert as_sets[0] != as_sets[1] and as_sets[0] != as_sets[2]


def test_the_costliest_batch_has_the_longest_sentence():
    assert LENGTHS.argmax() in batches().costliest()


@pytest.mark.parametrize("n_parts", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 8, 25])
@pytest.mark.parametrize("shape", ["geometric", "even", "one long", "heavy-tailed"])
def test_no_part_of_any_batch_pads_to_more_than_the_costliest(shape, size, n_parts):
    random = np.random.default_rng(11)
    lengths = {
        "geometric": random.geometric(1 / 14, 150),
        "even": random.integers(1, 60, 150),
        "one long": np.array([3] * 149 + [400]),
        "heavy-tailed": (random.pareto(1.2, 150) * 5 + 1).astype(int).clip(1, 500),
    }[shape]
    words = np.maximum(1, (lengths * random.uniform(0.4, 1, 150)).astype(int))

    def padded(part):
        longest, wordiest = int(lengths[part].max()), int(words[part].max())
        rows = np.array([longest, longest**2, longest + wordiest, wordiest**2])
        return len(part) * rows

    made = batches(lengths, size=size)
    bound = padded(made.costliest(n_parts, words))
    for epoch in range(6):
        for batch in epoch_of(made, epoch):
            assert all((padded(part) <= bound).all() for part in cut_by_length(batch, lengths, n_parts) if len(part))


def test_parts_of_a_batch_keep_its_order_and_share_its_words():
    lengths = np.array([1, 2, 3, 4, 5, 6, 7, 8])
    parts = cut_by_length(np.arange(8), lengths, 2)
    assert [part.tolist() for part in parts] == [[0, 1, 2, 3, 4, 5], [6, 7]]
    assert [lengths[part].sum() for part in parts] == [21, 15]


def test_fewer_sentences_than_parts_leave_parts_empty():
    parts = cut_by_length(np.array([4]), np.array([0, 0, 0, 0, 9]), 3)
    assert [part.tolist() for part in parts] == [[4], [], []]
