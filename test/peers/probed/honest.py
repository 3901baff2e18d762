"""An honest client's calls to a fixture server: python honest.py URL NAME

Checks that a tool asks once with a state, and that it acts after the answer, so that a
failed attack on the server means something. Standard library alone, so that it sees what is
on the wire.
"""
import json
import sys
import urllib.error
import urllib.request

REVISION = "2026-07-28"


def send(url, method, params, token="alice-token"):
    """Posts one request. Returns the message that answers it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "honest", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": REVISION,
        "Mcp-Method": method,
        "Authorization": f"Bearer {token}",
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        text = response.read().decode()
    # The answer is a JSON text, or the last event of a stream.
    events = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    return json.loads(events[-1] if events else text)


def result_of(message):
    assert "result" in message, message
    return message["result"]


def text_of(result):
    assert result.get("resultType", "complete") == "complete" and not result.get("isError"), result
    return result["content"][0]["text"]


def ask(url, call, **retry):
    """Expects the tool to ask its one question. Returns the question's key and the state."""
    result = result_of(send(url, "tools/call", {**call, **retry}))
    assert result.get("resultType") == "input_required", result
    ((key, question),) = result["inputRequests"].items()
    assert question["method"] == "elicitation/create", result
    assert question["params"]["requestedSchema"]["properties"]["ok"]["type"] == "boolean", result
    assert result["requestState"], result
    return key, result["requestState"]


def retry(url, call, key, state, answer):
    return result_of(send(url, "tools/call", {**call, "requestState": state, "inputResponses": {key: answer}}))


def tools(url):
    """Follows the cursors of tools/list. Returns the names, and the number of pages."""
    names, cursor = [], {}
    for page in range(1, 20):
        result = result_of(send(url, "tools/list", cursor))
        names += [tool["name"] for tool in result["tools"]]
        if not result.get("nextCursor"):
            return names, page
        cursor = {"cursor": result["nextCursor"]}
    raise AssertionError(f"tools/list does not end: {names}")


def has_users(url):
    """Reports whether the server refuses the bearer token of a user whom it does not know."""
    result_of(send(url, "tools/list", {}, "bob-token"))
    try:
        result_of(send(url, "tools/list", {}, "mallory-token"))
    except urllib.error.HTTPError as refusal:
        assert refusal.code == 401, refusal
        return True
    return False


def main(url, name):
    for tool, done in [("deploy", "deployed"), ("rollback", "rolled back")]:
        call = {"name": tool, "arguments": {"env": "staging", "build": 7}}
        key, state = ask(url, call)
        key, state = ask(url, call, requestState=state)  # without the answer it asks again
        text = text_of(retry(url, call, key, state, {"action": "accept", "content": {"ok": True}}))
        assert text == f"{done} staging build 7", text
        key, state = ask(url, call)
        text = text_of(retry(url, call, key, state, {"action": "decline"}))
        assert text == "nothing was done", text
    names, pages = tools(url)
    assert {"deploy", "rollback"} <= set(names), names
    print(f"{name}: an honest client is served; {'two users' if has_users(url) else 'no users'}, {pages} page(s) of tools")


main(*sys.argv[1:])
