"""Compare requirements.txt with a public list of advisories; `make check` runs this.

The list is OSV's, asked once for all packages. Where it cannot be reached, this says so and passes, so that the checks
work offline.
"""

import json
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = "https://api.osv.dev/v1/querybatch"
PATIENCE_S = 20


def pinned(text: str) -> list[tuple[str, str]]:
    """Give the packages of a requirements file with their versions."""
    lines = (line.split(";")[0].split()[0] for line in text.splitlines() if line and line[0] not in "# ")
    return [(name, version) for name, _, version in (line.partition("==") for line in lines)]


def advisories(packages: list[tuple[str, str]], ask: Callable[[bytes], bytes]) -> list[str]:
    """Give a line for each advisory about one of `packages`; `ask` sends a question to the list."""
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in packages]
    results = json.loads(ask(json.dumps({"queries": queries}).encode()))["results"]
    return [
        f"{name}=={version}: {found['id']}"
        for (name, version), result in zip(packages, results, strict=True)
        for found in result.get("vulns", ())
    ]


def _ask(question: bytes) -> bytes:
    request = urllib.request.Request(LIST, question, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - a constant https address
        content: bytes = answer.read()
    return content


def main(ask: Callable[[bytes], bytes] = _ask) -> int:
    """Print the advisories; 1 if there are any."""
    packages = pinned((ROOT / "requirements.txt").read_text())
    try:
        found = advisories(packages, ask)
    except (OSError, ValueError, KeyError) as error:
        print(f"advisories: the list cannot be reached here ({error}), so nothing was compared.")
        return 0
    print("\n".join(found) or f"advisories: none for {len(packages)} packages.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
