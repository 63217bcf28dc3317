// The compute devices of this build, and which one a scenario or a command line means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/vt/backend.h"

namespace warmleg::run {

// Makes every backend of this build known. Idempotent.
void RegisterBackends();

// `text`: as vt::ParseDevice takes it, or "auto": the only GPU of `devices`, else cpu. Throws vt::InputError
// with the list when "auto" is not clear, vt::EnvironmentError when the named device is not there.
vt::Device ResolveDevice(std::string_view text, const std::vector<vt::DeviceInfo>& devices,
                         const std::vector<std::string>& notes);

}  // namespace warmleg::run
