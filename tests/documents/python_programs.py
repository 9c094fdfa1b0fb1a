"""Write the programs of docs/dev/python.md into a folder, for a type checker: users begin with them.

usage: python tests/documents/python_programs.py FOLDER
"""

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "dev" / "python.md"


def main(folder: Path) -> None:
    """Write each program of the page as ``<name>.py``."""
    folder.mkdir(parents=True, exist_ok=True)
    found = re.findall(r"```python\n# (\w+)\.py\b[^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"{PAGE} has no programs"
    for name, text in found:
        (folder / f"page_{name}.py").write_text(text, encoding="utf-8")


main(Path(sys.argv[1]))
