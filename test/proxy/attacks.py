"""Attacks on the servers in test/peers/proxied, as raw requests. It needs only the standard library.

  python attacks.py run RESULTS URL        sends every attack; CANARY and JOURNAL must be set
  python attacks.py run RESULTS COMMAND…   sends them to a server on stdio
  python attacks.py table RESULTS…         prints what got through, and fails if anything got
                                           through the proxy or a door, or if an attack works
                                           nowhere without them; the names of RESULTS without
                                           them begin with "direct"

An attack got through if the server saw a state or a cursor that it had not issued to this user
for this request, or if it acted on answers to questions that it had not asked.
"""
import gzip
import http.client
import json
import os
import socket
import subprocess
import sys
import urllib.parse

REVISION = "2026-07-28"
PREFIX = "test_input_required_result_"
MULTI = PREFIX + "multi_round"
STATE = PREFIX + "request_state"
BLUE = {"step2": {"action": "accept", "content": {"color": "blue"}}}
YES = {"confirm": {"action": "accept", "content": {"ok": True}}}
FORGED = "Mallory|x|y"


class Target:
    def __init__(self, url, journal):
        self.url, self.journal = urllib.parse.urlsplit(url), journal
        self.received = []  # everything that came back, for the search for the canary

    def post(self, body, headers, chunked=False):
        """Posts bytes. Returns the status and the text of the answer."""
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=20)
        try:
            connection.request("POST", self.url.path, iter([body[:9], body[9:]]) if chunked else body, headers, encode_chunked=chunked)
            response = connection.getresponse()
            content = response.read()
            self.received += [str(response.headers), content.decode("utf-8", "replace")]
            return response.status, content.decode("utf-8", "replace")
        finally:
            connection.close()

    def send(self, method, params, user="alice", text=None, body=None, chunked=False, drop=(), **changed):
        """Posts a request. If text or body is given, it replaces the JSON text or the bytes of the
        body. The keyword arguments in changed are HTTP headers."""
        params = {**params, "_meta": {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "attacks", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}, "sampling": {}, "roots": {}},
        }}
        if text is None:
            text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        elif callable(text):
            text = text(params)
        headers = {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": REVISION, "Mcp-Method": method, "X-User": user,
        }
        if name := params.get("name", params.get("uri")):
            headers["Mcp-Name"] = name
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
        for name in drop:
            headers.pop(name, None)
        return self.post(text.encode() if body is None else body(text), headers, chunked)

    def result(self, method, params, **options):
        """Sends an honest request. Returns its result."""
        status, text = self.send(method, params, **options)
        events = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
        message = json.loads((events or text.splitlines())[-1])
        assert status == 200 and "result" in message, (status, text)
        return message["result"]

    def ask(self, name, arguments=None, **options):
        return self.result("tools/call", {"name": name, "arguments": arguments or {}}, **options)["requestState"]

    def token(self, **options):
        """Returns a genuine state of the second round."""
        first = self.ask(MULTI, **options)
        step1 = {"step1": {"action": "accept", "content": {"name": "Alice"}}}
        return self.result("tools/call", call(first, step1), **options)["requestState"]

    def lines(self):
        try:
            with open(self.journal) as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []


class Process(Target):
    """A server on stdio. It has no headers and only one user. So an attack that uses another
    header or user becomes an honest request here, or the same as another attack."""

    def __init__(self, command, journal):
        self.url, self.journal, self.received, self.count = None, journal, [], 0
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def post(self, body, headers, chunked=False):
        """Sends the body as a line, and then another request. Returns what comes before the answer to
        that other request."""
        self.count += 1
        end, meta = f"end {self.count}", {"io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {}}
        last = {"jsonrpc": "2.0", "id": end, "method": "server/discover", "params": {"_meta": meta}}
        self.process.stdin.write(body + b"\n" + json.dumps(last).encode() + b"\n")
        self.process.stdin.flush()
        lines = []
        while line := self.process.stdout.readline().decode():
            self.received.append(line)
            if json.loads(line).get("id") == end:
                return 200, "".join(lines)
            lines.append(line)
        raise OSError("the server ended")

    def send(self, *args, **options):
        status, text = super().send(*args, **options)
        # Answers come in any order.
        while not text and options.get("body") is None:
            status, text = self.post(b"", {})
        return status, text

    def close(self):
        self.process.stdin.close()
        self.received.append(self.process.stdout.read().decode())
        self.process.wait(20)


def call(state, answers=BLUE, name=MULTI, arguments=None):
    params = {"name": name, "arguments": arguments or {}}
    if state is not None:
        params["requestState"] = state
    if answers is not None:
        params["inputResponses"] = answers
    return params


def flip(token):
    at = len(token) // 2
    return token[:at] + ("B" if token[at] == "A" else "A") + token[at + 1 :]


def message(params, inside="", after="", method="tools/call", name="params"):
    """Returns the text of a request. Its params begin with the text in inside. The text in after
    comes at its end, before the last brace."""
    text = json.dumps(params, ensure_ascii=False)
    return '{"jsonrpc":"2.0","id":1,"method":"%s","%s":{%s%s}%s' % (method, name, inside, text[1:-1], after) + "}"


def renamed(name, genuine=False):
    """A forged state in a member with another spelling. If genuine is true, a genuine state comes
    before it."""
    def attack(t):
        params = call(t.token() if genuine else None)
        text = lambda p: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s,"%s":"%s"}}' % (json.dumps(p)[:-1], name, FORGED)
        return t.send("tools/call", params, text=text)
    return attack


