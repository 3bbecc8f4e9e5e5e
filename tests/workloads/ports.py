# SPDX-License-Identifier: Apache-2.0
"""A program with a port, for `job forward`: what a connection's first line asks for is what it gets."""
import asyncio
import os
import sys


async def serve(reader, writer):
    word = (await reader.readline()).decode().split()
    if word[:1] == ["echo"]:  # every byte comes back
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    elif word[:1] == ["give"]:  # so many bytes
        left = int(word[1])
        while left > 0:
            piece = min(left, 1 << 18)
            writer.write(b"\0" * piece)
            await writer.drain()
            left -= piece
    elif word[:1] == ["who"]:
        writer.write(f"{os.environ['GRIDCTL_ATTEMPT']} {os.uname().nodename}\n".encode())
        await writer.drain()
    elif word[:1] == ["sleep"]:  # nothing is read for ever
        await asyncio.sleep(600)
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=2048)
    print("listening", flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
