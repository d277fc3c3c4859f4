"""The cache of images, and the first file system of a virtual machine."""

import lzma
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from driver import image, initramfs


class Cache(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = Path(folder.name) / "cache"
        self.made: list[str] = []
        quiet = mock.patch.object(image, "say")
        quiet.start()
        self.addCleanup(quiet.stop)

    def get(self, recipe: object) -> Path:
        def make(part: Path) -> None:
            self.made.append(str(recipe))
            part.mkdir()
            (part / "content").write_text(str(recipe))

        return image.kept(self.cache, "root", recipe, make)

    def test_an_image_is_made_once_for_each_recipe(self) -> None:
        first = self.get(["a"])
        self.assertEqual(self.get(["a"]), first)
        self.assertNotEqual(self.get(["a", "b"]), first)
        self.assertEqual(len(self.made), 2)

    def test_what_is_half_made_is_never_used(self) -> None:
        def broken(part: Path) -> None:
            part.mkdir()
            (part / "content").write_text("half")
            raise image.ImageError("no network")

        with self.assertRaises(image.ImageError):
            image.kept(self.cache, "root", ["a"], broken)
        self.assertEqual((self.get(["a"]) / "content").read_text(), "['a']")

    def test_the_latest_used_stay(self) -> None:
        for number in range(4):
            path = self.get([number])
            os.utime(path, (number, number))
        self.get([4])
        self.assertEqual(len(list(self.cache.glob("root-*"))), image.KEPT)

    def test_only_releases_with_these_packages_will_do(self) -> None:
        release = self.cache.with_name("os-release")
        release.write_text('ID=debian\nVERSION_CODENAME="bookworm"\n')
        self.assertEqual(image.suite(str(release)), "bookworm")
        release.write_text("ID=fedora\nVERSION_CODENAME=x\n")
        with self.assertRaisesRegex(image.ImageError, "Debian"):
            image.suite(str(release))


class Initramfs(unittest.TestCase):
    def test_a_module_comes_after_what_it_needs(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            needs = {
                "overlay": "",
                "virtio_net": "virtio,net_failover",
                "net_failover": "failover",
                "failover": "",
                "virtio": "",
                "virtio-rng": "virtio",
                "unrelated": "virtio",
            }
            for module, names in needs.items():
                content = b"\x7fELF\0alias=x\0depends=" + names.encode() + b"\0name=x\0"
                (folder / f"{module}.ko").write_bytes(content)
            packed = folder / "failover.ko"
            (folder / "failover.ko.xz").write_bytes(lzma.compress(packed.read_bytes()))
            packed.unlink()
            made = initramfs.modules(folder)
        self.assertTrue(all(content.startswith(b"\x7fELF") for content in made.values()))
        order = [name.removesuffix(".ko") for name in made]
        self.assertNotIn("unrelated", order)
        self.assertLess(order.index("failover"), order.index("net_failover"))
        self.assertLess(order.index("net_failover"), order.index("virtio_net"))
        self.assertLess(order.index("virtio"), order.index("virtio_rng"))
        self.assertEqual(len(order), len(set(order)))

    def test_the_archive_is_newc(self) -> None:
        archive = initramfs.Archive()
        archive.folder("bin")
        archive.file("bin/tool", b"12345", 0o755)
        archive.link("bin/sh", "tool")
        entries = read(archive.finish())
        self.assertEqual(
            entries,
            [
                ("bin", 0o040755, b""),
                ("bin/tool", 0o100755, b"12345"),
                ("bin/sh", 0o120777, b"tool"),
                ("TRAILER!!!", 0, b""),
            ],
        )


def read(data: bytes) -> list[tuple[str, int, bytes]]:
    """Reads an archive by the rules of its format."""
    entries = []
    at = 0
    while at < len(data):
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        start = at + 110
        name = data[start : start + name_size - 1].decode()
        start = (start + name_size + 3) // 4 * 4
        entries.append((name, mode, data[start : start + size]))
        at = (start + size + 3) // 4 * 4
    return entries
