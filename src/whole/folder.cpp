// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "whole/layout_tools.hpp"

namespace gridctl::whole {

namespace {

// Files beneath "PREFIX/" are adjacent in an ascending listing.
std::span<const FileFact> beneath(std::span<const FileFact> files, const std::string& prefix) {
  const auto first = std::lower_bound(files.begin(), files.end(), prefix,
                                      [](const FileFact& file, const std::string& at) { return file.path < at; });
  const auto last = std::find_if(first, files.end(), [&](const FileFact& file) { return !file.path.starts_with(prefix); });
  return {first, last};
}

store::ReadAt reader_of(const Access& access, const FileFact& file) {
  return [&access, &file](std::uint64_t offset, std::size_t size) { return access.read(file, offset, size); };
}

}  // namespace

std::string_view Folder::base_name() const { return std::string_view(path_).substr(path_.rfind('/') + 1); }

std::string_view Folder::name(const FileFact& file) const {
  return std::string_view(file.path).substr(path_.empty() ? 0 : path_.size() + 1);
}

std::vector<const FileFact*> Folder::direct() const {
  std::vector<const FileFact*> found;
  for (const FileFact& file : files_)
    if (name(file).find('/') == std::string_view::npos) found.push_back(&file);
  return found;
}

std::vector<std::string> Folder::folders() const {
  std::vector<std::string> found;
  for (const FileFact& file : files_) {
    const std::string_view relative = name(file);
    const std::size_t slash = relative.find('/');
    if (slash == std::string_view::npos) continue;
    if (found.empty() || found.back() != relative.substr(0, slash)) found.emplace_back(relative.substr(0, slash));
  }
  return found;
}

Folder Folder::sub(std::string_view relative) const {
  std::string path = path_in(*this, relative);
  const auto files = beneath(files_, path + "/");
  return {files, std::move(path), *access_};
}

const FileFact* Folder::find(std::string_view relative) const {
  return store::find_file(files_, path_in(*this, relative));
}

std::string Folder::text(const FileFact& file, std::size_t max) const {
  const Result<Bytes> bytes = access_->read(file, 0, static_cast<std::size_t>(std::min<std::uint64_t>(max, file.size)));
  return bytes ? std::string(as_text(*bytes)) : std::string();
}

std::string Folder::entry(const FileFact& archive, std::string_view name_end, std::size_t max) const {
  const auto entries = store::zip_entries(archive.size, reader_of(*access_, archive));
  if (!entries) return {};
  for (const store::Tensor& one : *entries) {
    if (!one.name.ends_with(name_end)) continue;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(max, one.at.end - one.at.begin));
    const Result<Bytes> bytes = access_->read(archive, one.at.begin, size);
    return bytes ? std::string(as_text(*bytes)) : std::string();
  }
  return {};
}

std::vector<std::string> Folder::entries(const FileFact& archive) const {
  std::vector<std::string> names;
  const auto entries = store::zip_entries(archive.size, reader_of(*access_, archive));
  if (!entries) return names;
  for (const store::Tensor& one : *entries) names.push_back(one.name);
  return names;
}

}  // namespace gridctl::whole
