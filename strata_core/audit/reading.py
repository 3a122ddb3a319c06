"""What the readers of all formats share: the result they fill, and the budget that bounds one inspection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from strata_core.audit.dtypes import ElementType
from strata_core.audit.findings import CORRUPT, UNSAFE, Finding, Malformed
from strata_core.audit.opening import FileBytes
from strata_core.audit.pickles.machine import DEFAULT_OPERATIONS, run_pickle
from strata_core.audit.pickles.safety import GlobalUse, judge
from strata_core.audit.pickles.symbols import Global, PickleRun, Stretch
from strata_core.audit.tensors import Storage, Tensor

_DEEPEST_NESTING = 4
_MOST_NESTED = 10_000
_INFLATED_BYTES = 128 << 20
CHECKED_AT_ONCE_BYTES = 16 << 20
"""How much element data has its checksums verified in every inspection; what is beyond that waits for --stats."""


@dataclass(frozen=True)
class PendingCheck:
    """A check that reads much and so waits for --stats: `run` gives what is wrong, or None."""

    name: str
    size_bytes: int
    run: Callable[[], str | None]


@dataclass
class Contents:
    """What was read from one file or folder.

    `value` is what the file's pickle makes (see symbols.py) or a dict from JSON; `bare_storage` the storage and its
    element type, when that is all the file holds.
    """

    format: str
    tensors: list[Tensor] = field(default_factory=list)
    storages: list[Storage] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    globals: list[GlobalUse] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    value: Any = None
    step: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    bare_storage: tuple[Storage, ElementType] | None = None
    pending: list[PendingCheck] = field(default_factory=list)

    def corrupt(self, text: str) -> None:
        """Adds a reason of the kind "corrupt"."""
        self.findings.append(Finding(CORRUPT, text))

    def unsafe(self, text: str) -> None:
        """Adds a reason of the kind "unsafe"."""
        self.findings.append(Finding(UNSAFE, text))

    def take_over(self, other: Contents) -> None:
        """Adds what was found inside this one: tensors, storages, findings, globals, notes, checks."""
        self.tensors += other.tensors
        self.storages += other.storages
        self.findings += other.findings
        self.globals += other.globals
        self.notes += other.notes
        self.pending += other.pending


BlobReader = Callable[[FileBytes, "Budget"], Contents]


class Budget:
    """Bounds the work of one inspection, however many pickles and archives are packed into what it looks at.

    `read_blob` reads a checkpoint file of whatever format; containers use it for what they hold.
    """

    def __init__(self, read_blob: BlobReader) -> None:
        self._read_blob = read_blob
        self._depth = 0
        self.operations = DEFAULT_OPERATIONS
        self.inflated_bytes = _INFLATED_BYTES
        self._checked_bytes = CHECKED_AT_ONCE_BYTES
        self._nested = _MOST_NESTED

    def nested(self, part: FileBytes) -> Contents:
        """Reads a checkpoint that lies inside another."""
        refused = Contents("nested checkpoint")
        self._nested -= 1
        if self._depth >= _DEEPEST_NESTING:
            refused.unsafe(f"{part.name}: checkpoints are nested more than {_DEEPEST_NESTING} deep; it was not read")
            return refused
        if self._nested < 0:
            refused.unsafe(f"{part.name}: more than {_MOST_NESTED:,} nested checkpoints; it was not read")
            return refused
        self._depth += 1
        try:
            return self._read_blob(part, self)
        finally:
            self._depth -= 1

    def may_check(self, size_bytes: int) -> bool:
        """Whether that much element data may be read to verify its checksums now."""
        if size_bytes > self._checked_bytes:
            return False
        self._checked_bytes -= size_bytes
        return True

    def spend_inflated(self, size_bytes: int, name: str) -> None:
        """
        Raises:
            Malformed: the file inflates to more than an inspection takes on.
        """
        if size_bytes > self.inflated_bytes:
            raise Malformed(f"{name}: inflates to {size_bytes:,} bytes, more than an inspection takes on")
        self.inflated_bytes -= size_bytes


class PickleReader:
    """One pickle source inside a container: runs its pickles, judges them, and reads what is nested in them."""

    def __init__(
        self, source: FileBytes, contents: Contents, budget: Budget, known_good: frozenset[Global] = frozenset()
    ) -> None:
        self.source = source
        self._known_good = known_good
        self._contents = contents
        self._budget = budget
        self._nested: dict[int, Contents] = {}

    def run(self, start: int = 0) -> PickleRun:
        """Follows the pickle at byte `start`; its findings and globals go to the contents."""
        run = run_pickle(self.source, start, operations=self._budget.operations)
        self._budget.operations -= run.operations
        findings, uses = judge(run, self.source.name, lambda stretch: self.nested(stretch).findings, self._known_good)
        self._contents.findings += findings
        self._contents.globals += uses
        if run.arrays:
            self._add_what_others_see(start)
        return run

    def _add_what_others_see(self, start: int) -> None:
        """pickle.load takes the bytes of joblib's arrays for opcodes; a payload among them is one."""
        run = run_pickle(self.source, start, operations=max(self._budget.operations, 0), with_arrays=False)
        self._budget.operations -= run.operations
        findings, uses = judge(run, self.source.name, lambda stretch: [], self._known_good)
        seen = {use.name for use in self._contents.globals}
        self._contents.globals += [use for use in uses if use.name not in seen]
        self._contents.findings += [
            one for one in findings if one.kind == UNSAFE and one not in self._contents.findings
        ]

    def nested(self, stretch: Stretch) -> Contents:
        """The checkpoint held in some bytes of the pickle, read once."""
        found = self._nested.get(stretch.position)
        if found is None:
            name = f"{self.source.name}[{stretch.position}]"
            found = self._budget.nested(self.source.part(stretch.position, stretch.size, name))
            self._nested[stretch.position] = found
            self._contents.globals += found.globals
        return found
