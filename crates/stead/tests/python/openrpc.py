"""Calls every method of /rpc with the examples of the definitions, and validates the responses against the document that
the server provides. Buffers of an editor last as long as its connection, so their methods are called over a WebSocket; the
others are called with one HTTP request each.

usage: openrpc.py SERVER PLACE EXAMPLES...

EXAMPLES are the generated files with the examples. Prints how many methods were called. Exits with 0 if every check passes,
and with a traceback otherwise.
"""

import json
import pathlib
import subprocess
import sys

import jsonschema

import conversation
import serving

# The workspace root in the examples.
ROOT = "/ws"


class Rpc:
    """Calls methods and validates every response against the document."""

    def __init__(self, server):
        self.server = server
        self.number = 0
        self.wrong = []
        self.editor = None
        answer = self.send("rpc.discover", {})
        self.document = answer["result"]
        self.methods = {method["name"]: method for method in self.document["methods"]}

    def send(self, method, params):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        if method.startswith("buffer."):
            self.editor = self.editor or conversation.Conversation(self.server.address, "/rpc", self.server.token)
            answer = self.editor.ask(message)
        else:
            status, answer = self.server.post("/rpc", message)
            assert status == 200, (status, answer)
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.number, answer
        assert ("result" in answer) != ("error" in answer), answer
        return answer

    def call(self, method, params):
        answer = self.send(method, params)
        if "error" in answer:
            self.judge_error(method, answer["error"])
        else:
            self.judge(method, answer["result"])
        return answer

    def judge(self, method, result):
        schema = dict(self.methods[method]["result"]["schema"], components=self.document["components"])
        jsonschema.Draft7Validator(schema).validate(result)
        if "properties" in schema:
            unknown = set(result) - set(schema["properties"])
            if unknown:
                self.wrong.append(f"{method} answers {unknown}, of which the document says nothing")

    def judge_error(self, method, error):
        declared = self.document["components"]["errors"].values()
        codes = {known["code"] for known in declared}
        assert error["code"] in codes, f"{method}: the document has no error {error}"


def placed(value, root):
    """Replaces the root of the examples by the root of this run."""
    if isinstance(value, str):
        return root + value[len(ROOT):] if value == ROOT or value.startswith(ROOT + "/") else value
    if isinstance(value, list):
        return [placed(one, root) for one in value]
    if isinstance(value, dict):
        return {name: placed(one, root) for name, one in value.items()}
    return value


def run(server, place, example):
    """Runs one example in a new workspace."""
    root = place / "ws"
    root.mkdir(parents=True)
    for name, content in example["tree"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    with serving.serve(server, "--workspace", str(root), "--state", str(place / "state")) as running:
        rpc = Rpc(running)
        steps = [*example["before"], example]
        answers = [rpc.call(step["operation"], placed(step["arguments"], str(root))) for step in steps]
        failed = "error" in answers[-1]
        # Some dialects report errors as results.
        fails = "error" in example or "error" in (example.get("answer") or {})
        assert failed == fails, answers[-1]
        assert not rpc.wrong, rpc.wrong
        return {step["operation"] for step, answer in zip(steps, answers) if "result" in answer}


def themselves(server, place):
    """Calls the methods that describe other methods."""
    (place / "ws").mkdir(parents=True)
    with serving.serve(server, "--workspace", str(place / "ws"), "--state", str(place / "state")) as running:
        rpc = Rpc(running)
        rpc.judge("rpc.discover", rpc.document)
        for method, params in (
            ("capabilities.list", {}),
            ("capabilities.describe", {"name": "filesystem.read"}),
            ("capabilities.invoke", {"capability": "filesystem.list", "arguments": {"path": str(place / "ws")}}),
        ):
            answer = rpc.call(method, params)
            assert "result" in answer, answer
        # A notification has no response.
        status, answer = running.post("/rpc", {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
        assert answer is None and status in (202, 204), (status, answer)
        called = {"rpc.discover", "capabilities.list", "capabilities.describe", "capabilities.invoke", "$/cancelRequest"}
        return called, set(rpc.methods)


# The examples of these methods are refused as documented: approvals are answered only at a terminal, and drafts exist only
# after a crash of an editor.
REFUSED = {"approve", "deny", "buffer.drop"}


def story(server, place):
    """Calls the methods that need results of other methods, as a person with an editor."""
    root = place / "ws"
    root.mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    flags = ["--workspace", str(root), "--state", str(place / "state"), "--principal", "user:ada"]
    with serving.serve(server, *flags) as running:
        rpc = Rpc(running)
        called = set()

        def well(method, **params):
            answer = rpc.call(method, params)
            assert "result" in answer, (method, answer)
            called.add(method)
            return answer["result"]

        first = well("read", path="a.txt")
        second = well("write", path="a.txt", content="two\n", base=first["version"])
        well("diff", path="a.txt", **{"from": second["rev"]})
        well("restore", trash=well("remove", path="a.txt")["trash"])
        well("undo")
        well("redo")
        well("lock", path="a.txt")
        well("unlock", path="a.txt")
        well("unwatch", watch=well("watch", path=".")["watch"])
        well("respond", alert=well("alert", message="look")["alert"], text="seen")
        opened = well("buffer.open", path="a.txt", text="two\nthree\n")
        well("buffer.list")
        well("buffer.change", path="a.txt", revision=opened["revision"], text="two\nfour\n")
        well("buffer.save", path="a.txt")
        well("buffer.close", path="a.txt")
        by_agent(server, flags[:4], running, ["b.txt", "c.txt"])
        well("keep", path="b.txt", author="agent:bob")
        well("reject", path="c.txt", author="agent:bob")
        filesystem = str(root)
        deleted = well("filesystem.delete", path=f"{filesystem}/b.txt")
        well("filesystem.restore", trash_path=deleted["trash_path"])
        well("filesystem.unwatch", watch_id=well("filesystem.watch", path=filesystem)["watch_id"])
        well("session.end", session_id=well("session.create")["session_id"])
        assert not rpc.wrong, rpc.wrong
        return called


def by_agent(server, flags, running, names):
    """Writes files as an agent."""
    words = [server, "token", "create", "--principal", "agent:bob", *flags]
    token = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    rpc = Rpc(serving.Server(running.address, token))
    for name in names:
        answer = rpc.call("write", {"path": name, "content": "new\n"})
        assert "result" in answer, answer


def main():
    server, place = sys.argv[1], pathlib.Path(sys.argv[2])
    called, known = themselves(server, place / "themselves")
    called |= story(server, place / "story") | REFUSED
    examples = [example for file in sys.argv[3:] for example in json.loads(pathlib.Path(file).read_text())["examples"]]
    wrong = []
    for number, example in enumerate(examples):
        try:
            called |= run(server, place / str(number), example)
        except (AssertionError, jsonschema.ValidationError) as finding:
            wrong.append(f"{example['operation']}, {example['title']}: {finding}")
    assert not wrong, "\n".join(wrong)
    assert called == known, f"never called: {known - called}; not in the document: {called - known}"
    print(f"{len(called)} methods, {len(examples)} examples")


main()
