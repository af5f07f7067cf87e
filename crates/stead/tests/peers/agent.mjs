// An agent on the official TypeScript library. The prompt is a JSON list of steps; the agent runs them and replies with the
// result of each. The first argument is the directory of the library.
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const { agent, methods, ndJsonStream } = await import(pathToFileURL(process.argv[2]).href);
let offers;
let servers = [];

async function step(ctx, sessionId, kind, given) {
  if (kind === "read") return ctx.request(methods.client.fs.readTextFile, { sessionId, ...given });
  if (kind === "write") return ctx.request(methods.client.fs.writeTextFile, { sessionId, ...given });
  return { reads: offers.fs.readTextFile, writes: offers.fs.writeTextFile, servers };
}

agent({ name: "scripted" })
  .onRequest(methods.agent.initialize, ({ params }) => {
    offers = params.clientCapabilities;
    return { protocolVersion: params.protocolVersion, agentCapabilities: {} };
  })
  .onRequest(methods.agent.session.new, ({ params }) => {
    servers = params.mcpServers.map((server) => server.name);
    return { sessionId: "by-typescript" };
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const told = [];
    for (const [kind, given] of JSON.parse(params.prompt[0].text)) {
      try {
        told.push(await step(client, params.sessionId, kind, given));
      } catch (error) {
        told.push({ code: error.code, message: error.message, data: error.data });
      }
    }
    const content = { type: "text", text: JSON.stringify(told) };
    await client.notify(methods.client.session.update, {
      sessionId: params.sessionId,
      update: { sessionUpdate: "agent_message_chunk", content },
    });
    return { stopReason: "end_turn" };
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
