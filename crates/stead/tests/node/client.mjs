// The official TypeScript client of MCP against the server, over standard streams and over HTTP, in every era it supports.
//
// usage: client.mjs PACKAGES SERVER PLACE
//
// Exits with 0 if every check passes, and with a stack trace otherwise. Creates its workspaces below PLACE.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [packages, server, place] = process.argv.slice(2);
const require = createRequire(join(packages, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

// Every wait is shorter, unless something hangs.
const PATIENCE_MS = 60_000;
// More than the server lets wait at once, so that calls that are not cancelled would block the next one.
const CANCELLED_CALLS = 20;
// Enough for several progress reports, which the server sends every few hundred files.
const TREE_FILES = 1200;
const ERAS = { legacy: "legacy", auto: "auto", modern: { pin: "2026-07-28" } };

const sha256 = (text) => createHash("sha256").update(text).digest("hex");

/** A call that must succeed; answers its object. */
async function well(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert(!result.isError, JSON.stringify(result));
  assert(result.content[0].text, "the result also has a text form");
  return result.structuredContent;
}

/** A call that must fail in this way; answers its error object. */
async function badly(client, kind, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert(result.isError, JSON.stringify(result));
  assert.equal(result.structuredContent.error.kind, kind);
  return result.structuredContent.error;
}

async function list(client) {
  const { tools } = await client.listTools();
  assert(tools.length > 15 && tools.some((tool) => tool.name === "write"), tools.map((tool) => tool.name).join());
  const { prompts } = await client.listPrompts();
  assert.deepEqual(prompts.map((prompt) => prompt.name), ["stead_guide"]);
  const { resources } = await client.listResources();
  assert.equal(resources[0].uri, "stead:///");
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.equal(resourceTemplates[0].uriTemplate, "stead:///{+path}");
}

async function readAndWrite(client, root) {
  writeFileSync(join(root, "notes.txt"), "one\n");
  const read = await well(client, "read", { path: "notes.txt" });
  assert.equal(read.content, "one\n");
  const written = await well(client, "write", { path: "notes.txt", content: "two\n", base: read.version });
  assert.equal(written.version, sha256("two\n"));
  const stale = await badly(client, "stale", "write", { path: "notes.txt", content: "no\n", base: read.version });
  assert.equal(stale.version, written.version);
  assert.equal(readFileSync(join(root, "notes.txt"), "utf8"), "two\n");
  const resource = await client.readResource({ uri: "stead:///notes.txt" });
  assert.equal(resource.contents[0].text, "two\n");
  await assert.rejects(client.readResource({ uri: "stead:///nowhere.txt" }), "a missing resource is an error");
}

async function complete(client) {
  const ref = { type: "ref/resource", uri: "stead:///{+path}" };
  const offered = await client.complete({ ref, argument: { name: "path", value: "no" } });
  assert.deepEqual(offered.completion.values, ["notes.txt"]);
}

async function progress(client, root) {
  mkdirSync(join(root, "tree"));
  for (let number = 0; number < TREE_FILES; number += 1) {
    writeFileSync(join(root, "tree", `${number}.txt`), `${number}\n`);
  }
  const reports = [];
  const onprogress = ({ progress }) => reports.push(progress);
  await client.callTool({ name: "copy", arguments: { from: "tree", to: "again" } }, { onprogress });
  assert.equal(readdirSync(join(root, "again")).length, TREE_FILES);
  assert(reports.length > 0, "progress is reported");
  assert.deepEqual(reports, [...new Set(reports)].sort((one, other) => one - other));
}

async function giveUp(client) {
  const { cursor } = await well(client, "changes", { since: "now" });
  for (let number = 0; number < CANCELLED_CALLS; number += 1) {
    const enough = new AbortController();
    const waiting = client.callTool(
      { name: "changes", arguments: { since: cursor, wait_ms: 50_000 } },
      { signal: enough.signal },
    );
    setTimeout(() => enough.abort(), 30);
    await assert.rejects(waiting, "the call waits until it is cancelled");
  }
  const started = Date.now();
  await well(client, "changes", { since: cursor, wait_ms: 1 });
  assert(Date.now() - started < 10_000, "cancelled calls do not block others");
}

async function listen(client, root) {
  const uri = "stead:///heard";
  mkdirSync(join(root, "heard"));
  const heard = [];
  let wake = () => {};
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    heard.push(params.uri);
    wake();
  });
  const next = async () => {
    while (heard.length === 0) await new Promise((resolve) => (wake = resolve));
    return heard.shift();
  };
  const write = () => writeFileSync(join(root, "heard", "a.txt"), "new\n");
  if (client.getProtocolEra() === "modern") {
    const subscription = await client.listen({ resourceSubscriptions: [uri] });
    assert.deepEqual(subscription.honoredFilter.resourceSubscriptions, [uri]);
    // When the watch starts, the client gets one update, because the file may have changed meanwhile.
    assert.equal(await next(), uri);
    write();
    assert.equal(await next(), uri);
    await subscription.close();
  } else {
    await client.subscribeResource({ uri });
    write();
    assert.equal(await next(), uri);
    await client.unsubscribeResource({ uri });
  }
}

/** The client starts the server itself. */
async function stdio(flags) {
  return [new StdioClientTransport({ command: server, args: ["mcp", ...flags], stderr: "ignore" }), async () => {}];
}

/** The server is there already, on a port of its own, and says what it wants to see. */
async function http(flags) {
  const words = ["serve", ...flags, "--listen", "127.0.0.1:0", "--print-token"];
  const child = spawn(server, words, { stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(child, "exit");
  let address, token;
  for await (const line of createInterface({ input: child.stderr })) {
    address ??= line.match(/^stead: listening on (http:\S+?):? /)?.[1];
    token ??= line.match(/^stead: temporary token \(valid until the server stops\): (\S+)/)?.[1];
    if (address && token) break;
  }
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  const end = async () => {
    child.kill();
    assert.deepEqual(await ended, [0, null], "the server exits cleanly");
  };
  return [new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { requestInit }), end];
}

async function converse(way, era) {
  const root = join(place, `workspace-${way.name}-${era}`);
  mkdirSync(root);
  const flags = ["--workspace", root, "--state", join(place, `state-${way.name}-${era}`)];
  const [transport, end] = await way(flags);
  const client = new Client({ name: "driver", version: "1.0.0" }, { versionNegotiation: { mode: ERAS[era] } });
  await client.connect(transport);
  for (const step of [list, readAndWrite, complete, giveUp, progress, listen]) {
    await step(client, root);
  }
  console.log(way.name, era, "speaks", client.getNegotiatedProtocolVersion());
  await client.close();
  await end();
}

const patience = setTimeout(() => {
  console.error("something hangs");
  process.exit(1);
}, 6 * PATIENCE_MS);
for (const way of [stdio, http]) {
  for (const era of Object.keys(ERAS)) {
    await converse(way, era);
  }
}
clearTimeout(patience);
