#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/telemetry/board.h"
#include "tests/harness/telemetry/fake_tree.h"

namespace warmleg::telemetry {
namespace {

namespace fs = std::filesystem;
using testing_support::FakeTree;

void Put(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A process that has a DRM file of the board at `pci` open.
void PutClient(const fs::path& proc, int pid, const std::string& pci) {
  const fs::path dir = proc / std::to_string(pid);
  fs::create_directories(dir / "fd");
  fs::create_symlink("/dev/dri/renderD128", dir / "fd" / "5");
  fs::create_symlink("/dev/null", dir / "fd" / "6");
  Put(dir / "fdinfo" / "5", "pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t" + pci + "\n");
}

struct Board : ::testing::Test {
  FakeTree tree{"strix-halo-dkms"};
  BoardRoots roots{tree.Sys(), tree.Sys() + "/../proc", tree.Sys() + "/../debug"};
  SysfsBoard board = FindBoards(tree.Sys()).at(0);

  void SetUp() override { fs::create_directories(roots.proc); }
};

TEST_F(Board, WhatTheFilesSay) {
  Put(roots.debug + "/dri/0/amdgpu_firmware_info",
      "VCE feature version: 0, firmware version: 0x00000000\n"
      "MES_KIQ feature version: 6, firmware version: 0x0000006c\n"
      "MES feature version: 1, firmware version: 0x00000083\n"
      "SMC feature version: 0, program: 0, firmware version: 0x00646600 (100.102.0)\nnoise\n");
  tree.Write("power/runtime_status", "active\n");
  const BoardFingerprint f = ReadBoard(board, {}, roots);
  EXPECT_EQ(f.gpu.pci, "0000:c5:00.0");
  EXPECT_EQ(f.gpu.gfx, "gfx1151");
  EXPECT_EQ(f.gpu.cu, 40);
  EXPECT_EQ(f.gpu.vbios, "113-STRXLGEN-001");
  EXPECT_EQ(f.gpu.vram_bytes, 536870912);
  EXPECT_EQ(f.gpu.gtt_bytes, 66571993088);
  EXPECT_EQ(f.gpu.firmware.at("mes"), "0x00000083");
  EXPECT_EQ(f.gpu.firmware.at("smu"), "0x0a640000");
  EXPECT_EQ(f.driver, "6.12.12");
  EXPECT_EQ(f.runtime_status, "active");
  EXPECT_EQ(f.other_clients, 0);
  EXPECT_TRUE(f.unreadable.empty()) << f.unreadable.begin()->first;
}

TEST_F(Board, EachNullHasItsReason) {
  for (const char* file : {"vbios_version", "mem_info_vram_total", "fw_version"}) tree.Remove(file);
  tree.Write("mem_info_gtt_total", "");
  fs::remove_all(tree.Sys() + "/devices/virtual/kfd/kfd/topology/nodes/1");
  fs::remove_all(tree.Sys() + "/module");
  const BoardFingerprint f = ReadBoard(board, {}, roots);
  EXPECT_FALSE(f.gpu.vbios || f.gpu.vram_bytes || f.gpu.gtt_bytes || f.gpu.gfx || f.gpu.cu || f.driver);
  EXPECT_EQ(f.unreadable.at("gpu.vbios").substr(0, 12), "unsupported:");
  EXPECT_EQ(f.unreadable.at("gpu.gtt_bytes").substr(0, 6), "empty:");
  for (const char* field : {"gpu.vram_bytes", "gpu.gfx", "gpu.cu", "gpu.firmware.mes", "gpu.firmware.smu",
                            "rocm.driver", "runtime_status"}) {
    EXPECT_TRUE(f.unreadable.contains(field)) << field;
  }
}

TEST_F(Board, OtherClientsByOpenFileAndByTheKfd) {
  PutClient(roots.proc, 100, "0000:c5:00.0");
  PutClient(roots.proc, 101, "0000:03:00.0");  // another board
  PutClient(roots.proc, 102, "0000:c5:00.0");  // ours
  fs::create_directories(fs::path(roots.proc) / "self" / "fd");
  Put(tree.Sys() + "/devices/virtual/kfd/kfd/proc/103/vram_41241", "4096\n");
  Put(tree.Sys() + "/devices/virtual/kfd/kfd/proc/104/vram_41241", "0\n");
  Put(tree.Sys() + "/devices/virtual/kfd/kfd/proc/105/vram_999", "4096\n");
  std::string reason;
  EXPECT_EQ(Clients(board, roots, &reason), (std::set<int>{100, 102, 103}));
  EXPECT_EQ(ReadBoard(board, {102}, roots).other_clients, 2);
}

TEST_F(Board, ProcessesThatMayNotBeLookedAt) {
  roots.proc += "/none";
  const BoardFingerprint f = ReadBoard(board, {}, roots);
  EXPECT_FALSE(f.other_clients);
  EXPECT_TRUE(f.unreadable.contains("other_clients"));
}

TEST_F(Board, FillsTheRecordAndKeepsWhatIsThere) {
  record::Environment environment;
  environment.gpu.emplace();
  environment.gpu->name = "what the runtime says";
  AddBoard(ReadBoard(board, {}, roots), environment);
  EXPECT_EQ(environment.gpu->name, "what the runtime says");
  EXPECT_EQ(environment.gpu->pci, "0000:c5:00.0");
  EXPECT_EQ(environment.rocm->driver, "6.12.12");
  EXPECT_EQ(environment.other_clients, 0);
  EXPECT_TRUE(environment.unreadable.contains("gpu.firmware.mes"));
  EXPECT_FALSE(environment.unreadable.contains("gpu.vbios"));
}

TEST(GfxName, FromTheKfd) {
  EXPECT_EQ(GfxName(110501), "gfx1151");
  EXPECT_EQ(GfxName(110000), "gfx1100");
  EXPECT_EQ(GfxName(90010), "gfx90a");
  EXPECT_EQ(GfxName(90402), "gfx942");
  EXPECT_EQ(GfxName(120001), "gfx1201");
}

}  // namespace
}  // namespace warmleg::telemetry
