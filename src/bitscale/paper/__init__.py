"""The paper's evaluation: its printed numbers, a plan of cells, and the machinery that measures what is missing."""

from bitscale.paper.cells import Cell, Training
from bitscale.paper.numbers import Printed, in_table, printed, to_beat
from bitscale.paper.plan import select, small, whole_plan
from bitscale.paper.run import Outcome, Places, reproduce
from bitscale.paper.status import Row, asked_for, rows

__all__ = [
    "Cell",
    "Outcome",
    "Places",
    "Printed",
    "Row",
    "Training",
    "asked_for",
    "in_table",
    "printed",
    "reproduce",
    "rows",
    "select",
    "small",
    "to_beat",
    "whole_plan",
]
