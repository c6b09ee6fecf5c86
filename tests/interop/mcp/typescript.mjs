// The official TypeScript client calls our tools. It checks every structured value against the schema that was declared.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [toolctl] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "mcp-typescript-"));
writeFileSync(join(folder, "a.txt"), "one\ntwo\n");

async function connected(...flags) {
  const env = { ...process.env, XDG_STATE_HOME: join(folder, ".state") };
  const transport = new StdioClientTransport({ command: toolctl, args: ["mcp", ...flags], cwd: folder, env });
  const client = new Client({ name: "typescript", version: "1.0.0" }, { capabilities: {} });
  await client.connect(transport);
  return client;
}

try {
  const structured = await connected("--tools", "separate", "--structured", "--provider", "filesystem", "--provider", "search");
  const { tools } = await structured.listTools();
  assert.ok(tools.every((tool) => tool.outputSchema), "every tool declares what it returns");
  const read = await structured.callTool({ name: "read_file", arguments: { path: "a.txt" } });
  assert.equal(read.structuredContent.content, "one\ntwo\n");
  assert.deepEqual(JSON.parse(read.content[0].text), read.structuredContent);
  const hits = await structured.callTool({ name: "grep", arguments: { pattern: "two" } });
  assert.equal(hits.structuredContent.matches[0].line, 2);
  const edit = { path: "a.txt", old_str: "two", new_str: "2" };
  const edited = await structured.callTool({ name: "edit_file", arguments: edit });
  assert.equal(edited.structuredContent.changed, true);
  // The client refuses what breaks a declared schema, so the calls above were checked.
  structured.cacheToolMetadata([{ ...tools.find((tool) => tool.name === "read_file"), outputSchema: { type: "object", required: ["no_such_field"] } }]);
  await assert.rejects(structured.callTool({ name: "read_file", arguments: { path: "a.txt" } }), /no_such_field/);
  const failed = await structured.callTool({ name: "list_directory", arguments: { path: "none" } });
  assert.equal(failed.isError, true);
  await structured.close();

  const code = await connected();
  const program = "const {content} = await tools.filesystem.read_file({path: 'a.txt'}); return content.length";
  const run = await code.callTool({ name: "execute", arguments: { code: program } });
  assert.equal(run.content[0].text, "6");
  assert.equal(run.structuredContent, undefined);
  await code.close();
  console.log("ok");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
