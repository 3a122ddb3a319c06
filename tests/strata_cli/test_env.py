import json

import pytest

from strata_cli import main


def test_env_tells_what_a_bug_report_needs(capsys):
    torch = pytest.importorskip("torch")
    assert main.run(["env", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["libraries"]["torch"] == torch.__version__
    assert facts["memory"]["total_bytes"] > facts["memory"]["available_bytes"] > 0
    assert facts["cpus"]["usable"] >= 1
    assert facts["devices"][0]["name"] == "cpu"
    assert main.run(["env"]) == 0
    assert torch.__version__ in capsys.readouterr().out
