"""Secrets in texts: what looks like one, or is one in the environment, is replaced before it is shown or kept.

Errors, journals, event logs, reports and the terminal all redact here. It is a net, not a promise: a secret that
nothing around it names as one is kept.
"""

import json
import os
import re

HIDDEN = "***"
_WORDS = (
    r"(?i:passw(?:or)?d|passphrase|secret|token|credential|jaas|oauth|authorization|"
    r"(?:api|access|account|private|shared|encryption|signing|sas|keystore)[._-]?key|key[._-]?pem|"
    r"(?:access|amz)[._-]?signature|(?<=[?&])sig|(?:db|sql|user|smtp|ftp|ssl|pg|redis|ldap|proxy|admin|root)[_.](?:pass|pwd)(?![a-z0-9_]))"
)
_NAME = re.compile(rf"{_WORDS}s?(?![a-z])")  # tokenize is not one, secretKey is
_PART = r"[\w.\[\]-]{0,80}"  # of a setting's name, before and after the word
# A setting (password=...), but not the folder of a partition (/tokens=2024/); and a key of JSON or YAML
# (password: ...), but not module:function or host:port.
_NAMED = re.compile(
    rf"(?P<name>(?<![\w.\[\]/-]){_PART}?{_WORDS}s?(?![a-z]){_PART}[\"']?\s{{0,4}}=\s{{0,4}}"
    rf"|{_WORDS}(?![a-z]){_PART}\\?[\"']?\s{{0,4}}:(?=\s|\\?[\"'])\s{{0,4}})"
    # A text in quotes, whose own quotes are escaped, and which may have been cut before it ends; or a word.
    r"(?P<value>\\\"(?:(?!\\\")[^\n])*(?:\\\")?|\"(?:[^\"\\]|\\[\s\S])*\"|\"[^\"\n]*"
    r"|'(?:[^'\\]|\\[\s\S]|'')*'|'[^'\n]*|(?:(?i:basic|bearer)\s)?"
    r"(?:[^\s&;,)}\]\"']|[;,)}\]](?!\s|$|[\"']|[\w.-]+=))+)"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:(?!-----)[\s\S]){0,40000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
)
_BEARER = re.compile(r"(?P<name>\bbearer\s)[\w.~+/=-]{8,}", re.IGNORECASE)
_LOGIN = re.compile(  # AWS's keys have slashes; C:/ is a drive
    r"(?P<name>://)(?![A-Za-z]:/)(?:[^\s/@:\[\"'<>]{0,100}:(?!\d{1,5}(?:[/?#,]|$))[^\s\"'<>]{0,400}"
    r"|(?<!abfs://)(?<!abfss://)(?<!wasb://)(?<!wasbs://)[^\s/@\"'<>]{1,500})@"  # Azure's container is not login
)
VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")  # a variable of the environment, written instead of its value
_NO_VALUE = re.compile(rf"[\"'\\]*{VARIABLE.pattern}?[\"'\\]*")  # in JSON its last brace may be read as the object's
_OF_NO_SECRET = re.compile(r"_(?:file|path|dir|folder|home|url|type|name|mode)$", re.IGNORECASE)
_SHORTEST = 8  # of a secret in the environment; a shorter one could be any word
_hidden: set[str] = set()


def hide(value: str) -> None:
    """Treat `value` as a secret in all texts of this process from now on, whatever its variable is called."""
    _hidden.add(value)


def is_secret(name: str) -> bool:
    """Whether a setting or variable of this name holds a secret."""
    return _NAME.search(name) is not None


def redacted(text: str) -> str:
    """Return `text` without values of secret settings, logins in addresses, and secrets of the environment."""
    for secret in _of_environment():
        text = text.replace(secret, HIDDEN)
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    text = _LOGIN.sub(rf"\g<name>{HIDDEN}@", text)
    text = _BEARER.sub(rf"\g<name>{HIDDEN}", text)
    return _NAMED.sub(lambda found: found[0] if _NO_VALUE.fullmatch(found["value"]) else found["name"] + HIDDEN, text)


def redacted_values(value: object) -> object:
    """Return plain JSON values with all their texts redacted, and the text of a secret's name replaced."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list | tuple):
        return [redacted_values(one) for one in value]
    if isinstance(value, dict):
        return {
            key: HIDDEN
            if isinstance(one, str) and isinstance(key, str) and is_secret(key) and not VARIABLE.fullmatch(one)
            else redacted_values(one)
            for key, one in value.items()
        }
    return value


def may_hold_secret(text: str) -> bool:
    """Whether `text`, JSON for example, has anything that could be a secret; quick where there is none."""
    looks_like_one = any(pattern.search(text) for pattern in (_NAME, _LOGIN, _BEARER, _PRIVATE_KEY))
    return looks_like_one or any(secret in text for secret in _of_environment())


def _of_environment() -> list[str]:
    """Secrets of the environment, also as Python and JSON write them; the longest first, as it may hold another."""
    secrets = (
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST and is_secret(name) and not _OF_NO_SECRET.search(name)
    )
    written = {form for one in (*secrets, *_hidden) for form in (one, repr(one)[1:-1], json.dumps(one)[1:-1])}
    return sorted(written, key=len, reverse=True)
