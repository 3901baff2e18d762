"""Prints the verdict of the conformance suite on each check, from the files that its option -o
writes: python verdicts.py FOLDER
"""
import collections
import json
import pathlib
import re
import sys

lines = []
for file in pathlib.Path(sys.argv[1]).glob("server-*/checks.json"):
    scenario = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.name.removeprefix("server-"))
    # A check can come several times in a scenario.
    counts = collections.Counter((check["id"], check["status"]) for check in json.loads(file.read_text()))
    lines += [f"{scenario} {check} {status} {count}" for (check, status), count in counts.items() if status != "INFO"]
print("\n".join(sorted(lines)))
