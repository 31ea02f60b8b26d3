"""The rule catalogue: the files that ship are right, wrong ones are refused by file and key, selectors resolve."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from capturelint.errors import RulebookError, UsageError
from capturelint.model import Consequence, Severity
from capturelint.rulebook import Rule, Rulebook, load_rulebook, render_page, render_table, rules_directory
from capturelint.rulebook.rules import HEADINGS, OPTIONAL, _load

ROOT = Path(__file__).resolve().parent.parent
RULES = rules_directory()
CODES = sorted(path.stem for path in RULES.glob("CG*.yaml"))
FIRST_RELEASE = {
    "CG000": "syntax-error",
    "CG001": "unused-suppression",
    "CG002": "unknown-rule-in-suppression",
    "CG101": "host-scalar-read",
    "CG102": "device-to-host-copy",
    "CG103": "tensor-formatted",
    "CG104": "explicit-synchronize",
    "CG201": "host-to-device-copy",
    "CG301": "tensor-branch",
    "CG302": "tensor-loop-bound",
    "CG401": "dynamic-output-shape",
    "CG402": "tensor-valued-size",
    "CG501": "rebound-static-input",
    "CG502": "rebound-state-in-region",
    "CG601": "frozen-launch-scalar",
}


@pytest.fixture(scope="module")
def rulebook() -> Rulebook:
    return load_rulebook()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A rules folder of its own, with one rule to spoil."""
    shutil.copy(RULES / "CG101.yaml", tmp_path)
    return tmp_path


def spoil(directory: Path, old: str, new: str) -> Path:
    path = directory / "CG101.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


class TestShippedRules:
    def test_the_first_release_is_complete(self, rulebook: Rulebook) -> None:
        names = {code: rule.name for code, rule in rulebook.rules.items()}
        assert names.items() >= FIRST_RELEASE.items()
        assert sorted(rulebook.rules) == CODES

    @pytest.mark.parametrize("code", CODES)
    def test_every_page_is_whole(self, rulebook: Rulebook, code: str) -> None:
        rule = rulebook.rules[code]
        assert rule.source.stem == code
        page = rule.page
        for heading in HEADINGS:
            assert getattr(page, heading.replace("-", "_")) or heading in OPTIONAL, heading
        assert all(example.expected() for example in page.bad)
        assert not any(example.expected() for example in page.good)
        assert any(found == code for example in page.bad for _, _, found in example.expected())

    @pytest.mark.parametrize("code", CODES)
    def test_prose_is_short_and_examples_fit_a_terminal(self, rulebook: Rulebook, code: str) -> None:
        page = rulebook.rules[code].page
        prose = [text for text in vars(page).values() if isinstance(text, str)]
        assert 100 <= sum(len(text.split()) for text in prose) <= 260
        lines = [
            line
            for example in (*page.bad, *page.good)
            for text in example.sources().values()
            for line in text.splitlines()
        ]
        assert max(map(len, lines)) <= 120

    def test_names_are_unique(self, rulebook: Rulebook) -> None:
        assert len(rulebook.by_name) == len(rulebook.rules)

    def test_severity_follows_the_consequence(self, rulebook: Rulebook) -> None:
        assert rulebook.rules["CG101"].consequence is Consequence.CAPTURE_ERROR
        assert rulebook.rules["CG101"].severity is Severity.ERROR
        assert rulebook.rules["CG501"].severity is Severity.ERROR
        assert rulebook.rules["CG001"].severity is Severity.WARNING

    def test_a_file_that_could_not_be_checked_is_an_error(self, rulebook: Rulebook) -> None:
        assert rulebook.rules["CG000"].severity is Severity.ERROR

    def test_the_message_names_the_expression(self, rulebook: Rulebook) -> None:
        expected = "`.item()` makes the CPU wait for the GPU; capture fails on this line"
        assert rulebook.rules["CG101"].message_for(".item()") == expected
        assert rulebook.rules["CG000"].message_for("a {brace} stays") == "a {brace} stays"

    def test_loading_is_quick_and_parses_no_page(self) -> None:
        seconds = []
        for _ in range(5):
            _load.cache_clear()
            start = time.process_time()
            book = load_rulebook()
            seconds.append(time.process_time() - start)
        assert min(seconds) < 0.06
        assert not any("page" in vars(rule) for rule in book.rules.values())

    def test_it_loads_once(self) -> None:
        assert load_rulebook() is load_rulebook()

    def test_it_travels_to_another_process(self, rulebook: Rulebook) -> None:
        copy = pickle.loads(pickle.dumps(rulebook))
        assert copy == rulebook
        assert copy.rules["CG101"].page == rulebook.rules["CG101"].page

    def test_importing_the_rulebook_imports_no_yaml(self) -> None:
        code = "import sys, capturelint.rulebook; sys.exit('yaml' in sys.modules)"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


