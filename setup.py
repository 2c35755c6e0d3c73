"""What pyproject.toml cannot say: the configurations and the demonstration's bundle are installed within rtbrain/."""

from pathlib import Path
from shutil import copy2, copytree

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("neurolong-demo",)
"""Bundles in models/ that everybody gets; the others come with the repository."""


class BuildWithData(build_py):
    """Copy configurations and bundles beside the modules; an editable install finds them where they are."""

    def run(self) -> None:
        """Build as usual, then copy."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "rtbrain", "configs")
            self.mkpath(str(target))
            for config in sorted(Path("configs").glob("*.yaml")):
                copy2(config, target)
            for name in SHIPPED:
                copytree(Path("models", name), Path(self.build_lib, "rtbrain", "models", name), dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithData})
