"""The server: processes with everything imported, reused from schedule to schedule, and started anew after a kill."""

import ctypes
import dis
import functools
import gc
import importlib
import json
import os
import pkgutil
import random
import signal
import sys
import time
import types
from collections.abc import Callable, Iterable
from typing import Any

from explore import git as stand_in
from explore import roles, team, trying
from explore.ground import Ground, runtime
from explore.history import Ended
from explore.process import Process, live
from explore.properties import violations
from explore.recipes import Plan
from explore.world import ALL_DONE, EVENTS, KILL, KILLED, World
from swarm_hook_core import environment, repository
from swarm_hook_core import process as spawn

HOUR_NS = 3600 * 10**9  # the ground is made so long before the processes begin, and the judge comes so long afterwards
PROGRAMS = ("swarm_hook_core.kernel.enter",)  # they act as they are imported


class Modules:
    """The memory of our modules: it is put back before each schedule, so that each process begins as a new one."""

    def __init__(self) -> None:
        self.kept: list[tuple[dict[str, Any], str, Any, Any]] = []
        self.known: set[str] = set()
        self.add_new()

    def add_new(self) -> None:
        """Remember modules that have been imported since."""
        self.caches = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] not in ("swarm_hook_core", "swarm_mcp") or name in self.known:
                continue
            self.known.add(name)
            assigned = assigned_globals(module)
            for key, value in list(vars(module).items()):
                if key.startswith("__"):
                    continue
                if isinstance(value, (dict, list, set)) and (not key.isupper() or key in assigned):
                    self.kept.append((vars(module), key, value, value.copy()))
                elif key in assigned:
                    self.kept.append((vars(module), key, value, None))

    def put_back(self) -> None:
        """Make the modules forget."""
        for names, key, value, copied in self.kept:
            if names.get(key) is not value:
                names[key] = value
            if copied is not None and value != copied:
                value.clear()
                (value.extend if isinstance(value, list) else value.update)(copied)
        for cache in self.caches:
            cache.cache_clear()


def assigned_globals(module: Any) -> set[str]:
    """Return the names that functions of a module assign to at its top."""
    found: set[str] = set()
    codes = [value.__code__ for value in vars(module).values() if isinstance(value, types.FunctionType)]
    for kind in vars(module).values():
        if isinstance(kind, type):
            codes += [value.__code__ for value in vars(kind).values() if isinstance(value, types.FunctionType)]
    for code in codes:
        found.update(one.argval for one in dis.get_instructions(code) if one.opname == "STORE_GLOBAL")
    return found


def import_all() -> None:
    """Import each module that a schedule may need: one that is imported later would take other steps at first."""
    for name in (
        "swarm_hook_core",
        "swarm_mcp.store",
        "swarm_mcp.locking",
        "swarm_mcp.sessions",
        "swarm_mcp.domain",
        "swarm_mcp.changes",
    ):
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(getattr(package, "__path__", []), name + "."):
            if found.name not in PROGRAMS:
                importlib.import_module(found.name)


