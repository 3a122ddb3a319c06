"""`strata export`, from the command line."""

import json

from strata_cli.main import run
from tests.strata_core.export.checkpoints import language_model, write_checkpoint


def test_export_prints_one_object_and_refuses_the_place_a_second_time(tmp_path, capsys):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", language_model())
    asked = ["export", str(checkpoint), "--to", "hf", "--out", str(tmp_path / "out"), "--json"]
    assert run(asked) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["files"] == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert (result["out"], result["format"], result["left_behind"]) == (str(tmp_path / "out"), "hf", [])
    assert run(asked) == 6
    assert "exists already" in capsys.readouterr().err


def test_export_refuses_a_size_that_is_none_and_a_path_that_is_not_there(tmp_path, capsys):
    asked = ["export", str(tmp_path / "none"), "--to", "hf", "--out", str(tmp_path / "out")]
    assert run([*asked, "--max-shard-size", "much"]) == 2
    assert "'much' is not a size" in capsys.readouterr().err
    assert run(asked) == 2
    assert "no such file or directory" in capsys.readouterr().err
