"""What is said when Spark's driver process is gone."""

from workbench.testbed.spark.testbed import _ended


def test_without_a_word_memory_is_the_likely_cause(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(_ended("")).startswith("Spark's driver process ended by itself, most likely for lack of memory; close")


def test_its_last_error_is_told_and_memory_still_advised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = "at x\njava.lang.OutOfMemoryError: Java heap space\n"
    assert "itself (java.lang.OutOfMemoryError: Java heap space), most likely for lack of memory" in str(_ended(said))


def test_a_package_of_the_folder_that_hides_an_installed_one_is_named(tmp_path, monkeypatch):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").touch()
    (tmp_path / "jobs.py").touch()
    monkeypatch.chdir(tmp_path)
    told = str(_ended("ImportError: cannot import name 'array' from 'numpy'"))
    assert "take numpy in the current folder for a module of the same name: rename it" in told
    assert "jobs.py" not in told