def encoded(encoding, prefix=b"", **headers):
    return lambda t: t.send("tools/call", call(FORGED), body=lambda text: prefix + text.encode(encoding), **headers)


def forged(drop=(), **headers):
    return lambda t: t.send("tools/call", call(FORGED), drop=drop, **headers)


def twice_params(t):
    text = lambda p: message(p, after=',"params":' + json.dumps({**p, "requestState": FORGED}))
    return t.send("tools/call", call(t.token()), text=text)


def params_in_another_case(t):
    text = lambda p: message(p, after=',"Params":' + json.dumps({**p, "requestState": FORGED}))
    return t.send("tools/call", call(t.token()), text=text)


def method_twice(t):
    text = lambda p: '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":%s}' % json.dumps(p)
    return t.send("tools/call", call(FORGED), text=text)


def method_in_another_case(t):
    text = lambda p: '{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call","params":%s}' % json.dumps(p)
    return t.send("tools/call", call(FORGED), text=text)


def batch(t):
    return t.send("tools/call", call(FORGED), text=lambda p: "[" + message(p) + "]", Mcp_Protocol_Version="2025-03-26")


def two_messages(t):
    first = '{"jsonrpc":"2.0","id":7,"method":"ping"}\n'
    return t.send("tools/call", call(FORGED), text=lambda p: first + message(p))


def trailing(t):
    return t.send("tools/call", call(FORGED), text=lambda p: message(p) + " x")


def old_body(t):
    """A request of an older revision, in its headers and in its body."""
    text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % json.dumps(call(FORGED))
    return t.send("tools/call", call(FORGED), text=text, Mcp_Protocol_Version="2025-06-18", drop=("Mcp-Method", "Mcp-Name"))


def forged_for(method, params):
    return lambda t: t.send(method, {**params, "requestState": FORGED})


def name_of_another_prompt(t):
    state = t.ask(STATE)
    return t.send("prompts/get", {"name": PREFIX + "prompt", "requestState": state})


def answers_in_another_case(t):
    text = lambda p: message(p, inside='"InputResponses":%s,' % json.dumps(BLUE))
    return t.send("tools/call", call(None, None), text=text)


def answers_escaped(t):
    text = lambda p: message(p, inside='"input\\u0052esponses":%s,' % json.dumps(BLUE))
    return t.send("tools/call", call(None, None), text=text)


def smuggled(t):
    """A second request behind a body for which two headers give different lengths. Both are sent as
    raw bytes on one connection."""
    if t.url is None:
        return t.send("tools/call", call(FORGED))
    body = message(call(FORGED)).encode()
    inner = (b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
             b"X-User: alice\r\nContent-Length: %d\r\n\r\n" % (t.url.path.encode(), len(body))) + body
    outer = (b"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nX-User: alice\r\n"
             b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (t.url.path.encode(), t.url.netloc.encode(), 5 + len(inner))) + inner
    with socket.create_connection((t.url.hostname, t.url.port), timeout=3) as s:
        s.sendall(outer)
        received = b""
        try:
            while piece := s.recv(65536):
                received += piece
        except TimeoutError:
            pass
    t.received.append(received.decode("utf-8", "replace"))
    return int(received[9:12] or 0) if received else 0, received.decode("utf-8", "replace")


