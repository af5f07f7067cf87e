"""A minimal WebSocket client for JSON messages: unfragmented text frames, and replies to pings."""

import base64
import json
import os
import socket
import struct
import urllib.parse

PATIENCE_SECONDS = 60
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
FINAL, MASKED = 0x80, 0x80


class Conversation:
    def __init__(self, address, path, token):
        where = urllib.parse.urlsplit(address)
        self.socket = socket.create_connection((where.hostname, where.port), timeout=PATIENCE_SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {where.netloc}",
            f"Authorization: Bearer {token}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
        ]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        status = self.stream.readline()
        assert b" 101 " in status, status
        while self.stream.readline().strip():
            pass

    def ask(self, message):
        """Sends a message and returns the response. Notifications are skipped."""
        self.send(TEXT, json.dumps(message).encode())
        while True:
            kind, content = self.frame()
            assert kind != CLOSE, content
            if kind == PING:
                self.send(PONG, content)
            elif kind == TEXT and json.loads(content).get("id") == message["id"]:
                return json.loads(content)

    def send(self, kind, content):
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(content))
        size = len(content)
        if size < 126:
            head = struct.pack("!BB", FINAL | kind, MASKED | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", FINAL | kind, MASKED | 126, size)
        else:
            head = struct.pack("!BBQ", FINAL | kind, MASKED | 127, size)
        self.socket.sendall(head + mask + masked)

    def frame(self):
        first, size = struct.unpack("!BB", self.stream.read(2))
        assert first & FINAL, "a fragmented frame"
        if size == 126:
            (size,) = struct.unpack("!H", self.stream.read(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self.stream.read(8))
        return first & 0x0F, self.stream.read(size)

    def end(self):
        self.stream.close()
        self.socket.close()
