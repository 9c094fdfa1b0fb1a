"""Secrets in all places and spellings."""

import base64
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.requirement import requirement

from swarm_mcp.agents.harness.scrub import Scrubber, is_secret_name

WORD = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SHAPES = {
    "github_token": [f"ghp_{WORD}", f"ghs_{WORD}", f"github_pat_{WORD}_{WORD}"],
    "gitlab_token": ["glpat-" + WORD[:20]],
    "anthropic_key": ["sk-ant-api03-" + WORD],
    "api_key": ["sk-proj-" + WORD, "sk-or-v1-" + WORD, "sk-" + WORD],
    "slack_token": ["xoxb-123456789012-" + WORD],
    "aws_key": ["AKIAIOSFODNN7EXAMPLE"],
    "google_key": ["AIza" + WORD[:35]],
    "npm_token": ["npm_" + WORD],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"],
    "bearer": ["Bearer " + WORD],
    "password": ["https://user:hunter2secret@example.org/"],
    "private_key": ["-----BEGIN RSA PRIVATE KEY-----\nMIIE" + WORD + "\n" + WORD + "\n-----END RSA PRIVATE KEY-----"],
}


@pytest.mark.parametrize("kind, secret", [(kind, secret) for kind, found in SHAPES.items() for secret in found])
@requirement("A-42")
def test_shapes_are_found_wherever_they_stand(kind, secret):
    core = secret.removeprefix("Bearer ").removeprefix("https://").removesuffix("@example.org/")
    scrub = Scrubber()
    around = (("", ""), ("x\n", "\n"), ('"', '"'), ("(", ")"), ("\t", "."), ("\x1b[31m", "\x1b[0m"), ("=", ","))
    for plain in (before + secret + after for before, after in around):
        for text in (plain, json.dumps(plain), json.dumps([plain])):
            found = scrub.text(text)
            assert core not in found and f"[REDACTED:{kind}]" in found, (text, found)
            assert json.dumps(core)[1:-1] not in found


def test_what_leaves_can_be_written():
    found = Scrubber().data({"\ud800": ["\udc80\x00 \U0001f600 \x1b", "é\udfff"]})
    assert found == {"\ufffd": ["\ufffd\x00 \U0001f600 \x1b", "é\ufffd"]}


