"""Folders, files and programs that a test lays out; the folders above them are made too."""

import json
from collections.abc import Mapping
from pathlib import Path


def folder_at(path: Path) -> Path:
    """Make a folder, and return its path."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def text_at(path: Path, text: str) -> Path:
    """Write a file, and return its path."""
    folder_at(path.parent)
    path.write_text(text)
    return path


def json_at(path: Path, value: object) -> Path:
    """Write a file of settings, from a value or as the text that it is, and return its path."""
    if isinstance(value, str):
        return text_at(path, value)
    return text_at(path, json.dumps(value))


def files_at(folder: Path, files: Mapping[str, str]) -> None:
    """Write files in a folder, each by its name there."""
    for name, text in files.items():
        text_at(folder / name, text)


def program_at(path: Path, text: str) -> Path:
    """Write a file that can be run, and return its path."""
    text_at(path, text).chmod(0o755)
    return path
