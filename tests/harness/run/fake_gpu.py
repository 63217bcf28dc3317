"""The fake AMD GPU for tests of the program: starts it in a namespace, and steers the board while it runs."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SCRIPT = os.path.join(ROOT, "tests", "fake-gpu", "with-fake-gpu")
SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def _load():
    loader = importlib.machinery.SourceFileLoader("with_fake_gpu", SCRIPT)
    text = loader.get_data(SCRIPT).decode()
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("with_fake_gpu", loader))
    body = text[:text.rindex("\nmain()")]  # it is a script: the last line runs it
    exec(compile(body, SCRIPT, "exec"), module.__dict__)  # pylint: disable=exec-used
    return module


def stop_without_namespaces():
    """Ends the program with the code that ctest shows as skipped where no mount namespace can be made."""
    done = subprocess.run([SCRIPT, "--", "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"[  SKIPPED ] {os.path.basename(sys.argv[0])} mount namespaces are not allowed here: {done.stderr}")
        sys.exit(SKIPPED)


class FakeGpu:
    """A tree that a command may see as /sys; `set` changes it in place."""

    def __init__(self, profile):
        self._folder = tempfile.TemporaryDirectory(prefix="warmleg-fake-gpu-")
        self.root = self._folder.name
        self.profile = profile
        self._script = _load()

    def close(self):
        self._folder.cleanup()

    def command(self, *words):
        return [SCRIPT, "--dir", self.root, "--profile", self.profile, "--", *words]

    def set(self, *pairs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # it leaves files to the collector
            self._script.set_values(self.root, list(pairs))

    def path(self, name):
        return os.path.join(self.root, "gpu0", name)

    def level(self):
        with open(self.path("power_dpm_force_performance_level"), encoding="ascii") as f:
            return f.read().strip()
