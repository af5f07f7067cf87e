"""The official MCP client of any version against the server, over standard streams and over HTTP, in every protocol
era that the version supports.

usage: client.py SERVER PLACE

Exits with 0 if every check passes, and with a traceback otherwise. Creates its workspaces below PLACE.
"""

import contextlib
import hashlib
import pathlib
import sys
import warnings

import anyio

import serving
import versions

# Every wait is shorter, unless something hangs.
PATIENCE_SECONDS = 60
# More than the server lets wait at once, so that calls that are not cancelled would block the next one.
CANCELLED_CALLS = 20
# Enough for several progress reports, which the server sends every few hundred files.
TREE_FILES = 1200
TOOLS = {
    "read", "stat", "list", "find", "search", "write", "edit", "patch", "append", "copy", "move", "remove", "restore",
    "undo", "redo", "history", "diff", "changes", "lock", "unlock",
}


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


async def well(client, tool, **arguments):
    """Makes a call that must succeed. Returns its object."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result)
    assert result.content[0].text, "the result also has a text form"
    return result.structured_content


async def badly(client, kind, tool, **arguments):
    """Makes a call that must fail with this kind. Returns its error object."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, result)
    error = result.structured_content["error"]
    assert error["kind"] == kind, error
    text = result.content[0].text
    assert text.startswith(kind + ": "), text
    assert "\nNext step: " in text, text
    return error


async def tools(client):
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) == TOOLS, sorted(listed)
    assert listed["read"].annotations.read_only_hint is True
    assert listed["remove"].annotations.destructive_hint is True
    assert all(tool.annotations.open_world_hint is False for tool in listed.values())


async def read_and_write(client, root):
    (root / "notes.txt").write_text("one\ntwo\n")
    read = await well(client, "read", path="notes.txt")
    assert read["content"] == "one\ntwo\n"
    assert read["version"] == sha256("one\ntwo\n")
    written = await well(client, "write", path="notes.txt", content="three\n", base=read["version"])
    assert written["version"] == sha256("three\n")
    error = await badly(client, "stale", "write", path="notes.txt", content="four\n", base=read["version"])
    assert error["version"] == written["version"], error
    await badly(client, "base_required", "write", path="notes.txt", content="four\n")
    await badly(client, "exists", "write", path="notes.txt", content="four\n", base="")
    assert (root / "notes.txt").read_text() == "three\n", "a refused call changes nothing"
    await badly(client, "not_found", "read", path="nowhere.txt")
    await badly(client, "invalid_path", "read", path="../notes.txt")


async def take_back(client, root):
    path = root / "notes.txt"
    removed = await well(client, "remove", path="notes.txt")
    assert not path.exists()
    restored = await well(client, "restore", trash=removed["trash"])
    assert restored["path"] == "notes.txt"
    assert path.read_text() == "three\n"
    await well(client, "undo")
    assert not path.exists(), "the restore is undone"
    await well(client, "redo")
    assert path.read_text() == "three\n"
    await well(client, "append", path="notes.txt", content="four\n")
    await well(client, "undo")
    assert path.read_text() == "three\n", "the append is undone"
    history = await well(client, "history", path="notes.txt")
    assert [entry["operation"] for entry in history["entries"]][0] == "undo", history


async def give_up(client):
    head = (await well(client, "changes", since="now"))["cursor"]
    for _ in range(CANCELLED_CALLS):
        with anyio.move_on_after(0.05) as waiting:
            await client.call_tool("changes", {"since": head, "wait_ms": 50_000})
        assert waiting.cancelled_caught, "the call waits until it is cancelled"
    with anyio.fail_after(10):
        await well(client, "changes", since=head, wait_ms=1)


async def progress(client, root):
    tree = root / "tree"
    tree.mkdir()
    for number in range(TREE_FILES):
        (tree / f"{number}.txt").write_text(f"{number}\n")
    told = []

    async def tell(done, total, message):
        told.append(done)

    arguments = {"from": "tree", "to": "again"}
    result = await client.call_tool("copy", arguments, progress_callback=tell)
    assert not result.is_error, result
    assert len(list((root / "again").iterdir())) == TREE_FILES
    assert told and told == sorted(set(told)), told


async def prompts(client):
    listed = (await client.list_prompts()).prompts
    assert [prompt.name for prompt in listed] == ["stead_guide"], listed
    guide = await client.get_prompt("stead_guide", {"path": "notes.txt"})
    assert "\n- read: " in guide.messages[0].content.text, guide
    assert guide.messages[1].content.resource.text == "three\n", guide


async def listen(client, root, receive):
    """Another program changes a file, and the client is notified in the form of its era."""
    address = "stead:///heard"
    (root / "heard").mkdir()
    if client.protocol_version >= "2026":
        async with client.listen(resource_subscriptions=[address]) as subscription:
            events = aiter(subscription)
            # When the watch starts, the client gets one update, because the file may have changed meanwhile.
            assert str((await anext(events)).uri) == address
            (root / "heard" / "a.txt").write_text("new\n")
            assert str((await anext(events)).uri) == address
    else:
        await client.subscribe_resource(address)
        (root / "heard" / "a.txt").write_text("new\n")
        assert await receive.receive() == address
        await client.unsubscribe_resource(address)
    read = await client.read_resource(address + "/a.txt")
    assert read.contents[0].text == "new\n", read


@contextlib.contextmanager
def standard_streams(server, flags):
    """The client starts the server itself."""
    yield [server, "mcp", *flags]


@contextlib.contextmanager
def http(server, flags):
    """The server is already running, and requires a token."""
    with serving.serve(server, *flags) as running:
        yield versions.Address(f"{running.address}/mcp", running.token)


async def converse(way, server, place, mode):
    root = place / f"workspace-{way.__name__}-{mode}"
    root.mkdir()
    flags = ["--workspace", str(root), "--state", str(place / f"state-{way.__name__}-{mode}")]
    send, receive = anyio.create_memory_object_stream(100)
    with anyio.fail_after(PATIENCE_SECONDS), way(server, flags) as target:
        async with versions.connect(target, mode, send.send) as client:
            print(versions.VERSION, way.__name__, mode, "speaks", client.protocol_version)
            if mode == "2026-07-28":
                # With a fixed version the client does not negotiate.
                assert client.protocol_version == mode
            else:
                assert client.server_info.name == "stead"
            await tools(client)
            await read_and_write(client, root)
            await prompts(client)
            await take_back(client, root)
            await give_up(client)
            await progress(client, root)
            await listen(client, root, receive)


def main():
    warnings.simplefilter("ignore")
    server, place = sys.argv[1], pathlib.Path(sys.argv[2])
    for way in (standard_streams, http):
        for mode in versions.eras():
            anyio.run(converse, way, server, place, mode)


main()
