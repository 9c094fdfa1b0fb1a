"""The place of the plugin's files in this installation."""

from __future__ import annotations

import os

from swarm_mcp.errors import SwarmError


def plugin_folder() -> str:
    """Return the folder of manifests, integrations and skills: inside the installed package, or the checkout.

    Raises SwarmError where the installation has lost it.
    """
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for candidate in (package + "/_plugin", os.path.dirname(package)):
        if os.path.isdir(candidate + "/integrations"):
            return candidate
    raise SwarmError("this installation of swarm-mcp lacks its plugin files; install it again")
