"""Entries of swarm in a user's JSON or YAML file come out again, and the rest stays as it is."""

import json
import os
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.files import text_at

from swarm_hook_core.state import state_dir
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes.hermes import YamlText
from swarm_mcp.runtimes.users_file import BYTE_ORDER_MARK, EditedJson, Entry, tree_in

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


SERVER = Entry(("mcpServers", "swarm"), {"command": "sh", "args": ["serve"]})
HOOK = Entry(("hooks", "preToolUse"), {"command": "check", "timeout": 5}, is_element=True)
OTHER_HOOK = Entry(("hooks", "stop"), {"command": "stop"}, is_element=True)


def remembered() -> list[str]:
    folder = Path(state_dir()) / "edited"
    return os.listdir(folder) if folder.exists() else []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1.50, "b": [1e2]}', '{"a": 1.50, "b": [1e2], "mcpServers": {"swarm": OURS}}'),
        ("{}", '{\n  "mcpServers": {\n    "swarm": OURS\n  }\n}'),
        ("", '{\n  "mcpServers": {\n    "swarm": OURS\n  }\n}\n'),
        (
            '{\n\t// the first\n\t"a": 1 /* one */, // is one\n\t// "b": 2\n}\n',
            '{\n\t// the first\n\t"a": 1 /* one */, // is one\n\t"mcpServers": {\n\t\t"swarm": OURS\n\t},\n'
            '\t// "b": 2\n}\n',
        ),
        ('{"a": [1,],}', '{"a": [1,], "mcpServers": {"swarm": OURS},}'),
        (
            '{\r\n  "mcpServers": { // mine\r\n    "x": {} // last\r\n  }\r\n}',
            '{\r\n  "mcpServers": { // mine\r\n    "x": {}, // last\r\n    "swarm": OURS\r\n  }\r\n}',
        ),
        ('{"a": 1 // why\n}', '{"a": 1, // why\n"mcpServers": {\n  "swarm": OURS\n}\n}'),
        ('{"a": "// \\" /* ,}"}', '{"a": "// \\" /* ,}", "mcpServers": {"swarm": OURS}}'),
    ],
)
def test_every_other_byte_stays_and_comes_back(path: Path, before: str, after: str):
    path.write_bytes(before.encode())
    entry = Entry(SERVER.place, "OURS")
    assert EditedJson(path, [entry]).put()
    assert path.read_bytes().decode().replace('"OURS"', "OURS") == after
    assert EditedJson(path, [entry]).is_current() and remembered()
    assert not EditedJson(path, [entry]).put()
    assert EditedJson(path, [entry]).take_out()
    assert path.read_bytes().decode() == before
    assert not remembered() and not EditedJson(path, [entry]).take_out()


def test_a_file_of_ours_goes_with_the_folders_made_for_it(tmp_path: Path):
    path = tmp_path / "home" / ".client" / "hooks.json"
    edited = EditedJson(path, [HOOK, OTHER_HOOK], frame={"version": 1})
    assert not edited.is_there() and edited.put() and edited.is_current()
    assert json.loads(path.read_text()) == {
        "version": 1, "hooks": {"preToolUse": [HOOK.value], "stop": [OTHER_HOOK.value]}
    }  # fmt: skip
    edited.take_out()
    assert not (tmp_path / "home").exists() and not remembered()


def test_a_folder_with_others_files_stays(tmp_path: Path):
    path = tmp_path / "home" / ".client" / "hooks.json"
    edited = EditedJson(path, [HOOK])
    edited.put()
    (tmp_path / "home" / "mine").write_text("x")
    edited.take_out()
    assert os.listdir(tmp_path / "home") == ["mine"]


def test_what_the_user_adds_to_a_file_of_ours_stays_with_what_it_needs(path: Path):
    edited = EditedJson(path, [HOOK, OTHER_HOOK], frame={"version": 1})
    edited.put()
    tree = json.loads(path.read_text())
    tree["hooks"]["stop"].insert(0, {"command": "mine"})
    path.write_text(json.dumps(tree))
    assert edited.is_current() and edited.take_out()
    assert json.loads(path.read_text()) == {"version": 1, "hooks": {"stop": [{"command": "mine"}]}}


def test_a_comment_in_an_object_of_ours_keeps_it(path: Path):
    edited = EditedJson(path, [SERVER])
    edited.put()
    path.write_text(path.read_text().replace('"mcpServers": {', '"mcpServers": { // mine'))
    edited.take_out()
    assert path.read_text() == '{\n  "mcpServers": { // mine\n  }\n}\n'


