"""What pyproject.toml cannot say: a wheel carries `configs/` within the package, and nothing of earlier builds."""

import shutil

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class FreshBuild(build_py):
    """Copies the modules into an empty folder: methods that were removed since the last build would be found there."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    cmdclass={"build_py": FreshBuild},
    packages=[*find_packages(include=["benchmark*", "methods*"]), "benchmark._configs"],
    package_dir={"benchmark._configs": "configs"},
    package_data={
        "benchmark.live": ["live.css", "live.js"],
        "benchmark.report": ["report.css", "report.js"],
        "benchmark._configs": ["*.*", "*/*.*"],
    },
)
