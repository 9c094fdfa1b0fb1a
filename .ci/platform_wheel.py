"""A wheel for one platform: with the program in front of the check (``native/``).

`SWARM_FIRST_LOOK` is the program, `SWARM_PLATFORM` the wheel's tag for its platform (default: this machine's). A build
without a program makes the wheel for all platforms.
"""

from __future__ import annotations

import os
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSTALLED = "swarm_mcp/bin/swarm_check"


class PlatformWheel(BuildHookInterface):
    """The hook that hatchling calls before it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = os.environ.get("SWARM_FIRST_LOOK")
        if not program or not os.path.getsize(program):  # it could not be compiled
            return
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        platform = os.environ.get("SWARM_PLATFORM") or here
        build_data["force_include"][os.path.abspath(program)] = INSTALLED
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
