"""The audit of dependencies finds what the list has, and passes where there is no list."""

import json

import advisories
import pytest


@pytest.mark.parametrize(
    ("first", "code", "said"), [({}, 0, "none for 1"), ({"vulns": [{"id": "GHSA-1"}]}, 1, ": GHSA-1\n")]
)
def test_every_package_is_asked_for_with_its_version_and_an_advisory_fails_the_check(capsys, first, code, said):
    def ask(question):
        queries = json.loads(question)["queries"]
        assert {"name": "numpy", "ecosystem": "PyPI"} in [one["package"] for one in queries]
        assert len(queries) > 150
        return json.dumps({"results": [first, *({} for _ in queries[1:])]}).encode()

    assert advisories.main(ask) == code
    assert said in capsys.readouterr().out


def test_without_the_list_it_says_so_and_passes(capsys):
    def ask(_):
        raise OSError("no network")

    assert advisories.main(ask) == 0
    assert "cannot be reached here (no network), so nothing was compared" in capsys.readouterr().out