class Server:
    """Runs schedules on the ground below `root`, one after the other."""

    def __init__(self, library: str, root: str, processes: int = 3):
        self.world = World(library, os.path.join(os.path.dirname(root), os.path.basename(root) + ".world"), root + "/")
        self.ground = Ground(root)
        environment = self.ground.environment()
        os.environ.clear()
        os.environ.update(environment)
        self.world.shared.is_virtual, self.world.shared.offset = 1, -HOUR_NS
        self.ground.make(processes)
        self.config = runtime("claude-code")
        self.pids: dict[int, int] = {}

    def warm_up(self) -> None:
        """Import all modules that schedules will import, by running each role once here."""
        import_all()
        environment.client_version = lambda _config: "2.1.332"  # no program is asked
        repository.run = stand_in.answers_in(self.ground.work)
        stand_in.act_for_commands()
        team.unreachable()
        trying.act_for_the_kernel()
        started = spawn.start_detached
        for module in [one for one in sys.modules.values() if getattr(one, "start_detached", None) is started]:
            module.start_detached = lambda *_given, **_more: None  # cleaning that is due follows outside of schedules
        self.modules = Modules()
        sleeps, time.sleep = time.sleep, lambda _seconds: None  # the virtual clock stands still here
        for role in roles.ROLES.values():
            self.ground.put_back()
            stand_in.begin(self.ground.work)
            process = Process(self.world, self.ground, 0, self.config)
            process.say = lambda *_words: None
            live(role, process)
        time.sleep = sleeps
        del process
        self.modules.add_new()
        self.modules.put_back()
        gc.collect()
        gc.freeze()
        gc.disable()

    def run(self, plan: Plan) -> int:
        """Run one schedule; return its last event."""
        world, shared = self.world, self.world.shared
        world.library.explore_reset(len(plan.roles), plan.seed)
        shared.offset = -HOUR_NS
        repository.run = self._git(plan.roles)
        # at a time that does not depend on the schedule before
        has_git = not roles.NEED_GIT.isdisjoint(plan.roles)
        self.ground.put_back(plan.has_old_turn, has_commit=has_git)
        if has_git:
            stand_in.begin(self.ground.work)
        shared.offset, shared.has_power_cuts = 0, plan.has_power_cuts
        shared.job = json.dumps([plan.roles, plan.level]).encode()
        for place, (chance, most) in enumerate(zip(plan.chances, plan.most)):
            shared.chances[place], shared.left[place] = chance, most
        if plan.decisions is not None:
            world.decide(list(plan.decisions))
        for process in range(len(plan.roles)):
            if process not in self.pids:
                self.pids[process] = self._start(process)
        while True:
            event = world.library.explore_drive()
            if event != KILLED:
                break
            dead = [shared.event_process]
            if plan.has_power_cuts:
                dead = list(range(len(plan.roles)))
            for process in dead:
                os.kill(self.pids[process], signal.SIGKILL)
                self._bury(process)
                world.library.explore_dead(process)
            if plan.has_power_cuts:
                self.ground.lose_power(next(one.value for one in world.decisions() if one.action == KILL) - 1)
        if event != ALL_DONE:
            self.close()
        return event

    def _git(self, names: Iterable[str]) -> Callable[..., spawn.Result]:
        """Return the stand-in for git beside these roles: only those about owners and commits have a commit."""
        if roles.NEED_GIT.isdisjoint(names):
            return stand_in.refuses
        return stand_in.answers_in(self.ground.work)

    def judged(self, plan: Plan, is_fresh: bool = False) -> list[str]:
        """Run one schedule; return its violations. `is_fresh`: with new processes."""
        if is_fresh:
            self.close()
        event = self.run(plan)
        if event != ALL_DONE:
            return [EVENTS[event]]
        world = self.world
        world.shared.offset += HOUR_NS
        told = world.told()
        return violations(
            Ended(
                plan.roles,
                plan.level,
                [(process, words) for _moment, process, words in told],
                [moment for moment, _process, _words in told],
                world.decisions(),
                world.killed(),
                plan.has_power_cuts,
                plan.has_old_turn,
            ),
            self.ground,
        )

    def close(self) -> None:
        """End all processes."""
        for process in list(self.pids):
            os.kill(self.pids[process], signal.SIGKILL)
            self._bury(process)

    def _bury(self, process: int) -> None:
        os.waitpid(self.pids.pop(process), 0)

    def _start(self, process: int) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with the server
            self.modules.put_back()  # the judge may have made a try
            self.world.library.explore_begin(process)
            while True:
                me = Process(self.world, self.ground, process, self.config)
                names, level = json.loads(self.world.shared.job)
                repository.run = self._git(names)
                os.environ.pop("SWARM_PROTECT", None)
                if level != "keep":
                    os.environ["SWARM_PROTECT"] = level
                random.seed(0)
                live(roles.ROLES[names[process]], me)
                me = None
                self.modules.put_back()
                gc.collect()  # as the end of a process does: connections in circles are closed
                self.world.library.explore_again()
        finally:
            os._exit(1)
