// What both readers of this folder share.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace warmleg::scenario {

// The whole file; vt::InputError when it cannot be read. `kind` names it in the message.
std::string ReadText(const std::filesystem::path& file, std::string_view kind);

// One vt::InputError with all defects, nothing when there is none.
void ThrowAll(const std::vector<std::string>& defects, std::string_view what);

}  // namespace warmleg::scenario
