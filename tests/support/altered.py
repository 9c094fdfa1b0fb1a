"""Changes of the product for one test: its limits, its clocks, calls that are listened to, and calls that fail."""

import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from swarm_hook_core import clock


class Limits:
    """Sets limits of a module, or of the module of a name, until the test ends: ``limits(cleanup, AT_ONCE=3)``.

    A limit is a number (None: no limit), with a name in capitals at the top of its module. It is read at each use.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, module: ModuleType | str, **values: float | None) -> None:
        if isinstance(module, str):
            module = import_module(module)
        for name, value in values.items():
            usual = getattr(module, name)
            assert name.isupper() and isinstance(usual, (int, float, type(None))), (
                f"{module.__name__}.{name} is no limit"
            )
            self._patch.setattr(module, name, value)


class Call:
    """A call that was listened to: the arguments `given` by position, a method's object first, and its `result`.

    The result is None until the call returns, and if it fails.
    """

    def __init__(self, given: tuple[Any, ...]) -> None:
        self.given = given
        self.result: Any = None


class Listening:
    """Notes the calls of a function of the product until the test ends, and lets them through.

    ``read = listening(patch, "_read")``: `read` is the list of the calls, a ``Call`` each.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, where: Any, name: str) -> list[Call]:
        calls: list[Call] = []
        through = getattr(where, name)

        def noted(*given: Any, **more: Any) -> Any:
            call = Call(given)
            calls.append(call)
            call.result = through(*given, **more)
            return call.result

        self._patch.setattr(where, name, noted)
        return calls


class Failing:
    """Lets each call of a function fail until the test ends: ``failing(os, "fsync", OSError(28, "No space left"))``."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, where: Any, name: str, error: BaseException | type[BaseException]) -> None:
        assert callable(getattr(where, name))

        def fails(*_given: Any, **_more: Any) -> None:
            raise error

        self._patch.setattr(where, name, fails)


class Clocks:
    """Turns the clocks of this process until the test ends.

    `boot` is the clock of leases, `awake` the same without the machine's sleep, `wall` the time of day.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        boot, awake = clock.now, clock.awake
        self._usual: dict[str, Callable[[], int]] = {
            "boot": lambda: int(boot() * 1e9),
            "awake": lambda: int(awake() * 1e9),
            "wall": time.time_ns,
        }
        self._ahead: dict[str, float] = {}
        self._stopped: dict[str, int] = {}

    def ahead(self, **seconds: float) -> None:
        """Set clocks by name: so many seconds ahead of the true one, or of the moment of its stop."""
        for name, many in seconds.items():
            if name not in self._ahead:
                self._take_over(name)
            self._ahead[name] = many

    def stop(self, *names: str) -> None:
        """Let these clocks stand still, at a whole second: limits are met exactly then, without rounding."""
        self._stopped.update({name: -(-self._usual[name]() // 10**9) * 10**9 for name in names})
        self.ahead(**dict.fromkeys(names, 0.0))

    def _take_over(self, name: str) -> None:
        def nanoseconds() -> int:
            begin = self._stopped[name] if name in self._stopped else self._usual[name]()
            return begin + int(self._ahead[name] * 1e9)

        def seconds() -> float:
            return nanoseconds() / 1e9

        if name == "wall":
            self._patch.setattr(time, "time_ns", nanoseconds)
            self._patch.setattr(time, "time", seconds)
        else:
            self._patch.setattr(clock, {"boot": "now", "awake": "awake"}[name], seconds)
