"""The official Python client calls our tools. It checks every structured value against the schema that was declared."""

import asyncio
import json
import os
import sys
import tempfile
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


@asynccontextmanager
async def connected(toolctl, folder, *flags):
    env = {**os.environ, "XDG_STATE_HOME": os.path.join(folder, ".state")}
    server = StdioServerParameters(command=toolctl, args=["mcp", *flags], cwd=folder, env=env)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def structured(toolctl, folder):
    flags = ["--tools", "separate", "--structured", "--provider", "filesystem", "--provider", "search"]
    async with connected(toolctl, folder, *flags) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert all(tool.output_schema for tool in tools.values())
        read = await session.call_tool("read_file", {"path": "a.txt"})
        assert read.structured_content["content"] == "one\ntwo\n", read
        assert json.loads(read.content[0].text) == read.structured_content
        hits = await session.call_tool("grep", {"pattern": "two"})
        assert hits.structured_content["matches"][0]["line"] == 2, hits
        failed = await session.call_tool("list_directory", {"path": "none"})
        assert failed.is_error, failed
        # The client refuses what breaks a declared schema, so the calls above were checked.
        session._tool_output_schemas["file_info"] = {"type": "object", "required": ["no_such_field"]}
        try:
            await session.call_tool("file_info", {"path": "a.txt"})
        except RuntimeError as error:
            assert "no_such_field" in str(error), error
        else:
            raise AssertionError("the client checks nothing")


async def code_mode(toolctl, folder):
    async with connected(toolctl, folder) as session:
        program = "const {content} = await tools.filesystem.read_file({path: 'a.txt'}); return content.length"
        run = await session.call_tool("execute", {"code": program})
        assert run.content[0].text == "8" and run.structured_content is None, run


async def main(toolctl):
    with tempfile.TemporaryDirectory(prefix="mcp-python-") as folder:
        with open(os.path.join(folder, "a.txt"), "w") as file:
            file.write("one\ntwo\n")
        await structured(toolctl, folder)
        await code_mode(toolctl, folder)
    print("ok")


asyncio.run(main(sys.argv[1]))
