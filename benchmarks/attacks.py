"""What each trick of an attacker's study, plan, journal, data or log comes to: a table, from the tests that try them.

python benchmarks/attacks.py [PYTEST'S OPTIONS]
"""

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRICKS = ROOT / "tests" / "unit" / "test_attacker.py"


class Table:
    """Keeps what the tests say their tricks came to."""

    def __init__(self):
        self.rows = {}

    def pytest_runtest_logreport(self, report):
        trick = report.nodeid.split("::test_")[1].split("[")[0].replace("_", " ")
        if report.failed:
            self.rows[trick] = "IT WORKS"
        elif report.when == "call":
            said = dict(report.user_properties).get("came to")
            if said and self.rows.get(trick) != "IT WORKS":
                self.rows[trick] = said


def main():
    """Try them all and print the table."""
    table = Table()
    with redirect_stdout(io.StringIO()):  # pytest's own account
        code = pytest.main(["--rootdir", str(ROOT), str(TRICKS), *sys.argv[1:]], [table])
    widest = max(map(len, table.rows), default=0)
    for trick, outcome in table.rows.items():
        print(f"{trick:{widest}}  {outcome}")
    print(f"{len(table.rows)} tricks, {sum(one == 'IT WORKS' for one in table.rows.values())} of them work")
    return code


if __name__ == "__main__":
    sys.exit(main())
