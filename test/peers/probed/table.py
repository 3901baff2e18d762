"""Compares the table in a page with what the probe found on the fixtures.

table.py PAGE FOLDER NAME…           reads FOLDER/NAME.json; fixtures that are not named keep their cells
table.py --write PAGE FOLDER NAME…   writes the table into the page instead; name all fixtures
"""
import difflib
import json
import sys

START, END = "<!-- the table of the runs -->\n", "<!-- the end of the table -->\n"
WORDS = {
    "finding": "**yes**", "unclear": "?", "accepted-risk": "risk", "information": "info",
    "not-tried": "–", "refused-before-the-check": "early", "refused": "no",
}
# These attacks got through only because the SDK does something that it does not document. The table
# says "not shown" for them.
NOT_SHOWN = {
    ("cursor-changed", "go-sdk"),
    ("cursor-changed", "mcp-go"),
    ("cursor-made-up", "mcp-go"),
    ("respelled", "typescript-codec"),
    ("respelled", "typescript-bound"),
}
HIDDEN = "not shown"
SEVERITIES = ["high", "medium", "low"]


def short(name):
    """The name of a fixture's column. It is short because the table is wide."""
    return name.replace("python-", "py ").replace("typescript-", "ts ").replace("rmcp-", "rmcp ")


def read_runs(folder, names):
    """Returns the columns of these fixtures, and the attacks in the order of the rows."""
    columns, order = {}, set()
    for name in names:
        with open(f"{folder}/{name}.json") as file:
            results = json.load(file)["results"]
        order |= {(SEVERITIES.index(r["severity"]), r["id"]) for r in results}
        columns[short(name)] = {
            r["id"]: HIDDEN if r["verdict"] == "finding" and (r["id"], name) in NOT_SHOWN else WORDS[r["verdict"]]
            for r in results
        }
    return columns, [attack for _, attack in sorted(order)]


def read_table(text):
    """Returns the columns of a table."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    if not lines:
        return {}
    head, rows = lines[0], lines[2:-1]  # without the rule below the head, and the last row, which counts
    return {name: {row[0].strip("`"): row[i] for row in rows} for i, name in enumerate(head) if i > 0}


def table(columns, attacks):
    """Returns the table: each attack that got through, or may have, on any fixture."""
    rows = [["attack", *columns], ["---", *[":-:"] * len(columns)]]
    for attack in attacks:
        cells = [column.get(attack, "") for column in columns.values()]
        if {WORDS["finding"], WORDS["unclear"], HIDDEN} & set(cells):
            rows.append([f"`{attack}`", *cells])
    rows.append(["number of **yes**", *[str(list(column.values()).count(WORDS["finding"])) for column in columns.values()]])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def main():
    write = sys.argv[1] == "--write"
    page, folder, *names = sys.argv[2:] if write else sys.argv[1:]
    with open(page) as file:
        text = file.read()
    before, rest = text.split(START)
    old, after = rest.split(END)
    columns, attacks = read_runs(folder, names)
    if write:
        with open(page, "w") as file:
            file.write(before + START + table(columns, attacks) + END + after)
        return
    new = table(read_table(old) | columns, attacks)
    if new != old:
        changes = difflib.unified_diff(old.splitlines(), new.splitlines(), page, "the runs", n=0, lineterm="")
        sys.exit(f"{page} is not what the runs showed:\n" + "\n".join(changes))


main()
