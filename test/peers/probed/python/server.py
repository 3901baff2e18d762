"""A server on the official Python SDK, for the probe to attack: python server.py [--port N] KIND

Three kinds, each in the way that the SDK's pages show:

  resolver  MCPServer, and a dependency that asks ("Dependencies"). The SDK builds the state.
  manual    MCPServer, and a tool that returns InputRequiredResult ("Multi-round-trip requests").
  lowlevel  Server, the low-level one, without its RequestStateBoundary, which it does not
            install by itself ("The low-level Server"). It pages its list ("Pagination").

MCPServer seals every state by default, with a key of its own process, and binds it to the
request and to the user. The low-level Server sends it as the handler wrote it.

The SDK's documented use: the servers, the token verifier, and how a question is asked. The
handler's own: what the state contains, and that it is believed.
"""
import argparse
import asyncio
import json
import socket
from typing import Annotated

import uvicorn
from mcp.server import Server
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)
from pydantic import BaseModel

FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
NOTHING = "nothing was done"


class Users:
    """Knows two bearer tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        user = token.removesuffix("-token")
        if user == token or user not in ("alice", "bob"):
            return None
        return AccessToken(token=token, client_id="probe", subject=user, scopes=[])


def question(env: str, build: int) -> str:
    return f"Really do this to {env}, build {build}?"


def ask(env: str, build: int) -> InputRequiredResult:
    """Asks by hand, and remembers the environment in the state."""
    params = ElicitRequestFormParams(message=question(env, build), requested_schema=FORM)
    return InputRequiredResult(
        input_requests={"confirm": ElicitRequest(params=params)},
        request_state=json.dumps({"step": "confirm", "env": env}),
    )


def act(done: str, env: str, build: int, responses, state) -> str | InputRequiredResult:
    """What both tools do, where the handler asks by hand."""
    answer = (responses or {}).get("confirm")
    if not isinstance(answer, ElicitResult):
        return ask(env, build)
    if answer.action != "accept" or (answer.content or {}).get("ok") is not True:
        return NOTHING
    # If there is no state, env stays the argument of the call. Like the example on the SDK's page,
    # this handler looks only at the answer.
    if state is not None:
        env = json.loads(state)["env"]  # the handler believes what came back
    return f"{done} {env} build {build}"


def resolver(**auth) -> MCPServer:
    server = MCPServer("python-resolver", **auth)

    class Confirmation(BaseModel):
        ok: bool

    async def confirm(env: str, build: int) -> Elicit[Confirmation]:
        return Elicit(question(env, build), Confirmation)

    def answer(done: str, env: str, build: int, outcome) -> str:
        agreed = isinstance(outcome, AcceptedElicitation) and outcome.data.ok
        return f"{done} {env} build {build}" if agreed else NOTHING

    @server.tool()
    async def deploy(env: str, build: int, outcome: Annotated[ElicitationResult[Confirmation], Resolve(confirm)]) -> str:
        return answer("deployed", env, build, outcome)

    @server.tool()
    async def rollback(env: str, build: int, outcome: Annotated[ElicitationResult[Confirmation], Resolve(confirm)]) -> str:
        return answer("rolled back", env, build, outcome)

    return server


def manual(**auth) -> MCPServer:
    server = MCPServer("python-manual", **auth)

    @server.tool()
    async def deploy(env: str, build: int, ctx: Context) -> str | InputRequiredResult:
        return act("deployed", env, build, ctx.input_responses, ctx.request_state)

    @server.tool()
    async def rollback(env: str, build: int, ctx: Context) -> str | InputRequiredResult:
        return act("rolled back", env, build, ctx.input_responses, ctx.request_state)

    return server


def lowlevel() -> Server:
    asking = {"deploy": "deployed", "rollback": "rolled back"}
    arguments = {
        "type": "object",
        "properties": {"env": {"type": "string"}, "build": {"type": "integer"}},
        "required": ["env", "build"],
    }
    tools = [Tool(name=name, input_schema=arguments) for name in asking]
    # These do not ask. They make tools/list longer than a page.
    tools += [Tool(name=name, input_schema={"type": "object"}) for name in ("history", "owners", "regions", "status", "versions")]

    async def list_tools(ctx, params) -> ListToolsResult:
        # As on the SDK's page "Pagination", the cursor is an offset in plain text.
        start = int(params.cursor) if params is not None and params.cursor is not None else 0
        end = start + 3
        return ListToolsResult(tools=tools[start:end], next_cursor=str(end) if end < len(tools) else None)

    async def call_tool(ctx, params) -> CallToolResult | InputRequiredResult:
        if params.name not in asking:
            return CallToolResult(content=[TextContent(type="text", text="none")])
        given = params.arguments or {}
        result = act(asking[params.name], given["env"], given["build"], params.input_responses, params.request_state)
        if isinstance(result, InputRequiredResult):
            return result
        return CallToolResult(content=[TextContent(type="text", text=result)])

    return Server("python-lowlevel", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["resolver", "manual", "lowlevel"])
    parser.add_argument("--port", type=int, default=0, help="0 means a free one")
    flags = parser.parse_args()

    listener = socket.create_server(("127.0.0.1", flags.port))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    settings = AuthSettings(issuer_url="https://issuer.example.com", resource_server_url=url, validate_token_resource=False)
    auth = {"auth": settings, "token_verifier": Users()}
    if flags.kind == "lowlevel":
        app = lowlevel().streamable_http_app(stateless_http=True, **auth)
    else:
        app = {"resolver": resolver, "manual": manual}[flags.kind](**auth).streamable_http_app(stateless_http=True)
    print(f"serving {url}", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


asyncio.run(main())
