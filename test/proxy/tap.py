"""Forwards connections, and keeps everything that the server sends, in a file for each
connection, FILE.1 and so on: python tap.py URL FILE
Searches such files for a text: python tap.py search TEXT FILE…

The search reports a hit if the text is in a file as it is, cut by the chunks of HTTP, or in
base64. Standard library alone.
"""
import asyncio
import base64
import re
import sys
import urllib.parse


async def tap(url, file):
    target = urllib.parse.urlsplit(url)
    connections = 0

    async def move(reader, writer, keep=None):
        try:
            while piece := await reader.read(65536):
                if keep is not None:
                    keep.write(piece)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader, writer):
        nonlocal connections
        connections += 1
        with open(f"{file}.{connections}", "ab", buffering=0) as keep:
            up_reader, up_writer = await asyncio.open_connection(target.hostname, target.port)
            await asyncio.gather(move(reader, up_writer), move(up_reader, writer, keep))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"serving http://127.0.0.1:{port}{target.path}", flush=True)
    await server.serve_forever()


def forms(text):
    """Returns the text, and its three forms in the base64 of a longer text. The form depends on the
    place where the text begins."""
    yield text
    for shift in range(3):
        yield base64.b64encode(b"\0" * shift + text)[4 * bool(shift) : -4]


def search(text, *files):
    hits = size = 0
    for file in files:
        with open(file, "rb") as f:
            content = f.read()
        size += len(content)
        whole = re.sub(rb"\r\n[0-9a-fA-F]+\r\n", b"", content)
        hits += sum(view.count(form) for view in (content, whole) for form in forms(text.encode()))
    print(hits, "hits in", size, "bytes")


if __name__ == "__main__":
    if sys.argv[1] == "search":
        search(*sys.argv[2:])
    else:
        try:
            asyncio.run(tap(*sys.argv[1:]))
        except KeyboardInterrupt:
            pass
