"""Verifying: every way of tampering is found and named, alone and together, and sound folders are not accused."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from manifest_chain import LOGS, Chain, build_chain, entry_dict

from strata_core.errors import DataError, UsageError
from strata_core.manifest import FileEntry, Manifest, Parent, hash_file, verify
from strata_core.observer import Observer

CASES = Path(__file__).resolve().parents[3].parent / "shared" / "cases"
FIRST, SECOND, THIRD = (f"checkpoints/step-{step:08d}" for step in (100, 200, 300))
SHA = "ab" * 32
PATHS_THAT_ARE_NOT_PLAIN = [
    "../out",
    "a/../../out",
    "/etc/hostname",
    "~root/x",
    "C:\\x",
    "C:/x",
    "\\\\?\\C:\\x",
    "a\\b",
    "./a",
    "a//b",
    "a/",
    "",
    "a\0b",
]


def change_byte(chain: Chain) -> None:
    path = chain.run / THIRD / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[17] ^= 1
    path.write_bytes(data)


def cut(chain: Chain) -> None:
    os.truncate(chain.run / THIRD / "optimizer.safetensors", 10)


def remove_file(chain: Chain) -> None:
    (chain.run / THIRD / "config.json").unlink()


def add_file(chain: Chain) -> None:
    (chain.run / THIRD / "extra.bin").write_bytes(b"x")


def add_file_at_the_top(chain: Chain) -> None:
    (chain.run / "notes.txt").write_bytes(b"x")


def add_temporary_file(chain: Chain) -> None:
    (chain.run / ".manifest.json.aside").write_bytes(b"x")


def add_empty_folder(chain: Chain) -> None:
    (chain.run / "plots").mkdir()


def add_case_twin(chain: Chain) -> None:
    (chain.run / "Recipe.toml").write_bytes(b"x")


def file_into_link(chain: Chain) -> None:
    path = chain.run / THIRD / "tokenizer.json"
    outside = chain.run.parent / "outside.json"
    shutil.move(path, outside)
    path.symlink_to(outside)


def file_into_folder(chain: Chain) -> None:
    path = chain.run / THIRD / "trainer.json"
    path.unlink()
    path.mkdir()


def file_into_fifo(chain: Chain) -> None:
    path = chain.run / SECOND / "config.json"
    path.unlink()
    os.mkfifo(path)


def rename_in_case(chain: Chain) -> None:
    os.rename(chain.run / SECOND / "trainer.json", chain.run / SECOND / "Trainer.json")


def rename_in_unicode_form(chain: Chain) -> None:
    os.rename(chain.run / SECOND / "donn\u00e9es-\u00e9.txt", chain.run / SECOND / "donne\u0301es-\u00e9.txt")


def change_recipe(chain: Chain) -> None:
    (chain.run / "recipe.toml").write_bytes(b"[run]\nseed = 2\n")


def change_log(chain: Chain) -> None:
    path = chain.run / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-3])


def lengthen_log(chain: Chain) -> None:
    with open(chain.run / "events.jsonl", "ab") as file:
        file.write(b"more\n")


def swap_latest(chain: Chain) -> None:
    _point(chain.run / "checkpoints/latest", "step-00000200")


def point_best_outside(chain: Chain) -> None:
    _point(chain.run / "checkpoints/best", "../../corpus")


def replace_checkpoint_with_its_manifest(chain: Chain) -> None:
    folder = chain.run / FIRST
    (folder / "model.safetensors").write_bytes(b"other weights")
    files = [hash_file(folder / entry.path, name=entry.path) for entry in Manifest.read(folder).files]
    chain.rewrite(folder, files=tuple(files))


def list_what_climbs_out(chain: Chain) -> None:
    files = Manifest.read(chain.corpus).files
    _write_unchecked(chain.corpus, (*files, FileEntry("../run/recipe.toml", 15, SHA)))


def list_twice(chain: Chain) -> None:
    files = Manifest.read(chain.run).files
    _write_unchecked(chain.run, (*files, *files))


def malform_a_digest(chain: Chain) -> None:
    files = Manifest.read(chain.run / SECOND).files
    changed = (replace(entry, sha256="xyz") if entry.path == "tokenizer.json" else entry for entry in files)
    _write_unchecked(chain.run / SECOND, tuple(changed))


def change_corpus(chain: Chain) -> None:
    (chain.corpus / "train-00000.bin").write_bytes(b"other tokens")


def add_to_corpus(chain: Chain) -> None:
    (chain.corpus / "train-00001.bin").write_bytes(b"tokens")


def _point(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


def _write_unchecked(folder: Path, files: tuple[FileEntry, ...]) -> None:
    """What a program that does not check its names would write."""
    content = json.loads((folder / "manifest.json").read_bytes())
    del content["checksum"]
    content["files"] = [entry_dict(entry) for entry in files]
    (folder / "manifest.json").write_text(json.dumps(content))


TAMPERING: dict[Callable[[Chain], None], tuple[str, str]] = {
    change_byte: ("changed", f"{THIRD}/model.safetensors"),
    cut: ("changed", f"{THIRD}/optimizer.safetensors"),
    remove_file: ("missing", f"{THIRD}/config.json"),
    add_file: ("extra", f"{THIRD}/extra.bin"),
    add_file_at_the_top: ("extra", "notes.txt"),
    add_temporary_file: ("extra", ".manifest.json.aside"),
    add_empty_folder: ("extra", "plots"),
    add_case_twin: ("extra", "Recipe.toml"),
    file_into_link: ("other", f"{THIRD}/tokenizer.json"),
    file_into_folder: ("other", f"{THIRD}/trainer.json"),
    file_into_fifo: ("other", f"{SECOND}/config.json"),
    rename_in_case: ("other", f"{SECOND}/trainer.json"),
    rename_in_unicode_form: ("other", f"{SECOND}/donn\u00e9es-\u00e9.txt"),
    change_recipe: ("changed", "recipe.toml"),
    change_log: ("changed", "metrics.jsonl"),
    lengthen_log: ("changed", "events.jsonl"),
    swap_latest: ("changed", "checkpoints/latest"),
    point_best_outside: ("other", "checkpoints/best"),
    replace_checkpoint_with_its_manifest: ("changed", f"{FIRST}/manifest.json"),
    list_what_climbs_out: ("other", "CORPUS/../run/recipe.toml"),
    list_twice: ("other", "recipe.toml"),
    malform_a_digest: ("other", f"{SECOND}/tokenizer.json"),
    change_corpus: ("changed", "CORPUS/train-00000.bin"),
    add_to_corpus: ("extra", "CORPUS/train-00001.bin"),
}
"""What is done, and the fault that it has to give; CORPUS stands for the corpus's folder."""

