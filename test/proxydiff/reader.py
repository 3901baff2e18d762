"""Prints what a Python program could see in JSON-RPC messages. See main.go."""
import base64
import json
import sys

PLACES = {
    "params": ("requestState", "cursor", "inputResponses"),
    "result": ("requestState", "nextCursor", "inputRequests"),
}


class Object(list):
    """All members of an object, also those that are there twice."""


def spellings(name):
    cut = name.split("\0")[0]
    for text in (cut, cut.replace("_", "").replace("-", "")):
        yield from (text, text.lower(), text.upper(), text.casefold())


def alike(name, wanted):
    return bool(set(spellings(name)) & set(spellings(wanted)))


def look(message):
    seen = {"method": [], "found": []}
    if not isinstance(message, Object):
        return None
    for outer, value in message:
        if alike(outer, "method"):
            seen["method"].append(value if isinstance(value, str) else "not a text")
        for place, names in PLACES.items():
            if not alike(outer, place) or not isinstance(value, Object):
                continue
            for inner, content in value:
                for name in names:
                    if alike(inner, name):
                        if isinstance(content, Object):
                            content = {"keys": [key for key, _ in content]}
                        seen["found"].append([place + "." + name, content])
    return seen


for line in sys.stdin:
    try:
        seen = look(json.loads(base64.b64decode(line), object_pairs_hook=Object, strict=False))
    except (ValueError, RecursionError):
        seen = None
    print(json.dumps(seen), flush=True)