class TestValidation:
    """Every error names the file and the key."""

    @pytest.mark.parametrize(
        ("old", "new", "key", "said"),
        [
            ("code: CG101\n", "code: CG102\n", "code", "not the file's name"),
            ("code: CG101\n", "code: 101\n", "code", "must be text"),
            ("name: host-scalar-read\n", "name: HostScalarRead\n", "name", "lower-case words"),
            ("name: host-scalar-read\n", "", "name", "missing"),
            ("name: host-scalar-read\n", "name: a\nname: b\n", "name", "given twice"),
            ("summary: a device", "summary: A device", "summary", "lower case"),
            ("summary: a device", "summary: " + "very " * 12 + "a device", "summary", "at most 12 words"),
            ("consequence: capture-error", "consequence: crash", "consequence", "must be one of capture-error"),
            ('since: "0.1.0"', "since: 0.1", "since", "must be text"),
            ('since: "0.1.0"', 'since: "1"', "since", "must be a version"),
            ('torch-versions: ">=2.0"', 'torch-versions: "new"', "torch-versions", "version range"),
            ("breaks: [host-wait]", "breaks: [luck]", "breaks", "must be among kernels, order"),
            ("breaks: [host-wait]", "breaks: host-wait", "breaks", "must be a list"),
            ("`{expression}` makes", "`{thing}` makes", "message", "the only placeholder"),
            ("`{expression}` makes", "`{expression` makes", "message", "expected '}'"),
            ("help: ", "hint: x\nhelp: ", "hint", "unknown key"),
            ("\nwhat-it-flags: |", "\nwhat-it-does: |", "what-it-flags", "missing"),
        ],
    )
    def test_wrong_facts_are_refused_at_load(self, directory: Path, old: str, new: str, key: str, said: str) -> None:
        path = spoil(directory, old, new)
        with pytest.raises(RulebookError) as caught:
            load_rulebook(directory)
        assert str(caught.value).startswith(f"{path}: {key}: ")
        assert said in str(caught.value)

    @pytest.mark.parametrize(
        ("old", "new", "key", "said"),
        [
            ("\ngood:\n", "\nwell:\n", "well", "unknown key"),
            ("\nwhat-it-misses: |\n", "\nwhat-it-misses: ''\nx: |\n", "x", "unknown key"),
            ("\nreferences:\n", "\nreferences: []\nolder:\n", "older", "unknown key"),
            ("  - https://docs.pytorch.org", "  - http://docs.pytorch.org", "references", "https addresses"),
            ("  - title: conversions, each of which waits\n", "  - titel: x\n", "bad[1].titel", "unknown key"),
            ("    files:\n      attention.py: |", "    files:\n      5: |", "bad[4].files", "must map paths to code"),
        ],
    )
    def test_wrong_pages_are_refused_when_asked_for(
        self, directory: Path, old: str, new: str, key: str, said: str
    ) -> None:
        path = spoil(directory, old, new)
        rule = load_rulebook(directory).rules["CG101"]
        with pytest.raises(RulebookError) as caught:
            _ = rule.page
        assert str(caught.value).startswith(f"{path}: {key}: ")
        assert said in str(caught.value)

    def test_headings_keep_their_order(self, directory: Path) -> None:
        path = directory / "CG101.yaml"
        head, heading, rest = path.read_text(encoding="utf-8").partition("\nwhen-it-is-fine:")
        misses, other, tail = rest.partition("\nwhat-it-misses:")
        path.write_text(
            f"{head}{other} |\n  nothing\n{heading}{misses}" + tail[tail.index("\nhow-") :], encoding="utf-8"
        )
        with pytest.raises(RulebookError, match=r"what-it-misses: out of order, when-it-is-fine comes first"):
            _ = load_rulebook(directory).rules["CG101"].page

    def test_broken_yaml_names_the_line_of_the_file(self, directory: Path) -> None:
        path = spoil(directory, "  - https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs", "  - 'open")
        line = path.read_text(encoding="utf-8").splitlines().index("  - 'open") + 1
        with pytest.raises(RulebookError) as caught:
            _ = load_rulebook(directory).rules["CG101"].page
        reported = int(str(caught.value).partition(" line ")[2].partition(":")[0])
        assert line <= reported <= line + 4

    def test_bytes_that_are_not_text(self, directory: Path) -> None:
        (directory / "CG101.yaml").write_bytes(b"code: \xff\n")
        with pytest.raises(RulebookError, match=r"CG101\.yaml: cannot be read"):
            load_rulebook(directory)

    def test_a_name_belongs_to_one_rule(self, directory: Path) -> None:
        text = (directory / "CG101.yaml").read_text(encoding="utf-8")
        (directory / "CG199.yaml").write_text(text.replace("code: CG101", "code: CG199"), encoding="utf-8")
        with pytest.raises(RulebookError, match=r"CG199\.yaml: name: 'host-scalar-read' is already taken by CG101"):
            load_rulebook(directory)

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(RulebookError, match="holds no rule files"):
            load_rulebook(tmp_path)

    def test_a_single_example_needs_no_list(self, directory: Path) -> None:
        path = directory / "CG101.yaml"
        text = path.read_text(encoding="utf-8")
        start, end = text.index("\ngood:\n"), text.index("\nwhen-it-is-fine:")
        text = text[:start] + "\ngood:\n  title: one\n  code: |\n    x = 1\n" + text[end:]
        path.write_text(text, encoding="utf-8")
        (example,) = load_rulebook(directory).rules["CG101"].page.good
        assert (example.title, example.code) == ("one", "x = 1\n")


