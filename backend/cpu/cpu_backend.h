// The cpu device: every call is done when it returns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/vt/backend.h"

namespace vt::cpu {

std::vector<DeviceInfo> ListCpu(std::vector<std::string>* notes);
std::unique_ptr<Backend> CreateCpu(int index);

}  // namespace vt::cpu
