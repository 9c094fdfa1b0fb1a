"""The README as the package index shows it: its links name this release's files by their address.

A build asks for it (pyproject.toml, `tool.hatch.metadata.hooks`). Where the repository's address is not known yet the
README stays as it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

GITHUB = "https://github.com/"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")
_PICTURE = re.compile(r'\b(src|srcset)="(?!https?://)([^"\s]+)"')


def with_addresses(text: str, repository: str, version: str) -> str:
    """Return `text` with its relative links and pictures leading into the repository as it is at this version."""
    text = _PICTURE.sub(lambda found: f'{found[1]}="{repository}/raw/v{version}/{found[2]}"', text)
    return _LINK.sub(
        lambda found: f"{found[1]}[{found[2]}]({repository}/{'raw' if found[1] else 'blob'}/v{version}/{found[3]})",
        text,
    )


class IndexPage(MetadataHookInterface):
    """The hook that hatchling calls for the readme in the metadata."""

    def update(self, metadata: dict) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = Path(self.root, "swarm_hook_core", "__init__.py").read_text(encoding="utf-8")
        version = re.search(r'^__version__ = "(.*)"', source, re.MULTILINE)
        repository = metadata.get("urls", {}).get("Repository")
        if repository and version:
            text = with_addresses(text, repository, version[1])
            if repository.startswith(GITHUB):  # the registry of MCP servers looks for its name here
                text += f"\n<!-- mcp-name: io.github.{repository.removeprefix(GITHUB)} -->\n"
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
