// SPDX-License-Identifier: MIT
//
// PubSub knows who is subscribed to which channel. Subscribers of a channel are told in the order in which they came.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

class PubSub {
 public:
  using Subscriber = std::uint64_t;

  // False if it was subscribed already.
  bool subscribe(Subscriber subscriber, std::string_view channel);
  bool unsubscribe(Subscriber subscriber, std::string_view channel);
  void clear() { channels_.clear(); }

  [[nodiscard]] const std::vector<Subscriber>& subscribers(std::string_view channel) const;
  [[nodiscard]] std::vector<std::string> channels() const;  // Those with subscribers, sorted.

 private:
  std::map<std::string, std::vector<Subscriber>, std::less<>> channels_;
};

}  // namespace holdfast::sim
