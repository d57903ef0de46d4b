# Ultracluster: the package `nixl` where only the one with the library, nixl_cu<CUDA>, is installed. Programs import nixl and
# nixl._api; the library may be loaded only once, under its own name.
import importlib
import importlib.util
import sys

_name = next(name for name in ("nixl_cu13", "nixl_cu12") if importlib.util.find_spec(name))
for _module in ("_bindings", "_utils", "logging", "_api"):
    sys.modules[f"nixl.{_module}"] = importlib.import_module(f"{_name}.{_module}")
sys.modules["nixl"] = importlib.import_module(_name)
