"""The official MCP client subscribes to files, and this process, which is neither client nor server, changes them.

usage: watch.py SERVER PLACE

Ends with 0 when everything held, and with a traceback otherwise. Makes its workspaces below PLACE.
"""

import pathlib
import sys
import warnings

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

# Nothing here takes longer unless something hangs.
PATIENCE_SECONDS = 60
ADDRESS = "stead:///notes"


def parameters(server, place, mode):
    root = place / f"workspace-{mode}"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "a.txt").write_text("one\n")
    arguments = ["mcp", "--workspace", str(root), "--state", str(place / f"state-{mode}")]
    return root, StdioServerParameters(command=server, args=arguments)


async def legacy(server, place):
    root, server = parameters(server, place, "legacy")
    send, receive = anyio.create_memory_object_stream(100)

    async def heard(message):
        uri = getattr(getattr(message, "params", None), "uri", None)
        if uri is not None:
            await send.send(str(uri))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with Client(server, mode="legacy", message_handler=heard) as client:
            await client.subscribe_resource(ADDRESS)
            (root / "notes" / "a.txt").write_text("two\n")
            assert await receive.receive() == ADDRESS
            read = await client.read_resource(ADDRESS + "/a.txt")
            assert read.contents[0].text == "two\n", read
            await client.unsubscribe_resource(ADDRESS)
            print("legacy hears", ADDRESS)


async def modern(server, place):
    root, server = parameters(server, place, "modern")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with Client(server, mode="2026-07-28") as client:
            async with client.listen(resource_subscriptions=[ADDRESS]) as subscription:
                events = aiter(subscription)
                # Once the watch stands the client is told to look, because something may have changed meanwhile.
                assert str((await anext(events)).uri) == ADDRESS
                (root / "notes" / "b.txt").write_text("new\n")
                assert str((await anext(events)).uri) == ADDRESS
            read = await client.read_resource(ADDRESS + "/b.txt")
            assert read.contents[0].text == "new\n", read
            print("modern hears", ADDRESS)


def main():
    warnings.simplefilter("ignore")
    server, place = sys.argv[1], pathlib.Path(sys.argv[2])
    anyio.run(legacy, server, place)
    anyio.run(modern, server, place)


main()