MORE_FAULTS = {
    list_what_climbs_out: {("other", "CORPUS/manifest.json")},
    malform_a_digest: {("changed", f"{SECOND}/manifest.json")},
    list_twice: {("other", f"{path}/manifest.json") for path in (FIRST, SECOND, THIRD)},
}
"""What follows from it: a manifest that lists other files has another digest than the one its child names."""


def found_faults(chain: Chain) -> set[tuple[str, str]]:
    report = verify(chain.run)
    corpus = str(chain.corpus.resolve())
    return {(fault.kind, fault.path.replace(corpus, "CORPUS")) for fault in report.faults}


@pytest.mark.parametrize("tamper", TAMPERING, ids=lambda tamper: tamper.__name__)
def test_one_change_gives_its_fault_and_no_other(chain: Chain, tamper: Callable[[Chain], None]) -> None:
    tamper(chain)
    assert found_faults(chain) - MORE_FAULTS.get(tamper, set()) == {TAMPERING[tamper]}


def test_all_changes_at_once_are_all_found(chain: Chain) -> None:
    for tamper in TAMPERING:
        tamper(chain)
    wanted = {fault for tamper, fault in TAMPERING.items() if "corpus" not in tamper.__name__}
    assert wanted <= found_faults(chain)


def test_a_sound_chain_is_not_accused(chain: Chain) -> None:
    report = verify(chain.run)
    assert report.ok and report.notes == ()
    assert report.checked == 1 + 1 + len(LOGS) + 3 * 6 + 4
    assert [(parent.describes, parent.status) for parent in report.parents] == [("corpus", "ok")]


def test_a_checkpoint_leads_to_its_run_and_on_to_the_corpus(chain: Chain) -> None:
    for path in (chain.run / SECOND, chain.run / "checkpoints/best", chain.run / SECOND / "manifest.json"):
        report = verify(path)
        assert report.ok and report.describes == "checkpoint"
        assert [(parent.describes, parent.status) for parent in report.parents] == [("run", "ok"), ("corpus", "ok")]
    (chain.run / "recipe.toml").write_bytes(b"[run]\nseed = 2\n")
    report = verify(chain.run / SECOND)
    assert report.paths("changed") == [str(chain.run.resolve() / "recipe.toml")]
    assert [parent.status for parent in report.parents] == ["failed", "ok"]


