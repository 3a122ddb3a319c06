"""Wrapper prefixes in parameter names: what DistributedDataParallel and torch.compile leave behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from strata_core.audit.findings import printable
from strata_core.audit.tensors import Tensor

_COMPILED = "_orig_mod"
_PARALLEL = "module"
_WRAPPERS = {_COMPILED: "torch.compile", _PARALLEL: "DataParallel or DistributedDataParallel"}


@dataclass
class WrapperReport:
    """Plain names by stored name (only where they differ), the wrappers found, and names that would collide."""

    plain_names: dict[str, str] = field(default_factory=dict)
    wrappers: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)


def find_wrappers(tensors: list[Tensor]) -> WrapperReport:
    """Looks at the names of each dict by itself.

    `_orig_mod` is torch.compile's wherever it stands. `module` in front is a wrapper when every name of the dict
    carries it; when only some do, it is a submodule of that name, unless taking it away would make two names one.
    """
    report = WrapperReport()
    groups: dict[tuple[str | None, str], list[str]] = {}
    for tensor in tensors:
        prefix = f"{tensor.container}." if tensor.container else ""
        if tensor.name.startswith(prefix):
            groups.setdefault((tensor.file, prefix), []).append(tensor.name[len(prefix) :])
    for (_, prefix), names in groups.items():
        _look_at_dict(prefix, names, report)
    report.wrappers.sort()
    return report


def _look_at_dict(prefix: str, names: list[str], report: WrapperReport) -> None:
    parts = {name: name.split(".") for name in names}
    uncompiled = {name: [part for part in split if part != _COMPILED] for name, split in parts.items()}
    wrapped = all(len(split) > 1 and split[0] == _PARALLEL for split in uncompiled.values())
    plain = dict(uncompiled)
    while wrapped:
        plain = {name: split[1:] for name, split in plain.items()}
        wrapped = all(len(split) > 1 and split[0] == _PARALLEL for split in plain.values())
    found = {
        wrapper for name in names for wrapper in _WRAPPERS if parts[name].count(wrapper) > plain[name].count(wrapper)
    }
    report.wrappers += sorted({f"{wrapper}. ({_WRAPPERS[wrapper]})" for wrapper in found} - set(report.wrappers))
    taken: dict[str, str] = {}
    for name in names:
        joined = ".".join(plain[name])
        if joined != name:
            report.plain_names[prefix + name] = prefix + joined
        unwrapped = ".".join(plain[name][1:]) if plain[name][0] == _PARALLEL and len(plain[name]) > 1 else joined
        other = taken.setdefault(unwrapped, name)
        if other != name:
            report.clashes.append(
                f"{printable(prefix + other)} and {printable(prefix + name)} both become "
                f"{printable(prefix + unwrapped)} once wrapper prefixes are taken off"
            )
