"""Windows that a segmenter learns from: a pure function of seed and position, marks staying where they belong."""

import numpy as np
import pytest

from strata_core.tasks.sentence_structure.segmentation import training_windows
from strata_core.tasks.sentence_structure.segmentation.character_features import character_features, code_points
from strata_core.tasks.sentence_structure.segmentation.training_windows import SegmentationStream, varied
from strata_core.tasks.sentence_structure.segmentation.treebank_texts import SegmentedText, marks_of
from strata_core.tasks.sentence_structure.token_spans import TokenSpan

RATES = (
    "_LOWER_CASE",
    "_WRAPPED",
    "_WIDE_SPACED",
    "_NEW_LINES",
    "_DOUBLE_SPACES",
    "_LINE_ENDS",
    "_BROKEN",
    "_UNSTOPPED",
)


def text_of(string, stops=".!\n"):
    """Tokens are letters in a row and single stops; a sentence ends with a stop or at a blank line."""
    sentences, tokens, start = [], [], None
    for place, character in enumerate(string + "\n"):
        if start is not None and not character.isalpha():
            tokens.append(TokenSpan(start, place, (string[start:place],)))
            start = None
        if character.isalpha() and start is None:
            start = place
        if character in ".!":
            tokens.append(TokenSpan(place, place + 1, (character,)))
        if character in stops and tokens:
            sentences.append(tokens)
            tokens = []
    return SegmentedText(string, sentences)


TEXT = text_of("One two. Three four!\n\nFive six.\n\nSeven\n\n" + "Eight nine. " * 30 + "End.")


@pytest.fixture
def always(monkeypatch):
    """Each change named is made wherever it can be, and no other."""

    def set_rates(*names):
        for name in RATES:
            monkeypatch.setattr(training_windows, name, 1.0 if name in names else 0.0)

    return set_rates


def changed(string):
    text = text_of(string)
    points, marks = varied(code_points(string), marks_of(text), np.random.default_rng(0))
    return "".join(map(chr, points.tolist())), marks.tolist()


def test_a_window_is_a_pure_function_of_seed_and_position():
    one, other = (SegmentationStream([TEXT], 5, 64) for _ in range(2))
    for position in (0, 3, 7, 50, 1000):
        for first, second in zip(one.window(position, 999), other.window(position, 999), strict=True):
            assert np.array_equal(first, second)
        assert one.window(position, 999)[0].shape[0] == len(one.window(position, 999)[1]) == 64
    assert not np.array_equal(one.window(0, 999)[0], one.window(1, 999)[0])
    assert not np.array_equal(one.window(0, 999)[0], SegmentationStream([TEXT], 6, 64).window(0, 999)[0])


def test_an_epoch_reads_every_character_and_the_next_one_cuts_elsewhere(always):
    always()
    letters = [chr(0x4E00 + number) for number in range(300)]
    stream = SegmentationStream([text_of("".join(letters))], 5, 64)
    ring = character_features(code_points("".join(letters) + "\n\n"), 2**30)[:, 0].tolist()
    n_windows = 5
    starts = []
    for epoch in range(2):
        windows = [stream.window(epoch * n_windows + number, 2**30)[0][:, 0].tolist() for number in range(n_windows)]
        assert {value for window in windows for value in window} == set(ring)
        starts.append({window[0] for window in windows})
    assert not starts[0] & starts[1]


def test_a_text_shorter_than_a_window_fills_it_again_and_again(always):
    always()
    features, marks = SegmentationStream([text_of("Hi.")], 5, 64).window(0, 2**16)
    assert len(features) == 64
    assert sorted(marks.tolist())[-1] == 2 and (marks == 2).sum() in (12, 13)


def test_without_changes_a_text_stays_as_it_is(always):
    always()
    string = TEXT.text
    assert changed(string) == (string, marks_of(TEXT).tolist())


def test_case_and_spacing_change_nothing_of_the_marks(always):
    always("_LOWER_CASE")
    assert changed("One two.\n\nÉte") == ("one two.\n\néte", [0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2])
    always("_WRAPPED", "_NEW_LINES")
    assert changed("One two.") == ("One\ntwo.", [0, 0, 1, 0, 0, 0, 1, 2])
    always("_WIDE_SPACED", "_DOUBLE_SPACES")
    assert changed("A b.") == ("A  b.", [1, 0, 0, 1, 2])


def test_a_full_stop_left_out_hands_its_mark_to_the_word_before(always):
    always("_UNSTOPPED")
    assert changed("A bc.\n\nD\n\n!\n\nE.") == ("A bc\n\nD\n\n!\n\nE.", [1, 0, 0, 2, 0, 0, 2, 0, 0, 2, 0, 0, 1, 2])


def test_breaks_after_sentences_are_varied(always):
    always("_BROKEN")
    assert changed("A.\n\nB.") == ("A.\nB.", [1, 2, 0, 1, 2])
    always("_LINE_ENDS")
    found = {changed_text for seed in range(8) for changed_text in [breaks_of("A. B.", seed)]}
    assert found == {"A.\nB.", "A.\n\nB."}


def breaks_of(string, seed):
    points, marks = varied(code_points(string), marks_of(text_of(string)), np.random.default_rng(seed))
    assert marks.tolist()[:2] == [1, 2] and marks.tolist()[-2:] == [1, 2]
    return "".join(map(chr, points.tolist()))


def test_changes_leave_tokens_and_sentences_whole():
    tokens = [TEXT.text[token.start : token.end].lower() for sentence in TEXT.sentences for token in sentence]
    for seed in range(50):
        points, marks = varied(code_points(TEXT.text), marks_of(TEXT), np.random.default_rng(seed))
        string = "".join(map(chr, points.tolist()))
        ends = np.flatnonzero(marks)
        found = [string[start:end].strip().lower() for start, end in zip([0, *(ends[:-1] + 1)], ends + 1, strict=True)]
        stops = iter(found)
        # In order, nothing but full stops missing.
        missing, at = [], next(stops, None)
        for token in tokens:
            if token == at:
                at = next(stops, None)
            else:
                missing.append(token)
        assert at is None and set(missing) <= {".", "!"}
        assert (marks == 2).sum() == len(TEXT.sentences)
