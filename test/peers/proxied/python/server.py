"""A server on the low-level Server of the official Python SDK, without its
RequestStateBoundary: python server.py [--port N] [--answers json|sse] [--stdio]

It does what ../go/main.go does.
"""
import argparse
import asyncio
import json
import os
import secrets
import socket

import uvicorn
from mcp import MCPError
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListRootsRequest,
    ListRootsResult,
    ListToolsResult,
    Prompt,
    PromptMessage,
    ReadResourceResult,
    RequestParams,
    Resource,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    Tool,
)

PREFIX = "test_input_required_result_"
NAMES = ["capabilities", "elicitation", "list_roots", "multi_round", "multiple_inputs", "request_state", "sampling", "tampered_state"]
PAGE = 3


# The Go client cannot read a question without params.
ROOTS = ListRootsRequest(params=RequestParams())


def form(message, field, kind):
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(message):
    content = TextContent(type="text", text=message)
    return CreateMessageRequest(params=CreateMessageRequestParams(max_tokens=100, messages=[SamplingMessage(role="user", content=content)]))


class Round:
    """The answers of one round."""

    def __init__(self, responses):
        self.responses = responses or {}

    def form(self, key, field, kind):
        answer = self.responses.get(key)
        value = (answer.content or {}).get(field) if isinstance(answer, ElicitResult) and answer.action == "accept" else None
        return value if isinstance(value, kind) else None

    def sample(self, key):
        answer = self.responses.get(key)
        content = getattr(answer, "content", None) if not isinstance(answer, ElicitResult) else None
        content = content[0] if isinstance(content, list) and content else content
        return content.text if isinstance(content, TextContent) else None

    def roots(self, key):
        answer = self.responses.get(key)
        return [str(root.uri) for root in answer.roots] if isinstance(answer, ListRootsResult) else None

    def refused(self):
        return any(isinstance(a, ElicitResult) and a.action != "accept" for a in self.responses.values())


def play(name, value, r, can):
    """What all the fixtures do. Returns a text, or questions, and the value for the next state."""
    if r.refused():
        return "nothing was done", None
    name_form = form("What is your name?", "name", "string")
    if name == "elicitation":
        if given := r.form("user_name", "name", str):
            return f"Hello, {given}!", None
        return {"user_name": name_form}, None
    if name == "sampling":
        return r.sample("capital_question") or {"capital_question": sample("What is the capital of France?")}, None
    if name == "list_roots":
        if (uris := r.roots("client_roots")) is not None:
            return f"{len(uris)} roots: {' '.join(uris)}", None
        return {"client_roots": ROOTS}, None
    if name == "multiple_inputs":
        given, greeting, uris = r.form("user_name", "name", str), r.sample("greeting"), r.roots("client_roots")
        if given and greeting and uris is not None:
            return f"{greeting} {given}, with {len(uris)} roots", None
        return {"user_name": name_form, "greeting": sample("Generate a greeting"), "client_roots": ROOTS}, "all three"
    if name == "multi_round":
        if color := r.form("step2", "color", str):
            return f"{value} likes {color}", None
        if given := r.form("step1", "name", str):
            return {"step2": form("Step 2: What is your favorite color?", "color", "string")}, given
        return {"step1": form("Step 1: What is your name?", "name", "string")}, "step 1"
    if name == "capabilities":
        questions, answered = {}, True
        if "elicitation" in can:
            questions["user_name"] = name_form
            answered = bool(r.form("user_name", "name", str))
        if "sampling" in can:
            questions["greeting"] = sample("Generate a greeting")
            answered = answered and bool(r.sample("greeting"))
        return ("thank you" if not questions or answered else questions), None
    if name == "prompt":
        if given := r.form("user_context", "context", str):
            return f"With this in mind: {given}", None
        return {"user_context": form("What context should the prompt use?", "context", "string")}, None
    if name not in ("request_state", "tampered_state", "test://asks"):
        raise MCPError(INVALID_PARAMS, f"{name} is unknown")
    ok = r.form("confirm", "ok", bool)
    if ok is not None and value:
        return f"state-ok: {value}, {str(ok).lower()}", None
    return {"confirm": form("Please confirm", "ok", "boolean")}, "asked"


def journal(event, kind, text, ctx, request):
    if path := os.environ.get("JOURNAL"):
        user = ctx.request.headers.get("x-user", "") if ctx.request is not None else ""
        line = {"event": event, "kind": kind, "text": text, "method": ctx.method, "request": request, "user": user}
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")


def secret(value):
    return f"{value}|{secrets.token_hex(13)}|{os.environ.get('CANARY', '')}"


def serve(ctx, name, arguments, params):
    """Plays one round. Returns a text or an InputRequiredResult."""
    request = f"{name} {json.dumps(arguments)}"
    state = params.request_state
    if state is not None:
        journal("got", "state", state, ctx, request)
    can = (ctx.meta or {}).get("io.modelcontextprotocol/clientCapabilities") or {}
    said, value = play(name.removeprefix(PREFIX), (state or "").split("|")[0], Round(params.input_responses), can)
    if isinstance(said, str):
        return said
    state = None
    if value is not None:
        state = secret(value)
        journal("issued", "state", state, ctx, request)
    return InputRequiredResult(input_requests=said, request_state=state)


async def list_tools(ctx, params):
    cursor = params.cursor if params is not None else None
    if cursor is not None:
        journal("got", "cursor", cursor, ctx, "")
    start = int(cursor.split("|")[0]) if cursor is not None else 0
    tools = [Tool(name=PREFIX + name, input_schema={"type": "object"}) for name in NAMES[start : start + PAGE]]
    after = None
    if start + PAGE < len(NAMES):
        after = secret(str(start + PAGE))
        journal("issued", "cursor", after, ctx, "")
    return ListToolsResult(tools=tools, next_cursor=after)


async def call_tool(ctx, params):
    said = serve(ctx, params.name, params.arguments, params)
    return CallToolResult(content=[TextContent(type="text", text=said)]) if isinstance(said, str) else said


async def list_prompts(ctx, params):
    return ListPromptsResult(prompts=[Prompt(name=PREFIX + "prompt")])


async def get_prompt(ctx, params):
    said = serve(ctx, params.name, params.arguments, params)
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=said))]) if isinstance(said, str) else said


async def list_resources(ctx, params):
    return ListResourcesResult(resources=[Resource(uri="test://asks", name="asks")])


async def read_resource(ctx, params):
    said = serve(ctx, str(params.uri), None, params)
    return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text=said)]) if isinstance(said, str) else said


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0, help="0 means a free one")
    parser.add_argument("--answers", choices=["json", "sse"], default="sse")
    parser.add_argument("--stdio", action="store_true")
    flags = parser.parse_args()
    server = Server(
        "python-backend", version="1", on_list_tools=list_tools, on_call_tool=call_tool, on_list_prompts=list_prompts,
        on_get_prompt=get_prompt, on_list_resources=list_resources, on_read_resource=read_resource,
    )
    if flags.stdio:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return
    listener = socket.create_server(("127.0.0.1", flags.port))
    app = server.streamable_http_app(stateless_http=True, json_response=flags.answers == "json")
    print(f"serving http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


asyncio.run(main())