class TestSelectors:
    def test_code_prefix_name_and_all(self, rulebook: Rulebook) -> None:
        assert rulebook.resolve("CG101") == {"CG101"}
        assert rulebook.resolve("host-scalar-read") == {"CG101"}
        assert rulebook.resolve("CG1") == {code for code in CODES if code.startswith("CG1")}
        assert rulebook.resolve("CG50") == {code for code in CODES if code.startswith("CG50")}
        assert rulebook.resolve("CG") == rulebook.resolve("ALL") == set(CODES)

    @pytest.mark.parametrize(
        ("selector", "hint"),
        [
            ("CG1O1", "; did you mean 'CG101'?"),
            ("cg101", "; did you mean 'CG101'?"),
            ("host-scaler-read", "; did you mean 'host-scalar-read'?"),
            ("all", "; did you mean 'ALL'?"),
            ("zzzzzz", ""),
        ],
    )
    def test_an_unknown_one_is_a_usage_error(self, rulebook: Rulebook, selector: str, hint: str) -> None:
        with pytest.raises(UsageError) as caught:
            rulebook.resolve(selector)
        assert str(caught.value) == f"unknown rule {selector!r}{hint}"

    @pytest.mark.parametrize("selector", ["", "C", "CG9999", "CG1011", "CG1*"])
    def test_what_only_looks_like_a_prefix(self, rulebook: Rulebook, selector: str) -> None:
        with pytest.raises(UsageError):
            rulebook.resolve(selector)

    def test_get_takes_codes_and_names_only(self, rulebook: Rulebook) -> None:
        assert rulebook.get("CG101") is rulebook.get("host-scalar-read") is rulebook.rules["CG101"]
        assert rulebook.get("CG1") is None

    def test_everything_is_selected_by_default(self, rulebook: Rulebook) -> None:
        assert rulebook.select((), ()) == set(CODES)
        assert rulebook.select((), ("CG1",)) == {code for code in CODES if not code.startswith("CG1")}

    def test_the_more_precise_selector_wins(self, rulebook: Rulebook) -> None:
        ones = {code for code in CODES if code.startswith("CG1")}
        assert rulebook.select(("CG1",), ("CG101",)) == ones - {"CG101"}
        assert rulebook.select(("CG101",), ("CG1",)) == {"CG101"}
        assert rulebook.select(("ALL", "tensor-formatted"), ("CG1",)) == set(CODES) - ones | {"CG103"}
        assert rulebook.select(("CG10",), ("CG",)) == {code for code in CODES if code.startswith("CG10")}

    def test_ignore_wins_between_equals(self, rulebook: Rulebook) -> None:
        assert rulebook.select(("CG101",), ("CG101",)) == set()
        assert rulebook.select(("CG101",), ("host-scalar-read",)) == set()
        assert rulebook.select(("ALL",), ("ALL",)) == set()

    def test_unknown_selectors_are_errors_on_both_sides(self, rulebook: Rulebook) -> None:
        for select, ignore in ((("CG999",), ()), ((), ("CG999",))):
            with pytest.raises(UsageError, match="unknown rule 'CG999'"):
                rulebook.select(select, ignore)


