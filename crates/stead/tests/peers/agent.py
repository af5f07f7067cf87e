"""An agent on the official Python library. The prompt is a JSON list of steps; the agent runs them and replies with the
result of each."""

import asyncio
import json

import acp


class Scripted(acp.Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        self.offers = client_capabilities
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        self.servers = [server.name for server in mcp_servers or []]
        return acp.NewSessionResponse(session_id="by-python")

    async def step(self, session_id, kind, arguments):
        if kind == "read":
            answer = await self.client.read_text_file(session_id=session_id, **arguments)
            return {"content": answer.content}
        if kind == "write":
            answer = await self.client.write_text_file(session_id=session_id, **arguments)
            return answer.model_dump(by_alias=True, exclude_none=True) if answer else {}
        fs = self.offers.fs
        return {"reads": fs.read_text_file, "writes": fs.write_text_file, "servers": self.servers}

    async def prompt(self, session_id, prompt, **kwargs):
        told = []
        for kind, arguments in json.loads(prompt[0].text):
            try:
                told.append(await self.step(session_id, kind, arguments))
            except acp.RequestError as error:
                told.append({"code": error.code, "message": str(error), "data": error.data})
        update = acp.update_agent_message_text(json.dumps(told))
        await self.client.session_update(session_id=session_id, update=update)
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **kwargs):
        pass


asyncio.run(acp.run_agent(Scripted()))
