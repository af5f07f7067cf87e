"""A context manager that runs an HTTP server on a free port."""

import contextlib
import http.client
import json
import subprocess
import urllib.parse

# Every wait is shorter, unless something hangs.
PATIENCE_SECONDS = 60
SAID = {"address": "stead: listening on ", "token": "stead: temporary token (valid until the server stops): "}


class Server:
    def __init__(self, address, token):
        self.address = address
        self.token = token

    def post(self, path, body):
        """Returns the status and the JSON of a response, or None without a body."""
        where = urllib.parse.urlsplit(self.address)
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE_SECONDS)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection.request("POST", path, body=json.dumps(body), headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text else None


@contextlib.contextmanager
def serve(binary, *flags):
    command = [binary, "serve", *flags, "--listen", "127.0.0.1:0", "--print-token"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = {}
        for line in process.stderr:
            for name, start in SAID.items():
                if line.startswith(start):
                    said[name] = line[len(start):].split(": ")[0].strip()
            if len(said) == len(SAID):
                break
        try:
            yield Server(**said)
        finally:
            process.terminate()
            process.stderr.close()
    assert process.returncode == 0, "the server exits cleanly"