def test_parents_that_are_elsewhere_are_told_and_are_no_fault(chain: Chain, tmp_path: Path) -> None:
    shutil.move(chain.run / SECOND, tmp_path / "copied")
    report = verify(tmp_path / "copied")
    assert report.ok
    assert [(parent.describes, parent.status) for parent in report.parents] == [("run", "not found here")]


def test_a_corpus_made_again_in_the_same_place_is_not_the_parent(chain: Chain) -> None:
    chain.rewrite(chain.corpus, record={"kind": "text", "vocab_size": 8000})
    report = verify(chain.run)
    assert report.paths("other") == [str(chain.corpus.resolve() / "manifest.json")]
    assert report.parents[0].status == "failed"


def test_a_checkpoint_of_another_run_is_noticed(chain: Chain) -> None:
    chain.rewrite(chain.run, record={"seed": 2})
    assert verify(chain.run).paths("other") == [f"{path}/manifest.json" for path in (FIRST, SECOND, THIRD)]


def test_checkpoints_that_are_gone_added_or_links_are_noticed(chain: Chain) -> None:
    shutil.rmtree(chain.run / FIRST)
    shutil.copytree(chain.run / SECOND, chain.run / "checkpoints/step-00000999")
    shutil.move(chain.run / THIRD, chain.run.parent / "moved")
    (chain.run / THIRD).symlink_to("../../moved")
    report = verify(chain.run)
    assert report.paths("missing") == [FIRST]
    assert report.paths("extra") == ["checkpoints/step-00000999"]
    assert report.paths("other") == ["checkpoints/latest", THIRD]


def test_a_folder_turned_into_a_link_is_noticed_though_its_content_is_right(chain: Chain) -> None:
    shutil.move(chain.corpus / "structure", chain.corpus.parent / "structure")
    (chain.corpus / "structure").symlink_to("../structure")
    report = verify(chain.corpus)
    assert report.paths("other") == ["structure"]
    assert report.paths("missing") == ["structure/heads.bin"]


def test_a_checkpoint_without_a_usable_manifest_is_named(chain: Chain) -> None:
    (chain.run / FIRST / "manifest.json").unlink()
    (chain.run / SECOND / "manifest.json").write_bytes(b"{")
    report = verify(chain.run)
    assert report.paths("missing") == [f"{FIRST}/manifest.json"]
    assert report.paths("changed") == [f"{SECOND}/manifest.json"]


def test_a_missing_link_is_noticed(chain: Chain) -> None:
    (chain.run / "checkpoints/latest").unlink()
    assert verify(chain.run).paths("missing") == ["checkpoints/latest"]


def test_latest_has_to_name_the_highest_step_where_links_are_not_recorded(chain: Chain) -> None:
    state = {key: value for key, value in Manifest.read(chain.run).state.items() if key != "links"}
    chain.rewrite(chain.run, state=state)
    assert verify(chain.run).ok
    swap_latest(chain)
    assert verify(chain.run).paths("changed") == ["checkpoints/latest"]


def test_a_live_run_may_have_grown_and_hold_what_a_kill_left(live_chain: Chain) -> None:
    run = live_chain.run
    lengthen_log(live_chain)
    (run / ".recipe.toml.aside").write_bytes(b"half")
    (run / "checkpoints/.step-00000400.partial/deep").mkdir(parents=True)
    (run / "checkpoints/.step-00000400.partial/deep/file").write_bytes(b"half")
    (run / "evaluations.jsonl").write_bytes(b"{}\n")
    shutil.copytree(run / THIRD, run / "checkpoints/step-00000400")
    report = verify(run)
    assert report.ok
    assert sorted(note.split(":")[0] for note in report.notes) == [
        ".recipe.toml.aside",
        "checkpoints/.step-00000400.partial",
        "checkpoints/step-00000400",
        "evaluations.jsonl",
    ]


@pytest.mark.parametrize("content", [b"a line", b"another line of events.jsonl\n" * 30])
def test_a_log_of_a_live_run_that_is_shorter_or_other_at_its_start_is_a_fault(
    live_chain: Chain, content: bytes
) -> None:
    (live_chain.run / "events.jsonl").write_bytes(content)
    assert verify(live_chain.run).paths("changed") == ["events.jsonl"]


