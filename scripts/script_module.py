"""Scripts of this folder as Python modules, which `import` does not find as their names do not end in .py."""

import importlib.machinery
import importlib.util
import pathlib
import sys


def load_script(name):
    """Returns scripts/NAME as a module, without a file of its byte code."""
    sys.dont_write_bytecode = True
    path = pathlib.Path(__file__).resolve().parent / name
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module  # where its dataclasses look for it
    loader.exec_module(module)
    return module