def cursor(name="cursor", value="3|x|y", genuine=False):
    def attack(t):
        first = t.result("tools/list", {})["nextCursor"]
        inside = '"cursor":"%s",' % first if genuine else ""
        return t.send("tools/list", {}, text=lambda p: message(p, inside=inside + '"%s":"%s",' % (name, value), method="tools/list"))
    return attack


def changed_cursor(t):
    return t.send("tools/list", {"cursor": flip(t.result("tools/list", {})["nextCursor"])})


def two_answers(t):
    text = lambda p: message(p, after="").replace('"inputResponses": {', '"inputResponses": {"confirm":{"action":"decline"},')
    return t.send("tools/call", call(t.ask(STATE), YES, STATE), text=text)


# Each entry has the name of an attack, its function, and a text. The attack worked if the answer
# contains this text. If the text is None, the server's journal shows whether the attack worked.
ATTACKS = [
    ("made up", forged(), None),
    ("changed", lambda t: t.send("tools/call", call(flip(t.token()))), None),
    ("cut", lambda t: t.send("tools/call", call(t.token()[:-4])), None),
    ("made up, for a prompt", forged_for("prompts/get", {"name": PREFIX + "prompt"}), None),
    ("made up, for a resource", forged_for("resources/read", {"uri": "test://asks"}), None),
    ("empty", lambda t: t.send("tools/call", call("")), None),
    ("without a state", lambda t: t.send("tools/call", call(None)), " likes blue"),
    ("name with an escape", renamed("request\\u0053tate"), None),
    ("name with U+017F", renamed("reque\\u017ftState"), None),
    ("name in another case", renamed("RequestState"), None),
    ("name twice, the genuine one first", renamed("requestState", True), None),
    ("name twice, once with an escape", renamed("request\\u0053tate", True), None),
    ("name twice, once with U+017F", renamed("reque\\u017ftState", True), None),
    ("name twice, once in another case", renamed("requeststate", True), None),
    ("params twice", twice_params, None),
    ("params twice, once in another case", params_in_another_case, None),
    ("method twice", method_twice, None),
    ("method twice, once in another case", method_in_another_case, None),
    ("UTF-8 with a byte order mark", encoded("utf-8", b"\xef\xbb\xbf"), None),
    ("UTF-16 with a byte order mark", encoded("utf-16"), None),
    ("UTF-16 without one", encoded("utf-16-le"), None),
    ("UTF-16, and the header says so", encoded("utf-16", Content_Type="application/json; charset=utf-16"), None),
    ("UTF-32", encoded("utf-32"), None),
    ("body compressed with gzip", lambda t: t.send("tools/call", call(FORGED), body=lambda text: gzip.compress(text.encode()), Content_Encoding="gzip"), None),
    ("longer than any limit", lambda t: t.send("tools/call", call(FORGED, arguments={"padding": "x" * (5 << 20)})), None),
    ("body in chunks", lambda t: t.send("tools/call", call(FORGED), chunked=True), None),
    ("content type of a text", forged(Content_Type="text/plain"), None),
    ("batch", batch, None),
    ("second message after the first", two_messages, None),
    ("text after the message", trailing, None),
    ("older version in the header", forged(Mcp_Protocol_Version="2025-06-18"), None),
    ("no version in the header", forged(drop=("Mcp-Protocol-Version",)), None),
    ("request of an older revision", old_body, None),
    ("header names another method", forged(Mcp_Method="tools/list"), None),
    ("header names another tool", forged(Mcp_Name=STATE), None),
    ("no headers about the call", forged(drop=("Mcp-Method", "Mcp-Name")), None),
    ("upgrade to another protocol", forged(Connection="Upgrade", Upgrade="websocket"), None),
    ("second request behind a body of two lengths", smuggled, None),
    ("another tool's state", lambda t: t.send("tools/call", call(t.ask(PREFIX + "tampered_state"), YES, STATE)), None),
    ("state for other arguments", lambda t: t.send("tools/call", call(t.ask(STATE, {"env": "test"}), YES, STATE, {"env": "live"})), None),
    ("a tool's state for a prompt", name_of_another_prompt, None),
    ("another user's state", lambda t: t.send("tools/call", call(t.token()), user="bob"), None),
    ("answer to a question of a later round", lambda t: t.send("tools/call", call(t.ask(MULTI))), " likes blue"),
    ("answers before any question, name in another case", answers_in_another_case, " likes blue"),
    ("answers before any question, name with an escape", answers_escaped, " likes blue"),
    ("two answers to one question", two_answers, "state-ok"),
    ("cursor made up", cursor(), None),
    ("cursor changed", changed_cursor, None),
    ("cursor's name with an escape", cursor("curs\\u006fr"), None),
    ("cursor's name in another case", cursor("Cursor"), None),
    ("cursor twice, the genuine one first", cursor(genuine=True), None),
    ("another user's cursor", lambda t: t.send("tools/list", {"cursor": t.result("tools/list", {})["nextCursor"]}, user="bob"), None),
]


