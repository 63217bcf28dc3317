"""warmleg-opbench --model: counts as the chain makes them, sums that add up, refusals."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "harness", "cli"))
from program import DRAFT, ROOT, TARGET, ProgramTest, main  # noqa: E402

CONTEXT = 64


class OpBench(ProgramTest):
    def bench(self, *arguments):
        return subprocess.run([os.environ["WARMLEG_OPBENCH"], *arguments], cwd=ROOT, env=self.environment(), text=True,
                              capture_output=True, timeout=240)

    def config(self, folder):
        with open(os.path.join(ROOT, folder, "config.json"), encoding="utf-8") as f:
            config = json.load(f)
        return config.get("text_config", config)

    def calls(self, phase, op):
        return sum(row["calls"] for row in phase["ops"] if row["op"] == op)

    def check_sums(self, phase, roof):
        total = sum(row["seconds"] * row["calls"] for row in phase["ops"])
        self.assertAlmostEqual(phase["sum_s"], total, delta=1e-9 + 1e-6 * total)
        self.assertAlmostEqual(phase["sum_s"], phase["matmul_s"] + phase["others_s"], delta=1e-9)
        self.assertEqual(phase["bytes"], sum(row["bytes"] * row["calls"] for row in phase["ops"]))
        self.assertAlmostEqual(phase["floor_s"], phase["bytes"] / roof / 1e9, delta=1e-6 * phase["floor_s"])
        for row in phase["ops"]:
            self.assertGreater(row["seconds"], 0)
            self.assertAlmostEqual(row["share"], row["gb_s"] / roof, delta=1e-6 * row["share"])

    def test_a_step_and_a_round_have_the_calls_of_the_chain(self):
        done = self.bench("--device", "cpu", "--model", TARGET, "--draft", DRAFT, "--context", str(CONTEXT), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["schema"], "warmleg.opbench/1")
        self.assertEqual(result["device"], "cpu")
        step, round_ = result["phases"]
        self.check_sums(step, result["roof_gb_s"])
        self.check_sums(round_, result["roof_gb_s"])
        target, draft = self.config(TARGET), self.config(DRAFT)
        layers, draft_layers = target["num_hidden_layers"], draft["num_hidden_layers"]
        self.assertEqual(self.calls(step, "MatMul"), 4 * layers + 1)
        self.assertEqual(self.calls(step, "PrepareHeads"), self.calls(step, "Attention"))
        self.assertEqual(self.calls(step, "ArgMax"), 1)
        self.assertEqual(self.calls(step, "DFlashBlockAttn"), 0)
        # draft: 6 a layer, head and selector; verify: as a step; commit: fc, then keys and values of each layer
        self.assertEqual(self.calls(round_, "MatMul"), 6 * draft_layers + 2 + 4 * layers + 1 + 1 + draft_layers)
        self.assertEqual(self.calls(round_, "DFlashBlockAttn"), draft_layers)
        self.assertEqual(self.calls(round_, "DFlashGroupedConv"), 4 * draft_layers)
        self.assertEqual({row["part"] for row in round_["ops"]}, {"draft", "select", "verify", "commit"})
        vocab, hidden = target["vocab_size"], target["hidden_size"]
        head, = [row for row in step["ops"] if row["shape"].startswith(f"{vocab}x{hidden} ")]
        size = 4 if head["shape"].split()[1].startswith("f32") else 2
        self.assertEqual(head["bytes"], size * vocab * hidden + 4 * (hidden + vocab) + size * hidden)
        full = target["layer_types"].count("full_attention") if "layer_types" in target else None
        if full is not None:
            self.assertEqual(self.calls(step, "Attention"), full)

    def test_the_table_has_the_sum_and_the_floor(self):
        done = self.bench("--device", "cpu", "--model", os.path.join(TARGET, "config.json"), "--context", "16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("plain step", done.stdout)
        self.assertNotIn("round of", done.stdout)
        self.assertIn("% of MatMul", done.stdout)
        self.assertIn("floor", done.stdout)

    def test_what_is_refused(self):
        for arguments, text in ((["--model", "no/such/folder"], "no/such/folder"),
                                (["--model", DRAFT], "config"),
                                (["--model", TARGET, "--context", "99999999"], "--context 99999999"),
                                (["--model", TARGET, "--op", "MatMul"], "--op"),
                                (["--draft", DRAFT], "--model")):
            with self.subTest(arguments=arguments):
                done = self.bench("--device", "cpu", *arguments)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(text, done.stderr)
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    main()
