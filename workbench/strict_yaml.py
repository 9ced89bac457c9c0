"""Strict YAML: duplicate keys are refused, and ``1e6`` is a number.

PyYAML silently keeps the last of two equal keys. It also reads YAML 1.1, in which ``1e6`` is a string.
"""

import re
from typing import Any

import yaml

from workbench.errors import WorkbenchError

_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")


class _StrictLoader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 - the base class's
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise WorkbenchError(f"key {key.value!r} is there twice")
                seen.add(key.value)
        return node


_StrictLoader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


def parse_yaml(text: str) -> object:
    """Read one YAML document of plain values.

    Raises
    ------
    ValueError
        If `text` is not YAML, or has an invalid date or number.
    WorkbenchError
        If a mapping has a key twice; the caller adds the file and the next step.
    """
    try:
        loader = _StrictLoader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
