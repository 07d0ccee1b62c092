"""The table of docs/engines.md from results/engines.json."""

from __future__ import annotations


def engines_table(found: dict) -> str:
    """What engines were measured to do."""
    names = {"postgres": "PostgreSQL", "pgvector": "PostgreSQL with pgvector", "milvus": "Milvus", "faiss": "FAISS"}
    lines = ["| what | seen |", "|---|---|"]
    for engine, name in names.items():
        if row := found.get(f"search-{engine}"):
            each = row["ms_a_query"]
            seen = f"{each['re-rank']:.0f} ms / {each['one scan']:.0f} ms: {row['faster_than_one_scan']:g} times"
            lines.append(f"| {name}, 1M codes, k = 10: certified re-rank / one exact scan in SQL | {seen} |")
    if row := found.get("partitions-milvus"):
        each = row["ms_a_query"]
        seen = (
            f"{each['parted, filtered']:.0f} ms / {each['whole, filtered']:.0f} ms: {row['faster_with_the_filter']:g} "
            f"times; of all, {row['faster_without_one']:g} times as fast; filling {row['filling_takes']:g} times "
            f"as long ({row['machine']['cpu']})"
        )
        what = f"Milvus, {row['codes'].split()[0]} codes, k = 10, `--where` for one of {row['values']} values"
        lines.append(f"| {what}: `--partition-by` it / without | {seen} |")
    for engine, name in names.items():
        if row := found.get(f"push-{engine}"):
            rounds = row.get("rounds") or [{"push": row["push_seconds"], "peer": row["peer_seconds"]}]
            each = ", ".join(f"{one['peer'] / one['push']:.2f}" for one in rounds)
            peer = "`insert` of pymilvus" if engine == "milvus" else "COPY"
            seen = f"{row['rate']:g} of its rate in the median (rounds: {each}; {row['machine']['cpu']})"
            lines.append(f"| `push` of 1M items to {name} against {peer} of the same columns and batches | {seen} |")
    for engine, name in names.items():
        if row := found.get(f"kills-{engine}"):
            seen = f"{row['missing']} missing, {row['doubled']} doubled, {row['wrong']} wrong"
            what = f"`push` of {row['items']:,} items to {name}, killed with -9 {row['kills']} times and gone on with"
            lines.append(f"| {what} | {seen} |")
    for engine, name in names.items():
        if row := found.get(f"contract-{engine}"):
            cut = f"; at {row['flagged']:,} more items tie with the last than it lists" if row["flagged"] else ""
            apart = f"{row['distances_differ']} differ in distances, {row['ids_differ']} in ids"
            filters = "" if engine == "faiss" else ", with and without filter"
            what = f"20,000 items x 1,000 queries at 64, 37, 16, 8 bits{filters}, before and after deletes"
            lines.append(f"| {name}: {what} | of {row['queries']:,} answers {apart}{cut} |")
    return "\n".join(lines)
