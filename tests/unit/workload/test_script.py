"""Specifications of Declarative Pipelines: which files they name, and what is refused."""

import pytest

from workbench.errors import WorkbenchError
from workbench.measuring.fingerprint import code_of
from workbench.study import find_query
from workbench.workload import Script
from workbench.workload.script import Project

SPEC = """
name: shops
storage: s3a://lake/state
libraries:
  - glob: {include: ./flows/**}
  - glob: {include: more.sql}
configuration: {spark.sql.ansi.enabled: "false", spark.sql.shuffle.partitions: 4}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flows" / "deep" / "__pycache__").mkdir(parents=True)
    for name in ("flows/b.py", "flows/a.sql", "flows/deep/c.py", "flows/deep/__pycache__/d.py", "more.sql", "other.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "flows" / "readme.md").touch()
    (tmp_path / "spark-pipeline.yml").write_text(SPEC)
    (tmp_path / "rows.csv").write_text("a\n1\n")
    return tmp_path


def test_a_specification_names_its_files_in_a_stated_order(folder):
    found = Project.read(folder / "spark-pipeline.yml")
    assert [str(one.relative_to(folder)) for one in found.files] == [
        "flows/a.sql",
        "flows/b.py",
        "flows/deep/c.py",
        "more.sql",
    ]
    assert found.storage == "s3a://lake/state"
    assert found.settings == {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "4"}


@pytest.mark.usefixtures("folder")
def test_a_flow_is_named_by_its_number_and_is_another_when_a_file_of_the_project_changes(folder):
    assert Script.named("spark-pipeline.yml#2") == Script("spark-pipeline.yml", (), 2)
    query = find_query("spark-pipeline.yml#2", "rows.csv")
    before = code_of(query)
    assert before == code_of(find_query("spark-pipeline.yml#2", "rows.csv"))
    (folder / "flows" / "deep" / "c.py").write_text("changed = True\n")
    assert before != code_of(query)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("query: nexmark:q5\n", "has the libraries None"),
        ("libraries: [flows]\n", "a pipeline's name its files"),
        ("[1]\n", "has the libraries None"),
        ("libraries: 5\n", "has the libraries 5"),
        ("libraries: [{glob: {include: none/**}}]\n", "no .py or .sql file is there"),
        ("libraries: [\n", "cannot be read as YAML"),
    ],
)
def test_what_is_no_specification_is_refused(tmp_path, text, says):
    (tmp_path / "spark-pipeline.yml").write_text(text)
    with pytest.raises(WorkbenchError, match=says):
        Project.read(tmp_path / "spark-pipeline.yml")
