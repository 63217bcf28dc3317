"""scripts/make-wide-checkpoint at tiny size, and warmleg-loadbench on what it wrote."""

import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MAKE = ROOT / "scripts/make-wide-checkpoint"
CONFIG = ROOT / "scenarios/checkpoints/tiny-code/target/config.json"
LOADBENCH = os.environ["WARMLEG_LOADBENCH"]


class Wide(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="warmleg-wide-")
        self.addCleanup(self.folder.cleanup)
        self.wide = pathlib.Path(self.folder.name) / "wide"

    def make(self, *args):
        return subprocess.run([MAKE, self.wide, "--config", CONFIG, "--shard-gb", "0.002", *args], text=True,
                              capture_output=True, timeout=120)

    def test_the_same_arguments_give_the_same_bytes_and_they_load(self):
        done = self.make("--blocks", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        index = json.loads((self.wide / "model.safetensors.index.json").read_text())
        self.assertGreater(len(set(index["weight_map"].values())), 1)
        hashes = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in self.wide.iterdir()}
        bench = subprocess.run([LOADBENCH, self.wide, "--repeats", "2"], text=True, capture_output=True, timeout=120)
        self.assertEqual(bench.returncode, 0, bench.stderr)
        first, second = (json.loads(line) for line in bench.stdout.splitlines())
        self.assertEqual(first["hash"], second["hash"])
        self.assertEqual(first["weight_bytes"], index["metadata"]["total_size"])
        self.assertGreaterEqual(first["file_bytes"], first["weight_bytes"])
        for report in (first, second):
            self.assertGreater(report["direct_gb_s"], 0)
            self.assertAlmostEqual(report["ratio"], report["load_gb_s"] / report["direct_gb_s"])
            for share in ("cached_before_direct", "cached_before_load"):
                self.assertGreaterEqual(report[share], 0)
                self.assertLessEqual(report[share], 1)
        self.assertIn("loading 100 %", bench.stderr)
        self.assertEqual(self.make("--blocks", "4").returncode, 2)  # the folder is not empty
        self.wide = self.wide.with_name("again")
        self.assertEqual(self.make("--blocks", "4").returncode, 0)
        self.assertEqual({f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in self.wide.iterdir()}, hashes)

    def test_refused(self):
        self.assertEqual(self.make("--blocks", "9").returncode, 2)
        none = subprocess.run([LOADBENCH, self.folder.name], text=True, capture_output=True, timeout=60)
        self.assertEqual(none.returncode, 2)
        self.assertIn(".safetensors", none.stderr)
        for words in ([], [self.folder.name, "--nope"], [self.folder.name, "--repeats", "0"]):
            wrong = subprocess.run([LOADBENCH, *words], text=True, capture_output=True, timeout=60)
            self.assertEqual((wrong.returncode, wrong.stdout), (2, ""), words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
