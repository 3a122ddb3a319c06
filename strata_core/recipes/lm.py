"""The recipe of a language-model run: the tables of its own, every setting with its meaning, unit and bounds."""

from __future__ import annotations

from typing import Any, Literal

from strata_core.recipes.settings import LARGEST_INTEGER, Table, derived, setting, table
from strata_core.recipes.tables import BatchTable, CorpusTable, EvaluationTable, TrainingRecipe


class LMCorpusTable(CorpusTable):
    """What the model is trained on."""

    sample_vocab_size: int = setting(
        4096, "Vocabulary of the tokenizer trained for a sample.", unit="tokens", ge=257, le=LARGEST_INTEGER
    )


class HeadsTable(Table):
    """The structure heads, which read word states; their classes come from the corpus."""

    arc_width: int = setting(256, "Width that arcs are scored in.", unit="features", ge=1, le=2**16)
    relation_width: int = setting(64, "Width that relations are scored in.", unit="features", ge=1, le=2**16)
    role_width: int = setting(64, "Width that roles are scored in.", unit="features", ge=1, le=2**16)
    dropout: float = setting(0.0, "Dropout on what the heads read and on their layers.", unit="probability", ge=0, lt=1)
    reads: Literal["full", "causal"] = setting(
        "full", "The pass whose word states the heads read; causal shows what a language model's own states can know."
    )


class WordFeaturesTable(Table):
    """What the full pass knows of a word beside its subwords: hashed form, prefix, suffix and shape."""

    buckets: int = setting(16384, "Rows of the embedding that all features share.", unit="rows", ge=1, le=2**26)


class PredicateMemoryTable(Table):
    """The learned memory of who does what to whom."""

    enabled: bool = setting(False, "Whether the model has one.")
    channel_width: int = setting(32, "Width of what the edges of one role carry.", unit="features", ge=1, le=2**16)
    role_width: int = setting(64, "Width that the memory's roles are scored in.", unit="features", ge=1, le=2**16)
    initial_gate: float = setting(
        0.0, "Where the gate on what is read starts; 0: nothing is added at first, and role edits are learned late."
    )


class GraphObjectMemoryTable(Table):
    """The explicit graph given with an annotated sentence or a role edit, and how strongly it is read."""

    enabled: bool = setting(False, "Whether the model has one.")
    n_heads: int = setting(4, "Heads that read the edges; divides d_model.", unit="heads", ge=1, le=2**16)
    intervention: Literal["none", "typed", "untyped", "random"] = setting(
        "none", "What the graph holds: nothing, true types, one shared type, or types and ends dealt out anew."
    )
    learned_weight: float | None = setting(
        None,
        "Share of the learned memory in what annotated rows read in the full pass, the graph having the rest, for the "
        "whole run; absent: see anneal_final_learned_weight.",
        ge=0,
        le=1,
    )
    anneal_final_learned_weight: float = setting(
        1.0,
        "Share that the learned memory is brought down to over anneal_steps, linearly from 1; 1: the graph is added at "
        "full strength and nothing is replaced.",
        ge=0,
        le=1,
    )
    anneal_steps: int = derived(
        "Steps that the learned memory's share takes to its last value; kept when a resume raises run.max_steps.",
        otherwise="run.max_steps",
        unit="steps",
        ge=1,
        le=LARGEST_INTEGER,
    )
    predicate_memory_dropout: float = setting(
        0.0,
        "How often an annotated row does not read the learned memory, in the full pass of training.",
        unit="probability",
        ge=0,
        lt=1,
    )
    initial_gate: float = setting(
        0.0, "Where the gate on what is read starts; 0: nothing is added at first, and role edits are learned late."
    )
    train_alone: bool = setting(False, "Train the parameters of this memory alone; all others stay as they are.")


class SegmenterTable(Table):
    """The network that cuts raw text into sentences and tokens; the model has it where that is learned."""

    width: int = setting(64, "Width of a character's state.", unit="features", ge=1, le=2**16)
    n_layers: int = setting(
        5, "Convolutions, each reaching twice as far as the one before: 5 see 62 characters around.", ge=1, le=10
    )
    buckets: int = setting(
        32768, "Rows of the embedding that all features of characters share.", unit="rows", ge=1, le=2**26
    )
    dropout: float = setting(0.2, "Dropout of channels between the layers.", unit="probability", ge=0, lt=1)
    feature_dropout: float = setting(
        0.1, "How often a feature of a character is left out of the input.", unit="probability", ge=0, lt=1
    )


