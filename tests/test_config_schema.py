"""The published schema: current, and of one mind with what reads the configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import REPOSITORY
from jsonschema import Draft7Validator
from test_config import EVERYTHING

from capturelint.config import Config, Override, parse_config
from capturelint.config.load import toml_document
from capturelint.config.schema import render_schema
from capturelint.errors import ConfigError
from capturelint.model import Confidence, Severity

SCHEMA = json.loads(render_schema())


def test_the_published_schema_is_current() -> None:
    published = (REPOSITORY / "capturelint.schema.json").read_text(encoding="utf-8")
    assert published == render_schema(), "write it anew: capturelint config --schema > capturelint.schema.json"


def test_the_schema_is_one() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert set(SCHEMA["properties"]) == {
        name.replace("_", "-")
        for name in Config.__dataclass_fields__
        if name not in ("source", "notes", "file", "table")
    }
    assert all(each["description"] for each in SCHEMA["properties"].values())


def test_defaults_are_those_of_the_configuration() -> None:
    defaults = {name: each["default"] for name, each in SCHEMA["properties"].items() if "default" in each}
    assert {"min-confidence", "fail-on", "max-graphs", "ignore", "per-file-ignores"} <= set(defaults)
    assert parse_config(defaults, "a.toml") == parse_config({}, "a.toml")


def verdicts(document: Any) -> tuple[bool, bool]:
    """Whether the schema and the reader take a document."""
    try:
        parse_config(document, "a.toml")
        read = True
    except ConfigError:
        read = False
    return Draft7Validator(SCHEMA).is_valid(document), read


OVERRIDE = {"paths": ["tests/**"], "ignore": ["CG1"]}
TAKEN: list[dict[str, Any]] = [
    {},
    {"select": ["ALL"], "ignore": []},
    {"select": [" CG1 "]},
    {"exclude": ["a b/*.py", "ö"]},
    {"regions": ["pkg.mod:Class.method", "**:*Backend.f", " a:b "]},
    {"torch-version": "2"},
    {"max-graphs": 1},
    {"rule-url": "https://example.org/{code}"},
    {"cache-dir": ".cache", "baseline": "lint/known.json"},
    {"rule-url": "http://example.org/x#{name}"},
    {"per-file-ignores": {"tests/**": ["CG1"], "a": []}},
    {"overrides": []},
    {"overrides": [OVERRIDE, {"paths": ["a"], "min-confidence": "possible", "fail-on": "warning", "select": ["CG1"]}]},
    {"vocabulary": {"predicates": {"a.größe": True}, "synchronizes": ["f"]}},
    {"harness": [{"region": "pkg.mod:C.m", "setup": "a:b", "inputs": ["float16[8]"], "time-limit": 0.5, "path": "x"}]},
    {"harness": [{"region": "a/b.py:*", "inputs": {"x": "int32[8] in 1..4"}, "path": ["x", "y"], "run": "a:b.c"}]},
]
REFUSED: list[dict[str, Any]] = [
    {"slect": []},
    {"min_confidence": "likely"},
    {"select": []},
    {"select": "CG1"},
    {"select": [1]},
    {"ignore": [""]},
    {"exclude": [" "]},
    {"exclude": {"a": 1}},
    {"regions": ["pkg.mod.f"]},
    {"regions": ["a:b c"]},
    {"presets": [None]},
    {"min-confidence": "sure"},
    {"fail-on": True},
    {"require-regions": 1},
    {"torch-version": 2.11},
    {"torch-version": "latest"},
    {"torch-version": "2."},
    {"max-graphs": 0},
    {"max-graphs": True},
    {"max-graphs": 1.5},
    {"rule-url": "https://example.org/"},
    {"rule-url": "ftp://example.org/{code}"},
    {"rule-url": 3},
    {"cache-dir": " "},
    {"cache-dir": 3},
    {"baseline": ""},
    {"per-file-ignores": {"a": "CG1"}},
    {"per-file-ignores": []},
    {"overrides": {"paths": ["a"]}},
    {"overrides": [{"ignore": ["CG1"]}]},
    {"overrides": [{"paths": ["a"]}]},
    {"overrides": [{"paths": [], "ignore": ["CG1"]}]},
    {"overrides": [{**OVERRIDE, "exclude": ["b"]}]},
    {"overrides": [{**OVERRIDE, "select": []}]},
    {"overrides": ["a"]},
    {"vocabulary": {"synchronize": []}},
    {"vocabulary": {"capture-safe": ["a b"]}},
    {"vocabulary": {"capture-safe": ["1a"]}},
    {"vocabulary": {"predicates": {"f": 1}}},
    {"vocabulary": {"predicates": {"a b": True}}},
    {"vocabulary": []},
    {"harness": {}},
    {"harness": [{}]},
    {"harness": [{"region": "a.b"}]},
    {"harness": [{"region": "a:b", "setup": "make"}]},
    {"harness": [{"region": "a:b", "inputs": 3}]},
    {"harness": [{"region": "a:b", "time-limit": 0}]},
    {"harness": [{"region": "a:b", "path": [1]}]},
    {"harness": [{"region": "a:b", "steup": "a:b"}]},
]


@pytest.mark.parametrize("document", TAKEN, ids=str)
def test_both_take(document: dict[str, Any]) -> None:
    assert verdicts(document) == (True, True)


@pytest.mark.parametrize("document", REFUSED, ids=str)
def test_both_refuse(document: dict[str, Any]) -> None:
    assert verdicts(document) == (False, False)


#: values of every type that TOML has, to be put in the place of each value that is right
ODD: tuple[Any, ...] = (
    *(
        True,
        0,
        3,
        -1,
        0.5,
        "",
        " ",
        "CG1",
        "a:b",
        "a.b",
        "2.11",
        "likely",
        "error",
        "größe",
        "a\nb",
        "https://x/{code}",
    ),
    *([], [""], ["a"], ["a:b"], ["a", 1], [[]], [{}], {}, {"a": 1}, {"a": True}, {"a": ["b"]}, {"": []}),
)


def replaced(value: Any) -> Iterator[Any]:
    """``value`` with each of its parts, one at a time, replaced by each odd one. Specs are the reader's alone."""
    yield from ODD
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        for odd in replaced(item) if key != "inputs" else ():
            changed = dict(value) if isinstance(value, dict) else list(value)
            changed[key] = odd
            yield changed