def strangers(lines):
    """Returns the states and cursors that the server got without having issued them for this request."""
    issued = {(line["text"], line["method"], line["request"], line["user"]) for line in lines if line["event"] == "issued"}
    return [line for line in lines if line["event"] == "got" and (line["text"], line["method"], line["request"], line["user"]) not in issued]


def run(results, *command):
    canary, seen = os.environ["CANARY"], {}
    t = (Target if command[0].startswith("http://") else Process)(command[0] if len(command) == 1 else command, os.environ["JOURNAL"])
    assert len(canary) >= 16, "CANARY must be a long random text"

    def honest():
        for name, answers, want in [(MULTI, BLUE, "Alice likes blue"), (STATE, YES, "state-ok: asked, true")]:
            state = t.token() if name == MULTI else t.ask(name)
            text = t.result("tools/call", call(state, answers, name))["content"][0]["text"]
            assert text == want, text
        tools, at = [], {}
        for _ in range(9):
            page = t.result("tools/list", at)
            tools += page["tools"]
            if "nextCursor" not in page:
                break
            at = {"cursor": page["nextCursor"]}
        assert len(tools) == 8, tools

    honest()
    for name, attack, shows in ATTACKS:
        before = len(strangers(t.lines()))
        try:
            status, text = attack(t)
        except (OSError, http.client.HTTPException) as e:
            status, text = 0, str(e)
        through = len(strangers(t.lines())) > before or (shows is not None and shows in text) or "Mallory" in text
        seen[name] = {"through": through, "status": status, "answer": text[:300]}
    honest()
    if isinstance(t, Process):
        t.close()
    lines, everything = t.lines(), "\n".join(t.received)
    got = sum(line["event"] == "got" for line in lines)
    assert got >= 10, f"the server got {got} states and cursors"
    with open(results, "w") as file:
        json.dump({"attacks": seen, "strangers": strangers(lines), "got": got, "leaks": everything.count(canary)}, file, indent=1)


def table(*files):
    columns = {}
    for file in files:
        with open(file) as f:
            columns[os.path.basename(file).removesuffix(".json")] = json.load(f)
    direct = [c for c in columns if c.startswith("direct")]
    proxied = [c for c in columns if not c.startswith("direct")]
    problems = [] if direct and proxied else ["results with and without the proxy or a door are needed"]
    print(f"{'got through':52}" + " ".join(f"{c.removeprefix('direct-'):12}" for c in direct) + " behind a proxy or door")
    for name, _, _ in ATTACKS:
        through = {c: columns[c]["attacks"][name]["through"] for c in columns}
        behind = [c for c in proxied if through[c]]
        print(f"{name:52}" + " ".join(f"{'yes' if through[c] else '-':12}" for c in direct) + f" {', '.join(behind) or '-'}")
        if behind:
            problems.append(f"{name}: got through behind a proxy or door: {behind}")
        if not any(through[c] for c in direct):
            problems.append(f"{name}: works on no server without the proxy or a door, so that the attack means nothing")
    for c in proxied:
        if columns[c]["strangers"]:
            problems.append(f"{c}: the server saw {columns[c]['strangers']}")
        if columns[c]["leaks"]:
            problems.append(f"{c}: the canary was found {columns[c]['leaks']} times")
        if not columns[c]["strangers"] and not columns[c]["leaks"]:
            print(f"{c}: the server got {columns[c]['got']} states and cursors, all of them its own; no canary")
    for c in direct:
        if not columns[c]["leaks"]:
            problems.append(f"{c}: the canary was not found, so that the search means nothing")
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(ATTACKS)} attacks: each works on a server without protection, none works behind the proxy or a door ({len(proxied)} runs)")


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]](*sys.argv[2:])