class LMModelTable(Table):
    """The shape of the transformer, its structure heads and its memories."""

    vocab_size: int | None = setting(
        None,
        "Vocabulary the recipe was written for; the corpus decides, and one that differs is refused.",
        unit="tokens",
        ge=1,
        le=LARGEST_INTEGER,
    )
    d_model: int = setting(256, "Width of the residual stream.", unit="features", ge=2, le=2**20)
    n_layers: int = setting(4, "Transformer blocks.", unit="blocks", ge=1, le=2**16)
    n_heads: int = setting(4, "Query heads; divides d_model into heads of even width.", unit="heads", ge=1, le=2**16)
    n_kv_heads: int = derived(
        "Key and value heads; divides n_heads.", otherwise="n_heads", unit="heads", ge=1, le=2**16
    )
    d_ff: int = derived(
        "Width of the feed-forward layer.",
        otherwise="8/3 of d_model, rounded up to a multiple of 64",
        unit="features",
        ge=1,
        le=2**24,
    )
    dropout: float = setting(0.0, "Dropout on embeddings and residual branches.", unit="probability", ge=0, lt=1)
    max_seq_len: int = derived(
        "Longest window the model can take.",
        otherwise="batch.seq_len, or batch.max_sentence_len where there are sentences and it is longer",
        unit="tokens",
        ge=1,
        le=2**24,
    )
    rope_theta: float = setting(10000.0, "Base of the rotary position frequencies.", gt=1)
    norm_eps: float = setting(1e-5, "Added to the mean square in RMSNorm.", gt=0, le=1)
    tie_embeddings: bool = setting(True, "Use the token embedding as the output weight.")
    word_dropout: float = setting(
        0.0, "How often a word is left out of the full pass's input.", unit="probability", ge=0, lt=1
    )
    memory_layer: int = derived(
        "Blocks before the memories.", otherwise="half of n_layers", unit="blocks", ge=0, le=2**16
    )
    heads: HeadsTable = table()
    word_features: WordFeaturesTable = table()
    segmenter: SegmenterTable = table()
    predicate_memory: PredicateMemoryTable = table()
    graph_object_memory: GraphObjectMemoryTable = table()


class UDObjectiveTable(Table):
    """Dependency trees, parts of speech, features and lemmas."""

    arc: float = setting(0.0, "Weight of the loss of each word's head.", ge=0)
    relation: float = setting(0.0, "Weight of the loss of each word's relation to its head.", ge=0)
    node_type: float = setting(0.0, "Weight of the loss of each word's part of speech.", ge=0)
    xpos: float = setting(0.0, "Weight of the loss of each word's part of speech in the treebank's own tags.", ge=0)
    feats: float = setting(0.0, "Weight of the loss of each word's morphological features, all of them as one.", ge=0)
    lemma: float = setting(0.0, "Weight of the loss of the rule that makes each word's lemma.", ge=0)


class SRLObjectiveTable(Table):
    """Predicates and the roles of their arguments."""

    predicate: float = setting(0.0, "Weight of the loss of which words are predicates.", ge=0)
    role: float = setting(0.0, "Weight of the loss of each word's role to each predicate.", ge=0)
    none_weight: float = setting(0.2, "Weight of the class that says a word has no role to a predicate.", gt=0)
    core_role: float = setting(0.0, "Weight of a further loss over words whose role is ARG0 or ARG1.", ge=0)


class ChartObjectiveTable(Table):
    """Parsing as tagging."""

    type: float = setting(0.0, "Weight of the loss of each word's chart item.", ge=0)
    scheme: Literal["eisner", "reduce-count"] = setting(
        "eisner",
        "What the items are: sides of head and dependents, from the full pass; or reductions after the word's shift, "
        "from the causal pass.",
    )


class GraphObjectObjectiveTable(Table):
    """What the explicit graph has to do."""

    aux: float = setting(0.0, "Weight of the loss of each edge's type from its ends.", ge=0)
    role_edit: float = setting(
        0.0, "Weight of the loss of following a swap of roles in the graph, the learned memory not being read.", ge=0
    )
    role_edit_stability: float = setting(
        0.0, "Weight of the loss of unrelated probes that such a swap turns over.", ge=0
    )
    role_edit_untyped_null: float = setting(0.0, "Weight of the loss of effects of a swap in untyped graphs.", ge=0)
    role_edit_random_null: float = setting(0.0, "Weight of the loss of effects of a swap in random graphs.", ge=0)


