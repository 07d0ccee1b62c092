"""A table with a heading and notes, for a terminal, as plain text, and as escaped HTML for notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from bitscale.views.render import render
from bitscale.views.text import visible

if TYPE_CHECKING:
    from rich.table import Table as RichTable


@dataclass(frozen=True)
class Table:
    """Cells as text; the first column names the rows. A line is drawn after each of `sections` rows."""

    heading: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    sections: tuple[int, ...] = ()

    def rich(self) -> RichTable:
        """For terminals; control characters are shown as escapes, but a column's name may have two lines."""
        from rich.table import Table as RichTable
        from rich.text import Text

        note = Text("\n".join(map(visible, self.notes)))
        table = RichTable(
            title=Text(visible(self.heading)), title_justify="left", caption=note, caption_justify="left", min_width=76
        )
        for i, name in enumerate(self.columns):
            table.add_column(Text("\n".join(map(visible, name.split("\n")))), justify="right" if i else "left")
        for i, line in enumerate(self.rows, 1):
            table.add_row(*(Text(visible(cell)) for cell in line), end_section=i in self.sections)
        return table

    def text(self) -> str:
        """For files and pipes: no colours."""
        from rich.console import Console

        out = StringIO()
        Console(file=out, width=max(80, 20 * len(self.columns)), no_color=True).print(self.rich())
        return out.getvalue().rstrip("\n")

    def html(self) -> str:
        """For notebooks; everything is escaped."""
        values = {"heading": self.heading, "columns": self.columns, "rows": self.rows, "notes": self.notes}
        return render("table.html", **values)
