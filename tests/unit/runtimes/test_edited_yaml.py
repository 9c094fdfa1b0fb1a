"""Entries of swarm in a user's YAML settings come out again, and the rest stays as it is."""

from itertools import product

import pytest

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes.edited_yaml import YamlText

pytestmark = pytest.mark.thorough

ENTRY = {"command": "/x/bin/swarm-mcp", "args": ["serve"]}
VALUE = '{"command": "/x/bin/swarm-mcp", "args": ["serve"]}'
HEADS = ("", "---\n# mine\nmodel:\n  default: x # y\n  words: |\n    plugins:\n      enabled: no\n")
PLUGINS = (
    "", "plugins:\n", "plugins: # none\n", "plugins: {}  # none\n", "plugins:\n  enabled:\n", "plugins:\n  enabled: []\n",
    "plugins:\n  enabled: [a, b] # two\n", "plugins:\n  enabled: [ a ]\n", "plugins:\n  disabled: []\n  entries:\n    a:\n      b: 1\n",
    "plugins:\n    enabled:\n    - a\n    # and\n    - 'b'\n    disabled: [x]\n", "plugins:\n\n  # c\n  enabled:\n    # first\n    - a\n\n# tail\n",
)  # fmt: skip
SERVERS = (
    "", "mcp_servers:\n", "mcp_servers: {}\n", "'mcp_servers':\n  a: {command: x}\n",
    "mcp_servers:\n  a:\n    command: x\n    args:\n    - b\n# end\n",
)  # fmt: skip


def put(text: str) -> str:
    edited = YamlText(text)
    edited.put_item("plugins", "enabled", "swarm")
    edited.put_member("mcp_servers", "swarm", ENTRY)
    return edited.text


def taken(text: str) -> str:
    edited = YamlText(text)
    edited.take_item("plugins", "enabled", "swarm")
    edited.take_member("mcp_servers", "swarm", ENTRY["command"])
    return edited.text


def test_what_was_put_in_comes_out_again_and_is_put_in_once():
    texts = map("".join, product(HEADS, PLUGINS, SERVERS))
    for text in (form for whole in texts for form in (whole, whole.rstrip("\n"), whole.replace("\n", "\r\n"))):
        found = put(text)
        assert found.count(VALUE) == 1 and put(found) == found, text
        assert taken(found) == text and taken(text) == text, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1\n", f"a: 1\nplugins:  # swarm-mcp\n  enabled: [swarm]  # swarm-mcp\n"
                   f"mcp_servers:  # swarm-mcp\n  swarm: {VALUE}  # swarm-mcp\n"),
        ("plugins:\n  enabled: [a]  # mine\nmcp_servers: {}\n",
         f"plugins:\n  enabled: [swarm, a]  # mine\nmcp_servers: #swarm-mcp{{}}#\n  swarm: {VALUE}  # swarm-mcp\n"),
        ("plugins:\n    enabled:\n    - a\nmcp_servers:\n    b: {}\n",
         "plugins:\n    enabled:\n    - swarm  # swarm-mcp\n    - a\n"
         f"mcp_servers:\n    swarm: {VALUE}  # swarm-mcp\n    b: {{}}\n"),
    ],
)  # fmt: skip
def test_it_stands_where_a_person_would_put_it(before: str, after: str):
    assert put(before) == after


def test_what_a_person_has_added_to_ours_stays():
    text = (
        put("mcp_servers: {}\n")
        .replace("[swarm]", "[swarm, mine]")
        .replace("#swarm-mcp{}#\n", "#swarm-mcp{}#\n  b: {}\n")
    )
    assert taken(text) == "mcp_servers:\n  b: {}\nplugins:\n  enabled: [mine]\n"


def test_it_is_found_where_the_client_has_written_the_file_anew():
    """Comments are lost then, and with them our marks."""
    text = "mcp_servers:\n  swarm:\n    command: /x/bin/swarm-mcp\n    args:\n      - serve\nplugins:\n  enabled:\n    - swarm\n"
    assert taken(text) == "mcp_servers:\nplugins:\n  enabled: []\n"
    own = "mcp_servers:\n  swarm:\n    command: my-own\n"
    assert taken(own) == own, "somebody else's server of the name"


@pytest.mark.parametrize(
    "text",
    ["{plugins: {}}\n", "- a\n", "a: 1\n---\nb: 2\n", "plugins: {enabled: [a]}\n", "plugins: &x\n  enabled: []\n",
     "plugins:\n  enabled: [a,\n    b]\n", "plugins:\n  enabled: *all\n", "plugins:\n  enabled: all\n", "a: 1\n...\n"],
)  # fmt: skip
def test_what_is_written_in_another_way_is_refused(text: str):
    with pytest.raises(SwarmError):
        put(text)


def test_an_item_is_quoted_where_it_has_to_be():
    edited = YamlText("")
    edited.put_item("skills", "external_dirs", "/a b: c/skills")
    assert '  external_dirs: ["/a b: c/skills"]' in edited.text
    edited.take_item("skills", "external_dirs", "/a b: c/skills")
    assert edited.text == ""
