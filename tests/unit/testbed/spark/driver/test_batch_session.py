"""What a session for data at rest leaves behind in its process."""

import os

import pyspark.java_gateway
import pytest

from workbench.testbed.spark import batch_session


def test_the_environment_is_as_it_was(monkeypatch):
    def refuse(*_):
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
        raise OSError

    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", refuse)
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    before = dict(os.environ)
    with pytest.raises(OSError), batch_session():  # noqa: PT011 - the one above
        pass
    assert dict(os.environ) == before
