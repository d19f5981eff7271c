#!/usr/bin/env python3
"""extending.py BUILD: the worked examples of docs/internals/extending.md. Applies its patches to a copy of src, compiles the files that
they change, links them with the libraries of BUILD, and runs the commands of the page with that espy. Needs root."""

import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/internals/extending.md"
BLOCK = re.compile(r"^```(diff|console)\n(.*?)^```$", re.M | re.S)


def apply(patch, tree):
    """Applies a patch to `tree` by the text of its hunks, wherever they are in the file. Gives the files."""
    files = []
    for part in re.split(r"^(?=--- )", patch, flags=re.M)[1:]:
        old, new = re.match(r"--- (\S+)\n\+\+\+ b/(\S+)\n", part).groups()
        path = tree / new
        text = "" if old == "/dev/null" else path.read_text()
        for header, hunk in re.findall(r"^@@ (.*) @@\n((?:[ +-].*\n|\n)+)", part, re.M):
            lines = [line or " " for line in hunk.splitlines()]
            before = "".join(line[1:] + "\n" for line in lines if line[0] != "+")
            after = "".join(line[1:] + "\n" for line in lines if line[0] != "-")
            assert old == "/dev/null" or text.count(before) == 1, f"{PAGE}: {new} has not once:\n{before}"
            counts = [int(each) for each in re.fullmatch(r"-\d+,(\d+) \+\d+,(\d+)", header).groups()]
            real = [before.count("\n"), after.count("\n")]
            assert counts == real, f"{PAGE}: a hunk of {new} has {real} lines, not {counts}"
            text = text.replace(before, after, 1) if before else after
        path.write_text(text)
        files.append(path)
    return files


class Build:
    def __init__(self, directory, scratch):
        self.directory, self.scratch = directory, scratch
        said = subprocess.run(["ninja", "-t", "commands", "espy"], cwd=directory, capture_output=True, text=True, check=True)
        commands = said.stdout.splitlines()
        self.compiler = self.words(next(line for line in commands if " -c " in line and line.rstrip("\"'").endswith("src/cli/main.cc")))
        self.linker = self.words(next(line for line in commands if " -o espy " in line))

    @staticmethod
    def words(command):
        """Its words from the compiler on, without the shell's."""
        words = shlex.split(command)
        first = next(i for i, word in enumerate(words) if re.search(r"(^|/)[\w-]*(c|g|clang)\+\+(-\d+)?$", word))
        end = words.index("&&", first) if "&&" in words[first:] else len(words)
        return words[first:end]

    def run(self, words):
        done = subprocess.run(words, cwd=self.directory, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"

    def compile(self, source):
        target = self.scratch / (source.name + ".o")
        words = list(self.compiler)
        for option in ("-o", "-MF", "-MT"):
            if option in words:
                at = words.index(option)
                del words[at : at + 2]
        at = words.index("-c")
        self.run([*words[:at], f"-I{self.directory}/generated", "-O0", "-U_FORTIFY_SOURCE", "-c", str(source), "-o", str(target)])
        return target

    def link(self, objects, target):
        """Functions of `objects` stand for those of the libraries."""
        words = [word for word in self.linker if word != "-s"]
        at = words.index("-o")
        self.run([*words[:at], "-Wl,-z,muldefs", *map(str, objects), "-o", str(target), *words[at + 2 :]])


def run_console(block, environment, folder):
    """Runs the lines after `$ `, and compares what they say."""
    failed = 0
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.stdout != expected:
            failed += 1
            print(f"{PAGE}: $ {command}\nexpected:\n{expected}got:\n{done.stdout}")
    return failed


def main():
    directory = pathlib.Path(sys.argv[1]).resolve()
    if os.geteuid() != 0:
        print("extending.py:1: Skipped\ntracing needs root")
        return 77
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        shutil.copytree(ROOT / "src", scratch / "src")
        blocks = BLOCK.findall(PAGE.read_text())
        changed = [path for kind, text in blocks if kind == "diff" for path in apply(text, scratch)]
        build = Build(directory, scratch)
        build.compiler[1:1] = [f"-I{scratch}/src"]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(build.compile, dict.fromkeys(path for path in changed if path.suffix == ".cc")))
        (scratch / "bin").mkdir()
        build.link(objects, scratch / "bin/espy")
        environment = {**os.environ, "PATH": f"{scratch}/bin:{os.environ['PATH']}"}
        consoles = [text for kind, text in blocks if kind == "console"]
        assert objects and consoles
        return 1 if sum(run_console(text, environment, scratch) for text in consoles) else 0


if __name__ == "__main__":
    sys.exit(main())
