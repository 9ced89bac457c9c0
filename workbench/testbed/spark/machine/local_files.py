"""A local file system without forks, for checkpoints on one machine.

Hadoop's local file system starts a ``chmod`` process for every file it creates and a ``readlink`` process for every
file it renames, unless its native library is installed, and no Python package contains that library. A stateful query
creates dozens of files per batch, so these processes took about a sixth of a small slot's CPU time. The classes below
leave permissions unchanged (the deployment's folder is private). Janino, the compiler that ships with Spark, compiles
them when a session starts.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

PACKAGE = "workbench"
_FILE_SYSTEM, _ABSTRACT_FILE_SYSTEM = f"{PACKAGE}.QuietFileSystem", f"{PACKAGE}.QuietFs"
WITHOUT_FORKS: Mapping[str, str] = MappingProxyType(
    {
        "spark.hadoop.fs.file.impl": _FILE_SYSTEM,
        "spark.hadoop.fs.AbstractFileSystem.file.impl": _ABSTRACT_FILE_SYSTEM,
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    }
)
"""Spark's settings for the classes below, which must be on the class paths of the driver and the executors."""

_SOURCE = f"""
package {PACKAGE};

class QuietFiles extends org.apache.hadoop.fs.RawLocalFileSystem {{
    public void setPermission(org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission ignored) {{}}

    public org.apache.hadoop.fs.FileStatus getFileLinkStatus(org.apache.hadoop.fs.Path path)
            throws java.io.IOException {{
        return getFileStatus(path);  // there are no links
    }}
}}

public class QuietFileSystem extends org.apache.hadoop.fs.LocalFileSystem {{  // what FileSystem.getLocal casts to
    public QuietFileSystem() {{
        super(new QuietFiles());
        setWriteChecksum(false);
        setVerifyChecksum(false);
    }}
}}

class QuietFs extends org.apache.hadoop.fs.DelegateToFileSystem {{
    QuietFs(java.net.URI uri, org.apache.hadoop.conf.Configuration conf) throws Exception {{
        super(uri, new QuietFiles(), conf, "file", false);
    }}
}}
"""
_CLASSES = (f"{PACKAGE}.QuietFiles", _FILE_SYSTEM, _ABSTRACT_FILE_SYSTEM)


def compile_into(folder: Path, jvm: Any) -> None:  # noqa: ANN401 - py4j is not typed
    """Compile the classes into `folder`, which must be on the class path of `jvm` (a py4j object)."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE)
    codes = compiler.getBytecodes()
    for name in _CLASSES:
        target = folder / (name.replace(".", "/") + ".class")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bytes(codes[name]))
