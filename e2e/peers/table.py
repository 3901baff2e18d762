"""Compares what the probe found on the fixtures with the table in a page.

table.py PAGE FOLDER NAME…   reads FOLDER/NAME.json
table.py --write PAGE FOLDER NAME…   puts the table into the page instead
"""
import json
import sys

WORDS = {
    "finding": "**yes**", "refused": "no", "information": "(info)", "accepted-risk": "(risk)",
    "not-tried": "–", "refused-before-the-check": "·", "unclear": "?",
}
START, END = "<!-- the table of the runs -->\n", "<!-- the end of the table -->\n"


def table(folder, names):
    reports = {name: json.load(open(f"{folder}/{name}.json")) for name in names}
    verdicts = {name: {r["id"]: r["verdict"] for r in report["results"]} for name, report in reports.items()}
    order = sorted({i for v in verdicts.values() for i in v})
    lines = ["| attack | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for attack in order:
        cells = [WORDS[verdicts[name][attack]] for name in names]
        if any(c in ("**yes**", "?") for c in cells):
            lines.append(f"| `{attack}` | " + " | ".join(cells) + " |")
    count = [str(sum(v == "finding" for v in verdicts[name].values())) for name in names]
    lines.append("| classes that got through | " + " | ".join(count) + " |")
    return "\n".join(lines) + "\n"


def columns(text):
    """The cells of a table, by the name of the row and of the column."""
    rows = [[c.strip() for c in line.strip("|\n ").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {(row[0], name): cell for row in rows[2:] for name, cell in zip(rows[0][1:], row[1:])}


def main():
    write = sys.argv[1] == "--write"
    page, folder, *names = sys.argv[2:] if write else sys.argv[1:]
    text = open(page).read()
    before, rest = text.split(START)
    old, after = rest.split(END)
    new = table(folder, names)
    if write:
        open(page, "w").write(before + START + new + END + after)
        return
    print(new)
    known, seen = columns(old), columns(new)
    wrong = [f"{row}, {name}: the page says {known.get((row, name), 'nothing')}, the run {cell}" for (row, name), cell in seen.items()
             if known.get((row, name), "no" if cell in ("no", "–", "·", "(info)") else "nothing") != cell and not
             ((row, name) not in known and cell in ("no", "–", "·", "(info)"))]
    wrong += [f"{row}, {name}: the page says {cell}, the run nothing" for (row, name), cell in known.items()
              if name in names and cell == "**yes**" and (row, name) not in seen]
    if wrong:
        sys.exit("docs/peers.md is not what the runs showed:\n" + "\n".join(wrong))


main()