@requirement("A-42")
def test_what_only_looks_like_one_stays():
    harmless = [
        "task-abcdefghijklmnopqrstuvwxyz", "disk-0123456789012345678901234567", "eyJ only begins so", "sk-short",
        "0a0a0a0a-1111-4222-8333-444444444444", "http://host:8080/path@here", "AKIA", "git@github.com:a/b",
        base64.b64encode(bytes(range(256)) * 4).decode(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b",
    ]  # fmt: skip
    assert [Scrubber().text(text) for text in harmless] == harmless


@pytest.mark.parametrize(
    "name, secret",
    [
        ("ANTHROPIC_API_KEY", True), ("GITHUB_TOKEN", True), ("AWS_SECRET_ACCESS_KEY", True), ("DB_PASSWORD", True),
        ("SSH_PRIVATE_KEY", True), ("Authorization", True), ("PGPASSWORD", True), ("Cookie", True), ("TOKEN_2", True),
        ("KEY", True), ("X-Api-Key", True), ("SWARM_MCP_HEADER_0_SECRET", True),
        ("PATH", False), ("PWD", False), ("KEYBOARD", False), ("SSH_AUTH_SOCK", False),
        ("TOKENIZERS_PARALLELISM", False), ("SSL_KEY_FILE", False), ("X-Agent-ID", False),
        ("MONKEY", False), ("SWARM_RUN_ID", False),
    ],
)  # fmt: skip
@requirement("A-41")
def test_names_of_secrets(name, secret):
    assert is_secret_name(name) is secret


@requirement("A-41")
def test_values_by_name():
    long, short, listed = "abcdefghijklmnop", "abcdefghijkl", "pool-one-12345,pool-two-12345"
    parent = {"A_TOKEN": short, "PLAIN": "plain-and-harmless"}
    scrub = Scrubber(parent, {"B_KEY": long, "POOL_KEYS": listed, "C_KEY": "short"})
    assert scrub.text(f"{long} {short} short plain-and-harmless") == (
        "[REDACTED:B_KEY] [REDACTED:A_TOKEN] short plain-and-harmless"
    )
    assert scrub.text("pool-two-12345!") == "[REDACTED:POOL_KEYS]!"
    assert Scrubber({"Authorization": "Bearer the-very-secret"}).text("the-very-secret") == "[REDACTED:Authorization]"


@pytest.mark.parametrize(
    "value, secrets",
    [
        ("postgres://u:s3cr3t-pw@db.example.org/shop", ["s3cr3t-pw"]),
        ("postgres://u:p%40ss%2Fw0rd%21@db/shop", ["p%40ss%2Fw0rd%21", "p@ss/w0rd!"]),
        ("mysql://u:with@inside9@db/shop?x=1@2", ["with@inside9"]),
        ("redis://:hunter2@cache:6379/0", ["hunter2"]),
        ("https://a:first-one@x,https://b:2nd-one@y", ["first-one", "2nd-one"]),
        ("Server=db;User Id=u;Password=Tr0ub4dor;Encrypt=yes", ["Tr0ub4dor"]),
        ("postgres://postgres:postgres@localhost:5432/x", []),
        ("postgres://app:12345@localhost", []),
    ],
)
def test_the_password_of_an_address_is_a_secret_by_itself(value, secrets):
    scrub = Scrubber({"DATABASE_URL": value})
    for secret in secrets:
        assert scrub.text(f"the password is {secret}.") == "the password is [REDACTED:DATABASE_URL]."
        assert scrub.text(secret) == "[REDACTED:DATABASE_URL]"
    for word in ("postgres", "localhost", "12345", "db", "password"):
        assert scrub.text(f"see {word} there") == f"see {word} there"


def test_the_path_of_a_file_is_no_secret_whatever_the_variable_is_called(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "src" / "settings").mkdir(parents=True)
    (tmp_path / "src" / "settings" / "app.toml").touch()
    paths = {"APP_SECRET": "src/settings/app.toml", "B_SECRET": str(tmp_path / "src" / "settings"),
             "AUTH_TOKEN_URI": "https://auth.example.org/token", "C_SECRET": "src/settings/gone.toml"}  # fmt: skip
    for folder in (tmp_path, tmp_path / "src"):
        scrub = Scrubber(paths, folder=str(folder))
        text = "\n".join([*list(paths.values())[:3], "src/settings", "a b"])
        assert scrub.text(text) == text
        assert scrub.text("src/settings/gone.toml") == "[REDACTED:C_SECRET]", "no such file: it may be a secret"


@requirement("A-41")
def test_values_as_json_and_json_in_json_and_line_by_line():
    odd = 'with "quotes", \\ and /é\nand a second long line'
    scrub = Scrubber({"ODD_SECRET": odd})
    once = json.dumps({"a": odd})
    for text in (odd, once, json.dumps(once), json.dumps(odd, ensure_ascii=False), "> and a second long line <"):
        assert "second" not in scrub.text(text) and "quotes" not in scrub.text(text), text


@requirement("A-43")
def test_nothing_and_anything():
    scrub = Scrubber({"A_TOKEN": "abcdefghijkl"})

    class Odd:
        def __str__(self):
            raise ValueError

    assert scrub.text(None) == "" and scrub.text(Odd()) == "" and scrub.text(5) == "5"
    found = scrub.data({"a": ["abcdefghijkl", None, 1, 1.5, True, float("nan")], "abcdefghijkl": ("x",), 3: {1}})
    assert found == {"a": ["[REDACTED:A_TOKEN]", None, 1, 1.5, True, None], "[REDACTED:A_TOKEN]": ["x"], "3": [1]}
    deep: list = ["abcdefghijkl"]
    for _ in range(3000):
        deep = [deep]
    assert "abcdefghijkl" not in json.dumps(scrub.data(deep))


SECRET = st.text('abcX/"\\ \n,[]:REDACTD_é', min_size=12, max_size=20)
NAMES = st.sampled_from(["A_TOKEN", "B_KEY", "THE_SECRET"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=60)
@given(st.dictionaries(NAMES, SECRET), st.data())
@requirement("A-43")
def test_scrubbing_twice_is_scrubbing_once_and_no_value_is_left(environment, data):
    values = list(environment.values())
    pieces = [*values, *(value[:7] for value in values), "ghp_" + WORD, "[REDACTED:A_TOKEN]"]
    text = "".join(data.draw(st.lists(st.sampled_from(pieces) | st.text(max_size=5), max_size=8)))
    scrub = Scrubber(environment)
    once = scrub.text(text)
    assert scrub.text(once) == once
    for value in environment.values():
        if (
            "REDACTED" not in value
            and value.strip("/")
            and not any(value in f"[REDACTED:{name}]" for name in environment)
        ):
            assert value not in once.replace("[REDACTED", "\0")


@settings(max_examples=25)
@given(ANYTHING)
def test_data_can_always_be_written_as_json(found):
    shown = Scrubber({"A_TOKEN": "abcdefghijkl"}).data(found)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_no_line_makes_it_look_again_and_again():
    environment = {f"SERVICE_{number}_API_KEY": f"secret-value-{number}-" + "x" * 20 for number in range(15)}
    scrub = Scrubber(environment)
    line = json.dumps({"type": "tool_result", "content": "def f(x):\n    return x['key'] # risk-free\n" * 100})
    began = time.process_time()
    for _ in range(100):
        scrub.text(line)
    assert time.process_time() - began < 5, "a line of 5 kB takes 50 ms, ten times the usual, at most"
    hostile = "eyJ" * 200_000 + "://" * 50_000 + "sk-" * 50_000 + "-----BEGIN PRIVATE KEY-----" * 300
    began = time.process_time()
    scrub.text(hostile)
    assert time.process_time() - began < 20
