"""A scripted embedding server: OpenAI's wire format, a fixed latency, vectors that mean nothing.

Run as a process of its own: `python -m benchmarks.embedding_server SECONDS` prints its port, then a
line for each request that it answers.
"""

import asyncio
import base64
import json
import sys
from array import array

import h11

DIMENSION = 256


async def serve(seconds: float) -> None:
    """Answer on a free port of loopback until the process ends."""
    server = await asyncio.start_server(lambda r, w: _answer(r, w, seconds), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
) -> None:
    connection = h11.Connection(h11.SERVER)
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(65_536))
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            await asyncio.sleep(seconds)
            writer.write(_reply(connection, json.loads(body)))
            await writer.drain()
            print("request", flush=True)
            body = b""
            connection.start_next_cycle()
        elif isinstance(event, h11.ConnectionClosed):
            writer.close()
            return


def _reply(connection: h11.Connection, request: dict[str, object]) -> bytes:
    texts = request["input"]
    count = len(texts) if isinstance(texts, list) else 1
    vector: object = [0.0625] * DIMENSION
    if request.get("encoding_format") == "base64":
        vector = base64.b64encode(array("f", [0.0625] * DIMENSION).tobytes()).decode()
    body = json.dumps(
        {
            "object": "list",
            "model": request["model"],
            "data": [
                {"object": "embedding", "index": i, "embedding": vector} for i in range(count)
            ],
            "usage": {"prompt_tokens": 0, "total_tokens": 0},
        }
    ).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return b"".join(
        connection.send(event) or b""
        for event in (
            h11.Response(status_code=200, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
    )


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
