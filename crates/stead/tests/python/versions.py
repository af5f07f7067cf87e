"""The official MCP client of any version, with the names that version 2 uses.

`eras()` lists the protocol eras that the installed version supports, and `connect` opens a session in one of them.
"""

import contextlib
import importlib.metadata

import anyio

VERSION = importlib.metadata.version("mcp")
IS_VERSION_1 = VERSION.startswith("1.")


def eras():
    return ["legacy"] if IS_VERSION_1 else ["legacy", "auto", "2026-07-28"]


class Address:
    """The address of a running server."""

    def __init__(self, url, token):
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"}


@contextlib.asynccontextmanager
async def connect(target, mode, on_update=None):
    """A client of a command (a list of words) or of an address; `on_update` is called with the URI of every update."""

    async def message(incoming):
        if on_update is not None:
            # Version 1 wraps the notification.
            inner = getattr(incoming, "root", incoming)
            uri = getattr(getattr(inner, "params", None), "uri", None)
            if uri is not None:
                await on_update(str(uri))

    if IS_VERSION_1:
        async with first_line(target, message) as client:
            yield client
    else:
        async with second_line(target, mode, message) as client:
            yield client


@contextlib.asynccontextmanager
async def second_line(target, mode, message):
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    if isinstance(target, Address):
        way = streamable_http_client(target.url, http_client=create_mcp_http_client(headers=target.headers))
    else:
        way = StdioServerParameters(command=target[0], args=target[1:])
    options = {"message_handler": message} if mode == "legacy" else {}
    async with Client(way, mode=mode, **options) as client:
        yield client


@contextlib.asynccontextmanager
async def first_line(target, message):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    if isinstance(target, Address):
        way = streamablehttp_client(target.url, headers=target.headers)
    else:
        way = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with way as streams:
        async with ClientSession(streams[0], streams[1], message_handler=message) as session:
            yield FirstLine(session, await session.initialize())


class FirstLine:
    """A session of version 1 with the names of version 2."""

    def __init__(self, session, initialized):
        self.session = session
        self.protocol_version = str(initialized.protocolVersion)
        self.server_info = initialized.serverInfo

    async def list_tools(self):
        listed = await self.session.list_tools()
        for tool in listed.tools:
            hints = tool.annotations
            object.__setattr__(hints, "read_only_hint", hints.readOnlyHint)
            object.__setattr__(hints, "destructive_hint", hints.destructiveHint)
            object.__setattr__(hints, "open_world_hint", hints.openWorldHint)
        return listed

    async def call_tool(self, name, arguments, progress_callback=None):
        from mcp import types

        # Version 1 does not send a cancellation when the caller stops waiting.
        number = self.session._request_id
        try:
            result = await self.session.call_tool(name, arguments, progress_callback=progress_callback)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                notice = types.CancelledNotification(
                    method="notifications/cancelled", params=types.CancelledNotificationParams(requestId=number)
                )
                await self.session.send_notification(types.ClientNotification(notice))
            raise
        return Result(result)

    async def read_resource(self, uri):
        from pydantic import AnyUrl

        return await self.session.read_resource(AnyUrl(uri))

    async def subscribe_resource(self, uri):
        from pydantic import AnyUrl

        await self.session.subscribe_resource(AnyUrl(uri))

    async def unsubscribe_resource(self, uri):
        from pydantic import AnyUrl

        await self.session.unsubscribe_resource(AnyUrl(uri))

    async def list_prompts(self):
        return await self.session.list_prompts()

    async def get_prompt(self, name, arguments):
        return await self.session.get_prompt(name, arguments)


class Result:
    """A result with the names of version 2."""

    def __init__(self, result):
        self.is_error = result.isError
        self.content = result.content
        self.structured_content = result.structuredContent
