"""The mark of a test that shows a requirement to hold: ``@requirement("A-30")``."""

import pytest


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Return the mark; `ids` stand in ``tests/documents/requirements.txt``."""
    return pytest.mark.requirement(*ids)
