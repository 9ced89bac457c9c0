"""What a report was asked with, so that advice on its page is a command that can be copied and run."""

import ast
import json
from collections.abc import Mapping

from workbench.report.templates import find_template


def given_parameters(report: str, values: Mapping[str, object]) -> dict[str, object]:
    """Give the parameters of one of our reports that differ from its notebook's own.

    Values that the notebook does not declare are left out. Its cell is read as it is: papermill, which also knows it,
    takes seconds to load in the kernel.
    """
    cells = json.loads(find_template(report).read_text(encoding="utf-8"))["cells"]
    source = "".join(
        line for cell in cells if "parameters" in cell["metadata"].get("tags", ()) for line in cell["source"]
    )
    own = {
        line.target.id: ast.literal_eval(line.value)
        for line in ast.parse(source).body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None
    }
    return {name: value for name, value in values.items() if name in own and value != own[name]}
