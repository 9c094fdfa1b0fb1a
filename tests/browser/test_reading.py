"""The page is readable for all: at any width, in the dark, by keyboard, by ear, without JavaScript; and sessions' texts
stay text.
"""

import re

import pytest

from .conftest import Tab
from .scene import busy, played

WIDTHS = (360, 768, 1280, 1920)
# Runs in a page that takes one of its texts for more than text: as an element, an attribute, an address, a style.
HOSTILE = (
    '"><img src=x onerror="window.hit=1"><script>window.hit=2</script>'
    "<a href=\"javascript:window.hit=3\">x</a>' onmouseover='window.hit=4' {{7*7}}<style>*{display:none}</style>"
)
PROTOCOLS = "found => found.map(one => new URL(one.getAttribute('href'), location).protocol)"
# Every link of a picture is also a link in its text.
REACHABLE = "a:not([tabindex='-1']), button, input:not([type=hidden]), [tabindex='0']"
REVERSED = "\u202e\u2066\x1b[2J"


def test_what_sessions_say_runs_nothing(ground, browse):
    said = HOSTILE + REVERSED
    scene = played(ground, said, said, said.replace(" ", "_"), HOSTILE.replace("/", "_")[:200], said)
    tab = browse().open()
    for name, path in scene.paths.items():
        tab.go(path).is_live()
        assert tab.page.evaluate("window.hit === undefined"), name
        seen = tab.page.locator("body").inner_text()
        assert "\u202e" not in seen and "\u2066" not in seen and "\x1b" not in seen, name
        assert tab.page.locator("main img, main script, main style, main iframe, main [onmouseover]").count() == 0
        for href in tab.page.locator("a").evaluate_all(PROTOCOLS):
            assert href == "http:", name
    assert "onerror" in tab.go(scene.paths["a task"]).page.get_by_role("main").inner_text()
    assert tab.complaints == []


@pytest.mark.thorough
def test_even_if_a_text_were_taken_for_more_the_browser_would_run_nothing(ground, browse):
    tab = browse().open().is_live()
    tab.page.evaluate(
        """() => {
            document.body.insertAdjacentHTML('beforeend', '<img src="x" onerror="window.hit = 1"><p style="color: red">x</p>');
            const made = document.createElement('script');
            made.textContent = 'window.hit = 2';
            document.body.append(made);
            document.body.insertAdjacentHTML('beforeend', '<img src="http://foreign.example/seen">');
        }"""
    )
    while not tab.page.evaluate(
        "[...document.images].every(one => one.complete)"
    ):  # the policy forbids to wait in there
        tab.page.wait_for_timeout(50)
    assert tab.page.evaluate("window.hit === undefined")
    assert tab.complaints and all("Content Security Policy" in one or "404" in one for one in tab.complaints)


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_every_text_has_contrast(ground, browse, scheme):
    scene = busy(ground)
    tab = browse(color_scheme=scheme).open()
    background = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(background) > 0.5) == (scheme == "light")
    for name, path in scene.paths.items():
        tab.go(path)
        colours = tab.page.evaluate(
            """() => {
                const isDrawn = (one) => one.namespaceURI.endsWith('svg');
                const below = (one) => {
                    const plate = one.closest('.client') && one.parentElement.querySelector('rect');
                    if (plate) return getComputedStyle(plate).fill;
                    for (let at = one; at; at = at.parentElement) {
                        const found = getComputedStyle(at).backgroundColor;
                        if (found !== 'rgba(0, 0, 0, 0)') return found;
                    }
                };
                return [...document.querySelectorAll('body *')]
                    .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
                    .filter(one => one.tagName !== 'title' && !one.closest('.timeline .name'))
                    .map(one => [getComputedStyle(one)[isDrawn(one) ? 'fill' : 'color'], below(one), one.outerHTML.slice(0, 80)]);
            }"""
        )
        for colour, ground_of_it, where in colours:
            assert contrast(colour, ground_of_it) >= 4.5, (name, where, colour, ground_of_it)