def test_byte_order_mark_mode_and_link_stay(tmp_path: Path, path: Path):
    real = tmp_path / "shared.json"
    before = BYTE_ORDER_MARK + b'{"a": 1}'
    real.write_bytes(before)
    real.chmod(0o640)
    path.symlink_to(real)
    edited = EditedJson(path, [SERVER])
    edited.put()
    assert real.read_bytes().startswith(BYTE_ORDER_MARK) and tree_in(path)["mcpServers"] == {"swarm": SERVER.value}
    edited.take_out()
    assert path.is_symlink() and real.read_bytes() == before and real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "JSON"), (b"[]", "object"), (b"null", "object"), (b'{"hooks": []}', "'hooks'"),
        (b'{"hooks": {"preToolUse": {}}}', "'preToolUse'"), (b'{"hooks": null}', "'hooks'"), (b"\xff\xfe", "UTF-8"),
        (b'{"a": NaN}', "JSON"), (b"[" * 100_000, "JSON"), (b'{"hooks": {}, "hooks": {}}', "more than once"),
        (b'{"a": [,]}', "JSON"), (b'{"a": 1,,}', "JSON"), (b"{,}", "JSON"), (b'{"a": 1} /*', "JSON"),
        (b"{'a': 1}", "JSON"), (b'{"a": 1 \x00}', "JSON"), (b'{"a": "\n"}', "JSON"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_should_be_is_refused_and_untouched(path: Path, content: bytes, why: str):
    path.write_bytes(content)
    with pytest.raises(SwarmError, match="settings.json") as refused:
        EditedJson(path, [HOOK]).put()
    assert why in str(refused.value) and "nothing was changed" in str(refused.value)
    assert path.read_bytes() == content and not remembered()
    assert not EditedJson(path, [HOOK]).is_current() and not EditedJson(path, [HOOK]).is_there()


def test_a_member_of_somebody_elses_is_not_replaced(path: Path):
    before = '{"mcpServers": {"swarm": {"url": "u"}}}'
    path.write_text(before)
    edited = EditedJson(path, [SERVER], is_ours=lambda value: value == SERVER.value)
    with pytest.raises(SwarmError, match=r"mcpServers\.swarm already"):
        edited.put()
    assert not edited.take_out() and path.read_text() == before and not remembered()


def test_a_newer_release_takes_the_place_of_an_earlier_one(path: Path):
    before = '{\n  "hooks": {"preToolUse": [{"command": "mine"}]}, // note\n}'
    path.write_text(before)
    EditedJson(path, [HOOK, SERVER]).put()
    newer = EditedJson(path, [Entry(HOOK.place, {"command": "new"}, is_element=True), OTHER_HOOK])
    assert newer.is_there() and not newer.is_current() and newer.put() and newer.is_current()
    assert tree_in(path) == {
        "hooks": {"preToolUse": [{"command": "mine"}, {"command": "new"}], "stop": [OTHER_HOOK.value]}
    }  # fmt: skip
    newer.take_out()
    assert path.read_text() == before


def test_without_a_state_folder_ours_is_what_is_recognised(path: Path):
    before = '{"hooks": {"preToolUse": [{"command": "mine"}]}}'
    path.write_text(before)
    edited = EditedJson(path, [HOOK], is_ours=lambda value: value["command"] == "check")  # type: ignore[index]
    edited.put()
    for name in remembered():
        (Path(state_dir()) / "edited" / name).unlink()
    assert edited.is_there() and edited.is_current()
    assert edited.take_out() and path.read_text() == before


def test_an_element_that_the_user_has_changed_is_recognised(path: Path):
    edited = EditedJson(path, [HOOK], is_ours=lambda value: value["command"] == "check")  # type: ignore[index]
    path.write_text('{"hooks": {"preToolUse": []}}')
    edited.put()
    path.write_text(path.read_text().replace("5", "9"))
    edited.take_out()
    assert tree_in(path) == {"hooks": {"preToolUse": []}}


def test_a_file_that_is_gone_is_no_trouble(tmp_path: Path):
    path = tmp_path / "made" / "settings.json"
    edited = EditedJson(path, [SERVER])
    edited.put()
    path.unlink()
    assert not edited.take_out() and not path.parent.exists() and not remembered()


def test_a_file_that_was_the_users_and_is_made_anew_goes(tmp_path: Path):
    path = text_at(tmp_path / "their" / "settings.json", "{}")
    EditedJson(path, [SERVER]).put()
    path.unlink()
    path.parent.rmdir()
    edited = EditedJson(path, [SERVER])
    assert not edited.is_current() and edited.put() and edited.take_out()
    assert not path.parent.exists() and not remembered()


def test_a_file_that_has_been_broken_since_is_left_and_remembered(path: Path):
    edited = EditedJson(path, [SERVER])
    edited.put()
    path.write_text(path.read_text() + "}")
    with pytest.raises(SwarmError, match="not valid JSON"):
        edited.take_out()
    assert remembered()
    path.write_text(path.read_text()[:-1])
    assert edited.take_out() and not path.exists()


def test_a_failed_write_leaves_the_file_and_what_is_remembered(path: Path, failing):
    path.write_text('{"a": 1}')
    EditedJson(path, [SERVER]).put()
    before, known = path.read_bytes(), remembered()

    failing(os, "fsync", OSError(28, "No space left on device"))
    with pytest.raises(SwarmError, match="No space left"):
        EditedJson(path, [HOOK]).put()
    assert path.read_bytes() == before and remembered() == known and EditedJson(path, [SERVER]).is_current()


BLANKS = st.sampled_from(
    ["", "", " ", "\n", "\n  ", "\r\n\t", " // note\n", "/* a */", "\n /* a\n b */ ", "//,}\n", "\n\n"]
)
KEYS = st.sampled_from(["a", "hooks", "preToolUse", "mcpServers", "é", "//", '"', "swarm"])
SCALARS = st.sampled_from(
    ["1", "1.50", "-0", "1e5", "true", "null", '""', '"// no"', '"/*"', '",}"', '"\\""', '"\\u00e9"', '"é"']
)


@st.composite
def objects(draw, values) -> str:
    keys = draw(st.lists(KEYS, max_size=4, unique=True))
    names = [f"{draw(BLANKS)}{json.dumps(key, ensure_ascii=False)}{draw(BLANKS)}:" for key in keys]
    return draw(joined("{}", [f"{name}{draw(BLANKS)}{draw(values)}{draw(BLANKS)}" for name in names]))


@st.composite
def arrays(draw, values) -> str:
    count = draw(st.integers(0, 3))
    return draw(joined("[]", [f"{draw(BLANKS)}{draw(values)}{draw(BLANKS)}" for _ in range(count)]))


@st.composite
def joined(draw, brackets: str, items: list[str]) -> str:
    last = "," if items and draw(st.booleans()) else ""
    return f"{brackets[0]}{','.join(items)}{last}{draw(BLANKS)}{brackets[1]}"


VALUES = st.recursive(SCALARS, lambda inner: objects(inner) | arrays(inner), max_leaves=10)
TEXTS = st.tuples(BLANKS, objects(VALUES), BLANKS).map("".join) | st.sampled_from(["", "\n", " \r\n"])


def is_in(tree: dict, entry: Entry) -> bool:
    around = tree[entry.place[0]][entry.place[1]]
    return entry.value in around if entry.is_element else around == entry.value


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(text="{/* a */}", entries=[SERVER])
@example(text='{"a":1,\n // b\n}', entries=[SERVER, HOOK])
@given(text=TEXTS, entries=st.lists(st.sampled_from([SERVER, HOOK, OTHER_HOOK]), min_size=1, unique_by=str))
def test_any_file_comes_back(tmp_path: Path, text: str, entries: list[Entry]):
    path = tmp_path / "any.json"
    path.write_bytes(text.encode())
    edited = EditedJson(path, entries, frame={"version": 1})
    try:
        edited.put()
    except SwarmError:
        assert path.read_bytes() == text.encode() and not remembered()
        return
    assert edited.is_current() and all(is_in(tree_in(path), entry) for entry in entries)
    edited.take_out()
    assert path.read_bytes() == text.encode() and not remembered()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=st.dictionaries(KEYS, st.dictionaries(KEYS, st.lists(st.integers(), max_size=2), max_size=2), max_size=3),
       indent=st.sampled_from([None, 0, 4]), again=st.booleans())  # fmt: skip
def test_what_others_add_meanwhile_stays(tmp_path: Path, tree: dict, indent: int | None, again: bool):
    path = text_at(tmp_path / "any.json", json.dumps(tree))
    edited = EditedJson(path, [SERVER, HOOK, OTHER_HOOK])
    if "swarm" in tree.get("mcpServers", {}):
        with pytest.raises(SwarmError, match="already"):
            edited.put()
        return
    edited.put()
    wanted = {**tree, "mine": 1, "hooks": {**tree.get("hooks", {}), "mine": 2}}
    if "stop" in wanted["hooks"] or again:
        wanted["hooks"]["stop"] = [*wanted["hooks"].get("stop", []), 3]
    now = tree_in(path)
    now["mine"], now["hooks"]["mine"] = 1, 2
    if "stop" in wanted["hooks"]:
        now["hooks"]["stop"].append(3)
    path.write_text(json.dumps(now, indent=indent))
    if again:
        newer = EditedJson(path, [SERVER, HOOK._replace(value={"command": "new"})])
        assert newer.put() and newer.is_current()
    edited.take_out()
    assert tree_in(path) == wanted and not remembered()


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
