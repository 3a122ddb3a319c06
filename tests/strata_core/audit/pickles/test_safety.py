from __future__ import annotations

from pathlib import Path

import pytest

from tests.strata_core.audit.building import archive, call, inspected, name, program, table, text

SHOUT = text("touch CANARY")
HOSTILE = {
    "a call": call(name("posix", "system"), SHOUT),
    "a Python 2 name": call(name("__builtin__", "eval"), SHOUT),
    "a moved Python 2 name": call(name("commands", "getoutput"), SHOUT),
    "INST": b"(" + SHOUT + b"ios\nsystem\n",
    "OBJ": b"(" + name("os", "system") + SHOUT + b"o",
    "NEWOBJ": name("subprocess", "Popen") + b"(" + SHOUT + b"t\x81",
    "NEWOBJ_EX": name("subprocess", "Popen") + b"(" + SHOUT + b"t}\x92",
    "STACK_GLOBAL": text("os") + text("system") + b"\x93" + SHOUT + b"\x85R",
    "a name made of two old strings": b"U\x02osU\x06system\x93" + SHOUT + b"\x85R",
    "a computed name": text("os") + call(name("collections", "OrderedDict")) + b"\x93",
    "a dotted name": text("torch") + text("serialization.os.system") + b"\x93",
    "a dotted name of a stranger": text("somewhere") + text("os.system") + b"\x93",
    "an extension": b"\x82\x01",
    "a wide extension": b"\x84\x01\x00\x00\x00",
    "a function that is only named": name("os", "system"),
    "a result that is called": call(call(name("functools", "partial"), name("mine", "Thing")), SHOUT),
    "getattr for a method": call(name("builtins", "getattr"), name("mine", "Thing"), text("_run")),
    "getattr on a module": call(name("builtins", "getattr"), name("mine", "module"), text("run")),
    "a function of a stranger": call(name("mine.tools", "rebuild"), SHOUT),
    "a function of torch": call(name("torch.hub", "load"), SHOUT),
    "a class of torch with a constructor": call(name("torch.utils.data", "DataLoader"), SHOUT),
    "torch.load": call(name("torch", "load"), SHOUT),
    "a function of numpy": call(name("numpy.testing._private.utils", "runstring"), SHOUT),
    "a codec by name": call(name("_codecs", "encode"), SHOUT, text("mine_codec")),
    "a base that is no base": call(name("copyreg", "_reconstructor"), name("mine", "A"), name("mine", "B"), b"N"),
    "a class made by type": call(name("builtins", "type"), text("A"), b")", b"}"),
    "a method put into an object": name("mine", "A") + b")\x81" + table(append=name("mine", "f")) + b"b",
    "a state setter put into an object": name("mine", "A") + b")\x81" + table(__setstate__=name("mine", "f")) + b"b",
    "the state of a class": name("mine", "A") + table(x=b"N") + b"b",
    "an entry of a module's table": name("mine", "environment") + SHOUT + SHOUT + b"s",
    "a rebuilt tensor of a chosen function": call(
        name("torch._tensor", "_rebuild_from_type_v2"),
        name("os", "system"),
        name("torch", "Tensor"),
        b"(" + SHOUT + b"t",
        b"N",
    ),
    "a generator of a chosen function": call(
        name("numpy.random._pickle", "__generator_ctor"), text("x"), name("mine", "tool")
    ),
    "a package that runs programs": name("pip", "main"),
    "a private module": call(name("_osx_support", "_read_output"), SHOUT),
    "a name with a line in it": text("mine") + text("a b") + b"\x93",
    "an undecidable storage": call(name("torch.storage", "_load_from_bytes"), text("x")),
}
HARMLESS = {
    "the type of None": call(name("builtins", "type"), b"N"),
    "an enum member of Python 3.11": call(name("builtins", "getattr"), name("mine", "Color"), text("RED")),
    "a class by NEWOBJ": name("mine.config", "Config") + b")\x81" + table(lr=b"K\x01") + b"b",
    "a class by REDUCE": call(name("mine.config", "Mode"), text("fast")),
    "a nested class": text("mine") + text("Outer.Inner") + b"\x93)\x81",
    "a path": call(name("pathlib", "PosixPath"), text("/tmp")),
    "a namespace": name("argparse", "Namespace") + b")\x81" + table(lr=b"K\x01") + b"b",
    "a function that is only named": name("torch.nn.functional", "relu"),
    "a class of torch without a call": name("torch.nn.modules.linear", "Linear") + b")\x81",
    "an old object": call(name("copy_reg", "_reconstructor"), name("mine", "A"), name("__builtin__", "object"), b"N"),
}
KNOWN_GOOD = {
    "bytes of protocol 2": call(name("_codecs", "encode"), text("x"), text("latin1")),
    "an ordered dict with its metadata": call(name("collections", "OrderedDict")) + table(_metadata=b"N") + b"b",
    "a defaultdict": call(name("collections", "defaultdict"), name("builtins", "list")) + text("a") + b"K\x01s",
    "a dtype": name("torch", "bfloat16"),
    "a set of Python 2": call(name("__builtin__", "set"), b"](K\x01e"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_can_run_code_is_unsafe(what: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, archive(program(HOSTILE[what], 4)))
    assert report.verdict == "unsafe"
    assert report.exit_code(strict=False) == 4
    assert "data.pkl, byte" in report.reasons()[0]


@pytest.mark.parametrize("what", HOSTILE)
def test_a_payload_before_a_sound_value_is_found_in_a_raw_pickle_too(what: str, tmp_path: Path) -> None:
    assert inspected(tmp_path, program(HOSTILE[what] + b"0" + table(step=b"K\x01"), 4)).verdict == "unsafe"


@pytest.mark.parametrize("what", HARMLESS)
def test_classes_nobody_knows_are_listed_and_not_accused(what: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, archive(program(HARMLESS[what], 2 if what == "an old object" else 4)))
    assert report.verdict == "unknown-global"
    assert report.globals
    assert report.exit_code(strict=False) == 0
    assert report.exit_code(strict=True) == 4


@pytest.mark.parametrize("what", KNOWN_GOOD)
def test_state_of_torch_numpy_and_collections_is_known(what: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, archive(program(table(value=KNOWN_GOOD[what]), 2)))
    assert report.reasons() == []


def test_the_reason_names_the_global_its_place_and_its_member(tmp_path: Path) -> None:
    report = inspected(tmp_path, archive(program(call(name("posix", "system"), SHOUT))))
    assert report.reasons() == ["checkpoint:archive/data.pkl, byte 2: calls posix.system, which can run code"]
    assert report.to_json()["globals"] == ["posix.system"]


@pytest.mark.parametrize(
    "filling",
    [
        call(name("builtins", "bytearray"), b"\x8a\x06" + (10**12).to_bytes(6, "little")),
        call(name("builtins", "list"), call(name("builtins", "range"), b"\x8a\x06" + (10**12).to_bytes(6, "little"))),
    ],
)
def test_a_short_call_that_fills_all_memory_is_corrupt(filling: bytes, tmp_path: Path) -> None:
    assert inspected(tmp_path, archive(program(filling))).verdict == "corrupt"


def test_a_payload_and_a_break_are_both_told(tmp_path: Path) -> None:
    report = inspected(tmp_path, archive(b"\x80\x02" + HOSTILE["a call"] + b"0\xff"))
    assert report.verdict == "unsafe"
    assert {finding.kind for finding in report.findings} == {"unsafe", "corrupt"}


def test_a_checkpoint_inside_a_pickle_is_read_as_well(tmp_path: Path) -> None:
    inner = archive(program(HOSTILE["a call"]))
    held = b"B" + len(inner).to_bytes(4, "little") + inner
    report = inspected(tmp_path, archive(program(call(name("torch.storage", "_load_from_bytes"), held), 3)))
    assert report.verdict == "unsafe"
    assert "posix.system" in report.to_json()["globals"]


def test_checkpoints_nested_without_end_are_refused(tmp_path: Path) -> None:
    inner = archive(program(b"N"))
    for _ in range(8):
        held = b"B" + len(inner).to_bytes(4, "little") + inner
        inner = archive(program(call(name("torch.storage", "_load_from_bytes"), held), 3))
    report = inspected(tmp_path, inner)
    assert report.verdict == "unsafe"
    assert any("nested more than" in reason for reason in report.reasons())
