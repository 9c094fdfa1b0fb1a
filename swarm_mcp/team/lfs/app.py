"""The requests that git-lfs makes of a server that keeps locks, and the answers that it understands.

Its documentation is docs/api/locking.md and batch.md in git-lfs's own repository. What goes beyond it, or matters here:

- Whoever pushes asks ``/locks/verify``. To 404 and 501 git-lfs answers by never asking again, so neither is said there.
- Objects are kept elsewhere. Their batch request is sent on to that server (307), which asks for its own credentials:
  those for the team's server are not for it.
"""

from __future__ import annotations

import base64
import binascii
import json
import traceback
from collections.abc import Callable
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swarm_hook_core.paths import LONGEST
from swarm_mcp.team.lfs.credentials import Credentials, WrongCredentials
from swarm_mcp.team.lfs.held import MOST, Held, Page, page_of
from swarm_mcp.team.lfs.locks import AlreadyHeld, NotHeld, NotPermitted, RepositoryLocks, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.team.lfs.people import People

MEDIA_TYPE = "application/vnd.git-lfs+json"
LARGEST = 65536  # bytes of a request: it names one file
_NO_OBJECTS = (
    "this server keeps locks, and no objects of git-lfs: whoever runs it names the server that does with"
    " `swarm-mcp team lfs --objects URL`"
)


class Asked(NamedTuple):
    """One request, read: the locks of its repository, the lock that its path names, its query and its body."""

    locks: RepositoryLocks
    lock_id: str
    query: dict[str, str]
    body: dict[str, Any]


class Problem(Exception):
    """A request that is answered by an error: its status, a message for people, and what else is in the answer."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None, **more: object):
        super().__init__(message)
        self.status, self.headers, self.answer = status, headers, {"message": message, **more}


class LfsAnswer(JSONResponse):
    """An answer of git-lfs's media type."""

    media_type = MEDIA_TYPE


def application(people: People, default: str, objects: str) -> Starlette:
    """Return the server for `people`. A request that names no repository means `default`, empty for none.

    `objects`: the URL of the LFS server that keeps this repository's objects, empty for none.
    """

    def endpoint(act: Callable[[Asked], Response]) -> Callable[..., Any]:
        async def answer(request: Request) -> Response:
            body = await _body(request)  # read also where it is refused, so that the connection can be kept
            return await run_in_threadpool(decided, request, body)

        def decided(request: Request, body: bytes) -> Response:
            try:
                credentials = _credentials(request.headers.get("authorization", ""))
                repository = _repository(request.path_params.get("repository", ""), default)
                lock_id = request.path_params.get("lock_id", "")
                with people.using(credentials, repository) as locks:
                    return act(Asked(locks, lock_id, dict(request.query_params), _json(body)))
            except WrongCredentials as error:
                raise Problem(401, str(error), {"LFS-Authenticate": 'Basic realm="swarm team"'}) from None
            except NotPermitted as error:
                raise Problem(403, str(error)) from None
            except NotHeld as error:
                raise Problem(404, str(error)) from None
            except Unreachable as error:
                raise Problem(503, str(error), {"Retry-After": "5"}) from None

        return answer

    async def batch(_request: Request) -> Response:
        if not objects:
            raise Problem(501, _NO_OBJECTS)
        return RedirectResponse(f"{objects.rstrip('/')}/objects/batch", 307)

    calls = (
        ("/locks", "POST", endpoint(_lock)),
        ("/locks", "GET", endpoint(_list)),
        ("/locks/verify", "POST", endpoint(_verify)),
        ("/locks/{lock_id}/unlock", "POST", endpoint(_unlock)),
        ("/objects/batch", "POST", batch),
    )
    routes = [
        Route(before + path, answer, methods=[method])
        for path, method, answer in calls
        for before in ("", "/{repository:path}")
    ]
    return Starlette(
        routes=routes,
        exception_handlers={Problem: _say_problem, HTTPException: _say_http_problem, Exception: _say_fault},
    )


def _lock(asked: Asked) -> Response:
    try:
        held = asked.locks.take(_path(asked.body.get("path")))
    except AlreadyHeld as error:
        if error.held:
            more = {"lock": error.held.as_json()}
        else:
            more = {}
        raise Problem(409, str(error), **more) from None
    return LfsAnswer({"lock": held.as_json()}, 201)


