#include "tests/support/checkpoint_fixture.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace warmleg::testing {

namespace fs = std::filesystem;
using nlohmann::json;

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "warmleg-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void WriteFile(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string WithHeader(std::string_view header, std::string_view data) {
  const uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes.append(header).append(data);
}

std::string SafetensorsBytes(const std::vector<TensorSpec>& tensors, size_t header_bytes) {
  json header = json::object();
  std::string data;
  for (const TensorSpec& t : tensors) {
    header[t.name] = {
        {"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {data.size(), data.size() + t.data.size()}}};
    data += t.data;
  }
  std::string text = header.dump();
  if (text.size() < header_bytes) text.resize(header_bytes, ' ');
  return WithHeader(text, data);
}

std::string F32Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * 4, '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string Bf16Bytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // round to nearest, ties to even
    bytes.push_back(static_cast<char>(bits & 0xff));
    bytes.push_back(static_cast<char>(bits >> 8));
  }
  return bytes;
}

std::vector<float> FloatsOf(const TensorSpec& tensor) {
  const size_t size = tensor.dtype == "F32" ? 4 : 2;
  std::vector<float> values(tensor.data.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, tensor.data.data() + i * size, size);
    if (size == 2) bits <<= 16;
    std::memcpy(&values[i], &bits, sizeof bits);
  }
  return values;
}

CheckpointFixture CheckpointFixture::Read(const fs::path& dir) {
  CheckpointFixture out;
  out.config = json::parse(ReadFile(dir / "config.json"));
  if (fs::exists(dir / "generation_config.json"))
    out.generation = json::parse(ReadFile(dir / "generation_config.json"));
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(dir))
    if (entry.path().extension() == ".safetensors") files.insert(entry.path());
  for (const fs::path& file : files) {
    const std::string bytes = ReadFile(file);
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    const json header = json::parse(bytes.substr(8, size));
    for (const auto& [name, t] : header.items()) {
      if (name == "__metadata__") continue;
      const auto begin = t["data_offsets"][0].get<size_t>(), end = t["data_offsets"][1].get<size_t>();
      out.tensors.push_back({name, t["dtype"], t["shape"], bytes.substr(8 + size + begin, end - begin)});
    }
  }
  return out;
}

TensorSpec& CheckpointFixture::At(const std::string& name) {
  const auto it =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorSpec& t) { return t.name == name; });
  if (it == tensors.end()) throw std::runtime_error("no tensor " + name);
  return *it;
}

bool CheckpointFixture::Has(const std::string& name) const {
  return std::any_of(tensors.begin(), tensors.end(), [&](const TensorSpec& t) { return t.name == name; });
}

void CheckpointFixture::Remove(const std::string& name) {
  At(name);
  std::erase_if(tensors, [&](const TensorSpec& t) { return t.name == name; });
}

void CheckpointFixture::Rename(const std::function<std::string(const std::string&)>& name) {
  for (TensorSpec& t : tensors) t.name = name(t.name);
}

void CheckpointFixture::Widen(const std::string& name) {
  TensorSpec& t = At(name);
  t.data = F32Bytes(FloatsOf(t));
  t.dtype = "F32";
}

void CheckpointFixture::Write(const fs::path& dir, int shards) const {
  fs::create_directories(dir);
  WriteFile(dir / "config.json", config.dump(1));
  if (generation) WriteFile(dir / "generation_config.json", generation->dump());
  if (shards == 1) return WriteFile(dir / "model.safetensors", SafetensorsBytes(tensors));
  json map = json::object();
  size_t total = 0;
  for (int s = 0; s < shards; ++s) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, shards);
    std::vector<TensorSpec> part;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (i * static_cast<size_t>(shards) / tensors.size() != static_cast<size_t>(s)) continue;
      part.push_back(tensors[i]);
      map[tensors[i].name] = file;
      total += tensors[i].data.size();
    }
    WriteFile(dir / file, SafetensorsBytes(part));
  }
  WriteFile(dir / "model.safetensors.index.json",
            json({{"metadata", {{"total_size", total}}}, {"weight_map", map}}).dump(1));
}

}  // namespace warmleg::testing
