"""What is a secret in a text, and what only looks like one."""

import json
import os

import pytest

from workbench.redaction import HIDDEN, is_secret, may_hold_secret, redacted, redacted_values


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password=hunter2xyz", "hunter2xyz"),
        ("sasl.password = hunter2xyz, next=1", "hunter2xyz"),
        (r'password="a\"b hunter2xyz", next=1', "hunter2xyz"),
        ("password='it''s hunter2xyz'", "hunter2xyz"),
        ('cut short: password="hunter2xyz', "hunter2xyz"),
        ('{"password": "a b hunter2xyz', "hunter2xyz"),
        ('password="a\nhunter2xyz"', "hunter2xyz"),
        ("DB_PASS=hunter2xyz", "hunter2xyz"),
        ("MYSQL_PWD=hunter2xyz", "hunter2xyz"),
        ("https://account.blob.core.windows.net/c?sv=1&sig=hunter2xyz%3D", "hunter2xyz"),
        ("https://b.s3.amazonaws.com/o?X-Amz-Signature=hunter2xyz", "hunter2xyz"),
        ("s3a://AKIA123:abc/hunter2xyz+d@bucket/orders", "hunter2xyz"),
        ("--conf spark.hadoop.fs.s3a.secret.key=abc123", "abc123"),
        ('{"password": "hunter2xyz"}', "hunter2xyz"),
        (r"bad conf {\"password\": \"hunter2xyz\"}", "hunter2xyz"),
        ('bad conf {"api_key":"hunter2xyz"}', "hunter2xyz"),
        ("api_key: hunter2xyz", "hunter2xyz"),
        ('org.apache.kafka.LoginModule required username="a" password="hunter2 xyz";', "hunter2 xyz"),
        ("Authorization: Bearer abcdefghijk", "abcdefghijk"),
        ("https://me:hunter2@host/x", "hunter2"),
        ("https://ghp_abcdefghijk@host/x", "ghp_abcdefghijk"),
        ("https://host/x?token=hunter2xyz&rate=5", "hunter2xyz"),
        ("secretKey=hunter2xyz", "hunter2xyz"),
        ("password=ab,cd;ef", "cd"),
        ("password=ab,cd;ef", "ef"),
    ],
)
def test_a_secret_is_replaced(text, secret):
    assert may_hold_secret(text)
    assert secret not in redacted(text)
    assert HIDDEN in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "tokenize:count",
        "The query 'tokenize:count' is unknown",
        "secrets:orders",
        "kafka://token-broker:9092/orders",
        "http://host:8080/mail?to=me@example.org",
        "k8s://https://host:6443",
        "PWD=/home/me/first_pass/x bypass=true compass=north",
        "first_passage=3",
        "signature: (rows) -> rows",
        "spark://secret-host:7077",
        "/data/tokens=2024/part",
        "abfss://data@account.dfs.core.windows.net/x",
        "without data or secrets, with: workbench doctor",
        "tokenizer=fast",
        "60 k records/s of q5",
        "unknown key: targets; the keys are 5",
        "see https://host:8080/a@b",
        "found character that cannot start any token",
        "first_pass=True n_pass: 3",
        "num_pass_rate=3",
        "hdfs://[::1]:8020/user/me@x",
        "file://C:/Users/me@corp/data.csv",
    ],
)
def test_what_only_looks_like_one_stays(text):
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password=abc, rate=5", f"password={HIDDEN}, rate=5"),
        ("https://host/x?token=abc&rate=5", f"https://host/x?token={HIDDEN}&rate=5"),
        ("spark.hadoop.fs.s3a.secret.key=AKIA", f"spark.hadoop.fs.s3a.secret.key={HIDDEN}"),
        ("fs.azure.account.key.me.blob: 'a b'", f"fs.azure.account.key.me.blob: {HIDDEN}"),
        ('{"sasl.password": "x y"}', f'{{"sasl.password": {HIDDEN}}}'),
        ("Authorization: Bearer abcdefgh", f"Authorization: {HIDDEN}"),
        ("jdbc:x://me:p@ss@host/db?password=x&ssl=true", f"jdbc:x://{HIDDEN}@host/db?password={HIDDEN}&ssl=true"),
    ],
)
def test_a_secret_is_redacted_and_nothing_else(text, left):
    assert redacted(text) == left
    assert redacted(left) == left


def test_values_are_redacted_by_their_names_and_texts_and_places_of_secrets_are_none(monkeypatch):
    assert all(map(is_secret, ("AWS_SECRET_ACCESS_KEY", "sasl.password", "accessKey")))
    assert not is_secret("tokenizer")
    found = redacted_values({"query": "tokenize:count", "password": "x", "facts": ["a", "token=abc"], "rate": 5.0})
    assert found == {"query": "tokenize:count", "password": HIDDEN, "facts": ["a", f"token={HIDDEN}"], "rate": 5.0}
    monkeypatch.setenv("OIDC_TOKEN_FILE", "/home/me/token")
    assert redacted("in /home/me/token of PWD=/home") == "in /home/me/token of PWD=/home"


@pytest.mark.parametrize("secret", ['abc"def\\ghi12', "hunter2xyz-and-more"])
def test_a_secret_of_the_environment_is_replaced_wherever_it_stands_and_whole(monkeypatch, secret):
    monkeypatch.setenv("A_SECRET", "hunter2xyz")
    monkeypatch.setenv("MY_SECRET", secret)
    assert redacted(f"it says {secret} here") == f"it says {HIDDEN} here"


@pytest.mark.parametrize("written", [repr, json.dumps])
def test_a_secret_of_the_environment_is_replaced_as_it_is_written(monkeypatch, written):
    monkeypatch.setenv("MY_SECRET", 'a\nb\\c"d hunter2xyz')
    assert "hunter2xyz" not in redacted(written({"x": os.environ["MY_SECRET"]}))
