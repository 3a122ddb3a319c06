"""Trees, parts of speech, predicates and roles that a structured language model gives to new sentences.

Shapes: B sentences, W words, D model width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from strata_core.corpus.text.tokenizer import TextTokenizer, check_tokenizer
from strata_core.corpus.treebanks.conllu_overlay import overlay
from strata_core.corpus.treebanks.labels import ROOT_RELATION, WORD_LABEL_KINDS, Labels
from strata_core.corpus.treebanks.lemma_rules import is_rule, lemma_by
from strata_core.corpus.treebanks.sentence import Argument, Predicate, Sentence, detokenise
from strata_core.corpus.treebanks.structure_reading import SentenceArrays
from strata_core.corpus.treebanks.word_spans import word_token_spans
from strata_core.errors import DataError, UsageError
from strata_core.evaluation.structure_scores import PredictedStructure, predict_structure
from strata_core.evaluation.word_labels import LOSS_OF_KIND
from strata_core.models.structure_heads import NONE_ROLE
from strata_core.models.structured_language_model import StructuredConfig, StructuredLanguageModel
from strata_core.models.word_states import states_at
from strata_core.observer import Observer
from strata_core.tasks.kind import Question
from strata_core.tasks.sentence_structure.sentence_files import read_sentences, refuse_queries
from strata_core.tasks.sentence_structure.sentence_tensors import causal_tensors, label_tensors, word_tensors, words_of
from strata_core.tasks.sentence_structure.windows import Limit, cut, joined, joining_relation
from strata_core.training.trained import Trained

PREDICATE_MARK = "Y"
"""What stands for the sense of a predicate, which is not predicted; as in the column FILLPRED of CoNLL-2009."""

PLUS_SUFFIX = ".conllup"
"""What the name of a CoNLL-U Plus file ends in; any other file of CoNLL-U has ten columns."""

_WORDS_IN_A_BATCH = 2000


class StructurePredictor:
    """Annotates sentences.

    Args:
        trained: a checkpoint of a structured language model.
        device: where to compute.
        autocast: the context that forward passes run in.

    Raises:
        UsageError: the model has learned nothing of sentences that CoNLL-U could show.
        DataError: the checkpoint lacks something, or cannot be used.
    """

    def __init__(
        self, trained: Trained, device: torch.device, autocast: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        config, place = trained.config, trained.checkpoint.path
        try:
            labels, self.learned = config["labels"], frozenset(config["learned"])
        except KeyError as error:
            raise DataError(f"{place / 'config.json'}: {error.args[0]} is missing") from None
        if not self.learned & {"ud_arc", "node_type", "srl_predicate", *LOSS_OF_KIND.values()}:
            raise UsageError(
                f"{place} has learned {', '.join(sorted(self.learned))}: no trees, parts of speech or predicates",
                hint="strata predict writes these; train with objective.ud.* or objective.srl.* above 0",
            )
        if trained.checkpoint.tokenizer is None:
            raise DataError(f"{place}: has no tokenizer.json")
        self._tokenizer: TextTokenizer = check_tokenizer(trained.checkpoint.tokenizer, shown=f"{place}/tokenizer.json")
        self._labels = Labels(_checked_labels(labels, str(place / "config.json")))
        self._model = StructuredLanguageModel(StructuredConfig.from_dict(config.get("model", {})))
        trained.load_into(self._model.to(device))
        self._device = device
        self._autocast = autocast

    @property
    def has_roles(self) -> bool:
        """Whether predicates are among what was learned."""
        return "srl_predicate" in self.learned

    def annotate(self, sentences: Sequence[Sentence], observer: Observer) -> list[Sentence]:
        """The sentences with what the model says of them; what it has not learned stays open.

        Those longer than it takes are annotated in windows; see windows.py.

        Args:
            sentences: words with spacing; whatever else they have is passed over.
            observer: shown the progress, and told how many sentences were too long.
        """
        observer.stage_started("annotating", sum(len(sentence.forms) for sentence in sentences), "words")
        longest = self._model.config.transformer.max_seq_len
        limit = Limit(longest, in_tokens=self._reads_causal_pass)
        windows: list[Sentence] = []
        arrays: list[SentenceArrays] = []
        counts: list[int] = []
        longer = 0
        for sentence in sentences:
            whole = self._arrays(sentence)
            parts = cut(sentence, whole, limit)
            longer += not limit.holds(whole)
            counts.append(len(parts))
            windows += [part for part, _ in parts]
            arrays += [part_arrays for _, part_arrays in parts]
        annotated = iter(self._annotate_windows(windows, arrays, observer))
        relation = joining_relation(self._labels.names("relation"))
        result = [
            joined(sentence, list(islice(annotated, count)), relation)
            for sentence, count in zip(sentences, counts, strict=True)
        ]
        observer.stage_finished()
        if longer:
            observer.notice(
                f"{longer:,} of {len(sentences):,} sentences {'has' if longer == 1 else 'have'} more {limit.unit} than "
                f"the {longest:,} that the model takes: annotated in windows of that length, the trees joined"
            )
        return result

    def _annotate_windows(
        self, sentences: Sequence[Sentence], arrays: Sequence[SentenceArrays], observer: Observer
    ) -> list[Sentence]:
        result = list(sentences)
        done = 0
        for numbers in _batches([len(sentence.forms) for sentence in sentences]):
            batch = [sentences[number] for number in numbers]
            predicted = self._predict([arrays[number] for number in numbers], batch)
            for row, number in enumerate(numbers):
                result[number] = self._annotated(sentences[number], predicted, row)
            done += sum(len(sentence.forms) for sentence in batch)
            observer.stage_advanced(done)
        return result

    @property
    def _reads_causal_pass(self) -> bool:
        """Whether the heads read the pass over tokens, not the one over words."""
        return self._model.config.heads.reads == "causal"

    def _arrays(self, sentence: Sentence) -> SentenceArrays:
        """The sentence as numbers, without annotation."""
        text = detokenise(sentence)
        encoding = self._tokenizer.tokenizer.encode(text.text, add_special_tokens=False)
        unknown = np.full(len(sentence.forms), -1, dtype=np.int32)
        return SentenceArrays(
            tokens=np.array(encoding.ids, dtype=np.uint32),
            token_spans=word_token_spans(text.word_spans, encoding.offsets, text.text),
            upos=unknown,
            heads=unknown,
            relations=unknown,
            rolesets=unknown,
            arguments=np.zeros((0, 3), dtype=np.int32),
            has_roles=False,
        )

    def _predict(self, arrays: Sequence[SentenceArrays], sentences: Sequence[Sentence]) -> PredictedStructure:
        batch = label_tensors(arrays, None)
        if self._reads_causal_pass:
            batch |= causal_tensors(arrays, learn=False)
        else:
            buckets = self._model.config.feature_buckets
            batch |= word_tensors(arrays, [sentence.forms for sentence in sentences], buckets)
        batch = {name: tensor.to(self._device) for name, tensor in batch.items()}
        with torch.inference_mode(), self._autocast():
            if self._reads_causal_pass:
                states_BWD = states_at(self._model(batch["sentence_tokens"]).states_BLD, batch["last_token"])
            else:
                states_BWD = self._model.full_pass(words_of(batch)).states_BLD
            return predict_structure(
                self._model.heads,
                states_BWD,
                states_BWD,
                batch["real"],
                learned=self.learned - {"chart_type"},
                root_relation=self._labels.known("relation", ROOT_RELATION),
            )

    def _annotated(self, sentence: Sentence, predicted: PredictedStructure, row: int) -> Sentence:
        nothing: tuple[None, ...] = (None,) * len(sentence.forms)
        tree = predicted.trees[row] if predicted.trees else None
        words = {kind: self._names(kind, found[row]) for kind, found in predicted.word_labels.items()}
        rules = words.get("lemma_rule")
        has_relations = tree is not None and "ud_relation" in self.learned
        return replace(
            sentence,
            upos=self._names("upos", predicted.node_types[row]) if predicted.node_types else nothing,
            heads=nothing if tree is None else tuple(tree.heads.tolist()),
            relations=self._names("relation", tree.relations) if tree is not None and has_relations else nothing,
            predicates=self._predicates(predicted, row) if self.has_roles else None,
            lemmas=rules and tuple(map(lemma_by, rules, sentence.forms)),
            xpos=words.get("xpos"),
            feats=words.get("feats"),
        )

    def _predicates(self, predicted: PredictedStructure, row: int) -> tuple[Predicate, ...]:
        words = predicted.predicates[row].tolist()
        cells = predicted.roles_of_predicted[row] if predicted.roles_of_predicted else [()] * len(words)
        return tuple(
            Predicate(word, PREDICATE_MARK, self._arguments(roles)) for word, roles in zip(words, cells, strict=True)
        )

    def _arguments(self, roles: Any) -> tuple[Argument, ...]:
        return tuple(
            Argument(self._labels.name("role", int(role) - 1) or "", head)
            for head, role in enumerate(roles, 1)
            if role != NONE_ROLE
        )

    def _names(self, kind: str, numbers: np.ndarray) -> tuple[str | None, ...]:
        return tuple(self._labels.name(kind, number) for number in numbers.tolist())


def annotated_file(trained: Trained, question: Question) -> bytes:
    """The sentences of a file with what a model says of them; see `TaskKind.predict`.

    Returns:
        CoNLL-U as the file had it but for what was predicted, roles in MISC; CoNLL-U Plus, roles in UP:PRED and
        UP:ARGHEADS, where the result is to be called .conllup.
    """
    refuse_queries(question.file, question.format)
    predictor = StructurePredictor(trained, question.device, question.autocast)
    given = read_sentences(question.file, format=question.format)
    if not given.sentences:
        question.observer.notice(f"{question.file}: there is no sentence in it; the result is empty")
        return b""
    annotated = predictor.annotate(given.sentences, question.observer)
    plus = question.out_name is not None and question.out_name.endswith(PLUS_SUFFIX)
    return b"".join(overlay(given.lines, annotated, given.starts, plus=plus))


def _checked_labels(labels: Any, source: str) -> Mapping[str, Sequence[str]]:
    match labels:
        case {"upos": list(), "relation": list(), "role": list()}:
            if not all(isinstance(labels.get(kind, []), list) for kind in WORD_LABEL_KINDS):
                raise DataError(f"{source}: labels has no lists of {', '.join(WORD_LABEL_KINDS)}")
            broken = [rule for rule in labels.get("lemma_rule", ()) if not is_rule(rule)]
            if broken:
                raise DataError(f"{source}: labels: {broken[0]!r} is no lemma rule")
            return labels  # type: ignore[no-any-return]
    raise DataError(f"{source}: labels has no lists of upos, relation and role")


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Numbers of sentences of like length, padded words of each batch bounded."""
    batches: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lambda number: lengths[number]):
        if not batches or (len(batches[-1]) + 1) * lengths[number] > _WORDS_IN_A_BATCH:
            batches.append([])
        batches[-1].append(number)
    return batches
