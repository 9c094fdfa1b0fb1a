"""The relay in C (``native/``) in a wheel, which is for one platform then.

`SWARM_RELAY` is the program, and `SWARM_PLATFORM` the tag of its platform (default: this machine's). If it is
empty, the wheel is for all platforms, and the same bytes everywhere. If it is not set, as in an installation from a
clone or a source archive, the program is compiled for this machine. If that fails, the wheel has the reason for
`doctor`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSTALLED = "swarm_mcp/bin/swarm_relay"
REASON = "swarm_mcp/bin/not-compiled"
SECONDS = 60  # for the compiler


class PlatformWheel(BuildHookInterface):
    """The hook that hatchling calls before and after it builds a wheel."""

    folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = os.environ.get("SWARM_RELAY")
        if program is None and version == "standard":
            program = self._compiled(build_data)
        if not program or not os.path.getsize(program):  # it could not be compiled
            return
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        platform = os.environ.get("SWARM_PLATFORM") or here
        build_data["force_include"][os.path.abspath(program)] = INSTALLED
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _compiled(self, build_data: dict[str, Any]) -> str:
        """Return the program, compiled for this machine. Empty if that fails: the wheel gets a file with the reason."""
        spec = importlib.util.spec_from_file_location("native_build", os.path.join(self.root, "native", "build.py"))
        native = importlib.util.module_from_spec(spec)
        kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing is left in a checkout
        spec.loader.exec_module(native)
        sys.dont_write_bytecode = kept
        self.folder = tempfile.mkdtemp(prefix="swarm-wheel-")
        program, reason = os.path.join(self.folder, "swarm_relay"), os.path.join(self.folder, "not-compiled")
        why = native.build_here(program, SECONDS)
        if not why:
            return program
        with open(reason, "w", encoding="utf-8") as file:
            file.write(f"{why}\n")
        build_data["force_include"][reason] = REASON
        return ""
