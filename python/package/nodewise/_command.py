"""The nodewise command, which the wheel carries."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence

#: What ends a measurement with results: Ctrl-C, findings.
_RESULTS = (0, 1)


class CommandError(RuntimeError):
    """The command failed; the message is its own."""

    def __init__(self, words: Sequence[str], code: int, message: str) -> None:
        super().__init__(message or f"nodewise {' '.join(words)}: exit code {code}")
        self.code = code


class Document(Mapping[str, Any]):
    """A JSON document of the command as a mapping; what is asked most is an attribute of what is made of it."""

    def __init__(self, document: Dict[str, Any]) -> None:
        self._document = document

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)


def command_path() -> str:
    """The path of the command: that of ``NODEWISE``, of this environment, or of ``PATH``."""
    chosen = os.environ.get("NODEWISE")
    if chosen:
        return chosen
    schemes = [None, f"{os.name}_user"]
    for scheme in schemes:
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        path = os.path.join(folder, "nodewise")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("nodewise")
    if found is None:
        raise CommandError([], 127, "the nodewise command is missing: pip install --force-reinstall nodewise")
    return found


def run(words: Sequence[str], *, input: Optional[str] = None) -> str:
    """Runs the command and returns what it printed."""
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        [command_path(), *words], input=input, capture_output=True, text=True, errors="replace", env=environment
    )
    if done.returncode not in _RESULTS or (done.returncode != 0 and not done.stdout):
        raise CommandError(words, done.returncode, done.stderr.strip())
    return done.stdout


def document(words: Sequence[str]) -> Any:
    """Runs the command with ``--json``."""
    return json.loads(run([*words, "--json"]))