def test_both_are_of_one_mind_about_odd_values() -> None:
    documents = [
        {key: odd} for taken in TAKEN for key, value in taken.items() for odd in replaced(value) if key != "inputs"
    ]
    assert len(documents) > 1000
    differ = [(document, both) for document in documents if len(set(both := verdicts(document))) == 2]
    assert differ == []


def test_both_take_what_is_documented() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    documents = [toml_document(text) for text in re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)]
    tables = [document["tool"]["capturelint"] for document in documents if document is not None]
    assert len(tables) == len(documents) > 0
    for table in (*tables, toml_document(EVERYTHING)):
        assert verdicts(table) == (True, True)


def test_an_override_in_full() -> None:
    config = parse_config(
        {"overrides": [{"paths": ["a"], "select": ["CG1"], "min-confidence": "certain", "fail-on": "warning"}]},
        "a.toml",
    )
    assert config.overrides == (Override(("a",), ("CG1",), (), Confidence.CERTAIN, Severity.WARNING),)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"ignore": ["CG1"]}, "overrides[0].paths: is missing"),
        ({"paths": ["a"]}, "overrides[0]: changes nothing: it needs select, ignore, min-confidence or fail-on"),
        ({"path": ["a"]}, "overrides[0].path: unknown key; did you mean 'paths'?"),
        ({**OVERRIDE, "fail-on": "never"}, "overrides[0].fail-on: 'never' is none of warning, error"),
        (3, "overrides[0]: should be a table, not an integer"),
    ],
)
def test_wrong_overrides(override: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"overrides": [override]}, "a.toml")
    assert str(caught.value).startswith(f"a.toml: {message}")
