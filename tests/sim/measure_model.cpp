// SPDX-License-Identifier: MIT
//
// How many grants a second the model carries, by hand: SET NX PX and EVALSHA of the release script, each as a request
// of its own. The simulator is worth what this allows.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "model_redis.hpp"
#include "scripts.hpp"

using namespace holdfast;

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 500000;
  sim::ModelRedis model({});
  const auto connection = model.accept();
  const auto wire = [](std::initializer_list<std::string> words) {
    std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    return bytes;
  };
  const auto sha = [](const Script& script) { return std::string(script.sha.bytes().string_view()); };
  const auto text = [](const Script& script) { return std::string(script.text.string_view()); };
  for (const Script* const script : {&scripts::mutex_release, &scripts::reentrant_acquire, &scripts::reentrant_release})
    model.receive(connection, wire({"script", "load", text(*script)}));
  const std::string token = "0123456789abcdef0123456789abcdef";
  const std::string set = wire({"SET", "lock", token, "NX", "PX", "30000"});
  const std::string release = wire({"EVALSHA", sha(scripts::mutex_release), "1", "lock", token});
  const std::string refused = wire({"EVALSHA", sha(scripts::mutex_release), "1", "lock", "another"});
  const std::string enter = wire({"EVALSHA", sha(scripts::reentrant_acquire), "1", "hash", token, "30000"});
  const std::string leave = wire({"EVALSHA", sha(scripts::reentrant_release), "1", "hash", token, "channel"});
  const auto measure = [&](const char* name, std::initializer_list<const std::string*> requests) {
    model.flush();
    static_cast<void>(model.take_output(connection));
    const auto begin = std::chrono::steady_clock::now();
    std::size_t replies = 0;
    for (int round = 0; round < rounds; ++round) {
      for (const std::string* const request : requests) replies += model.receive(connection, *request);
      static_cast<void>(model.take_output(connection));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::printf("%-28s %9.0f requests a second\n", name, static_cast<double>(replies) / taken.count());
  };
  measure("SET, release script", {&set, &release});
  measure("release script, not ours", {&refused});
  measure("reentrant acquire, release", {&enter, &leave});
  return 0;
}