class TestLocation:
    def make(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        (folder / "CG101.yaml").write_text("", encoding="utf-8")
        return folder

    def test_a_checkout(self, tmp_path: Path) -> None:
        rules = self.make(tmp_path / "rules")
        assert rules_directory(tmp_path / "capturelint") == rules

    def test_a_wheel_comes_before_a_folder_of_somebody_else(self, tmp_path: Path) -> None:
        self.make(tmp_path / "rules")
        packed = self.make(tmp_path / "capturelint" / "_rules")
        assert rules_directory(tmp_path / "capturelint") == packed

    def test_neither(self, tmp_path: Path) -> None:
        (tmp_path / "rules").mkdir()
        with pytest.raises(RulebookError, match="installation is incomplete"):
            rules_directory(tmp_path / "capturelint")


class TestPages:
    def test_the_headings_come_in_order(self, rulebook: Rulebook) -> None:
        lines = render_page(rulebook.rules["CG101"]).splitlines()
        titles = [heading.replace("-", " ").capitalize() for heading in HEADINGS]
        assert [line for line in lines if line in titles] == titles

    def test_the_fact_table(self, rulebook: Rulebook) -> None:
        page = render_page(rulebook.rules["CG501"])
        facts = page.split("\n\n")[1].splitlines()
        assert facts[:4] == [
            "  code            CG501",
            "  name            rebound-static-input",
            "  severity        error",
            "  consequence     stale-replay (no error; replay uses what was true at capture)",
        ]
        assert "  torch versions  >=2.0" in facts
        assert "  since           0.1.0" in facts

    def test_examples_are_indented_whole(self, rulebook: Rulebook) -> None:
        rule = rulebook.rules["CG101"]
        page = render_page(rule)
        for example in (*rule.page.bad, *rule.page.good):
            for text in example.sources().values():
                for line in filter(None, text.splitlines()):
                    assert f"\n      {line}\n" in page
        assert "      # attention.py\n" in page

    @pytest.mark.parametrize("code", CODES)
    def test_prose_fits_the_width_and_loses_no_word(self, rulebook: Rulebook, code: str) -> None:
        rule = rulebook.rules[code]
        page = render_page(rule, width=80)
        for text in (text for text in vars(rule.page).values() if isinstance(text, str)):
            assert " ".join(text.split()) in " ".join(page.split())
        prose = page.partition("\nBad\n")[0].splitlines()
        assert all(len(line) <= 80 or line.startswith(("      ", "  help", "  conse")) for line in prose)

    def test_the_table_has_a_line_for_each_rule(self, rulebook: Rulebook) -> None:
        some: list[Rule] = [rulebook.rules["CG101"], rulebook.rules["CG001"]]
        lines = render_table(some).splitlines()
        assert [line.split()[0] for line in lines] == ["code", "CG101", "CG001"]
        assert lines[1].split("  ")[0] == "CG101"
        assert lines[1].endswith("a device value is read as a Python number")
