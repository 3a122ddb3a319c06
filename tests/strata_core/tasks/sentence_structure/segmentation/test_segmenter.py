"""Texts cut by a network: nothing lost or doubled whatever it says, and the same however a text is windowed."""

import numpy as np
import pytest
import torch

from strata_core.models import initialise
from strata_core.models.segmenter import CharacterSegmenter, SegmenterConfig
from strata_core.tasks.sentence_structure.segmentation import segmenter as segmenter_module
from strata_core.tasks.sentence_structure.segmentation.character_features import character_features, code_points
from strata_core.tasks.sentence_structure.segmentation.multiword_tokens import KnownForm, MultiwordSplitter
from strata_core.tasks.sentence_structure.segmentation.segmenter import (
    CharacterMarks,
    TextSegmenter,
    mark_characters,
    token_bounds,
)

ODD = [
    "",
    " ",
    "\r\n\r\n\t ",
    "x",
    "No final newline",
    "CRLF lines\r\nand more.\r\n\r\nA paragraph.\r\n",
    "NUL \x00 and BOM \ufeff here\ufeff",
    "👩‍👩‍👧👍🏽🇫🇷🇬🇧 emoji ❤️!",
    "e\u0301te\u0301 \u0301alone",
    "שלום עולם. مرحبا بالعالم؟",
    "See http://a.org/x?y=1, or mail a.b@c.org. D.C. today.",
    '"He said: “No.”" (Yes.)',
    "lone \ud800 surrogate",
    "我们去北京。你呢？",
    "a" * 1000,
]


@pytest.fixture(scope="module")
def model():
    model = CharacterSegmenter(SegmenterConfig(width=4, n_layers=3, buckets=512)).eval()
    initialise(model, 3)
    with torch.no_grad():
        model.marks.weight.mul_(40)
    return model


def random_marks(text, seed):
    random = np.random.default_rng(seed)
    return CharacterMarks(*(random.random((3, len(text))) < 0.4))


def bounds_of(text, seed, spaces_in_words):
    return list(token_bounds(text, code_points(text), random_marks(text, seed), spaces_in_words=spaces_in_words))


@pytest.mark.parametrize("spaces_in_words", [True, False])
@pytest.mark.parametrize("text", ODD)
def test_every_character_but_white_space_is_in_one_token_whatever_the_marks(text, spaces_in_words):
    for seed in range(10):
        bounds = bounds_of(text, seed, spaces_in_words)
        covered = [place for start, end, _, _ in bounds for place in range(start, end)]
        assert covered == sorted(set(covered))
        assert {place for place, character in enumerate(text) if not character.isspace()} <= set(covered)
        for start, end, _, _ in bounds:
            assert not text[start].isspace() and not text[end - 1].isspace()
            assert spaces_in_words or text[start:end].split() == [text[start:end]]
        assert not bounds or bounds[-1][3]


def test_clusters_and_addresses_are_whole_whatever_the_marks():
    text = "👩‍👩‍👧👍🏽 e\u0301 http://a.org/x a.b@c.org"
    for seed in range(10):
        found = {(start, end) for start, end, _, _ in bounds_of(text, seed, False)}
        for piece in ("http://a.org/x", "a.b@c.org", "e\u0301"):
            assert (text.index(piece), text.index(piece) + len(piece)) in found
        assert not any(text[end : end + 1] in ("\u200d", "🏽") for _, end in found)


def test_a_blank_line_ends_a_sentence_and_a_word_whatever_the_marks():
    text = "one two\n \nthree"
    nothing = CharacterMarks(*np.zeros((3, len(text)), dtype=bool))
    found = list(token_bounds(text, code_points(text), nothing, spaces_in_words=True))
    assert found == [(0, 7, False, True), (10, 15, False, True)]


