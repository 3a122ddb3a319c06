"""The recipe of a graph-reasoning run: the tables of its own, every setting with its meaning, unit and bounds."""

from __future__ import annotations

from typing import Literal

from strata_core.recipes.settings import LARGEST_INTEGER, Table, derived, setting, table
from strata_core.recipes.tables import (
    BatchTable,
    CorpusTable,
    EvaluationTable,
    OptimizerTable,
    TrainingRecipe,
)


class GraphCorpusTable(CorpusTable):
    """What the model is trained on."""

    sample_seed: int = setting(0, "Seed of the generated sample.", ge=0, le=LARGEST_INTEGER)
    sample_examples: int = setting(
        30_000, "Training examples of the generated sample.", unit="examples", ge=1, le=LARGEST_INTEGER
    )
    sample_eval_examples: int = setting(
        1_500, "Examples in each other split of the generated sample.", unit="examples", ge=1, le=LARGEST_INTEGER
    )
    sample_longest_hops: int = setting(
        4, "Longest training query of the generated sample; test-length goes up to twice that.", unit="hops", ge=2, le=8
    )
    sample_doubtful_share: float = setting(
        0.1, "Share of the generated examples around a link that holds only with a known chance.", ge=0, le=1
    )


class GraphModelTable(Table):
    """The shape of the reasoner."""

    d_model: int = setting(64, "Width of node states, relation embeddings and path states.", unit="features", ge=2)
    n_layers: int = setting(
        3,
        "Message-passing layers of queries with a constant vector; a query of several steps takes one layer a step.",
        unit="layers",
        ge=1,
        le=64,
    )
    n_heads: int = setting(4, "Heads of gate messages; divides d_model.", unit="heads", ge=1, le=2**16)
    message: Literal["distmult", "gate"] = setting(
        "distmult", "What an edge carries: the source's state times a vector, or times one scalar a head."
    )
    message_rank: int = setting(
        16, "Rank of the map from a query's step and an edge's relation to its message.", unit="features", ge=1
    )
    dropout: float = setting(0.1, "Dropout on states between layers.", unit="probability", ge=0, lt=1)
    message_dropout: float = setting(
        0.0,
        "Dropout on the weights of messages, for a whole micro-batch; knowledge graphs only.",
        unit="probability",
        ge=0,
        lt=1,
    )
    message_norm_eps: float = setting(
        1e-6,
        "Added to the mean square of summed messages where they are normalised; 1: as large as a message, so that many "
        "ways to a node outweigh one, for sparse graphs; knowledge graphs only.",
        gt=0,
    )
    link_head: Literal["cosine", "mlp"] = setting(
        "cosine",
        "How two node states are scored: their cosine, or an MLP over product and absolute "
        "difference; not for triples or CLUTRR.",
    )
    link_scale: float = setting(
        2.0, "What the cosine of the link head is multiplied by; not for triples or CLUTRR.", gt=0
    )
    composition: Literal["bilinear", "mlp", "gru"] = setting(
        "mlp", "Cell that composes two adjoining pieces of a path into one, for corpora that ask for a relation."
    )
    paths: Literal["simple", "given"] = setting(
        "simple", "Paths composed: those found that come to no node twice, or the supporting ones given by the corpus."
    )
    longest_path: int = setting(
        16, "Longest path looked for between the two nodes whose relation is asked for.", unit="edges", ge=1, le=64
    )
    max_paths: int = setting(
        4, "Paths between two such nodes that are read, the shortest first; they vote.", unit="paths", ge=1, le=64
    )


