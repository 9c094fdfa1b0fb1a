"""A terminal's rows as an SVG: in the colours of the reader's theme, or of one theme."""

from html import escape

CHARACTER, LINE, EDGE, TOP, FONT, GAP = 8.4, 19, 16, 44, 14, 12  # pixels
LIGHT, DARK = 0, 1
BASE = (("#1f2328", "#f6f8fa", "#d1d9e0"), ("#e6edf3", "#0d1117", "#3d444d"))  # of each theme: text, window, its edge
FONT_RULE = (
    f"text{{font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}}"
)
COLOURS = {  # class of a piece, after the number of its style: light, dark
    "s1": ("font-weight:bold", "font-weight:bold"),
    "s2": ("fill:#59636e", "fill:#9198a1"),
    "s4": ("text-decoration:underline", "text-decoration:underline"),
    "s31": ("fill:#b31d28", "fill:#ff7b72"),
    "s32": ("fill:#116329", "fill:#56d364"),
    "s33": ("fill:#7d4e00", "fill:#e3b341"),
    "s34": ("fill:#0550ae", "fill:#79c0ff"),
    "s35": ("fill:#6639ba", "fill:#d2a8ff"),
    "s36": ("fill:#0a5c66", "fill:#56d4dd"),
}
REVERSED = "s7"  # of a piece in the background's colour on a bar
Row = list[tuple[str, str]]  # pieces: (classes by space, text)


def text_of(rows: list[Row]) -> list[str]:
    """The rows without their styles."""
    return ["".join(text for _classes, text in row).rstrip() for row in rows]


def drawn(row: Row, number: int, classes: str = "") -> str:
    """The row of that number, from 0, as one element with these classes: its text, on bars where that is reversed."""
    bars, spans, column, y = "", "", 0, TOP + (number + 1) * LINE - 5
    for style, text in row:
        x, width = f"{EDGE + column * CHARACTER:.1f}", f"{len(text) * CHARACTER:.1f}"
        if REVERSED in style.split():
            bars += f'<rect class="bar" x="{x}" y="{y - 14}" width="{width}" height="{LINE}"/>'
        if text.strip():
            spans += f'<tspan x="{x}" textLength="{width}"{_classes(style)}>{escape(text)}</tspan>'
        column += len(text)
    if not bars and not spans:
        return ""
    return f'<g{_classes(classes)}>{bars}<text y="{y}">{spans}</text></g>'


def _classes(names: str) -> str:
    return f' class="{names}"' if names else ""


def framed(body: list[str], columns: int, rows: int, title: str, rules: str = "") -> str:
    """An SVG of a window of so many columns and rows with the elements of `body` in it; `rules`: more CSS."""
    width, height = round(columns * CHARACTER + 2 * EDGE), TOP + rows * LINE + EDGE
    style = f"{_rules(LIGHT)}\n@media(prefers-color-scheme:dark){{{_rules(DARK)}}}{rules}"
    return _svg(width, height, title, style, [_window(width, height), *body])


def stacked(windows: list[tuple[str, list[Row]]], columns: int, title: str, theme: int) -> str:
    """An SVG of windows (heading, rows) below each other, in the colours of `theme`: LIGHT or DARK."""
    width, top, parts = round(columns * CHARACTER + 2 * EDGE), 0, []
    for heading, rows in windows:
        height = TOP + len(rows) * LINE + EDGE
        body = [drawn(row, number) for number, row in enumerate(rows)]
        name = f'<text class="s1" x="{width / 2}" y="25" text-anchor="middle">{escape(heading)}</text>'
        parts += [f'<g transform="translate(0 {top})">', _window(width, height), name, *body, "</g>"]
        top += height + GAP
    return _svg(width, top - GAP, title, _rules(theme), parts)


def _rules(theme: int) -> str:
    """The CSS of a theme."""
    text, screen, edge = BASE[theme]
    pieces = "".join(f".{name}{{{rules[theme]}}}" for name, rules in COLOURS.items() if rules[theme])
    return (
        f"text{{fill:{text}}}.screen{{fill:{screen};stroke:{edge}}}.dot{{fill:{edge}}}.bar{{fill:{text}}}"
        f".s7{{fill:{screen}}}{pieces}"
    )


def _window(width: int, height: int) -> str:
    dots = "".join(f'<circle class="dot" cx="{EDGE + 6 + 18 * n}" cy="20" r="6"/>' for n in range(3))
    return f'<rect class="screen" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>{dots}'


def _svg(width: int, height: int, title: str, style: str, body: list[str]) -> str:
    newline = "\n"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img"><title>{escape(title)}</title>\n<style>{FONT_RULE}{style}</style>\n'
        f"{newline.join(filter(None, body))}\n</svg>\n"
    )
