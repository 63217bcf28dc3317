"""`warmleg run` with made-up weights and accepted counts: what the file says, and what it is never compared with."""

import json
import os

from program import ROOT, ProgramTest, main

MADE_UP = ["--set", "weights=random", "--set", "simulate.committed_per_round=3.4", "--set",
           "generation.max_new_tokens=120", "--set", "allow_degenerate=false"]
TOKEN_RULES = ["structural_divergence", "near_tie_divergence", "state_leak", "degenerate_output"]


class Shape(ProgramTest):
    def prompts(self, *lines):
        path = f"{self.folder.name}/prompts.jsonl"
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
        return ["--set", f"prompts.file={path}"]

    def test_the_verdict_is_simulated_and_the_rounds_are_real(self):
        lengths = self.prompts({"id": "a", "class": "short", "length": 9}, {"id": "b", "class": "long", "length": 40})
        done = self.run_small(*MADE_UP, *lengths)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("SIMULATED"), done.stdout)
        self.assertIn("ids not compared: they are made up", done.stdout)
        result = self.load()
        self.assertEqual(result["verdict"], "simulated")
        codes = [r["code"] for r in result["reasons"]]
        self.assertIn("made_up_weights", codes)
        self.assertIn("made_up_accepted", codes)
        self.assertEqual(result["workload"]["weights"], "random")
        accepted = next(r for r in result["reasons"] if r["code"] == "made_up_accepted")
        self.assertEqual(accepted["value"], 3.4)
        self.assertEqual(result["reference"]["source"], "not_applicable")
        self.assertIsNone(result["reference"]["ids_hash"])
        self.assertEqual(result["reference"]["rules"], {code: "not_applicable" for code in TOKEN_RULES})
        for leg in result["legs"]:
            self.assertTrue(leg["valid"], leg["reasons"])
            self.assertIsNone(leg["divergence"])
        self.assertEqual({leg["class"] for leg in result["legs"]}, {"short", "long"})
        warm = [leg for leg in result["legs"] if leg["state"] == "warm" and leg["arm"] == "dflash2"]
        self.assertEqual(len(warm), 2)
        for leg in warm:
            c = leg["counters"]
            self.assertEqual(c["committed"], 119)
            # 3.4 a round over 35 rounds: 2 or 3 accepted, the last rounds cut by the limit
            self.assertAlmostEqual(c["committed"] / c["rounds"], 3.4, delta=0.15)
            self.assertGreater(c["rounds_with_accepted"][2], c["rounds_with_accepted"][3])
            self.assertGreater(c["rounds_with_accepted"][3], 8)
            self.assertLessEqual(c["rounds"] - c["rounds_with_accepted"][2] - c["rounds_with_accepted"][3], 2)
            ops = {p["op"] for p in leg["providers"]}
            self.assertLessEqual({"DFlashBlockAttn", "SelectorEdges", "PathWalk", "AcceptGreedy"}, ops)
            for part in ("draft_s", "select_s", "verify_s", "commit_s"):
                self.assertGreater(leg["times"][part], 0)

    def test_it_is_never_compared_with_a_real_file(self):
        real = f"{self.folder.name}/out.json"
        self.assertEqual(self.warmleg("run", "tiny-code", "--set", "device=cpu", "--set", "plan.processes=1", "--set",
                                      "plan.pairs=1", "--set", "generation.max_new_tokens=12", "--out",
                                      real).returncode, 0)
        made_up = [*MADE_UP[:4], "--set", "plan.pairs=1"]
        self.assertEqual(self.run_small(*made_up).returncode, 0)
        for across in ("target_hash,draft_hash",
                       "target_hash,draft_hash,weights,max_new_tokens,prompts,prompt_ids_hash"):
            for pair in ((real, "--with", self.out), (self.out, "--with", real)):
                done = self.warmleg("compare", *pair, "--across", across)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn("made up", done.stdout)
        same = self.warmleg("compare", self.out, "--with", self.out)
        self.assertEqual(same.returncode, 4, same.stdout + same.stderr)  # one process a side: undecided, not refused

    def test_the_seed_makes_the_weights(self):
        def hashes(seed):
            done = self.run_small(*MADE_UP, "--set", "plan.pairs=1", "--set", "generation.max_new_tokens=8", "--set",
                                  f"generation.seed={seed}", "--force")
            self.assertEqual(done.returncode, 0, done.stderr)
            result = self.load()
            return result["workload"]["target_hash"], {leg["output_sha256"] for leg in result["legs"]}
        first = hashes(3)
        self.assertEqual(hashes(3), first)
        other = hashes(4)
        self.assertNotEqual(other[0], first[0])
        self.assertNotEqual(other[1], first[1])

    def test_weights_that_do_not_fit_are_refused_before_anything_is_made(self):
        for part in ("target", "draft"):
            with open(f"{ROOT}/scenarios/checkpoints/tiny-code/{part}/config.json", encoding="utf-8") as f:
                config = json.load(f)
            for holder in (config, config.get("text_config", {})):
                for key, value in (("hidden_size", 1 << 20), ("vocab_size", 1 << 24)):  # 35 TB of embedding
                    if key in holder:
                        holder[key] = value
            os.mkdir(f"{self.folder.name}/{part}")
            with open(f"{self.folder.name}/{part}/config.json", "w", encoding="utf-8") as f:
                json.dump(config, f)
        done = self.run_small(*MADE_UP, *self.prompts({"id": "a", "length": 4}), "--set",
                              f"target={self.folder.name}/target", "--set", f"draft={self.folder.name}/draft")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("do not fit", done.stderr)
        self.assertNotIn("loaded in", done.stderr)

    def test_refused(self):
        text = self.prompts({"id": "a", "text": "x"})
        cases = [
            ("weights", ["--set", "weights=made"]),
            ("committed_per_round", ["--set", "simulate.committed_per_round=0.5"]),
            ("committed_per_round", ["--set", "simulate.committed_per_round=9", "--set", "arms.1.block_size=0"]),
            ("committed_per_round", ["--set", "simulate={}"]),
            ("temperature", ["--set", "simulate.committed_per_round=2", "--set", "generation.temperature=0.5"]),
            ("nearest known key", ["--set", "simulate.commited_per_round=2"]),
        ]
        for word, args in cases:
            done = self.run_small(*args, *text)
            self.assertEqual(done.returncode, 2, (args, done.stderr))
            self.assertIn(word, done.stderr)
            self.assertNotIn("loaded in", done.stderr)
        done = self.run_small(*self.prompts({"id": "a", "length": 4}))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("random", done.stderr)


if __name__ == "__main__":
    main()
