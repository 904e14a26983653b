"""What the site needs beyond MkDocs: the examples' files, and docstrings without Sphinx's marks."""  # noqa: INP001

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

EXAMPLES = Path(__file__).parents[1] / "examples"


def on_files(files: Any, config: Any) -> Any:
    """Put the examples beside the pages, so that links to them lead somewhere."""
    for example in sorted(EXAMPLES.glob("*.py")):
        files.append(File.generated(config, f"examples/{example.name}", content=example.read_bytes()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to files of the checkout point to their copies here."""
    return markdown.replace("](../examples/", "](examples/")


def on_page_content(html: str, **_: Any) -> str:
    """Leave out the roles of Sphinx: ``:class:`~evenkeel.control.Elasticity``` becomes ``Elasticity``."""
    return re.sub(
        r":(?:class|func|meth|mod|data|attr):<code>(~?)([\w.]+)</code>",
        lambda found: f"<code>{found[2].rpartition('.')[2] if found[1] else found[2]}</code>",
        html,
    )
