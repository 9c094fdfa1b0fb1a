"""A person acts on the page, and a web page of another origin does not."""

from .scene import busy
from .test_access import elsewhere  # noqa: F401


def locked(ground) -> bool:
    with ground.store() as store:
        return any(row["file"].endswith("src/schema.sql") for _, row in store.locks.walk(ground.scope))


def test_a_lock_is_released_and_a_turn_undone_with_two_clicks(ground, tab):
    busy(ground)
    tab.open().page.get_by_role("link", name="release it…").first.click()
    tab.shows("Release the lock on src/schema.sql?")
    assert locked(ground)
    tab.page.get_by_role("button", name="Do it").click()
    tab.shows("Done.")
    assert not locked(ground)
    ann = tab.open().page.get_by_role("heading", name="claude-code 5f0c2f6e")
    tab.page.locator("li.card").filter(has=ann).get_by_role("link", name="undo its last").click()
    tab.shows("Undo the last turn of claude-code 5f0c2f6e?")
    tab.shows("-`--port N` chooses the port, `--host NAME` the address.")
    tab.page.get_by_role("button", name="Do it").click()
    tab.shows("Done.")
    assert "--host" not in (ground.repo / "docs/usage.md").read_text()


def test_the_form_of_another_web_page_changes_nothing(ground, browse, served, elsewhere):  # noqa: F811
    busy(ground)
    tab = browse().open()
    tab.page.get_by_role("link", name="release it…").first.click()
    form = tab.page.locator("form.deed").evaluate("form => Object.fromEntries(new FormData(form))")
    assert form["key"]
    tab.page.goto(elsewhere)
    tab.page.evaluate(
        """([origin, given]) => {
            const form = document.createElement('form');
            form.method = 'post';
            form.action = origin + '/do';
            for (const [name, value] of Object.entries(given)) {
                const input = document.createElement('input');
                [input.name, input.value] = [name, value];
                form.append(input);
            }
            document.body.append(form);
            form.submit();
        }""",
        [served.origin, form],
    )
    tab.page.get_by_text("not open to you").wait_for()
    assert locked(ground)
