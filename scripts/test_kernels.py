"""The kernels that scripts/vm-run has fetched for the CPU of a build, for the scripts that write docs/reference/kernels.md."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/kernels.md"
KERNELS = ["5.10", "6.1", "6.12", "6.12-16k", "7.2"]  # 16k: pages of 16 KiB, arm64 only
ARM64 = ", arm64"  # what the page adds to the name of a kernel for that CPU
LABELS = [kernel + cpu for cpu in ("", ARM64) for kernel in KERNELS]  # as the page orders them
AARCH64 = 183  # EM_AARCH64, of e_machine in elf(5)


class TestKernels:
    def __init__(self, build):
        """`build`: a directory with espy, whose CPU is that of the kernels."""
        self.build = pathlib.Path(build).resolve()
        with open(self.build / "espy", "rb") as file:
            self.is_arm64 = int.from_bytes(file.read(20)[18:], "little") == AARCH64

    def fetched(self):
        cache = pathlib.Path(os.environ.get("VMLAB_CACHE", pathlib.Path.home() / ".cache/vmlab"))
        cache /= "arm64" if self.is_arm64 else ""
        return [kernel for kernel in KERNELS if (cache / kernel).is_dir()]

    def label(self, kernel):
        return kernel + (ARM64 if self.is_arm64 else "")

    def command(self, kernel, seconds, *command, megabytes=1024, options=()):
        """The command line that runs `command` in the top directory on that kernel, for `seconds` at most; `options` are
        vm-run's."""
        return ["scripts/vm-run", "-k", kernel, "--arch", "arm64" if self.is_arm64 else "amd64", "-m", str(megabytes),
                "-t", str(seconds), *options, "--", *map(str, command)]