def test_what_is_wrong_in_a_live_run_is_still_found(live_chain: Chain) -> None:
    change_byte(live_chain)
    add_file_at_the_top(live_chain)
    shutil.rmtree(live_chain.run / FIRST)
    report = verify(live_chain.run)
    assert report.paths("changed") == [f"{THIRD}/model.safetensors"]
    assert report.paths("extra") == ["notes.txt"]
    assert report.paths("missing") == [FIRST]


def test_quick_compares_names_and_sizes_and_reads_no_content(chain: Chain) -> None:
    change_byte(chain)
    change_corpus(chain)
    report = verify(chain.run, quick=True)
    assert report.ok and report.checked_bytes == 0
    assert report.parents[0].status == "digest ok"
    cut(chain)
    remove_file(chain)
    assert verify(chain.run, quick=True).paths("changed") == [f"{THIRD}/optimizer.safetensors"]
    assert verify(chain.run, quick=True).paths("missing") == [f"{THIRD}/config.json"]


def test_a_wrong_size_is_told_without_reading_the_file(tmp_path: Path) -> None:
    with open(tmp_path / "big.bin", "wb") as file:
        file.truncate(1 << 40)
    Manifest("corpus", files=(FileEntry("big.bin", (1 << 40) + 1, SHA),)).write(tmp_path)
    report = verify(tmp_path)
    assert report.paths("changed") == ["big.bin"] and report.checked_bytes == 0


def test_a_fault_is_told_before_a_long_read(tmp_path: Path) -> None:
    with open(tmp_path / "long.bin", "wb") as file:
        file.truncate(300 << 20)
    Manifest("corpus", files=(FileEntry("gone", 1, SHA), FileEntry("long.bin", 300 << 20, SHA))).write(tmp_path)
    told: list[str] = []

    class Listener(Observer):
        def warning(self, text: str) -> None:
            told.append(text)

        def stage_started(self, name: str, total: int | None, unit: str) -> None:
            told.append(f"{name} {total} {unit}")

        def stage_advanced(self, done: int, detail: str = "") -> None:
            self.done = done

    listener = Listener()
    verify(tmp_path, observer=listener)
    assert told == ["found before reading any content: gone: not there", f"hashing {300 << 20} bytes"]
    assert listener.done == 300 << 20