def test_a_sentence_end_moved_to_the_end_of_its_cluster_stays_one():
    text = "ae\u0301b"
    marks = CharacterMarks(*np.array([[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=bool))
    found = list(token_bounds(text, code_points(text), marks, spaces_in_words=False))
    assert found == [(0, 3, False, True), (3, 4, False, True)]


@pytest.mark.parametrize("text", [text for text in ODD if not text.isspace()] + ["ab " * 100_000])
def test_texts_are_spelled_again_from_their_spans(model, text):
    segment = TextSegmenter(model, MultiwordSplitter([]), spaces_in_words=False)
    (sentences,) = segment([text])
    tokens = [token for sentence in sentences for token in sentence]
    assert "".join(text[token.start : token.end] for token in tokens) == "".join(text.split())
    assert all(token.words == (text[token.start : token.end],) for token in tokens)
    assert all(sentences)


def test_no_text_has_no_sentence(model):
    segment = TextSegmenter(model, MultiwordSplitter([]), spaces_in_words=True)
    assert segment([]) == []
    assert segment(["", " \n\n "]) == [[], []]


def test_texts_together_are_cut_as_each_alone(model):
    segment = TextSegmenter(model, MultiwordSplitter([]), spaces_in_words=True)
    assert segment(ODD) == [segment([text])[0] for text in ODD]


def test_windows_give_the_marks_of_one_long_window(model, monkeypatch):
    text = code_points(" ".join(f"Word{number}, and 我们 more." for number in range(300)))
    features = torch.from_numpy(character_features(text, model.config.buckets))[None]
    with torch.inference_mode():
        scores = model(features, torch.ones(1, len(text), dtype=torch.bool))
    whole = segmenter_module._decide(scores.softmax(dim=-1))[:, 0].numpy()
    assert 0 < whole[0].sum() < len(text)
    for window, block in ((64, 1 << 17), (100, 700)):
        monkeypatch.setattr(segmenter_module, "WINDOW_CHARACTERS", window)
        monkeypatch.setattr(segmenter_module, "_BLOCK_CHARACTERS", block)
        (marks,) = mark_characters(model, [text])
        assert np.array_equal(np.stack(marks), whole)


def test_padding_beside_a_text_changes_nothing(model):
    features = torch.randint(0, 512, (1, 40, 11))
    real = torch.ones(1, 40, dtype=torch.bool)
    padded = torch.cat((features, torch.randint(0, 512, (1, 25, 11))), dim=1)
    with torch.inference_mode():
        alone = model(features, real)
        beside = model(padded, torch.arange(65)[None] < 40)
    torch.testing.assert_close(beside[:, :40], alone, rtol=0, atol=1e-5)


def test_a_mark_depends_on_no_more_than_the_reach_says(model):
    features = torch.randint(0, 512, (1, 80, 11))
    changed = features.clone()
    changed[0, 40] = (changed[0, 40] + 1) % 512
    real = torch.ones(1, 80, dtype=torch.bool)
    with torch.inference_mode():
        differs = (model(features, real) != model(changed, real)).any(dim=-1)[0]
    assert differs.nonzero().flatten().tolist() == list(range(40 - model.config.reach, 40 + model.config.reach + 1))


def test_words_are_split_and_hold_one_space_where_they_hold_white_space():
    class EndsAtFullStops(torch.nn.Module):
        config = SegmenterConfig(buckets=2**20)
        marks = torch.nn.Linear(1, 1)

        def forward(self, features, real):
            stop = int(character_features(code_points("."), 2**20)[0, 0])
            scores = torch.zeros(*features.shape[:2], 5)
            scores[..., 0] = 9.0
            scores[features[..., 0] == stop] = torch.tensor([0.0, 0.0, 0.0, 9.0, 0.0])
            return scores

    split = MultiwordSplitter([KnownForm("du.", ("de", "le", "."), 1, 1)])
    segment = TextSegmenter(EndsAtFullStops(), split, spaces_in_words=True)
    ((first, second, third),) = segment(["xin \n chào. du. x"])[0]
    assert (first.words, second.words, third.words) == (("xin chào.",), ("de", "le", "."), ("x",))
    assert (first.start, first.end) == (0, 11)
