"""What pyproject.toml cannot say: the configurations in configs/ are installed as rtbrain/configs."""

from pathlib import Path
from shutil import copy2

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfigs(build_py):
    """Copy the configurations beside the modules; an editable install finds them where they are."""

    def run(self) -> None:
        """Build as usual, then copy."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "rtbrain", "configs")
            self.mkpath(str(target))
            for config in sorted(Path("configs").glob("*.yaml")):
                copy2(config, target)


setup(cmdclass={"build_py": BuildWithConfigs})
