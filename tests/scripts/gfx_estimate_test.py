"""scripts/gfx-estimate without a compiler: how it reads assembly, and what it makes of counts."""

import importlib.machinery
import importlib.util
import io
import json
import pathlib
import stat
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("gfx_estimate", str(ROOT / "scripts/gfx-estimate"))
estimate = importlib.util.module_from_spec(importlib.util.spec_from_loader("gfx_estimate", loader))
loader.exec_module(estimate)

ASSEMBLY = """
_Z3oneILi32E:                 ; @kernel
; %bb.0:
\tv_mov_b32_e32 v0, 0
.LBB0_1:                      ; loop
\tglobal_load_b128 v[0:3], v4, s[0:1]
\tglobal_load_b32 v5, v4, s[2:3]
\ts_waitcnt vmcnt(0)
\tds_load_b128 v[6:9], v10
\tv_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6
\tv_fma_f32 v1, v2, v3, v1
\tv_lshlrev_b32_e32 v1, 16, v2
\ts_add_i32 s4, s4, 1
\ts_cbranch_scc1 .LBB0_1
; %bb.2:
\ts_endpgm
.Lfunc_end0:
"""


class Estimate(unittest.TestCase):
    def test_a_loop_is_counted_by_unit(self):
        (name, lines), = estimate.bodies(ASSEMBLY)
        self.assertEqual(name, "_Z3oneILi32E")
        body, = estimate.loops(lines)
        self.assertEqual(estimate.count(body), {"valu": 3, "fma": 3, "matrix": 0, "lds": 1, "memory": 2, "scalar": 2,
                                                "lane_bytes": 16})

    def run_with(self, loop, counts, *args):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder) / "warmleg"
            fake.write_text(f"#!/bin/sh\necho '{json.dumps({'counts': counts})}'\n")
            fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
            before, argv = estimate.inner_loops, sys.argv
            estimate.inner_loops = lambda target, wave: {1: loop, 8: loop}
            sys.argv = ["gfx-estimate", "--warmleg", str(fake), "--json", *args]
            out = io.StringIO()
            try:
                with redirect_stdout(out):
                    self.assertEqual(estimate.main(), 0)
            finally:
                estimate.inner_loops, sys.argv = before, argv
        return json.loads(out.getvalue())

    def test_a_sweep_takes_the_longer_of_memory_and_issue(self):
        loop = {"valu": 90, "fma": 32, "matrix": 0, "lds": 4, "memory": 4, "scalar": 2, "lane_bytes": 64}
        ops = [{"part": part, "what": "gate|up", "calls": 1, "bytes": 10**9}
               for part in ("step", "draft", "select", "verify", "commit")]
        counts = {"rows": 8, "context": 512, "ops": ops}
        got = self.run_with(loop, counts, "--gb-s", "100", "--share", "0.5", "--gap-us", "0", "--cus", "10",
                            "--clock-mhz", "1000")
        self.assertAlmostEqual(got["parts"]["step"]["memory_s"], 0.02)  # 1 GB at 50 GB/s
        # 100 slots for 64 bytes of 32 lanes, 20 SIMDs of one slot a clock
        self.assertAlmostEqual(got["parts"]["step"]["issue_s"], 1e9 * 100 / (64 * 32) / (20 * 1e9))
        self.assertAlmostEqual(got["plain_step_s"], 0.02)
        self.assertAlmostEqual(got["round_s"], 0.08)
        self.assertAlmostEqual(got["break_even_committed_per_round"], 4)
        slow = self.run_with(loop, counts, "--gb-s", "100", "--gap-us", "0", "--cus", "1", "--clock-mhz", "100")
        self.assertAlmostEqual(slow["plain_step_s"], slow["parts"]["step"]["issue_s"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
