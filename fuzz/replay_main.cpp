// SPDX-License-Identifier: MIT
//
// A fuzz target without a fuzzer: runs it over every file of the folders and files given, and over every beginning of
// each file, so that a corpus is a test in every build. Ends with 1 where there is nothing to replay.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "theorem.hpp"

int main(int count, char** arguments) {
  std::vector<std::filesystem::path> files;
  for (int index = 1; index < count; ++index) {
    if (!std::filesystem::is_directory(arguments[index]))
      files.emplace_back(arguments[index]);
    else
      for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[index]))
        if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 1;
    }
    // Said before it runs: the last name is the one that failed.
    std::printf("%s: %zu bytes\n", path.c_str(), bytes.size());
    std::fflush(stdout);
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
      // A copy of that size, so that a sanitizer sees a read behind it.
      const std::vector<char> beginning(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(beginning.data()), size);
    }
  }
  std::printf("%zu files replayed\n", files.size());
  return files.empty() ? 1 : 0;
}
