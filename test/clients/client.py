"""The Python SDK's client goes through the deploy flow, and through the booking flow if
it gets a URL for it, on both revisions: python client.py DEPLOY-URL [BOOKING-URL]
"""
import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult, TextContent


async def call(url, mode, tool, arguments, answers):
    """Calls a tool as a user who answers a form by its fields."""
    asked = []

    async def answer(context, params) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={field: answers[field] for field in params.requested_schema["properties"]})

    async def sample(context, params) -> CreateMessageResult:
        asked.append("sample")
        return CreateMessageResult(role="assistant", model="e2e", content=TextContent(type="text", text="Looking forward!"))

    async with httpx2.AsyncClient(headers={"Authorization": "Bearer alice-token"}) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=answer, sampling_callback=sample, mode=mode) as client:
            return await client.call_tool(tool, arguments), asked


async def flow(mode: str, deploy: str, booking: str = "") -> None:
    result, asked = await call(deploy, mode, "deploy", {"service": "frontend", "version": "1.4.2"}, {"ok": True, "name": "eu"})
    text = result.content[0].text
    assert text == "deployed frontend 1.4.2 in eu, 10% of traffic", text
    assert asked == ["Really do this to frontend 1.4.2?", "In which region?"], asked
    print(f"Python client, {mode}: {text}")

    if not booking:
        return
    answers = {"name": "Ada", "bags": 2, "flight": "TS101", "ok": True}
    result, asked = await call(booking, mode, "book", {"city": "Rome"}, answers)
    booked = result.structured_content
    assert booked["text"] == "booked Ada on flight TS101 to Rome for 180", result
    assert len(asked) == 3, (booked, asked)
    print(f"Python client, {mode}: {booked['text']}")


for mode in ["2026-07-28", "legacy"]:
    asyncio.run(asyncio.wait_for(flow(mode, *sys.argv[1:]), 60))
