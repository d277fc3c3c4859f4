"""The command line, as far as it goes without root."""

import contextlib
import io
import unittest
from unittest import mock

from driver import __main__ as program


class CommandLine(unittest.TestCase):
    def run_main(self, *words: str) -> tuple[int, str]:
        errors = io.StringIO()
        given = ["driver", "folder", "--cache", "c", "--logs", "l", *words]
        with mock.patch("sys.argv", given), contextlib.redirect_stderr(errors):
            return program.main(), errors.getvalue()

    def test_without_root_it_says_so(self) -> None:
        with mock.patch("os.geteuid", return_value=1000):
            status, said = self.run_main()
        self.assertEqual(status, 2)
        self.assertIn("root is needed", said)

    def test_missing_programs_are_named(self) -> None:
        with (
            mock.patch("os.geteuid", return_value=0),
            mock.patch("shutil.which", return_value=None),
        ):
            status, said = self.run_main()
            self.assertEqual(status, 2)
            self.assertIn("systemd-nspawn", said)
            status, said = self.run_main("--backend", "qemu")
            self.assertEqual(status, 2)
            self.assertIn("vde_switch", said)

    def test_another_backend_is_refused(self) -> None:
        with self.assertRaises(SystemExit):
            self.run_main("--backend", "xen")

    def test_a_deadline_is_a_time(self) -> None:
        given = ["driver", "folder", "--cache", "c", "--logs", "l"]
        with mock.patch("sys.argv", given):
            self.assertEqual(program.arguments().deadline, 3600)
        for bad in ("0", "-1", "604801", "soon"):
            with self.assertRaises(SystemExit):
                self.run_main(f"--deadline={bad}")
