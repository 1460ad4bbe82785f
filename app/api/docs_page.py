"""openapi.yaml as one page, without scripts and other files."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

import orjson

from app.api.description import METHODS, description

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 small { font-weight: normal; opacity: .7; }
h2 { border-bottom: 1px solid var(--line); margin-top: 2.5rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0; padding: .3rem .7rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
code, pre { font: .87em/1.4 ui-monospace, monospace; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; border-radius: .3rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; border-top: 1px solid var(--line); padding: .3rem .6rem .3rem 0; }
.method { display: inline-block; min-width: 4.2rem; font-weight: bold; }
.text { white-space: pre-line; }
nav a { margin-right: 1rem; }
"""


@cache
def docs_page() -> bytes:
    """Return the page."""
    api = description()
    tags: list[dict[str, str]] = api["tags"]
    title, version = escape(api["info"]["title"]), escape(api["info"]["version"])
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{title}: the API</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title} <small>{version}</small></h1>",
        f"<p class='text'>{_text(api['info']['description'])}</p>",
        "<p>The same for machines: <a href='openapi.yaml'>openapi.yaml</a>, ",
        "<a href='openapi.json'>openapi.json</a>.</p><nav>",
        *(f"<a href='#{escape(tag['name'])}'>{escape(tag['name'])}</a>" for tag in tags),
        "<a href='#bodies'>bodies</a></nav>",
    ]
    for tag in tags:
        parts.append(f"<h2 id='{escape(tag['name'])}'>{escape(tag['name'])}</h2>")
        parts.append(f"<p class='text'>{_text(tag['description'])}</p>")
        parts += _operations(api, tag["name"])
    parts.append("<h2 id='bodies'>bodies</h2>")
    for name, schema in api["components"]["schemas"].items():
        parts.append(f"<details id='{escape(name)}'><summary><code>{escape(name)}</code></summary>")
        parts.append(f"<pre>{_schema(schema)}</pre></details>")
    parts.append("</body></html>")
    return "".join(parts).encode()


def _operations(api: dict[str, Any], tag: str) -> list[str]:
    parts: list[str] = []
    for path, item in api["paths"].items():
        for method in METHODS:
            operation = item.get(method)
            if operation is None or tag not in operation["tags"]:
                continue
            parts.append(f"<details id='{escape(operation['operationId'])}'><summary>")
            parts.append(f"<span class='method'>{method.upper()}</span><code>{escape(path)}</code><br>")
            parts.append(f"{escape(operation['summary'])}</summary>")
            if "description" in operation:
                parts.append(f"<p class='text'>{_text(operation['description'])}</p>")
            parts += _parameters(api, [*item.get("parameters", []), *operation.get("parameters", [])])
            if "requestBody" in operation:
                parts.append("<h4>Body</h4>" + _content(operation["requestBody"]["content"]))
            parts += _responses(api, operation["responses"])
            parts.append("</details>")
    return parts


def _parameters(api: dict[str, Any], parameters: list[dict[str, Any]]) -> list[str]:
    if not parameters:
        return []
    parts = ["<h4>Parameters</h4><table>"]
    for given in parameters:
        parameter = _resolved(api, given)
        need = "required" if parameter["required"] else "optional"
        parts.append(f"<tr><td><code>{escape(parameter['name'])}</code><br>{parameter['in']}, {need}</td>")
        parts.append(f"<td class='text'>{_text(parameter['description'])}</td></tr>")
    parts.append("</table>")
    return parts


def _responses(api: dict[str, Any], responses: dict[str, Any]) -> list[str]:
    parts = ["<h4>Answers</h4><table>"]
    for status, given in responses.items():
        response = _resolved(api, given)
        content = _content(response["content"]) if "content" in response else ""
        parts.append(f"<tr><td>{escape(str(status))}</td>")
        parts.append(f"<td><div class='text'>{_text(response['description'])}</div>{content}</td></tr>")
    parts.append("</table>")
    return parts


def _content(content: dict[str, Any]) -> str:
    parts: list[str] = []
    for media_type, body in content.items():
        schema = body.get("schema", {})
        if "$ref" in schema:
            name = escape(schema["$ref"].rpartition("/")[2])
            parts.append(f"<p><code>{escape(media_type)}</code>: <a href='#{name}'>{name}</a></p>")
        examples = [body["example"]] if "example" in body else []
        examples += [example["value"] for example in body.get("examples", {}).values()]
        parts += [f"<pre>{_example(example)}</pre>" for example in examples]
    return "".join(parts)


def _schema(schema: dict[str, Any]) -> str:
    text = escape(orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode())
    return text.replace("#/components/schemas/", "")


def _example(example: object) -> str:
    if isinstance(example, str):
        return escape(example)
    return escape(orjson.dumps(example, option=orjson.OPT_INDENT_2).decode())


def _resolved(api: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in given:
        return given
    _, _, kind, name = given["$ref"].split("/")
    found: dict[str, Any] = api["components"][kind][name]
    return found


def _text(markdown: str) -> str:
    """Show the little Markdown that descriptions use: code and bold."""
    pieces = escape(markdown.strip()).split("`")
    text = "".join(
        f"<code>{piece}</code>" if position % 2 else piece for position, piece in enumerate(pieces)
    )
    pieces = text.split("**")
    return "".join(f"<b>{piece}</b>" if position % 2 else piece for position, piece in enumerate(pieces))