def luminance(colour: str) -> float:
    """Return the luminance by WCAG's formula."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_at_no_width_there_is_more_than_fits(ground, browse):
    long = "a-very-long-name-without-a-blank-" * 6
    scene = played(ground, long, long, "", long[:180], long)
    tab = browse(viewport={"width": WIDTHS[0], "height": 800}).open()
    for name, path in scene.paths.items():
        tab.go(path)
        for width in WIDTHS:
            tab.page.set_viewport_size({"width": width, "height": 800})
            wide = tab.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} wide at {width}"
            cut = tab.page.evaluate(
                "[...document.querySelectorAll('.wide')].filter(one => one.scrollWidth > one.clientWidth).length"
            )
            assert not cut, f"tables of {name} are cut at {width}"


def test_all_is_reached_by_keyboard_and_seen_where_one_is(ground, browse):
    scene = played(ground)
    tab = browse().open()
    for name, path in scene.paths.items():
        tab.go(path).is_live()
        everything, reached = tabbed_through(tab.page)
        assert set(reached) == set(everything), name
        assert all(has_outline for has_outline in reached.values()), name
        assert next(iter(reached)).startswith("A #main"), name
    tab.go("/").is_live()
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "main"
    tab.page.get_by_role("textbox", name="File").focus()
    tab.page.keyboard.type("src/schema.sql")
    tab.page.keyboard.press("Enter")
    tab.shows("Who waits for it")


def tabbed_through(page) -> tuple[list[str], dict[str, bool]]:
    """Return the reachable elements, and the stops of the tab key in turn, each with True if it is outlined then.

    Each by its kind and its number: the page may be made anew meanwhile, and links that begin with "now" show another
    time then.
    """
    everything = page.evaluate(
        """(reachable) => {
            const what = (one) => [one.tagName, ...['href', 'name', 'aria-label'].map(
                (name) => (one.getAttribute(name) || '').replace(/\\bat=\\d+/, 'at='))].join(' ').trim();
            const all = () => [...document.querySelectorAll(reachable)];
            const called = (one) => what(one) + ' ' + all().filter((other) => what(other) === what(one)).indexOf(one);
            window.reached = [];
            document.addEventListener('focusin', (event) => window.reached.push(
                [called(event.target), getComputedStyle(event.target).outlineStyle !== 'none']));
            return all().map(called);
        }""",
        REACHABLE,
    )
    for _ in range(len(everything) + 3):
        page.keyboard.press("Tab")
    found: dict[str, bool] = {}
    for name, has_outline in page.evaluate("window.reached"):
        found[name] = found.get(name, True) and has_outline
    return everything, found


@pytest.mark.thorough
def test_a_screen_reader_is_told_what_everything_is(ground, browse):
    from playwright.sync_api import expect

    scene = played(ground)
    tab = browse().open().is_live()
    expect(tab.page.locator("body")).to_match_aria_snapshot(
        """
        - link "Skip to content"
        - banner:
          - search "Files":
            - textbox "File"
            - button "Who holds it?"
          - status: live
          - navigation "Views":
            - list:
              - listitem:
                - link "Now"
        - main:
          - heading "Now" [level=1]
          - region:
            - heading [level=2]
            - list "Summary"
            - list:
              - listitem:
                - article:
                  - heading "codex 12ab34cd" [level=3]
                  - paragraph: /waits for src.schema.sql/
                  - paragraph:
                    - code: /swarm-mcp unlock/
                    - button /Copy swarm-mcp unlock src.schema.sql/
            - region /Files of/:
              - table "Files":
                - rowgroup:
                  - row:
                    - columnheader "File"
                    - columnheader "Held by"
                    - columnheader "Waiting"
                    - columnheader "Changed, not committed"
                - rowgroup:
                  - row:
                    - rowheader /src.schema.sql/:
                      - link "src/schema.sql"
        """
    )
    for name, path in scene.paths.items():
        tab.go(path)
        told = tab.page.locator("body").aria_snapshot()
        assert not re.search(r"- (link|button|textbox|table|navigation|search|img)(:|$)", told, re.M), (name, told)
        levels = [int(one) for one in re.findall(r"\[level=(\d)\]", told)]
        assert levels[0] == 1 and levels.count(1) == 1, name
        assert all(after - before <= 1 for before, after in zip(levels, levels[1:])), (name, levels)
        assert tab.page.evaluate("document.documentElement.lang") == "en" and tab.page.title().endswith("swarm")


def test_without_javascript_all_is_there_to_be_read(ground, browse):
    scene = played(ground)
    tab = browse(java_script_enabled=False).open()
    tab.shows("moving the tables")
    for path in scene.paths.values():
        tab.go(path)
        assert tab.page.get_by_role("main").inner_text().strip()
    tab.go("/")
    tab.page.get_by_role("textbox", name="File").fill("src/schema.sql")
    tab.page.get_by_role("button", name="Who holds it?").click()
    tab.shows("Who waits for it")
    assert tab.page.get_by_role("status").inner_text() == "reload it to see what is new"
    assert tab.complaints == []


def test_a_button_copies_the_command_beside_it(ground, browse):
    played(ground)
    tab = browse(permissions=["clipboard-read", "clipboard-write"]).open().is_live()
    command = tab.page.locator(".command").first
    command.get_by_role("button").click()
    command.get_by_text("Copied").wait_for()
    tab.page.evaluate(
        "htmx.swap('#main', document.getElementById('main').innerHTML.replaceAll('Copied', ''), {swapStyle: 'innerHTML'})"
    )
    command.get_by_text("Copied").wait_for()  # the page has been made anew meanwhile
    assert tab.page.evaluate("navigator.clipboard.readText()") == command.locator("code").inner_text()
    assert command.locator("code").inner_text().startswith("swarm-mcp unlock src/schema.sql --as ")
    assert tab.complaints == []


def test_each_uncommitted_line_has_its_owners_colour_and_letter(ground, browse):
    tab = browse().open(busy(ground).paths["a file of several"])
    lines = tab.page.locator("tr.added").evaluate_all(
        "all => all.map(one => [one.querySelector('.tag').textContent, getComputedStyle(one).backgroundColor])"
    )
    assert len(lines) >= 5 and len({letter for letter, _ in lines}) == len(set(map(tuple, lines))) == 3
    owners = tab.page.get_by_role("list", name="Owners").get_by_role("listitem").all_inner_texts()
    assert [one.split()[0] for one in owners] == ["A", "B", "C"]
    assert all(any(name in one for one in owners) for name in ("codex 12ab34cd", "claude-code 77e01b3a", "a person"))


def test_one_click_leads_to_each_thing(ground, browse):
    played(ground)
    tab = browse().open().is_live()
    steps = (
        ("src/schema.sql", "Who holds it"), ("claude-code 5f0c2f6e", "What it holds"),
        ("Add an index", "What is to be done"), ("codex 4f1c2b7e", "What it did"), ("codex 12ab34cd", "What it waits for"),
    )  # fmt: skip
    for link, heading in steps:
        tab.page.get_by_role("main").get_by_role("link", name=link).first.click()
        tab.page.get_by_role("heading", name=heading).wait_for()
    assert tab.complaints == []


@pytest.mark.thorough
def test_what_a_stranger_asks_is_answered_by_one_click(ground, browse):
    played(ground)
    tab = browse().open().is_live()
    tab.shows("was refused")

    def clicked(name: str, role: str = "navigation") -> Tab:
        tab.page.goto(tab.served.origin)
        tab.page.get_by_role(role).get_by_role("link", name=name, exact=True).first.click()
        return tab

    tab.page.get_by_role("textbox", name="File").fill("src/schema.sql")
    tab.page.get_by_role("button", name="Who holds it?").click()
    tab.shows("moving the tables")  # the holder and the reason
    clicked("src/schema.sql", "main").shows("swarm lock blocked")  # why was I refused
    clicked("Queues").shows("codex 12ab34cd")  # the waiter
    clicked("Timeline").shows("was refused")  # the morning's events
    clicked("Workers").shows("swarm-mcp worker cancel")  # how do I stop it


@pytest.mark.thorough
def test_the_picture_of_the_timeline_leads_to_what_happened(ground, browse):
    scene = played(ground)
    tab = browse().open(scene.paths["this timeline"]).is_live()
    picture = tab.page.get_by_role("img", name="A lane for each of 3 sessions")
    for name in ("claude-code 5f0c2f6e", "codex 12ab34cd", "claude-code 77e01b3a"):
        assert picture.get_by_text(name, exact=True).count() == 1
    picture.locator("a:has(.denied)").first.click()
    tab.page.locator("li.chosen").get_by_text("was refused").wait_for()
    tab.page.get_by_role("navigation", name="Time").get_by_role("link", name="day").click()
    tab.page.get_by_role("img", name="A lane for each of 3 sessions").wait_for()
    assert tab.complaints == []
