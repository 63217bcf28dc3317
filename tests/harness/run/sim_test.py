"""The chain on the simulated device from the command line: what a missing native kernel does to ids and to a leg."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import DRAFT, ROOT, TARGET, ProgramTest, main  # noqa: E402

TINY = ["--set", "device=sim:0", "--set", "plan.processes=1", "--set", "plan.pairs=1", "--set", "plan.warmup_pairs=1",
        "--set", "generation.max_new_tokens=4"]
DISABLED = "DFlashGroupedConv"


class Sim(ProgramTest):
    def golden(self):
        with open(os.path.join(ROOT, "tests/data/goldens/tiny-code.json"), encoding="utf-8") as f:
            return min(json.load(f)["cases"], key=lambda c: len(c["prompt_ids"]))

    def generate(self, trace, **env):
        ids = ",".join(map(str, self.golden()["prompt_ids"]))
        return self.warmleg("generate", "--device", "sim:0", "--target", TARGET, "--draft", DRAFT, "--prompt-ids", ids,
                            "--max-new-tokens", "4", "--ignore-eos", "--precision", "exact", "--trace", trace, **env)

    def ids(self, **env):
        trace = os.path.join(self.folder.name, "trace.json")
        done = self.generate(trace, **env)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(trace, encoding="utf-8") as f:
            return json.load(f)["output_ids"], done.stderr

    def test_generate_gives_the_golden_ids_natively(self):
        ids, stderr = self.ids()
        self.assertEqual(ids, self.golden()["dflash2"][:4])
        self.assertNotIn("[vt reference-tier]", stderr)

    def test_a_disabled_provider_falls_back_on_host_coherent_memory_with_the_same_ids(self):
        ids, stderr = self.ids(VT_MEMORY="host-coherent", VT_OP_PROVIDER_DISABLE=DISABLED)
        self.assertEqual(ids, self.golden()["dflash2"][:4])
        self.assertEqual(stderr.count(f"[vt reference-tier] op={DISABLED} device=sim has NO native kernel"), 1)

    def test_device_memory_refuses_by_op_name(self):
        done = self.generate(os.path.join(self.folder.name, "trace.json"), VT_OP_PROVIDER_DISABLE=DISABLED)
        self.assertEqual(done.returncode, 3)
        self.assertIn(DISABLED, done.stderr)
        self.assertIn("sim:0", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_leg_with_reference_tier_hits_is_invalid(self):
        done = self.warmleg("run", "tiny-code", *TINY, "--out", self.out, VT_MEMORY="host-coherent",
                            VT_OP_PROVIDER_DISABLE=DISABLED)
        result = self.load()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(result["verdict"], "invalid")
        drafting = [leg for leg in result["legs"] if leg["arm"] == "dflash2" and leg["state"] == "warm"]
        self.assertTrue(drafting)
        for leg in drafting:
            self.assertFalse(leg["valid"])
            self.assertIn("reference_tier_hits", [r["code"] for r in leg["reasons"]])
            hit = [p for p in leg["providers"] if p["provider"] == "vt-cpu-ref"]
            self.assertEqual([p["op"] for p in hit], [DISABLED])
            self.assertEqual(hit[0]["fallbacks"], hit[0]["calls"])
            self.assertNotEqual(hit[0]["fallback_reason"], "")


if __name__ == "__main__":
    main()
