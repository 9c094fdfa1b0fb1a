"""What operators, methods of texts and functions on paths give.

Everything here answers `ANY` rather than raise, and makes nothing longer than `LONGEST`.
"""

import os

from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.programs.python.values import (
    ANY,
    LONGEST,
    Choice,
    Place,
    Unknown,
    elements,
    is_plain,
    text_of,
)


def join(*parts: str) -> str:
    """``os.path.join`` of texts that may hold marks."""
    path = parts[0]
    for part in parts[1:]:
        path = part if part.startswith("/") else f"{path}{part}" if not path or path.endswith("/") else f"{path}/{part}"
    return path


def tidy(text: str) -> str:
    """`text` as ``str(Path(text))`` gives it: no ``.`` parts, no doubled or last slash."""
    if not text.strip("./"):
        return "/" if text.startswith("/") else text if ".." in text else "."
    root = "/" if text.startswith("/") else ""
    return root + "/".join(part for part in text.split("/") if part not in ("", "."))


_PURE_TEXT = frozenset(
    "strip lstrip rstrip lower upper title capitalize swapcase casefold startswith endswith split rsplit splitlines"
    " partition rpartition replace removeprefix removesuffix join format find rfind index rindex count isdigit isalpha"
    " isalnum isupper islower isspace isidentifier isnumeric isdecimal encode zfill ljust rjust center".split()
)


def text_method(text: str, name: str, args: list, named: dict):
    """What method `name` of a str gives."""
    if name == "join" and len(args) == 1 and is_known(text):
        parts = elements(args[0])
        if parts is None:
            return ANY
        return shortened(text.join(map(text_of, parts)))
    if name == "format" and is_known(text) and not named and text.count("{}") == text.count("{") == len(args):
        return shortened(text.replace("%", "%%").replace("{}", "%s") % tuple(map(text_of, args)))
    if name not in _PURE_TEXT or not is_known(text) or not all(map(is_plain, args)) or not is_plain(named):
        return ANY
    if name in ("zfill", "ljust", "rjust", "center") and args and (not isinstance(args[0], int) or args[0] > 1000):
        return ANY
    if name == "format" and _wide(text):
        return ANY
    if name == "replace" and len(args) >= 2 and isinstance(args[1], str):
        if len(args[1]) * (text.count(args[0]) if args[0] else len(text) + 1) > LONGEST:
            return ANY
    try:
        return shortened(getattr(text, name)(*args, **named))
    except Exception:  # what the code would raise at run time
        return ANY


def shortened(value):
    """`value`, or `ANY` where it has grown too long."""
    return ANY if isinstance(value, (str, bytes, list, tuple)) and len(value) > LONGEST else value


def _wide(text: str) -> bool:
    """Whether a format in `text` might make something long."""
    digits = 0
    for letter in text:
        digits = digits + 1 if letter.isdigit() else 0
        if digits > 3:
            return True
    return False


def formatted(value, spec: str):
    """``format(value, spec)``."""
    if not spec:
        return text_of(value)
    if _wide(spec) or not is_known(spec) or not is_plain(value):
        return UNKNOWN
    try:
        return format(value, spec)
    except Exception:
        return UNKNOWN


def operate(kind: str, left, right):
    """What binary operator `kind` (the name of its ``ast`` class) makes of two values."""
    if kind == "Div" and (isinstance(left, Place) or isinstance(right, Place)):
        return Place(tidy(join(text_of(left), text_of(right))))
    if kind == "Add" and isinstance(left, str) != isinstance(right, str) and _one_is_unknown(left, right):
        return shortened(text_of(left) + text_of(right))
    if kind == "Add" and isinstance(left, (str, list, tuple)) and type(left) is type(right):
        return shortened(left + right)
    if kind == "Mod" and isinstance(left, str) and is_known(left):
        values = right if isinstance(right, tuple) else (right,)
        if isinstance(right, dict) or _wide(left):
            return ANY
        if left.count("%") == left.count("%s") == len(values):
            return shortened(left % tuple(map(text_of, values)))
        values = values if is_plain(values) else None
        try:
            return ANY if values is None else shortened(left % values)
        except Exception:
            return ANY
    if not is_plain(left) or not is_plain(right):
        return ANY
    if kind in ("Pow", "LShift") or (kind == "Mult" and _product_too_long(left, right)):
        return ANY
    function = _operators().get(kind)
    try:
        return ANY if function is None else shortened(function(left, right))
    except Exception:
        return ANY


def _one_is_unknown(left, right) -> bool:
    """Whether one of them is not known; only then may the other, a text, be added to it."""
    return isinstance(left, Unknown) or isinstance(right, Unknown)


