"""What the sentences of a split are annotated with, loss by loss, and which weights find nothing to learn there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from strata_core.corpus.reading import Corpus
from strata_core.corpus.treebanks.gold_structure import has_whole_tree
from strata_core.corpus.treebanks.labels import NO_FEATURES, WORD_LABEL_KINDS
from strata_core.corpus.treebanks.structure_reading import StructureReader
from strata_core.errors import RecipeError
from strata_core.evaluation.word_labels import LOSS_OF_KIND
from strata_core.recipes.lm import LMRecipe
from strata_core.recipes.structure_rules import METRIC_NEEDS
from strata_core.tasks.sentence_structure.losses import loss_name
from strata_core.tasks.sentence_structure.sentence_tensors import core_role_classes

_WORDS_FOR = {"xpos": "an XPOS", "feats": "features", "lemma_rule": "a lemma"}


class Annotation(NamedTuple):
    """What a loss needs: in words, how much of it there is, and of how many things in words."""

    what: str
    how_much: Callable[[], int]
    of_what: str


def annotation_of(reader: StructureReader, usable: np.ndarray) -> dict[str, Annotation]:
    """For each loss over annotated sentences what it needs of a split.

    Args:
        reader: the split.
        usable: numbers of the sentences that are not too long, among which whole trees are looked for.
    """
    counts, labels = reader.counts, reader.label_counts
    sentences, words = f"{counts['sentences']:,} sentences", f"{counts['words']:,} words"

    def with_roles() -> int:
        return counts["sentences_with_roles"]

    def with_core_roles() -> int:
        return sum(labels["role"][number - 1] for number in core_role_classes(reader))

    def with_whole_trees() -> int:
        return int(any(has_whole_tree(reader.arrays(number)) for number in usable.tolist()))

    found = {
        "ud_arc": Annotation("a head", lambda: counts["words"] - counts["unannotated_words"], words),
        "ud_relation": Annotation("a relation", lambda: sum(labels["relation"]), words),
        "node_type": Annotation("a part of speech", lambda: sum(labels["upos"]), words),
        "chart_type": Annotation("a head for every word", with_whole_trees, sentences),
        "srl_predicate": Annotation("annotated predicates", with_roles, sentences),
        "srl_role": Annotation("annotated predicates", with_roles, sentences),
        "srl_core_role": Annotation("an argument in ARG0 or ARG1", with_core_roles, sentences),
        "graph_object_aux": Annotation("arguments, the edges of their graphs", lambda: counts["arguments"], sentences),
    }
    for kind in WORD_LABEL_KINDS:
        known = sum(
            count for name, count in zip(reader.labels.names(kind), labels[kind], strict=True) if name != NO_FEATURES
        )
        found[LOSS_OF_KIND[kind]] = Annotation(_WORDS_FOR[kind], lambda known=known: known, words)  # type: ignore[misc]
    return found


def without_unannotated(
    weights: Mapping[str, float], recipe: LMRecipe, corpus: Corpus
) -> tuple[dict[str, float], dict[str, str]]:
    """The weights that find something to learn, and for each of the others what the training split has none of.

    Under objective.unannotated = "refuse" all weights are kept, for `AnnotatedSentences.check` to refuse.

    Args:
        weights: above 0, by loss.
        recipe: of the run.
        corpus: its data.

    Raises:
        RecipeError: everything is left out, or what evaluation.metric measures.
    """
    if recipe.objective.unannotated == "refuse" or corpus.info.structure is None:
        return dict(weights), {}
    reader = corpus.structure("train")
    annotation = annotation_of(reader, usable_sentences(reader, recipe.batch.max_sentence_len))
    lacking = {
        name: annotation[name].what for name in weights if name in annotation and not annotation[name].how_much()
    }
    left = {name: weight for name, weight in weights.items() if name not in lacking}
    if lacking and not left:
        raise RecipeError(
            f"nothing is left to learn: no sentence in the training split of {corpus.path} has "
            + " or ".join(dict.fromkeys(lacking.values())),
            hint="prepare the corpus from files that are annotated so",
        )
    metric = recipe.evaluation.metric
    for weight in METRIC_NEEDS.get(metric, ()) if recipe.evaluation.every else ():
        if loss_name(weight) in lacking:
            raise RecipeError(
                f"evaluation.metric is {metric!r}, but no sentence in the training split of {corpus.path} has "
                f"{lacking[loss_name(weight)]}, so that objective.{weight} is left out",
                hint="choose another evaluation.metric",
            )
    return left, lacking


def usable_sentences(reader: StructureReader, longest_tokens: int) -> np.ndarray:
    """Numbers of the sentences that have words and fit into both passes, int64."""
    tokens, words = reader.token_counts, reader.word_counts
    return np.flatnonzero((words > 0) & (tokens > 0) & (np.maximum(tokens, words) <= longest_tokens))
