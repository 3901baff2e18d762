"""Opens one token with the Python SDK's boundary, over and over. The first line
of standard input is the case; every further line is a count, answered with the
nanoseconds that this many took."""

import asyncio
import json
import logging
import sys
import time
from dataclasses import dataclass
from typing import Any

from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

logging.disable(logging.CRITICAL)


@dataclass
class Context:
    method: str
    params: dict[str, Any]


async def main():
    case = json.loads(sys.stdin.readline())
    security = RequestStateSecurity(
        keys=[bytes.fromhex(case["key"])], bind_principal=lambda _: case["principal"], audience=case["audience"]
    )
    boundary = RequestStateBoundary(security, default_audience=None)
    context = Context("tools/call", {"name": case["target"], "arguments": json.loads(case["arguments"]), "requestState": case["token"]})
    state = None

    async def handler(ctx):
        nonlocal state
        state = ctx.params["requestState"]
        return {}

    for line in sys.stdin:
        count = int(line)
        start = time.perf_counter_ns()
        for _ in range(count):
            await boundary(context, handler)
        took = time.perf_counter_ns() - start
        print(took if state == case["state"] else "the state differs", flush=True)


asyncio.run(main())
