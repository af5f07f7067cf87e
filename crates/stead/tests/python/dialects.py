"""The official MCP client against each published dialect, through the examples of its document, in their order.

usage: dialects.py SERVER PLACE

Prints one line for each dialect and exits with 0 if every check passes, and with a traceback otherwise.
"""

import hashlib
import json
import pathlib
import sys

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

# Every wait is shorter, unless something hangs.
PATIENCE_SECONDS = 60
MEBIBYTE = 1 << 20


async def ask(client, tool, **arguments):
    """Makes a call. Returns its object, its text, and whether it is an error."""
    result = await client.call_tool(tool, arguments)
    return result.structured_content, result.content[0].text, result.is_error


async def jettson(client, root):
    async def said(tool, **arguments):
        answer, text, failed = await ask(client, tool, **arguments)
        assert json.loads(text) == answer, "the text is the same JSON"
        assert failed == ("error" in answer), answer
        return answer

    data = "id,name,email\n1,Tay,tay@acme.io\n"
    (root / "data.csv").write_text(data)
    assert await said("jettson_files_read", path="data.csv") == {
        "path": "data.csv", "content": data, "size_bytes": len(data), "truncated": False,
    }
    notes = "x" * 421
    assert await said("jettson_files_write", path="scratch/notes.md", content=notes) == {
        "path": "scratch/notes.md", "bytes_written": 421,
    }
    assert (root / "scratch" / "notes.md").read_text() == notes, "the parent directory was created"
    assert await said("jettson_files_list") == {
        "path": ".",
        "entries": [
            {"name": "data.csv", "size_bytes": len(data), "is_dir": False},
            {"name": "scratch", "size_bytes": 0, "is_dir": True},
        ],
    }
    (root / "old.csv").write_text("old")
    assert await said("jettson_files_delete", path="old.csv") == {"path": "old.csv", "deleted": True}
    assert not (root / "old.csv").exists()
    rejected = "Jettson Files rejected the operation: "
    for path in ["../etc/passwd", "/", "/tmp/foo", ""]:
        for tool in ["read", "list", "delete"]:
            answer = await said("jettson_files_" + tool, path=path)
            assert answer == {"error": rejected + "path escapes /workspace or is empty."}, (tool, path, answer)
    for tool in ["read", "delete"]:
        answer = await said("jettson_files_" + tool, path="gone.txt")
        assert answer == {"error": rejected + "no such file: gone.txt"}, answer
    answer = await said("jettson_files_delete", path="scratch")
    assert answer == {
        "error": rejected + "scratch is a directory — use Jettson Shell with rmdir for that."
    }, answer
    (root / "big.txt").write_text("a" * (MEBIBYTE + 1))
    big = await said("jettson_files_read", path="big.txt")
    assert (len(big["content"]), big["size_bytes"], big["truncated"]) == (MEBIBYTE, MEBIBYTE + 1, True)
    too_much = await said("jettson_files_write", path="huge.txt", content="a" * (5 * MEBIBYTE + 1))
    assert too_much["error"].startswith(rejected), too_much
    assert not (root / "huge.txt").exists()


async def weaver(client, root):
    async def said(tool, **arguments):
        answer, text, failed = await ask(client, tool, **arguments)
        assert text == answer["for_llm"] and failed == answer["is_error"], answer
        return answer

    async def content(path):
        answer = await said("read_file", path=path)
        assert not answer["is_error"], answer
        return answer["for_llm"]

    (root / "config.json").write_text('{"a": 1}')
    assert await content(str(root / "config.json")) == '{"a": 1}', "absolute, inside"
    assert await content("config.json") == '{"a": 1}', "relative"
    written = await said("write_file", path=str(root / "output.txt"), content="Hello, world!")
    assert written["for_llm"] == f"File written: {root}/output.txt" and written["silent"], written
    assert (root / "output.txt").read_text() == "Hello, world!"
    for directory in ["src/pkg", "src/cmd"]:
        (root / directory).mkdir(parents=True)
    for name in ["go.mod", "go.sum", "README.md"]:
        (root / "src" / name).write_text("x")
    listed = await said("list_dir", path=str(root / "src"))
    lines = listed["for_llm"].splitlines()
    expected = ["DIR:  pkg", "DIR:  cmd", "FILE: go.mod", "FILE: go.sum", "FILE: README.md"]
    assert sorted(lines) == sorted(expected), listed
    names = [line[6:] for line in lines]
    assert names == sorted(names), "byte order"
    outside = "access denied: path is outside the workspace"
    (root / "link_to_etc").symlink_to("/etc")
    for path, expected in [
        ("/etc/passwd", outside),
        ("../../etc/passwd", outside),
        (str(root / "link_to_etc"), "access denied: symlink resolves outside workspace"),
    ]:
        for tool, more in [("read_file", {}), ("write_file", {"content": "x"})]:
            answer = await said(tool, path=path, **more)
            assert answer["is_error"] and answer["for_llm"] == expected, (tool, path, answer)
    (root / "data").mkdir()
    (root / "data" / "file.txt").write_text("inside")
    assert await content(str(root / "data" / "file.txt")) == "inside"
    for tool, arguments, expected in [
        ("read_file", {}, "path is required"),
        ("write_file", {"content": "x"}, "path is required"),
        ("write_file", {"path": "x"}, "content is required"),
    ]:
        answer = await said(tool, **arguments)
        assert answer["is_error"] and answer["for_llm"] == expected, answer
    missing = await said("read_file", path="missing.txt")
    assert missing["is_error"] and missing["for_llm"].startswith("failed to read file: "), missing


