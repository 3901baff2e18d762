"""A client on the official Python SDK. It goes through the flows of the servers in
test/peers/proxied: python client.py URL, or python client.py COMMAND ARGUMENT… for a server on stdio.
"""
import asyncio
import os
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

PREFIX = "test_input_required_result_"
ANSWERS = {"name": "Alice", "color": "blue", "context": "tests", "ok": True}


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


async def main() -> None:
    if sys.argv[1].startswith("http://"):
        transport = streamable_http_client(sys.argv[1])
    else:
        transport = stdio_client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ)))
    async with Client(transport, elicitation_callback=answer, sampling_callback=sample, list_roots_callback=roots, mode="2026-07-28") as client:
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

        await call("multi_round", "Alice likes blue")
        accepted = ElicitResult(action="accept", content={"color": "red"})
        await rejected(client.call_tool(PREFIX + "multi_round", {}, request_state="Mallory|x|y", input_responses={"step2": accepted}))
        await call("multiple_inputs", "Good morning, Alice, with 1 roots")
        prompt = await client.get_prompt(PREFIX + "prompt")
        assert prompt.messages[0].content.text == "With this in mind: tests", prompt
        resource = await client.read_resource("test://asks")
        assert resource.contents[0].text == "state-ok: asked, true", resource

        first = await client.session.call_tool(PREFIX + "request_state", {}, allow_input_required=True)
        token, at = first.request_state, len(first.request_state) // 2
        other = token[:at] + ("B" if token[at] == "A" else "A") + token[at + 1 :]
        accepted = {"confirm": ElicitResult(action="accept", content={"ok": True})}
        await rejected(client.call_tool(PREFIX + "request_state", {}, request_state=other, input_responses=accepted))
        done = await client.call_tool(PREFIX + "request_state", {}, request_state=token, input_responses=accepted)
        assert done.content[0].text == "state-ok: asked, true", done
    print("Python client: 5 flows, 2 rejections")


asyncio.run(asyncio.wait_for(main(), 60))
