"""A new user's first hour, with the page opened near its end: it answers the questions that the hour raised."""

from pathlib import Path

import pytest
from documents import first_hour

from .conftest import Served, Tab


@pytest.mark.thorough
def test_the_page_shows_the_sessions_the_refusal_and_the_owner_of_the_lines(chromium) -> None:
    looked: list[str] = []

    def look(shop: Path) -> None:
        context = chromium.new_context()
        served = Served(shop)
        try:
            tab = Tab(context.new_page(), served).open()
            tab.shows("claude-code 5f0c2f6e")
            tab.shows("codex b7d1e0a4")
            tab.shows("git checkout .")  # the refusal, in words
            tab.page.get_by_role("main").get_by_role("link", name="schema.sql").first.click()
            tab.shows("id bigint")  # an uncommitted line
            tab.shows("codex b7d1e0a4")  # its author
            assert tab.complaints == []
            looked.append(tab.page.url)
        finally:
            served.kill()
            context.close()

    first_hour.play(look=look)
    assert looked
