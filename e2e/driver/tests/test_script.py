"""A script's names, and what counts as passed and failed."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from driver import script
from driver.script import Script
from driver.watch import Watch


class Counting(unittest.TestCase):
    def run_script(self, text: str, watch: Watch | None = None) -> tuple[Script, str]:
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(script, "say"):
            path = Path(folder) / "testScript"
            path.write_text(text)
            made = Script(path, [], watch or Watch())
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors):
                made.run()
        return made, errors.getvalue()

    def counts(self, text: str) -> tuple[int, int]:
        made, _ = self.run_script(text)
        return made.passed, made.failed

    def test_each_subtest_counts(self) -> None:
        text = "with subtest('a'):\n    pass\nwith subtest('b'):\n    pass\n"
        self.assertEqual(self.counts(text), (2, 0))

    def test_the_first_failure_ends_the_script(self) -> None:
        good = "with subtest('good'):\n    pass\n"
        text = good + "with subtest('bad'):\n    assert False\n" + good
        self.assertEqual(self.counts(text), (1, 1))

    def test_a_failure_within_two_subtests_counts_once(self) -> None:
        text = "with subtest('a'):\n    with subtest('b'):\n        1 / 0\n"
        self.assertEqual(self.counts(text), (0, 1))

    def test_a_failure_outside_of_subtests_counts(self) -> None:
        self.assertEqual(self.counts("with subtest('a'):\n    pass\nraise ValueError\n"), (1, 1))

    def test_a_script_without_subtests_is_one(self) -> None:
        self.assertEqual(self.counts("start_all()\nassert machines == []\n"), (1, 0))
        self.assertEqual(self.counts("nonsense(\n"), (0, 1))

    def test_a_death_that_no_call_noticed_fails(self) -> None:
        watch = Watch()
        watch.report("gate", "gone")
        made, said = self.run_script("pass\n", watch)
        self.assertEqual((made.passed, made.failed), (0, 1))
        self.assertIn("gate died: gone", said)

    def test_the_line_of_the_script_is_shown(self) -> None:
        _, said = self.run_script("def f():\n    raise ValueError('why')\nf()\n")
        self.assertIn("testScript:3: f()", said)
        self.assertIn("ValueError: why", said)

    def test_retry_is_there(self) -> None:
        text = "seen = []\nretry(lambda last: seen.append(last) or True)\nassert seen == [False]\n"
        self.assertEqual(self.counts(text), (1, 0))
