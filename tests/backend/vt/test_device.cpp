#include "backend/vt/device.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/vt/backend.h"
#include "backend/vt/error.h"

namespace {

TEST(Device, SpellingsGoBothWays) {
  for (const char* text : {"cpu", "rocm:0", "rocm:15", "sim:3", "cuda:1"}) {
    EXPECT_EQ(vt::ToString(vt::ParseDevice(text)), text);
  }
  EXPECT_EQ(vt::ParseDevice("rocm:7"), (vt::Device{vt::DeviceType::rocm, 7}));
}

TEST(Device, OtherSpellingsAreRefusedWithWhatIsAccepted) {
  for (const char* text : {"", "cp", "cpu:0", "CPU", "rocm", "rocm:", "rocm:-1", "rocm:16", "rocm:1x",
                           "rocm: 1", "hip:0", "cuda:99999999999"}) {
    try {
      vt::ParseDevice(text);
      FAIL() << text << " accepted";
    } catch (const vt::InputError& e) {
      EXPECT_EQ(std::string(e.what()),
                std::string("device '") + text + "' is not one of cpu, rocm:N, cuda:N, sim:N (N below 16)");
    }
  }
}

TEST(Device, MemoryKindComesFromTheEnvironment) {
  unsetenv("VT_MEMORY");
  EXPECT_EQ(vt::MemoryKindFromEnvironment(), vt::MemoryKind::device);
  setenv("VT_MEMORY", "host-coherent", 1);
  EXPECT_EQ(vt::MemoryKindFromEnvironment(), vt::MemoryKind::host_coherent);
  setenv("VT_MEMORY", "managed", 1);
  EXPECT_EQ(vt::MemoryKindFromEnvironment(), vt::MemoryKind::managed);
  setenv("VT_MEMORY", "pinned", 1);
  EXPECT_THROW(vt::MemoryKindFromEnvironment(), vt::InputError);
  unsetenv("VT_MEMORY");
}

TEST(Device, AnAbsentOneIsRefusedByName) {
  try {
    vt::GetBackend({vt::DeviceType::rocm, 4});
    FAIL() << "there is one";
  } catch (const vt::EnvironmentError& e) {
    EXPECT_NE(std::string(e.what()).find("no device rocm:4 here"), std::string::npos) << e.what();
  }
}

}  // namespace
