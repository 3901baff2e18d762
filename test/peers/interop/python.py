"""Makes and opens tokens with the Python SDK's request-state boundary. The program
reads one JSON object per line from standard input, and answers each with one JSON object
on a line."""

import asyncio
import json
import logging
import sys
from dataclasses import dataclass
from typing import Any

from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

logging.disable(logging.CRITICAL)


@dataclass
class Context:
    method: str
    params: dict[str, Any]


def params_of(case):
    name = "uri" if case["method"] == "resources/read" else "name"
    return {name: case["target"], "arguments": json.loads(case["arguments"])}


async def answer(case):
    security = RequestStateSecurity(
        keys=[bytes.fromhex(key) for key in case["keys"]],
        bind_principal=lambda _: case["principal"],
        audience=case["audience"],
    )
    boundary = RequestStateBoundary(security, default_audience=None)
    params = params_of(case)
    if case["op"] == "mint":

        async def asks(_):
            return {"resultType": "input_required", "inputRequests": {}, "requestState": case.get("state", "")}

        result = await boundary(Context(case["method"], params), asks)
        return {"Token": result["requestState"]}

    seen = {}

    async def sees(ctx):
        seen.update(ctx.params)
        return {}

    try:
        await boundary(Context(case["method"], {**params, "requestState": case["token"]}), sees)
    except MCPError as error:
        return {"Rejected": error.error.message}
    return {"State": seen["requestState"]}


async def main():
    for line in sys.stdin:
        try:
            reply = await answer(json.loads(line))
        except Exception as error:
            reply = {"Error": repr(error)}
        print(json.dumps(reply), flush=True)


asyncio.run(main())
