"""The SQL of weighted Hamming distance.

A cost is a whole number below 2^23, so a sum of costs is a sum over its binary digits: digit b counts, 2^b times, the
differing bits whose cost has that digit. With x = code # query and one mask a digit,

    d = sum over b of bit_count(x & mask_b) << b

which is exact, and about twenty times as dear as bit_count(x) alone. So that is asked first: h differing bits cost
at least the sum of the h smallest costs, and an item beyond a distance already found is never summed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitscale.index.engines.forms import Among, Ask

PAGES_LOOKED_AT = 400  # of a table, for a first guess of the k-th distance
PAGE = 8192

Sql = tuple[str, list[Any]]


class Masks(NamedTuple):
    """One query's masks, as texts of 0 and 1, and the sums of its smallest costs."""

    query: str
    used: str | None  # bits that cost something; None: all do
    digits: list[tuple[int, str]]
    smallest: NDArray[np.int64]  # (used bits + 1,)  the least that so many differing bits cost


def masks(ask: Ask) -> Masks:
    """The masks of one query."""
    costs = ask.costs
    n_bits = len(costs)
    digits = [
        (digit, _text(costs >> digit & 1))
        for digit in range(int(costs.max()).bit_length())
        if (costs >> digit & 1).any()
    ]
    used = costs > 0
    smallest = np.concatenate([[0], np.cumsum(np.sort(costs[used]).astype(np.int64))])
    signs = np.unpackbits(ask.signs)[:n_bits]
    return Masks(_text(signs), None if used.all() else _text(used), digits, smallest)


def radius_for(asked: Masks, limit: int) -> int:
    """The most used bits in which an item may differ whose sum is at most `limit`."""
    return int(np.searchsorted(asked.smallest, limit, side="right")) - 1


def ranked(table: str, asked: Masks, radius: int | None, among: Among | None, limit: int | None, k: int | None) -> Sql:
    """Items by (summed costs, id): those within a radius, of a sum up to a limit, the first k; each where given."""
    difference = f"(code # {_bits(asked)})"
    values: list[Any] = [asked.query]
    total, of_total = _sum(asked)
    conditions: list[Sql] = []
    if radius is not None and radius < len(asked.smallest) - 1:
        conditions.append(_count_at_most(asked, radius))
    if among is not None:
        conditions.append(codes_among(table, among))
    where = "".join(f" AND {sql}" for sql, _ in conditions)
    inner = f"SELECT id, {difference} AS x FROM {table} WHERE true{where}"
    values += [value for _, some in conditions for value in some]
    sql = f"SELECT id, {total} AS d FROM ({inner}) AS near"
    values = of_total + values
    if limit is not None:
        sql, values = f"SELECT id, d FROM ({sql}) AS summed WHERE d <= %s", [*values, limit]
    sql += " ORDER BY d, id"
    return (f"{sql} LIMIT %s", [*values, k]) if k is not None else (sql, values)


def sampled(table: str, asked: Masks, among: Among | None, k: int, whole: bool) -> Sql:
    """Codes that differ in few bits, of some pages of the table: any k of them bound the k-th distance."""
    count, values = _count(asked)
    share = f"(100 * least(1.0, {PAGES_LOOKED_AT * PAGE}.0 / greatest(pg_relation_size(%s::regclass), 1)))"
    sample = "" if whole else f" TABLESAMPLE SYSTEM ({share})"
    filters, of_filters = ("", []) if among is None else codes_among(table, among)
    where = f" WHERE {filters}" if filters else ""
    sql = f"SELECT code FROM {table}{sample}{where} ORDER BY {count} LIMIT %s"
    return sql, [*([] if whole else [table]), *of_filters, *values, k]


def codes_among(table: str, among: Among) -> Sql:
    """That a code passes a filter: by its id, or by a condition on the table of items beside it."""
    if among.ids is not None:
        sql, values = among_sql(among, table)
    else:
        condition, given = among.condition
        items = table.replace("_codes_", "_items_", 1)
        sql, values = f"id IN (SELECT id FROM {items} WHERE {condition})", list(given)
    return f"{sql} AND stamp < %s", [*values, among.stamp]


def among_sql(among: Among | None, table: str) -> Sql:
    """That an item passes a filter, in the table of items."""
    if among is None:
        return "true", []
    if among.ids is not None:
        return f"{table}.id IN (SELECT unnest(%s::bigint[]))", [among.ids.tolist()]  # = ANY is searched one by one
    sql, values = among.condition
    return f"({sql})", list(values)


def _sum(asked: Masks) -> Sql:
    """The summed costs of the bits set in x."""
    parts = [(f"(bit_count(x & {_bits(asked)}) << {digit})", mask) for digit, mask in asked.digits]
    return " + ".join(sql for sql, _ in parts) or "0::bigint", [mask for _, mask in parts]


def _count(asked: Masks) -> Sql:
    """How many used bits differ."""
    if asked.used is None:
        return f"bit_count(code # {_bits(asked)})", [asked.query]
    return f"bit_count((code # {_bits(asked)}) & {_bits(asked)})", [asked.query, asked.used]


def _count_at_most(asked: Masks, radius: int) -> Sql:
    count, values = _count(asked)
    return f"{count} <= %s", [*values, radius]


def _bits(asked: Masks) -> str:
    return f"%s::bit({len(asked.query)})"


def _text(bits: NDArray[Any]) -> str:
    return bits.astype(np.uint8).tobytes().translate(bytes.maketrans(b"\0\1", b"01")).decode()
