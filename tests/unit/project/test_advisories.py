"""The audit of dependencies finds what the list has, and passes where there is no list."""

import json

import advisories


def test_every_package_is_asked_for_with_its_version(capsys):
    def ask(question):
        queries = json.loads(question)["queries"]
        assert {"name": "numpy", "ecosystem": "PyPI"} in [one["package"] for one in queries]
        assert len(queries) > 150
        return json.dumps({"results": [{} for _ in queries]}).encode()

    assert advisories.main(ask) == 0
    assert "none for 1" in capsys.readouterr().out


def test_an_advisory_fails_the_check(capsys):
    def ask(question):
        queries = json.loads(question)["queries"]
        return json.dumps({"results": [{"vulns": [{"id": "GHSA-1"}]}, *({} for _ in queries[1:])]}).encode()

    assert advisories.main(ask) == 1
    assert capsys.readouterr().out.endswith(": GHSA-1\n")


def test_without_the_list_it_says_so_and_passes(capsys):
    def ask(_):
        raise OSError("no network")

    assert advisories.main(ask) == 0
    assert "cannot be reached here (no network), so nothing was compared" in capsys.readouterr().out
