"""The Python SDK's client goes through the deploy flow, on both revisions:
python client.py URL
"""
import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


async def flow(url: str, mode: str) -> None:
    asked = []

    async def answer(context, params) -> ElicitResult:
        asked.append(params.message)
        field = next(iter(params.requested_schema["properties"]))
        return ElicitResult(action="accept", content={field: True if field == "ok" else "eu"})

    async with httpx2.AsyncClient(headers={"Authorization": "Bearer alice-token"}) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=answer, mode=mode) as client:
            result = await client.call_tool("deploy", {"service": "frontend", "version": "1.4.2"})
    text = result.content[0].text
    assert text == "deployed frontend 1.4.2 in eu, 10% of traffic", text
    assert asked == ["Really do this to frontend 1.4.2?", "In which region?"], asked
    print(f"Python client, {mode}: {text}")


for mode in ["2026-07-28", "legacy"]:
    asyncio.run(asyncio.wait_for(flow(sys.argv[1], mode), 60))
