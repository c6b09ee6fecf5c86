// The MCP Inspector lists the tools of every provider, strictly, and calls each tool once.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const [inspector, toolctl, callsFile] = process.argv.slice(2);
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "mcp-inspector-"));
const { providers, files } = JSON.parse(readFileSync(callsFile, "utf8"));

/** What the Inspector prints as JSON. It exits with 5 when the tool itself failed, which may be right. */
async function inspect(method, server, extra) {
  const flags = ["--cli", toolctl, "mcp", "--tools", "separate", ...server, "--method", method, "--format", "json", ...extra];
  const env = { ...process.env, HOME: folder, XDG_STATE_HOME: join(folder, ".state") };
  try {
    const { stdout } = await run(process.execPath, [inspector, ...flags], { cwd: folder, env });
    return JSON.parse(stdout);
  } catch (error) {
    if (error.code === 5 && error.stdout) return JSON.parse(error.stdout);
    throw new Error(`${flags.slice(1).join(" ")}: exit ${error.code}\n${error.stdout}\n${error.stderr}`);
  }
}

async function check(provider, calls) {
  for (const view of [[], ["--structured"]]) {
    const { tools } = (await inspect("tools/list", [...view, "--provider", provider], ["--strict"])).result;
    assert.deepEqual(tools.map((tool) => tool.name).sort(), Object.keys(calls).sort(), `tools of ${provider}`);
  }
  for (const [tool, { arguments: input, expect, fails }] of Object.entries(calls)) {
    const extra = ["--tool-name", tool, "--tool-args-json", JSON.stringify(input)];
    const { result } = await inspect("tools/call", ["--structured", "--provider", provider], extra);
    const text = result.content.map((item) => item.text ?? "").join("\n");
    assert.equal(Boolean(result.isError), Boolean(fails), `${tool}: ${text}`);
    assert.ok(text.includes(expect), `${tool}: ${text} has no ${expect}`);
    if (!fails) assert.deepEqual(JSON.parse(text), result.structuredContent, tool);
  }
}

try {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  const waiting = Object.entries(providers);
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await check(...next);
  };
  await Promise.all(Array.from({ length: Math.min(4, cpus().length) }, worker));
  console.log("ok");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
