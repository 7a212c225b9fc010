"""MCP server: handlers that list and call tools and resources. Needs the package `mcp`, version 2."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from pyrag.errors import ProgramFailedError, PyRAGError
from pyrag.server.config import DEFAULT_INDEX, Access, ServerConfig
from pyrag.server.errors import ApiError, from_pyrag, public_lines, public_text
from pyrag.server.mcp.addresses import PASSAGE_TEMPLATE, REFERENCE, index_uri, read_uri
from pyrag.server.mcp.schemas import (
    INSTRUCTIONS,
    TOOLS,
    OpenArguments,
    PassageResult,
    ToolSpec,
    arguments_of,
    object_schema,
)
from pyrag.settings import Settings

_JSON = "application/json"
_TEMPLATE_NAME = "passage"
_READING_TOOLS = ("sql:", "table:")  # tools that cannot have effects
Opening = Callable[[], Awaitable[Any]]
Context = Any


class ProtocolServer:
    """Handlers of the protocol's requests.

    Args:
        config: Configuration that names the indexes.
        opening: Function that waits until the service is open and returns the `Tools`. Listing does not wait for it, so
            that a client gets its reply while indexes and models are still loading.
        settings: Settings, whose tools determine whether programs are read-only.
    """

    def __init__(self, config: ServerConfig, opening: Opening, settings: Settings) -> None:
        self._only_reads = all(spec.startswith(_READING_TOOLS) for spec in settings.tools)
        self._names = list(config.indexes) or [DEFAULT_INDEX]
        self._opening = opening

    def build(self) -> Server[Any]:
        """Return a server of the package `mcp`, for any transport."""
        from pyrag import __version__

        return Server(
            "pyrag",
            version=__version__,
            title="pyrag",
            description="Answers multi-hop questions from indexed documents, with citations.",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )

    async def _list_tools(self, context: Context, _: Any) -> types.ListToolsResult:
        """Answer `tools/list` with the indexes that the caller may use."""
        names = self._allowed(context)
        return types.ListToolsResult(tools=[_listed(tool, names, self._only_reads) for tool in TOOLS])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Answer `tools/call`. A failure becomes a result with `isError` and one sentence for the model to read."""
        tool = next((candidate for candidate in TOOLS if candidate.name == params.name), None)
        try:
            if tool is None:
                known = ", ".join(candidate.name for candidate in TOOLS)
                raise ApiError(404, "unknown_tool", f"there is no tool {params.name!r}: choose from {known}")
            text, result = await self._called(tool, arguments_of(tool, params.arguments), context)
        except ApiError as error:
            return _failed((public_lines if error.code == ProgramFailedError.kind else public_text)(str(error)))
        except PyRAGError as error:
            return _failed(public_text(str(from_pyrag(error))))
        except Exception:
            logging.getLogger(__name__).exception("the tool %s failed", params.name)
            return _failed("internal error: see the log of the server")
        return types.CallToolResult(
            content=[types.TextContent(text=text)], structured_content=msgspec.to_builtins(result)
        )

    async def _called(self, tool: ToolSpec, arguments: Any, context: Context) -> tuple[str, Any]:
        from pyrag.server.mcp.tools import answer_text, passages_text, value_text

        tools, access = await self._opening(), access_of_request(context)

        async def report(number: int, line: str) -> None:
            await context.session.report_progress(float(number), None, line)

        if tool.name == "ask":
            answered = await tools.ask(arguments, access, report)
            return answer_text(answered), answered
        if tool.name == "run_program":
            ran = await tools.run_program(arguments, access, report)
            return value_text(ran), ran
        if tool.name == "search":
            result = await tools.search(arguments, access)
            return passages_text(result.passages), result
        opened: PassageResult = await tools.open_passage(arguments, access)
        return passages_text([opened]), opened

    async def _list_resources(self, context: Context, _: Any) -> types.ListResourcesResult:
        """Answer `resources/list` with the indexes that the caller may use."""
        resources = [
            types.Resource(
                uri=index_uri(name),
                name=name,
                title=f"Index {name}",
                description=f"Description of the index {name}: kind, number of passages and files, time of its build.",
                mime_type=_JSON,
            )
            for name in self._allowed(context)
        ]
        reference = types.Resource(
            uri=REFERENCE,
            name="programs",
            title="Reference of programs",
            description="All functions that a program of run_program may call, with their rules and examples.",
            mime_type="text/markdown",
        )
        return types.ListResourcesResult(resources=[*resources, reference])

    async def _list_templates(self, context: Context, _: Any) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list` with the address of a passage."""
        template = types.ResourceTemplate(
            uri_template=PASSAGE_TEMPLATE,
            name=_TEMPLATE_NAME,
            title="Passage",
            description="A passage of an index by its id, as search and the citations of ask name it in `uri`.",
            mime_type=_JSON,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer `resources/read` with an index's description or a passage, as JSON."""
        uri = str(params.uri)
        if uri == REFERENCE:
            from pyrag.methods.program_reference import program_reference

            markdown = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=program_reference())
            return types.ReadResourceResult(contents=[markdown])
        try:
            name, key = read_uri(uri)
            tools, access = await self._opening(), access_of_request(context)
            if key is None:
                content = tools.about(name, access)
            else:
                content = await tools.open_passage(OpenArguments(id=key, index=name), access)
        except (ApiError, PyRAGError) as error:
            message = public_text(str(error))
            code = types.INVALID_PARAMS if isinstance(error, ApiError) else types.INTERNAL_ERROR
            raise MCPError(code=code, message=message, data={"uri": uri}) from None
        text = msgspec.json.encode(content).decode()
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_JSON, text=text)])

    def _allowed(self, context: Context) -> list[str]:
        access = access_of_request(context)
        return [name for name in self._names if access.allows(name)]


def access_of_request(context: Context) -> Access:
    """Return the rights of the caller: all rights over stdio, and the API key's rights over HTTP."""
    if context.request is None:
        return Access()
    from pyrag.server.guard import ACCESS  # imports the whole service

    access: Access = context.request.scope[ACCESS]
    return access


def _listed(tool: ToolSpec, indexes: Sequence[str], only_reads: bool) -> types.Tool:
    runs_programs = tool.name in ("ask", "run_program")
    reads = only_reads or not runs_programs
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(indexes),
        output_schema=object_schema(tool.result),
        annotations=types.ToolAnnotations(read_only_hint=reads, idempotent_hint=reads, open_world_hint=False),
    )


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)
