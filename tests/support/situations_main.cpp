// warmleg-situations DESCRIPTION.json FOLDER: writes the result files of a description
// (tests/data/situations/) and prints their paths.
#include <fmt/core.h>

#include <filesystem>

#include "backend/vt/error.h"
#include "harness/store/store.h"
#include "tests/support/situations.h"

int main(int argc, char** argv) {
  using namespace warmleg;
  if (argc != 3) {
    fmt::print(stderr, "usage: warmleg-situations DESCRIPTION.json FOLDER\n");
    return 2;
  }
  try {
    std::filesystem::create_directories(argv[2]);
    const auto situations = testing::ParseSituations(store::ReadBytes(argv[1]), argv[1]);
    for (const std::string& path : testing::WriteSituations(situations, argv[2])) fmt::print("{}\n", path);
  } catch (const vt::InputError& e) {
    fmt::print(stderr, "warmleg-situations: {}\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "warmleg-situations: {}\n", e.what());
    return 3;
  }
  return 0;
}