class GraphObjectiveTable(Table):
    """What is learned, each objective with its weight in the sum; 0 leaves it out.

    On triples only answer is learned, on CLUTRR answer, associativity and closure; all others, and what belongs to
    them, are for queries over small graphs.
    """

    answer: float = setting(1.0, "Weight of the answers' cross-entropy over nodes, or over the labels asked for.", ge=0)
    node: float = setting(0.1, "Weight of the node loss: which nodes lie on supporting paths.", ge=0)
    link: float = setting(0.1, "Weight of the link loss: edges against as many node pairs that are no edge.", ge=0)
    next_hop: float = setting(0.2, "Weight of the next-hop loss: which edge a supporting path takes next.", ge=0)
    relation: float = setting(0.1, "Weight of the relation loss: the relation of an edge from its two nodes.", ge=0)
    path_selection: float = setting(1.0, "Weight of path selection against the learned threshold class.", ge=0)
    path_alignment: float = setting(
        0.1,
        "Weight of path alignment: supporting against competing paths of the same query (InfoNCE).",
        ge=0,
    )
    verification: float = setting(0.5, "Weight of verification: whether the query is supported.", ge=0)
    status: float = setting(1.0, "Weight of the status: supported, refuted or not enough information.", ge=0)
    count: float = setting(1.0, "Weight of the number that count and aggregate queries ask for.", ge=0)
    confidence: float = setting(
        0.1,
        "Weight of the confidence: the set-F1 of the model's own path selection, which takes no gradient.",
        ge=0,
    )
    pair_margin: float = setting(
        0.2,
        "Weight of the hinge between the support scores of a missing-edge example and its supported twin.",
        ge=0,
    )
    pair_margin_size: float = setting(
        1.0,
        "How far below its twin's a missing-edge example's support score has to lie.",
        unit="logits",
        gt=0,
    )
    max_count: int = setting(16, "Largest number the count head tells; larger ones count as this.", ge=1, le=2**16)
    relation_samples: int = setting(
        256,
        "Edges drawn in each graph for the relation loss; 0: all.",
        unit="edges",
        ge=0,
        le=LARGEST_INTEGER,
    )
    associativity: float = setting(
        2.0, "Weight of the distance between two bracketings of one path, where a relation is asked for.", ge=0
    )
    random_chains: int = setting(
        1, "Random chains of relations beside each example, for associativity alone.", unit="chains", ge=0, le=64
    )
    closure: float = setting(
        1.0,
        "Weight of the distance between a composed path and the relation that bears its label's name.",
        ge=0,
    )
    composition_augmentation: int = setting(
        0,
        "Most edges of a training path replaced by two that training data proves equal; 0: paths as they are.",
        unit="edges",
        ge=0,
        le=64,
    )
    on_policy_selection: bool = setting(
        False,
        "Select among paths that the model's own search finds, in place of the given ones.",
    )


class GraphOptimizerTable(OptimizerTable):
    """AdamW, its schedule (linear warm-up, then cosine) and its guards."""

    lr: float = setting(1e-3, "Peak learning rate.", gt=0)
    min_lr: float = setting(1e-4, "Learning rate at the end of the cosine; at most lr.", gt=0)
    query_encoder_lr_scale: float = setting(
        1.0, "Learning rate of the query encoder, as a multiple of lr; not for triples or CLUTRR.", gt=0
    )
    freeze_query_encoder: bool = setting(
        False,
        "Leave the query encoder as it is: no gradient, no part in the clipped norm, no optimizer "
        "state; not for triples or CLUTRR.",
    )


class GraphBatchTable(BatchTable):
    """How much is read for one optimizer step, and in what pieces; one piece is one block-diagonal graph."""

    batch_size: int = setting(64, "Examples in one optimizer step, over all ranks.", unit="examples", ge=1, le=2**31)
    relation_group_size: int = derived(
        "Queries of one relation drawn together from a knowledge graph, without all their edges; a multiple of "
        "micro_batch_size that divides batch_size.",
        otherwise="micro_batch_size",
        unit="queries",
        ge=1,
        le=2**31,
    )


class GraphEvaluationTable(EvaluationTable):
    """Measurement on the validation split while training."""

    metric: Literal["selection_score", "loss", "mrr", "hits_at_1", "hits_at_3", "hits_at_10", "accuracy"] = setting(
        "selection_score",
        "What the best checkpoint is chosen by; selection_score is what matters most for the corpus at hand.",
    )
    bracketings: int = setting(
        16, "Bracketings of a path whose answers are averaged, where a relation is asked for.", ge=1, le=1024
    )


GRAPH_WEIGHTS = (
    "answer",
    "node",
    "link",
    "next_hop",
    "relation",
    "path_selection",
    "path_alignment",
    "verification",
    "status",
    "count",
    "confidence",
    "pair_margin",
)
"""The settings of [objective] that are weights of what a reasoner learns, which is called the same."""


class GraphRecipe(TrainingRecipe):
    """A graph-reasoning run."""

    kind: Literal["graph"] = setting("graph", "What the recipe makes.")
    corpus: GraphCorpusTable = table()
    model: GraphModelTable = table()
    objective: GraphObjectiveTable = table()
    optimizer: GraphOptimizerTable = table()
    batch: GraphBatchTable = table()
    evaluation: GraphEvaluationTable = table()
