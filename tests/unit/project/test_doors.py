"""Everything public is reached from a command, a notebook or a report template."""

import ast
import json
from pathlib import Path

ROOT = Path(__file__).parents[3]


def identifiers(node):
    """Names that a piece of code uses."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr


def definitions(tree):
    """Names that a module defines, each with the node that does."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from ((one.asname, ast.Name(one.name)) for one in node.names if one.asname)


def cells(path):
    """Code of a notebook."""
    told = json.loads(path.read_text())["cells"]
    return [ast.parse("".join(cell["source"])) for cell in told if cell["cell_type"] == "code"]


def unreachable(modules, doors):
    """Public names that no chain of uses connects with the doors; names are compared, not what they are bound to."""
    used, where = {}, {}
    for path, tree in modules.items():
        for name, node in definitions(tree):
            used.setdefault(name, set()).update(identifiers(node))
            where.setdefault(name, path)
    seen, waiting = set(), {name for tree in doors for name in identifiers(tree)}
    while waiting:
        name = waiting.pop()
        if name in used and name not in seen:
            seen.add(name)
            waiting |= used[name]
    return sorted(f"{where[name]}: {name}" for name in used if not name.startswith("_") and name not in seen)


def test_no_public_name_is_out_of_reach():
    modules = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in ROOT.glob("workbench/**/*.py")}
    doors = [ast.Module([one for one in tree.body if isinstance(one, ast.If | ast.Expr)]) for tree in modules.values()]
    doors += [
        tree for folder in ("notebooks", "templates") for p in ROOT.glob(f"{folder}/*.ipynb") for tree in cells(p)
    ]
    doors += [ast.parse(path.read_text()) for path in ROOT.glob("notebooks/*.py")]
    commands = [tree for path, tree in modules.items() if path.parts[1] == "cli"]
    # The command line calls run_COMMAND of the module that its table names.
    called = [ast.parse(name) for tree in commands for name, _ in definitions(tree) if name.startswith("run_")]
    assert unreachable(modules, doors + commands + called) == []


def test_a_name_without_a_door_is_found():
    room = ast.parse("def used(): return helper()\ndef helper(): pass\ndef oracle(): return helper()\n_own = 1")
    assert unreachable({"room.py": room}, [ast.parse("used()")]) == ["room.py: oracle"]
