// SPDX-License-Identifier: MIT
#include "pubsub.hpp"

#include <algorithm>

namespace holdfast::sim {

bool PubSub::subscribe(Subscriber subscriber, std::string_view channel) {
  std::vector<Subscriber>& all = channels_[std::string(channel)];
  if (std::find(all.begin(), all.end(), subscriber) != all.end()) return false;
  all.push_back(subscriber);
  return true;
}

bool PubSub::unsubscribe(Subscriber subscriber, std::string_view channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return false;
  std::vector<Subscriber>& all = found->second;
  const auto position = std::find(all.begin(), all.end(), subscriber);
  if (position == all.end()) return false;
  all.erase(position);
  if (all.empty()) channels_.erase(found);
  return true;
}

const std::vector<PubSub::Subscriber>& PubSub::subscribers(std::string_view channel) const {
  static const std::vector<Subscriber> nobody;
  const auto found = channels_.find(channel);
  return found == channels_.end() ? nobody : found->second;
}

std::vector<std::string> PubSub::channels() const {
  std::vector<std::string> all;
  for (const auto& [channel, subscribers] : channels_) all.push_back(channel);
  return all;
}

}  // namespace holdfast::sim
