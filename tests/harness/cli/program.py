"""Shared by the process-level tests: runs the built warmleg on the shipped tiny pair with small settings."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
WARMLEG = os.environ.get("WARMLEG", os.path.join(ROOT, "build", "warmleg"))
TARGET = "scenarios/checkpoints/tiny-code/target"
DRAFT = "scenarios/checkpoints/tiny-code/draft"
SMALL = ["--set", "device=cpu", "--set", "plan.processes=1", "--set", "plan.pairs=2",
         "--set", "generation.max_new_tokens=12"]


SLOWER = 8 if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ else 1  # as warmleg_time_limit


class ProgramTest(unittest.TestCase):
    under = []  # words before the program: what it is started by

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="warmleg-test-")
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "result.json")

    def environment(self, **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("WARMLEG_", "LC_"))}
        env["OMP_NUM_THREADS"] = "1"  # other tests run beside
        env["XDG_CACHE_HOME"] = os.path.join(self.folder.name, "cache")
        env.update(extra)
        return env

    def command(self, *args):
        return [*self.under, WARMLEG, *args]

    def warmleg(self, *args, timeout=240 * SLOWER, **env):
        return subprocess.run(self.command(*args), cwd=ROOT, env=self.environment(**env), text=True,
                              capture_output=True, timeout=timeout)

    def start(self, *args, **env):
        process = subprocess.Popen(self.command(*args), cwd=ROOT, env=self.environment(**env), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL)
                                                       for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        return process

    def run_small(self, *args, **env):
        return self.warmleg("run", "tiny-code", *SMALL, "--out", self.out, *args, **env)

    def load(self, path=None):
        with open(path or self.out, encoding="utf-8") as f:
            result = json.load(f)
        self.check_schema(result)
        return result

    def check_schema(self, result):
        import jsonschema
        schema_file = os.path.join(ROOT, "results", "schema", "warmleg.result-1.schema.json")
        with open(schema_file, encoding="utf-8") as f:
            jsonschema.validate(result, json.load(f))

    def workers_of(self, parent):
        """Live worker processes that were started by `parent`, wherever they hang now."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if b"worker" in words and str(parent).encode() in words:
                found.append(int(pid))
        return found

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.01)
        self.fail("waited in vain")

    def no_temporary_files(self):
        left = [n for n in os.listdir(self.folder.name) if n not in ("cache", "result.json", "out.json")]
        self.assertEqual(left, [])


def may_mount():
    """Whether this user can make a mount namespace; root's rights reach past mode bits, a mount's do not."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


def main():
    done = unittest.main(verbosity=2, exit=False).result
    for test, why in done.skipped:  # in the form that scripts/test looks for
        print(f"[  SKIPPED ] {test.id().removeprefix('__main__.')} {why}")
    sys.exit(not done.wasSuccessful())
