"""scripts/device-gate with pretended programs: arguments, missing devices, what fails it, what the evidence says."""

import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GATE = os.path.join(ROOT, "scripts", "device-gate")
SUITE = "test_ops_rows"

WARMLEG = """#!/usr/bin/env python3
import json, os, sys
gpus = json.loads(os.environ.get("GPUS", '["rocm:0"]'))
cpu = {"device": "cpu", "name": "a CPU", "gfx": None, "pci": None}
if sys.argv[1] == "devices":
    listed = [cpu] + [{"device": d, "name": "a GPU", "gfx": "gfx1151", "pci": "0000:c5:00.0"} for d in gpus]
    print(json.dumps({"devices": listed, "telemetry": [], "notes": ["rocm: hipErrorNoDevice"] if not gpus else []}))
elif sys.argv[1] == "--version":
    print("warmleg 0.1.0 (git abc)")
elif sys.argv[1] == "generate":
    if os.environ.get("VT_OP_PROVIDER_DISABLE") and not os.environ.get("VT_MEMORY"):
        print("warmleg: DFlashGroupedConv on rocm:0 has no kernel" if os.environ.get("HONEST", "1") == "1" else "oops",
              file=sys.stderr)
        sys.exit(3)
    sys.exit(9)
else:
    sys.exit(9)
"""

# GoogleTest's report, as far as the gate reads it.
PROGRAM = """#!/usr/bin/env python3
import json, os, sys
how = os.environ.get("HOW", "pass")
if how == "die":
    print("Segmentation fault", file=sys.stderr)
    sys.exit(139)
case = {"name": "Case", "status": "RUN", "result": "COMPLETED"}
other = {"name": "Other", "status": "RUN", "result": "COMPLETED"}
if how == "fail":
    other["failures"] = [{"failure": "file.cpp:7\\nExpected equality"}]
if how == "skip":
    other["result"] = "SKIPPED"
path = [a for a in sys.argv if a.startswith("--gtest_output=json:")][0].split(":", 1)[1]
with open(path, "w") as f:
    json.dump({"testsuites": [{"name": "Rows", "testsuite": [case, other]}]}, f)
assert os.environ["WARMLEG_TEST_DEVICE"] == "rocm:0"
sys.exit(how == "fail")
"""


class DeviceGate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="warmleg gate ")  # a path with a space, on purpose
        self.addCleanup(folder.cleanup)
        self.build = os.path.join(folder.name, "build")
        self.out = os.path.join(folder.name, "new", "evidence.json")
        self.put("warmleg", WARMLEG)
        self.put(f"tests/{SUITE}", PROGRAM)

    def put(self, name, text):
        path = os.path.join(self.build, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def gate(self, *arguments, prebuilt=True, **env):
        build = ["--prebuilt", self.build] if prebuilt else []
        return subprocess.run([GATE, *build, "--out", self.out, *arguments], env={**os.environ, **env}, text=True,
                              capture_output=True, timeout=120, check=False)

    def evidence(self):
        with open(self.out, encoding="utf-8") as f:
            return json.load(f)

    def refused(self, code, text, *arguments, **options):
        done = self.gate(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(text, done.stderr)
        self.assertFalse(os.path.exists(self.out))

    def test_wrong_arguments(self):
        self.refused(2, "--nonsense", "--nonsense")
        self.refused(2, "no such folder", "--prebuilt", "/no/such/folder", prebuilt=False)
        self.refused(2, "there is no program", "--prebuilt", os.path.join(self.build, "tests"), prebuilt=False)
        self.refused(2, "no such suite", "--only", "test_nothing")
        self.refused(2, "scripts/test", "--device", "cpu")

    def test_missing_devices(self):
        self.refused(3, "there is rocm:0", "--device", "rocm:7")
        self.refused(3, "hipErrorNoDevice", GPUS="[]")
        self.refused(2, "name one", GPUS='["rocm:0", "rocm:1"]')

    def test_a_suite_that_passes_is_not_yet_a_gate(self):
        done = self.gate("--only", SUITE)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("INCOMPLETE", done.stdout)
        evidence = self.evidence()
        self.assertEqual(evidence["schema"], "warmleg.device-gate/1")
        self.assertFalse(evidence["passed"])
        self.assertFalse(evidence["complete"])
        self.assertEqual(evidence["device"]["gfx"], "gfx1151")
        self.assertEqual(evidence["build"], "warmleg 0.1.0 (git abc)")
        suite, = evidence["suites"]
        self.assertEqual((suite["name"], suite["tests"], suite["passed"], suite["skipped"]), (SUITE, 2, 2, 0))
        self.assertEqual(evidence["assertions"], {"tests": 2, "passed": 2, "skipped": 0})

    def test_what_fails_it(self):
        for how, text in (("skip", "skipped: Rows.Other"), ("fail", "Rows.Other: file.cpp:7 | Expected equality"),
                          ("die", "died with 139: Segmentation fault")):
            with self.subTest(how=how):
                done = self.gate("--only", SUITE, HOW=how)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(text, done.stdout)
                self.assertIn(text, self.evidence()["suites"][0]["failures"])
                self.assertEqual(self.evidence()["assertions"]["skipped"], how == "skip")

    def test_a_program_that_is_not_there_fails_it(self):
        done = self.gate("--only", "test_goldens")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is missing", done.stdout)

    def test_the_program_of_the_devices_vendor_is_run(self):
        self.put("tests/test_rocm_backend", "#!/bin/sh\nexit 9\n")  # the simulated device's
        self.put("tests/test_rocm_backend_amd", PROGRAM)
        self.put("tests/test_rocm_backend_nvidia", "#!/bin/sh\nexit 9\n")
        done = self.gate("--only", "test_rocm_backend")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertEqual(self.evidence()["suites"][0]["name"], "test_rocm_backend")

    def test_a_program_of_a_newer_build_is_run_too(self):
        self.put("tests/test_ops_new", PROGRAM)
        done = self.gate("--only", "test_ops_new")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)

    def test_a_refusal_must_name_op_and_device(self):
        done = self.gate("--only", "refusal")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        done = self.gate("--only", "refusal", HONEST="0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("names no op and device", done.stdout)

    def test_generations_that_fail_are_counted(self):
        done = self.gate("--only", "processes", "--quick")
        self.assertEqual(done.returncode, 1)
        self.assertIn("plain 0: exit 9", done.stdout)

    def test_evidence_that_cannot_be_written(self):
        done = self.gate("--only", SUITE, "--out", "/proc/no/evidence.json")
        self.assertEqual(done.returncode, 3)
        self.assertIn("--out /proc/no/evidence.json", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
