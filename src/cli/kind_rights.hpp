// SPDX-License-Identifier: MIT
//
// What a kind of lock asks of the server's ACL, as proto/interop.md has it.
#pragma once

#include <string>
#include <vector>

#include "lock_choice.hpp"

namespace holdfast::cli {

// Each list is of rules, with spaces between them: commands, patterns of keys, where NAME is the lock's, and channels.
struct KindRights {
  Kind kind;
  const char* needed;
  const char* optional;
};
inline constexpr KindRights kind_rights[] = {
    {Kind::mutex, "~NAME +set +eval +evalsha +get +del +pexpire +pttl",
     "&redisson_lock__channel:* +publish +subscribe +unsubscribe +ping +delex +delifeq +info +client|id "
     "+client|setname "
     "+client|kill"},
    {Kind::reentrant, "~NAME +eval +evalsha +hexists +hset +hdel +pexpire +pttl",
     "&redisson_lock__channel:* +publish +subscribe +unsubscribe +ping +info +client|id +client|setname +client|kill"},
    {Kind::fenced,
     "~NAME ~redisson_lock_token:* +eval +evalsha +hexists +hset +hdel +pexpire +pttl +incr +get +set +time",
     "&redisson_lock__channel:* +publish +subscribe +unsubscribe +ping +info +client|id +client|setname +client|kill"},
    {Kind::fair,
     "~NAME ~holdfast_queue:* ~holdfast_beat:* +eval +evalsha +hexists +hset +hdel +pexpire +pttl +exists +hkeys +set "
     "+del +time +zadd +zrem +zscore +zpopmin",
     "&redisson_lock__channel:* &holdfast_fair:* +publish +subscribe +unsubscribe +ping +info +client|id "
     "+client|setname +client|kill"},
    {Kind::read, "~NAME ~{NAME}* +eval +evalsha +exists +hexists +hset +hdel +hget +hgetall +set +del +pexpire +pttl",
     "&redisson_lock__channel:* &redisson_rwlock:* +publish +subscribe +unsubscribe +ping +info +client|id "
     "+client|setname +client|kill"},
    {Kind::write, "~NAME ~{NAME}* +eval +evalsha +exists +hexists +hset +hdel +hget +hgetall +set +del +pexpire +pttl",
     "&redisson_lock__channel:* &redisson_rwlock:* +publish +subscribe +unsubscribe +ping +info +client|id "
     "+client|setname +client|kill"},
    {Kind::semaphore,
     "~NAME ~{NAME}* +eval +evalsha +exists +get +set +incrby +time +zadd +zcard +zrange +zrem +zremrangebyscore "
     "+zscore",
     "&redisson_lock__channel:* &redisson_sc:* +publish +subscribe +unsubscribe +ping +info +client|id "
     "+client|setname +client|kill"},
};

// Of every kind in a cluster, where releases are announced over channels of the slot; optional, as those of the other channels.
inline constexpr char cluster_rights[] = "+spublish +ssubscribe +sunsubscribe";
// Whom sentinels or a cluster's nodes have named must say what it is: there it is needed.
inline constexpr char identity_right[] = "+info";
// Where grants are to be confirmed by replicas.
inline constexpr char wait_right[] = "+wait";
// The channel that is of a client, not of a lock.
inline constexpr char fair_pattern[] = "&holdfast_fair:*";

// The rules of such a list.
[[nodiscard]] std::vector<std::string> rules_of(const char* list);

// A pattern of keys or channels as a rule for the lock of this name, and one key or channel that it matches. The rule can be typed
// as it is: what cannot be typed of the name is `?` there, which is any byte.
struct NamedPattern {
  std::string rule;
  std::string example;
};
// REQUIRES: 1 to key_size_max bytes of name.
[[nodiscard]] NamedPattern named(const std::string& pattern, const std::string& name);

}  // namespace holdfast::cli
