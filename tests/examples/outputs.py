"""What examples print, and where that is shown; run it to show it anew: ``python tests/examples/outputs.py``."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOK = ROOT / "examples" / "word_count.ipynb"
PAGE = ROOT / "docs" / "examples.md"


def run_example(example: Path, folder: Path) -> str:
    """Run an example as a user would, in some folder; give what it printed."""
    command, environment = [sys.executable, str(example)], {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def run_notebook() -> list[str]:
    """Run the cells of the notebook one after the other; give what each of those with code printed."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}, {cell['id']}", "exec"), names)
            printed.append(out.getvalue())
    return printed


def output_shown(example: Path, page: str) -> re.Match[str] | None:
    """Find what the page on examples shows as an example's output."""
    heading = re.escape(f"### {example.name}\n")
    return re.search(rf"^{heading}(?:(?!^#|^```).*\n)*```\n((?:(?!^```).*\n)*)```", page, re.MULTILINE)


def outputs_stored() -> list[str]:
    """Give the outputs that are stored in the notebook, of each cell with code."""
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    return ["".join(line for output in cell["outputs"] for line in output["text"]) for cell in cells]


def store_outputs(printed: list[str]) -> None:
    """Write what the cells printed into the notebook."""
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, text) in enumerate(zip(cells, printed, strict=True), 1):
        lines = text.splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
        cell["execution_count"] = number
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for example in EXAMPLES:
            page = PAGE.read_text()
            shown = output_shown(example, page)
            assert shown, f"{PAGE.name} has no place for the output of {example.name}"
            PAGE.write_text(page[: shown.start(1)] + run_example(example, Path(folder)) + page[shown.end(1) :])
        store_outputs(run_notebook())


if __name__ == "__main__":
    main()
