"""The annotated sentences of a corpus written to structure/, each with its tokens and the token span of each word."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from strata_core.corpus.format import StructureInfo
from strata_core.corpus.sources.treebank import TreebankSource
from strata_core.corpus.stage import Stage
from strata_core.corpus.text.tokenizer import TextTokenizer
from strata_core.corpus.treebanks.labels import NO_FEATURES, Labels
from strata_core.corpus.treebanks.sentence import DetokenisedText, Sentence, detokenise
from strata_core.corpus.treebanks.structure_writing import StructureWriter, write_labels
from strata_core.corpus.treebanks.word_spans import word_token_spans

_SENTENCES_AT_ONCE = 512

_Spelt = tuple[str, Sentence, DetokenisedText]
"""A sentence with its split and its text."""


def write_structure(
    folder: Path, sources: Iterable[TreebankSource], tokenizer: TextTokenizer, splits: Sequence[str], stage: Stage
) -> StructureInfo:
    """Writes the sentences of all sources, split by split in reading order; labels are numbered as they are met.

    A sentence's tokens are those of its text alone, without what stands before it in its document.

    Args:
        folder: to be made.
        sources: whose documents' splits are among `splits`.
        tokenizer: gives the tokens.
        splits: those the corpus has; one without sentences gets empty arrays.
        stage: told about each document's bytes.

    Raises:
        StorageError: the file system refused.
    """
    labels = Labels()
    with contextlib.ExitStack() as files:
        writers = {split: files.enter_context(StructureWriter(folder / split, labels)) for split in splits}
        spelt = _spelt_sentences(sources, stage)
        while batch := list(islice(spelt, _SENTENCES_AT_ONCE)):
            texts = [text.text for _, _, text in batch]
            encodings = tokenizer.tokenizer.encode_batch(texts, add_special_tokens=False)
            for (split, sentence, text), encoding in zip(batch, encodings, strict=True):
                spans = word_token_spans(text.word_spans, encoding.offsets, text.text)
                writers[split].add(sentence, encoding.ids, spans)
    write_labels(folder, labels)
    facts = {split: writer.facts() for split, writer in writers.items()}
    label_counts: dict[str, dict[str, int]] = {}
    for kind in labels.used_kinds():
        names = labels.names(kind)
        by_label = zip(*(found["label_counts"].get(kind, [0] * len(names)) for found in facts.values()), strict=True)
        label_counts[kind] = dict(zip(names, map(sum, by_label), strict=True))
    return StructureInfo({split: found["counts"] for split, found in facts.items()}, label_counts)


def _spelt_sentences(sources: Iterable[TreebankSource], stage: Stage) -> Iterator[_Spelt]:
    for source in sources:
        for document in source.documents():
            for sentence in document.sentences:
                if source.has_features and sentence.feats is None:
                    sentence = replace(sentence, feats=(NO_FEATURES,) * len(sentence.forms))
                yield document.text.split, sentence, detokenise(sentence)
            stage.add(document.text.size_bytes)
