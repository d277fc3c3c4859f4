"""The first file system of a virtual machine: busybox, the kernel modules of its devices, a script.

The archive is written here, in the `newc` form of cpio, since it has three kinds of entries only.
"""

import lzma
import re
import stat
from pathlib import Path

# What the devices of `qemu.py` and the root need, in any order.
MODULES = (
    "overlay",
    "virtio_blk",
    "virtio_console",
    "virtio_net",
    "virtio_pci",
    "virtio_rng",
)

INIT = """\
#!/bin/sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in $(cat /modules/ORDER); do insmod "/modules/$module"; done
for word in $(cat /proc/cmdline); do
    case "$word" in
        e2e.probe) echo e2e-probe-ok; poweroff -f ;;
        e2e.address=*) address=${word#*=} ;;
    esac
done
mkdir -p /image /node /system
mount -t ext4 -o ro /dev/vda /image
mount -t ext4 /dev/vdb /node
mount -t overlay overlay -o lowerdir=/image,upperdir=/node/upper,workdir=/node/work /system
if [ -b /dev/vdc ]; then
    mkdir -p /system/nix/store
    mount -t ext4 -o ro /dev/vdc /system/nix/store
fi
ip link set lo up
ip link set eth0 name eth1
ip addr add "$address/24" dev eth1
ip link set eth1 up
for folder in dev proc sys; do mount --move /$folder /system/$folder; done
exec switch_root /system /sbin/init
"""


def build(kernel: Path) -> bytes:
    """The archive for the kernel that is unpacked in `kernel`."""
    archive = Archive()
    for name in ("bin", "dev", "modules", "proc", "sys"):
        archive.folder(name)
    archive.file("init", INIT.encode(), 0o755)
    archive.file("bin/busybox", (kernel / "bin/busybox").read_bytes(), 0o755)
    archive.link("bin/sh", "busybox")
    order = modules(kernel / "lib/modules")
    archive.file("modules/ORDER", "\n".join(order).encode(), 0o644)
    for name, content in order.items():
        archive.file(f"modules/{name}", content, 0o644)
    return archive.finish()


def modules(folder: Path) -> dict[str, bytes]:
    """The modules that `MODULES` names and those that they need, each after what it needs."""
    found = {path.name.split(".")[0].replace("-", "_"): path for path in folder.rglob("*.ko*")}
    order: dict[str, bytes] = {}

    def add(name: str) -> None:
        path = found.get(name)
        # What is not there as a file is a part of the kernel.
        if path is None or f"{name}.ko" in order:
            return
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        for needed in needs(content):
            add(needed)
        order[f"{name}.ko"] = content

    for name in MODULES:
        add(name)
    return order


def needs(module: bytes) -> list[str]:
    """The names in the `depends=` entry of a module."""
    entry = re.search(rb"\0depends=([^\0]*)\0", module)
    names = entry[1].decode().split(",") if entry else []
    return [name.replace("-", "_") for name in names if name]


class Archive:
    """A cpio archive in the making."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._count = 0

    def folder(self, name: str) -> None:
        """Adds a folder."""
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, content: bytes, mode: int) -> None:
        """Adds a file."""
        self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name: str, target: str) -> None:
        """Adds a symbolic link."""
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def finish(self) -> bytes:
        """The whole archive."""
        self._entry("TRAILER!!!", 0, b"")
        return bytes(self._data)

    def _entry(self, name: str, mode: int, content: bytes) -> None:
        self._count += 1
        path = name.encode() + b"\0"
        fields = [self._count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0]
        self._data += b"070701" + b"".join(b"%08X" % field for field in fields) + path
        self._pad()
        self._data += content
        self._pad()

    def _pad(self) -> None:
        self._data += b"\0" * (-len(self._data) % 4)