async def comma(client, root):
    async def said(tool, **arguments):
        answer, text, failed = await ask(client, tool, **arguments)
        assert failed != answer["ok"], answer
        assert text.startswith(answer["output"]), (text, answer)
        return answer

    server = root / "src" / "server.ts"
    server.parent.mkdir()
    server.write_text("export const PORT = 3000;\nlisten(PORT);\n")
    read = await said("read_file", path="src/server.ts")
    before = hashlib.sha256(server.read_bytes()).hexdigest()
    assert read["data"]["sha256"] == before, "the hash of the whole file"
    sliced = await said("read_file", path="src/server.ts", startLine=1, endLine=1)
    assert sliced["data"]["sha256"] == before, "also if only a slice was read"
    edits = [{"oldText": "PORT = 3000", "newText": "PORT = 4000"}]
    edited = await said("edit_file", path="src/server.ts", expectedSha256=before, edits=edits)
    assert edited["ok"] and edited["data"]["beforeSha256"] == before, edited
    assert "PORT = 4000" in server.read_text()
    stale = await said("edit_file", path="src/server.ts", expectedSha256=before, edits=edits)
    assert stale["error"]["kind"] == "stale_file" and stale["error"]["recoverable"], stale
    assert stale["error"]["suggestedNextAction"] == (
        "Re-read the file to obtain the current sha256 and re-apply your edit."
    )
    again = await said("read_file", path="src/server.ts")
    edits = [{"oldText": "PORT = 4000", "newText": "PORT = 5000"}]
    retried = await said("edit_file", path="src/server.ts", expectedSha256=again["data"]["sha256"], edits=edits)
    assert retried["ok"], retried
    refused = await said("write_file", path="src/server.ts", content="x", expectedSha256="0" * 64)
    assert refused["error"]["kind"] == "stale_file", refused
    patch = "*** Begin Patch\n*** Add File: NEW.md\n+# new\n*** End Patch"
    added = await said("apply_patch", patch=patch, expectedSha256ByPath={"NEW.md": ""})
    assert added["ok"] and (root / "NEW.md").read_text() == "# new\n", added
    other = patch.replace("NEW.md", "OTHER.md")
    wrong = await said("apply_patch", patch=other, expectedSha256ByPath={"OTHER.md": "0" * 64})
    assert wrong["error"]["kind"] == "stale_file" and not (root / "OTHER.md").exists(), wrong
    created = await said("create_file", path="a.txt", content="alpha\n")
    twice = await said("create_file", path="a.txt", content="beta\n")
    assert created["ok"] and twice["error"]["kind"] == "already_exists", twice
    deleted = await said("delete_file", path="a.txt")
    assert deleted["ok"] and not (root / "a.txt").exists(), deleted
    restored = await said("restore_file", trashedPath=deleted["data"]["trashedTo"])
    assert restored["ok"] and (root / "a.txt").read_text() == "alpha\n", restored
    digest = created["data"]["sha256"]
    moved = await said("move_file", fromPath="a.txt", toPath="b.txt", expectedSha256=digest)
    assert moved["ok"] and (root / "b.txt").exists() and not (root / "a.txt").exists(), moved
    found = await said("search_files", query="alpha", mode="text")
    assert [match["path"] for match in found["data"]["matches"]] == ["b.txt"], found
    globbed = await said("glob", pattern="**/*.ts")
    assert [match["path"] for match in globbed["data"]["matches"]] == ["src/server.ts"], globbed
    listed = await said("list_directory", path=".", recursive=True)
    assert {entry["relativePath"] for entry in listed["data"]["entries"]} >= {"b.txt", "src"}, listed


async def krux(client, root):
    async def said(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        assert json.loads(result.content[0].text) == result.structured_content, result
        assert result.is_error == ("error" in result.structured_content), result
        return result.structured_content

    session = await said("agent__session")
    assert session["workspace_path"] == str(root) and session["writable"] == [str(root)], session
    path = f"{root}/config.json"
    written = await said("filesystem__write", path=path, content="{}\n")
    read = await said("filesystem__read", path=path)
    assert read["content"] == "{}\n" and read["checksum"] == written["checksum"], read
    stat = await said("filesystem__stat", path=path)
    assert stat["type"] == "file" and stat["permissions"] == "rw-r--r--", stat
    missing = await said("filesystem__read", path=f"{root}/missing.txt")
    assert missing["error"] == "FileNotFound", missing
    for way in missing["recovery"]:
        await said(way["capability"].replace(".", "__"), **way["inputs"])
    outside = await said("filesystem__read", path="/etc/passwd")
    assert outside["error"] == "PathOutOfScope", outside
    listed = await said("filesystem__list", path=str(root))
    assert [entry["name"] for entry in listed["entries"]] == ["config.json"], listed


DIALECTS = {"jettson": jettson, "weaver": weaver, "comma": comma, "krux": krux}


async def serve(server, place, dialect):
    root = place / dialect
    root.mkdir()
    arguments = ["mcp", "--workspace", str(root), "--state", str(place / (dialect + "-state")), "--dialect", dialect]
    with anyio.fail_after(PATIENCE_SECONDS):
        async with Client(StdioServerParameters(command=server, args=arguments)) as client:
            advertised = {tool.name for tool in (await client.list_tools()).tools}
            called = set()
            call = client.call_tool

            async def counted(tool, *rest, **named):
                called.add(tool)
                return await call(tool, *rest, **named)

            client.call_tool = counted
            await DIALECTS[dialect](client, root)
            print(f"{dialect}: {len(called)} of {len(advertised)} tools called")


def main():
    server, place = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    for dialect in DIALECTS:
        anyio.run(serve, server, place, dialect)


main()
