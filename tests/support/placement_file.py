"""A placement problem as a file: Example A of the reference, with a rate and capacities."""

import json

PROBLEM = {
    "workers": 2,
    "slots": 3,
    "rate": 100,
    "worker": {"cpus": 2, "net": 50},
    "operators": {
        "A": {"tasks": 2, "cpu": 4, "net": 10},
        "B": {"tasks": 3, "cpu": 6, "io": 5, "net": 2},
        "C": {"tasks": 1, "cpu": 1},
    },
    "edges": [["A", "B"], ["B", "C"]],
}
LOADS = {"A": {"tasks": 2, "cpu": 0.4, "net": 10}, "B": {"tasks": 3, "cpu": 0.6, "io": 5, "net": 2}}
CALM = PROBLEM | {"operators": LOADS | {"C": {"tasks": 1, "cpu": 0.1}}}
"""One whose tasks fit two workers."""


def written(tmp_path, document, name="problem.json"):
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path
