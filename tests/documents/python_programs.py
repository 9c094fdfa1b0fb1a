"""Write the programs of docs/dev into a folder, for ruff and a type checker: users and contributors begin with them.

A program begins with a comment that has its name.

usage: python tests/documents/python_programs.py FOLDER
"""

import re
import sys
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "dev"


def programs() -> dict[str, str]:
    """Return the programs of all pages by name."""
    found: dict[str, str] = {}
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        found.update(re.findall(r"```python\n# (\w+)\.py\b[^\n]*\n(.*?)```", text, re.DOTALL))
    return found


def main(folder: Path) -> None:
    """Write each program as ``page_<name>.py``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in programs().items():
        (folder / f"page_{name}.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
