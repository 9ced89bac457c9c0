import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from workbench.errors import WorkbenchError
from workbench.testbed.spark.machine import java as connector

NAMES = (
    "spark-sql-kafka-0-10_2.13-4.2.0",
    "spark-token-provider-kafka-0-10_2.13-4.2.0",
    "kafka-clients-3.9.2",
    "commons-pool2-2.13.1",
)
AVRO = ("spark-avro_2.13-4.2.0",)


def jars_in(folder, names=NAMES):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.jar").touch()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(connector.JARS, raising=False)


def test_a_folder_that_is_named_is_taken(tmp_path, monkeypatch):
    jars_in(tmp_path / "jars", (*NAMES, "hadoop-client-api-3.5.0"))
    monkeypatch.setenv(connector.JARS, "jars")
    found = connector.connector_jars()
    assert found == tuple(sorted(str(tmp_path / "jars" / f"{name}.jar") for name in NAMES))
    assert connector.connector_version(found) == "4.2.0"


@pytest.mark.parametrize(
    ("names", "text"),
    [(NAMES[:3], r"has no commons-pool2-VERSION\.jar"), ((*NAMES, "kafka-clients-4.0.0"), "has 2 kafka-clients")],
)
def test_a_folder_with_a_jar_too_few_or_too_many_is_refused(tmp_path, monkeypatch, names, text):
    jars_in(tmp_path / "jars", names)
    monkeypatch.setenv(connector.JARS, "jars")
    with pytest.raises(WorkbenchError, match=text):
        connector.connector_jars()


def test_the_connector_of_sparks_version_is_fetched_first_and_once(monkeypatch):
    asked = []

    def fetch(packages, folder, _):
        (version,) = {package.rpartition(":")[2] for package in packages}
        asked.append(version)
        if version != "4.2.0":
            return "it was not found"
        jars_in(folder)
        (folder / "done").touch()
        return ""

    monkeypatch.setattr(connector, "_fetch", fetch)
    monkeypatch.setattr(connector, "version", lambda _: "4.3.0")
    first = connector.connector_jars()
    assert asked == ["4.3.0", "4.2.0"]
    assert connector.connector_jars() == first
    assert len(asked) == 2


def test_a_machine_without_maven_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr(connector, "_fetch", lambda *_: "no route to host")
    with pytest.raises(WorkbenchError, match=r"no route to host\. On a machine that can.*WORKBENCH_KAFKA_JARS"):
        connector.connector_jars()
    with pytest.raises(WorkbenchError, match=r"The packages io\.delta:delta:9 could not be fetched .* key 'jars'"):
        connector.package_jars(["io.delta:delta:9"])


def test_a_connector_that_was_fetched_without_avro_is_fetched_again_where_avro_is_asked(tmp_path, monkeypatch):
    folder, asked = tmp_path / ".workbench/kafka-connector/4.2.0", []
    jars_in(folder)
    (folder / "done").touch()

    def fetch(packages, into, _):
        asked.append(packages[1])
        jars_in(into, AVRO)
        return ""

    monkeypatch.setattr(connector, "_fetch", fetch)
    monkeypatch.setattr(connector, "version", lambda _: "4.2.0")
    assert len(connector.connector_jars()) == len(NAMES)
    assert connector.connector_jars(avro=True) == connector.connector_jars(avro=True)
    assert {Path(one).stem for one in connector.connector_jars(avro=True)} == {*NAMES, *AVRO}
    assert asked == ["org.apache.spark:spark-avro_2.13:4.2.0"]
    jars_in(tmp_path / "jars")
    monkeypatch.setenv(connector.JARS, "jars")
    with pytest.raises(WorkbenchError, match=r"has no spark-avro_2\.13-VERSION\.jar"):
        connector.connector_jars(avro=True)


def test_packages_are_fetched_once_and_excluded_as_spark_does(monkeypatch, tmp_path):
    ran = []

    def run(command, **_):
        ran.append((tmp_path / "asked.xml").write_text(Path(command[command.index("-ivy") + 1]).read_text()))
        folder = Path(command[command.index("-retrieve") + 1]).parent
        jars_in(folder, ("delta-spark_2.13-4.0.0", "delta-storage-4.0.0"))
        return SimpleNamespace(returncode=0, stdout="")

    monkeypatch.setattr(connector.subprocess, "run", run)
    monkeypatch.setattr(connector, "find_java", lambda _: SimpleNamespace(home="/java"))
    first = connector.package_jars(["io.delta:delta-spark_2.13:4.0.0"])
    assert [Path(jar).name for jar in first] == ["delta-spark_2.13-4.0.0.jar", "delta-storage-4.0.0.jar"]
    assert connector.package_jars(["io.delta:delta-spark_2.13:4.0.0"]) == first
    assert len(ran) == 1
    written = ET.parse(tmp_path / "asked.xml")  # noqa: S314 - ours
    asked = written.find("dependencies/dependency")
    assert (asked.get("org"), asked.get("name"), asked.get("rev")) == ("io.delta", "delta-spark_2.13", "4.0.0")
    excluded = re.compile(asked.find("exclude").get("module"))
    assert excluded.fullmatch("spark-sql_2.13")
    assert not excluded.fullmatch("spark-token-provider-kafka-0-10_2.13")
    assert connector.package_jars([]) == ()