def _product_too_long(left, right) -> bool:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, (str, bytes, list, tuple)):
            return not isinstance(other, int) or len(one) * other > LONGEST
        if isinstance(one, int) and one.bit_length() > 256:
            return True
    return False


def _operators():
    import operator

    return {
        "Add": operator.add,
        "Sub": operator.sub,
        "Mult": operator.mul,
        "Div": operator.truediv,
        "FloorDiv": operator.floordiv,
        "Mod": operator.mod,
        "BitOr": operator.or_,
        "BitAnd": operator.and_,
        "BitXor": operator.xor,
        "RShift": operator.rshift,
    }


def compare(kind: str, left, right):
    """True, False or `ANY`: what comparison `kind` (the name of its ``ast`` class) gives."""
    if kind in ("Is", "IsNot") and (left is None or right is None):
        if isinstance(left, (Unknown, Choice)) or isinstance(right, (Unknown, Choice)):
            return ANY
        return (left is right) == (kind == "Is")
    if isinstance(left, Place) and isinstance(right, Place):
        left, right = left.text, right.text
    if not is_plain(left) or not is_plain(right):
        return ANY
    try:
        if kind in ("Eq", "NotEq", "Is", "IsNot"):
            return (left == right) == (kind in ("Eq", "Is"))
        if kind in ("In", "NotIn"):
            return (left in right) == (kind == "In")
        if kind in ("Lt", "GtE"):
            return (left < right) == (kind == "Lt")
        return (left > right) == (kind == "Gt")
    except Exception:
        return ANY


def place_attribute(place: Place, name: str):
    """Attribute `name` of a path: `ANY` for methods and what is not known."""
    text = place.text
    if not is_known(text):
        return ANY
    folder, base = os.path.split(text)
    stem, dot, last = base.rpartition(".")
    has_suffix = bool(dot and stem and last)
    if name == "parent":
        return Place(folder or ("/" if text == "/" else "."))
    if name == "parents":
        found = []
        while folder not in ("", "/"):
            found.append(Place(folder))
            folder = os.path.dirname(folder)
        return [*found, Place(folder or ".")]
    if name == "parts":
        return tuple((["/"] if text.startswith("/") else []) + [part for part in text.split("/") if part])
    known = {"name": base, "stem": stem if has_suffix else base, "suffix": f".{last}" if has_suffix else ""}
    return known.get(name, ANY)


def place_method(place: Place, name: str, args: list, folder, home: str):
    """What a method that only works on the path itself gives; None for any other."""
    text = place.text
    if name == "joinpath":
        return Place(tidy(join(text, *map(text_of, args))))
    if name in ("as_posix", "__str__", "__fspath__"):
        return text
    if name in ("absolute", "resolve"):
        if folder is None and not text.startswith("/"):
            return ANY
        return Place(os.path.normpath(join(folder or "/", text)) if is_known(text) else UNKNOWN)
    if name == "expanduser":
        return Place(expanded(text, home))
    if name in ("with_suffix", "with_name", "with_stem", "relative_to"):
        if not is_known(text) or not args or not is_plain(args[0]) and not isinstance(args[0], Place):
            return Place(UNKNOWN)
        above, base = os.path.split(text)
        stem, given = place_attribute(place, "stem"), text_of(args[0])
        if name == "relative_to":
            inside = os.path.relpath(text, given) if text.startswith("/") == given.startswith("/") else UNKNOWN
            return Place(inside)
        if name == "with_suffix":
            given = stem + given
        elif name == "with_stem":
            given += place_attribute(place, "suffix")
        return Place(os.path.join(above, given))
    return None


def expanded(text: str, home: str) -> str:
    """``os.path.expanduser``, with `home` for the user's own folder."""
    if text == "~" or text.startswith("~/"):
        return home + text[1:]
    return os.path.expanduser(text) if text.startswith("~") and is_known(text) else text


def path_function(name: str, args: list, folder, home: str):
    """What ``os.path.<name>`` of known texts gives; `ANY` where it does not tell."""
    texts = list(map(text_of, args))
    if not texts:
        return ANY
    if name == "join":
        return join(*texts)
    if not all(map(is_known, texts)):
        return ANY
    if name in ("basename", "dirname", "splitext", "split", "normpath", "isabs"):
        return getattr(os.path, name)(texts[0])
    if name in ("abspath", "realpath"):
        return ANY if folder is None else os.path.normpath(os.path.join(folder, texts[0]))
    if name == "expanduser":
        return expanded(texts[0], home)
    if name == "relpath" and folder is not None:
        start = os.path.join(folder, texts[1]) if len(texts) > 1 else folder
        return os.path.relpath(os.path.join(folder, texts[0]), start)
    return ANY
