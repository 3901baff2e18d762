"""A client on the official Python SDK. It goes through the flows of the servers in
test/peers/proxied: python client.py URL, or python client.py COMMAND ARGUMENT… for a server on stdio.
With REVISION=legacy in the environment it is an older client, whom the server's SDK asks with a request of
its own, and goes through one flow; over HTTP, with a session and the notifications of its stream. If
WITHOUT has the word resource, no resource asks.
"""
import asyncio
import os
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, PromptListChangedNotification, Root, TextContent

PREFIX = "test_input_required_result_"
ANSWERS = {"name": "Alice", "color": "blue", "context": "tests", "ok": True}
SILENT = "resource" in os.environ.get("WITHOUT", "").split()
LEGACY = os.environ.get("REVISION") == "legacy"


async def answer(context, params) -> ElicitResult:
    return ElicitResult(action="accept", content={field: ANSWERS[field] for field in params.requested_schema["properties"]})


async def sample(context, params) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", model="e2e", content=TextContent(type="text", text="Good morning,"))


async def roots(context) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///work", name="work")])


async def rejected(call) -> None:
    try:
        result = await call
    except MCPError as e:
        assert e.error.code == -32602, e
        return
    raise AssertionError(f"a changed state gives {result}")


announced = asyncio.Event()


async def received(message) -> None:
    if isinstance(message, PromptListChangedNotification):
        announced.set()


async def main() -> None:
    over_http = sys.argv[1].startswith("http://")
    if over_http:
        transport = streamable_http_client(sys.argv[1])
    else:
        transport = stdio_client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ)))
    options = {
        "elicitation_callback": answer, "sampling_callback": sample, "list_roots_callback": roots, "message_handler": received,
    }
    async with Client(transport, **options, mode="legacy" if LEGACY else "2026-07-28") as client:
        names, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            if (cursor := page.next_cursor) is None:
                break
        assert len(set(names)) == 8, names

        async def call(tool, want):
            result = await client.call_tool(PREFIX + tool, {})
            assert result.content[0].text == want, result

        if LEGACY:
            await call("request_state", "state-ok: asked, true")
            for _ in range(100 * over_http):  # the stream may begin after the first call
                await client.call_tool(PREFIX + "request_state", {"announce": True})
                await asyncio.sleep(0.1)
                if announced.is_set():
                    break
            assert announced.is_set() or not over_http, "no notification came"
            print("Python client, older revision: 1 flow" + ", notified" * announced.is_set())
            return

        await call("multi_round", "Alice likes blue")
        accepted = ElicitResult(action="accept", content={"color": "red"})
        await rejected(client.call_tool(PREFIX + "multi_round", {}, request_state="Mallory|x|y", input_responses={"step2": accepted}))
        await call("multiple_inputs", "Good morning, Alice, with 1 roots")
        prompt = await client.get_prompt(PREFIX + "prompt")
        assert prompt.messages[0].content.text == "With this in mind: tests", prompt
        resource = await client.read_resource("test://asks")
        asked = "nothing is asked" if SILENT else "state-ok: asked, true"
        assert resource.contents[0].text == asked, resource

        first = await client.session.call_tool(PREFIX + "request_state", {}, allow_input_required=True)
        token, at = first.request_state, len(first.request_state) // 2
        other = token[:at] + ("B" if token[at] == "A" else "A") + token[at + 1 :]
        accepted = {"confirm": ElicitResult(action="accept", content={"ok": True})}
        await rejected(client.call_tool(PREFIX + "request_state", {}, request_state=other, input_responses=accepted))
        done = await client.call_tool(PREFIX + "request_state", {}, request_state=token, input_responses=accepted)
        assert done.content[0].text == "state-ok: asked, true", done
    print(f"Python client: {5 - SILENT} flows, 2 rejections")


asyncio.run(asyncio.wait_for(main(), 60))
