"""The tools over standard input and output, with the SDK's server. Needs the extra `mcp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from evalsite import __version__
from evalsite.api.evalsite_client import Client
from evalsite.mcp.messages import INSTRUCTIONS, RpcError, called
from evalsite.mcp.tools import TOOLS


def serve(client: Callable[[], Client]) -> None:
    """Answer the messages on standard input until it ends."""

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate({"tools": [tool.described() for tool in TOOLS]})

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            result = await anyio.to_thread.run_sync(called, params.name, params.arguments or {}, client)
        except RpcError as error:
            text = {"content": [{"type": "text", "text": error.message}], "isError": True}
            return types.CallToolResult.model_validate(text)
        return types.CallToolResult.model_validate(result)

    async def run() -> None:
        server = Server(
            "evalsite",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(run)
