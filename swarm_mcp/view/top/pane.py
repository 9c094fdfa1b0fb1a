"""A table that fills a part of the screen, with a row that keys and mouse go through.

It draws its lines itself, from text that is text and never markup: no more of them than the screen shows.
"""

from __future__ import annotations

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from swarm_mcp.answers.text_width import clipped
from swarm_mcp.view.top import columns
from swarm_mcp.view.top.picture import Row, Table
from swarm_mcp.view.top.styles import style_of


class Pane(ScrollView, can_focus=True):
    """One table: its title and headings stay, its rows scroll below."""

    def __init__(self, table: Table, name: str):
        super().__init__(id=name)
        self.table = table
        self._at = 0

    @property
    def row(self) -> Row | None:
        """The chosen row, or None."""
        if self.table.rows:
            return self.table.rows[self._at]
        return None

    @property
    def lines_wanted(self) -> int:
        """The lines it takes to show all of it: an empty table says so beside its title."""
        return 1 + len(self.table.rows)

    def show(self, table: Table) -> None:
        """Show `table`. The chosen row stays chosen if it is still there.

        An unfocused pane that shows its first row goes on showing the first one.
        """
        if table == self.table:
            return
        if self.row and (self.has_focus or self._at):
            chosen = self.row.key
        else:
            chosen = ""
        self.table = table
        found = [at for at, row in enumerate(table.rows) if row.key == chosen]
        if found:
            self._at = found[0]
        else:
            self._at = min(self._at, max(0, len(table.rows) - 1))
        self.virtual_size = Size(self.size.width, self.lines_wanted)
        self._keep_in_sight()
        self.refresh()

    def choose(self, key: str) -> None:
        """Choose the row with this key, where there is one."""
        for at, row in enumerate(self.table.rows):
            if row.key == key:
                self._go(at)

    # --------------------------------------------------------------- called by Textual

    def render_line(self, y: int) -> Strip:
        """Draw line `y` of the visible part."""
        room = self.size.width
        sizes = columns.widths(self.table, room - 1)
        if y == 0:
            mark, look = " ", "own"
            if self.has_focus:
                mark, look = ">", "heading"
            if not self.table.rows:
                title = Segment(mark + self.table.title, style_of(look))
                left = max(0, room - len(title.text))
                return self._strip([title, Segment(clipped(f"  {self.table.empty}", left), style_of("faint"))])
            text = mark + columns.heading(self.table, sizes)
            return self._strip([Segment(clipped(text, room), style_of(look))])
        at = y - 1 + int(self.scroll_offset.y)
        if at >= len(self.table.rows):
            return self._strip([])
        row = self.table.rows[at]
        chosen = self.has_focus and at == self._at
        if chosen:
            base = style_of("cursor")
        else:
            base = style_of(row.style)
        parts = [Segment(">" if chosen else " ", base)]
        for text, column in columns.line(row, self.table.columns, sizes):
            if chosen or row.style == "faint":
                style = base
            else:
                style = base + style_of(column.style, text)
            parts += [Segment(text, style), Segment(" " * columns.GAP, base)]
        return self._strip(parts)

    def on_resize(self, _event: events.Resize) -> None:
        """Follow the terminal's size."""
        self.virtual_size = Size(self.size.width, self.lines_wanted)
        self._keep_in_sight()

    def on_click(self, event: events.Click) -> None:
        """Choose the row that was clicked."""
        if event.y > 0 and self.table.rows:
            self._go(event.y - 1 + int(self.scroll_offset.y))

    def move(self, by: int) -> None:
        """Choose the row that is `by` rows further down."""
        self._go(self._at + by)

    def leaf(self, by: int) -> None:
        """Choose the row that is `by` screens further down."""
        self._go(self._at + by * max(1, self.size.height - 2))

    # ------------------------------------------------------------------------ innards

    def _strip(self, segments: list[Segment]) -> Strip:
        room = self.size.width
        return Strip(segments).adjust_cell_length(room, style_of("")).crop(0, room)

    def _go(self, at: int) -> None:
        self._at = max(0, min(at, len(self.table.rows) - 1))
        self._keep_in_sight()
        self.refresh()

    def _keep_in_sight(self) -> None:
        """Scroll the chosen row into view, below the heading, since that covers the first line."""
        seen = max(1, self.size.height - 1)
        top = int(self.scroll_offset.y)
        if self._at < top:
            top = self._at
        elif self._at >= top + seen:
            top = self._at - seen + 1
        top = max(0, min(top, max(0, len(self.table.rows) - seen)))
        if top != int(self.scroll_offset.y):
            self.scroll_to(y=top, animate=False, immediate=True)