def _list(asked: Asked) -> Response:
    path, lock_id = asked.query.get("path", "").rstrip("/"), asked.query.get("id", "")
    found = [one for one in asked.locks.held() if path in ("", one.path.rstrip("/")) and lock_id in ("", one.id)]
    page = _page(found, asked.query.get("cursor"), asked.query.get("limit"))
    return LfsAnswer({"locks": [one.as_json() for one in page.locks], "next_cursor": page.next_cursor})


def _verify(asked: Asked) -> Response:
    ref = asked.body.get("ref")
    if isinstance(ref, dict):
        branch = ref.get("name")
    else:
        branch = None
    found = asked.locks.held_by_file(branch if isinstance(branch, str) else "")
    page = _page(found, asked.body.get("cursor"), asked.body.get("limit"))
    mine = asked.locks.role
    return LfsAnswer({
        "ours": [one.as_json() for one in page.locks if one.row["member"] == mine],
        "theirs": [one.as_json() for one in page.locks if one.row["member"] != mine],
        "next_cursor": page.next_cursor,
    })  # fmt: skip


def _unlock(asked: Asked) -> Response:
    found = [one for one in asked.locks.held() if one.id == asked.lock_id]
    if not found:
        raise Problem(404, f"there is no lock {asked.lock_id[:40]} any more")
    held = found[0]
    if asked.locks.is_own(held):
        asked.locks.give_back(held)
    elif asked.body.get("force") is True:
        asked.locks.take_away(held)
    else:
        raise Problem(403, f"{held.path} is held by {held.owner}: only --force takes a lock away from somebody else")
    return LfsAnswer({"lock": held.as_json()})


# ---------------------------------------------------------------- what was asked


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise Problem(413, f"a request has at most {LARGEST} bytes", {"Connection": "close"})
    return body


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Problem(400, "the body of the request is no JSON object")
    return found


def _credentials(header: str) -> Credentials:
    """Return what an Authorization header says: of a bearer the secret alone. Raises WrongCredentials."""
    scheme, _, given = header.strip().partition(" ")
    if scheme.lower() == "bearer" and given.strip():
        return Credentials("", given.strip())
    if scheme.lower() == "basic":
        try:
            name, colon, secret = base64.b64decode(given.strip(), validate=True).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError):
            name = colon = secret = ""
        if colon and name:
            return Credentials(name, secret)
    raise WrongCredentials("say who you are: the name and password of your role on the team's server, or a token")


def _repository(text: str, default: str) -> str:
    """Return the id of the repository that a URL names, which may be spelled as git-lfs guesses it from a remote."""
    named = text.strip("/").removesuffix("/info/lfs").removesuffix("info/lfs").removesuffix(".git") or default
    if not named:
        raise Problem(400, "no repository is named: lfs.url is this server's address, a slash, and the repository's id")
    return named


def _path(given: object) -> str:
    if isinstance(given, str):
        path = given.strip("/")
    else:
        path = ""
    if not path or "\0" in path or len(path) > LONGEST or {"..", ".", ""} & set(path.split("/")):
        raise Problem(400, "a lock needs the path of a file, from the top of the repository")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise Problem(400, "a file whose name is not valid UTF-8 cannot be locked") from None
    return path


def _page(found: list[Held], cursor: object, limit: object) -> Page:
    try:
        return page_of(found, str(cursor or ""), int(str(limit or MOST)))
    except ValueError:
        raise Problem(400, "cursor is what the page before has said, and limit a number") from None


# ---------------------------------------------------------------- what is answered


async def _say_problem(_request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return LfsAnswer(problem.answer, problem.status, problem.headers)


async def _say_http_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return LfsAnswer({"message": f"{error.detail}: this server answers git-lfs's locking API"}, error.status_code)


async def _say_fault(_request: Request, error: Exception) -> Response:
    traceback.print_exception(error)  # no values of variables: no secrets
    return LfsAnswer({"message": "a fault of the server's own; its terminal shows it"}, 500)