def test_a_file_that_cannot_be_read_is_named(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def refuse(path: object, *arguments: int) -> int:
        if str(path).endswith("trainer.json"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    report = verify(chain.run / SECOND)
    assert report.paths("other") == ["trainer.json"]
    assert "Permission denied" in report.faults[0].what


@pytest.mark.parametrize("path", PATHS_THAT_ARE_NOT_PLAIN)
def test_a_path_that_leads_outside_is_refused_from_its_text_alone(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    os.mkfifo(tmp_path / "out")  # whoever opens it waits for ever
    (folder / "manifest.json").write_bytes(Manifest("corpus").to_bytes())
    _write_unchecked(folder, (FileEntry(path, 9, SHA),))
    report = verify(folder)
    assert report.paths("other") == [path] and report.checked == 0


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("absent", "dangling", "x" * 300):
        with pytest.raises(UsageError, match=name):
            verify(tmp_path / name)


@pytest.mark.parametrize("content", [None, b"{}", b'{"format_version": 1}', b"[" * 100_000, b"\xff" * 100])
def test_a_folder_without_a_usable_manifest_is_a_data_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(DataError, match=str(tmp_path)):
        verify(tmp_path)


@pytest.mark.parametrize("state", [{"final": 1}, {"logs": {}}, {"checkpoints": ["x"]}, {"links": {"latest": 1}}])
def test_a_run_with_a_malformed_state_is_a_data_error(chain: Chain, state: dict[str, object]) -> None:
    chain.rewrite(chain.run, state=Manifest.read(chain.run).state | state)
    with pytest.raises(DataError, match="state"):
        verify(chain.run)


def test_a_checkpoint_recorded_outside_the_run_is_refused(chain: Chain) -> None:
    state = Manifest.read(chain.run).state
    listed = [*state["checkpoints"], {"path": "checkpoints/../../corpus", "digest": SHA}]
    chain.rewrite(chain.run, state={**state, "checkpoints": listed})
    assert verify(chain.run).paths("other") == ["checkpoints/../../corpus"]


@pytest.mark.parametrize("hint", [None, "\0", "x" * 5000, "/dev/null", "../../../../../..", "\ud800"])
def test_a_parent_path_that_leads_nowhere_is_not_found_here(tmp_path: Path, hint: str | None) -> None:
    manifest = Manifest("checkpoint", parents=(Parent("run", SHA, None),))
    content = json.loads(manifest.to_bytes())
    del content["checksum"]
    content["parents"][0]["path"] = hint
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    report = verify(tmp_path)
    assert report.ok and report.parents[0].status == "not found here"


def test_an_extra_file_with_a_name_that_is_not_utf8_is_reported(chain: Chain) -> None:
    (chain.corpus / "bad\udcff").write_bytes(b"x")
    assert verify(chain.corpus).paths("extra") == ["bad\udcff"]


def check_single_bit_flips(chain: Chain, count: int) -> None:
    """Flips one bit at a time, over all files weighted by their sizes; each flip has to be found in its file."""
    generator = random.Random(4)
    files = [path for root in (chain.run, chain.corpus) for path in root.rglob("*") if path.is_file()]
    files = [path for path in files if path.stat().st_size and not {"latest", "best"} & set(path.parts)]
    for path in generator.choices(files, weights=[path.stat().st_size for path in files], k=count):
        sound = path.read_bytes()
        position, bit = generator.randrange(len(sound)), generator.randrange(8)
        path.write_bytes(sound[:position] + bytes([sound[position] ^ 1 << bit]) + sound[position + 1 :])
        name = path.name if path == chain.run / path.name else f"{path.parent.name}/{path.name}"
        try:
            faults = [fault.path for fault in verify(chain.run).faults]
        except DataError as error:
            faults = [error.message.split(":")[0]]
        assert any(found.endswith(name) for found in faults), (path, position, bit, faults)
        path.write_bytes(sound)
    assert verify(chain.run).ok


def test_single_bit_flips_are_found(chain: Chain) -> None:
    check_single_bit_flips(chain, 60)


@pytest.mark.slow
def test_a_thousand_single_bit_flips_are_found(chain: Chain) -> None:
    check_single_bit_flips(chain, 1000)


@pytest.mark.slow
def test_a_hundred_verifications_of_sound_chains_accuse_nobody(tmp_path: Path) -> None:
    for index in range(100):
        chain = build_chain(tmp_path / str(index), final=index % 2 == 0)
        assert verify(chain.run).ok and verify(chain.corpus).ok and verify(chain.run / "checkpoints/latest").ok


def test_case_m02_names_that_differ_in_unicode_form(tmp_path: Path) -> None:
    composed, decomposed = "caf\u00e9-\u65e5\u672c-\U0001f40e.bin", "cafe\u0301-\u65e5\u672c-\U0001f40e.bin"

    def verified(name: str, on_disk: dict[str, bytes], listed: list[str]) -> tuple[list[str], list[str]]:
        folder = tmp_path / name
        folder.mkdir()
        for file, content in on_disk.items():
            (folder / file).write_bytes(content)
        contents = {composed: b"1", decomposed: b"2"} | on_disk
        other = tmp_path / f"{name}-listed"
        other.mkdir()
        for file in listed:
            (other / file).write_bytes(contents[file])
        Manifest("corpus", files=tuple(hash_file(other / file, name=file) for file in listed)).write(folder)
        report = verify(folder)
        assert not report.paths("missing") and not report.paths("changed")
        return report.paths("other"), report.paths("extra")

    assert verified("same", {composed: b"1"}, [composed]) == ([], [])
    assert verified("nfd_on_disk", {decomposed: b"1"}, [composed]) == ([composed], [])
    assert verified("both_on_disk", {decomposed: b"2", composed: b"1"}, [composed, decomposed]) == ([], [])
    assert verified("both_one_listed", {decomposed: b"2", composed: b"1"}, [composed]) == ([], [decomposed])


def test_case_m03_every_listed_path_that_leads_outside_is_refused(tmp_path: Path) -> None:
    if not CASES.is_dir():
        pytest.skip("the acceptance cases are not here")
    folder = tmp_path / "tree"
    shutil.copytree(CASES / "M03/tree", folder)
    folder.chmod(0o755)
    shutil.copyfile(CASES / "M03/outside.txt", tmp_path / "outside.txt")
    for path in sorted((CASES / "M03").glob("manifest_*.json")):
        given = json.loads(path.read_bytes())["files"]
        (folder / "manifest.json").write_bytes(Manifest("corpus").to_bytes())
        _write_unchecked(folder, tuple(FileEntry(item["path"], item["bytes"], item["sha256"]) for item in given))
        assert verify(folder).paths("other") == [given[1]["path"]]
