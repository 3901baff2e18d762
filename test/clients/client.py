"""The Python SDK's client goes through the deploy flow, and through the booking flow if
it gets a URL for it, on both revisions: python client.py DEPLOY-URL [BOOKING-URL]

With "late", its user answers too late, and it must read what it gets:
python client.py late URL TOOL TEXT [legacy]
"""
import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult, TextContent


async def call(url, mode, tool, arguments, answers, thinks=0):
    """Calls a tool as a user who thinks for so many seconds, and answers a form by its fields. A field that
    nobody asked for is empty: the types of the SDK allow None.
    """
    asked = []

    async def answer(context, params) -> ElicitResult:
        asked.append(params.message)
        await asyncio.sleep(thinks)
        if params.mode == "url":
            async with httpx2.AsyncClient() as browser:
                (await browser.get(params.url)).raise_for_status()
            return ElicitResult(action="accept")
        content = {field: answers.get(field) for field in params.requested_schema["properties"]}
        return ElicitResult(action="accept", content={**content, "note": None})

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
    # The last is a link. The TypeScript client declares none, and gets a form.
    assert len(asked) == 3, (booked, asked)
    print(f"Python client, {mode}: {booked['text']}")


async def late(mode: str, url: str, tool: str, text: str) -> None:
    result, _ = await call(url, mode, tool, {}, {}, thinks=1)
    assert result.is_error and result.content[0].text == text, result
    print(f"Python client, {mode}, too late: {result.content[0].text}")


for mode in ["2026-07-28", "legacy"]:
    if sys.argv[1] != "late":
        asyncio.run(asyncio.wait_for(flow(mode, *sys.argv[1:]), 60))
    elif mode != "legacy" or mode in sys.argv:
        asyncio.run(asyncio.wait_for(late(mode, *sys.argv[2:5]), 60))