class RoleEditObjectiveTable(Table):
    """What a swap of ARG0 and ARG1, put on the learned memory's scores, has to do."""

    follow: float = setting(0.0, "Weight of the loss of the probe not following the swap.", ge=0)
    specificity: float = setting(0.0, "Weight of the loss of effects of a swap of another predicate.", ge=0)
    scope: float = setting(0.0, "Weight of the loss of movement outside the probe.", ge=0)
    margin: float = setting(0.2, "How far the right continuation has to win.", unit="nats", ge=0)
    scope_tolerance: float = setting(0.1, "Movement outside the probe that costs nothing.", unit="nats", ge=0)
    bias_value: float = setting(4.0, "Size of the bias put on the scores.", unit="nats", ge=0)
    override_scope: Literal["legacy", "role_only"] = setting(
        "legacy", "What the bias is put on: scores of predicates and roles, or of roles alone."
    )
    source: Literal["generated", "treebank"] = setting(
        "generated", "Where role edits come from: the generator, or predicates of the corpus with both roles."
    )
    batch_size: int = setting(1, "Role edits in one optimizer step, over all ranks.", unit="examples", ge=1, le=2**16)


class LMObjectiveTable(Table):
    """What is learned, each objective with its weight in the sum; 0 leaves it out."""

    lm: float = setting(1.0, "Weight of the next-token loss.", ge=0)
    segmentation: float = setting(
        0.0, "Weight of the loss of where tokens, multiword tokens and sentences end in raw text.", ge=0
    )
    unannotated: Literal["refuse", "leave_out"] = setting(
        "refuse",
        "What becomes of a weight above 0 where no training sentence is annotated so: the run is refused, or does "
        "without that loss and says so.",
    )
    ud: UDObjectiveTable = table()
    srl: SRLObjectiveTable = table()
    chart: ChartObjectiveTable = table()
    graph_object: GraphObjectObjectiveTable = table()
    role_edit: RoleEditObjectiveTable = table()


class LMBatchTable(BatchTable):
    """How much is read for one optimizer step, and in what pieces."""

    seq_len: int = setting(512, "Length of a training window.", unit="tokens", ge=1, le=2**24)
    mask_documents: bool = setting(False, "Keep attention inside a document where a window holds several.")
    sentences: int = setting(
        0,
        "Annotated sentences among batch_size, on average, the others being windows of text; steps hold as many words "
        "rather than sentences.",
        unit="sentences",
        ge=0,
        le=2**31,
    )
    max_sentence_len: int = setting(
        256, "Longest annotated sentence; longer ones are left out and counted.", unit="tokens", ge=1, le=2**24
    )

    segments: int = setting(
        0,
        "Windows of raw text in one optimizer step, beside batch_size; micro-batches share them equally.",
        unit="windows",
        ge=0,
        le=2**31,
    )
    segment_len: int = setting(512, "Length of a window of raw text.", unit="characters", ge=1, le=2**24)


class LMEvaluationTable(EvaluationTable):
    """Measurement on the validation split while training."""

    metric: Literal[
        "loss",
        "bits_per_byte",
        "uas",
        "las",
        "upos",
        "xpos",
        "ufeats",
        "alltags",
        "lemmas",
        "predicate_f1",
        "role_f1",
        "role_f1_predicted",
        "chart",
        "tokens_f1",
        "sentences_f1",
        "words_f1",
        "structure",
        "role_edit_direction",
    ] = setting(
        "loss",
        "What the best checkpoint is chosen by: the lowest loss or bits_per_byte, the highest of any other; structure "
        "is the mean of las, upos, predicate_f1, role_f1 and chart, as far as they are learned.",
    )


STRUCTURE_WEIGHTS = (
    "ud.arc",
    "ud.relation",
    "ud.node_type",
    "srl.predicate",
    "srl.role",
    "srl.core_role",
    "chart.type",
    "ud.xpos",
    "ud.feats",
    "ud.lemma",
)
"""The objectives that annotated sentences serve, below "objective."."""

GRAPH_OBJECT_WEIGHTS = (
    "graph_object.role_edit",
    "graph_object.role_edit_stability",
    "graph_object.role_edit_untyped_null",
    "graph_object.role_edit_random_null",
)
"""The objectives over role edits of the explicit graph."""

ROLE_EDIT_WEIGHTS = ("role_edit.follow", "role_edit.specificity", "role_edit.scope")
"""The objectives over role edits put on the learned memory."""


class LMRecipe(TrainingRecipe):
    """A language-model run."""

    kind: Literal["lm"] = setting("lm", "What the recipe makes.")
    corpus: LMCorpusTable = table()
    model: LMModelTable = table()
    objective: LMObjectiveTable = table()
    batch: LMBatchTable = table()
    evaluation: LMEvaluationTable = table()

    @property
    def is_structured(self) -> bool:
        """Whether there is more to the run than text: annotated sentences, raw text to cut, or a memory."""
        memories = self.model.predicate_memory.enabled or self.model.graph_object_memory.enabled
        return bool(self.batch.sentences) or memories or bool(self.objective.segmentation)

    def weight(self, name: str) -> float:
        """The weight of an objective by its key below "objective."; "lm", "ud.arc", ..."""
        value: Any = self.objective
        for part in name.split("."):
            value = getattr(value, part)
        return float(value)
